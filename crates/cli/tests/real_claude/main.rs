//! The binary over sessions of the real Claude Code, which judges what was written: every mode,
//! sessions with a past, models that misbehave, a live writer, undo, and every reason to refuse.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it should be"
)]

mod demo;
mod lab;
mod masked;
mod modelled;
mod refusals;
mod said;
mod wire;

/// One test for each pinned version.
macro_rules! on_each_version {
    ($($scene:ident),* $(,)?) => {
        mod newest { $( #[test] fn $scene() { super::$scene(ctxfold_test_support::clients::CLAUDE[0]); } )* }
        mod oldest { $( #[test] fn $scene() { super::$scene(ctxfold_test_support::clients::CLAUDE[1]); } )* }
    };
}
use on_each_version;
