//! What survives five rounds of compaction in the real client's request, by kind of fact and by
//! mode, with a model that answers nothing of worth. Prints the table; it can be read as a small
//! public benchmark: `cargo test -p ctxfold --test retention -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::process::{Command, Output};

use ctxfold_test_support::{
    ClaudeHome, GeminiTurn, MockAnthropic, MockGemini, Turn, require_client,
};
use serde_json::json;

const ROUNDS: usize = 5;
const FACTS_A_KIND: usize = 8;
const SESSION: &str = "6f1d2c3b-0000-4000-8000-0000000000aa";

/// A planted fact of each kind, by number.
fn facts(n: usize) -> [(&'static str, String); 5] {
    [
        (
            "user message",
            format!("please look into matter {n} of the build"),
        ),
        (
            "prohibition",
            format!("never touch the table customers_{n}"),
        ),
        ("changed path", format!("src/module_{n}/changed_{n}.rs")),
        ("open task", format!("write the test for case {n}")),
        ("failed command", format!("cat /nowhere/target-{n}")),
    ]
}

/// Whether the client has a tool for tasks in a run without a terminal.
fn has_tasks(client: &ctxfold_test_support::Client) -> bool {
    client.version() == "2.1.197"
}

/// A summary that has every heading and says nothing.
fn empty_summary() -> String {
    let section = |title: &&str| {
        format!("## {title}\nNothing worth a word happened here, as far as can be told.\n")
    };
    ctxfold_compactor::SECTIONS.iter().map(section).collect()
}

/// The answer to a prune request: every call that is asked about is dropped.
fn drop_all(request: &str) -> String {
    let line = request
        .lines()
        .find_map(|l| l.split_once("each once: "))
        .map_or("", |(_, ids)| ids);
    let decisions: Vec<_> = line
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|id| id.starts_with('c') && id[1..].parse::<u32>().is_ok())
        .map(|id| json!({"id": id, "action": "drop"}))
        .collect();
    json!({ "decisions": decisions }).to_string()
}

fn ctxfold(home: &ClaudeHome, gemini: &MockGemini, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctxfold"));
    command
        .env_clear()
        .env("HOME", home.home())
        .env("CLAUDE_CONFIG_DIR", home.config())
        .env(
            "CTXFOLD_GEMINI_API_KEY",
            "AIza-planted-key-000000000000000000000",
        )
        .env("CTXFOLD_GEMINI_BASE_URL", gemini.url())
        .current_dir(home.project())
        .args(arguments);
    command.output().unwrap()
}

/// What one mode keeps: found facts by kind, and bytes of the last request's messages.
fn five_rounds(
    client: &ctxfold_test_support::Client,
    mode: &str,
) -> (BTreeMap<&'static str, usize>, u64) {
    let mock = MockAnthropic::start();
    let gemini = MockGemini::start();
    let home = ClaudeHome::new(client, &mock);
    let noise = "for i in $(seq 1 400); do echo line $i of the noise; done";
    for n in 0..FACTS_A_KIND {
        let [_, _, path, task, command] = facts(n).map(|(_, fact)| fact);
        let file = home.project().join(&path);
        let mut turns = vec![
            Turn::tool(
                "Write",
                json!({"file_path": file, "content": "fn f() {}\n".repeat(40)}),
            ),
            Turn::tool("TaskCreate", json!({"subject": task, "description": "d"})),
            Turn::tool("Bash", json!({"command": command, "description": "look"})),
            Turn::tool("Bash", json!({"command": noise, "description": "noise"})),
            Turn::text(format!("matter {n} was looked into")),
        ];
        if !has_tasks(client) {
            turns.remove(1);
        }
        mock.on(&format!("matter {n} "), turns);
    }
    let mut begun = false;
    for round in 0..ROUNDS {
        for n in (0..FACTS_A_KIND).filter(|n| n % ROUNDS == round) {
            let [message, prohibition, ..] = facts(n).map(|(_, fact)| fact);
            say(
                &home,
                &mut begun,
                &format!("{message} now.\n{prohibition}."),
            );
        }
        for n in 0..2 {
            say(&home, &mut begun, &format!("talk {round}-{n}"));
        }
        let mode = match (mode, round % 3) {
            ("mixed", 0) => "prune",
            ("mixed", 1) => "summary",
            ("mixed", _) => "mask",
            (mode, _) => mode,
        };
        if mode == "summary" {
            gemini.next(GeminiTurn::text(&empty_summary()));
        } else if mode == "prune" {
            // Asked first without sending, so that the mock can answer the very same ids.
            let dry = ctxfold(
                &home,
                &gemini,
                &[
                    "compact",
                    SESSION,
                    "--mode",
                    "prune",
                    "--dry-run",
                    "--json",
                    "--keep",
                    "2",
                ],
            );
            let dry: serde_json::Value = serde_json::from_slice(&dry.stdout).unwrap_or_default();
            for request in dry["requests"].as_array().into_iter().flatten() {
                gemini.next(GeminiTurn::text(&drop_all(
                    request["text"].as_str().unwrap_or_default(),
                )));
            }
        }
        let done = ctxfold(
            &home,
            &gemini,
            &["compact", SESSION, "--mode", mode, "--keep", "2"],
        );
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{mode}, round {round}: {said}");
        assert!(
            !said.contains("masked instead"),
            "{mode}, round {round}: {said}"
        );
    }
    mock.log().take();
    say(&home, &mut begun, "what is left?");
    let last = mock.log().last();
    let mut kept = BTreeMap::new();
    for (kind, fact) in (0..FACTS_A_KIND).flat_map(facts) {
        if kind == "open task" && !has_tasks(client) {
            continue;
        }
        *kept.entry(kind).or_default() += usize::from(in_messages(&last, &fact));
    }
    assert_session_is_whole(&home, &gemini);
    (
        kept,
        serde_json::to_string(last.messages()).unwrap().len() as u64,
    )
}

fn in_messages(request: &ctxfold_test_support::Recorded, fact: &str) -> bool {
    request
        .messages()
        .iter()
        .any(|m| m.to_string().contains(fact))
}

fn say(home: &ClaudeHome, begun: &mut bool, text: &str) {
    let prompt = home.prompt(text);
    let prompt = if *begun {
        prompt.resume(SESSION)
    } else {
        prompt.arg("--session-id").arg(SESSION)
    };
    prompt.run().success();
    *begun = true;
}

/// The file itself is sound after all rounds.
fn assert_session_is_whole(home: &ClaudeHome, gemini: &MockGemini) {
    let checked = ctxfold(home, gemini, &["check", SESSION]);
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
}

#[test]
fn every_fact_is_in_the_request_after_five_rounds_of_every_mode() {
    println!(
        "{:<8} {:<8} {:>12} {:>12} {:>12} {:>12} {:>14} {:>10}",
        "mode", "client", "messages", "prohibitions", "paths", "tasks", "failed", "bytes"
    );
    for (mode, version) in [
        ("mask", "2.1.332"),
        ("prune", "2.1.197"),
        ("summary", "2.1.332"),
        ("mixed", "2.1.197"),
    ] {
        let client = require_client!(claude, version);
        let (kept, bytes) = five_rounds(&client, mode);
        let of = |kind: &str| match kept.get(kind) {
            Some(count) => format!("{count}/{FACTS_A_KIND}"),
            None => "-".to_owned(),
        };
        println!(
            "{mode:<8} {version:<8} {:>12} {:>12} {:>12} {:>12} {:>14} {bytes:>10}",
            of("user message"),
            of("prohibition"),
            of("changed path"),
            of("open task"),
            of("failed command"),
        );
        for (kind, count) in &kept {
            assert_eq!(*count, FACTS_A_KIND, "{mode} lost a {kind}");
        }
        assert_eq!(kept.len(), if has_tasks(&client) { 5 } else { 4 });
    }
}
