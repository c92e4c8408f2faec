//! The client's own writer lease: an empty file that whoever has the thread loaded keeps locked.
//! Also what tells that a client without leases, older than 0.147, is at work.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::{Error, ErrorKind};

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
    _file: File,
}

impl Lease {
    /// Takes the lease.
    pub(crate) fn take(home: &Path, thread: &str) -> Result<Lease, Error> {
        let folder = folder(home);
        fs::create_dir_all(&folder)
            .map_err(|e| Error::io(&folder, "failed to make the folder of the locks", e))?;
        let coordination = coordinate(&folder)?;
        let path = folder.join(format!("{thread}.lock"));
        for _ in 0..TRIES {
            let file = open(&path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(
                    Error::new(ErrorKind::LeaseHeld, "a running client holds this thread")
                        .at(&path),
                );
            }
            // Somebody may have removed the file between opening and locking it.
            let ours = file.metadata().map(|m| m.ino()).ok();
            if ours.is_some() && ours == fs::metadata(&path).map(|m| m.ino()).ok() {
                drop(coordination);
                return Ok(Lease {
                    folder,
                    path,
                    _file: file,
                });
            }
        }
        Err(Error::new(ErrorKind::CoordinationBusy, "the lock keeps being replaced").at(&path))
    }

    /// Gives the lease back as the client does.
    pub(crate) fn release(self) {
        if let Ok(coordination) = coordinate(&self.folder) {
            drop(fs::remove_file(&self.path));
            drop(self);
            drop(coordination);
        }
    }
}

/// Whether a running client holds the thread. Takes nothing and makes nothing.
pub(crate) fn is_held(home: &Path, thread: &str) -> bool {
    let path = folder(home).join(format!("{thread}.lock"));
    let Ok(file) = File::open(path) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

fn folder(home: &Path) -> PathBuf {
    home.join("thread-writer-locks")
}

fn open(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|e| Error::io(path, "failed to open the lock", e))
}

fn coordinate(folder: &Path) -> Result<File, Error> {
    let path = folder.join(".coordination.lock");
    let file = open(&path)?;
    for _ in 0..TRIES {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(file);
        }
        pause();
    }
    Err(Error::new(
        ErrorKind::CoordinationBusy,
        "a client is taking or dropping a lease",
    )
    .at(&path))
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
    fn flags_say_who_writes() {
        assert!(is_for_writing("pos:\t0\nflags:\t0102001\n"));
        assert!(is_for_writing("flags:\t02\n"));
        assert!(!is_for_writing("pos:\t0\nflags:\t0100000\nmnt_id:\t1\n"));
    }
}
