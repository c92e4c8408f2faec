//! The black-box table, the state machine against an oracle, the store among many processes and
//! hostile neighbours, and the complaints that users of other monitors had.
#![expect(clippy::unwrap_used, reason = "a helper of a test may fail the test")]
#![expect(clippy::float_cmp, reason = "percentages are whole here")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

mod blackbox;
mod call;
mod complaints;
mod hostile;
mod oracle;
mod parallel;
mod table;
