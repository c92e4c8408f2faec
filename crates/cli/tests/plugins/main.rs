//! The packaged plugins in the real clients: installed from the marketplace that `cargo xtask
//! package` makes, used, updated and removed. The requests and the screens of the clients decide.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere in its code")]

mod compact;
mod failures;
mod git;
mod idle;
mod install;
mod lab;
mod launcher;
mod monitor;
#[path = "../real_idle/old.rs"]
mod old;
mod screen;
