//! Damaged files, one fault each, and the identity of parse and print.

use ctxfold_session_claude::{Code, Finding, PieceKind, split};
use proptest::prelude::*;

const A: &str =
    r#"{"parentUuid":null,"type":"user","uuid":"u1","message":{"role":"user","content":"one"}}"#;
const B: &str = r#"{"parentUuid":"u1","type":"assistant","uuid":"u2","message":{"role":"assistant","content":[{"type":"text","text":"two"}]}}"#;
const C: &str = r#"{"type":"mode","mode":"normal","sessionId":"s"}"#;

/// The rows' texts, and the findings.
fn read(bytes: &[u8]) -> (Vec<String>, Vec<Finding>) {
    let (pieces, findings) = split(bytes, 0, Some(1));
    let printed: Vec<u8> = pieces.iter().flat_map(|p| p.bytes).copied().collect();
    assert_eq!(printed, bytes, "printing the pieces is not the identity");
    let rows = pieces
        .iter()
        .filter(|p| p.kind == PieceKind::Row)
        .map(|p| String::from_utf8_lossy(p.bytes).into_owned())
        .collect();
    (rows, findings)
}

/// Code, line and offset of the only finding.
fn only(findings: &[Finding]) -> (Code, u64, u64) {
    assert_eq!(findings.len(), 1, "{findings:?}");
    let f = &findings[0];
    (f.code, f.line.unwrap(), f.offset.unwrap())
}

#[test]
fn a_whole_file_has_no_findings() {
    let (rows, findings) = read(format!("{A}\n{B}\n\n{C}\n").as_bytes());
    assert_eq!(rows, [A, B, C]);
    assert_eq!(findings, []);
}

#[test]
fn c1_a_torn_line_in_the_middle_ends_nothing() {
    let text = format!("{A}\n{B}\n{C}\n{{\"type\":\"user\",\n{A}\n{B}\n{C}\n");
    let (rows, findings) = read(text.as_bytes());
    assert_eq!(rows.len(), 6);
    let offset = (A.len() + B.len() + C.len() + 3) as u64;
    assert_eq!(only(&findings), (Code::TornLine, 4, offset));
}

#[test]
fn a_torn_tail_is_told_from_a_torn_line() {
    let (rows, findings) = read(format!("{A}\n{}", &B[..40]).as_bytes());
    assert_eq!(rows, [A]);
    assert_eq!(only(&findings), (Code::TornTail, 2, A.len() as u64 + 1));
}

#[test]
fn c3_the_row_inside_a_splice_is_saved_and_the_fragment_reported() {
    for fragment in [
        r#"{"type":"user","uui"#,
        r#"{"parentUuid":"u0","message":{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"te"#,
        r#"{"parentUuid":"u0","message":{"content":[{"type":"tool_use","input":{"x":{"y":"#,
        r#"{"type":"user","message":{"role":"user","content":"hi"}"#,
    ] {
        let (rows, findings) = read(format!("{A}\n{fragment}{B}\n{C}\n").as_bytes());
        assert_eq!(rows, [A, B, C], "{fragment}");
        assert_eq!(only(&findings), (Code::SplicedLine, 2, A.len() as u64 + 1));
    }
}

#[test]
fn a_part_of_a_torn_row_is_not_taken_for_a_row() {
    // What is cut is the last brace alone: the message inside is a whole object.
    let torn = &B[..B.len() - 1];
    let (rows, findings) = read(format!("{torn}\n{C}\n").as_bytes());
    assert_eq!(rows, [C]);
    assert_eq!(only(&findings), (Code::TornLine, 1, 0));
}

#[test]
fn c3_nul_runs_are_skipped_wherever_they_are() {
    let nuls = "\0".repeat(500);
    let cases = [
        (format!("{A}\n{nuls}{B}\n{C}\n"), 2, A.len() + 1),
        (format!("{A}\n{nuls}\n{B}\n{C}\n"), 2, A.len() + 1),
        (format!("{A}\n{B}{nuls}\n{C}\n"), 2, A.len() + 1 + B.len()),
        (
            format!("{A}\n{B}\n{C}\n{nuls}"),
            4,
            A.len() + B.len() + C.len() + 3,
        ),
    ];
    for (text, line, offset) in cases {
        let (rows, findings) = read(text.as_bytes());
        assert_eq!(rows, [A, B, C]);
        assert_eq!(only(&findings), (Code::NulRun, line, offset as u64));
    }
}

#[test]
fn a_row_that_ends_in_nuls_is_torn() {
    let (rows, findings) = read(format!("{}\0\0\0\n{C}\n", &A[..30]).as_bytes());
    assert_eq!(rows, [C]);
    let codes: Vec<Code> = findings.iter().map(|f| f.code).collect();
    assert_eq!(codes, [Code::TornLine, Code::NulRun]);
}

#[test]
fn c4_glued_rows_are_split() {
    let (rows, findings) = read(format!("{A}{B}{C}\n{A}\n").as_bytes());
    assert_eq!(rows, [A, B, C, A]);
    assert_eq!(only(&findings), (Code::GluedLines, 1, A.len() as u64));
}

#[test]
fn c8_only_a_line_feed_ends_a_line() {
    let row = "{\"type\":\"user\",\"text\":\"a\u{2028}b\u{2029}c\u{85}d\"}";
    let (rows, findings) = read(format!("{row}\n{A}\n").as_bytes());
    assert_eq!(rows, [row, A]);
    assert_eq!(findings, []);
}

#[test]
fn c9_all_byte_order_marks_are_skipped_and_kept() {
    let (rows, findings) = read(format!("\u{feff}\u{feff}{A}\n{B}\n").as_bytes());
    assert_eq!(rows, [A, B]);
    assert_eq!(only(&findings), (Code::ByteOrderMark, 1, 0));
}

#[test]
fn c10_carriage_returns_are_no_part_of_a_row_and_offsets_count_them() {
    let text = format!("{A}\r\n{B}\r\n");
    let (pieces, findings) = split(text.as_bytes(), 0, Some(1));
    let rows: Vec<_> = pieces
        .iter()
        .filter(|p| p.kind == PieceKind::Row)
        .map(|p| (p.offset, p.bytes.len(), p.line))
        .collect();
    assert_eq!(
        rows,
        [
            (0, A.len(), Some(1)),
            (A.len() as u64 + 2, B.len(), Some(2))
        ]
    );
    assert_eq!(findings, []);
}

#[test]
fn garbage_and_scalars_are_lost_not_fatal() {
    for garbage in [
        "not json",
        "42",
        "[1,2]",
        "{'a':1}",
        "{\"a\":tru}",
        "\"text\"",
    ] {
        let (rows, findings) = read(format!("{A}\n{garbage}\n{B}\n").as_bytes());
        assert_eq!(rows, [A, B]);
        assert_eq!(only(&findings), (Code::Garbage, 2, A.len() as u64 + 1));
    }
}

#[test]
fn a_row_behind_garbage_is_saved() {
    let (rows, findings) = read(format!("xx yy{A}\n").as_bytes());
    assert_eq!(rows, [A]);
    assert_eq!(only(&findings), (Code::Garbage, 1, 0));
}

#[test]
fn broken_text_inside_a_row_does_not_break_the_row() {
    let mut bytes = b"{\"type\":\"user\",\"text\":\"a\xff\xc3b\"}\n".to_vec();
    bytes.extend_from_slice(b"{\"type\":\"user\",\"text\":\"\\ud83d\"}\n");
    let (rows, findings) = read(&bytes);
    assert_eq!(rows.len(), 2);
    assert_eq!(findings, []);
}

#[test]
fn hostile_lines_take_linear_time() {
    let hostile = [
        "{\"a\":".repeat(200_000),
        "{\"type\":\"".repeat(120_000),
        "[{\"".repeat(60_000),
        format!("x{A}").repeat(8_000),
        "\0{".repeat(100_000),
        "{\"a\":1}".repeat(60_000),
    ];
    for line in hostile {
        let start = std::time::Instant::now();
        let _ = read(line.as_bytes());
        // A quadratic reader takes hours for these.
        assert!(start.elapsed().as_secs() < 30, "{}", &line[..20]);
    }
}

proptest! {
    #[test]
    fn any_bytes_come_back(bytes in prop::collection::vec(prop_oneof![
        4 => Just(b"{\"type\":\"user\",\"uuid\":\"u\"}".to_vec()),
        2 => Just(b"\n".to_vec()), 1 => Just(b"\r\n".to_vec()), 1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => Just(b"\0\0".to_vec()), 1 => Just(b"{\"".to_vec()), 1 => Just(b"}".to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..6)], 0..20)) {
        let bytes = bytes.concat();
        let (rows, _) = read(&bytes);
        for row in rows {
            let framed = row.starts_with('{') && row.ends_with('}');
            prop_assert!(framed, "{}", row);
        }
    }

    /// Cutting a good file anywhere loses at most the row that was cut.
    #[test]
    fn a_cut_loses_one_row_at_most(cut in 0usize..400) {
        let text = format!("{A}\n{B}\n{C}\n");
        let cut = cut.min(text.len());
        let (rows, findings) = read(&text.as_bytes()[..cut]);
        let whole = [A, B, C].iter().scan(0, |end, row| { *end += row.len() + 1; Some(*end) })
            .filter(|end| cut + 1 >= *end).count();
        prop_assert_eq!(rows.len(), whole);
        prop_assert!(findings.iter().all(|f| f.code == Code::TornTail), "{:?}", findings);
        prop_assert!(findings.len() <= 1);
    }
}
