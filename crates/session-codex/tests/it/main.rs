//! Threads as the real clients wrote them, and the real clients as judges of what is appended.

mod common;
mod crash;
mod large;
mod reading;
mod real;
mod refusals;
mod reports;
mod writing;
