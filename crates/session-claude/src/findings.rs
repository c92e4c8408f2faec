//! What was found wrong in a file.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Something is damaged, the conversation is not.
    Warning,
    /// The conversation is damaged.
    Error,
}

/// Something found wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Stable code.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Line in the file, from 1, where it is known.
    pub line: Option<u64>,
    /// Offset in bytes.
    pub offset: Option<u64>,
    /// What was found.
    pub message: String,
}
