//! Mask mode: local rules fold older outputs, cheapest information first. Which rule matches what
//! is in `candidates`.

use ctxfold_transcript::{Author, Decision, Mode, Note, Plan, Scale, Transcript};

use crate::candidates::candidates;
use crate::{Refusal, RuleSet, pins};

/// How far a compaction goes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Goal {
    /// At most this share of the window, between 0 and 1.
    ShareOfWindow(f64),
    /// At most this share of what the context holds now, between 0 and 1.
    ShareOfNow(f64),
    /// At most this many tokens in the context.
    Tokens(u64),
}

impl Goal {
    /// The goal in tokens of the whole context, what stands outside the conversation included.
    ///
    /// # Errors
    /// When it is a share of a window whose size is not known.
    pub fn tokens(self, transcript: &Transcript) -> Result<u64, Refusal> {
        match self {
            Goal::Tokens(tokens) => Ok(tokens),
            Goal::ShareOfNow(share) => {
                let now = context(&transcript.scale(), transcript.bytes());
                Ok((now as f64 * share) as u64)
            }
            Goal::ShareOfWindow(share) => transcript
                .fill
                .and_then(|fill| fill.window)
                .map(|window| (window as f64 * share) as u64)
                .ok_or(Refusal::WindowUnknown),
        }
    }

    /// Whether a plan reaches the goal.
    ///
    /// # Errors
    /// When it is a share of a window whose size is not known.
    pub fn is_reached(self, plan: &Plan, transcript: &Transcript) -> Result<bool, Refusal> {
        let after = context(&transcript.scale(), plan.after.bytes);
        Ok(after <= self.tokens(transcript)?)
    }
}

/// Tokens in the context when the conversation has this many bytes.
fn context(scale: &Scale, bytes: u64) -> u64 {
    scale.tokens(bytes).saturating_add(scale.outside())
}

/// What masking keeps and folds.
#[derive(Debug, Clone, PartialEq)]
pub struct MaskOptions {
    /// The newest messages that stay verbatim; the cut moves back to an assistant message.
    pub keep_recent: usize,
    /// The rules that are on.
    pub rules: RuleSet,
    /// The largest output in bytes that [`Rule::LargeOutput`](crate::Rule::LargeOutput) leaves.
    pub max_output: u64,
    /// Turns [`Rule::AnyOutput`](crate::Rule::AnyOutput) on.
    pub aggressive: bool,
    /// Stop as soon as this is reached; without it every rule is used to the full. Where the
    /// rules do not suffice the plan goes as far as they do: see [`Goal::is_reached`].
    pub goal: Option<Goal>,
    /// The smallest share of bytes that is worth a compaction, between 0 and 1. With a goal any
    /// gain is.
    pub min_gain: f64,
}

impl Default for MaskOptions {
    fn default() -> MaskOptions {
        MaskOptions {
            keep_recent: crate::KEEP_RECENT,
            rules: RuleSet::default(),
            max_output: 8 * 1024,
            aggressive: false,
            goal: None,
            min_gain: 0.1,
        }
    }
}

/// The note that tells the model what folded lines mean. Without it models take the calls for
/// never made.
pub(crate) const NOTE: &str = "[ctxfold: every tool call in this conversation was really made and \
ended as its line says. Older outputs were folded to save context; nothing is lost or undone. \
To see an output again, run the command in its line.]";

/// Folds older tool outputs by local rules, without a model.
///
/// Never touched: the first message, the tail, user and assistant words, results in which the user
/// speaks, thinking, calls without a result, failures that nothing of the same command, file or
/// tool got over later, and what was folded before.
///
/// # Errors
/// When nothing, or too little, would be saved, when the goal is reached already, or when it is
/// a share of an unknown window.
pub fn mask(transcript: &Transcript, options: &MaskOptions) -> Result<Plan, Refusal> {
    let scale = transcript.scale();
    let before = transcript.bytes();
    let goal = options
        .goal
        .map(|goal| goal.tokens(transcript))
        .transpose()?;
    if let Some(goal) = goal
        && context(&scale, before) <= goal
    {
        return Err(Refusal::GoalReached {
            tokens: context(&scale, before),
            goal,
        });
    }
    let tail = pins::tail(transcript, options.keep_recent)?;
    let mut plan = Plan::keep_all(transcript, Mode::Mask);
    plan.tail = tail;
    add_note(transcript, &mut plan);
    plan.measure(transcript);
    let mut bytes = plan.after.bytes;
    for candidate in candidates(transcript, tail, options) {
        if goal.is_some_and(|goal| context(&scale, bytes) <= goal) {
            break;
        }
        bytes = bytes.saturating_sub(candidate.saves);
        plan.decisions.push(Decision {
            target: candidate.target,
            action: candidate.action(),
            reason: candidate.rule.name().to_owned(),
        });
    }
    plan.measure(transcript);
    let gain = plan.before.gain(&plan.after);
    let needed = if goal.is_some() {
        0.0
    } else {
        options.min_gain
    };
    if plan.decisions.is_empty() || gain <= 0.0 || gain < needed {
        return Err(Refusal::NothingToGain { gain, needed });
    }
    plan.validate(transcript).map_err(Refusal::Broken)?;
    Ok(plan)
}

/// Puts the note on the last answer before the tail that stays, unless the conversation has it
/// already.
pub(crate) fn add_note(transcript: &Transcript, plan: &mut Plan) {
    let is_answer = |m: &usize| transcript.messages[*m].author == Author::Assistant;
    let mut answers = (0..transcript.messages.len()).filter(is_answer);
    if answers.any(|m| transcript.messages[m].text().contains(NOTE)) {
        return;
    }
    let stays = plan.stays(transcript);
    let head = 0..plan.tail.min(transcript.messages.len());
    let Some(message) = head.rev().find(|m| is_answer(m) && stays[*m]) else {
        return;
    };
    match plan.notes.iter_mut().find(|note| note.message == message) {
        Some(note) => {
            note.text.push('\n');
            note.text.push_str(NOTE);
        }
        None => plan.notes.push(Note {
            message,
            text: NOTE.to_owned(),
        }),
    }
}
