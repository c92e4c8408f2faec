//! Rows that are ready to be appended, and the append itself.

use std::path::{Path, PathBuf};

use crate::session::FileStamp;
use crate::Error;

/// Rows that are ready to be appended to the file they were made for.
#[derive(Debug)]
pub struct Append {
    pub(crate) path: PathBuf,
    pub(crate) expected: FileStamp,
    pub(crate) bytes: Vec<u8>,
}

/// How an append is done.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CommitOptions {
    /// Whether the file's time of change is set back afterwards, so that `claude --continue` does
    /// not take this session for the newest one.
    pub keep_mtime: bool,
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
    /// SHA-256 of the appended bytes, in hexadecimal; the repair boundary is not in it.
    pub sha256: String,
    /// Whether rows arrived while we wrote, so that a second boundary had to follow.
    pub repaired: bool,
}

impl Append {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes that will be appended.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file as it must still be when the append is done.
    pub fn expected(&self) -> FileStamp {
        self.expected
    }

    /// Appends, after checking that the file is as it was when read.
    ///
    /// # Errors
    /// Refuses when the file changed or may not be written. When the disk is full the file is as
    /// it was before, or the error says what is left and where.
    #[expect(clippy::todo, reason = "the append comes with a later commit")]
    pub fn commit(self, _options: &CommitOptions) -> Result<Receipt, Error> {
        todo!()
    }

    /// Writes a copy of the file with the rows appended, and leaves the file itself alone.
    ///
    /// # Errors
    /// When `out` exists already or cannot be written, or when the file changed.
    #[expect(clippy::todo, reason = "the copy comes with a later commit")]
    pub fn write_copy(&self, _out: &Path) -> Result<Receipt, Error> {
        todo!()
    }
}
