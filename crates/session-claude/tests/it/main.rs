//! Integration tests.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere in its code")]

mod check;
mod lines;
mod repair;
mod scan;
mod segment;
mod session;
mod store;
mod tail;
mod undo;
