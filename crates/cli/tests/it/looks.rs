//! Dry runs: they say what a real run would do, why it would not, and touch nothing.

use std::fs;

use ctxfold_test_support::generate::ClaudeSession;

use crate::lab::{Lab, Ran, SESSION};

fn says(ran: &Ran, text: &str) {
    assert!(ran.stderr.contains(text), "{text:?} in {ran:?}");
}

#[test]
fn a_dry_run_says_that_a_real_one_would_be_refused() {
    let lab = Lab::new();
    lab.ctxfold(&["compact", SESSION]).done();
    let pid = lab.is_live();
    let before = lab.bytes();
    let reason = format!("a real run would be refused: process {pid} has the session");
    for arguments in [
        &["compact", SESSION, "--aggressive", "--keep", "1"][..],
        &["compact", SESSION, "--mode", "summary", "--keep", "1"],
        &["undo", SESSION],
    ] {
        let dry = [arguments, &["-n"]].concat();
        let ran = lab.ctxfold(&dry).done();
        says(&ran, &reason);
        let json = lab.ctxfold(&[&dry[..], &["--json"]].concat()).json();
        let refused = json["refused"].as_str().unwrap();
        assert!(refused.starts_with(&format!("process {pid} ")), "{refused}");
        // The real one is refused, and with --live it is not.
        if !arguments.contains(&"summary") {
            assert_eq!(lab.ctxfold(arguments).code, 3);
        }
        let live = lab.ctxfold(&[&dry[..], &["--live"]].concat()).done();
        assert!(!live.stderr.contains("refused"), "{live:?}");
        let json = lab
            .ctxfold(&[&dry[..], &["--live", "--json"]].concat())
            .json();
        assert!(json["refused"].is_null(), "{json}");
    }
    assert!(lab.bytes() == before, "nothing was written");
}

#[test]
fn undo_can_be_looked_at_first() {
    let lab = Lab::new();
    says(&lab.refused(3, &["undo", SESSION, "-n"], ""), "ctxfold: ");
    lab.ctxfold(&["compact", SESSION]).done();
    let before = lab.bytes();
    let journal = fs::read(lab.state().join("journal.jsonl")).unwrap();
    let ran = lab.ctxfold(&["undo", SESSION, "--dry-run"]).done();
    says(&ran, "would append ");
    let dry = lab.ctxfold(&["undo", SESSION, "-n", "--json"]).json();
    assert_eq!(dry["undone"], false);
    assert!(lab.bytes() == before, "nothing was written");
    assert_eq!(
        fs::read(lab.state().join("journal.jsonl")).unwrap(),
        journal
    );
    let real = lab.ctxfold(&["undo", SESSION, "--json"]).json();
    for key in ["len_before", "len_after", "before"] {
        assert_eq!(dry[key], real[key], "{key}");
    }
}

/// What a resume would do, and what it would have to be told first.
#[test]
fn resume_says_what_it_would_do() {
    let lab = Lab::with_client();
    let run = |arguments: &[&str]| {
        lab.a_day_later(&[&["resume", SESSION, "-n"], arguments].concat())
            .done()
    };
    let ran = run(&["--", "-p", "go on", "it's"]);
    assert_eq!(
        ran.stdout,
        format!("claude --resume {SESSION} -p 'go on' 'it'\\''s'\n")
    );
    says(
        &ran,
        "would not compact: idle compaction of sessions of Claude Code is off; `ctxfold idle on` switches it on",
    );
    lab.ctxfold(&["idle", "on"]).done();
    says(&run(&[]), "would compact first");
    says(&run(&["--no-compact"]), "would not compact: --no-compact");
    let json = lab
        .a_day_later(&["resume", SESSION, "-n", "--json", "--", "-p", "go on"])
        .json();
    assert_eq!(
        json["command"],
        serde_json::json!(["claude", "--resume", SESSION, "-p", "go on"])
    );
    assert_eq!(json["compaction"]["due"], true);
    assert!(json["compaction"]["tokens_after"].as_u64() < json["compaction"]["tokens"].as_u64());
    lab.ctxfold(&["idle", "min", "900MB"]).done();
    says(
        &run(&[]),
        "would not compact: the conversation is too small",
    );
    let json = lab.a_day_later(&["resume", SESSION, "-n", "--json"]).json();
    assert_eq!(json["compaction"]["because"], "small");
    let ran = lab.a_day_later(&["resume", SESSION, "--json"]);
    assert_eq!(ran.code, 2, "JSON is of the dry run: {ran:?}");
}

/// Each conversation that is left alone is counted by its reason; a look needs no lock.
#[test]
fn a_look_at_every_conversation_says_why_it_leaves_some_alone() {
    let lab = Lab::new();
    let small = "22222222-2222-4333-8444-555555555555";
    let beside = lab.file().with_file_name(format!("{small}.jsonl"));
    let session = ClaudeSession {
        id: small.to_owned(),
        turns: 2,
        ..ClaudeSession::default()
    };
    session
        .write_to(fs::File::create(&beside).unwrap())
        .unwrap();
    let run = |more: &[&str]| lab.a_day_later(&[&["idle", "run", "-n"], more].concat());

    let ran = run(&[]).done();
    says(&ran, "`ctxfold idle on` switches it on");
    says(
        &ran,
        "0 to compact, 2 left alone (2 switched off), 0 failed",
    );
    lab.ctxfold(&["idle", "on"]).done();

    // A watch holds the lock.
    fs::create_dir_all(lab.state()).unwrap();
    let lock = fs::File::create(lab.state().join("idle.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(lab.a_day_later(&["idle", "run"]).code, 3);
    let ran = run(&[]).done();
    says(&ran, "1 to compact, 1 left alone (1 small), 0 failed");
    assert!(
        !ran.stderr.contains("too small"),
        "only when asked: {ran:?}"
    );
    let ran = run(&["--verbose"]).done();
    says(
        &ran,
        &format!("{small}.jsonl: the conversation is too small"),
    );
    let json = run(&["--json"]).json();
    let report = &json["report"];
    assert_eq!(report["left_because"], serde_json::json!({"small": 1}));
    assert_eq!(report["left_alone"][0]["agent"], "claude");
    drop(lock);

    lab.a_day_later(&["idle", "run"]).done();
    let ran = run(&[]).done();
    says(
        &ran,
        "0 to compact, 2 left alone (1 compacted already, 1 small), 0 failed",
    );
    let ran = lab.ctxfold(&["idle", "run", "-n"]).done();
    says(&ran, "left alone (1 compacted already, 1 ");
}

/// What ctxfold appends is no use of a conversation: a listing goes by the clock that the idle policy
/// goes by, whatever the file's own time says.
#[test]
fn a_compaction_does_not_make_a_conversation_look_used() {
    let lab = Lab::new();
    let listed = |touched: bool| {
        if touched {
            let file = fs::File::options().append(true).open(lab.file()).unwrap();
            file.set_modified(std::time::SystemTime::now()).unwrap();
        }
        let json = lab
            .ctxfold(&["list", "--all", "--idle", "15m", "--json"])
            .json();
        json["sessions"].as_array().unwrap().clone()
    };
    let before = listed(false);
    assert_eq!(before.len(), 1, "it rests for longer than that");
    for command in ["compact", "undo"] {
        lab.ctxfold(&[command, SESSION]).done();
        for touched in [false, true] {
            let after = listed(touched);
            assert_eq!(after.len(), 1, "after {command}");
            assert_eq!(
                after[0]["active_ms"], before[0]["active_ms"],
                "after {command}"
            );
        }
        lab.rest();
    }
}
