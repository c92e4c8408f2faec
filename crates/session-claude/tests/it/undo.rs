//! When a compaction cannot be taken back.

use std::path::PathBuf;

use ctxfold_session_claude::{ErrorKind, Options, Session, Stamp};
use serde_json::{Value, json};

fn row(kind: &str, uuid: &str, parent: Option<&str>, more: &Value) -> Value {
    let mut row = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
        "timestamp": "2026-12-01T00:00:00.000Z", "sessionId": "s"});
    row.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    row
}

fn said(kind: &str, uuid: &str, parent: Option<&str>, text: &str) -> Value {
    let id = format!("m-{uuid}");
    let message = json!({"id": id, "role": kind, "content": [{"type": "text", "text": text}]});
    row(kind, uuid, parent, &json!({"message": message}))
}

/// Two turns, the client's own compaction that keeps the newest row, and an answer.
fn compacted_by_the_client() -> Vec<Value> {
    vec![
        said("user", "u1", None, "begin"),
        said("assistant", "a1", Some("u1"), "begun"),
        said("user", "u2", Some("a1"), "go on"),
        row(
            "system",
            "b",
            None,
            &json!({"subtype": "compact_boundary", "logicalParentUuid": "u2", "compactMetadata":
                {"trigger": "auto", "preTokens": 900, "postTokens": 100,
                 "preservedSegment": {"headUuid": "u2", "anchorUuid": "s", "tailUuid": "u2"},
                 "preservedMessages": {"anchorUuid": "s", "uuids": ["u2"]}}}),
        ),
        row(
            "user",
            "s",
            Some("b"),
            &json!({"isCompactSummary": true, "message": {"role": "user", "content": "the summary"}}),
        ),
        said("assistant", "a2", Some("s"), "gone on"),
    ]
}

fn undone(rows: &[Value]) -> Result<Vec<String>, ErrorKind> {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("session.jsonl");
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let before = std::fs::read(&path).unwrap();
    let session = Session::open(&path, &Options::default()).unwrap();
    let seed = std::cell::Cell::new(7_u128);
    let stamp = Stamp::new(1_796_100_000_000, move || {
        seed.set(
            seed.get()
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(99),
        );
        seed.get()
    });
    let append = session.prepare_undo(&stamp);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let append = append.map_err(|e| e.kind())?;
    let out = dir.path().join("undone.jsonl");
    append.write_copy(&out).unwrap();
    let session = Session::open(&out, &Options::default()).unwrap();
    let messages = session.transcript().messages.iter();
    Ok(messages.map(ctxfold_transcript::Message::text).collect())
}

#[test]
fn the_clients_own_compaction_is_taken_back_where_all_rows_are_there() {
    let texts = undone(&compacted_by_the_client()).unwrap();
    assert_eq!(texts, ["begin", "begun", "go on", "gone on"]);
}

/// As where the file was cut at the front, or taken over from elsewhere: the summary is all that
/// tells of the rows before.
#[test]
fn the_clients_summary_is_kept_where_rows_before_it_are_gone() {
    for gone in [0, 1] {
        let mut rows = compacted_by_the_client();
        rows.drain(..=gone);
        assert_eq!(undone(&rows), Err(ErrorKind::BrokenPairs), "{gone}");
    }
    let mut rows = compacted_by_the_client();
    rows.remove(1);
    assert_eq!(undone(&rows), Err(ErrorKind::BrokenPairs));
}
