//! Why there is no plan: the conversation gives no reason for one, or the model's answer cannot
//! be used.

use std::fmt;

use ctxfold_transcript::PlanError;

/// Why a conversation is not compacted. Nothing was asked and nothing is to be written.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is nothing before the messages that stay verbatim.
    TooShort {
        /// Messages in the conversation.
        messages: usize,
        /// Newest messages that were to stay verbatim.
        keep_recent: usize,
    },
    /// Nothing, or too little, would be saved.
    NothingToGain {
        /// The share of bytes that would be saved, between 0 and 1.
        gain: f64,
        /// The smallest share that is worth a compaction.
        needed: f64,
    },
    /// The goal is a share of the window, and the window's size is not known.
    WindowUnknown,
    /// The conversation is as small as the goal already.
    GoalReached {
        /// Tokens in the context now.
        tokens: u64,
        /// The goal in tokens.
        goal: u64,
    },
    /// The plan would break the conversation.
    Broken(PlanError),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::TooShort {
                messages,
                keep_recent,
            } => write!(
                f,
                "nothing is old enough: of {messages} messages the newest {keep_recent} and the first stay verbatim"
            ),
            Refusal::NothingToGain { gain, needed } => write!(
                f,
                "too little to gain: {:.0}% smaller, at least {:.0}% is needed",
                (gain * 100.0).floor(),
                needed * 100.0
            ),
            Refusal::WindowUnknown => {
                f.write_str("the goal is a share of the context window, whose size is not known")
            }
            Refusal::GoalReached { tokens, goal } => write!(
                f,
                "the context holds about {tokens} tokens, no more than the goal of {goal}"
            ),
            Refusal::Broken(error) => write!(f, "the plan would break the conversation: {error}"),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Refusal::Broken(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a model's answer is not used. The job is as it was before the answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Rejected {
    /// The job asked nothing, or not as many questions as there are answers.
    WrongCount {
        /// Questions that are open.
        asked: usize,
        /// Answers given.
        answered: usize,
    },
    /// The model failed.
    Failed(String),
    /// The answer was cut at the output limit.
    CutAtLimit,
    /// The summary is too short to be one.
    TooShort {
        /// Its characters.
        chars: usize,
        /// The fewest that are accepted.
        least: usize,
    },
    /// The answer is longer than the output limit allows any answer to be.
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// The answer is something else than a summary.
    NotASummary(&'static str),
    /// The answer is not in the form that was asked for.
    BadForm(String),
    /// The answer leaves out a call.
    MissingId(String),
    /// The answer decides twice over a call.
    RepeatedId(String),
    /// The answer decides over something that was not asked.
    UnknownId(String),
    /// The answer names an action that does not exist.
    UnknownAction(String),
    /// The conversation would not become smaller, or not by enough.
    TooLittle {
        /// The share of bytes that would be saved, between 0 and 1.
        gain: f64,
        /// The smallest share that is accepted.
        needed: f64,
    },
    /// The plan would break the conversation.
    Broken(PlanError),
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejected::WrongCount { asked, answered } => {
                write!(f, "{asked} questions are open, {answered} answers came")
            }
            Rejected::Failed(reason) => f.write_str(reason),
            Rejected::CutAtLimit => f.write_str("the model's answer was cut at the output limit"),
            Rejected::TooShort { chars, least } => write!(
                f,
                "the model's summary has {chars} characters, fewer than {least}"
            ),
            Rejected::TooLong { bytes } => {
                write!(f, "the model's answer is too long: {bytes} bytes")
            }
            Rejected::NotASummary(what) => {
                write!(f, "the model's answer is not a summary: {what}")
            }
            Rejected::BadForm(what) => {
                write!(f, "the model's answer is not in the form asked for: {what}")
            }
            Rejected::MissingId(id) => write!(f, "the model's answer leaves out call {id}"),
            Rejected::RepeatedId(id) => {
                write!(f, "the model's answer decides twice over call {id}")
            }
            Rejected::UnknownId(id) => {
                write!(f, "the model's answer names {id:?}, which was not asked")
            }
            Rejected::UnknownAction(action) => {
                write!(f, "the model's answer names the unknown action {action:?}")
            }
            Rejected::TooLittle { gain, needed } if *needed > 0.0 => write!(
                f,
                "too little to gain: {:.0}% smaller, at least {:.0}% is needed",
                (gain * 100.0).floor(),
                needed * 100.0
            ),
            Rejected::TooLittle { .. } => f.write_str("the conversation would not become smaller"),
            Rejected::Broken(error) => write!(f, "the plan would break the conversation: {error}"),
        }
    }
}

impl std::error::Error for Rejected {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Rejected::Broken(error) => Some(error),
            _ => None,
        }
    }
}
