//! Integration tests.

mod check;
mod lines;
mod scan;
mod store;
mod tail;
