//! Which sessions a running client has.
//!
//! The client writes `sessions/<pid>.json` and removes it when it ends; a killed client leaves it
//! behind, so the process is looked up. Beside it lies a secret, `<pid>.<hash>.key`, which is
//! never opened.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Store, files};
use crate::Error;
use crate::json;

/// A session that a process has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveSession {
    /// The process.
    pub pid: u32,
    /// The session's identifier.
    pub session: String,
    /// The process's working directory.
    pub cwd: Option<PathBuf>,
    /// Client version.
    pub version: Option<String>,
    /// What the client says that it does: `idle`, `busy`.
    pub status: Option<String>,
    /// Whether the process was seen with the start time that the client wrote down. `false` where
    /// that cannot be known: the session may then be live.
    pub verified: bool,
}

/// What is known of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// There is no such process.
    Gone,
    /// There is one. `start` is its start time in the client's spelling, where it is known.
    Running {
        /// On Linux clock ticks since boot.
        start: Option<String>,
    },
    /// It cannot be known.
    Unknown,
}

/// Where facts about processes come from.
pub trait Processes {
    /// Looks a process up.
    fn presence(&self, pid: u32) -> Presence;

    /// The name space in which process identifiers are counted, for example `pid:[4026531836]`.
    /// Identifiers that another container wrote down mean nothing here.
    fn namespace(&self) -> Option<String> {
        None
    }
}

/// The machine's own processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemProcesses;

impl Processes for SystemProcesses {
    #[cfg(target_os = "linux")]
    fn presence(&self, pid: u32) -> Presence {
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => match start_time(&stat) {
                // A process that ended and was not yet waited for.
                Some((b'Z' | b'X', _)) => Presence::Gone,
                state => Presence::Running {
                    start: state.map(|s| s.1),
                },
            },
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Presence::Gone,
            Err(_) => Presence::Unknown,
        }
    }

    /// Without /proc only the existence of a process is known. A reused identifier then counts as
    /// live: refusing is the safe mistake.
    #[cfg(all(unix, not(target_os = "linux")))]
    fn presence(&self, pid: u32) -> Presence {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        match pid.map(rustix::process::test_kill_process) {
            Some(Ok(()) | Err(rustix::io::Errno::PERM)) => Presence::Running { start: None },
            Some(Err(rustix::io::Errno::SRCH)) | None => Presence::Gone,
            Some(Err(_)) => Presence::Unknown,
        }
    }

    #[cfg(not(unix))]
    fn presence(&self, _pid: u32) -> Presence {
        Presence::Unknown
    }

    fn namespace(&self) -> Option<String> {
        let link = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(link.to_string_lossy().into_owned())
    }
}

/// State and start time of `/proc/<pid>/stat`: the fields 3 and 22. The second field is the
/// program's name in parentheses, which may hold anything.
#[cfg(target_os = "linux")]
fn start_time(stat: &[u8]) -> Option<(u8, String)> {
    let end = memchr::memrchr(b')', stat)?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.nth(18)?.to_owned()))
}

impl Store {
    /// The sessions that running clients have.
    ///
    /// # Errors
    /// When the folder is there and cannot be read. A single file that cannot be read or makes no
    /// sense is passed over.
    pub fn live(&self, processes: &dyn Processes) -> Result<Vec<LiveSession>, Error> {
        let mut found = Vec::new();
        for (name, path, meta) in files(&self.root().join("sessions"))? {
            if let Some(pid) = pid_of(&name) {
                // The client's own are below 2 KB.
                if meta.len() <= 1 << 16 {
                    found.extend(look(&path, pid, processes));
                }
            }
        }
        found.sort_by_key(|s| s.pid);
        Ok(found)
    }

    /// The live process that has a session, if any.
    ///
    /// # Errors
    /// As [`Store::live`].
    pub fn live_session(
        &self,
        id: &str,
        processes: &dyn Processes,
    ) -> Result<Option<LiveSession>, Error> {
        Ok(self.live(processes)?.into_iter().find(|s| s.session == id))
    }
}

/// The process of a file's name. Only digits and `.json` will do, so a key is never opened.
fn pid_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".json")?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

fn look(path: &Path, pid: u32, processes: &dyn Processes) -> Option<LiveSession> {
    let bytes = fs::read(path).ok()?;
    let text = |name: &str| {
        json::field(&bytes, name)
            .and_then(json::text)
            .map(std::borrow::Cow::into_owned)
    };
    let session = text("sessionId")?;
    let domain = text("pidDomain");
    let ours = processes.namespace();
    let elsewhere = domain
        .zip(ours)
        .is_some_and(|(theirs, ours)| theirs.contains("pid:[") && !theirs.ends_with(&ours));
    let verified = if elsewhere {
        false
    } else {
        match (processes.presence(pid), text("procStart")) {
            (Presence::Gone, _) => return None,
            (Presence::Running { start: Some(is) }, Some(was)) => {
                if is != was {
                    return None;
                }
                true
            }
            _ => false,
        }
    };
    Some(LiveSession {
        pid,
        session,
        cwd: text("cwd").map(PathBuf::from),
        version: text("version"),
        status: text("status"),
        verified,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_parentheses_and_spaces() {
        let stat =
            b"4242 (a) S (b c) S 1 4242 4242 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        assert_eq!(start_time(stat), Some((b'S', "987654".to_owned())));
    }

    #[test]
    fn our_own_process_is_running_since_it_started() {
        let here = SystemProcesses.presence(std::process::id());
        assert!(
            matches!(here, Presence::Running { start: Some(_) }),
            "{here:?}"
        );
        assert_eq!(here, SystemProcesses.presence(std::process::id()));
    }
}
