//! Whether a plan may be carried out: pairs stay whole, pending calls and the tail are not
//! touched, users (also where they speak in a result) and thinking are not edited.

use std::collections::BTreeSet;
use std::fmt;

use crate::{Action, Author, BlockRef, Content, Mode, Outcome, Plan, Target, Transcript};

/// Why a plan must not be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// A decision or note names something that the transcript does not have.
    UnknownTarget(String),
    /// Two decisions over one target.
    DecidedTwice(Target),
    /// A call without a result would be touched.
    PendingCall(usize),
    /// A call in whose result the user speaks would be touched.
    UsersWords(usize),
    /// A call or attachment in the tail would be touched.
    InTail(Target),
    /// The tail would begin inside a pair of call and result.
    SplitPair {
        /// The call, an index into [`Transcript::calls`].
        call: usize,
    },
    /// The tail does not begin at a user prompt or an assistant message.
    BadCut(usize),
    /// An attachment that may not be folded would be.
    NotFoldable(Target),
    /// A note on a message that is not the assistant's.
    NoteOnOther(usize),
    /// Two notes on one message.
    NotedTwice(usize),
    /// A note on a message of the tail, which stays verbatim.
    NoteInTail(usize),
    /// A note on a message that would go.
    NoteOnDropped(usize),
    /// Summary mode without a summary, or a summary in another mode.
    SummaryMismatch,
    /// All results of an answer would go and another answer follows it: two answers in a row.
    AdjacentAnswers(usize),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::UnknownTarget(what) => {
                write!(f, "the plan names {what}, which is not there")
            }
            PlanError::DecidedTwice(t) => write!(f, "the plan decides twice over {t:?}"),
            PlanError::PendingCall(c) => write!(f, "call {c} has no result yet"),
            PlanError::UsersWords(c) => {
                write!(f, "the result of call {c} holds words of the user")
            }
            PlanError::InTail(t) => write!(f, "{t:?} is in the tail that stays verbatim"),
            PlanError::SplitPair { call } => {
                write!(f, "the tail would begin between call {call} and its result")
            }
            PlanError::BadCut(m) => {
                write!(
                    f,
                    "the tail may not begin at message {m}: neither a prompt nor an answer"
                )
            }
            PlanError::NotFoldable(t) => write!(f, "{t:?} may not be folded"),
            PlanError::NoteOnOther(m) => write!(f, "message {m} is not the assistant's"),
            PlanError::NotedTwice(m) => write!(f, "message {m} has two notes"),
            PlanError::NoteInTail(m) => {
                write!(f, "message {m} is in the tail that stays verbatim")
            }
            PlanError::NoteOnDropped(m) => {
                write!(f, "the note on message {m} would go with the message")
            }
            PlanError::SummaryMismatch => f.write_str("summary text and mode do not agree"),
            PlanError::AdjacentAnswers(m) => write!(
                f,
                "all results of message {m} would go, and the next message is the assistant's too"
            ),
        }
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Checks the plan against the transcript it was made for.
    ///
    /// # Errors
    /// The first rule that the plan breaks.
    pub fn validate(&self, transcript: &Transcript) -> Result<(), PlanError> {
        if (self.mode == Mode::Summary) != self.summary.is_some() {
            return Err(PlanError::SummaryMismatch);
        }
        let mut seen = BTreeSet::new();
        for decision in &self.decisions {
            if !seen.insert(decision.target) {
                return Err(PlanError::DecidedTwice(decision.target));
            }
            self.validate_target(transcript, decision.target, &decision.action)?;
        }
        let stays = self.stays(transcript);
        let mut noted = BTreeSet::new();
        for note in &self.notes {
            match transcript.messages.get(note.message) {
                None => {
                    return Err(PlanError::UnknownTarget(format!(
                        "message {}",
                        note.message
                    )));
                }
                Some(m) if m.author != Author::Assistant => {
                    return Err(PlanError::NoteOnOther(note.message));
                }
                Some(_) if !noted.insert(note.message) => {
                    return Err(PlanError::NotedTwice(note.message));
                }
                Some(_) if note.message >= self.tail => {
                    return Err(PlanError::NoteInTail(note.message));
                }
                Some(_) if self.summary.is_some() || !stays[note.message] => {
                    return Err(PlanError::NoteOnDropped(note.message));
                }
                Some(_) => {}
            }
        }
        if self.summary.is_some() {
            return self.validate_cut(transcript);
        }
        match self.adjacent_answers(transcript).first() {
            Some(&message) => Err(PlanError::AdjacentAnswers(message)),
            None => Ok(()),
        }
    }

    /// The assistant messages that would be followed directly by another one, because all that
    /// stands between them would go. Empty in summary mode.
    pub fn adjacent_answers(&self, transcript: &Transcript) -> Vec<usize> {
        if self.summary.is_some() {
            return Vec::new();
        }
        let stays = self.stays(transcript);
        let mut found = Vec::new();
        let mut before: Option<usize> = None;
        for (index, message) in transcript.messages.iter().enumerate() {
            if !stays[index] {
                continue;
            }
            if let Some(before) = before
                && before + 1 < index
                && message.author == Author::Assistant
                && transcript.messages[before].author == Author::Assistant
            {
                found.push(before);
            }
            before = Some(index);
        }
        found
    }

    /// For each message, whether any of it stays. A message without blocks does.
    pub fn stays(&self, transcript: &Transcript) -> Vec<bool> {
        let actions = self.actions_by_block(transcript);
        let messages = transcript.messages.iter().enumerate();
        messages
            .map(|(index, message)| {
                let dropped = |block| {
                    let at = BlockRef {
                        message: index,
                        block,
                    };
                    actions.get(&at).is_some_and(|a| **a == Action::Drop)
                };
                message.blocks.is_empty() || !(0..message.blocks.len()).all(dropped)
            })
            .collect()
    }

    fn validate_target(
        &self,
        transcript: &Transcript,
        target: Target,
        action: &Action,
    ) -> Result<(), PlanError> {
        let unknown = || PlanError::UnknownTarget(format!("{target:?}"));
        let at = match target {
            Target::Call(index) => {
                let call = transcript.calls.get(index).ok_or_else(unknown)?;
                if *action != Action::Keep
                    && (call.outcome == Outcome::Pending || call.result.is_none())
                {
                    return Err(PlanError::PendingCall(index));
                }
                let said = transcript.result(index).and_then(|b| b.content.said());
                if *action != Action::Keep && said.is_some() {
                    return Err(PlanError::UsersWords(index));
                }
                call.result.map_or(call.at, |result| call.at.max(result))
            }
            Target::Attachment(at) => {
                match transcript.block(at).map(|b| &b.content) {
                    Some(Content::Attachment { foldable, .. }) => {
                        if !foldable && *action != Action::Keep {
                            return Err(PlanError::NotFoldable(target));
                        }
                    }
                    _ => return Err(unknown()),
                }
                at
            }
        };
        if *action != Action::Keep && at.message >= self.tail {
            return Err(PlanError::InTail(target));
        }
        Ok(())
    }

    fn validate_cut(&self, transcript: &Transcript) -> Result<(), PlanError> {
        match transcript.messages.get(self.tail).map(|m| m.author) {
            None if self.tail == transcript.messages.len() => {}
            Some(Author::User | Author::Assistant) => {}
            _ => return Err(PlanError::BadCut(self.tail)),
        }
        for (index, call) in transcript.calls.iter().enumerate() {
            let Some(result) = call.result else {
                if call.at.message < self.tail && transcript.is_open(index) {
                    return Err(PlanError::PendingCall(index));
                }
                continue;
            };
            if (call.at.message < self.tail) != (result.message < self.tail) {
                return Err(PlanError::SplitPair { call: index });
            }
        }
        Ok(())
    }
}
