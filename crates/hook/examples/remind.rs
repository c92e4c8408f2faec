//! A whole hook: reminds the agent to run the tests after it edited a Rust file.
//!
//! Register it for `PostToolUse` (Claude Code, Codex) or `AfterTool` (Gemini CLI) with the host's
//! name as the argument, and try it by hand:
//!
//! ```sh
//! echo '{"hook_event_name":"PostToolUse","tool_name":"Edit","tool_input":{"file_path":"src/a.rs"}}' |
//!     cargo run -q -p ctxfold-hook --example remind -- claude
//! ```

use std::io::Write;
use std::path::Path;

use ctxfold_hook::{Error, Event, Host, Input, Limits, Reply, read_document};

fn main() {
    // A hook never fails its host: on any error it says nothing and exits with 0.
    if let Ok(text) = answer() {
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
}

fn answer() -> Result<String, Error> {
    let host = std::env::args()
        .nth(1)
        .as_deref()
        .unwrap_or("claude")
        .parse::<Host>()?;
    let document = read_document(std::io::stdin(), Limits::default())?;
    let input = Input::parse(host, &document.text)?;
    let edited = match &input.event {
        Event::AfterTool(call) => call.tool.argument("file_path"),
        _ => None,
    };
    let reply = match edited {
        Some(path) if Path::new(&path).extension().is_some_and(|e| e == "rs") => Reply::new()
            .context(format!(
                "{path} was edited: run `cargo test` before you finish."
            )),
        _ => Reply::new(),
    };
    reply.encode(&input)
}
