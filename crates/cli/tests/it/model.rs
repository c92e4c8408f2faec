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
        ran.stderr.lines().next().unwrap(),
        "ctxfold: masked instead: all 2 keys failed: Gemini HTTP 429: quota (keys 1-2) · \
         masked: 19 folded · 57% smaller"
    );
    let all = gemini.log().all();
    let mut used: Vec<_> = all
        .iter()
        .filter_map(|r| r.header("x-goog-api-key"))
        .collect();
    used.dedup();
    assert_eq!(used.join(","), KEYS, "each key once, in order");
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
    assert_eq!(said, "ctxfold: interrupted; nothing was written\n");
    assert!(output.stdout.is_empty() && lab.bytes() == before);
    assert!(!lab.state().exists(), "no write was announced");
}
