//! The binary in a home of its own: environment cleared, clock and width fixed, paths neutral. What
//! the clients make of it is judged in `real_claude` and `real_codex`; here it is the wiring.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]

mod broken;
mod clock;
mod config;
mod docs;
mod field;
mod folded;
mod journal;
mod lab;
mod looks;
mod model;
mod numbers;
mod outputs;
mod privacy;
mod progress;
mod refusals;
mod shapes;
mod words;
