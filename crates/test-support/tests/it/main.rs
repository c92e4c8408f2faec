//! The mocks and drivers, proven on the real clients.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is how a test fails")]

mod claude;
mod codex;
mod gemini;
mod generate;
mod mocks;
