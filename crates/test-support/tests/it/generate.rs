//! Generated sessions, judged by the real clients: they resume them and send what they should.

use std::fs::{self, File};
use std::io::BufWriter;

use ctxfold_test_support::generate::{ClaudeSession, CodexRollout};
use ctxfold_test_support::{
    ClaudeHome, CodexHome, MockAnthropic, MockResponses, clients, require_client,
};

/// A session above 5 MiB, where the client skips what lies before the last compaction.
fn claude_resumes_a_generated_session(version: &str) {
    let client = require_client!(claude, version);
    let mock = MockAnthropic::start();
    let home = ClaudeHome::new(&client, &mock);
    // The client makes the project's folder; ours takes the place of its session.
    let run = home.prompt("hello").run().success();
    let path = home.session_file(run.session_id()).unwrap();
    let cwd = fs::canonicalize(home.project()).unwrap();
    let session = ClaudeSession {
        id: run.session_id().to_owned(),
        cwd: cwd.to_string_lossy().into_owned(),
        version: version.to_owned(),
        old_bytes: 6 << 20,
        turns: 5,
        progress_percent: 10,
        ..ClaudeSession::default()
    };
    let written = session
        .write_to(BufWriter::new(File::create(&path).unwrap()))
        .unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), written.bytes);
    let newest = written_turns(&fs::read_to_string(&path).unwrap());
    mock.log().take();

    home.prompt("go on").resume(&session.id).run().success();
    assert_eq!(mock.log().compactions().len(), 0);
    let last = mock.log().last();
    assert!(
        last.holds("earlier parts were looked into"),
        "the summary is sent"
    );
    // Five turns after the compaction, and the one that it kept.
    for turn in newest - 6..newest {
        assert!(
            last.holds(&format!("prompt {turn}: ")),
            "turn {turn} is sent"
        );
        assert!(
            last.holds(&format!("part {turn} is fine")),
            "its answer too"
        );
    }
    assert!(!last.holds(&format!("prompt {}: ", newest - 7)));
    let results = last
        .messages()
        .iter()
        .filter_map(|message| message["content"].as_array());
    let results = results
        .flatten()
        .filter(|block| block["type"] == "tool_result")
        .count();
    assert_eq!(results, 6 * session.calls);
}

/// How many turns a session has is up to its sizes; what its last message reports is not.
#[test]
fn the_last_message_reports_the_tokens_that_were_asked_for() {
    for old_bytes in [0, 30_000, 100_000, 170_000] {
        let session = ClaudeSession {
            old_bytes,
            turns: 5,
            last_tokens: 70_000,
            ..ClaudeSession::default()
        };
        let mut text = Vec::new();
        session.write_to(&mut text).unwrap();
        let rows = serde_json::Deserializer::from_slice(&text).into_iter::<serde_json::Value>();
        let used =
            rows.filter_map(|row| Some(row.unwrap()["message"]["usage"].as_object()?.clone()));
        let last = used.last().unwrap();
        let of = |part: &str| last[part].as_u64().unwrap();
        let total =
            of("input_tokens") + of("cache_creation_input_tokens") + of("cache_read_input_tokens");
        assert_eq!(total, 70_000, "{old_bytes}");
    }
}

fn written_turns(text: &str) -> usize {
    text.lines()
        .filter(|line| line.contains("\"content\":\"prompt "))
        .count()
}

#[test]
fn the_newest_claude_resumes_a_generated_session() {
    claude_resumes_a_generated_session(clients::CLAUDE[0]);
}

#[test]
fn the_oldest_claude_resumes_a_generated_session() {
    claude_resumes_a_generated_session(clients::CLAUDE[1]);
}

fn codex_resumes_a_generated_rollout(version: &str, paginated: bool) {
    let client = require_client!(codex, version);
    let mock = MockResponses::start();
    let home = CodexHome::new(&client, &mock);
    let rollout = CodexRollout {
        cwd: fs::canonicalize(home.project())
            .unwrap()
            .to_string_lossy()
            .into_owned(),
        version: version.to_owned(),
        paginated,
        compactions: 2,
        image_bytes: 100_000,
        turns: 3,
        ..CodexRollout::default()
    };
    let folder = home.codex_home().join("sessions/2026/01/01");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(rollout.file_name());
    rollout
        .write_to(BufWriter::new(File::create(&path).unwrap()))
        .unwrap();

    home.prompt("go on").resume(&rollout.id).run().success();
    assert_eq!(mock.log().compactions().len(), 0);
    let last = mock.log().last();
    assert!(last.holds("parts up to 2 are fine"), "the summary is sent");
    for turn in 2..5 {
        assert!(
            last.holds(&format!("prompt {turn}: ")),
            "turn {turn} is sent"
        );
    }
    assert!(!last.holds("prompt 1: "));
    let outputs = last
        .input()
        .iter()
        .filter(|item| item["type"] == "function_call_output");
    assert_eq!(outputs.count(), 3 * rollout.calls);
}

#[test]
fn the_newest_codex_resumes_a_generated_rollout() {
    codex_resumes_a_generated_rollout(clients::CODEX[0], true);
}

#[test]
fn the_oldest_codex_resumes_a_generated_rollout() {
    codex_resumes_a_generated_rollout(clients::CODEX[2], false);
}
