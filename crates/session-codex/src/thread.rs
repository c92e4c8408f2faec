//! A thread as it was read: its transcript, its findings, and the way to a change.

use std::path::{Path, PathBuf};

use ctxfold_transcript::{Author, Plan, Transcript};

use crate::append::{FileStamp, refuse_leaseless};
use crate::chain::Rollout;
use crate::live::{Ending, Live};
use crate::project::Projection;
use crate::write::Carried;
use crate::{Append, Error, ErrorKind, Finding, Stamp, Store, health, transcript, undo, write};

/// The newest client that was tested.
const NEWEST: (u32, u32, u32) = (0, 171, 0);
/// The last ordinal that others can follow: the store keeps them with a sign.
const LAST_ORDINAL: u64 = i64::MAX as u64 - 64;
/// The first client that takes a writer lease.
const FIRST_WITH_LEASE: (u32, u32, u32) = (0, 147, 0);

/// What is known of a thread beside its conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Meta {
    /// The thread's identifier.
    pub id: String,
    /// Working directory of the newest turn.
    pub cwd: Option<PathBuf>,
    /// The client that made the thread.
    pub version: Option<String>,
    /// Model of the newest turn.
    pub model: Option<String>,
    /// The newest prompt that the user typed.
    pub last_prompt: Option<String>,
    /// `paginated` or `legacy`.
    pub history_mode: String,
    /// Compactions so far, where the client numbers them.
    pub compactions: u64,
    /// Time of the newest compaction, in milliseconds since the Unix epoch.
    pub compacted_ms: Option<i64>,
    /// Bytes from which the live part was read.
    pub live_bytes: u64,
    /// Lines in the live part.
    pub live_rows: usize,
    /// The file when it was read.
    pub stamp: FileStamp,
}

/// The live part of one thread.
#[derive(Debug)]
pub struct Thread {
    store: Store,
    path: PathBuf,
    live: Live,
    transcript: Transcript,
    findings: Vec<Finding>,
    meta: Meta,
}

impl Thread {
    /// Reads the live part of the thread whose active rollout is at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, or is no rollout of Codex
    /// ([`ErrorKind::NotAThread`]). Damage inside the file is no error: see [`Thread::findings`].
    pub fn open(store: &Store, path: &Path) -> Result<Thread, Error> {
        let stamp = FileStamp::of(path)?;
        let live = Live::read(store.home(), path)?;
        let transcript = transcript::build(&live);
        let rollout = &live.chain[0];
        let mut findings = live.findings.clone();
        if version(rollout).is_some_and(|v| v > NEWEST) {
            let text = rollout.meta.cli_version.clone().unwrap_or_default();
            findings.push(Finding::new("client-untested", format!("made by {text}")));
        }
        findings.extend(rollout.id_problem().map(health::mismatch));
        let next = live.last_ordinal.and_then(|n| n.checked_add(1));
        let torn_at = health::torn_at(rollout).filter(|_| live.ending == Ending::Torn);
        findings.extend(health::projection(store, rollout, next, torn_at));
        let last_prompt = transcript
            .messages
            .iter()
            .rfind(|m| m.author == Author::User)
            .map(ctxfold_transcript::Message::text);
        let meta = Meta {
            id: rollout.meta.id.clone(),
            cwd: live.cwd.clone().map(PathBuf::from),
            version: rollout.meta.cli_version.clone(),
            model: live.model.clone(),
            last_prompt,
            history_mode: rollout
                .meta
                .history_mode
                .clone()
                .unwrap_or_else(|| "legacy".to_owned()),
            compactions: live
                .begin
                .as_ref()
                .map_or(0, |b| b.window_number.unwrap_or(1)),
            compacted_ms: live.begin.as_ref().and_then(|b| b.at_ms),
            live_bytes: live.bytes,
            live_rows: live.rows,
            stamp,
        };
        Ok(Thread {
            store: store.clone(),
            path: path.to_owned(),
            live,
            transcript,
            findings,
            meta,
        })
    }

    /// The rollout.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The conversation that the client would send with the next request.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// What was found wrong while reading the live part, and in its projection.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// What is known beside the conversation.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The nearest user message at or before `tail`, where Codex itself would begin to keep; `tail`
    /// itself where there is none.
    pub fn cut_at_user(&self, tail: usize) -> usize {
        let messages = &self.transcript.messages;
        if tail >= messages.len() {
            return messages.len();
        }
        messages[..=tail]
            .iter()
            .rposition(|m| m.author == Author::User)
            .unwrap_or(tail)
    }

    /// Whether a running client holds the thread's writer lease. Nothing is taken.
    pub fn is_held(&self) -> bool {
        crate::lease::is_held(self.store.home(), &self.meta.id)
    }

    /// Whether a running client has the thread: it holds the lease, or, where it may be too old to
    /// take one, it has the rollout open or changed it a moment before `now_ms`, in milliseconds
    /// since the Unix epoch.
    pub fn is_live(&self, now_ms: i64) -> bool {
        self.is_held() || self.refuse_leaseless(now_ms).is_err()
    }

    fn refuse_leaseless(&self, now_ms: i64) -> Result<(), Error> {
        if self.leaseless() {
            return refuse_leaseless(&self.path, self.meta.stamp, now_ms);
        }
        Ok(())
    }

    /// Whether a compaction could be appended at `now_ms`, in milliseconds since the Unix epoch, as
    /// far as the files tell: everything but the lease, which is taken at the append.
    ///
    /// # Errors
    /// The reason why not.
    pub fn writable(&self, now_ms: i64) -> Result<(), Error> {
        let rollout = &self.live.chain[0];
        let refuse = |kind, text: &str| Err(Error::new(kind, text).at(&self.path));
        if rollout.compressed {
            return refuse(ErrorKind::Compressed, "the rollout is compressed");
        }
        if self
            .path
            .starts_with(self.store.home().join("archived_sessions"))
        {
            return refuse(ErrorKind::Archived, "the thread is archived");
        }
        let metadata = std::fs::symlink_metadata(&self.path)
            .map_err(|e| Error::io(&self.path, "failed to look at the rollout", e))?;
        if !metadata.is_file() {
            return refuse(ErrorKind::ReadOnly, "not a regular file");
        }
        if metadata.permissions().readonly() {
            return refuse(ErrorKind::ReadOnly, "the rollout is read-only");
        }
        if let Some(problem) = rollout.id_problem() {
            return refuse(ErrorKind::WrongThread, &problem);
        }
        if let Some(error) = self.live.unreadable() {
            return Err(error);
        }
        if !matches!(self.meta.history_mode.as_str(), "legacy" | "paginated") {
            let text = format!("the unknown history mode {:?}", self.meta.history_mode);
            return refuse(ErrorKind::UnknownHistoryMode, &text);
        }
        if rollout.is_paginated() {
            match self.live.last_ordinal {
                None => {
                    return refuse(ErrorKind::MissingOrdinal, "the last line has no ordinal");
                }
                Some(last) if last > LAST_ORDINAL => {
                    let text = format!("nothing can follow the last line's ordinal {last}");
                    return refuse(ErrorKind::MissingOrdinal, &text);
                }
                Some(_) => {}
            }
        }
        if self.live.ending == Ending::Torn && self.leaseless() {
            return refuse(
                ErrorKind::TornTail,
                "the last line is torn, and clients without leases may be writing it",
            );
        }
        self.refuse_leaseless(now_ms)?;
        let broken = [
            "projection-past-end",
            "projection-mid-line",
            "projection-ordinal",
        ];
        match self.findings.iter().find(|f| broken.contains(&f.code)) {
            // Whoever writes the store just now is the one to wait for, not the store.
            Some(_) if self.is_held() => {
                refuse(ErrorKind::LeaseHeld, "a running client holds this thread")
            }
            Some(finding) => refuse(ErrorKind::ProjectionBroken, &finding.message),
            None => Ok(()),
        }
    }

    /// Turns a plan into the turn that carries it out. Writes nothing.
    ///
    /// The tail may begin at a user message or at an answer. What the client writes anew by itself
    /// (developer messages, environment, AGENTS.md) is not carried over. Images before the tail are
    /// replaced by a line with an address, because each compaction would store them again.
    ///
    /// # Errors
    /// When the plan does not fit the transcript, when nothing would be gained, or for one of the
    /// reasons of [`Thread::writable`].
    pub fn prepare(&self, plan: &Plan, stamp: &Stamp) -> Result<Append, Error> {
        plan.validate(&self.transcript)
            .map_err(|e| Error::new(ErrorKind::BadPlan, e.to_string()).at(&self.path))?;
        self.writable(stamp.now_ms())?;
        let history = write::replacement(&self.live, &self.transcript, plan)?;
        let after: usize = history.iter().map(String::len).sum();
        let before: u64 = self.carried().map(crate::live::Entry::len).sum();
        if after as u64 >= before {
            let text = format!("{before} bytes would become {after}");
            return Err(Error::new(ErrorKind::NothingToGain, text).at(&self.path));
        }
        let message = match &plan.summary {
            Some(summary) => format!("{}\n{summary}", self.live.prefix),
            None => String::new(),
        };
        let carried = Carried {
            history: &history,
            message: &message,
            tokens: after as u64 / 4,
            previous: None,
        };
        Ok(self.append(&carried, stamp))
    }

    /// Makes the turn that brings back the conversation before the newest compaction that was not
    /// taken back yet, with everything that was said since. Writes nothing.
    ///
    /// # Errors
    /// When there is no such compaction ([`ErrorKind::NothingToGain`]), or for one of the reasons
    /// of [`Thread::writable`].
    pub fn prepare_undo(&self, stamp: &Stamp) -> Result<Append, Error> {
        self.writable(stamp.now_ms())?;
        let former = undo::former(self.store.home(), &self.live)?;
        Ok(self.append(&former.carried(), stamp))
    }

    fn append(&self, carried: &Carried<'_>, stamp: &Stamp) -> Append {
        Append {
            home: self.store.home().to_owned(),
            path: self.path.clone(),
            thread: self.meta.id.clone(),
            expected: self.meta.stamp,
            turn: write::turn(&self.live, carried, stamp),
            leaseless: self.leaseless(),
            now_ms: stamp.now_ms(),
            spare: stamp.spare(),
            projection: Projection {
                store: self.store.history(),
                key: self.live.chain[0].projection_key(),
            },
        }
    }

    /// The entries that a replacement history could carry.
    fn carried(&self) -> impl Iterator<Item = &crate::live::Entry> {
        self.live
            .entries
            .iter()
            .filter(|e| !write::never_carried(&e.item))
    }

    /// Whether a client without leases may have the thread: none of them reads a paginated one.
    fn leaseless(&self) -> bool {
        let rollout = &self.live.chain[0];
        !rollout.is_paginated() && version(rollout).is_none_or(|version| version < FIRST_WITH_LEASE)
    }
}

fn version(rollout: &Rollout) -> Option<(u32, u32, u32)> {
    let text = rollout.meta.cli_version.as_deref()?;
    let mut numbers = text.split(['.', '-', '+']).map_while(|n| n.parse().ok());
    Some((numbers.next()?, numbers.next()?, numbers.next()?))
}
