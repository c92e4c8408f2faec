//! The client as its users see it: against servers on loopback, and on the real clock.
//!
//! Nothing here waits for time to pass; what depends on time is tested inside the crate.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]

mod calls;
mod cancel;
mod example;
mod hygiene;
mod network;
mod support;
