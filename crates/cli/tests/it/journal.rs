//! The journal over crashes, and what `doctor` makes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::lab::{Lab, SESSION};

fn lines(lab: &Lab) -> Vec<Value> {
    let text = fs::read_to_string(lab.state().join("journal.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_write_is_announced_and_completed() {
    let lab = Lab::new();
    let before = lab.bytes().len();
    lab.ctxfold(&["compact", SESSION]).done();
    let lines = lines(&lab);
    let [begin, done] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&begin["kind"], &done["kind"]),
        (&json!("begin"), &json!("done"))
    );
    assert_eq!(begin["id"], done["id"]);
    assert_eq!(begin["len_before"], before);
    assert_eq!(done["len_after"], lab.bytes().len());
    assert_eq!(begin["sha256"], done["sha256"]);
    assert_eq!(begin["at_ms"], 1_772_000_000_000_i64);
    assert!(
        lab.bytes().len() == before + usize::try_from(begin["bytes"].as_u64().unwrap()).unwrap()
    );
    let mode = fs::metadata(lab.state().join("journal.jsonl"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// The journal's `begin` stands alone where a crash came before `done`.
fn crashed(rows_were_written: bool) -> Lab {
    let lab = Lab::new();
    let before = lab.bytes();
    lab.ctxfold(&["compact", SESSION]).done();
    let journal = lab.state().join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let begin = text.lines().next().unwrap();
    fs::write(&journal, format!("{begin}\n{{\"v\":1,\"at_")).unwrap();
    if !rows_were_written {
        lab.write(before);
    }
    lab
}

#[test]
fn doctor_tells_a_crash_before_the_write_from_one_after() {
    for (written, says) in [(false, "never written"), (true, "stands whole in the file")] {
        let lab = crashed(written);
        let json = lab.ctxfold(&["doctor", "--json"]).json();
        let checks = json["checks"].as_array().unwrap();
        let row = checks.iter().find(|c| c["what"] == "journal").unwrap();
        let said = row["says"].as_str().unwrap();
        assert!(row["ok"] == false && said.contains(says), "{row}");
        // The torn line harms nothing that is written behind it, and the session goes on.
        let next = if written { "undo" } else { "compact" };
        lab.ctxfold(&[next, SESSION]).done();
        let text = fs::read_to_string(lab.state().join("journal.jsonl")).unwrap();
        assert!(
            text.ends_with("}\n") && text.contains("\"kind\":\"done\""),
            "{text}"
        );
    }
}

#[test]
fn a_journal_of_a_newer_version_is_not_written_to() {
    let lab = Lab::new();
    fs::create_dir_all(lab.state()).unwrap();
    fs::write(
        lab.state().join("journal.jsonl"),
        "{\"v\":9,\"at_ms\":1,\"kind\":\"begin\"}\n",
    )
    .unwrap();
    let ran = lab.refused(3, &["compact", SESSION], "newer");
    assert!(ran.stderr.contains("update ctxfold"), "{ran:?}");
}
