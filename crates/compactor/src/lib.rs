//! Decides what a long conversation of a coding agent keeps.
//!
//! The crate is pure: it takes a [`Transcript`](ctxfold_transcript::Transcript) and gives a
//! [`Plan`](ctxfold_transcript::Plan). Masking needs nothing else; summary and prune first return
//! a [`ModelRequest`] and then check what the model answered. It knows no file, no clock, no
//! network and no agent's name.

mod candidates;
mod error;
mod fold;
pub mod idle;
mod ledger;
mod mask;
mod outcome;
mod pins;
mod prune;
mod redact;
mod request;
mod rules;
mod settle;
mod standing;
mod summary;
mod told;

pub use error::{Refusal, Rejected};
pub use fold::{Ending, FoldedLine};
pub use ledger::{AgentFact, FailedCommand, FileFact, Ledger, LedgerOptions, ledger};
pub use mask::{Goal, MaskOptions, mask};
pub use outcome::{Usage, masked_instead, outcome};
pub use prune::{PruneJob, PruneOptions};
pub use redact::{Redacted, SecretKind, redact};
pub use request::{Answer, Failure, ModelRequest, Schema, Step};
pub use rules::{Rule, RuleSet};
pub use summary::{SECTIONS, SummaryJob, SummaryOptions};

/// The newest messages that stay verbatim by default.
pub const KEEP_RECENT: usize = 6;
