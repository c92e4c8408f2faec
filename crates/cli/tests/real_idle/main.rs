//! Conversations that paused, made by the real clients and compacted before their next request by
//! `resume` and `idle run`. The requests that the clients then send decide.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]
#![expect(
    clippy::print_stderr,
    reason = "the sizes and times that docs/idle.md names are measured here"
)]

mod claude;
mod codex;
mod lab;
mod many;
mod old;
