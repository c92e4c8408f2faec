//! The one error type of the crate.

use std::fmt;
use std::path::{Path, PathBuf};

/// What kind of failure an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system refused to open, read or write.
    Io,
    /// The file is no rollout of the wanted thread.
    NotAThread,
    /// Nothing was found under an identifier, title or address.
    NotFound,
    /// More than one thing was found under an identifier or address.
    Ambiguous,
    /// A text is no address.
    BadAddress,
    /// The plan does not fit the transcript.
    BadPlan,
    /// The store cannot be read.
    Store,
    /// Refused: the thread is in the archive.
    Archived,
    /// Refused: the rollout is compressed.
    Compressed,
    /// Refused: the rollout is not where the store says.
    Missing,
    /// Refused: the rollout may not be written.
    ReadOnly,
    /// Refused: a history mode that this crate does not know.
    UnknownHistoryMode,
    /// Refused: the last line of a paginated rollout has no ordinal that others could follow.
    MissingOrdinal,
    /// Refused: the file's name, its first line and the store do not name the same thread.
    WrongThread,
    /// Refused: what the thread hangs on, a place in another rollout, is not there.
    BaseMissing,
    /// Refused: a line, or what a compressed rollout unpacks to, is too long to be held.
    TooLong,
    /// Refused: the last line is torn and cannot be completed safely.
    TornTail,
    /// Refused: the projection disagrees with the rollout.
    ProjectionBroken,
    /// Refused: the projection has not caught up with the rollout.
    ProjectionBehind,
    /// Refused: the store has a schema that this crate does not know.
    UnknownSchema,
    /// Refused: somebody else is writing to the store.
    StoreBusy,
    /// Refused: a running client holds the thread's writer lease.
    LeaseHeld,
    /// Refused: a client is taking or dropping a lease at this moment.
    CoordinationBusy,
    /// Refused: a process without a lease has the rollout open, or wrote to it just now.
    Live,
    /// Refused: the rollout changed between reading and writing.
    Changed,
    /// Refused: nothing would become shorter, or there is nothing to undo.
    NothingToGain,
    /// Refused: the disk is full.
    DiskFull,
    /// Somebody else wrote to the rollout at the same moment; the message says what stands there.
    Overtaken,
}

/// A failure: its kind, what was being done, the path and the cause.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error without a path.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            message: message.into(),
            path: None,
            source: None,
        }
    }

    /// A system error over a path.
    pub(crate) fn io(path: &Path, message: impl Into<String>, source: std::io::Error) -> Error {
        use std::io::ErrorKind as Io;
        let kind = match source.kind() {
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::DiskFull,
            Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::ReadOnly,
            Io::NotFound => ErrorKind::Missing,
            _ => ErrorKind::Io,
        };
        Error {
            kind,
            message: message.into(),
            path: Some(path.to_owned()),
            source: Some(Box::new(source)),
        }
    }

    /// A failure of the store.
    pub(crate) fn store(path: &Path, message: &str, source: rusqlite::Error) -> Error {
        use rusqlite::ErrorCode as Code;
        let kind = match source.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => ErrorKind::StoreBusy,
            _ => ErrorKind::Store,
        };
        Error {
            kind,
            message: message.to_owned(),
            path: Some(path.to_owned()),
            source: Some(Box::new(source)),
        }
    }

    /// The same error, naming a path.
    pub(crate) fn at(mut self, path: &Path) -> Error {
        self.path = Some(path.to_owned());
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file or folder it is about.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether the crate refused because going on would be unsafe. Nothing was changed then.
    pub fn is_refusal(&self) -> bool {
        !matches!(
            self.kind,
            ErrorKind::Io
                | ErrorKind::NotAThread
                | ErrorKind::NotFound
                | ErrorKind::Ambiguous
                | ErrorKind::BadAddress
                | ErrorKind::BadPlan
                | ErrorKind::Store
                | ErrorKind::Overtaken
        )
    }

    /// Whether nothing was found under an identifier or address.
    pub fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }

    /// The way out, for a refusal that has one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self.kind {
            ErrorKind::LeaseHeld => {
                "close Codex and wait a minute, or run `codex app-server daemon stop`"
            }
            ErrorKind::CoordinationBusy | ErrorKind::StoreBusy | ErrorKind::Changed => "try again",
            ErrorKind::Live => "close Codex, wait a minute, then try again",
            ErrorKind::Archived => "run `codex unarchive` with the thread's id first",
            ErrorKind::Compressed => "resume the thread in Codex once: that unpacks it",
            ErrorKind::Missing => "put the rollout back where the store expects it",
            ErrorKind::ReadOnly => "make the rollout writable",
            ErrorKind::UnknownHistoryMode => {
                "update ctxfold: this thread was made by a newer Codex"
            }
            ErrorKind::MissingOrdinal => {
                "Codex cannot resume this thread either: restore the rollout's last line"
            }
            ErrorKind::WrongThread => "give the rollout the name that Codex gave it",
            ErrorKind::BaseMissing => "put the rollout back that the thread was forked from",
            ErrorKind::TooLong => {
                "`ctxfold check` says which line; Codex itself may still resume it"
            }
            ErrorKind::Overtaken => "close Codex, then look with `ctxfold check`",
            ErrorKind::TornTail => "resume the thread in Codex once: that completes the line",
            ErrorKind::ProjectionBroken => {
                "close Codex and move thread_history_1.sqlite away: Codex rebuilds it when it resumes"
            }
            ErrorKind::ProjectionBehind => {
                "resume the thread in Codex once, or compact without the projection"
            }
            ErrorKind::UnknownSchema => {
                "compact without the projection: Codex brings it up to date when it resumes"
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(path) = &self.path {
            write!(f, ": {}", path.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source
            .as_ref()
            .map(|e| &**e as &(dyn std::error::Error + 'static))
    }
}
