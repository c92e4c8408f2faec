//! Exit codes. They are a promise: docs/exit-codes.md explains each.

/// Done.
pub(crate) const DONE: u8 = 0;
/// The user or the input is at fault: nothing found, broken file, wrong configuration.
pub(crate) const INPUT: u8 = 1;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// Refused, because going on would be unsafe or for nothing. Not a byte was changed.
pub(crate) const REFUSED: u8 = 3;
/// The model or the network failed. Nothing was written.
pub(crate) const MODEL: u8 = 4;
/// A bug of ours.
pub(crate) const BUG: u8 = 255;

/// Makes a panic end the process with [`BUG`] and a line that says where.
pub(crate) fn catch_bugs() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map(|l| format!(" at {}:{}", l.file(), l.line()));
        let what = info.payload_as_str().unwrap_or("unknown");
        anstream::eprintln!(
            "ctxfold: bug: {what}{}; please report it",
            place.unwrap_or_default()
        );
        std::process::exit(i32::from(BUG));
    }));
}
