//! Integration tests.
#![expect(
    clippy::unwrap_used,
    reason = "a test that fails may panic, in its helpers too"
)]

mod check;
mod lines;
mod repair;
mod scan;
mod session;
mod store;
mod tail;
mod undo;
