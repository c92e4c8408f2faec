//! A session as it was read: its transcript, its findings, and the way to a change.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use ctxfold_transcript::{Author, Block, Content, Plan, Transcript};

use crate::chain::{self, Chain};
use crate::findings::Code;
use crate::live::{self, Live};
use crate::repair;
use crate::row::{self, Line};
use crate::tail::one_line;
use crate::transcript::{self, Place};
use crate::undo;
use crate::wire::Object;
use crate::write::{self, Written};
use crate::{Append, Error, ErrorKind, Finding, Stamp};

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

impl FileStamp {
    /// The state of an open file.
    pub(crate) fn of(file: &File) -> std::io::Result<FileStamp> {
        let metadata = file.metadata()?;
        Ok(FileStamp {
            len: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
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
    /// Time of the newest compaction or undo, in milliseconds since the Unix epoch.
    pub compacted_ms: Option<i64>,
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
    pub(crate) places: Vec<Place>,
    pub(crate) chain: Chain,
    pub(crate) live: Live,
}

impl Session {
    /// Reads the live part of a session file.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no row of a conversation
    /// ([`ErrorKind::NotASession`](crate::ErrorKind::NotASession)). Damage inside the file is no
    /// error: see [`Session::findings`].
    pub fn open(path: &Path, options: &Options) -> Result<Session, Error> {
        let read = |what: &'static str| move |e| Error::io(path, what, e);
        let file = File::open(path).map_err(read("failed to open the session"))?;
        let stamp = FileStamp::of(&file).map_err(read("failed to look at the session"))?;
        let live = live::read(&file, stamp.len).map_err(read("failed to read the session"))?;
        if live.rows.is_empty() {
            let message = "no row of a conversation in this file";
            return Err(Error::new(ErrorKind::NotASession, message).at(path));
        }
        Ok(Session::build(path, live, stamp, options))
    }

    fn build(path: &Path, live: Live, stamp: FileStamp, options: &Options) -> Session {
        let chain = chain::chain(&live, stamp.len);
        let newest = chain.rows.last().copied().unwrap_or(live.rows.len() - 1);
        let newest = |key: &str| Object::parse(&live.rows[newest].text)?.str(key);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let id = newest("sessionId").unwrap_or_else(|| stem.into_owned());
        let (cwd, version) = (newest("cwd").map(PathBuf::from), newest("version"));
        let boundary = live.boundary.map(|at| &live.rows[at]);
        let built = transcript::build(&live.rows, &chain.rows, boundary, &id, options.window);
        let mut findings = live.findings.clone();
        for &row in &chain.gaps {
            let message = "the row before this one is not in the file, or comes after it";
            let found = Finding::new(Code::DanglingParent, message);
            findings.push(found.at(None, live.rows[row].offset));
        }
        if chain.lost_tail {
            let message = "the last compaction keeps rows that are not in the file, so the client sends none of them";
            let offset = boundary.map_or(0, |row| row.offset);
            findings.push(Finding::new(Code::PreservedMissing, message).at(None, offset));
        }
        findings.extend(built.findings);
        let meta = Meta {
            id,
            title: live.title.clone(),
            cwd,
            version,
            model: built.model,
            last_prompt: (live.prompts.iter().rev().find_map(|p| p.prompt.clone()))
                .or_else(|| last_words(&built.transcript)),
            live_bytes: stamp.len - live.start,
            live_rows: live.rows.len(),
            compacted_ms: boundary.and_then(|row| row.at_ms),
            stamp,
        };
        Session {
            path: path.to_owned(),
            transcript: built.transcript,
            findings,
            meta,
            places: built.places,
            chain,
            live,
        }
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
    pub fn prepare(&self, plan: &Plan, stamp: &Stamp) -> Result<Append, Error> {
        let written = write::write(self, plan, stamp).map_err(|e| e.at(&self.path))?;
        self.append(written, stamp)
    }

    /// Makes the rows that bring back the conversation before the last compaction, with everything
    /// that was said since. Writes nothing.
    ///
    /// # Errors
    /// When the file was never compacted, or when rows that the old conversation needs are gone.
    pub fn prepare_undo(&self, stamp: &Stamp) -> Result<Append, Error> {
        let written = undo::undo(self, stamp)?;
        self.append(written, stamp)
    }

    /// Makes the rows that make a damaged conversation whole for the client: rows of damaged lines
    /// again, and a boundary that lists the branch. Writes nothing.
    ///
    /// # Errors
    /// When nothing is damaged ([`ErrorKind::NothingToGain`]), or when too little is left.
    pub fn prepare_repair(&self, stamp: &Stamp) -> Result<Append, Error> {
        let written = repair::repair(self, stamp)?;
        self.append(written, stamp)
    }

    /// Rows as the bytes that follow the file's last byte.
    fn append(&self, written: Written, stamp: &Stamp) -> Result<Append, Error> {
        self.prove(&written)?;
        let line_end = if self.live.crlf { "\r\n" } else { "\n" };
        let mut bytes = Vec::new();
        if !self.live.ends_with_newline {
            bytes.extend_from_slice(line_end.as_bytes());
        }
        for row in &written.rows {
            bytes.extend_from_slice(row.as_bytes());
            bytes.extend_from_slice(line_end.as_bytes());
        }
        Ok(Append {
            path: self.path.clone(),
            expected: self.meta.stamp,
            bytes,
            line_end,
            boundary: written.boundary,
            spare: stamp.uuid(),
        })
    }

    /// Reads the rows as the client will, and refuses when a pair would be broken or a row of the
    /// list would not be found: one unknown row and the client drops all of them.
    fn prove(&self, written: &Written) -> Result<(), Error> {
        let mut live = written.ground.as_ref().unwrap_or(&self.live).clone_rows();
        let len = self.meta.stamp.len;
        let rows = written.rows.iter().enumerate();
        live.extend(
            rows.filter_map(|(i, text)| match row::understand(text, len + i as u64)? {
                Line::Row(row) => Some(*row),
                _ => None,
            }),
        );
        let chain = chain::chain(&live, len);
        let refuse =
            |message: &str| Err(Error::new(ErrorKind::BrokenPairs, message).at(&self.path));
        if chain.lost_tail {
            return refuse("a row that should stay is not in the file");
        }
        // Bytes that are no UTF-8 were replaced in it, so that nobody finds the row by it again.
        if written
            .boundary
            .list
            .iter()
            .any(|uuid| uuid.contains('\u{fffd}'))
        {
            return refuse("the identifier of a row that should stay is damaged");
        }
        let listed = written.boundary.list.iter();
        if !listed.eq(chain
            .rows
            .iter()
            .map(|&row| &live.rows[row])
            .filter(|row| row.boundary.is_none() && *row.uuid != *written.boundary.anchor)
            .map(|row| &*row.uuid))
        {
            return refuse("the client would send the rows in another order");
        }
        let built = transcript::build(&live.rows, &chain.rows, None, &self.meta.id, None);
        let unanswered = |t: &Transcript| {
            t.calls
                .iter()
                .filter(|c| c.result.is_none())
                .map(|c| c.id.clone())
                .collect::<HashSet<_>>()
        };
        let orphans = |t: &Transcript| {
            let is_orphan =
                |b: &&Block| matches!(b.content, Content::ToolResult { call: None, .. });
            t.messages
                .iter()
                .flat_map(|m| &m.blocks)
                .filter(is_orphan)
                .count()
        };
        if written.boundary.mark.mode != undo::MODE
            && (!unanswered(&built.transcript).is_subset(&unanswered(&self.transcript))
                || orphans(&built.transcript) > orphans(&self.transcript))
        {
            return refuse("a call and its result would be parted");
        }
        Ok(())
    }
}

/// The newest words of the user's, for a live part that holds no row of the newest prompt.
fn last_words(transcript: &Transcript) -> Option<String> {
    let mut said = transcript.messages.iter();
    let newest = said.rfind(|m| m.author == Author::User)?;
    Some(one_line(&newest.text()))
}
