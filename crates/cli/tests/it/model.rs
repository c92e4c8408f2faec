//! The model fails, is slow or lies: exit code 4 or a masked session, and no key anywhere.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use ctxfold_test_support::{Gate, GeminiTurn, MockGemini};
use serde_json::json;

use crate::lab::{Lab, Ran, SESSION};

/// The keys, which no output may hold: not whole, and not their marks.
const KEYS: &str =
    "AIzaPlantedOne00000000000000000000000001,AIzaPlantedTwo00000000000000000000000002";

/// A command that would ask this mock.
fn command(lab: &Lab, gemini: &MockGemini, arguments: &[&str]) -> Command {
    let mut command = lab.command(arguments);
    command
        .env("CTXFOLD_GEMINI_BASE_URL", gemini.url())
        .env("CTXFOLD_GEMINI_API_KEY", KEYS);
    command
}

/// Errors of the API in which keys stand, in the forms in which they come.
fn telling_errors() -> Vec<GeminiTurn> {
    let mut turns = Vec::new();
    for key in KEYS.split(',') {
        let told = format!("Consumer 'api_key:{key}' is suspended; see https://x.test/?key={key}");
        turns.push(GeminiTurn::error(403, "PERMISSION_DENIED", &told));
        turns.push(GeminiTurn::error(429, "RESOURCE_EXHAUSTED", &told));
        turns.push(GeminiTurn::error(400, "INVALID_ARGUMENT", &told));
        turns.push(GeminiTurn::raw(
            json!([{"error": {"code": 500, "message": told}}]),
        ));
        turns.push(GeminiTurn::raw(json!({"candidates": [], "note": told})));
        turns.push(GeminiTurn::raw(json!(told)));
    }
    turns
}

/// A summary that is taken.
fn summary() -> String {
    let section =
        |title: &&str| format!("## {title}\nNothing worth a word happened here at all.\n");
    ctxfold_compactor::SECTIONS.iter().map(section).collect()
}

#[track_caller]
fn assert_no_key(lab: &Lab, ran: &Ran) {
    let journal = fs::read_to_string(lab.state().join("journal.jsonl")).unwrap_or_default();
    let session = String::from_utf8(lab.bytes()).unwrap();
    for text in [&ran.stdout, &ran.stderr, &journal, &session] {
        assert!(!text.contains("Planted"), "{text}");
    }
}

#[test]
fn errors_that_tell_keys_are_told_without_them() {
    let gemini = MockGemini::start();
    for turn in telling_errors() {
        let lab = Lab::new();
        let before = lab.bytes();
        let none = [
            "compact",
            SESSION,
            "--mode",
            "summary",
            "--fallback",
            "none",
        ];
        // Both keys, and whatever is tried again, meet the same error.
        for _ in 0..8 {
            gemini.next(turn.clone());
        }
        let failed = lab.ran(&mut command(&lab, &gemini, &none));
        assert_eq!(failed.code, 4, "{failed:?}");
        assert!(failed.stderr.contains("nothing was written"), "{failed:?}");
        assert!(lab.bytes() == before);
        assert_no_key(&lab, &failed);

        let masked = ["compact", SESSION, "--mode", "prune", "--json"];
        for _ in 0..8 {
            gemini.next(turn.clone());
        }
        let masked = lab.ran(&mut command(&lab, &gemini, &masked)).done();
        assert_no_key(&lab, &masked);
        let doctor = lab.ran(&mut command(&lab, &gemini, &["doctor", "--json"]));
        assert_no_key(&lab, &doctor);
    }
}

#[test]
fn a_failed_summary_is_masked_and_one_line_says_why() {
    let (gemini, lab) = (MockGemini::start(), Lab::new());
    for _ in 0..2 {
        gemini.next(GeminiTurn::error(
            429,
            "RESOURCE_EXHAUSTED",
            "no quota left",
        ));
    }
    let arguments = ["compact", SESSION, "--mode", "summary"];
    let ran = lab.ran(&mut command(&lab, &gemini, &arguments)).done();
    assert_eq!(
        ran.stderr.lines().nth(1).unwrap(),
        "ctxfold: masked instead: all 2 keys failed: Gemini HTTP 429: quota (keys 1-2) · \
         masked: 19 folded · 57% smaller · free tier: the provider may read and train on what was \
         sent"
    );
    let all = gemini.log().conversations();
    let mut used: Vec<_> = all
        .iter()
        .filter_map(|r| r.header("x-goog-api-key"))
        .collect();
    used.dedup();
    assert_eq!(used.join(","), KEYS, "each key once, in order");
}

/// The conversation must not go to a server that has no such model.
#[test]
fn a_model_that_is_not_listed_is_refused_before_anything_is_sent() {
    let (gemini, lab) = (MockGemini::start(), Lab::new());
    let wrong = ["compact", SESSION, "--model", "gemini-3.5-flash-lit"];
    let none = [&wrong[..], &["--mode", "summary", "--fallback", "none"]].concat();
    let before = lab.bytes();
    let failed = lab.ran(&mut command(&lab, &gemini, &none));
    assert_eq!(failed.code, 4, "{failed:?}");
    let reason = "unknown model gemini-3.5-flash-lit; the closest are gemini-3.5-flash-lite and";
    assert!(failed.stderr.contains(reason), "{failed:?}");
    assert!(!failed.stderr.contains("free tier"), "{failed:?}");
    assert!(lab.bytes() == before);

    let masked = [&wrong[..], &["--mode", "prune"]].concat();
    let masked = lab.ran(&mut command(&lab, &gemini, &masked)).done();
    assert!(
        masked.stderr.contains(&format!("masked instead: {reason}")),
        "{masked:?}"
    );
    assert!(!masked.stderr.contains("free tier"), "{masked:?}");
    assert_eq!(gemini.log().conversations().len(), 0, "nothing was sent");
    assert_eq!(gemini.log().all().len(), 2, "the list was asked for");
}

/// Some servers in between have no list; the model is asked all the same, and once.
#[test]
fn a_list_without_models_stops_nothing() {
    let (gemini, lab) = (MockGemini::start(), Lab::new());
    gemini.set_models(Vec::new());
    gemini.next(GeminiTurn::text(&summary()));
    let arguments = ["compact", SESSION, "--mode", "summary"];
    lab.ran(&mut command(&lab, &gemini, &arguments)).done();
    assert_eq!(gemini.log().conversations().len(), 1);
}

#[test]
fn a_free_key_is_warned_of_once_and_told_of_each_time() {
    let (gemini, lab) = (MockGemini::start(), Lab::new());
    let none = [
        "compact",
        SESSION,
        "--mode",
        "summary",
        "--fallback",
        "none",
    ];
    let run = |more: &[&str]| {
        gemini.next(GeminiTurn::error(400, "INVALID_ARGUMENT", "no"));
        let arguments = [&none[..], more].concat();
        let ran = lab.ran(&mut command(&lab, &gemini, &arguments));
        assert_eq!(ran.code, 4, "{ran:?}");
        ran.stderr
    };
    let warned = |text: &str| text.contains("ctxfold config set gemini.tier paid");
    let told = |text: &str| text.contains("free tier: the provider may read");
    let first = run(&[]);
    assert!(warned(&first) && told(&first), "{first}");
    let second = run(&[]);
    assert!(!warned(&second) && told(&second), "{second}");
    lab.ctxfold(&["config", "set", "gemini.tier", "paid"])
        .done();
    fs::remove_file(lab.state().join("free-tier-told")).unwrap();
    let paid = run(&[]);
    assert!(!warned(&paid) && !told(&paid), "{paid}");
}

#[test]
fn a_dead_network_and_a_bad_address() {
    let lab = Lab::new();
    let none = [
        "compact",
        SESSION,
        "--mode",
        "summary",
        "--fallback",
        "none",
    ];
    for (url, code, reason) in [
        ("http://127.0.0.1:9", 4, "cannot connect"),
        ("not an address", 1, "base URL"),
    ] {
        let before = lab.bytes();
        let mut command = lab.command(&none);
        command
            .env("CTXFOLD_GEMINI_BASE_URL", url)
            .env("CTXFOLD_GEMINI_API_KEY", KEYS);
        let ran = lab.ran(&mut command);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stderr.contains(reason), "{ran:?}");
        assert!(lab.bytes() == before);
        assert_no_key(&lab, &ran);
    }
}

#[test]
fn ctrl_c_while_the_model_thinks() {
    let (gemini, lab, gate) = (MockGemini::start(), Lab::new(), Gate::closed());
    gemini.next(GeminiTurn::text("too late").held_by(&gate));
    let before = lab.bytes();
    let child = command(&lab, &gemini, &["compact", SESSION, "--mode", "summary"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = gemini
        .log()
        .wait_for(Duration::from_mins(1), |r| r.kind == "conversation");
    assert!(asked.is_some());
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    gate.open();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let said = said.split_once('\n').unwrap().1;
    assert_eq!(
        said,
        "ctxfold: interrupted; nothing was written\n  hint: free tier: the provider may read and \
         train on what was sent\n"
    );
    assert!(output.stdout.is_empty() && lab.bytes() == before);
    let journal = lab.state().join("journal.jsonl");
    assert!(!journal.exists(), "no write was announced");
}

#[test]
fn a_proxy_of_the_environment_beats_the_files() {
    let (gemini, lab) = (MockGemini::start(), Lab::new());
    let set = ["config", "set", "gemini.proxy", "http://127.0.0.1:9"];
    lab.ctxfold(&set).done();
    let mut command = lab.command(&["models"]);
    command
        .env("CTXFOLD_GEMINI_BASE_URL", "http://gemini.test")
        .env("CTXFOLD_GEMINI_API_KEY", "AIzaPlanted")
        .env("HTTPS_PROXY", gemini.url());
    let listed = lab.ran(&mut command).done();
    assert!(
        listed.stdout.contains("gemini-3.5-flash-lite"),
        "{listed:?}"
    );
    assert_eq!(gemini.log().all().len(), 1);
}
