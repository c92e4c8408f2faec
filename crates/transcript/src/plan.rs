//! The plan: what a compaction keeps, cuts and drops. Made by the compactor, shown by the command
//! line, carried out by a session crate. Whether it may be carried out is decided in
//! [`crate::validate`].

use crate::{BlockRef, Content, Measure, Transcript, text_bytes};

/// Bytes of a text block's envelope in a typical wire form (`{"type":"text","text":""}`).
pub(crate) const ENVELOPE: u64 = 25;
/// Bytes of the empty line before a note, escaped.
pub(crate) const NOTE_GAP: u64 = 4;

/// How a compaction makes the next request shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A model wrote a summary; the tail stays verbatim.
    Summary,
    /// A model decided over each older tool call; every user and assistant message stays.
    Prune,
    /// Local rules decided over each older tool output; every message stays.
    Mask,
}

impl Mode {
    /// The name that command line, journal and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Summary => "summary",
            Mode::Prune => "prune",
            Mode::Mask => "mask",
        }
    }
}

/// What is done to one call or attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It stays as it is.
    Keep,
    /// Its output is replaced by this text; call and result stay paired.
    Truncate(String),
    /// Call and result go. For an attachment: it goes.
    Drop,
}

/// What a decision is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A call: an index into [`Transcript::calls`].
    Call(usize),
    /// An attachment block.
    Attachment(BlockRef),
}

/// One decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What it is about.
    pub target: Target,
    /// What is done.
    pub action: Action,
    /// Why: the rule's name, or the model.
    pub reason: String,
}

/// Text that is added to a message, so that the model knows what was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// An assistant message: an index into [`Transcript::messages`].
    pub message: usize,
    /// The text; it is put behind the message's last text block.
    pub text: String,
}

/// What a compaction does. A plain value: what a dry run prints is what a real run executes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// How it was made.
    pub mode: Mode,
    /// The first message that stays verbatim. In summary mode everything before it is replaced by
    /// the summary; in the other modes only calls and attachments before it are decided over.
    pub tail: usize,
    /// The summary, in summary mode.
    pub summary: Option<String>,
    /// Decisions, at most one a target. What is not named is kept.
    pub decisions: Vec<Decision>,
    /// Notes, at most one a message.
    pub notes: Vec<Note>,
    /// The conversation before.
    pub before: Measure,
    /// The conversation as it will be.
    pub after: Measure,
}

impl Plan {
    /// The plan that changes nothing.
    pub fn keep_all(transcript: &Transcript, mode: Mode) -> Plan {
        let before = transcript.measure();
        Plan {
            mode,
            tail: transcript.messages.len(),
            summary: None,
            decisions: Vec::new(),
            notes: Vec::new(),
            before,
            after: before,
        }
    }

    /// Decides over a call, replacing an earlier decision.
    pub fn decide_call(&mut self, call: usize, action: Action, reason: &str) {
        self.decide(Target::Call(call), action, reason);
    }

    /// Decides over a target, replacing an earlier decision.
    pub fn decide(&mut self, target: Target, action: Action, reason: &str) {
        self.decisions.retain(|d| d.target != target);
        self.decisions.push(Decision {
            target,
            action,
            reason: reason.to_owned(),
        });
    }

    /// What is done to a target.
    pub fn action(&self, target: Target) -> &Action {
        self.decisions
            .iter()
            .find(|d| d.target == target)
            .map_or(&Action::Keep, |d| &d.action)
    }

    /// Numbers of decisions that truncate and that drop.
    pub fn counts(&self) -> (usize, usize) {
        let count = |f: fn(&Action) -> bool| self.decisions.iter().filter(|d| f(&d.action)).count();
        (
            count(|a| matches!(a, Action::Truncate(_))),
            count(|a| *a == Action::Drop),
        )
    }

    /// Recomputes [`Plan::before`] and [`Plan::after`] from the transcript and the decisions.
    ///
    /// Tokens of both use the transcript's scale, so they compare; what stands outside the
    /// conversation is in neither.
    pub fn measure(&mut self, transcript: &Transcript) {
        self.before = transcript.measure();
        let scale = transcript.scale();
        let (messages, bytes) = match &self.summary {
            Some(summary) => {
                let tail = transcript.messages.get(self.tail..).unwrap_or_default();
                let bytes: u64 = tail.iter().map(crate::Message::bytes).sum();
                let standing = transcript.standing(self.tail);
                let standing_bytes: u64 = standing.iter().map(crate::Message::bytes).sum();
                (
                    standing.len() + tail.len() + 1,
                    standing_bytes + bytes + text_bytes(summary),
                )
            }
            None => self.measure_decisions(transcript),
        };
        self.after = Measure {
            messages,
            bytes,
            tokens: scale.tokens(bytes),
        };
    }

    fn measure_decisions(&self, transcript: &Transcript) -> (usize, u64) {
        let mut gone = std::collections::BTreeSet::new();
        let mut bytes = transcript.bytes();
        for decision in &self.decisions {
            let (call, result) = match decision.target {
                Target::Call(i) => match transcript.calls.get(i) {
                    Some(call) => (Some(call.at), call.result),
                    None => continue,
                },
                Target::Attachment(at) => (None, Some(at)),
            };
            let size = |at: BlockRef| transcript.block(at).map_or(0, |b| b.bytes);
            match &decision.action {
                Action::Keep => {}
                Action::Truncate(text) => {
                    if let Some(block) = result.and_then(|at| transcript.block(at)) {
                        let envelope = block.bytes.saturating_sub(block.content.payload_bytes());
                        bytes = bytes.saturating_sub(block.bytes) + envelope + text_bytes(text);
                    }
                }
                Action::Drop => {
                    for at in [call, result].into_iter().flatten() {
                        bytes = bytes.saturating_sub(size(at));
                        gone.insert(at);
                    }
                }
            }
        }
        for note in &self.notes {
            let Some(message) = transcript.messages.get(note.message) else {
                continue;
            };
            let is_text = |b: &crate::Block| matches!(b.content, Content::Text(_));
            let around = if message.blocks.iter().any(is_text) {
                NOTE_GAP
            } else {
                ENVELOPE
            };
            bytes += around + text_bytes(&note.text);
        }
        let messages = transcript
            .messages
            .iter()
            .enumerate()
            .filter(|(m, message)| {
                let all_gone = !message.blocks.is_empty()
                    && (0..message.blocks.len())
                        .all(|block| gone.contains(&BlockRef { message: *m, block }));
                !all_gone
            })
            .count();
        (messages, bytes)
    }
}
