//! Decides what a long conversation of a coding agent keeps.
//!
//! The crate is pure: it takes a [`Transcript`](ctxfold_transcript::Transcript) and gives a
//! [`Plan`](ctxfold_transcript::Plan). It knows no file, no clock, no network and no agent's name.
//!
//! - [`mask`] folds older tool outputs by [`Rule`]s that people can see and switch. It needs no
//!   model.
//! - [`SummaryJob`] and [`PruneJob`] return [`ModelRequest`]s and check what a model answered.
//!   Sending is the caller's business; an answer that cannot be used is [`Rejected`] and never
//!   becomes half a plan.
//! - [`ledger()`] takes from the conversation what no summary may lose, and reads it back from the
//!   summary of an earlier round.
//! - [`redact()`] replaces secrets in what is sent and in what comes back.
//! - [`idle`] decides whether a conversation that paused is worth a compaction.
//!
//! ```
//! use ctxfold_compactor::{FoldedLine, MaskOptions, SummaryJob, SummaryOptions, Step, mask, outcome};
//! use ctxfold_transcript::{Action, Activity, Author, Builder};
//!
//! let mut b = Builder::new();
//! b.message(Author::User).text("Fix the failing test. Never push to main.");
//! for n in 0..8 {
//!     let run = Activity::Run { command: "cargo test".into(), exit: Some(0) };
//!     b.message(Author::Assistant).call_with(&format!("c{n}"), "Bash", "Bash(cargo test)", vec![run]);
//!     b.message(Author::Tool).result(&format!("c{n}"), &"test parse ... ok\n".repeat(200), false);
//! }
//! let transcript = b.build();
//!
//! // Without a model: a line stands in the place of each old output.
//! let plan = mask(&transcript, &MaskOptions::default())?;
//! let Action::Truncate(line) = &plan.decisions[0].action else { unreachable!() };
//! assert_eq!(FoldedLine::parse(line).expect("a folded line").label, "Bash(cargo test)");
//!
//! // With one: send what the job asks, give it the answer.
//! let mut job = SummaryJob::new(&transcript, &SummaryOptions::default())?;
//! let Step::Ask(questions) = job.next() else { unreachable!() };
//! assert_eq!(questions.len(), 1);
//! # let answer = ctxfold_compactor::SECTIONS.map(|title| format!("## {title}\nThis and that was done.")).join("\n");
//! job.reply(&[Ok(answer)])?;
//! if let Step::Done(plan) = job.next() {
//!     assert!(plan.summary.as_ref().is_some_and(|text| text.contains("Never push to main.")));
//!     assert_eq!(outcome(&plan, None), "summary: 17 → 7 messages · 59% smaller");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod candidates;
mod error;
mod fold;
pub mod idle;
mod ledger;
mod mask;
mod outcome;
mod pins;
mod plain;
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
pub use ledger::{AgentFact, FailedCommand, FileFact, Ledger, LedgerOptions, UserWords, ledger};
pub use mask::{Goal, MaskOptions, mask};
pub use outcome::{Usage, masked_instead, outcome};
pub use prune::{PruneJob, PruneOptions};
pub use redact::{Redacted, SecretKind, redact};
pub use request::{Answer, Failure, ModelRequest, Schema, Step};
pub use rules::{Rule, RuleSet};
pub use summary::{SECTIONS, SummaryJob, SummaryOptions};

/// The newest messages that stay verbatim by default.
pub const KEEP_RECENT: usize = 6;
