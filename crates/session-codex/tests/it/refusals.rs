//! Every refusal: the reason, the way out, and that nothing was changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ctxfold_session_codex::{CommitOptions, Error, ErrorKind, Thread};
use rustix::fs::{FlockOperation, flock};

use crate::common::{Home, push, stamp, summary};

fn attempt(home: &Home, options: &CommitOptions) -> Result<(), Error> {
    let thread = Thread::open(&home.store(), &home.rollout())?;
    let append = thread.prepare(&summary(thread.transcript(), "S"), &stamp())?;
    append.commit(options).map(drop)
}

#[track_caller]
fn refused(home: &Home, kind: ErrorKind, options: &CommitOptions) {
    let before = home.bytes();
    let error = attempt(home, options).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.is_refusal());
    assert!(error.hint().is_some(), "{error} has no way out");
    assert!(home.bytes() == before, "{kind:?} changed a file");
}

fn simple(name: &str, kind: ErrorKind, spoil: impl FnOnce(&Home)) {
    let home = Home::new(name);
    spoil(&home);
    refused(&home, kind, &CommitOptions::default());
}

#[test]
fn archived() {
    simple("archived-0.171.0", ErrorKind::Archived, |_| {});
}

#[test]
fn compressed() {
    simple("compressed-0.171.0", ErrorKind::Compressed, |_| {});
}

#[test]
fn missing() {
    simple("paginated-0.171.0", ErrorKind::Missing, |home| {
        fs::remove_file(home.rollout()).unwrap();
        assert!(home.store().entries().0[0].missing);
    });
}

#[test]
fn read_only() {
    simple("paginated-0.171.0", ErrorKind::ReadOnly, |home| {
        fs::set_permissions(home.rollout(), fs::Permissions::from_mode(0o444)).unwrap();
    });
}

#[test]
fn unknown_history_mode() {
    simple("legacy-0.171.0", ErrorKind::UnknownHistoryMode, |home| {
        let path = home.rollout();
        let text = fs::read_to_string(&path).unwrap();
        let text = text.replacen(
            "\"history_mode\":\"legacy\"",
            "\"history_mode\":\"future\"",
            1,
        );
        fs::write(&path, text).unwrap();
    });
}

#[test]
fn the_last_line_has_no_ordinal() {
    simple("paginated-0.171.0", ErrorKind::MissingOrdinal, |home| {
        push(
            &home.rollout(),
            b"{\"timestamp\":\"2026-12-01T00:00:00.000Z\",\"type\":\"event_msg\",\"payload\":{\"type\":\"x\"}}\n",
        );
    });
}

#[test]
fn a_torn_tail_that_a_client_without_leases_may_be_writing() {
    simple("legacy-0.144.6", ErrorKind::TornTail, |home| {
        push(&home.rollout(), b"{\"timestamp\":\"2026");
    });
}

#[test]
fn a_held_lease() {
    let home = Home::new("paginated-0.171.0");
    let folder = home.path.join("thread-writer-locks");
    fs::create_dir_all(&folder).unwrap();
    let id = home.open().meta().id.clone();
    let lock = fs::File::create(folder.join(format!("{id}.lock"))).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    refused(&home, ErrorKind::LeaseHeld, &CommitOptions::default());
    let check = ctxfold_session_codex::check(&home.store(), &home.rollout()).unwrap();
    assert!(check.iter().any(|f| f.code == "lease-held"));
    drop(lock);
    attempt(&home, &CommitOptions::default()).unwrap();
}

/// A client at work moves the store between two looks at it: the client is named, not the store.
#[test]
fn a_held_lease_while_the_store_is_written() {
    let home = Home::new("paginated-0.171.0");
    let folder = home.path.join("thread-writer-locks");
    fs::create_dir_all(&folder).unwrap();
    let id = home.open().meta().id.clone();
    let lock = fs::File::create(folder.join(format!("{id}.lock"))).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let sql = "UPDATE thread_history_projection_state
               SET next_rollout_byte_offset = next_rollout_byte_offset + 5";
    home.history().execute(sql, []).unwrap();
    refused(&home, ErrorKind::LeaseHeld, &CommitOptions::default());
    drop(lock);
    refused(
        &home,
        ErrorKind::ProjectionBroken,
        &CommitOptions::default(),
    );
}

#[test]
fn a_busy_coordination_lock() {
    let home = Home::new("paginated-0.171.0");
    let folder = home.path.join("thread-writer-locks");
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::File::create(folder.join(".coordination.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    refused(
        &home,
        ErrorKind::CoordinationBusy,
        &CommitOptions::default(),
    );
}

#[test]
fn a_client_without_leases_has_the_file_open() {
    let home = Home::new("legacy-0.144.6");
    let path = home.rollout();
    // A process that keeps the rollout open for appending until its input ends.
    let script = format!("exec 3>>'{}'; echo open; read _", path.display());
    let mut child = std::process::Command::new("/bin/sh")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    refused(&home, ErrorKind::Live, &CommitOptions::default());
    drop(child.stdin.take());
    assert!(child.wait().is_ok());
    attempt(&home, &CommitOptions::default()).unwrap();
}

#[test]
fn the_file_grew_meanwhile() {
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    push(thread.path(), b"{}\n");
    let before = home.bytes();
    let error = append.commit(&CommitOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(home.bytes() == before);
}

#[test]
fn nothing_to_gain() {
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let plan =
        ctxfold_transcript::Plan::keep_all(thread.transcript(), ctxfold_transcript::Mode::Mask);
    let error = thread.prepare(&plan, &stamp()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NothingToGain);
}

#[test]
fn a_projection_that_disagrees() {
    let cases: [(&str, ErrorKind, &str); 4] = [
        (
            "next_rollout_byte_offset - 200",
            ErrorKind::ProjectionBroken,
            "projection-mid-line",
        ),
        (
            "next_rollout_byte_offset + 5",
            ErrorKind::ProjectionBroken,
            "projection-past-end",
        ),
        ("0", ErrorKind::ProjectionBroken, "projection-ordinal"),
        (
            "next_rollout_byte_offset, next_rollout_ordinal = next_rollout_ordinal - 1",
            ErrorKind::ProjectionBroken,
            "projection-ordinal",
        ),
    ];
    for (set, kind, code) in cases {
        let home = Home::new("paginated-0.171.0");
        let sql =
            format!("UPDATE thread_history_projection_state SET next_rollout_byte_offset = {set}");
        home.history().execute(&sql, []).unwrap();
        let findings = ctxfold_session_codex::check(&home.store(), &home.rollout()).unwrap();
        assert!(
            findings.iter().any(|f| f.code == code),
            "{set}: {findings:?}"
        );
        refused(&home, kind, &CommitOptions::default());
    }
}

#[test]
fn a_projection_that_lags_behind_is_not_brought_forward_by_us() {
    let home = Home::new("paginated-0.171.0");
    let thread = home.open();
    let append = thread
        .prepare(&summary(thread.transcript(), "S"), &stamp())
        .unwrap();
    append.commit(&CommitOptions::default()).unwrap();
    let findings = home.open().findings().to_vec();
    assert!(
        findings.iter().any(|f| f.code == "projection-behind"),
        "{findings:?}"
    );
    let before = home.bytes();
    let undo = home.open().prepare_undo(&stamp()).unwrap();
    let error = undo
        .commit(&CommitOptions::default().project(true))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProjectionBehind);
    assert!(home.bytes() == before);
}

#[test]
fn an_unknown_schema() {
    for change in [
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'future', 1, x'00', 0)",
        "UPDATE _sqlx_migrations SET success = 0 WHERE version = 3",
        "DELETE FROM _sqlx_migrations WHERE version = 5",
        "ALTER TABLE thread_items ADD COLUMN future TEXT",
    ] {
        let home = Home::new("paginated-0.171.0");
        home.history().execute(change, []).unwrap();
        let findings = home.open().findings().to_vec();
        assert!(
            findings.iter().any(|f| f.code == "schema-unknown"),
            "{change}"
        );
        refused(
            &home,
            ErrorKind::UnknownSchema,
            &CommitOptions::default().project(true),
        );
        // Without the projection nothing of the store is written, so its schema does not matter.
        attempt(&home, &CommitOptions::default()).unwrap();
    }
}

#[test]
fn a_store_that_somebody_writes_to() {
    let home = Home::new("paginated-0.171.0");
    let other = home.history();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    refused(
        &home,
        ErrorKind::StoreBusy,
        &CommitOptions::default().project(true),
    );
}

#[test]
fn a_file_that_is_no_rollout() {
    let home = Home::new("paginated-0.171.0");
    let path = home.path.join("other.jsonl");
    for text in [
        "",
        "\n",
        "not json\n",
        "{\"type\":\"event_msg\",\"payload\":{}}\n",
    ] {
        fs::write(&path, text).unwrap();
        let error = Thread::open(&home.store(), &path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotAThread, "{text:?}");
    }
    let error = Thread::open(&home.store(), Path::new("/nowhere/x.jsonl")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);
}
