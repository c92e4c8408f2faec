//! Everything a test needs to run the real coding agents without leaving loopback.
//!
//! - **Mock model servers**: [`MockAnthropic`] (Messages API), [`MockResponses`] (Responses API)
//!   and [`MockGemini`] (Gemini API). Each answers from a script, and keeps a [`RequestLog`] that
//!   a test reads to learn what a client really sent.
//! - **Homes**: [`ClaudeHome`], [`CodexHome`] and [`GeminiHome`] are clean temporary home folders
//!   that drive the real client, in one shot or in a terminal ([`Terminal`]).
//! - **Generators**: [`generate`] writes synthetic sessions of any size.
//! - **Clients**: [`clients`] finds the pinned versions that `cargo xtask clients` installs.
//!
//! This crate knows no other crate of the workspace, is never published, and is the one place
//! besides the binary that looks at the process environment ([`clients`] says for what).
//!
//! # Examples
//!
//! A mock answers any HTTP client, scripted by what the newest user prompt says:
//!
//! ```
//! use ctxfold_test_support::{MockAnthropic, Turn};
//!
//! let mock = MockAnthropic::start();
//! mock.on("list the files", [Turn::text("there are none")]);
//! let reply = ctxfold_test_support::post_json(
//!     &format!("{}/v1/messages", mock.url()),
//!     &serde_json::json!({
//!         "model": "m",
//!         "messages": [{"role": "user", "content": "please list the files"}],
//!     }),
//! )?;
//! assert_eq!(reply["content"][0]["text"], "there are none");
//! assert_eq!(mock.log().conversations().len(), 1);
//! # Ok::<(), std::io::Error>(())
//! ```

mod anthropic;
mod app_server;
mod claude;
pub mod clients;
mod codex;
pub mod disk;
mod gemini;
mod gemini_cli;
pub mod generate;
mod http;
mod json_lines;
mod log;
mod process;
mod responses;
mod terminal;
mod wait;

pub use anthropic::{MockAnthropic, Turn};
pub use app_server::AppServer;
pub use claude::{ClaudeHome, ClaudeLive, ClaudePrompt, ClaudeRun};
pub use clients::Client;
pub use codex::{CodexHome, CodexPrompt, CodexRun};
pub use gemini::{GeminiTurn, MockGemini};
pub use gemini_cli::{GeminiHome, GeminiRun};
pub use http::post_json;
pub use log::{Recorded, RequestLog};
pub use process::Output;
pub use responses::{MockResponses, ResponsesTurn};
pub use terminal::Terminal;
pub use wait::{Gate, poll};
