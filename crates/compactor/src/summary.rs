//! Summary mode.
use std::collections::BTreeMap;

use ctxfold_transcript::{Plan, Transcript};

use crate::{Answer, LedgerOptions, Refusal, Rejected, SecretKind, Step};

/// What a summary keeps, and its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryOptions {
    /// The newest messages that stay verbatim; the cut moves back to an assistant message.
    pub keep_recent: usize,
    /// What the user wants the summary to heed.
    pub instructions: Option<String>,
    /// The most characters of one request.
    pub input_limit: usize,
    /// The answer's limit in tokens.
    pub max_output_tokens: u32,
    /// The fewest characters that a summary has.
    pub min_chars: usize,
    /// The most characters of summary and ledger together; cut at a paragraph. The ledger is
    /// never cut for it.
    pub max_chars: Option<usize>,
    /// The smallest share of bytes to be saved, between 0 and 1; 0 for any.
    pub min_gain: f64,
    /// Whether secrets are replaced in what is sent and in the summary.
    pub redact: bool,
    /// The ledger's limits.
    pub ledger: LedgerOptions,
}

impl Default for SummaryOptions {
    fn default() -> SummaryOptions {
        SummaryOptions {
            keep_recent: crate::KEEP_RECENT,
            instructions: None,
            input_limit: 2_000_000,
            max_output_tokens: 32_768,
            min_chars: 200,
            max_chars: None,
            min_gain: 0.0,
            redact: true,
            ledger: LedgerOptions::default(),
        }
    }
}

/// The way from a conversation to a summary plan, one question to a model after the other.
#[derive(Debug, Clone)]
pub struct SummaryJob {
    plan: Plan,
    secrets: BTreeMap<SecretKind, usize>,
}

impl SummaryJob {
    /// Prepares the questions. Nothing is sent.
    ///
    /// # Errors
    /// When there is nothing old enough to summarise.
    pub fn new(transcript: &Transcript, options: &SummaryOptions) -> Result<SummaryJob, Refusal> {
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

    /// Secrets that were replaced so far, by kind.
    pub fn secrets(&self) -> &BTreeMap<SecretKind, usize> {
        &self.secrets
    }
}
