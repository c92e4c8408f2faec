//! Nothing leaves the machine that should not.

use std::fs;

use ctxfold_test_support::{GeminiTurn, MockGemini};
use serde_json::{Value, json};

use crate::lab::{Lab, SESSION};

const SECRET: &str = "AKIAIOSFODNN7PLANTED";
const PASSWORD: &str = "hunter2-planted-password";

/// A session whose first output holds credentials.
fn with_secrets() -> Lab {
    let lab = Lab::new();
    let text = fs::read_to_string(lab.file()).unwrap();
    let mut rows: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let output = rows
        .iter_mut()
        .find_map(|row| row.pointer_mut("/message/content/0/content"))
        .unwrap();
    *output = json!(format!(
        "AWS_ACCESS_KEY_ID={SECRET}\nurl = postgres://app:{PASSWORD}@db.test/main\n{}",
        "a line of the rest\n".repeat(200)
    ));
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    lab.write(rows.join("\n") + "\n");
    lab
}

#[test]
fn a_dry_run_shows_what_would_be_sent_without_secrets_and_sends_nothing() {
    let gemini = MockGemini::start();
    let lab = with_secrets();
    for mode in ["summary", "prune"] {
        let run = |more: &[&str]| {
            let arguments = [&["compact", SESSION, "--mode", mode, "--dry-run"], more].concat();
            lab.ran(
                lab.command(&arguments)
                    .env("CTXFOLD_GEMINI_BASE_URL", gemini.url())
                    .env("CTXFOLD_GEMINI_API_KEY", "AIzaPlanted"),
            )
            .done()
        };
        let shown = run(&[]);
        assert!(!shown.stdout.contains(SECRET) && !shown.stdout.contains(PASSWORD));
        assert!(
            shown.stderr.contains("nothing was sent"),
            "{}",
            shown.stderr
        );
        let json = run(&["--json"]).json();
        assert!(
            json["secrets_replaced"].as_u64().unwrap() >= 2,
            "{}",
            json["secrets_replaced"]
        );
        let open = run(&["--no-redact"]);
        assert!(
            open.stdout.contains(SECRET),
            "--no-redact does what it says"
        );
    }
    assert_eq!(gemini.log().all().len(), 0);
    assert!(!lab.state().exists(), "a dry run leaves nothing behind");
}

#[test]
fn c28_secrets_are_replaced_in_what_is_sent_and_counted() {
    let gemini = MockGemini::start();
    let lab = with_secrets();
    let section =
        |title: &&str| format!("## {title}\nNothing worth a word happened here at all.\n");
    let text: String = ctxfold_compactor::SECTIONS.iter().map(section).collect();
    gemini.next(GeminiTurn::text(&text));
    let ran = lab
        .ran(
            lab.command(&["compact", SESSION, "--mode", "summary"])
                .env("CTXFOLD_GEMINI_BASE_URL", gemini.url())
                .env("CTXFOLD_GEMINI_API_KEY", "AIzaPlanted"),
        )
        .done();
    assert!(
        ran.stderr.contains("were replaced in what was sent"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("free tier"), "{ran:?}");
    let sent = gemini.log().conversations();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].holds("AWS_ACCESS_KEY_ID=") && !sent[0].holds(SECRET));
    assert!(!sent[0].holds(PASSWORD));
    assert_eq!(sent[0].header("x-goog-api-key"), Some("AIzaPlanted"));
    // What was appended holds no secret either.
    let appended = lab.bytes();
    let text = String::from_utf8_lossy(&appended);
    let summary = text
        .lines()
        .rfind(|l| l.contains("isCompactSummary"))
        .unwrap();
    assert!(!summary.contains(SECRET) && !summary.contains(PASSWORD));
}

#[test]
fn masking_speaks_to_nobody() {
    let gemini = MockGemini::start();
    let lab = with_secrets();
    let mut command = lab.command(&["compact", SESSION]);
    command
        .env("CTXFOLD_GEMINI_BASE_URL", gemini.url())
        .env("CTXFOLD_GEMINI_API_KEY", "AIzaPlanted");
    lab.ran(&mut command).done();
    assert_eq!(gemini.log().all().len(), 0, "a key alone sends nothing");
}
