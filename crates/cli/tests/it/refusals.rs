//! Reasons to refuse: exit code 3, a reason, and not a byte changed. The same with the real client
//! in `real_claude`; here no client is needed.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use ctxfold_test_support::clients::report_not_run;
use ctxfold_test_support::disk::with_small_disk;
use ctxfold_test_support::{Gate, GeminiTurn, MockGemini};
use serde_json::json;

use crate::lab::{Lab, SESSION};

fn succeeds(words: &[&str]) -> bool {
    Command::new(words[0])
        .args(&words[1..])
        .output()
        .is_ok_and(|o| o.status.success())
}

/// The start of this process as the kernel counts it, which tells it from a later namesake.
fn process_start() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit(')').next().unwrap();
    behind_name.split_whitespace().nth(19).unwrap().to_owned()
}

#[test]
fn a_session_that_a_process_has_open() {
    let lab = Lab::new();
    let pid = std::process::id();
    let sessions = lab.home().join(".claude/sessions");
    fs::create_dir_all(&sessions).unwrap();
    let record = |start: &str| {
        let record = json!({"pid": pid, "sessionId": SESSION, "procStart": start});
        fs::write(sessions.join(format!("{pid}.json")), record.to_string()).unwrap();
    };
    record(&process_start());
    let says = format!("process {pid} has the session");
    let ran = lab.refused(3, &["compact", SESSION], &says);
    assert!(ran.stderr.contains("--live"), "{ran:?}");
    lab.refused(3, &["undo", SESSION], &says);
    assert!(
        !lab.state().exists(),
        "a refusal is nothing for the journal"
    );
    // Looking is no writing, and what the user insists on is done.
    lab.ctxfold(&["inspect", SESSION]).done();
    lab.ctxfold(&["compact", SESSION, "--dry-run"]).done();
    let listed = lab.ctxfold(&["list", "--all", "--json"]).json();
    assert_eq!(listed["sessions"][0]["live_pid"], pid, "{listed}");
    lab.ctxfold(&["compact", SESSION, "--live"]).done();

    // The same number, given to another process since.
    record("1");
    lab.ctxfold(&["undo", SESSION]).done();
}

#[test]
fn nothing_to_gain_and_nothing_to_undo() {
    let lab = Lab::new();
    lab.refused(
        3,
        &["compact", SESSION, "--keep", "1000"],
        "nothing is old enough",
    );
    lab.refused(3, &["undo", SESSION], "there is no compaction to take back");
    lab.ctxfold(&["compact", SESSION]).done();
    lab.refused(3, &["compact", SESSION], "too little to gain");
}

#[test]
fn a_file_that_changed_while_the_model_thought() {
    let (gemini, lab, gate) = (MockGemini::start(), Lab::new(), Gate::closed());
    let section =
        |title: &&str| format!("## {title}\nNothing worth a word happened here at all.\n");
    let text: String = ctxfold_compactor::SECTIONS.iter().map(section).collect();
    gemini.next(GeminiTurn::text(&text).held_by(&gate));
    let child = lab
        .command(&["compact", SESSION, "--mode", "summary"])
        .env("CTXFOLD_GEMINI_BASE_URL", gemini.url())
        .env("CTXFOLD_GEMINI_API_KEY", "AIzaPlanted")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = gemini
        .log()
        .wait_for(Duration::from_mins(1), |r| r.kind == "conversation");
    assert!(asked.is_some());
    let mut file = fs::File::options().append(true).open(lab.file()).unwrap();
    writeln!(
        file,
        "{}",
        json!({"type": "mode", "mode": "normal", "sessionId": SESSION})
    )
    .unwrap();
    let changed = lab.bytes();
    gate.open();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("changed") && said.contains("hint: "),
        "{said}"
    );
    assert!(lab.bytes() == changed);
}

/// As root a file's mode stops nobody; an immutable file does.
#[test]
fn a_file_that_cannot_be_written() {
    let lab = Lab::new();
    let path = lab.file();
    let file = path.to_str().unwrap();
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let (lock, open): (&[&str], &[&str]) = if is_root {
        (&["chattr", "+i", file], &["chattr", "-i", file])
    } else {
        (&["chmod", "400", file], &["chmod", "600", file])
    };
    if !succeeds(lock) {
        report_not_run(&format!(
            "an unwritable file: {lock:?} is not possible here"
        ));
        return;
    }
    let before = lab.bytes();
    let ran = lab.ctxfold(&["compact", SESSION]);
    assert!(succeeds(open));
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains(".jsonl"), "the path is named: {ran:?}");
    assert!(lab.bytes() == before);
}

#[test]
fn a_full_disk_under_the_session() {
    let lab = Lab::new();
    let bytes = lab.bytes();
    let room = bytes.len().next_multiple_of(4096);
    let script = format!(
        r#"cp "{file}" "$DISK/{SESSION}.jsonl" || exit 112
           "$PROGRAM" compact "$DISK/{SESSION}.jsonl"; code=$?
           cmp "{file}" "$DISK/{SESSION}.jsonl" || exit 113
           exit $code"#,
        file = lab.file().display()
    );
    let Some(ran) = with_small_disk(&lab.command(&[]), &lab.home().join("small"), room, &script)
    else {
        return;
    };
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(
        ran.status.code(),
        Some(3),
        "a part that was written is taken back: {ran:?}"
    );
    assert!(said.contains("make room"), "{said}");
    let journal = fs::read_to_string(lab.state().join("journal.jsonl")).unwrap();
    assert!(journal.contains(r#""kind":"failed""#), "{journal}");
}

#[test]
fn a_full_disk_under_the_journal() {
    let lab = Lab::new();
    let before = lab.bytes();
    let script = format!(
        r#"head -c 4096 /dev/zero > "$DISK/filler"
           exec "$PROGRAM" compact {SESSION}"#
    );
    let state = lab.home().join("state");
    let Some(ran) = with_small_disk(&lab.command(&[]), &state, 4096, &script) else {
        return;
    };
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("the session is as it was"), "{said}");
    assert!(lab.bytes() == before, "a refusal changes nothing");
}

#[test]
fn a_journal_that_cannot_be_there() {
    let lab = Lab::new();
    fs::write(lab.home().join("state"), "a file in the way").unwrap();
    lab.refused(3, &["compact", SESSION], "the session is as it was");
}

#[test]
fn a_copy_is_never_written_over_a_file() {
    let lab = Lab::new();
    let there = lab.home().join("there.jsonl");
    fs::write(&there, "mine\n").unwrap();
    let ran = lab.ctxfold(&["compact", SESSION, "--out", there.to_str().unwrap()]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine\n");
}

#[test]
fn a_goal_that_a_mode_would_not_heed_is_an_error() {
    let lab = Lab::new();
    for mode in ["summary", "prune"] {
        let words = [
            "compact",
            SESSION,
            "--mode",
            mode,
            "--to",
            "40%",
            "--dry-run",
        ];
        lab.refused(2, &words, "how far masking goes");
    }
}
