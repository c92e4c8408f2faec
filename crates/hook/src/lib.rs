//! Hooks of coding agents, typed: the JSON that a host writes to a hook's standard input, and
//! the JSON that it accepts on standard output.
//!
//! Claude Code, Codex, Gemini CLI and Antigravity run a command on events such as "a tool has
//! run" or "the conversation is about to be compacted". They agree on the idea and differ in the
//! names and envelopes, and an envelope that a host does not know is at best ignored and at worst
//! shown to the user as an error. This crate reads all four dialects into one [`Event`] and
//! writes a [`Reply`] only in the form that the host takes for that event.
//!
//! - [`read_document`] takes one JSON document from standard input, in bounded time and memory.
//!   It stops at the end of the document, since a host may keep the pipe open.
//! - [`Input::parse`] makes a typed [`Input`] of it. Unknown events and fields are kept in
//!   [`Input::payload`].
//! - [`Reply`] says what the hook wants, [`Reply::encode`] checks it against the host's table
//!   ([`accepts`]) and gives the text for standard output.
//!
//! A hook that follows two rules never breaks its host: exit with 0 whatever happens, and write
//! one JSON object or nothing.
//!
//! ```
//! use ctxfold_hook::{Event, Host, Input, Reply};
//!
//! let stdin = r#"{"session_id":"s1","cwd":"/home/dev/app","hook_event_name":"PostToolUse",
//!     "tool_name":"Bash","tool_input":{"command":"cargo test"},"tool_response":{"stdout":"ok"}}"#;
//!
//! let input = Input::parse(Host::Claude, stdin)?;
//! let reply = match &input.event {
//!     Event::AfterTool(call) if call.tool.argument("command").is_some_and(|c| c.starts_with("cargo")) => {
//!         Reply::new().context("Run clippy as well.")
//!     }
//!     _ => Reply::new(),
//! };
//! assert_eq!(
//!     reply.encode(&input)?,
//!     r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"Run clippy as well."}}"#
//! );
//! # Ok::<(), ctxfold_hook::Error>(())
//! ```

mod accepts;
mod error;
mod event;
mod host;
mod input;
mod json;
mod read;
mod reply;
mod sieve;

pub use accepts::{Part, accepts, events};
pub use error::{Error, ErrorKind};
pub use event::{
    Compaction, Event, ModelCall, SessionEnd, SessionStart, Stop, Subagent, Tool, ToolCall,
    ToolFailure,
};
pub use host::Host;
pub use input::{Input, Name};
pub use json::{Payload, Raw};
pub use read::{Document, Limits, Until, read_document, read_document_blocking};
pub use reply::{Permission, Reply};
pub use sieve::{Sieve, Status};
