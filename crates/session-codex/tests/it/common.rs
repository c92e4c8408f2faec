//! Fixture homes in temporary folders, plans and stamps.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use ctxfold_session_codex::{Query, Stamp, Store, Thread};
use ctxfold_transcript::{Action, Author, Mode, Outcome, Plan, Transcript};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

/// Where the homes lay when they were made.
const MADE_AT: &str = "/home/dev/lab0/home";

pub(crate) const ALL: [&str; 14] = [
    "archived-0.171.0",
    "compressed-0.171.0",
    "forked-0.171.0",
    "killed-mid-turn-0.171.0",
    "legacy-0.144.6",
    "legacy-0.144.6-compacted",
    "legacy-0.171.0",
    "nearly-full-0.150.1",
    "paginated-0.150.1",
    "paginated-0.171.0",
    "paginated-0.171.0-compacted1",
    "paginated-0.171.0-compacted2",
    "paginated-0.171.0-hand",
    "reverted-0.171.0",
];

/// A copy of a fixture home.
pub(crate) struct Home {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Home {
    pub(crate) fn new(name: &str) -> Home {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("home");
        install(name, &path);
        Home {
            _folder: folder,
            path,
        }
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(&self.path)
    }

    /// The rollout of the newest thread, archived ones too.
    pub(crate) fn rollout(&self) -> PathBuf {
        self.store().entries().0.remove(0).path
    }

    pub(crate) fn open(&self) -> Thread {
        Thread::open(&self.store(), &self.rollout()).unwrap()
    }

    pub(crate) fn history(&self) -> Connection {
        Connection::open(self.path.join("thread_history_1.sqlite")).unwrap()
    }

    /// Every file's bytes but SQLite's side files and the client's locks.
    pub(crate) fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        collect(&self.path, &mut found);
        found.sort();
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "thread-writer-locks" || name.ends_with("-wal") || name.ends_with("-shm") {
            continue;
        }
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
}

/// Copies a fixture home to `path` and sets the absolute paths in its store.
pub(crate) fn install(name: &str, path: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    copy(&from, path);
    let state = Connection::open(path.join("state_5.sqlite")).unwrap();
    let changed = state
        .execute(
            "UPDATE threads SET rollout_path = replace(rollout_path, ?1, ?2)",
            [MADE_AT, &path.to_string_lossy()],
        )
        .unwrap();
    assert!(changed > 0);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            // Fixtures may have been checked out read-only; the copy is for writing.
            fs::write(&target, fs::read(entry.path()).unwrap()).unwrap();
            rest(&target);
        }
    }
}

/// Lets a file rest since an hour before the stamp: a client without leases is known by the time of
/// its last change.
pub(crate) fn rest(path: &Path) {
    let at = UNIX_EPOCH + Duration::from_millis(NOW_MS.unsigned_abs()) - Duration::from_hours(1);
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(at).unwrap();
}

/// The time of every stamp.
pub(crate) const NOW_MS: i64 = 1_796_090_000_000;

/// A stamp whose numbers differ from those of every other stamp.
pub(crate) fn stamp() -> Stamp {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Stamp::new(NOW_MS, || {
        let next = u128::from(NEXT.fetch_add(1, Ordering::Relaxed));
        next.wrapping_mul(0x2545_f491_4f6c_dd1d_1234_5671)
    })
}

pub(crate) const FOLDED: &str = "[folded]";

/// Every answered call before the last user message truncated.
pub(crate) fn mask(transcript: &Transcript) -> Plan {
    decide(transcript, Mode::Mask, &Action::Truncate(FOLDED.into()))
}

/// Every answered call before the last user message dropped.
pub(crate) fn prune(transcript: &Transcript) -> Plan {
    let mut plan = decide(transcript, Mode::Prune, &Action::Drop);
    while let Some(&message) = plan.adjacent_answers(transcript).first() {
        let call = transcript
            .calls
            .iter()
            .position(|c| c.at.message == message)
            .unwrap();
        plan.decide_call(call, Action::Truncate(FOLDED.into()), "pairs");
    }
    plan
}

fn decide(transcript: &Transcript, mode: Mode, action: &Action) -> Plan {
    let mut plan = Plan::keep_all(transcript, mode);
    plan.tail = last_prompt(transcript);
    for (index, call) in transcript.calls.iter().enumerate() {
        if call.outcome != Outcome::Pending && call.at.message < plan.tail {
            plan.decide_call(index, action.clone(), "test");
        }
    }
    plan.measure(transcript);
    plan
}

pub(crate) fn summary(transcript: &Transcript, text: &str) -> Plan {
    let mut plan = Plan::keep_all(transcript, Mode::Summary);
    plan.tail = last_prompt(transcript);
    plan.summary = Some(text.to_owned());
    plan.measure(transcript);
    plan
}

fn last_prompt(transcript: &Transcript) -> usize {
    transcript
        .messages
        .iter()
        .rposition(|m| m.author == Author::User)
        .unwrap()
}

/// The lines of some bytes as JSON.
pub(crate) fn lines(bytes: &[u8]) -> Vec<Value> {
    std::str::from_utf8(bytes)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Appends text to a file.
pub(crate) fn push(path: &Path, text: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    bytes.extend_from_slice(text);
    fs::write(path, bytes).unwrap();
}

/// The thread of a home that holds nothing but this rollout.
pub(crate) fn bare(lines: &[String]) -> (TempDir, Store, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let day = folder.path().join("sessions/2026/12/01");
    fs::create_dir_all(&day).unwrap();
    let path = day.join("rollout-2026-12-01T00-00-00-01a22eb2-072d-76f3-a271-8cf7acd69144.jsonl");
    fs::write(&path, lines.concat()).unwrap();
    let store = Store::new(folder.path());
    assert_eq!(store.find(&Query::Newest(None)).unwrap().path, path);
    (folder, store, path)
}

/// A line of a paginated rollout.
pub(crate) fn line(ordinal: u64, kind: &str, payload: &Value) -> String {
    format!(
        "{{\"timestamp\":\"2026-12-01T00:00:00.000Z\",\"ordinal\":{ordinal},\"type\":\"{kind}\",\"payload\":{payload}}}\n"
    )
}

/// The first line of a paginated rollout.
pub(crate) fn meta_line() -> String {
    let payload = serde_json::json!({"id": "01a22eb2-072d-76f3-a271-8cf7acd69144", "cwd": "/home/dev",
        "cli_version": "0.171.0", "history_mode": "paginated"});
    line(0, "session_meta", &payload)
}
