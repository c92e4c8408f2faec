//! Reasons to refuse and to fail: the exit code, a reason, and not a byte changed.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use ctxfold_test_support::clients::report_not_run;
use ctxfold_test_support::disk::with_small_disk;
use ctxfold_test_support::{Gate, GeminiTurn, require_client};
use serde_json::json;

use crate::lab::{KEY, Lab, SESSION, ran};
use crate::on_each_version;

const MINUTE: Duration = Duration::from_mins(1);

fn a_live_session_is_left_alone(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::empty(&client);
    let live = lab.live_session();
    let pid = format!("process {}", live.pid());
    for verb in ["compact", "undo"] {
        let ran = lab.refused(&[verb, SESSION], &pid);
        assert!(ran.stderr.contains("--live"), "{ran:?}");
    }
    // Looking is no writing.
    lab.ctxfold(&["compact", SESSION, "--dry-run"]).done();
    lab.ctxfold(&["inspect", SESSION]).done();
    let listed = lab.ctxfold(&["list", "--json"]).json();
    assert_eq!(listed["sessions"][0]["live_pid"], live.pid(), "{listed}");
    live.kill();
    lab.compact(&[]);
}

fn every_reason_to_refuse_changes_nothing(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    let compact = ["compact", SESSION];

    // A record of a process that runs: this one.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .nth(19)
        .unwrap()
        .to_owned();
    let pid = std::process::id();
    let record = lab.home.config().join(format!("sessions/{pid}.json"));
    let entry =
        |start: &str| json!({"pid": pid, "sessionId": SESSION, "procStart": start}).to_string();
    fs::write(&record, entry(&start)).unwrap();
    lab.refused(&compact, &format!("process {pid} has the session"));
    // The same process identifier, given to another process since.
    fs::write(&record, entry("1")).unwrap();
    lab.ctxfold(&["compact", SESSION, "--dry-run"]).done();
    fs::remove_file(&record).unwrap();

    // Nothing to gain.
    lab.refused(
        &["compact", SESSION, "--keep", "1000"],
        "nothing is old enough",
    );
    lab.refused(&["undo", SESSION], "there is no compaction to take back");

    // The journal cannot be written.
    fs::create_dir_all(lab.state().parent().unwrap()).unwrap();
    fs::write(lab.state(), "a file in the way").unwrap();
    lab.refused(&compact, "as it was");
    fs::remove_file(lab.state()).unwrap();

    the_file_changes_while_the_model_thinks(&lab);
    the_file_cannot_be_written(&lab);
    the_disk_is_full(&lab);

    // A conversation that was never damaged by all this.
    lab.ctxfold(&["check", SESSION]).done();
    let before = lab.probe();
    lab.compact(&[]);
    assert!(lab.probe().bytes < before.bytes / 2);
}

fn the_file_changes_while_the_model_thinks(lab: &Lab) {
    let gate = Gate::closed();
    lab.gemini
        .next(GeminiTurn::text(&ctxfold_summary()).held_by(&gate));
    let mut command = lab.command(&["compact", SESSION, "--mode", "summary"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(
        lab.gemini
            .log()
            .wait_for(MINUTE, |r| r.kind == "conversation")
            .is_some()
    );
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(lab.file())
        .unwrap();
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
    assert!(
        lab.bytes() == changed,
        "what was appended meanwhile is all there is"
    );
    lab.gemini.log().take();
}

fn ctxfold_summary() -> String {
    let section =
        |title: &&str| format!("## {title}\nNothing worth a word happened in this part.\n");
    ctxfold_compactor::SECTIONS.iter().map(section).collect()
}

/// As root a file's mode stops nobody; an immutable file does.
fn the_file_cannot_be_written(lab: &Lab) {
    let path = lab.file();
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let file = path.to_str().unwrap();
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
    assert!(ran.stderr.contains(file), "{ran:?}");
    assert!(lab.bytes() == before);
}

fn succeeds(words: &[&str]) -> bool {
    Command::new(words[0])
        .args(&words[1..])
        .output()
        .is_ok_and(|o| o.status.success())
}

fn the_disk_is_full(lab: &Lab) {
    let bytes = lab.bytes();
    let room = bytes.len().next_multiple_of(4096);
    let script = format!(
        r#"cp "{file}" "$DISK/{SESSION}.jsonl" || exit 112
           "$PROGRAM" compact "$DISK/{SESSION}.jsonl"; code=$?
           cmp "{file}" "$DISK/{SESSION}.jsonl" || exit 113
           exit $code"#,
        file = lab.file().display()
    );
    let folder = lab.home.home().join("small");
    let Some(ran) = with_small_disk(&lab.command(&[]), &folder, room, &script) else {
        return;
    };
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(
        ran.status.code(),
        Some(3),
        "a part that was written is taken back: {ran:?}"
    );
    assert!(said.contains("make room"), "{said}");
    assert!(lab.journal().contains(r#""kind":"failed""#));
}

fn a_model_that_fails_leaves_no_trace_and_no_key(version: &str) {
    let client = require_client!(claude, version);
    let lab = Lab::new(&client);
    let none = [
        "compact",
        SESSION,
        "--mode",
        "summary",
        "--fallback",
        "none",
    ];

    // Errors that tell the key, in the forms in which they come.
    let told =
        format!("Consumer 'api_key:{KEY}' has been suspended; see https://x.test/?key={KEY}");
    for turn in [
        GeminiTurn::error(403, "PERMISSION_DENIED", &told),
        GeminiTurn::error(400, "INVALID_ARGUMENT", &told),
        GeminiTurn::error(429, "RESOURCE_EXHAUSTED", &told),
        GeminiTurn::raw(json!({"candidates": [], "note": told})),
    ] {
        lab.gemini.next(turn);
        let failed = lab.fails(4, &none, "hint: nothing was written");
        let json = lab.ctxfold(&[&none[..], &["--json", "--dry-run"]].concat());
        let doctor = lab.ctxfold(&["doctor"]);
        for text in [
            failed.stdout,
            failed.stderr,
            json.stdout,
            json.stderr,
            doctor.stdout,
            lab.journal(),
        ] {
            assert!(
                !text.contains(KEY) && !text.contains("AIzaPlanted"),
                "{text}"
            );
        }
        lab.gemini.log().take();
    }

    // Nobody listens there.
    let before = lab.bytes();
    let dead = ran(lab
        .command(&none)
        .env("CTXFOLD_GEMINI_BASE_URL", "http://127.0.0.1:9"));
    assert_eq!(dead.code, 4, "{dead:?}");
    assert!(
        dead.stderr.contains("nothing was written") && !dead.stderr.contains(KEY),
        "{dead:?}"
    );
    assert!(lab.bytes() == before);

    // Ctrl-C while the model thinks.
    let gate = Gate::closed();
    lab.gemini
        .next(GeminiTurn::text(&ctxfold_summary()).held_by(&gate));
    let mut command = lab.command(&none[..4]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(
        lab.gemini
            .log()
            .wait_for(MINUTE, |r| r.kind == "conversation")
            .is_some()
    );
    assert!(succeeds(&["kill", "-INT", &child.id().to_string()]));
    let output = child.wait_with_output().unwrap();
    gate.open();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    // The question was under way, so what the free tier does with it is said too.
    assert_eq!(
        said,
        "ctxfold: interrupted; nothing was written\n  \
         hint: free tier: the provider may read and train on what was sent\n"
    );
    assert!(lab.bytes() == before);
    assert_eq!(lab.journal(), "");

    // Without a key nothing is sent, and it is the user's to give one.
    let sent = lab.gemini.log().all().len();
    let keyless = ran(lab.command(&none).env_remove("CTXFOLD_GEMINI_API_KEY"));
    assert_eq!(keyless.code, 1, "{keyless:?}");
    assert!(
        keyless.stderr.contains("hint: set CTXFOLD_GEMINI_API_KEY"),
        "{keyless:?}"
    );
    assert_eq!(lab.gemini.log().all().len(), sent);
}

on_each_version!(
    a_live_session_is_left_alone,
    every_reason_to_refuse_changes_nothing,
    a_model_that_fails_leaves_no_trace_and_no_key,
);
