//! Answers that real programs got and stumbled over, each as a whole call.
//!
//! Doc comments name the public report that a test is made after.

mod answers;
mod refusals;
mod sharing;
mod timeouts;
