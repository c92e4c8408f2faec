//! The mod at the first prompt after a pause, without the launcher: what the client then sends.

use std::path::PathBuf;
use std::time::Duration;

use ctxfold_test_support::{
    ClaudeHome, Gate, GeminiTurn, MockAnthropic, Recorded, Turn, require_client,
};
use serde_json::{Value, json};

use crate::lab::{Lab, OURS, SUMMARY, THEIRS, dist};
use crate::old::make_old;

const LIMIT: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_hours(3);

fn usage(tokens: u64) -> Value {
    json!({"input_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": tokens, "output_tokens": 5})
}

/// A conversation of 150,000 tokens whose last answer is three hours old, and the mod switched on.
fn paused(mode: &str) -> Option<(Lab, String)> {
    let client = ctxfold_test_support::clients::claude("2.1.332")?;
    let lab = Lab::with(&client, dist());
    for line in ["at off", "idle on", &format!("mode {mode}")] {
        let set = lab.home.prompt(&format!("/ctxfold {line}")).run().success();
        assert!(set.text().contains("idle  "), "{}", set.text());
    }
    lab.mock.set_usage(usage(150_000));
    let id = lab.conversation();
    make_old(&file(&lab.home, &id), PAUSE);
    lab.mock.set_usage(usage(20_000));
    Some((lab, id))
}

fn file(home: &ClaudeHome, id: &str) -> PathBuf {
    home.session_file(id).unwrap()
}

fn boundaries(lab: &Lab, id: &str) -> usize {
    let text = std::fs::read_to_string(file(&lab.home, id)).unwrap();
    text.matches("\"compact_boundary\"").count()
}

/// The requests since the last look: of the conversation alone, and none of them long.
#[track_caller]
fn short(mock: &MockAnthropic, prompt: &str) -> Vec<Recorded> {
    assert!(mock.log().compactions().is_empty());
    let requests = mock.log().conversations();
    for request in &requests {
        assert!(request.holds(prompt), "{:#?}", request.messages());
        assert!(!request.holds("FIRST-41") && !request.holds("SECOND-41"));
        assert!(!request.holds(THEIRS));
    }
    mock.log().take();
    requests
}

/// One prompt with a tool call behind it, then another prompt.
fn folds_once_and_loops_on(model: &str) {
    require_client!(claude, "2.1.332");
    let (lab, id) = paused("mask").unwrap();
    let call = json!({"command": "echo LOOP-$((40+1))", "description": "echo"});
    lab.mock.on(
        "SEVENTH",
        [Turn::tool("Bash", call), Turn::text("seventh done")],
    );
    let prompt = lab.home.prompt("SEVENTH: use a tool").resume(&id);
    let run = prompt.arg("--model").arg(model).run().success();
    assert_eq!(run.text(), "seventh done");
    let requests = short(&lab.mock, "SEVENTH: use a tool");
    assert_eq!(requests.len(), 2, "the prompt and the tool's result");
    assert!(requests[1].holds("LOOP-41"));
    assert_eq!(boundaries(&lab, &id), 1);

    let prompt = lab.home.prompt("EIGHTH: a word").resume(&id);
    prompt.arg("--model").arg(model).run().success();
    assert_eq!(short(&lab.mock, "EIGHTH: a word").len(), 1);
    assert_eq!(boundaries(&lab, &id), 1, "once a pause");
    assert_eq!(lab.gemini.log().all().len(), 0);
}

#[test]
fn a_prompt_in_a_small_window_goes_out_short_and_its_tools_work() {
    folds_once_and_loops_on("claude-haiku-4-5");
}

#[test]
fn a_prompt_in_a_large_window_goes_out_short_and_its_tools_work() {
    folds_once_and_loops_on("claude-opus-5-5");
}

#[test]
fn a_program_that_speaks_stream_json_gets_the_same() {
    require_client!(claude, "2.1.332");
    let (lab, id) = paused("mask").unwrap();
    let mut live = lab.home.live(&["--resume", &id]);
    let result = live.say("SEVENTH: a word");
    assert_eq!(result["is_error"], false, "{result}");
    assert_eq!(short(&lab.mock, "SEVENTH: a word").len(), 1);
    let result = live.say("EIGHTH: a word");
    assert_eq!(result["is_error"], false, "{result}");
    assert_eq!(short(&lab.mock, "EIGHTH: a word").len(), 1);
    drop(live);
    assert_eq!(boundaries(&lab, &id), 1, "once a pause");
}

#[test]
fn a_warm_conversation_is_left_alone() {
    require_client!(claude, "2.1.332");
    let (lab, id) = paused("mask").unwrap();
    make_old(&file(&lab.home, &id), Duration::from_mins(1));
    lab.home.prompt("SEVENTH").resume(&id).run().success();
    let requests = lab.mock.log().conversations();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].holds("FIRST-41"));
    assert_eq!(boundaries(&lab, &id), 0);
}

/// The pause is the session's, not the process's.
#[test]
fn a_session_that_a_fresh_process_goes_on_with_is_as_old_as_its_file() {
    require_client!(claude, "2.1.332");
    let (lab, id) = paused("mask").unwrap();
    let terminal = lab.home.terminal(&[], (140, 50));
    let say = |text: &str| {
        terminal.type_text(text);
        terminal.wait_for(text, LIMIT);
        terminal.press("Enter");
    };
    let sent = |text: &str| {
        let sent = |r: &Recorded| r.kind == "conversation" && r.holds(text);
        let request = lab.mock.log().wait_for(LIMIT, sent);
        request.unwrap_or_else(|| panic!("{}", terminal.screen()))
    };
    say("EIGHTH: of another session");
    sent("EIGHTH: of another session");
    terminal.wait_for("ctxfold mask", LIMIT);
    say(&format!("/resume {id}"));
    terminal.wait_for("SIXTH: go on", LIMIT);
    say("SEVENTH: a word");
    let request = sent("SEVENTH: a word");
    assert!(!request.holds("FIRST-41"), "{:#?}", request.messages());
    assert!(lab.mock.log().compactions().is_empty());
}

#[test]
fn a_model_that_fails_costs_nothing_more() {
    require_client!(claude, "2.1.332");
    let (lab, id) = paused("summary").unwrap();
    lab.gemini
        .next(GeminiTurn::error(400, "INVALID_ARGUMENT", "no such thing"));
    lab.home.prompt("SEVENTH").resume(&id).run().success();
    assert!(lab.mock.log().compactions().is_empty());
    let requests = lab.mock.log().conversations();
    assert_eq!(requests.len(), 1, "the whole history, once");
    assert!(requests[0].holds("FIRST-41") && requests[0].holds("SEVENTH"));
    assert_eq!(boundaries(&lab, &id), 0);
}

#[test]
fn escape_during_a_slow_model_sends_nothing_and_gives_the_prompt_back() {
    require_client!(claude, "2.1.332");
    let (lab, id) = paused("summary").unwrap();
    let gate = Gate::closed();
    lab.gemini.next(GeminiTurn::text(SUMMARY).held_by(&gate));
    let terminal = lab.home.terminal(&["--resume", &id], (140, 50));
    let say = |text: &str| {
        terminal.type_text(text);
        terminal.wait_for(text, LIMIT);
        terminal.press("Enter");
    };
    say("SEVENTH: a word");
    let thinks = |r: &Recorded| r.kind == "conversation";
    let asked = lab.gemini.log().wait_for(LIMIT, thinks);
    assert!(asked.is_some(), "{}", terminal.screen());
    terminal.press("Escape");
    let back = terminal.wait_until(LIMIT, |s| s.contains("❯ SEVENTH: a word"));
    assert!(back.is_ok(), "{back:?}");
    assert!(lab.mock.log().conversations().is_empty());
    gate.open();

    // Sent again, and the model answers now.
    lab.expect_summary();
    terminal.press("Enter");
    let sent = lab.mock.log().wait_for(LIMIT, |r| {
        r.kind == "conversation" && r.holds("SEVENTH: a word")
    });
    let request = sent.unwrap_or_else(|| panic!("{}", terminal.screen()));
    assert!(request.holds(OURS) && !request.holds("FIRST-41"));
    assert_eq!(short(&lab.mock, "SEVENTH: a word").len(), 1);
}
