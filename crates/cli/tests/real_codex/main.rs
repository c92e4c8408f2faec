//! The binary over threads of the real Codex, which judges what was written: every mode, every
//! reason to refuse, threads with a past, and the commands that only look.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]

mod lab;
mod looks;
mod model;
mod modes;
mod pasts;
mod project;
mod refusals;
