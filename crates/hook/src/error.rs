//! The one error type of the crate.

use std::fmt;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ended before the JSON document did.
    Incomplete,
    /// The input is not a JSON object, or something follows it.
    NotAnObject,
    /// The input is more than the size limit, even with its large values left out.
    TooLarge,
    /// The input did not end in time.
    TimedOut,
    /// The input could not be read.
    Io,
    /// The host does not accept a part of the reply for this event.
    NotAccepted,
}

/// An error of this crate: what went wrong, and where.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    context: String,
    source: Option<std::io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, context: impl Into<String>) -> Self {
        Self {
            kind,
            context: context.into(),
            source: None,
        }
    }

    pub(crate) fn io(context: impl Into<String>, source: std::io::Error) -> Self {
        Self {
            kind: ErrorKind::Io,
            context: context.into(),
            source: Some(source),
        }
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the host would have refused the reply.
    pub fn is_not_accepted(&self) -> bool {
        self.kind == ErrorKind::NotAccepted
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.context),
            None => f.write_str(&self.context),
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
