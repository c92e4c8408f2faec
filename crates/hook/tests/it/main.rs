//! Recorded inputs, the output table against Codex's closed schemas, and reading from pipes.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

mod inputs;
mod outputs;
mod reading;
