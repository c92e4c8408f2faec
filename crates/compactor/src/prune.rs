//! Prune mode.
use std::collections::BTreeMap;

use ctxfold_transcript::{Plan, Transcript};

use crate::{Answer, Refusal, Rejected, SecretKind, Step};

/// What pruning keeps, and its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct PruneOptions {
    /// The newest messages that stay verbatim; the cut moves back to an assistant message.
    pub keep_recent: usize,
    /// What the user wants the model to heed.
    pub instructions: Option<String>,
    /// The most calls of one request.
    pub chunk_calls: usize,
    /// The most characters of one request.
    pub input_limit: usize,
    /// The answer's limit in tokens.
    pub max_output_tokens: u32,
    /// The characters that a truncated output keeps.
    pub head_chars: usize,
    /// The smallest share of bytes to be saved, between 0 and 1.
    pub min_gain: f64,
    /// Whether secrets are replaced in what is sent.
    pub redact: bool,
}

impl Default for PruneOptions {
    fn default() -> PruneOptions {
        PruneOptions {
            keep_recent: crate::KEEP_RECENT,
            instructions: None,
            chunk_calls: 100,
            input_limit: 400_000,
            max_output_tokens: 32_768,
            head_chars: 300,
            min_gain: 0.25,
            redact: true,
        }
    }
}

/// The way from a conversation to a prune plan.
#[derive(Debug, Clone)]
pub struct PruneJob {
    plan: Plan,
    secrets: BTreeMap<SecretKind, usize>,
}

impl PruneJob {
    /// Prepares the questions. Nothing is sent.
    ///
    /// # Errors
    /// When no call is old enough to be decided over.
    pub fn new(transcript: &Transcript, options: &PruneOptions) -> Result<PruneJob, Refusal> {
        Err(Refusal::TooShort {
            messages: transcript.messages.len(),
            keep_recent: options.keep_recent,
        })
    }

    /// What the job wants now. Asking twice gives the same.
    pub fn next(&self) -> Step<Plan> {
        Step::Done(self.plan.clone())
    }

    /// Takes the answers to the open questions, in their order.
    ///
    /// # Errors
    /// When an answer cannot be used; the questions stay open.
    pub fn reply(&mut self, answers: &[Answer]) -> Result<(), Rejected> {
        Err(Rejected::WrongCount {
            asked: 0,
            answered: answers.len(),
        })
    }

    /// Secrets that were replaced in what is sent, by kind.
    pub fn secrets(&self) -> &BTreeMap<SecretKind, usize> {
        &self.secrets
    }
}
