//! Threads as the real clients wrote them, and the real clients as judges of what is appended.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]

mod common;
mod crash;
mod large;
mod reading;
mod real;
mod refusals;
mod reports;
mod writing;
