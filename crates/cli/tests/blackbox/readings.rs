//! Where readings come from, what the rules are, and what is left behind: hook, status line and
//! `monitor` over files as the clients write them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::call::{Lab, PROGRAM, now};

/// Two hours ago is enough for no clock to matter.
fn stamp(ago: u64) -> String {
    let since = i64::try_from(now() - ago).unwrap();
    jiff::Timestamp::from_second(since).unwrap().to_string()
}

/// A row of Claude Code's for an answer that sent so many tokens.
pub(crate) fn answer(tokens: u64, ago: u64) -> Value {
    json!({ "type": "assistant", "uuid": format!("u{tokens}"), "sessionId": "s",
        "timestamp": stamp(ago), "cwd": "/home/dev/proj",
        "message": { "id": "m", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
            "content": [{ "type": "text", "text": "done" }],
            "usage": { "input_tokens": 0, "cache_read_input_tokens": tokens,
                "cache_creation_input_tokens": 0, "output_tokens": 0,
                "cache_creation": { "ephemeral_5m_input_tokens": 9 } } } })
}

fn boundary(tokens: u64) -> Value {
    json!({ "type": "system", "subtype": "compact_boundary", "uuid": "b", "sessionId": "s",
        "timestamp": stamp(5),
        "compactMetadata": { "trigger": "manual", "preTokens": 9, "postTokens": tokens } })
}

fn write(path: &Path, rows: &[Value]) {
    let lines: Vec<_> = rows.iter().map(ToString::to_string).collect();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// A session `s` of Claude Code, where the client would keep it.
pub(crate) fn session(lab: &Lab, rows: &[Value]) -> std::path::PathBuf {
    let path = lab.path("home/.claude/projects/-home-dev-proj/s.jsonl");
    write(&path, rows);
    path
}

fn tool(lab: &Lab, transcript: &Path) -> String {
    lab.hook(
        "PostToolUse",
        &json!({ "tool_name": "Bash", "transcript_path": transcript }),
    )
}

fn config(lab: &Lab, text: &str) {
    let folder = lab.path("home/.config/ctxfold");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

fn journal(lab: &Lab) -> Vec<Value> {
    let path = lab.path("home/.local/state/ctxfold/journal.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn status(lab: &Lab, session: &str) -> Value {
    let text = lab.run(&["monitor", "status", "--json", session], &[], "");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_sessions_own_file_comes_before_the_bridge() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(20_000, 40), answer(116_900, 20)]);
    lab.bridge(90.0);
    let text = tool(&lab, &path);
    assert!(
        text.contains("70% used, 30% remaining (117k of 167k usable tokens)"),
        "{text}"
    );
    let status = status(&lab, "s");
    assert_eq!(
        (&status["source"], &status["limit_tokens"]),
        (&json!("transcript"), &json!(167_000))
    );
    assert_eq!(
        status["says"],
        "a warning was given; it comes again after 4 more tool calls"
    );
}

/// A bridge of tokens that was written so long ago.
fn bridge(lab: &Lab, used: u64, limit: u64, ago: u64) {
    let bridge = json!({ "session_id": "s", "remaining_percentage": 90, "used_pct": 10,
        "timestamp": now() - ago, "used_tokens": used, "threshold_tokens": limit });
    std::fs::write(lab.state(".json"), bridge.to_string()).unwrap();
}

#[test]
fn the_limit_that_a_statusline_told_is_better_than_a_guess() {
    // It was drawn since the answer, or less than a minute before, however long ago that is.
    for (answered, drawn) in [(20, 5), (20, 75), (9000, 9000), (9000, 9055), (9000, 5)] {
        let lab = Lab::new();
        let path = session(&lab, &[answer(116_900, answered)]);
        bridge(&lab, 1, 967_000, drawn);
        assert_eq!(tool(&lab, &path), "", "{answered} {drawn}");
        assert_eq!(status(&lab, "s")["limit_tokens"], 967_000);
    }
}

#[test]
fn the_limit_that_a_statusline_told_long_before_the_answer_is_not_believed() {
    const DAYS: u64 = 3 * 86_400;
    for (limit, drawn) in [(967_000, DAYS), (967_000, 90), (0, 5), (0, DAYS)] {
        let lab = Lab::new();
        let path = session(&lab, &[answer(150_300, 20)]);
        bridge(&lab, 1, limit, drawn);
        let text = tool(&lab, &path);
        assert!(
            text.contains("CONTEXT CRITICAL") && text.contains("(150k of 167k usable tokens)"),
            "{limit} {drawn}: {text}"
        );
    }
    // Milliseconds are no time.
    let lab = Lab::new();
    let path = session(&lab, &[answer(150_300, 20)]);
    let late = json!({ "remaining_percentage": 90, "timestamp": now() * 1000, "used_tokens": 1,
        "threshold_tokens": 967_000 });
    std::fs::write(lab.state(".json"), late.to_string()).unwrap();
    assert!(tool(&lab, &path).contains("CONTEXT CRITICAL"));
}

#[test]
fn a_limit_of_nothing_is_no_limit() {
    let lab = Lab::new();
    bridge(&lab, 2000, 0, 5);
    assert_eq!(lab.tool(), "", "the percentages still hold");
    let low = json!({ "remaining_percentage": 20, "used_pct": 80, "timestamp": now(),
        "used_tokens": 2000, "threshold_tokens": 0 });
    std::fs::write(lab.state(".json"), low.to_string()).unwrap();
    let text = lab.tool();
    assert!(
        text.contains("80% used") && !text.contains("tokens"),
        "{text}"
    );
    let path = session(&lab, &[answer(2000, 20)]);
    std::fs::remove_file(lab.state("-warned.json")).unwrap();
    assert_eq!(tool(&lab, &path), "");
}

#[test]
fn a_file_that_was_compacted_since_gives_no_reading_and_neither_does_the_bridge() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(160_000, 20), boundary(150_000)]);
    lab.bridge(10.0);
    assert_eq!(tool(&lab, &path), "");
    let text = lab.run(&["monitor", "status", "s"], &[], "");
    assert!(
        text.contains("no answer has come since the compaction"),
        "{text}"
    );
    write(
        &path,
        &[answer(160_000, 20), boundary(150_000), answer(110_000, 3)],
    );
    assert!(tool(&lab, &path).contains("66% used"));
}

#[test]
fn a_model_of_unknown_window_leaves_the_bridge_or_the_users_word() {
    let lab = Lab::new();
    let mut row = answer(116_900, 20);
    row["message"]["model"] = json!("house-model");
    let path = session(&lab, &[row]);
    assert_eq!(tool(&lab, &path), "");
    let text = lab.run(&["monitor", "status", "s"], &[], "");
    assert!(text.contains("config set window"), "{text}");
    lab.bridge(34.0);
    assert!(tool(&lab, &path).contains("66% used"));
    config(&lab, "window = \"200k\"\n");
    assert!(status(&lab, "s")["used_percent"] == 70.0);
}

#[test]
fn the_clients_settings_and_variables_move_the_scale() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(116_900, 20)]);
    let used = |env: &[(&str, &Path)]| {
        let text = lab.run(
            &["monitor", "status", "--json", path.to_str().unwrap()],
            env,
            "",
        );
        serde_json::from_str::<Value>(&text).unwrap()["limit_tokens"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(used(&[]), 167_000);
    assert_eq!(
        used(&[("CLAUDE_CODE_AUTO_COMPACT_WINDOW", Path::new("150000"))]),
        117_000
    );
    assert_eq!(used(&[("DISABLE_AUTO_COMPACT", Path::new("1"))]), 200_000);
    std::fs::write(
        lab.path("home/.claude/settings.json"),
        r#"{"autoCompactEnabled":false}"#,
    )
    .unwrap();
    assert_eq!(used(&[]), 200_000);
}

fn count(tokens: u64) -> Value {
    json!({ "timestamp": stamp(9), "type": "event_msg", "payload": { "type": "token_count",
        "info": { "last_token_usage": { "input_tokens": tokens, "cached_input_tokens": 0,
            "output_tokens": 0, "reasoning_output_tokens": 0, "total_tokens": tokens },
            "total_token_usage": { "total_tokens": tokens }, "model_context_window": 258_400 } } })
}

#[test]
fn codex_is_known_by_its_rollout_and_its_count_may_come_ahead_of_the_file() {
    let lab = Lab::new();
    let path = lab.path("home/.codex/sessions/2026/12/01/rollout-2026-12-01T00-00-00-s.jsonl");
    write(&path, &[count(100_000)]);
    assert_eq!(tool(&lab, &path), "");
    let told = json!({ "kind": "sampling", "transcript_path": path,
        "token_usage": { "input_tokens": 1, "total_tokens": 171_000 } });
    assert_eq!(lab.hook("PostModelRequest", &told), "");
    let text = tool(&lab, &path);
    assert!(
        text.contains("66% used, 34% remaining (171k of 258k usable tokens)"),
        "{text}"
    );
    // Its schemas are closed: not a key more.
    let reply: Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<_> = reply["hookSpecificOutput"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(keys, ["hookEventName", "additionalContext"]);
    // A compaction's own request is no turn, and the compaction drops what was told.
    let own = json!({ "kind": "foreground_compaction", "transcript_path": path,
        "token_usage": { "total_tokens": 250_000 } });
    lab.hook("PostModelRequest", &own);
    lab.hook(
        "PreCompact",
        &json!({ "trigger": "auto", "transcript_path": path }),
    );
    let compacted = json!({ "type": "compacted", "payload": { "message": "" } });
    write(&path, &[count(171_000), compacted]);
    assert_eq!(tool(&lab, &path), "");
}

#[test]
fn what_codex_was_told_before_its_files_count_is_not_believed() {
    let lab = Lab::new();
    let path = lab.path("home/.codex/sessions/2026/12/01/rollout-2026-12-01T00-00-00-s.jsonl");
    write(&path, &[count(20_000)]);
    for ago in [3 * 86_400, 30] {
        bridge(&lab, 240_000, 258_400, ago);
        assert_eq!(tool(&lab, &path), "", "{ago}");
    }
    // A newer count is believed also where it is the smaller one.
    write(&path, &[count(240_000)]);
    bridge(&lab, 20_000, 258_400, 5);
    assert_eq!(tool(&lab, &path), "");
    bridge(&lab, 240_000, 258_400, 5);
    assert!(tool(&lab, &path).contains("CONTEXT CRITICAL"));
    // A window of nothing is none, in the file as well.
    let mut empty = count(240_000);
    empty["payload"]["info"]["model_context_window"] = json!(0);
    write(&path, &[empty]);
    std::fs::remove_file(lab.state(".json")).unwrap();
    let _ = std::fs::remove_file(lab.state("-warned.json"));
    assert_eq!(tool(&lab, &path), "");
}

#[test]
fn gemini_cli_is_read_from_its_chat() {
    let lab = Lab::new();
    let path = lab.path("home/.gemini/tmp/proj/chats/session-2026-12-01T00-00-s.jsonl");
    let row =
        json!({ "type": "gemini", "content": "", "tokens": { "input": 9, "total": 367_001 } });
    write(&path, &[row, json!({ "$set": { "lastUpdated": "2026" } })]);
    let text = lab.hook(
        "AfterTool",
        &json!({ "tool_name": "read_file", "transcript_path": path }),
    );
    assert!(
        text.contains("70% used, 30% remaining (367k of 524k usable tokens)"),
        "{text}"
    );
    assert!(
        text.contains("/compress") && !text.contains("ctxfold"),
        "{text}"
    );
    // It compresses before every request, if need be: that is no compaction.
    lab.hook(
        "PreCompress",
        &json!({ "trigger": "auto", "transcript_path": path }),
    );
    assert!(lab.state("-warned.json").exists());
}

#[test]
fn the_users_thresholds_hold_and_a_projects_come_before_them() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(83_500, 20)]);
    assert_eq!(tool(&lab, &path), "");
    config(&lab, "[monitor]\nwarning = 60\ncritical = 50\n");
    assert!(tool(&lab, &path).contains("CONTEXT CRITICAL"));
    std::fs::write(
        lab.path("proj/.planning/config.json"),
        r#"{"hooks":{"context_critical_threshold":10}}"#,
    )
    .unwrap();
    std::fs::remove_file(lab.state("-warned.json")).unwrap();
    assert!(tool(&lab, &path).contains("CONTEXT WARNING"));
    for off in ["[monitor]\nenabled = false\n", "[monitor]\nwarning = 0\n"] {
        config(&lab, off);
        std::fs::remove_file(lab.path("proj/.planning/config.json")).unwrap_or_default();
        let _ = std::fs::remove_file(lab.state("-warned.json"));
        assert_eq!(tool(&lab, &path), "", "{off}");
    }
    // What contradicts itself or cannot be read leaves the defaults, and `doctor` says so.
    write(&path, &[answer(116_900, 20)]);
    config(&lab, "[monitor]\nwarning = 20\ncritical = 30\n");
    assert!(tool(&lab, &path).contains("CONTEXT WARNING"));
    let says = lab.run(&["monitor", "status", path.to_str().unwrap()], &[], "");
    assert!(
        says.contains("not below") && says.contains("the defaults hold"),
        "{says}"
    );
    config(&lab, "[monitor\nwarning = 20\n");
    std::fs::remove_file(lab.state("-warned.json")).unwrap();
    assert!(tool(&lab, &path).contains("CONTEXT WARNING"));
}

#[test]
fn a_nearly_full_context_leaves_one_note_a_cycle() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(150_300, 20)]);
    for _ in 0..7 {
        tool(&lab, &path);
    }
    let notes = journal(&lab);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0]["kind"], "critical");
    assert_eq!(
        (&notes[0]["session"], &notes[0]["used_percent"]),
        (&json!("s"), &json!(90.0))
    );
    // No document of the project was touched.
    assert_eq!(
        std::fs::read_dir(lab.path("proj/.planning"))
            .unwrap()
            .count(),
        0
    );
    lab.hook(
        "PreCompact",
        &json!({ "trigger": "auto", "transcript_path": path }),
    );
    std::fs::remove_file(lab.state("-compacted.json")).unwrap();
    tool(&lab, &path);
    assert_eq!(journal(&lab).len(), 2);
    let text = lab.run(&["monitor", "status", "s"], &[], "");
    assert_eq!(text.matches("90% used, ").count(), 2, "{text}");
}

#[test]
fn a_journal_that_cannot_be_written_costs_only_the_note() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(150_300, 20)]);
    std::fs::create_dir_all(lab.path("home/.local/state/ctxfold/journal.jsonl")).unwrap();
    assert!(tool(&lab, &path).contains("CONTEXT CRITICAL"));
}

#[test]
fn reset_forgets_and_status_says_why_nothing_is_said() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(116_900, 20)]);
    assert!(tool(&lab, &path).contains("CONTEXT WARNING"));
    assert_eq!(tool(&lab, &path), "");
    let output = Command::new(PROGRAM)
        .args(["monitor", "reset", "s"])
        .env_clear()
        .env("HOME", lab.path("home"))
        .env("TMPDIR", lab.path("tmp"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "forgot what was known of s\n"
    );
    let left = std::fs::read_dir(lab.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "its lock is gone too");
    assert_eq!(
        status(&lab, "s")["says"],
        "the next tool call brings a warning"
    );
    assert!(tool(&lab, &path).contains("CONTEXT WARNING"));
    write(&path, &[]);
    assert!(
        status(&lab, "s")["says"]
            .as_str()
            .unwrap()
            .contains("holds no usage yet")
    );
}

#[test]
fn no_argument_is_an_error_and_help_is_still_help() {
    let lab = Lab::new();
    lab.bridge(30.0);
    let input = |event: &str| json!({ "session_id": "s", "hook_event_name": event }).to_string();
    let odd = [
        "hook",
        "PostToolUse",
        "--bogus",
        "-x",
        "--host=nobody",
        "--",
        "more",
    ];
    assert!(
        lab.run(&odd, &[], &input("PostToolUse"))
            .contains("CONTEXT WARNING")
    );
    assert_eq!(lab.run(&["hook", "--host"], &[], "no JSON"), "");
    assert_eq!(lab.run(&["statusline", "--bogus"], &[], "no JSON"), "");
    assert!(lab.run(&["hook", "--help"], &[], "").contains("--host"));
    let help = lab.run(&["--help"], &[], "");
    for command in ["hook", "statusline", "monitor"] {
        assert!(help.contains(command), "{help}");
    }
    // A host that names no event can say it in the command.
    std::fs::remove_file(lab.state("-warned.json")).unwrap();
    let nameless = lab.run(&["hook", "PostToolUse"], &[], r#"{"session_id":"s"}"#);
    assert!(nameless.contains("CONTEXT WARNING"));
}

#[test]
fn a_host_that_wants_no_answer_gets_none() {
    let lab = Lab::new();
    lab.bridge(30.0);
    for command in ["hook", "statusline"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut child = Command::new(PROGRAM)
            .arg(command)
            .env_clear()
            .env("TMPDIR", lab.path("tmp"))
            .stdin(Stdio::piped())
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = json!({ "session_id": "s", "hook_event_name": "PostToolUse" }).to_string();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
}

// ---- the status line

fn payload(lab: &Lab, transcript: &Path) -> Value {
    json!({ "session_id": "s", "transcript_path": transcript,
        "model": { "display_name": "Sonnet 4.5", "id": "claude-sonnet-4-5" },
        "workspace": { "current_dir": lab.path("proj") } })
}

#[test]
fn the_line_is_full_without_the_clients_numbers() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(83_500, 30)]);
    let line = lab.run(&["statusline"], &[], &payload(&lab, &path).to_string());
    let plain = line.replace("\x1b[", "");
    assert!(
        plain.contains("50% (84k/167k)") && plain.contains("cache warm 4m"),
        "{line}"
    );
    write(&path, &[answer(83_500, 301)]);
    let line = lab.run(&["statusline"], &[], &payload(&lab, &path).to_string());
    assert!(line.contains("cache cold"), "{line}");
}

#[test]
fn the_line_fits_into_the_clients_terminal() {
    let lab = Lab::new();
    let path = session(&lab, &[answer(83_500, 30)]);
    let env = [("NO_COLOR", Path::new("1")), ("COLUMNS", Path::new("50"))];
    let line = lab.run(&["statusline"], &env, &payload(&lab, &path).to_string());
    assert!(line.chars().count() <= 46 && line.contains("50%"), "{line}");
}

#[test]
fn a_line_of_the_users_own_comes_first_and_gets_the_same_input() {
    let lab = Lab::new();
    let input = payload(&lab, &lab.path("none")).to_string();
    let then = |command: &str| lab.run(&["statusline", "--then", command], &[], &input);
    let line = then("cat | wc -c; echo two");
    let lines: Vec<_> = line.lines().collect();
    assert_eq!(lines.len(), 3, "{line}");
    assert_eq!(
        (lines[0].trim(), lines[1]),
        (input.len().to_string().as_str(), "two")
    );
    assert!(lines[2].contains("Sonnet 4.5"));
    for silent in ["true", "false", "no-such-program", "exec 1>&-; echo x"] {
        let line = then(silent);
        assert!(
            line.lines().count() == 1 && line.contains("Sonnet 4.5"),
            "{silent}: {line}"
        );
    }
    let started = Instant::now();
    let line = then("sleep 60");
    assert!(started.elapsed() < Duration::from_secs(5) && line.contains("Sonnet 4.5"));
    // What was printed before its time was up is kept.
    let line = then("echo one; sleep 60");
    assert!(
        line.starts_with("one\n") && line.contains("Sonnet 4.5"),
        "{line}"
    );
    // What it leaves behind goes on, and nobody waits for it.
    let mark = lab.path("mark");
    let line = then(&format!(
        "(sleep 2; echo x > {}) & echo one",
        mark.display()
    ));
    assert!(
        line.starts_with("one\n") && line.contains("Sonnet 4.5"),
        "{line}"
    );
    let is_there = || mark.exists().then_some(());
    assert!(ctxfold_test_support::poll(Duration::from_secs(20), is_there).is_some());
    // What it prints is taken up to a limit; it may go on for ever.
    let line = then("yes");
    assert!(line.len() < 80 << 10 && line.contains("Sonnet 4.5"));
}
