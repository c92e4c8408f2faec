//! A session as it was read: its transcript, its findings, and the way to a change.

use std::path::{Path, PathBuf};

use ctxfold_transcript::{Plan, Transcript};

use crate::{Append, Error, Finding, Stamp};

/// How a session is read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Options {
    /// The context window in tokens, where the caller knows it; the file does not say it.
    pub window: Option<u64>,
}

/// The state of a file when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Length in bytes.
    pub len: u64,
    /// Time of the last change.
    pub modified: Option<std::time::SystemTime>,
}

/// What is known of a session beside its conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Meta {
    /// The session's identifier: from the rows, else from the file name.
    pub id: String,
    /// Title: the user's own, else the client's, where the live part names one.
    pub title: Option<String>,
    /// Working directory of the newest row.
    pub cwd: Option<PathBuf>,
    /// Client version of the newest row.
    pub version: Option<String>,
    /// Model of the newest answer.
    pub model: Option<String>,
    /// The newest prompt that the user typed.
    pub last_prompt: Option<String>,
    /// Bytes of the file from which the live part was read.
    pub live_bytes: u64,
    /// Rows in the live part.
    pub live_rows: usize,
    /// The file when it was read.
    pub stamp: FileStamp,
}

/// The live part of one session file.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    transcript: Transcript,
    findings: Vec<Finding>,
    meta: Meta,
}

impl Session {
    /// Reads the live part of a session file.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no row of a conversation
    /// ([`ErrorKind::NotASession`](crate::ErrorKind::NotASession)). Damage inside the file is no
    /// error: see [`Session::findings`].
    #[expect(clippy::todo, reason = "the reader comes with the next commit")]
    pub fn open(_path: &Path, _options: &Options) -> Result<Session, Error> {
        todo!()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The conversation that the client would send with the next request.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// What was found wrong while reading the live part.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// What is known beside the conversation.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Turns a plan into the rows that carry it out. Writes nothing.
    ///
    /// # Errors
    /// When the plan does not fit the transcript, when pairs would break, when nothing would be
    /// gained, or when the file is damaged in a way that makes the result uncertain.
    #[expect(clippy::todo, reason = "the writer comes with a later commit")]
    pub fn prepare(&self, _plan: &Plan, _stamp: &Stamp) -> Result<Append, Error> {
        todo!()
    }

    /// Makes the rows that bring back the conversation before the last compaction, with everything
    /// that was said since. Writes nothing.
    ///
    /// # Errors
    /// When the file was never compacted, or when rows that the old conversation needs are gone.
    #[expect(clippy::todo, reason = "undo comes with a later commit")]
    pub fn prepare_undo(&self, _stamp: &Stamp) -> Result<Append, Error> {
        todo!()
    }
}
