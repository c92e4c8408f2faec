//! The crate's one error type.

use std::fmt;
use std::time::Duration;

use crate::answer::Usage;

/// What went wrong, for code that decides on it. Text for people is in [`Error`]'s `Display`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No key was given.
    NoKey,
    /// The client was set up wrongly: a base URL, a proxy, a key that cannot be sent.
    Config,
    /// Every key was refused as invalid, expired or unknown (HTTP 401, or 400 that says so).
    InvalidKey,
    /// Every key was refused for what it may do: leaked, suspended, project denied (HTTP 403).
    Forbidden,
    /// The quota is used up (HTTP 429), for all keys. [`Error::retry_after`] may say for how long.
    Quota,
    /// The model is not listed, or not known to the server (HTTP 404). See [`Error::suggestions`].
    ModelUnknown,
    /// The server refused the request as it is (other HTTP 4xx); sending it again changes nothing.
    InvalidRequest,
    /// The schema has more states than the server accepts: fewer values, shorter names, smaller
    /// arrays.
    SchemaTooComplex,
    /// The input is longer than the model takes.
    InputTooLong,
    /// The model was overloaded at each attempt (HTTP 503).
    Overloaded,
    /// The server failed (other HTTP 5xx).
    Server,
    /// The server was not reached, or the connection broke or fell silent.
    Network,
    /// The overall deadline passed during an attempt, while waiting for a turn, or before another
    /// attempt could begin.
    Deadline,
    /// The prompt or the answer was blocked; [`Error::reason`] has the server's word for it.
    Blocked,
    /// The answer was cut at the output limit (`MAX_TOKENS`); [`Error::usage`] shows what thoughts
    /// took of it.
    Truncated,
    /// The model stopped for another reason than being done (a malformed or unexpected tool call,
    /// `OTHER`).
    Stopped,
    /// The answer has no text.
    Empty,
    /// The answer is not what the API promises: HTML, doubled or broken JSON, text that is not the
    /// schema's.
    Malformed,
    /// The answer is larger than the client accepts.
    TooLarge,
}

/// Why a call failed.
///
/// `Display` is one short line. It names keys by place and holds no text that looks like a key,
/// whatever the server wrote. When every key failed it names each distinct failure once:
///
/// ```text
/// all 34 keys failed: Gemini HTTP 429: quota (keys 1-4, 6-34); Gemini HTTP 400: API key not valid (key 5)
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    text: String,
    details: Details,
}

/// The parts of an error that only some kinds have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Details {
    pub(crate) status: Option<u16>,
    pub(crate) reason: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) usage: Option<Usage>,
    pub(crate) suggestions: Vec<String>,
}

impl Error {
    /// The text must be free of keys: built from constants, or passed through the scrubber.
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self::with(kind, text, Details::default())
    }

    pub(crate) fn with(kind: ErrorKind, text: impl Into<String>, details: Details) -> Self {
        Self(Box::new(Inner {
            kind,
            text: text.into(),
            details,
        }))
    }

    /// What never happens, said instead of a panic.
    pub(crate) fn bug() -> Self {
        Self::new(ErrorKind::Network, "no attempt was made")
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The HTTP status, or the code of an error that came inside a successful reply.
    pub fn status(&self) -> Option<u16> {
        self.0.details.status
    }

    /// The finish or block reason as the server spelled it, unknown ones included.
    pub fn reason(&self) -> Option<&str> {
        self.0.details.reason.as_deref()
    }

    /// How long the server asked to wait, where it said so and the wait was not made.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.details.retry_after
    }

    /// The tokens that the refused answer cost, where the server counted them.
    pub fn usage(&self) -> Option<&Usage> {
        self.0.details.usage.as_ref()
    }

    /// The listed models that are closest to an unknown one, best first; at most three.
    pub fn suggestions(&self) -> &[String] {
        &self.0.details.suggestions
    }

    /// Whether the quota is used up for every key.
    pub fn is_quota(&self) -> bool {
        self.kind() == ErrorKind::Quota
    }

    /// Whether the keys themselves are the trouble: none given, invalid, or not allowed.
    pub fn is_key(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::NoKey | ErrorKind::InvalidKey | ErrorKind::Forbidden
        )
    }

    /// Whether the model answered, but not with a whole and usable text.
    pub fn is_answer(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Blocked
                | ErrorKind::Truncated
                | ErrorKind::Stopped
                | ErrorKind::Empty
                | ErrorKind::Malformed
                | ErrorKind::TooLarge
        )
    }

    /// Whether the same call may succeed later without a change: quota, overload, server, network,
    /// deadline.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Quota
                | ErrorKind::Overloaded
                | ErrorKind::Server
                | ErrorKind::Network
                | ErrorKind::Deadline
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            kind,
            text,
            details,
        } = &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("text", text)
            .field("details", details)
            .finish()
    }
}

impl std::error::Error for Error {}
