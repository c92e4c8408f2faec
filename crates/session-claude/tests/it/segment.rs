//! Compactions that name what stays by its first and last row alone, as older clients write them.

use ctxfold_session_claude::{Options, Session};
use ctxfold_transcript::Message;
use serde_json::{Value, json};

fn said(kind: &str, uuid: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
        "timestamp": "2026-12-01T00:00:00.000Z", "sessionId": "s",
        "message": {"id": format!("m-{uuid}"), "role": kind, "content": [{"type": "text", "text": text}]}})
}

/// A session whose first answer is this long, compacted with the second turn staying.
fn compacted(first_answer: usize) -> Vec<String> {
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "b",
        "parentUuid": null, "logicalParentUuid": "a2", "isSidechain": false,
        "timestamp": "2026-12-01T00:00:01.000Z", "sessionId": "s",
        "compactMetadata": {"trigger": "manual", "preTokens": 900, "postTokens": 100,
            "preservedSegment": {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2"}}});
    let summary = json!({"type": "user", "uuid": "s1", "parentUuid": "b", "isSidechain": false,
        "timestamp": "2026-12-01T00:00:01.000Z", "sessionId": "s", "isCompactSummary": true,
        "message": {"role": "user", "content": "the summary"}});
    let rows = [
        said("user", "u1", None, "begin"),
        said("assistant", "a1", Some("u1"), &"x".repeat(first_answer)),
        said("user", "u2", Some("a1"), "go on"),
        said("assistant", "a2", Some("u2"), "gone on"),
        boundary,
        summary,
        said("user", "u3", Some("s1"), "and now"),
        said("assistant", "a3", Some("u3"), "done"),
    ];
    rows.iter().map(Value::to_string).collect()
}

/// The client skips what is before the last compaction in files of 5 MiB and more, but not what
/// that compaction preserves.
#[test]
fn the_named_segment_stays_in_small_and_in_large_files() {
    for first_answer in [100, 6 << 20] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        std::fs::write(&path, compacted(first_answer).join("\n") + "\n").unwrap();
        let session = Session::open(&path, &Options::default()).unwrap();
        let messages = session.transcript().messages.iter();
        let texts: Vec<String> = messages.map(Message::text).collect();
        assert_eq!(
            texts,
            ["the summary", "go on", "gone on", "and now", "done"],
            "{first_answer}"
        );
        let findings = session.findings();
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// Where the segment cannot be followed, the client drops it; so do we, and say so.
#[test]
fn a_segment_that_is_not_whole_is_given_up() {
    for first_answer in [100, 6 << 20] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session.jsonl");
        let mut rows = compacted(first_answer);
        rows.remove(2);
        std::fs::write(&path, rows.join("\n") + "\n").unwrap();
        let session = Session::open(&path, &Options::default()).unwrap();
        let messages = session.transcript().messages.iter();
        let texts: Vec<String> = messages.map(Message::text).collect();
        assert_eq!(texts, ["the summary", "and now", "done"], "{first_answer}");
    }
}
