//! Every reason to refuse: exit code 3, what is wrong, the way out, and not a byte changed. And
//! that the way out leads out.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ctxfold_test_support::{
    Client, Gate, GeminiTurn, ResponsesTurn, clients, poll, require_client,
};
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use crate::lab::{Lab, SUMMARY, assert_one, on_each_version};

/// A thread of the client's with something to fold, and plenty of room.
fn made(client: &Client) -> Lab {
    Lab::new(client, 120_000)
}

fn push(path: &Path, text: &str) {
    let mut bytes = fs::read(path).unwrap();
    bytes.extend_from_slice(text.as_bytes());
    fs::write(path, bytes).unwrap();
}

/// The bytes of a rollout that the client has stopped writing: a turn is reported as completed
/// before its last lines are there.
fn at_rest(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut since = Instant::now();
    let rest = poll(Duration::from_mins(1), || {
        let now = fs::read(path).unwrap();
        if now != bytes {
            (bytes, since) = (now, Instant::now());
        }
        (since.elapsed() > Duration::from_millis(500)).then_some(())
    });
    assert!(rest.is_some(), "the client goes on writing");
    bytes
}

/// The client has the thread loaded, at rest and in the middle of a turn.
fn a_running_client_has_the_thread(version: &str) {
    let client = require_client!(codex, version);
    let lab = made(&client);
    let way_out = "close Codex";
    let reason = if version == clients::CODEX[2] {
        "has this thread open"
    } else {
        "holds this thread"
    };
    let mut server = lab.home.app_server();
    let params = json!({"threadId": lab.thread});
    server.request("thread/resume", params).unwrap();
    server.turn(&lab.thread, "hold it");
    let arguments = lab.compact_arguments("mask");
    // The client writes its own stores meanwhile; the rollout it leaves alone once it is at rest.
    let before = at_rest(&lab.rollout());
    lab.fold(&arguments).assert_refuses(reason, way_out);
    assert!(fs::read(lab.rollout()).unwrap() == before);
    let gate = Gate::closed();
    lab.mock.next(ResponsesTurn::text("slow").held_by(&gate));
    let input = json!([{"type": "text", "text": "go slowly"}]);
    let params = json!({"threadId": lab.thread, "input": input});
    server.request("turn/start", params).unwrap();
    let sent = |r: &ctxfold_test_support::Recorded| r.holds("go slowly");
    assert!(
        lab.mock
            .log()
            .wait_for(Duration::from_mins(1), sent)
            .is_some()
    );
    let before = fs::read(lab.rollout()).unwrap();
    lab.fold(&arguments).assert_refuses(reason, way_out);
    assert!(fs::read(lab.rollout()).unwrap().starts_with(&before));
    gate.open();
    server.wait_for("turn/completed", |params| params["threadId"] == lab.thread);
    drop(server);
    lab.compact("mask");
    assert_one(&lab.turn("NEXT"), &["hold it"], &["OLD-41"]);
    lab.assert_exact();
}

on_each_version!(a_running_client_has_the_thread);

#[test]
fn somebody_takes_or_drops_a_lease() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    let folder = lab.home.codex_home().join("thread-writer-locks");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join(".coordination.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "taking or dropping a lease", "try again");
    drop(lock);
    lab.compact("mask");
}

#[test]
fn archived() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    let run = lab.home.run(&["archive", &lab.thread]);
    assert!(run.status.success(), "{}", run.stderr);
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "archived", "codex unarchive");
    let run = lab.home.run(&["unarchive", &lab.thread]);
    assert!(run.status.success(), "{}", run.stderr);
    lab.compact("mask");
    assert_one(&lab.turn("NEXT"), &["THIRD"], &["OLD-41"]);
}

/// The way out is the client's own: it unpacks the rollout when it resumes.
#[test]
fn compressed() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = Lab::of_fixture(&client, "compressed-0.171.0");
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "compressed", "resume the thread in Codex");
    lab.turn("FIRST: run it");
    lab.turn("SHORT");
    lab.compact("mask");
    assert_one(&lab.turn("NEXT"), &["SHORT"], &["OLD-41"]);
    lab.assert_exact();
}

#[test]
fn missing() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    let path = lab.rollout();
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "rollout", "put the rollout back");
    fs::rename(&aside, &path).unwrap();
    lab.compact("mask");
}

#[test]
fn read_only() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    fs::set_permissions(lab.rollout(), Permissions::from_mode(0o444)).unwrap();
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "read-only", "make the rollout writable");
    fs::set_permissions(lab.rollout(), Permissions::from_mode(0o644)).unwrap();
    lab.compact("mask");
}

#[test]
fn a_history_mode_of_the_future() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    let path = lab.rollout();
    let text = fs::read_to_string(&path).unwrap();
    let (old, new) = (
        "\"history_mode\":\"paginated\"",
        "\"history_mode\":\"futuristic\"",
    );
    let changed = text.replacen(old, new, 1);
    assert_ne!(changed, text);
    fs::write(&path, changed).unwrap();
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "history mode \"futuristic\"", "update ctxfold");
}

/// The client cannot resume such a thread either.
#[test]
fn the_last_line_has_no_ordinal() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    let path = lab.rollout();
    let whole = fs::read(&path).unwrap();
    let line = json!({"timestamp": "2026-12-01T00:00:00.000Z", "type": "event_msg",
        "payload": {"type": "context_compacted"}});
    push(&path, &format!("{line}\n"));
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "no ordinal", "restore the rollout's last line");
    let run = lab.home.prompt("NEXT").resume(&lab.thread).run();
    assert!(!run.output.status.success(), "{}", run.output.stdout);
    fs::write(&path, whole).unwrap();
    lab.compact("mask");
    assert_one(&lab.turn("NEXT"), &["THIRD"], &["OLD-41"]);
}

/// Where clients without leases may be writing the line. With a lease it is ended and left alone.
#[test]
fn a_torn_last_line() {
    let torn = "{\"timestamp\":\"2026-12-01T00:0";
    let client = require_client!(codex, clients::CODEX[2]);
    let lab = made(&client);
    push(&lab.rollout(), torn);
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "torn", "resume the thread in Codex once");
    lab.turn("SHORT");
    lab.compact("mask");
    assert_one(&lab.turn("NEXT"), &["THIRD"], &["OLD-41"]);

    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    push(&lab.rollout(), torn);
    lab.compact("mask");
    assert_one(&lab.turn("NEXT"), &["THIRD"], &["OLD-41"]);
}

/// The rollout grows while the model thinks.
#[test]
fn the_rollout_grew_meanwhile() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    let gate = Gate::closed();
    lab.gemini.next(GeminiTurn::text(SUMMARY).held_by(&gate));
    let child = lab
        .command(&lab.compact_arguments("summary"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = lab.gemini.log().wait_for(Duration::from_mins(1), |_| true);
    assert!(asked.is_some());
    lab.turn("MEANWHILE");
    let before = lab.bytes();
    gate.open();
    let output = child.wait_with_output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{talk}");
    assert!(talk.contains("changed since it was read"), "{talk}");
    assert!(talk.contains("hint: try again"), "{talk}");
    assert!(lab.bytes() == before);
    lab.compact("summary");
    assert_one(&lab.turn("NEXT"), &["MEANWHILE"], &["OLD-41"]);
    lab.assert_exact();
}

/// A projection that is out of step with its rollout is told, and not made worse.
#[test]
fn the_projection_is_out_of_step() {
    let client = require_client!(codex, clients::CODEX[0]);
    let lab = made(&client);
    let history = lab.home.codex_home().join("thread_history_1.sqlite");
    rusqlite::Connection::open(&history)
        .unwrap()
        .execute_batch(
            "UPDATE thread_history_projection_state
             SET next_rollout_byte_offset = next_rollout_byte_offset - 200;
             PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .unwrap();
    let ran = lab.fold(&["check", "--agent", "codex", &lab.thread]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("codex/projection-mid-line"), "{ran:?}");
    let arguments = lab.compact_arguments("mask");
    lab.assert_refused(&arguments, "line", "move thread_history_1.sqlite away");
    for ending in ["", "-wal", "-shm"] {
        let name = format!("thread_history_1.sqlite{ending}");
        drop(fs::remove_file(lab.home.codex_home().join(name)));
    }
    lab.compact("mask");
    assert_one(&lab.turn("NEXT"), &["THIRD"], &["OLD-41"]);
    lab.assert_exact();
}
