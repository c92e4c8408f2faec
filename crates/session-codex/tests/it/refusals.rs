//! Every refusal: the reason, the way out, and that nothing was changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ctxfold_session_codex::{CommitOptions, Error, ErrorKind, Query, Thread};
use rustix::fs::{FlockOperation, flock};

use crate::common::{Home, NOW_MS, push, rest as rest_since, stamp, summary};

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
        rest_since(&home.rollout());
    });
}

/// The lease of the home's thread, as a running client holds it.
fn held(home: &Home) -> fs::File {
    let folder = home.path.join("thread-writer-locks");
    fs::create_dir_all(&folder).unwrap();
    let id = home.open().meta().id.clone();
    let lock = fs::File::create(folder.join(format!("{id}.lock"))).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    lock
}

#[test]
fn a_held_lease() {
    let home = Home::new("paginated-0.171.0");
    let lock = held(&home);
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
    let lock = held(&home);
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
    assert!(home.open().is_live(NOW_MS));
    let early = home.open().writable(NOW_MS).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::Live, "before a model is asked");
    drop(child.stdin.take());
    assert!(child.wait().is_ok());
    assert!(!home.open().is_live(NOW_MS));
    attempt(&home, &CommitOptions::default()).unwrap();
}

/// The system does not show every process: a minute of rest is asked for too. Our own append does
/// not begin it anew.
#[test]
fn a_client_without_leases_may_have_changed_the_file_a_moment_ago() {
    let home = Home::new("legacy-0.144.6");
    let changed = |ago: u64| {
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(NOW_MS as u64 - ago);
        let file = fs::File::options().append(true).open(home.rollout());
        file.unwrap().set_modified(at).unwrap();
    };
    changed(30_000);
    assert!(home.open().is_live(NOW_MS));
    refused(&home, ErrorKind::Live, &CommitOptions::default());
    changed(70_000);
    assert!(!home.open().is_live(NOW_MS));
    attempt(&home, &CommitOptions::default()).unwrap();
    let undo = home.open().prepare_undo(&stamp()).unwrap();
    undo.commit(&CommitOptions::default()).unwrap();
    // A thread with leases is left to them.
    let home = Home::new("paginated-0.171.0");
    push(&home.rollout(), b"");
    assert!(!home.open().is_live(NOW_MS));
}

/// The first line with another text in it.
fn respell(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.contains(from));
    fs::write(path, format!("{}\n{rest}", first.replacen(from, to, 1))).unwrap();
    rest_since(path);
}

#[test]
fn an_identifier_that_is_not_the_files_own() {
    let id = "01a22eb2-072d-76f3-a271-8cf7acd69144";
    for other in [
        "../../proj/Cargo",
        "",
        "01a22eb2-072d-76f3-a271-8cf7acd69145",
    ] {
        let home = Home::new("paginated-0.171.0");
        let victim = home.path.join("proj/Cargo.lock");
        fs::create_dir_all(home.path.join("proj")).unwrap();
        fs::write(&victim, "precious").unwrap();
        let path = home.rollout();
        let own = |id: &str| format!("\"id\":\"{id}\"");
        respell(&path, &own(id), &own(other));
        let thread = Thread::open(&home.store(), &path).unwrap();
        let error = thread.writable(NOW_MS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongThread, "{error}");
        let plan = summary(thread.transcript(), "S");
        let error = thread.prepare(&plan, &stamp()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongThread, "{error}");
        assert!(error.hint().is_some() && !thread.is_held());
        let found = ctxfold_session_codex::check(&home.store(), &path).unwrap();
        assert!(found.iter().any(|f| f.code == "thread-mismatch"));
        // The store names this file under the other identifier.
        let error = home.store().find(&Query::Text(id.to_owned())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongThread, "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!home.path.join("thread-writer-locks").exists());
    }
}

const PARENT: &str = "01a22eb2-072d-76f3-a271-8cf7acd69144";

fn based_on(id: &str) -> String {
    format!("\"history_base\":{{\"thread_id\":\"{id}\"")
}

/// A name and what it does to a home.
type Change<'a> = (&'a str, &'a dyn Fn(&Home));

/// Without the conversation before it a fork must not be written: the next request would be
/// without it.
#[test]
fn what_a_fork_hangs_on_is_gone() {
    let parent = |home: &Home| {
        let files = home.store().entries().0;
        files
            .into_iter()
            .map(|e| e.path)
            .find(|p| *p != home.rollout())
            .unwrap()
    };
    let changes: [Change; 6] = [
        ("missing", &|home| fs::remove_file(parent(home)).unwrap()),
        ("shorter", &|home| {
            let file = fs::File::options().write(true).open(parent(home)).unwrap();
            file.set_len(9000).unwrap();
        }),
        ("inside a line", &|home| {
            respell(&home.rollout(), "35723", "35700");
        }),
        ("itself", &|home| {
            let own = home.open().meta().id.clone();
            respell(&home.rollout(), &based_on(PARENT), &based_on(&own));
        }),
        ("no UUID", &|home| {
            respell(
                &home.rollout(),
                &based_on(PARENT),
                &based_on("8cf7acd69144"),
            );
        }),
        ("outside", &|home| {
            let there = parent(home);
            let outside = home.path.join("outside.jsonl");
            fs::rename(&there, &outside).unwrap();
            std::os::unix::fs::symlink(&outside, &there).unwrap();
        }),
    ];
    for (what, change) in changes {
        let home = Home::new("forked-0.171.0");
        change(&home);
        let found = ctxfold_session_codex::check(&home.store(), &home.rollout()).unwrap();
        assert!(
            found.iter().any(|f| f.code == "base-missing"),
            "{what}: {found:?}"
        );
        let found = ctxfold_session_codex::glance(&home.store(), &home.rollout()).unwrap();
        assert!(
            found.iter().any(|f| f.code == "base-missing"),
            "{what}: {found:?}"
        );
        refused(&home, ErrorKind::BaseMissing, &CommitOptions::default());
    }
    // Behind a compaction of its own a fork needs nobody, but an undo does.
    let home = Home::new("forked-0.171.0");
    attempt(&home, &CommitOptions::default()).unwrap();
    fs::remove_file(parent(&home)).unwrap();
    let thread = home.open();
    thread.writable(NOW_MS).unwrap();
    let error = thread.prepare_undo(&stamp()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BaseMissing, "{error}");
}

/// Ordinals at the edge of what there is: told, refused, and no arithmetic goes wrong.
#[test]
fn ordinals_that_nothing_can_follow() {
    for ordinal in [u64::MAX, i64::MAX as u64, i64::MAX as u64 - 3] {
        simple("paginated-0.171.0", ErrorKind::MissingOrdinal, |home| {
            let row = format!(
                "{{\"timestamp\":\"2026-12-01T00:00:00.000Z\",\"ordinal\":{ordinal},\"type\":\"event_msg\",\"payload\":{{\"type\":\"x\"}}}}\n"
            );
            push(&home.rollout(), row.as_bytes());
            let found = ctxfold_session_codex::check(&home.store(), &home.rollout()).unwrap();
            assert!(found.iter().any(|f| f.code == "ordinal-gap"), "{found:?}");
            ctxfold_session_codex::glance(&home.store(), &home.rollout()).unwrap();
        });
    }
    let home = Home::new("forked-0.171.0");
    respell(
        &home.rollout(),
        "\"end_ordinal_exclusive\":55",
        "\"end_ordinal_exclusive\":0",
    );
    let found = ctxfold_session_codex::check(&home.store(), &home.rollout()).unwrap();
    assert!(found.iter().any(|f| f.code == "ordinal-gap"), "{found:?}");
}

/// A pipe, a link to nothing or a folder where a rollout or a store should be: nobody waits.
#[test]
fn what_is_no_file_is_never_waited_for() {
    let plant = |path: &Path, what: &str| match what {
        "pipe" => {
            let mode = rustix::fs::Mode::from_bits_truncate(0o600);
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        }
        "device" => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        "folder" => fs::create_dir(path).unwrap(),
        _ => std::os::unix::fs::symlink("/nowhere", path).unwrap(),
    };
    for what in ["pipe", "device", "folder", "link"] {
        let home = Home::new("paginated-0.171.0");
        let whole = home.store().entries().0.len();
        let day = home.rollout().parent().unwrap().to_owned();
        let other =
            day.join("rollout-2026-12-01T00-00-00-01a22eb2-072d-76f3-a271-8cf7acd60000.jsonl");
        plant(&other, what);
        plant(
            &day.join(format!("{}.zst", other.file_name().unwrap().display())),
            what,
        );
        assert_eq!(home.store().entries().0.len(), whole, "{what}");
        assert!(ctxfold_session_codex::fill(&other).is_err());
        assert!(ctxfold_session_codex::glance(&home.store(), &other).is_err());
        // In the place of what the store names.
        let path = home.rollout();
        fs::remove_file(&path).unwrap();
        plant(&path, what);
        assert!(home.store().entries().0[0].missing, "{what}");
        let error = Thread::open(&home.store(), &path).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::NotAThread | ErrorKind::Missing),
            "{error}"
        );
        // In the place of a store and of the settings.
        for name in ["state_9.sqlite", "thread_history_9.sqlite"] {
            plant(&home.path.join(name), what);
        }
        fs::remove_file(home.path.join("config.toml")).unwrap();
        plant(&home.path.join("config.toml"), what);
        assert_eq!(home.store().entries().0.len(), whole, "{what}");
    }
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
        "UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 3",
        "ALTER TABLE thread_turns RENAME TO gone",
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

/// A table that is gone, and a newer store that is empty: told; only `--project` needs it.
#[test]
fn a_store_without_a_projection() {
    let spoil: [Change; 3] = [
        ("store-malformed", &|home| {
            let sql = "DROP TABLE thread_history_projection_state";
            home.history().execute(sql, []).unwrap();
        }),
        ("schema-unknown", &|home| {
            fs::write(home.path.join("thread_history_2.sqlite"), "").unwrap();
        }),
        ("store-malformed", &|home| {
            fs::write(
                home.path.join("thread_history_2.sqlite"),
                "no store".repeat(99),
            )
            .unwrap();
        }),
    ];
    for (code, spoil) in spoil {
        let home = Home::new("paginated-0.171.0");
        spoil(&home);
        let findings = home.open().findings().to_vec();
        assert!(
            findings.iter().any(|f| f.code == code),
            "{code}: {findings:?}"
        );
        let before = home.bytes();
        let error = attempt(&home, &CommitOptions::default().project(true)).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::UnknownSchema | ErrorKind::Store),
            "{error}"
        );
        assert!(home.bytes() == before);
        attempt(&home, &CommitOptions::default()).unwrap();
    }
    // An empty newer store of threads: the rollouts tell.
    let home = Home::new("paginated-0.171.0");
    let path = home.rollout();
    fs::write(home.path.join("state_6.sqlite"), "").unwrap();
    let (entries, findings) = home.store().entries();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].path, path);
    assert_eq!(findings[0].code, "store-malformed");
}

/// What the store does not list, the client resumes all the same.
#[test]
fn a_thread_that_the_store_does_not_list() {
    let home = Home::new("forked-0.171.0");
    let all = home.store().entries().0;
    let state = rusqlite::Connection::open(home.path.join("state_5.sqlite")).unwrap();
    let sql = "DELETE FROM threads WHERE id = ?1";
    assert_eq!(state.execute(sql, [&all[0].id]).unwrap(), 1);
    let (now, findings) = home.store().entries();
    assert!(findings.is_empty(), "{findings:?}");
    let ids = |entries: &[ctxfold_session_codex::Entry]| {
        let mut ids: Vec<_> = entries
            .iter()
            .map(|e| (e.id.clone(), e.path.clone()))
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&now), ids(&all));
    let found = home.store().find(&Query::Text(all[0].id.clone())).unwrap();
    let thread = Thread::open(&home.store(), &found.path).unwrap();
    thread.writable(NOW_MS).unwrap();
    // Where the store points elsewhere, nothing is guessed.
    let sql = "UPDATE threads SET rollout_path = '/nowhere/rollout.jsonl'";
    state.execute(sql, []).unwrap();
    let (now, _) = home.store().entries();
    assert_eq!(now.iter().filter(|e| e.missing).count(), 1);
    assert_eq!(now.len(), all.len());
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
