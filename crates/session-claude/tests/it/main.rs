//! Integration tests.

mod check;
mod lines;
mod scan;
mod session;
mod store;
mod tail;
