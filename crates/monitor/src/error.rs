//! The one error type of the crate.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file could not be read, written or locked.
    Io,
    /// Another call held the session's lock for too long.
    Busy,
    /// A session id that could leave the folder, or that no file name can hold.
    BadSession,
    /// Thresholds that contradict each other or are no percentages.
    BadThresholds,
}

/// An error of this crate: what went wrong, and where.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    context: String,
    path: Option<PathBuf>,
    source: Option<io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self {
            kind,
            context: context.into(),
            path: None,
            source: None,
        }
    }

    pub(crate) fn io(context: &str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self {
            kind: ErrorKind::Io,
            context: context.to_owned(),
            path: Some(path.to_owned()),
            source: Some(source.into()),
        }
    }

    pub(crate) fn busy(path: &Path) -> Self {
        Self {
            kind: ErrorKind::Busy,
            context: "another call holds the lock".into(),
            path: Some(path.to_owned()),
            source: None,
        }
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file or folder concerned.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        if let Some(path) = &self.path {
            write!(f, " {}", path.display())?;
        }
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source
            .as_ref()
            .map(|e| e as &(dyn std::error::Error + 'static))
    }
}
