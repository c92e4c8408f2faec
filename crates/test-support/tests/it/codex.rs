//! Codex, driven for real: one test a scene, each on every pinned version.

use std::fs;
use std::time::Duration;

use ctxfold_test_support::{
    CodexHome, MockResponses, Recorded, ResponsesTurn, clients, require_client,
};
use serde_json::json;

const MINUTE: Duration = Duration::from_mins(1);

/// How many items of a type a request's input holds.
fn count(request: &Recorded, kind: &str) -> usize {
    request
        .input()
        .iter()
        .filter(|item| item["type"] == kind)
        .count()
}

fn tool_calls_in_parallel_with_reasoning_can_be_resumed(version: &str) {
    let client = require_client!(codex, version);
    let mock = MockResponses::start();
    mock.on(
        "FIRST",
        [
            ResponsesTurn::new()
                .and_reasoning("think")
                .and_shell("echo MARK-$((40+2))"),
            ResponsesTurn::shell("echo A").and_shell("echo B"),
            ResponsesTurn::text("all three ran"),
        ],
    );
    let home = CodexHome::new(&client, &mock);
    let run = home.prompt("FIRST: run them").run().success();
    assert_eq!(run.text(), "all three ran");
    let requests = mock.log().conversations();
    assert_eq!(requests.len(), 3);
    assert!(requests[1].holds("MARK-42"));
    assert_eq!(count(&requests[2], "function_call"), 3);
    assert_eq!(count(&requests[2], "function_call_output"), 3);
    assert_eq!(count(&requests[2], "reasoning"), 1);
    let rollout = home
        .rollout(run.thread_id())
        .expect("the thread has a rollout");
    assert!(fs::read_to_string(&rollout).unwrap().contains("MARK-42"));

    mock.log().take();
    let again = home
        .prompt("and now?")
        .resume(run.thread_id())
        .run()
        .success();
    assert_eq!(again.thread_id(), run.thread_id());
    assert_eq!(again.text(), "MOCK-REPLY to: and now?");
    assert_eq!(mock.log().conversations().len(), 1);
    assert!(mock.log().last().holds("MARK-42"));
    assert_eq!(home.rollouts(), [rollout]);
}

fn the_app_server_compacts_reads_and_forks(version: &str) {
    let client = require_client!(codex, version);
    let mock = MockResponses::start();
    mock.set_summary("SUMMARY-OF-THE-MOCK");
    mock.on(
        "FIRST",
        [
            ResponsesTurn::shell("echo MARK-$((40+2))"),
            ResponsesTurn::text("ran"),
        ],
    );
    let home = CodexHome::new(&client, &mock);
    let thread = home
        .prompt("FIRST: run it")
        .run()
        .success()
        .thread_id()
        .to_owned();

    let mut server = home.app_server();
    let resumed = server
        .request("thread/resume", json!({"threadId": thread}))
        .unwrap();
    assert_eq!(resumed["thread"]["id"], thread.as_str());
    server.compact(&thread);
    assert_eq!(mock.log().compactions().len(), 1);
    mock.log().take();
    let turn = server.turn(&thread, "go on");
    assert_eq!(turn["status"], "completed", "{turn}");
    let last = mock.log().last();
    assert!(last.holds("SUMMARY-OF-THE-MOCK") && !last.holds("MARK-42"));

    let read = json!({"threadId": thread, "includeTurns": true});
    let turns = server.request("thread/read", read).unwrap()["thread"]["turns"].take();
    assert_eq!(turns.as_array().map(Vec::len), Some(3), "{turns}");
    let forked = server
        .request("thread/fork", json!({"threadId": thread}))
        .unwrap();
    assert_ne!(forked["thread"]["id"], thread.as_str());
    let error = server
        .request("thread/read", json!({"threadId": "no-such"}))
        .unwrap_err();
    assert!(error["message"].is_string(), "{error}");
    drop(server);
    assert_eq!(home.rollouts().len(), 2);
    assert!(
        home.prompt("again")
            .resume(&thread)
            .run()
            .success()
            .text()
            .contains("again")
    );
}

/// One test for each pinned version.
macro_rules! on_each_version {
    ($($scene:ident),* $(,)?) => {
        mod newest { $( #[test] fn $scene() { super::$scene(super::clients::CODEX[0]); } )* }
        mod middle { $( #[test] fn $scene() { super::$scene(super::clients::CODEX[1]); } )* }
        mod oldest { $( #[test] fn $scene() { super::$scene(super::clients::CODEX[2]); } )* }
    };
}

on_each_version!(
    tool_calls_in_parallel_with_reasoning_can_be_resumed,
    the_app_server_compacts_reads_and_forks,
);

#[test]
fn the_newest_client_reverts_a_thread() {
    let client = require_client!(codex, clients::CODEX[0]);
    let mock = MockResponses::start();
    let home = CodexHome::new(&client, &mock);
    let thread = home
        .prompt("the first prompt")
        .run()
        .success()
        .thread_id()
        .to_owned();
    home.prompt("the second prompt")
        .resume(&thread)
        .run()
        .success();
    let mut server = home.app_server();
    server
        .request("thread/resume", json!({"threadId": thread}))
        .unwrap();
    let list = json!({"threadId": thread, "sortDirection": "asc"});
    let turns = server.request("thread/turns/list", list).unwrap();
    let second = turns["data"][1]["id"].clone();
    assert!(second.is_string(), "{turns}");
    server
        .request(
            "thread/revert",
            json!({"threadId": thread, "beforeTurnId": second}),
        )
        .unwrap();
    server.turn(&thread, "the third prompt");
    drop(server);
    let last = mock.log().last();
    assert!(last.holds("the first prompt") && !last.holds("the second prompt"));
    assert_eq!(home.rollouts().len(), 2);
}

#[test]
fn the_newest_client_takes_prompts_in_a_terminal() {
    let client = require_client!(codex, clients::CODEX[0]);
    let mock = MockResponses::start();
    mock.on("HELLO", [ResponsesTurn::text("TERMINAL-ANSWER")]);
    let home = CodexHome::new(&client, &mock);
    let terminal = home.terminal(&[], (100, 40));
    terminal.type_text("HELLO there");
    terminal.wait_for("HELLO there", MINUTE);
    terminal.press("Enter");
    terminal.wait_for("TERMINAL-ANSWER", MINUTE);
    drop(terminal);
    assert_eq!(home.rollouts().len(), 1);
    let folder = home.home().to_owned();
    drop(home);
    let alive = fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .filter(|entry| {
            let program = fs::read_link(entry.path().join("exe"));
            program.is_ok_and(|program| program.starts_with(&folder))
        });
    assert_eq!(alive.count(), 0, "the daemon is stopped");
}
