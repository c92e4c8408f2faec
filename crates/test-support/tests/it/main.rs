//! The mocks and drivers, proven on the real clients.

mod claude;
mod mocks;
