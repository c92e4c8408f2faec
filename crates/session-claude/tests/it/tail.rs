//! What a file's end says.

use std::path::PathBuf;
use std::time::Duration;

use ctxfold_session_claude::{Tail, fill, read_tail};
use ctxfold_transcript::Fill;

struct File {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

fn file(rows: &[&str]) -> File {
    named("session.jsonl", rows)
}

fn named(name: &str, rows: &[&str]) -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, rows.join("\n") + "\n").unwrap();
    File { _dir: dir, path }
}

fn tail(rows: &[&str]) -> Tail {
    read_tail(&file(rows).path).unwrap()
}

fn answer(context: u64, extra: &str) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"a","timestamp":"2026-12-01T00:00:01.000Z"{extra},"message":{{"id":"m","model":"claude-opus-5-5","content":[{{"type":"text","text":"\"usage\":{{\"input_tokens\":9}}"}}],"usage":{{"input_tokens":{context},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":50,"cache_creation":{{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":0}}}}}}}}"#
    )
}

const BOUNDARY: &str = r#"{"type":"system","subtype":"compact_boundary","uuid":"b","timestamp":"2026-12-01T00:00:02.000Z","compactMetadata":{"trigger":"manual","preTokens":900,"postTokens":120}}"#;
const USER: &str = r#"{"type":"user","uuid":"u","timestamp":"2026-12-01T00:00:03.000Z","cwd":"/home/dev/a","version":"2.1.332","message":{"role":"user","content":"go on"}}"#;
const SYNTHETIC: &str = r#"{"type":"assistant","uuid":"s","timestamp":"2026-12-01T00:00:09.000Z","message":{"model":"<synthetic>","usage":{"input_tokens":0}}}"#;

fn fresh(tokens: u64) -> Fill {
    Fill {
        tokens,
        window: None,
        stale: false,
    }
}

#[test]
fn the_newest_usage_that_is_not_zero_counts() {
    let t = tail(&[
        &answer(100, ""),
        &answer(200, ""),
        &answer(0, ""),
        SYNTHETIC,
        USER,
    ]);
    assert_eq!(t.fill, Some(fresh(200)));
    assert_eq!(t.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!(t.cache_ttl, Some(Duration::from_mins(5)));
    assert_eq!(t.active_ms, Some(1_796_083_203_000));
    assert_eq!(t.cwd.as_deref(), Some("/home/dev/a"));
    assert_eq!(t.last_prompt.as_deref(), Some("go on"));
    assert!(t.complete);
}

#[test]
fn the_hour_is_told_from_five_minutes() {
    let row = answer(10, "").replace(
        "\"ephemeral_1h_input_tokens\":0",
        "\"ephemeral_1h_input_tokens\":7",
    );
    assert_eq!(tail(&[&row]).cache_ttl, Some(Duration::from_hours(1)));
}

#[test]
fn usage_before_a_compaction_does_not_count() {
    let t = tail(&[&answer(900, ""), BOUNDARY, USER]);
    assert_eq!(
        t.fill,
        Some(Fill {
            tokens: 120,
            window: None,
            stale: true
        })
    );
    let t = tail(&[&answer(900, ""), BOUNDARY, USER, &answer(130, "")]);
    assert_eq!(t.fill, Some(fresh(130)));
}

/// The window depends on the model, and the model of a compacted conversation stands before it.
#[test]
fn the_model_is_found_behind_a_compaction() {
    let long = format!(
        "{{\"type\":\"system\",\"content\":\"{}\"}}",
        "x".repeat(300_000)
    );
    let rows = [&answer(900, ""), long.as_str(), BOUNDARY, USER];
    let t = tail(&rows);
    assert_eq!(t.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!(t.fill.map(|f| f.tokens), Some(120));
    assert_eq!((t.answered_ms, t.compacted_ms.is_some()), (None, true));
    // But not for any price.
    let far = [&answer(900, ""), &*long, &*long, &*long, &*long, BOUNDARY];
    let t = tail(&far);
    assert_eq!((t.model, t.complete), (None, true));
}

#[test]
fn sub_agents_do_not_count_except_in_their_own_file() {
    let side = answer(777, r#","isSidechain":true"#);
    assert_eq!(tail(&[&answer(100, ""), &side]).fill, Some(fresh(100)));
    let own = named("agent-a1.jsonl", &[&side]);
    assert_eq!(fill(&own.path), Some(fresh(777)));
}

#[test]
fn a_torn_end_is_passed_over() {
    let torn = &answer(200, "")[..120];
    assert_eq!(tail(&[&answer(100, ""), torn]).fill, Some(fresh(100)));
}

#[test]
fn nothing_is_nothing() {
    let t = tail(&[]);
    assert_eq!((t.fill, t.complete), (None, true));
    assert!(read_tail(std::path::Path::new("/nonexistent/x.jsonl")).is_err());
}

#[test]
fn x13_a_huge_line_is_survived() {
    let huge = format!(
        r#"{{"type":"user","uuid":"h","message":{{"content":"{}"}}}}"#,
        "x".repeat(12 << 20)
    );
    let t = tail(&[&answer(100, ""), &huge, USER]);
    assert_eq!(t.fill, Some(fresh(100)));
    // Past the bound nothing is known, and that is said.
    let huge = "x".repeat(40 << 20);
    let t = tail(&[&answer(100, ""), &huge, USER]);
    assert_eq!((t.fill, t.complete), (None, false));
    assert_eq!(t.active_ms, Some(1_796_083_203_000));
}
