//! A coding agent's conversation as a neutral value, and the plan that makes it shorter.
//!
//! A [`Transcript`] says what was said and what each tool call did, in terms that hold for every
//! agent: messages, blocks, calls with their activities, sizes. A [`Plan`] says what a compaction
//! keeps, cuts and drops. Both are plain values: this crate knows no agent, no file format, no
//! file, no model and no clock. Readers (`ctxfold-session-claude`, `ctxfold-session-codex`) make
//! transcripts and carry plans out; `ctxfold-compactor` makes plans.
//!
//! ```
//! use ctxfold_transcript::{Action, Author, Builder, Mode, Plan};
//!
//! let mut b = Builder::new();
//! b.message(Author::User).text("Fix the failing test.");
//! b.message(Author::Assistant).call("c1", "Bash", "Bash(cargo test)");
//! b.message(Author::Tool).result("c1", &"test parse ... ok\n".repeat(200), false);
//! b.message(Author::Assistant).text("All green.");
//! let transcript = b.build();
//!
//! let mut plan = Plan::keep_all(&transcript, Mode::Mask);
//! plan.decide_call(0, Action::Truncate("[output folded]".into()), "passing run");
//! plan.measure(&transcript);
//! assert!(plan.validate(&transcript).is_ok());
//! assert!(plan.after.bytes < plan.before.bytes);
//! ```

mod apply;
mod builder;
mod call;
mod conversation;
mod display;
mod plan;
mod size;
mod validate;

pub use builder::{Builder, MessageBuilder};
pub use call::{Activity, Call, Outcome, Span, Todo, TodoState};
pub use conversation::{
    Author, Block, BlockRef, Content, Image, Message, Part, RowId, Transcript, Words,
};
pub use plan::{Action, Decision, Mode, Note, Plan, Target};
pub use size::{Fill, Measure, Scale, text_bytes};
pub use validate::PlanError;
