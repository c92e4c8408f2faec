//! Recorded inputs, the output table against Codex's closed schemas, and reading from pipes.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere in its code")]

mod inputs;
mod outputs;
mod reading;
