//! In a terminal: what is seen, automatic compaction, and the threshold.

use std::time::Duration;

use ctxfold_test_support::{GeminiTurn, Terminal, poll, require_client};
use serde_json::{Value, json};

use crate::lab::{Lab, OURS, SUMMARY, THEIRS, dist};

const LIMIT: Duration = Duration::from_mins(1);
const SIZE: (u16, u16) = (140, 50);

fn usage(tokens: u64) -> Value {
    json!({"input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": tokens, "output_tokens": 5})
}

fn say(terminal: &Terminal, text: &str) {
    terminal.type_text(text);
    // A pasted line and its Enter would be one paste.
    terminal.wait_for(text, LIMIT);
    terminal.press("Enter");
}

#[track_caller]
fn gemini_was_asked(lab: &Lab, times: usize) {
    let asked = poll(LIMIT, || {
        (lab.gemini.log().conversations().len() >= times).then_some(())
    });
    assert!(
        asked.is_some(),
        "Gemini was asked {} times",
        lab.gemini.log().conversations().len()
    );
}

#[test]
fn compact_shows_a_line_and_the_next_request_holds_the_summary() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::with(&client, dist());
    let id = lab.conversation();
    lab.expect_summary();
    let terminal = lab.home.terminal(&["--resume", &id], SIZE);
    say(&terminal, "/compact");
    gemini_was_asked(&lab, 1);
    terminal.wait_for("ctxfold: ", LIMIT);
    say(&terminal, "SEVENTH");
    let request = lab
        .mock
        .log()
        .wait_for(LIMIT, |r| r.kind == "conversation" && r.holds("SEVENTH"));
    let request = request.expect("the prompt is sent");
    assert!(request.holds(OURS) && !request.holds("FIRST-41"));
    assert!(lab.mock.log().compactions().is_empty());
}

#[test]
fn the_clients_automatic_compaction_is_taken_over_and_the_prompt_goes_out() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::with(&client, dist());
    lab.home.prompt("/ctxfold at off").run().success();
    let id = lab.conversation();
    lab.mock.set_usage(usage(190_000));
    let settings = json!({"autoCompactWindow": 200_000}).to_string();
    let arguments = ["--resume", &id, "--settings", &settings];
    let terminal = lab.home.terminal(&arguments, SIZE);
    say(&terminal, "SEVENTH");
    terminal.wait_for("MOCK-REPLY to: SEVENTH", LIMIT);
    lab.mock.set_usage(usage(20_000));
    lab.expect_summary();
    say(&terminal, "EIGHTH");
    let request = lab
        .mock
        .log()
        .wait_for(LIMIT, |r| r.kind == "conversation" && r.holds("EIGHTH"));
    let request = request.unwrap_or_else(|| panic!("{}", terminal.screen()));
    assert!(request.holds(OURS) && !request.holds("FIRST-41") && !request.holds(THEIRS));
    assert_eq!(lab.gemini.log().conversations().len(), 1);
    assert!(lab.mock.log().compactions().is_empty());
}

#[test]
fn the_threshold_compacts_once_until_the_fill_was_under_it() {
    let client = require_client!(claude, "2.1.332");
    let lab = Lab::with(&client, dist());
    lab.home.prompt("/ctxfold at 50").run().success();
    let id = lab.conversation();
    lab.gemini.on("", [GeminiTurn::text(SUMMARY)]);
    let terminal = lab.home.terminal(&["--resume", &id], SIZE);
    let turn = |prompt: &str, tokens: u64| {
        lab.mock.set_usage(usage(tokens));
        say(&terminal, prompt);
        terminal.wait_for(&format!("MOCK-REPLY to: {prompt}"), LIMIT);
    };
    turn("SEVENTH", 100_000);
    turn("EIGHTH", 600_000);
    gemini_was_asked(&lab, 1);
    terminal.wait_for("ctxfold: ", LIMIT);
    turn("NINTH", 610_000);
    turn("TENTH", 620_000);
    assert_eq!(
        lab.gemini.log().conversations().len(),
        1,
        "{}",
        terminal.screen()
    );
    let whole = serde_json::to_string(lab.mock.log().last().messages()).unwrap();
    assert!(
        whole.contains(OURS) && !whole.contains("FIRST-41"),
        "{whole}"
    );
    turn("ELEVENTH", 100_000);
    turn("TWELFTH", 630_000);
    gemini_was_asked(&lab, 2);
    assert!(lab.mock.log().compactions().is_empty());
}
