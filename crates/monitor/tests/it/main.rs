//! The state machine against an oracle, and the store among many threads and processes.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

mod oracle;
mod parallel;
