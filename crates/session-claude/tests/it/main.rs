//! Integration tests.

mod lines;
mod store;
mod tail;
