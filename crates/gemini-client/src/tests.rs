//! Whole calls against servers on loopback, on a clock that nobody waits for.
//!
//! What needs no clock of the crate's own is in `tests/it`.

mod field;
mod network;
mod support;
mod table;
mod time;
