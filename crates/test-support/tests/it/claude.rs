//! Claude Code, driven for real: one test a scene, each on every pinned version.

use std::fs;
use std::time::Duration;

use ctxfold_test_support::{
    ClaudeHome, MockAnthropic, Terminal, Turn, clients, poll, require_client,
};
use serde_json::{Value, json};

const MINUTE: Duration = Duration::from_mins(1);

/// The content blocks of a type in every message of a request.
fn blocks<'a>(messages: &'a [Value], kind: &str) -> Vec<&'a Value> {
    messages
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .filter(|block| block["type"] == kind)
        .collect()
}

fn a_turn_with_a_tool_call_can_be_resumed(version: &str) {
    let client = require_client!(claude, version);
    let mock = MockAnthropic::start();
    mock.on(
        "FIRST",
        [
            Turn::text("running").and_tool("Bash", json!({"command": "echo MARK-$((40+2))"})),
            Turn::text("it printed a mark"),
        ],
    );
    let home = ClaudeHome::new(&client, &mock);

    let run = home.prompt("FIRST: run it").run().success();
    assert_eq!(run.text(), "it printed a mark");
    let requests = mock.log().conversations();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].holds("MARK-42"));
    let file = home
        .session_file(run.session_id())
        .expect("the session has a file");
    assert!(fs::read_to_string(&file).unwrap().contains("MARK-42"));
    assert_eq!(home.sessions(), [file]);

    mock.log().take();
    let again = home
        .prompt("and now?")
        .resume(run.session_id())
        .run()
        .success();
    assert_eq!(again.session_id(), run.session_id());
    assert!(again.text().starts_with("MOCK-REPLY to: "));
    let last = mock.log().last();
    assert!(last.holds("FIRST: run it") && last.holds("MARK-42") && last.holds("and now?"));
    assert_eq!(mock.log().compactions().len(), 0);
}

fn parallel_calls_and_thinking_come_back_unchanged(version: &str) {
    let client = require_client!(claude, version);
    let mock = MockAnthropic::start();
    let bash = |text: &str| json!({"command": format!("echo {text}")});
    mock.on(
        "PARALLEL",
        [
            Turn::new()
                .and_thinking("first I think")
                .and_redacted("REDACTED-DATA")
                .and_text("three at once")
                .and_tool("Bash", bash("ONE"))
                .and_tool("Bash", bash("TWO"))
                .and_tool("Bash", bash("THREE")),
            Turn::text("all done"),
        ],
    );
    let home = ClaudeHome::new(&client, &mock);
    let run = home.prompt("PARALLEL please").run().success();
    home.prompt("go on")
        .resume(run.session_id())
        .run()
        .success();

    let last = mock.log().last();
    let messages = last.messages();
    assert_eq!(blocks(messages, "thinking")[0]["thinking"], "first I think");
    assert_eq!(
        blocks(messages, "redacted_thinking")[0]["data"],
        "REDACTED-DATA"
    );
    let calls = blocks(messages, "tool_use");
    assert_eq!(calls.len(), 3);
    let results = blocks(messages, "tool_result");
    let mut called: Vec<_> = calls.iter().map(|call| call["id"].to_string()).collect();
    let mut answered: Vec<_> = results
        .iter()
        .map(|r| r["tool_use_id"].to_string())
        .collect();
    called.sort();
    answered.sort();
    assert_eq!(called, answered);
}

fn a_sub_agent_is_scripted_by_its_own_prompt(version: &str) {
    let client = require_client!(claude, version);
    let mock = MockAnthropic::start();
    mock.on(
        "SUB-TASK",
        [
            Turn::tool("Bash", json!({"command": "echo IN-THE-SUB-AGENT"})),
            Turn::text("SUB-ANSWER"),
        ],
    );
    mock.on(
        "DELEGATE",
        [
            Turn::tool(
                "Agent",
                json!({
                    "description": "look", "prompt": "SUB-TASK: look around",
                    "subagent_type": "general-purpose", "run_in_background": false,
                }),
            ),
            Turn::text("delegated"),
        ],
    );
    let home = ClaudeHome::new(&client, &mock);
    let run = home.prompt("DELEGATE it").run().success();
    let requests = mock.log().conversations();
    assert!(
        requests
            .iter()
            .any(|request| request.holds("IN-THE-SUB-AGENT"))
    );
    let agents = home.sub_agents(run.session_id());
    assert_eq!(agents.len(), 1, "{agents:?}");
    assert!(
        fs::read_to_string(&agents[0])
            .unwrap()
            .contains("IN-THE-SUB-AGENT")
    );

    home.prompt("go on")
        .resume(run.session_id())
        .run()
        .success();
    let last = mock.log().last();
    assert!(last.holds("SUB-ANSWER"), "{}", last.body["messages"]);
    assert!(!last.holds("IN-THE-SUB-AGENT"));
}

fn compact_asks_the_mock_for_a_summary(version: &str) {
    let client = require_client!(claude, version);
    let mock = MockAnthropic::start();
    mock.set_summary("SUMMARY-OF-THE-MOCK");
    let home = ClaudeHome::new(&client, &mock);
    let run = home.prompt("remember the number one").run().success();
    home.prompt("remember the number two")
        .resume(run.session_id())
        .run()
        .success();
    home.prompt("/compact")
        .resume(run.session_id())
        .run()
        .success();
    assert_eq!(mock.log().compactions().len(), 1);
    mock.log().take();
    home.prompt("go on")
        .resume(run.session_id())
        .run()
        .success();
    let last = mock.log().last();
    assert!(last.holds("SUMMARY-OF-THE-MOCK") && !last.holds("remember the number one"));
}

fn a_terminal_takes_prompts(version: &str) {
    let client = require_client!(claude, version);
    assert!(
        Terminal::is_available(),
        "tmux is needed to drive a terminal"
    );
    let mock = MockAnthropic::start();
    mock.on(
        "HELLO",
        [
            Turn::tool("Bash", json!({"command": "echo seen"})),
            Turn::text("TERMINAL-ANSWER"),
        ],
    );
    let home = ClaudeHome::new(&client, &mock);
    let terminal = home.terminal(&[], (100, 40));
    terminal.type_text("HELLO there");
    terminal.wait_for("HELLO there", MINUTE);
    terminal.press("Enter");
    terminal.wait_for("TERMINAL-ANSWER", MINUTE);
    assert!(
        mock.log()
            .conversations()
            .iter()
            .any(|request| request.holds("HELLO there"))
    );
    assert_eq!(home.sessions().len(), 1);
}

fn a_live_session_takes_prompt_after_prompt(version: &str) {
    let client = require_client!(claude, version);
    let mock = MockAnthropic::start();
    mock.on("the second prompt", [Turn::text("ANSWER-TWO")]);
    mock.on("the first prompt", [Turn::text("ANSWER-ONE")]);
    let home = ClaudeHome::new(&client, &mock);
    let mut live = home.live(&[]);
    let first = live.say("the first prompt");
    let id = first["session_id"]
        .as_str()
        .expect("the client names its session")
        .to_owned();
    // The client keeps a record of itself for as long as it lives.
    let record = home
        .config()
        .join("sessions")
        .join(format!("{}.json", live.pid()));
    let record = fs::read_to_string(record).unwrap();
    assert!(record.contains(&id), "{record}");

    let written = |text: &str| {
        poll(MINUTE, || {
            let file = home.session_file(&id)?;
            fs::read_to_string(file)
                .ok()
                .filter(|rows| rows.contains(text))
        })
    };
    assert!(written("ANSWER-ONE").is_some());
    assert_eq!(live.say("the second prompt")["is_error"], false);
    assert!(mock.log().last().holds("the first prompt"));
    assert!(written("ANSWER-TWO").is_some());
    live.kill();
    let run = home.prompt("after the crash").resume(&id).run().success();
    assert_eq!(run.session_id(), id);
    assert!(mock.log().last().holds("the second prompt"));
}

/// One test for each pinned version.
macro_rules! on_each_version {
    ($($scene:ident),* $(,)?) => {
        mod newest { $( #[test] fn $scene() { super::$scene(super::clients::CLAUDE[0]); } )* }
        mod oldest { $( #[test] fn $scene() { super::$scene(super::clients::CLAUDE[1]); } )* }
    };
}

on_each_version!(
    a_turn_with_a_tool_call_can_be_resumed,
    parallel_calls_and_thinking_come_back_unchanged,
    a_sub_agent_is_scripted_by_its_own_prompt,
    compact_asks_the_mock_for_a_summary,
    a_live_session_takes_prompt_after_prompt,
    a_terminal_takes_prompts,
);

#[test]
fn a_home_may_have_spaces_and_letters_of_any_kind() {
    let client = require_client!(claude, clients::CLAUDE[0]);
    let mock = MockAnthropic::start();
    let home = ClaudeHome::named(&client, &mock, "ctxfold föld ü ");
    home.write_settings(json!({"statusLine": {"type": "command", "command": "echo STATUS-42"}}));
    let terminal = home.terminal(&[], (60, 30));
    terminal.wait_for("STATUS-42", MINUTE);
    terminal.type_text("hello");
    terminal.press("Enter");
    terminal.wait_for("MOCK-REPLY", MINUTE);
    assert!(terminal.screen_with_colours().contains("\u{1b}["));
    terminal.press("C-c");
    terminal.press("C-c");
    assert!(terminal.wait_for_end(MINUTE));
}
