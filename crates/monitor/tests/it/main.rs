//! The state machine against an oracle, and the store among many threads and processes.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere in its code")]

mod oracle;
mod parallel;
