//! The client's own writer lease: an empty file that whoever has the thread loaded keeps locked.
//! Also what tells that a client without leases, older than 0.147, is at work.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::chain::is_uuid;
use crate::{Error, ErrorKind, files};

/// How long a client may hold the coordination lock before we give up: it does so for
/// milliseconds.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// The writer lease of one thread. Dropping it lets go of the lock and leaves the file behind, as
/// a killed client does; [`Lease::release`] removes the file too.
#[derive(Debug)]
pub(crate) struct Lease {
    folder: PathBuf,
    path: PathBuf,
    file: File,
}

impl Lease {
    /// Takes the lease.
    pub(crate) fn take(home: &Path, thread: &str) -> Result<Lease, Error> {
        let folder = folder(home);
        let path = lock_of(&folder, thread).ok_or_else(|| {
            let text = format!("the identifier {thread:?} is no UUID, so it names no lock");
            Error::new(ErrorKind::WrongThread, text)
        })?;
        fs::create_dir_all(&folder)
            .map_err(|e| Error::io(&folder, "failed to make the folder of the locks", e))?;
        let coordination = coordinate(&folder)?;
        for _ in 0..TRIES {
            let file = open(&path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(
                    Error::new(ErrorKind::LeaseHeld, "a running client holds this thread")
                        .at(&path),
                );
            }
            // Somebody may have removed the file between opening and locking it.
            if is_at(&file, &path) {
                drop(coordination);
                return Ok(Lease { folder, path, file });
            }
        }
        Err(Error::new(ErrorKind::CoordinationBusy, "the lock keeps being replaced").at(&path))
    }

    /// Gives the lease back as the client does.
    pub(crate) fn release(self) {
        if let Ok(coordination) = coordinate(&self.folder) {
            if is_at(&self.file, &self.path) {
                drop(fs::remove_file(&self.path));
            }
            drop(self);
            drop(coordination);
        }
    }
}

/// Whether a running client holds the thread. Takes nothing and makes nothing: it is asked under
/// the coordination lock, for which a client waits, so that no client's own attempt fails.
pub(crate) fn is_held(home: &Path, thread: &str) -> bool {
    let folder = folder(home);
    let Some(path) = lock_of(&folder, thread) else {
        return false;
    };
    let Ok(file) = files::open_own(OpenOptions::new().read(true), &path) else {
        return false;
    };
    let coordination = folder.join(COORDINATION);
    let coordination = match files::open_own(OpenOptions::new().read(true), &coordination) {
        // Whoever takes or drops a lease for so long is at work.
        Ok(held) if wait_for(&held).is_err() => return true,
        other => other.ok(),
    };
    let held = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
    drop(file);
    drop(coordination);
    held
}

const COORDINATION: &str = ".coordination.lock";

fn folder(home: &Path) -> PathBuf {
    home.join("thread-writer-locks")
}

/// The lock of a thread. The identifier comes from a file and becomes a part of a path.
fn lock_of(folder: &Path, thread: &str) -> Option<PathBuf> {
    is_uuid(thread).then(|| folder.join(format!("{thread}.lock")))
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let ours = file.metadata().map(|m| (m.dev(), m.ino()));
    let there = fs::symlink_metadata(path).map(|m| (m.dev(), m.ino()));
    matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
}

fn open(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    files::open_own(&mut options, path).map_err(|e| Error::io(path, "failed to open the lock", e))
}

fn coordinate(folder: &Path) -> Result<File, Error> {
    let path = folder.join(COORDINATION);
    let file = open(&path)?;
    match wait_for(&file) {
        Ok(()) => Ok(file),
        Err(error) => Err(error.at(&path)),
    }
}

/// Takes the coordination lock, which nobody holds for long.
fn wait_for(file: &File) -> Result<(), Error> {
    for _ in 0..TRIES {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(());
        }
        pause();
    }
    Err(Error::new(
        ErrorKind::CoordinationBusy,
        "a client is taking or dropping a lease",
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate that waits, for milliseconds"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Whether another process has the file open for writing; `None` where the system does not tell.
pub(crate) fn has_writer(path: &Path) -> Option<bool> {
    let path = fs::canonicalize(path).ok()?;
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").ok()?;
    let mut told = false;
    for process in processes.filter_map(Result::ok) {
        let name = process.file_name();
        let name = name.to_string_lossy();
        if !name.bytes().all(|b| b.is_ascii_digit()) || name == own {
            continue;
        }
        let Ok(open) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        told = true;
        for entry in open.filter_map(Result::ok) {
            if fs::read_link(entry.path()).is_ok_and(|target| target == path) {
                let info = process.path().join("fdinfo").join(entry.file_name());
                if fs::read_to_string(info).map_or(true, |text| is_for_writing(&text)) {
                    return Some(true);
                }
            }
        }
    }
    told.then_some(false)
}

/// Whether the flags in a descriptor's description allow writing.
fn is_for_writing(fdinfo: &str) -> bool {
    fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_none_or(|flags| flags & 0b11 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = "01a22eb2-072d-76f3-a271-8cf7acd69144";

    #[test]
    fn a_lease_is_held_once_and_its_file_goes_with_it() {
        let home = tempfile::tempdir().unwrap();
        let lease = Lease::take(home.path(), THREAD).unwrap();
        assert!(is_held(home.path(), THREAD));
        let again = Lease::take(home.path(), THREAD).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::LeaseHeld);
        lease.release();
        assert!(!is_held(home.path(), THREAD));
        let left: Vec<_> = fs::read_dir(folder(home.path()))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(left, [".coordination.lock"]);
    }

    #[test]
    fn a_file_that_a_killed_client_left_is_no_lease() {
        let home = tempfile::tempdir().unwrap();
        drop(Lease::take(home.path(), THREAD).unwrap());
        assert!(folder(home.path()).join(format!("{THREAD}.lock")).exists());
        assert!(!is_held(home.path(), THREAD));
        Lease::take(home.path(), THREAD).unwrap().release();
    }

    #[test]
    fn a_busy_coordination_lock_is_refused() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder(home.path())).unwrap();
        let held = coordinate(&folder(home.path())).unwrap();
        let error = Lease::take(home.path(), THREAD).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CoordinationBusy);
        drop(held);
        Lease::take(home.path(), THREAD).unwrap().release();
    }

    #[test]
    fn an_identifier_that_is_no_uuid_names_no_lock() {
        let home = tempfile::tempdir().unwrap();
        let victim = home.path().join("proj/Cargo.lock");
        fs::create_dir_all(victim.parent().unwrap()).unwrap();
        fs::write(&victim, "precious").unwrap();
        for id in [
            "../proj/Cargo",
            "",
            "01a22eb2",
            "../../../../../../../../../../etc/pw",
        ] {
            let error = Lease::take(home.path(), id).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WrongThread, "{id:?}");
            assert!(!is_held(home.path(), id));
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!folder(home.path()).exists(), "nothing was made either");
    }

    /// A pipe would hang, and a link would lock and remove what somebody else owns.
    #[test]
    fn only_a_file_is_a_lock() {
        for planted in ["link", "pipe"] {
            for name in [format!("{THREAD}.lock"), COORDINATION.to_owned()] {
                let home = tempfile::tempdir().unwrap();
                let target = home.path().join("target");
                fs::write(&target, "precious").unwrap();
                fs::create_dir_all(folder(home.path())).unwrap();
                let path = folder(home.path()).join(&name);
                if planted == "link" {
                    std::os::unix::fs::symlink(&target, &path).unwrap();
                } else {
                    let mode = rustix::fs::Mode::from_bits_truncate(0o600);
                    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
                }
                let error = Lease::take(home.path(), THREAD).unwrap_err();
                assert_eq!(error.path(), Some(path.as_path()), "{planted} {name}");
                assert!(!is_held(home.path(), THREAD));
                assert!(fs::symlink_metadata(&path).is_ok(), "{planted} {name}");
                assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
            }
        }
    }

    /// A client takes the coordination lock and then tries its lease once. It must never find the
    /// probe there.
    #[test]
    fn asking_is_done_under_the_coordination_lock() {
        let home = tempfile::tempdir().unwrap();
        drop(Lease::take(home.path(), THREAD).unwrap());
        let coordination = coordinate(&folder(home.path())).unwrap();
        let asking = std::thread::scope(|scope| {
            let asked = scope.spawn(|| is_held(home.path(), THREAD));
            let lock = open(&folder(home.path()).join(format!("{THREAD}.lock"))).unwrap();
            for _ in 0..200 {
                flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
                flock(&lock, FlockOperation::Unlock).unwrap();
                std::thread::yield_now();
            }
            drop(coordination);
            asked.join().unwrap()
        });
        assert!(!asking);
    }

    #[test]
    fn flags_say_who_writes() {
        assert!(is_for_writing("pos:\t0\nflags:\t0102001\n"));
        assert!(is_for_writing("flags:\t02\n"));
        assert!(!is_for_writing("pos:\t0\nflags:\t0100000\nmnt_id:\t1\n"));
    }
}
