//! Repairs: damaged conversations, made by hand here, and what is read of them afterwards.

use std::path::{Path, PathBuf};

use ctxfold_session_claude::{
    Code, CommitOptions, ErrorKind, Options, Session, Stamp, check, explain,
};

const SESSION: &str = "3f2a91c0-0000-4000-8000-000000000001";

fn row(uuid: &str, parent: Option<&str>, second: u32, kind: &str, message: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |p| format!("\"{p}\""));
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","uuid":"{uuid}","timestamp":"2026-12-01T00:00:{second:02}.000Z","sessionId":"{SESSION}","message":{message}}}"#
    )
}

fn user(uuid: &str, parent: Option<&str>, second: u32, text: &str) -> String {
    row(
        uuid,
        parent,
        second,
        "user",
        &format!(r#"{{"role":"user","content":"{text}"}}"#),
    )
}

fn answer(uuid: &str, parent: &str, second: u32, text: &str) -> String {
    let message = format!(
        r#"{{"id":"msg_{uuid}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}"#
    );
    row(uuid, Some(parent), second, "assistant", &message)
}

fn result(uuid: &str, parent: &str, second: u32, call: &str) -> String {
    let message = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"lost"}}]}}"#
    );
    row(uuid, Some(parent), second, "user", &message)
}

fn file(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join(format!("{SESSION}.jsonl"));
    std::fs::write(&path, text).unwrap();
    path
}

fn stamp() -> Stamp {
    let next = std::cell::Cell::new(1_u128);
    Stamp::new(1_796_100_000_000, move || {
        next.set(
            next.get()
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(1),
        );
        next.get()
    })
}

fn texts(path: &Path) -> Vec<String> {
    let session = Session::open(path, &Options::default()).unwrap();
    session
        .transcript()
        .messages
        .iter()
        .map(ctxfold_transcript::Message::text)
        .collect()
}

/// Repairs, and gives the number of findings that are errors before and after.
fn repaired(path: &Path) -> Vec<String> {
    let before = std::fs::read(path).unwrap();
    let session = Session::open(path, &Options::default()).unwrap();
    session
        .prepare_repair(&stamp())
        .unwrap()
        .commit(&CommitOptions::default())
        .unwrap();
    let after = std::fs::read(path).unwrap();
    assert!(after.starts_with(&before), "append only");
    let again = Session::open(path, &Options::default()).unwrap();
    let error = again.prepare_repair(&stamp()).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::NothingToGain,
        "a second repair finds nothing"
    );
    texts(path)
}

#[test]
fn a_whole_session_needs_none() {
    let dir = tempfile::tempdir().unwrap();
    let rows = [user("u1", None, 1, "one"), answer("a1", "u1", 2, "two")];
    let path = file(dir.path(), &format!("{}\n", rows.join("\n")));
    let session = Session::open(&path, &Options::default()).unwrap();
    assert_eq!(
        session.prepare_repair(&stamp()).unwrap_err().kind(),
        ErrorKind::NothingToGain
    );
}

#[test]
fn glued_rows_are_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "{}\n{}{}\n{}\n",
        user("u1", None, 1, "one"),
        answer("a1", "u1", 2, "two"),
        user("u2", Some("a1"), 3, "three"),
        answer("a2", "u2", 4, "four"),
    );
    let path = file(dir.path(), &text);
    assert_eq!(repaired(&path), ["one", "two", "three", "four"]);
    // A reader that knows nothing of salvage finds every row on a line of its own.
    let lines = std::fs::read_to_string(&path).unwrap();
    let whole = lines.lines().filter(|l| {
        l.starts_with('{') && l.contains("\"uuid\":\"u2\"") && l.matches("\"uuid\"").count() == 1
    });
    assert_eq!(whole.count(), 1);
}

/// What `explain` says of both.
#[test]
fn a_repair_appends_and_keeps_the_line_ends() {
    for code in Code::ALL {
        assert!(!explain(*code).contains("writes a copy"), "{code:?}");
    }
    assert!(explain(Code::CarriageReturns).contains("ends as the newest lines do"));
    let dir = tempfile::tempdir().unwrap();
    for end in ["\n", "\r\n"] {
        let text = [
            user("u1", None, 1, "one"),
            answer("a1", "u1", 2, "two") + &user("u2", Some("a1"), 3, "three"),
            answer("a2", "u2", 4, "four"),
            String::new(),
        ];
        let path = file(dir.path(), &text.join(end));
        assert_eq!(repaired(&path), ["one", "two", "three", "four"]);
        let all = std::fs::read_to_string(&path).unwrap();
        let appended = all.strip_prefix(&text.join(end)).unwrap();
        assert!(appended.lines().count() >= 2, "{appended}");
        let line_ends = |line: &str| line.ends_with("\r\n") == (end == "\r\n");
        assert!(
            appended.split_inclusive('\n').all(line_ends),
            "{appended:?}"
        );
    }
}

#[test]
fn a_gap_is_bridged_and_a_result_without_its_call_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "{}\n{}\n{}\n{}\n{}\n",
        user("u1", None, 1, "one"),
        answer("a1", "u1", 2, "two"),
        result("r1", "lost-row", 3, "toolu_lost"),
        user("u2", Some("r1"), 4, "three"),
        answer("a2", "u2", 5, "four"),
    );
    let path = file(dir.path(), &text);
    assert_eq!(repaired(&path), ["one", "two", "three", "four"]);
}

#[test]
fn the_rows_that_a_compaction_keeps_come_back_without_the_one_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let boundary = format!(
        r#"{{"parentUuid":null,"logicalParentUuid":"a2","isSidechain":false,"type":"system","subtype":"compact_boundary","content":"Conversation compacted","timestamp":"2026-12-01T00:00:10.000Z","uuid":"b1","sessionId":"{SESSION}","compactMetadata":{{"trigger":"manual","preTokens":9,"preservedMessages":{{"anchorUuid":"s1","uuids":["u2","gone","a2"],"allUuids":["u2","gone","a2"]}}}}}}"#
    );
    let summary = row(
        "s1",
        Some("b1"),
        11,
        "user",
        r#"{"role":"user","content":"SUM"}"#,
    )
    .replace(
        "\"uuid\":\"s1\"",
        "\"isCompactSummary\":true,\"uuid\":\"s1\"",
    );
    let text = format!(
        "{}\n{}\n{}\n{}\n{boundary}\n{summary}\n{}\n",
        user("u1", None, 1, "one"),
        answer("a1", "u1", 2, "two"),
        user("u2", Some("a1"), 3, "three"),
        answer("a2", "u2", 4, "four"),
        user("u3", Some("s1"), 12, "five"),
    );
    let path = file(dir.path(), &text);
    assert_eq!(
        texts(&path),
        ["SUM", "five"],
        "the client drops all of them"
    );
    assert!(
        check(&path, &mut |_, _| {})
            .unwrap()
            .findings
            .iter()
            .any(|f| f.code.as_str().contains("preserved"))
    );
    assert_eq!(repaired(&path), ["SUM", "three", "four", "five"]);
}

#[test]
fn an_undo_takes_a_repair_back() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "{}\n{}{}\n",
        user("u1", None, 1, "one"),
        answer("a1", "u1", 2, "two"),
        user("u2", Some("a1"), 3, "three"),
    );
    let path = file(dir.path(), &text);
    repaired(&path);
    let session = Session::open(&path, &Options::default()).unwrap();
    session
        .prepare_undo(&stamp())
        .unwrap()
        .commit(&CommitOptions::default())
        .unwrap();
    assert_eq!(texts(&path), ["one", "two", "three"]);
}
