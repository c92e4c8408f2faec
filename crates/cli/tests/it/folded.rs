//! What was folded comes back byte for byte, also from files that are not as they should be.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, SESSION};

/// Bytes that an output may hold, with no end of line at its end.
fn awkward() -> String {
    let line = "näïve \u{2028} \u{7f} \u{1b}[31mred\u{1b}[0m\ttab \\u0041 \"quoted\" 🦀\r\n";
    line.repeat(200) + "the needle is here, without an end"
}

/// A session whose first output is this.
fn with_first_output(text: &str) -> Lab {
    let lab = Lab::new();
    let rows = fs::read_to_string(lab.file()).unwrap();
    let mut rows: Vec<Value> = rows
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let output = rows
        .iter_mut()
        .find_map(|row| row.pointer_mut("/message/content/0/content"))
        .unwrap();
    *output = json!(text);
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    lab.write(rows.join("\n") + "\n");
    lab
}

#[test]
fn an_output_is_unfolded_byte_for_byte_and_found_by_search() {
    let text = awkward();
    let lab = with_first_output(&text);
    let plan = lab.ctxfold(&["compact", SESSION, "--json"]).json();
    let addresses: Vec<&str> = plan["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|d| d["address"].as_str())
        .collect();
    let unfolded: Vec<String> = addresses
        .iter()
        .map(|address| lab.ctxfold(&["unfold", address]).done().stdout)
        .collect();
    let at = unfolded.iter().position(|u| *u == text).expect("one is it");
    assert!(unfolded.iter().all(|u| !u.is_empty()));
    let found = lab
        .ctxfold(&["unfold", "--search", "the ne+dle", "--session", SESSION])
        .done();
    assert_eq!(found.stdout.lines().count(), 1, "{found:?}");
    assert!(found.stdout.starts_with(addresses[at]), "{found:?}");
    assert!(found.stdout.contains("the needle is here"), "{found:?}");
}

#[test]
fn an_output_is_read_back_from_a_copy_that_no_store_knows() {
    let text = awkward();
    let lab = with_first_output(&text);
    let copy = lab.home().join("a copy's.jsonl");
    let copy = copy.to_str().unwrap();
    let made = lab.ctxfold(&["compact", SESSION, "--out", copy]).done();
    assert!(
        made.stderr.contains(r"--session 'HOME/a copy'\''s.jsonl'"),
        "{made:?}"
    );
    let plan = lab
        .ctxfold(&["compact", SESSION, "--dry-run", "--json"])
        .json();
    fs::remove_file(lab.file()).unwrap();
    let addresses = plan["decisions"].as_array().unwrap().iter();
    let addresses: Vec<&str> = addresses.filter_map(|d| d["address"].as_str()).collect();
    assert!(!addresses.is_empty());
    let mut found = 0;
    for address in addresses {
        assert_eq!(
            lab.ctxfold(&["unfold", address]).code,
            1,
            "no store knows it"
        );
        let read = lab.ctxfold(&["unfold", address, "--session", copy]).done();
        found += usize::from(read.stdout == text);
    }
    assert_eq!(found, 1);
    assert_eq!(
        lab.ctxfold(&["unfold", "11111111:nokey1", "--session", copy])
            .code,
        1
    );
}

#[test]
fn undo_brings_back_what_a_plan_would_start_from() {
    let lab = Lab::new();
    let plan = || {
        lab.ctxfold(&["compact", SESSION, "--dry-run", "--json"])
            .json()
    };
    let (bytes, before) = (lab.bytes(), plan());
    lab.ctxfold(&["compact", SESSION]).done();
    lab.ctxfold(&["undo", SESSION]).done();
    let after = plan();
    assert_eq!(before["before"]["messages"], after["before"]["messages"]);
    assert_eq!(before["before"]["bytes"], after["before"]["bytes"]);
    assert_eq!(before["decisions"], after["decisions"]);
    assert!(lab.bytes().starts_with(&bytes), "and every byte is there");
}

/// Compacts and takes it back; every old byte stays.
#[track_caller]
fn lives(bytes: &[u8]) {
    let lab = Lab::new();
    lab.write(bytes);
    lab.ctxfold(&["compact", SESSION]).done();
    let compacted = lab.bytes();
    assert!(compacted.starts_with(bytes) && compacted.len() > bytes.len());
    let rows = String::from_utf8(compacted[bytes.len()..].to_vec()).unwrap();
    for row in rows.lines().filter(|l| !l.is_empty()) {
        let row: Value = serde_json::from_str(row).expect("a row of ours is whole");
        assert!(row["uuid"].is_string(), "{row}");
    }
    lab.ctxfold(&["undo", SESSION]).done();
    assert!(lab.bytes().starts_with(&compacted));
}

#[test]
fn byte_order_marks_at_the_start() {
    let bytes = Lab::new().bytes();
    lives(&[b"\xef\xbb\xbf", &bytes[..]].concat());
    lives(&[b"\xef\xbb\xbf\xef\xbb\xbf", &bytes[..]].concat());
}

#[test]
fn no_line_end_at_the_end() {
    let bytes = Lab::new().bytes();
    lives(bytes.strip_suffix(b"\n").unwrap());
}

#[test]
fn a_line_of_fifty_megabytes() {
    let bytes = Lab::new().bytes();
    let middle = bytes.len() / 2;
    let cut = middle + bytes[middle..].iter().position(|b| *b == b'\n').unwrap() + 1;
    let (head, tail) = bytes.split_at(cut);
    let junk = vec![b'x'; 50_000_000];
    let row = [&b"{\"type\":\"progress\",\"data\":\""[..], &junk, b"\"}\n"].concat();
    lives(&[head, &row, tail].concat());
}
