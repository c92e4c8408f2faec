//! The one error type of the crate.

use std::fmt;
use std::path::{Path, PathBuf};

/// What kind of failure an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system refused to open, read or write.
    Io,
    /// The file holds no conversation of Claude Code.
    NotASession,
    /// Nothing was found under an identifier or address.
    NotFound,
    /// More than one thing was found under an identifier or address.
    Ambiguous,
    /// A text is no address.
    BadAddress,
    /// The plan does not fit the transcript.
    BadPlan,
    /// Refused: a live process has the session.
    Live,
    /// Refused: the file changed between reading and writing.
    Changed,
    /// Refused: nothing would become shorter, or there is nothing to undo.
    NothingToGain,
    /// Refused: a call or a result would stay without its counterpart.
    BrokenPairs,
    /// Refused: the file may not be written.
    Unwritable,
    /// Refused: the disk is full.
    DiskFull,
}

/// A failure: its kind, what was being done, the path and the cause.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    source: Option<std::io::Error>,
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
            Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::Unwritable,
            _ => ErrorKind::Io,
        };
        Error {
            kind,
            message: message.into(),
            path: Some(path.to_owned()),
            source: Some(source),
        }
    }

    /// The same error, naming a path.
    pub(crate) fn at(mut self, path: &Path) -> Error {
        self.path = Some(path.to_owned());
        self
    }

    /// The same error with another kind.
    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Error {
        self.kind = kind;
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
        matches!(
            self.kind,
            ErrorKind::Live
                | ErrorKind::Changed
                | ErrorKind::NothingToGain
                | ErrorKind::BrokenPairs
                | ErrorKind::Unwritable
                | ErrorKind::DiskFull
        )
    }

    /// Whether nothing was found under an identifier or address.
    pub fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }

    /// Whether the file holds no conversation.
    pub fn is_not_a_session(&self) -> bool {
        self.kind == ErrorKind::NotASession
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
            .map(|e| e as &(dyn std::error::Error + 'static))
    }
}
