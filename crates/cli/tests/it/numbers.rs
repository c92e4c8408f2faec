//! Numbers that no client writes: sums over them must neither stop a command nor wrap.

use std::fs;

use regex::Regex;
use serde_json::json;

use crate::lab::{Lab, SESSION};

const MOST: u64 = u64::MAX;

/// A home whose session counts nothing but the largest number.
fn lab() -> Lab {
    let lab = Lab::new();
    let text = String::from_utf8(lab.bytes()).unwrap();
    let count = Regex::new(r#""(\w*_tokens|preTokens|postTokens)":\d+"#).unwrap();
    assert!(count.find_iter(&text).count() > 4, "usage was found");
    let huge = count.replace_all(&text, format!(r#""$1":{MOST}"#));
    lab.write(huge.as_bytes());
    lab
}

#[test]
fn absurd_counts_of_tokens_stop_no_command() {
    let lab = lab();
    let file = lab.file();
    let file = file.to_str().unwrap();
    let picture = lab.ctxfold(&["inspect", "--json", file]).json();
    assert_eq!(picture["fill_tokens"], json!(1_000_000_000));
    for words in [
        &["check", file][..],
        &["inspect", file],
        &["inspect", "--all", file],
        &["compact", "--dry-run", file],
        &["compact", "--to", "40%", "--dry-run", file],
        &["compact", file],
        &["inspect", file],
        &["list", "--all"],
        &["list", "--all", "--idle", "1s"],
        &["idle", "run", "--dry-run"],
        &["undo", file],
        &["stats"],
    ] {
        let ran = lab.ctxfold(words);
        assert!([0, 1, 3].contains(&ran.code), "{words:?}: {ran:?}");
        assert!(!ran.stderr.contains("bug"), "{words:?}: {ran:?}");
    }
    let listed = lab.ctxfold(&["list", "--all"]).done().stdout;
    assert!(listed.contains(">999%"), "{listed}");
}

#[test]
fn absurd_counts_of_codex_stop_no_command() {
    let lab = Lab::empty();
    let folder = lab.home().join(".codex/sessions/2026/12/01");
    fs::create_dir_all(&folder).unwrap();
    let id = "01a22eb2-072d-76f3-a271-8cf7acd69144";
    let file = folder.join(format!("rollout-2026-12-01T00-00-00-{id}.jsonl"));
    let row = |kind: &str, payload: serde_json::Value| json!({"timestamp": "2026-12-01T00:00:00.000Z", "ordinal": MOST, "type": kind, "payload": payload});
    let said = |role: &str, kind: &str| {
        row(
            "response_item",
            json!({"type": "message", "role": role,
            "content": [{"type": kind, "text": "list it ".repeat(200)}]}),
        )
    };
    let used = json!({"input_tokens": MOST, "output_tokens": MOST, "total_tokens": MOST});
    let rows = [
        row(
            "session_meta",
            json!({"id": id, "cwd": "/home/dev", "cli_version": "0.171.0",
            "history_mode": "paginated"}),
        ),
        row(
            "event_msg",
            json!({"type": "task_started", "turn_id": "t", "model_context_window": 0}),
        ),
        said("user", "input_text"),
        said("assistant", "output_text"),
        row(
            "event_msg",
            json!({"type": "token_count", "info": {"total_token_usage": used,
            "last_token_usage": used, "model_context_window": 0}}),
        ),
    ];
    let lines: Vec<String> = rows.iter().map(ToString::to_string).collect();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let file = file.to_str().unwrap();
    for words in [
        &["check", file][..],
        &["inspect", file],
        &["inspect", "--all", file],
        &["compact", "--dry-run", file],
        &["compact", "--to", "40%", file],
        &["undo", file],
        &["list", "--all"],
    ] {
        let ran = lab.ctxfold(words);
        assert!([0, 1, 3].contains(&ran.code), "{words:?}: {ran:?}");
        assert!(!ran.stderr.contains("bug"), "{words:?}: {ran:?}");
    }
    let picture = lab.ctxfold(&["inspect", "--json", file]).json();
    assert_eq!(picture["fill_tokens"], json!(1_000_000_000));
    assert_eq!(picture["window_tokens"], json!(null));
}

#[test]
fn absurd_numbers_in_the_journal_do_not_stop_the_totals() {
    let lab = lab();
    fs::create_dir_all(lab.state()).unwrap();
    let size = json!({"messages": 1, "bytes": MOST, "tokens": MOST});
    let none = json!({"messages": 1, "bytes": 0, "tokens": 0});
    let mut text = String::new();
    for id in ["a", "b"] {
        let begin = json!({"v": 1, "at_ms": i64::MIN, "kind": "begin", "id": id, "agent": "claude",
            "session": SESSION, "path": lab.file(), "mode": "mask", "len_before": MOST,
            "bytes": MOST, "sha256": ""});
        let done = json!({"v": 1, "at_ms": i64::MAX, "kind": "done", "id": id, "len_after": MOST,
            "sha256": "", "before": size, "after": none, "model_in": MOST, "model_out": MOST});
        text.push_str(&format!("{begin}\n{done}\n"));
    }
    fs::write(lab.state().join("journal.jsonl"), text).unwrap();
    let totals = lab.ctxfold(&["stats", "--json"]).json();
    assert_eq!(totals["modes"]["mask"]["tokens_saved"], json!(MOST));
    assert_eq!(totals["modes"]["mask"]["compactions"], json!(2));
    lab.ctxfold(&["stats"]).done();
    lab.ctxfold(&["doctor"]);
}
