//! The monitor, the status line and the plugins' machine interface of the built binary: the black-box
//! table, hostile files, and the complaints that users of other monitors had.
#![expect(clippy::unwrap_used, reason = "a test may fail anywhere in its code")]
#![expect(clippy::float_cmp, reason = "percentages are whole here")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

mod call;
mod clients;
mod complaints;
mod hostile;
mod mods;
mod readings;
mod runner;
mod table;
