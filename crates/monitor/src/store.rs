//! The state between two calls, in files: which ones, where, and under which lock.
//!
//! | file | holds |
//! | --- | --- |
//! | `claude-ctx-{id}.json` | the bridge: a statusline's reading |
//! | `claude-ctx-{id}-warned.json` | the last warning |
//! | `claude-ctx-{id}-cycle.json` | the rest of the cycle |
//! | `claude-ctx-{id}-compacted.json` | when the last compaction began |
//! | `claude-ctx-{id}.lock` | nothing; it is locked |
//!
//! Where a folder or somebody else's file lies at one of the three of the state, the name with `-2`
//! before `.json` is used.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::bridge::Bridge;
use crate::error::Error;
use crate::files;
use crate::id::SessionId;
use crate::machine::{Effect, State};
use crate::wire;

/// The largest state file that is read, in bytes.
const LIMIT: u64 = 4096;
const PREFIX: &str = "claude-ctx-";
/// The files of the state: the name, and the one that is used where that cannot be replaced.
const WARNED: [&str; 2] = ["-warned.json", "-warned-2.json"];
const CYCLE: [&str; 2] = ["-cycle.json", "-cycle-2.json"];
const COMPACTED: [&str; 2] = ["-compacted.json", "-compacted-2.json"];
/// How long a call waits for the others of its session.
const PATIENCE: Duration = Duration::from_secs(4);
/// The first and the longest wait between two attempts at a lock.
const WAITS: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(20));
/// How many entries of a folder a collection looks at.
const LOOK_AT: usize = 4096;

/// Where files may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The user's runtime folder, `$XDG_RUNTIME_DIR`. It is used when it is ours and nobody else
    /// can write to it.
    pub runtime: Option<PathBuf>,
    /// The folder for temporary files. Statuslines of other programs write their bridges there.
    pub temp: PathBuf,
}

/// The files of all sessions.
#[derive(Debug, Clone)]
pub struct Store {
    home: PathBuf,
    temp: PathBuf,
}

impl Store {
    /// Chooses the folder: `ctxfold` in the runtime folder, which is made if need be, else the
    /// temporary folder.
    pub fn open(places: &Places) -> Self {
        let home = places.runtime.as_deref().and_then(private_folder);
        Self {
            home: home.unwrap_or_else(|| places.temp.clone()),
            temp: places.temp.clone(),
        }
    }

    /// The folder in which the state lies.
    pub fn folder(&self) -> &Path {
        &self.home
    }

    /// What is remembered of a session. Anything unreadable is as if it were not there.
    pub fn load(&self, id: &SessionId) -> State {
        let read = |names| files::read_own(&self.place(id, names), LIMIT);
        let warned = read(WARNED).and_then(|text| wire::read_warned(&text));
        // The cycle's file has no meaning without the other one, which another monitor may delete.
        let cycle = warned
            .as_ref()
            .and_then(|_| wire::read_cycle(&read(CYCLE)?));
        State {
            warned,
            cycle: cycle.unwrap_or_default(),
            compacted_at: read(COMPACTED).and_then(|text| wire::read_watermark(&text)),
        }
    }

    /// Takes a step from the remembered state to the next, alone among all calls of the session,
    /// and gives the effects, of which [`Effect::DropBridge`] is done already.
    ///
    /// The step may be taken twice and only the second one counts: a step that changes nothing
    /// needs no lock. What cannot be remembered is not said: it would be said at every call.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) when the session's other calls take too long;
    /// one of them does what there is to do.
    pub fn transact(
        &self,
        id: &SessionId,
        step: impl Fn(State) -> (State, Vec<Effect>),
    ) -> Result<Vec<Effect>, Error> {
        let before = self.load(id);
        let (after, effects) = step(before.clone());
        if after == before && effects.is_empty() {
            return Ok(effects);
        }
        let lock = self.lock(id)?;
        let before = self.load(id);
        let (after, mut effects) = step(before.clone());
        if self.save(id, &before, &after).is_err() {
            // A hook must not disturb its host over its own files.
            effects.retain(|effect| *effect == Effect::DropBridge);
        }
        if effects.contains(&Effect::DropBridge) {
            for path in self.bridges(id) {
                let _ = files::remove(&path);
            }
        }
        drop(lock);
        Ok(effects)
    }

    /// The newest bridge of a session: ours, or one that another program's statusline wrote.
    pub fn bridge(&self, id: &SessionId) -> Option<Bridge> {
        self.bridges(id)
            .iter()
            .filter_map(|path| Bridge::parse(&files::read_own(path, LIMIT)?, id))
            .max_by_key(|bridge| bridge.at)
    }

    /// Writes a session's bridge.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn write_bridge(&self, id: &SessionId, bridge: &Bridge) -> Result<(), Error> {
        files::write_atomic(&self.file(id, ".json"), &bridge.encode(id))
    }

    /// Forgets a session: a fresh cycle, no compaction, no bridge.
    ///
    /// # Errors
    /// When a file cannot be deleted, or as [`Store::transact`].
    pub fn forget(&self, id: &SessionId) -> Result<(), Error> {
        let lock = self.lock(id)?;
        let state = [WARNED, CYCLE, COMPACTED].map(|names| self.place(id, names));
        for path in state.iter().chain(&self.bridges(id)) {
            files::remove(path)?;
        }
        // Whoever waits for it looks whether what it got is still there.
        if lock.is_some() {
            files::remove(&self.file(id, ".lock"))?;
        }
        drop(lock);
        Ok(())
    }

    /// The sessions that have a file in the state's folder, in the order of their ids.
    pub fn sessions(&self) -> Vec<SessionId> {
        let suffixes = [WARNED, CYCLE, COMPACTED].concat();
        let mut ids: Vec<_> = self
            .own_files()
            .filter_map(|(name, _)| {
                let rest = name.strip_prefix(PREFIX)?;
                let id = suffixes
                    .iter()
                    .chain(&[".json"])
                    .find_map(|suffix| rest.strip_suffix(suffix))?;
                SessionId::new(id).ok()
            })
            .collect();
        ids.sort_by(|a, b| a.as_str().cmp(b.as_str()));
        ids.dedup();
        ids
    }

    /// Deletes the files of sessions that nobody has touched for `age` seconds before `now`, both
    /// in seconds, and says how many.
    pub fn collect(&self, now: u64, age: u64) -> usize {
        let oldest = i64::try_from(now.saturating_sub(age)).unwrap_or(i64::MAX);
        self.own_files()
            .filter(|(_, changed)| *changed < oldest)
            .filter(|(name, _)| collect_file(&self.home.join(name)).is_ok())
            .count()
    }

    /// Names and times of change of our files in the state's folder.
    fn own_files(&self) -> impl Iterator<Item = (String, i64)> {
        let entries = std::fs::read_dir(&self.home)
            .into_iter()
            .flatten()
            .take(LOOK_AT)
            .flatten();
        entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let kinds = [".json", ".lock", ".tmp"];
            if !name.starts_with(PREFIX) || !kinds.iter().any(|kind| name.ends_with(kind)) {
                return None;
            }
            let stat = files::lstat(&entry.path())?;
            let ours = files::is_ours(&stat) && files::file_type(&stat) == FileType::RegularFile;
            ours.then_some((name, stat.st_mtime))
        })
    }

    fn save(&self, id: &SessionId, before: &State, after: &State) -> Result<(), Error> {
        // What lies there may be unreadable and yet in the way of a fresh cycle.
        if after.warned.is_none() {
            files::remove(&self.place(id, WARNED))?;
            files::remove(&self.place(id, CYCLE))?;
        }
        if let Some(at) = after
            .compacted_at
            .filter(|_| after.compacted_at != before.compacted_at)
        {
            files::write_atomic(&self.place(id, COMPACTED), &wire::write_watermark(at))?;
        }
        if let Some(warned) = &after.warned {
            if after.cycle != before.cycle || before.warned.is_none() {
                let text = wire::write_cycle(&after.cycle);
                files::write_atomic(&self.place(id, CYCLE), &text)?;
            }
            files::write_atomic(&self.place(id, WARNED), &wire::write_warned(warned))?;
        }
        Ok(())
    }

    /// Locks a session. `Ok(None)` when the lock's file cannot be had at all: better a doubled
    /// warning than none.
    fn lock(&self, id: &SessionId) -> Result<Option<File>, Error> {
        let path = self.file(id, ".lock");
        let deadline = Instant::now() + PATIENCE;
        let mut wait = WAITS.0;
        loop {
            let Some(file) = open_lock(&path) else {
                return Ok(None);
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // A collection may have deleted the file that we now hold.
                Ok(()) if is_at(&file, &path) => return Ok(Some(file)),
                Ok(()) | Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(_) => return Ok(None),
            }
            if Instant::now() >= deadline {
                return Err(Error::busy(&path));
            }
            rest(wait);
            wait = (wait * 2).min(WAITS.1);
        }
    }

    fn bridges(&self, id: &SessionId) -> Vec<PathBuf> {
        let mut paths = vec![self.file(id, ".json")];
        if self.temp != self.home {
            paths.push(self.temp.join(format!("{PREFIX}{id}.json")));
        }
        paths
    }

    /// Where a file of the state lies: at its name, unless what lies there is in the way.
    fn place(&self, id: &SessionId, [name, other]: [&str; 2]) -> PathBuf {
        let path = self.file(id, name);
        let is_in_the_way = files::lstat(&path).is_some_and(|stat| {
            files::file_type(&stat) == FileType::Directory || !files::is_ours(&stat)
        });
        if is_in_the_way {
            self.file(id, other)
        } else {
            path
        }
    }

    fn file(&self, id: &SessionId, suffix: &str) -> PathBuf {
        self.home.join(format!("{PREFIX}{id}{suffix}"))
    }
}

/// Waits between two attempts at a lock.
#[expect(
    clippy::disallowed_methods,
    reason = "the crate's one place that sleeps"
)]
fn rest(wait: Duration) {
    std::thread::sleep(wait);
}

/// `ctxfold` in a runtime folder, when both are ours alone.
fn private_folder(runtime: &Path) -> Option<PathBuf> {
    let is_private = |path: &Path, forbidden: u32| {
        files::lstat(path).is_some_and(|stat| {
            files::is_ours(&stat)
                && files::file_type(&stat) == FileType::Directory
                && stat.st_mode & forbidden == 0
        })
    };
    if !runtime.is_absolute() || !is_private(runtime, 0o022) {
        return None;
    }
    let folder = runtime.join("ctxfold");
    // It may be there already; what it is decides.
    let _ = rustix::fs::mkdir(&folder, Mode::RWXU);
    is_private(&folder, 0o077).then_some(folder)
}

/// Deletes an old file. A lock is deleted only by who holds it, so that nobody else does.
fn collect_file(path: &Path) -> Result<(), Error> {
    if path.extension().is_none_or(|extension| extension != "lock") {
        return files::remove(path);
    }
    let lock = open_lock(path).ok_or_else(|| Error::busy(path))?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(|e| Error::io("failed to lock", path, e))?;
    if is_at(&lock, path) {
        files::remove(path)
    } else {
        Err(Error::busy(path))
    }
}

fn open_lock(path: &Path) -> Option<File> {
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).ok()?);
    let stat = rustix::fs::fstat(&file).ok()?;
    (files::is_ours(&stat) && files::file_type(&stat) == FileType::RegularFile).then_some(file)
}

fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Some(there)) = (rustix::fs::fstat(file), files::lstat(path)) else {
        return false;
    };
    (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)
}
