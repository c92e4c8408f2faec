//! A turn that is ready to be appended, and the append itself: lease, comparison, one write, and
//! the projection where it was asked for.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::effects::{Effects, Real, Step};
use crate::lease::{self, Lease};
use crate::project::Projection;
use crate::write::{Turn, hex};
use crate::{Error, ErrorKind};

/// Where the system does not tell who has a file open, a thread without leases is left alone for
/// this long after its last change.
const RECENT: Duration = Duration::from_mins(1);

/// The state of a file when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Length in bytes.
    pub len: u64,
    /// Time of the last change.
    pub modified: Option<SystemTime>,
}

impl FileStamp {
    pub(crate) fn of(path: &Path) -> Result<FileStamp, Error> {
        let metadata = std::fs::metadata(path)
            .map_err(|e| Error::io(path, "failed to look at the rollout", e))?;
        Ok(FileStamp {
            len: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}

/// A synthetic turn that is ready to be appended to the rollout it was made for.
#[derive(Debug)]
pub struct Append {
    pub(crate) home: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) thread: String,
    pub(crate) expected: FileStamp,
    pub(crate) turn: Turn,
    /// Whether clients without leases may have the thread.
    pub(crate) leaseless: bool,
    pub(crate) now_ms: i64,
    pub(crate) projection: Projection,
}

/// How an append is done.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CommitOptions {
    /// Whether the file's time of change is set back afterwards.
    pub keep_mtime: bool,
    /// Whether the store's projection is brought forward too, for readers that look at the store
    /// without resuming the thread. A legacy thread has no projection, so nothing is done for it.
    pub project: bool,
}

impl CommitOptions {
    /// Sets [`CommitOptions::keep_mtime`].
    #[must_use]
    pub fn keep_mtime(mut self, keep: bool) -> CommitOptions {
        self.keep_mtime = keep;
        self
    }

    /// Sets [`CommitOptions::project`].
    #[must_use]
    pub fn project(mut self, project: bool) -> CommitOptions {
        self.project = project;
        self
    }
}

/// What an append did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// Length of the file before, in bytes.
    pub len_before: u64,
    /// Length of the file after, in bytes.
    pub len_after: u64,
    /// Offset at which our bytes begin.
    pub offset: u64,
    /// SHA-256 of the appended bytes, in hexadecimal.
    pub sha256: String,
    /// Whether the projection was brought forward.
    pub projected: bool,
}

impl Append {
    /// The rollout.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes that will be appended.
    pub fn bytes(&self) -> &[u8] {
        &self.turn.bytes
    }

    /// The file as it must still be when the append is done.
    pub fn expected(&self) -> FileStamp {
        self.expected
    }

    /// Appends under the client's writer lease, after checking that the file is as it was when
    /// read.
    ///
    /// # Errors
    /// Refuses when a client holds the thread, when the file changed or may not be written, and
    /// when the projection was asked for and cannot be brought forward. The rollout is as it was
    /// before then.
    pub fn commit(self, options: &CommitOptions) -> Result<Receipt, Error> {
        self.commit_with(options, &mut Real)
    }

    /// As [`Append::commit`], with the effects in the caller's hands.
    ///
    /// # Errors
    /// As [`Append::commit`], and when the effects stop it.
    #[doc(hidden)]
    pub fn commit_with(
        self,
        options: &CommitOptions,
        effects: &mut dyn Effects,
    ) -> Result<Receipt, Error> {
        step(effects, Step::Lease)?;
        let lease = Lease::take(&self.home, &self.thread)?;
        let result = self.under_lease(options, effects);
        if matches!(&result, Err(e) if is_stop(e)) {
            drop(lease);
            return result;
        }
        step(effects, Step::Release)?;
        lease.release();
        result
    }

    fn under_lease(
        &self,
        options: &CommitOptions,
        effects: &mut dyn Effects,
    ) -> Result<Receipt, Error> {
        step(effects, Step::Compare)?;
        self.compare()?;
        let mut file = OpenOptions::new()
            .append(true)
            .open(&self.path)
            .map_err(|e| Error::io(&self.path, "failed to open the rollout for writing", e))?;
        let layout = self.turn.layout.as_ref().filter(|_| options.project);
        let len_after = self.expected.len + self.turn.bytes.len() as u64;
        step(effects, Step::Begin)?;
        let mut store = match layout {
            Some(layout) => Some((self.projection.open()?, layout)),
            None => None,
        };
        let transaction = match &mut store {
            Some((store, layout)) => {
                let next = layout.first_ordinal;
                Some((
                    self.projection.begin(store, self.expected.len, next)?,
                    layout,
                ))
            }
            None => None,
        };
        if let Some((transaction, layout)) = &transaction {
            step(effects, Step::Project)?;
            let start = self.expected.len + self.turn.lead;
            self.projection
                .insert(transaction, layout, start, len_after)?;
        }
        step(effects, Step::Append)?;
        self.append(&mut file, effects)?;
        step(effects, Step::Sync)?;
        file.sync_data()
            .map_err(|e| Error::io(&self.path, "failed to bring the lines to the disk", e))?;
        if options.keep_mtime
            && let Some(modified) = self.expected.modified
        {
            // The time is a convenience; the append stands without it.
            drop(file.set_modified(modified));
        }
        let mut projected = false;
        if let Some((transaction, _)) = transaction {
            step(effects, Step::Commit)?;
            // The append stands; without the commit Codex brings the projection forward itself.
            projected = transaction.commit().is_ok();
        }
        Ok(Receipt {
            len_before: self.expected.len,
            len_after,
            offset: self.expected.len,
            sha256: hex(&Sha256::digest(&self.turn.bytes)),
            projected,
        })
    }

    fn compare(&self) -> Result<(), Error> {
        if self.leaseless {
            let live = lease::has_writer(&self.path).unwrap_or_else(|| self.changed_recently());
            if live {
                return Err(Error::new(
                    ErrorKind::Live,
                    "a client without leases has this thread open",
                )
                .at(&self.path));
            }
        }
        if FileStamp::of(&self.path)? != self.expected {
            return Err(
                Error::new(ErrorKind::Changed, "the rollout changed since it was read")
                    .at(&self.path),
            );
        }
        Ok(())
    }

    fn changed_recently(&self) -> bool {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(self.now_ms.max(0) as u64);
        self.expected
            .modified
            .is_none_or(|at| now.duration_since(at).map_or(true, |age| age < RECENT))
    }

    fn append(&self, file: &mut File, effects: &mut dyn Effects) -> Result<(), Error> {
        let len_before = self.expected.len;
        match effects.append(file, &self.turn.bytes) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => Err(stopped(Step::Append)),
            Err(source) => {
                let error = Error::io(&self.path, "failed to append to the rollout", source);
                // Under the lease nobody else wrote: what is behind the old end is ours.
                match file.set_len(len_before) {
                    Ok(()) => Err(error),
                    Err(e) => Err(Error::io(
                        &self.path,
                        format!("failed to take back what was appended behind byte {len_before}"),
                        e,
                    )),
                }
            }
        }
    }
}

fn step(effects: &mut dyn Effects, step: Step) -> Result<(), Error> {
    if effects.before(step) {
        Ok(())
    } else {
        Err(stopped(step))
    }
}

const STOPPED: &str = "stopped before the step";

fn stopped(step: Step) -> Error {
    Error::new(ErrorKind::Io, format!("{STOPPED} {step:?}"))
}

fn is_stop(error: &Error) -> bool {
    error.kind() == ErrorKind::Io && error.to_string().starts_with(STOPPED)
}
