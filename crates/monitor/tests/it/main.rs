//! The black-box table, the state machine against an oracle, the store among many processes and
//! hostile neighbours, and the complaints that users of other monitors had.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]

mod blackbox;
mod complaints;
mod hostile;
mod oracle;
mod parallel;
mod table;
