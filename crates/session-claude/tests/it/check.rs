//! Every fault by its code, line and offset.

use std::path::PathBuf;

use ctxfold_session_claude::{Code, Finding, Report, check};

struct Case {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

fn case(bytes: impl AsRef<[u8]>) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let path = dir
        .path()
        .join("3f2a91c0-0000-4000-8000-000000000001.jsonl");
    std::fs::write(&path, bytes).unwrap();
    Case { _dir: dir, path }
}

fn report(bytes: impl AsRef<[u8]>) -> Report {
    check(&case(bytes).path, &mut |_, _| {}).unwrap()
}

fn findings(rows: &[String]) -> Vec<Finding> {
    report(lines(rows)).findings
}

fn lines(rows: &[String]) -> String {
    rows.join("\n") + if rows.is_empty() { "" } else { "\n" }
}

/// Offset of a row among rows.
fn offset(rows: &[String], line: usize) -> u64 {
    lines(&rows[..line - 1]).len() as u64
}

/// The only finding is this one, at the beginning of this line.
fn only(rows: &[String], code: Code, line: usize) {
    let found = findings(rows);
    let seen: Vec<_> = found.iter().map(|f| (f.code, f.line, f.offset)).collect();
    let wanted = (code, Some(line as u64), Some(offset(rows, line)));
    assert_eq!(seen, [wanted], "{found:#?}");
}

fn row(kind: &str, uuid: &str, parent: Option<&str>, rest: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |p| format!("\"{p}\""));
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","uuid":"{uuid}","timestamp":"2026-12-01T00:00:00.000Z","sessionId":"3f2a91c0-0000-4000-8000-000000000001",{rest}}}"#
    )
}

fn prompt(uuid: &str, parent: Option<&str>) -> String {
    row(
        "user",
        uuid,
        parent,
        r#""message":{"role":"user","content":"hello"}"#,
    )
}

fn answer(uuid: &str, parent: &str, message: &str) -> String {
    let rest = format!(
        r#""message":{{"id":"{message}","role":"assistant","content":[{{"type":"text","text":"yes"}}]}}"#
    );
    row("assistant", uuid, Some(parent), &rest)
}

fn call(uuid: &str, parent: &str, message: &str, id: &str) -> String {
    let rest = format!(
        r#""message":{{"id":"{message}","role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"ls"}}}}]}}"#
    );
    row("assistant", uuid, Some(parent), &rest)
}

fn result(uuid: &str, parent: &str, id: &str, content: &str) -> String {
    let rest = format!(
        r#""message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":{content}}}]}}"#
    );
    row("user", uuid, Some(parent), &rest)
}

/// A conversation without a fault.
fn good() -> Vec<String> {
    vec![
        prompt("u1", None),
        call("a1", "u1", "m1", "toolu_aaaaaa"),
        result("r1", "a1", "toolu_aaaaaa", r#""ok""#),
        answer("a2", "r1", "m2"),
        prompt("u2", Some("a2")),
        answer("a3", "u2", "m3"),
    ]
}

fn with(line: usize, text: impl Into<String>) -> Vec<String> {
    let mut rows = good();
    rows.insert(line - 1, text.into());
    rows
}

fn replaced(line: usize, text: impl Into<String>) -> Vec<String> {
    let mut rows = good();
    rows[line - 1] = text.into();
    rows
}

#[test]
fn a_good_file_has_no_findings() {
    assert_eq!(findings(&good()), []);
}

#[test]
fn damaged_lines_are_named() {
    only(&with(4, r#"{"type":"user","#), Code::TornLine, 4);
    only(&with(4, "\0\0\0\0"), Code::NulRun, 4);
    only(&with(4, "segmentation fault"), Code::Garbage, 4);
    let mut spliced = good();
    spliced[3] = format!(r#"{{"type":"user","uui{}"#, spliced[3]);
    only(&spliced, Code::SplicedLine, 4);

    let mut text = lines(&good());
    let end = text.len() as u64;
    text.push_str(&answer("a4", "a3", "m4")[..50]);
    let found = report(&text).findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].code, found[0].line, found[0].offset),
        (Code::TornTail, Some(7), Some(end))
    );
}

#[test]
fn glued_rows_are_named_where_the_second_begins() {
    let mut rows = good();
    let second = rows.remove(3);
    let at = offset(&rows, 3) + rows[2].len() as u64;
    rows[2].push_str(&second);
    let found = findings(&rows);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].code, found[0].line, found[0].offset),
        (Code::GluedLines, Some(3), Some(at))
    );
}

#[test]
fn peculiar_texts_are_named_once_a_file() {
    let crlf = lines(&good()).replace('\n', "\r\n");
    let found = report(&crlf).findings;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].code, found[0].line),
        (Code::CarriageReturns, Some(1))
    );
    assert!(found[0].message.starts_with("6 "));

    let found = report(format!("\u{feff}\u{feff}{}", lines(&good()))).findings;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].code, found[0].offset),
        (Code::ByteOrderMark, Some(0))
    );

    let open = lines(&good());
    let found = report(open.trim_end()).findings;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].code, found[0].line),
        (Code::NoFinalNewline, Some(6))
    );

    only(
        &replaced(6, answer("a3", "u2", "m3").replace("yes", r"y\ud83d")),
        Code::LoneSurrogate,
        6,
    );

    let mut bytes = lines(&good()).into_bytes();
    let at = offset(&good(), 4) + good()[3].find("yes").unwrap() as u64;
    bytes[at as usize] = 0xff;
    let found = report(&bytes).findings;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].code, found[0].line, found[0].offset),
        (Code::InvalidUtf8, Some(4), Some(at))
    );
}

#[test]
fn c5_a_gap_is_named_and_no_link_is_invented() {
    only(
        &replaced(5, prompt("u2", Some("lost"))),
        Code::DanglingParent,
        5,
    );
}

#[test]
fn c12_dangling_parents_are_counted() {
    let mut rows = vec![prompt("p0", None)];
    for i in 1..10 {
        let parent = if i < 7 {
            format!("lost{i}")
        } else {
            format!("p{}", i - 1)
        };
        rows.push(prompt(&format!("p{i}"), Some(&parent)));
    }
    let found = findings(&rows);
    let dangling: Vec<_> = found
        .iter()
        .filter(|f| f.code == Code::DanglingParent)
        .collect();
    assert_eq!(dangling.len(), 1);
    assert_eq!(dangling[0].line, Some(2));
    assert!(
        dangling[0].message.starts_with("6 of 10"),
        "{}",
        dangling[0].message
    );
}

#[test]
fn c12_many_dangling_parents_take_linear_time() {
    let rows: Vec<String> = (0..10_000)
        .map(|i| prompt(&format!("p{i}"), Some(&format!("p{}", (i * 7919) % 20_000))))
        .collect();
    let start = std::time::Instant::now();
    assert!(!findings(&rows).is_empty());
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn cycles_are_named() {
    let mut rows = good();
    rows.push(prompt("c1", Some("c3")));
    rows.push(prompt("c2", Some("c1")));
    rows.push(prompt("c3", Some("c2")));
    rows.push(prompt("self", Some("self")));
    let cycles: Vec<_> = findings(&rows)
        .into_iter()
        .filter(|f| f.code == Code::ParentCycle)
        .collect();
    assert_eq!(cycles.len(), 2, "{cycles:?}");
    assert_eq!(cycles[0].line, Some(7));
    assert!(cycles[0].message.starts_with("3 rows"));
    assert_eq!(cycles[1].line, Some(10));
}

#[test]
fn a_uuid_for_two_rows_is_named_a_newer_version_is_not() {
    let mut rows = good();
    rows.push(answer("a3", "u2", "m3").replace("yes", "[folded]"));
    assert_eq!(findings(&rows), []);
    rows.push(answer("a3", "a2", "m3"));
    let found = findings(&rows);
    assert!(
        found
            .iter()
            .any(|f| f.code == Code::DuplicateUuid && f.line == Some(8)),
        "{found:?}"
    );
}

#[test]
fn c18_identifiers_of_calls_must_be_unique_and_not_empty() {
    let mut rows = good();
    rows.push(call("a4", "a3", "m4", "toolu_aaaaaa"));
    rows.push(result("r4", "a4", "toolu_aaaaaa", r#""again""#));
    only(&rows, Code::DuplicateToolId, 7);

    // What a compaction wrote again is not sent twice.
    let mut rows = good();
    rows.push(boundary("b1", &["u2", "a3"]));
    rows.push(call("a4", "b1", "m4", "toolu_aaaaaa"));
    rows.push(result("r4", "a4", "toolu_aaaaaa", r#""ok""#));
    assert_eq!(findings(&rows), []);

    let mut rows = good();
    rows.push(call("a4", "a3", "m4", ""));
    rows.push(result("r4", "a4", "", r#""x""#));
    let found: Vec<_> = findings(&rows)
        .into_iter()
        .filter(|f| f.code == Code::EmptyToolId)
        .collect();
    assert_eq!(
        found.iter().map(|f| f.line).collect::<Vec<_>>(),
        [Some(7), Some(8)]
    );
}

#[test]
fn c19_a_result_without_a_call_is_named() {
    let mut rows = good();
    rows.push(result("r4", "a3", "toolu_lost", r#""x""#));
    only(&rows, Code::OrphanResult, 7);
}

#[test]
fn c20_a_call_without_a_result_is_told_from_one_that_waits() {
    let mut rows = good();
    rows.push(call("a4", "a3", "m4", "toolu_bbbbbb"));
    only(&rows, Code::PendingCall, 7);
    rows.push(prompt("u3", Some("a4")));
    only(&rows, Code::MissingResult, 7);
}

#[test]
fn c22_unknown_kinds_are_counted_in_bytes() {
    let junk = format!(
        r#"{{"type":"highlight-junk","data":"{}"}}"#,
        "x".repeat(3 << 20)
    );
    let rows = with(3, junk.clone());
    let report = report(lines(&rows));
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].code, Code::UnknownKind);
    assert!(report.findings[0].message.contains(&junk.len().to_string()));
    let kind = &report.scan.kinds[0];
    assert_eq!(
        (kind.kind.as_str(), kind.bytes, kind.known),
        ("highlight-junk", junk.len() as u64, false)
    );
}

/// A client that did not know of the compaction went on where it was.
#[test]
fn a_compaction_that_is_passed_by() {
    let mut rows = good();
    rows.push(boundary("b1", &["u2", "a3"]));
    rows.push(prompt("u3", Some("b1")));
    assert_eq!(findings(&rows), []);
    rows[7] = prompt("u3", Some("a3")).replace("00:00:00.000Z", "00:00:09.000Z");
    assert_eq!(findings(&rows), [], "the list takes it along");

    // A list that the newest row does not hang on, as clients write it.
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/v2.1.197/04-same-as-01-live-append-to-old-leaf-BAD-orphans-boundary.jsonl"
    );
    let bytes = std::fs::read(fixture).unwrap();
    let mark = b"\"compact_boundary\"";
    let at = bytes.windows(mark.len()).position(|w| w == mark).unwrap();
    let start = bytes[..at].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    let line = bytes[..start].split(|b| *b == b'\n').count();
    let found = report(&bytes).findings;
    let seen: Vec<_> = found.iter().map(|f| (f.code, f.line, f.offset)).collect();
    let wanted = (
        Code::CompactionBypassed,
        Some(line as u64),
        Some(start as u64),
    );
    assert_eq!(seen, [wanted], "{found:#?}");
}

/// The client puts rows of one message together, wherever they stand.
#[test]
fn a_message_that_is_written_again_behind_a_compaction() {
    let mut rows = good();
    rows.push(boundary("b1", &["b1"]));
    rows.push(prompt("u9", Some("b1")));
    rows.push(answer("a9", "u9", "m3"));
    only(&rows, Code::RepeatedMessage, 9);
    rows[8] = answer("a9", "u9", "m9");
    assert_eq!(findings(&rows), [], "a message of its own");
    // What a compaction lists it wrote itself: a changed row, or a note on an old message.
    rows[8] = answer("a9", "u9", "m3");
    rows.push(boundary("b1", &["u9", "a9"]));
    assert_eq!(findings(&rows), []);
}

fn boundary(anchor: &str, uuids: &[&str]) -> String {
    let list = format!("[\"{}\"]", uuids.join("\",\""));
    row(
        "system",
        "b1",
        None,
        &format!(
            r#""subtype":"compact_boundary","logicalParentUuid":"a3","compactMetadata":{{"trigger":"manual","preTokens":900,"postTokens":100,"preservedMessages":{{"anchorUuid":"{anchor}","uuids":{list},"allUuids":{list}}}}}"#
        ),
    )
}

#[test]
fn c26_rows_that_a_compaction_keeps_must_be_there() {
    let mut rows = good();
    rows.push(boundary("b1", &["u2", "a3"]));
    assert_eq!(findings(&rows), []);

    rows[6] = boundary("b1", &["u2", "gone", "a3"]);
    only(&rows, Code::PreservedMissing, 7);

    rows[6] = boundary("nowhere", &["u2", "a3"]);
    let codes: Vec<_> = findings(&rows).iter().map(|f| f.code).collect();
    assert!(codes.contains(&Code::AnchorMissing), "{codes:?}");
}

#[test]
fn c25_a_segment_is_read_where_there_is_no_list() {
    let mut rows = good();
    let segment = boundary("b1", &["u2"]).replace(
        r#""preservedMessages":{"anchorUuid":"b1","uuids":["u2"],"allUuids":["u2"]}"#,
        r#""preservedSegment":{"headUuid":"gone","anchorUuid":"b1","tailUuid":"a3"}"#,
    );
    rows.push(segment);
    let codes: Vec<_> = findings(&rows).iter().map(|f| f.code).collect();
    assert!(codes.contains(&Code::PreservedMissing), "{codes:?}");
}

#[test]
fn a_leaf_that_the_client_refuses_is_named() {
    let mut rows = good();
    rows.push(answer("s1", "u1", "m9").replace(r#""isSidechain":false"#, r#""isSidechain":true"#));
    rows.push(r#"{"type":"last-prompt","leafUuid":"s1","sessionId":"s"}"#.to_owned());
    only(&rows, Code::SidechainLeaf, 8);

    let last = answer("a3", "u2", "m3").replace(r#""timestamp":"2026-12-01T00:00:00.000Z","#, "");
    only(&replaced(6, last), Code::LeafWithoutTimestamp, 6);
}

#[test]
fn s7_an_image_that_is_too_large_is_named() {
    // The head of a PNG of 9000 x 10 pixels.
    let png = "iVBORw0KGgoAAAANSUhEUgAAIygAAAAKCAYAAAA=";
    let image = format!(
        r#"[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{png}"}}}}]"#
    );
    only(
        &replaced(3, result("r1", "a1", "toolu_aaaaaa", &image)),
        Code::ImageTooLarge,
        3,
    );
    let pasted = row(
        "user",
        "u2",
        Some("a2"),
        &format!(r#""message":{{"role":"user","content":{image}}}"#),
    );
    only(&replaced(5, pasted), Code::ImageTooLarge, 5);
}

#[test]
fn s8_a_conversation_larger_than_a_request_is_named() {
    let mut rows = vec![prompt("u1", None)];
    let mut parent = "u1".to_owned();
    let text = format!("\"{}\"", "word ".repeat(200_000));
    for i in 0..30 {
        let (a, r, id) = (format!("a{i}"), format!("r{i}"), format!("toolu_{i:06}"));
        rows.push(call(&a, &parent, &format!("m{i}"), &id));
        rows.push(result(&r, &a, &id, &text));
        parent = r;
    }
    let found = findings(&rows);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].code, Code::RequestTooLarge);
}

#[test]
fn c28_credentials_are_counted_and_not_printed() {
    let token = "q7".repeat(20);
    let secret = format!(r#""export GH=ghp_{token} and ghp_{token}""#);
    let rows = replaced(3, result("r1", "a1", "toolu_aaaaaa", &secret));
    only(&rows, Code::Credential, 3);
    let message = findings(&rows)[0].message.clone();
    assert!(message.starts_with("2 places"), "{message}");
    assert!(!message.contains(&token));
}

#[test]
fn a_file_without_a_conversation_is_named() {
    let found = report("{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"s\"}\n").findings;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, Code::NoConversation);
    assert_eq!(report("").findings[0].code, Code::NoConversation);
}

#[test]
fn places_are_right_across_chunks() {
    // Far more than one chunk, so that several threads count.
    let filler = prompt("u9", None).replace("hello", &"x".repeat(100_000));
    let mut rows = good();
    for i in 0..100 {
        rows.push(filler.replace("\"u9\"", &format!("\"f{i}\"")));
    }
    rows.push("torn {".to_owned());
    rows.push(prompt("u3", Some("f99")));
    only(&rows, Code::Garbage, 107);
}
