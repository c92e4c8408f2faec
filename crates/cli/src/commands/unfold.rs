use std::path::PathBuf;

use ctxfold_session_claude as claude;
use regex::Regex;

use super::Context;
use crate::agent::{self, Agent, Place};
use crate::error::{CommandError, CommandResult};
use crate::output;

/// Print a folded output, or search everything that was folded
///
/// The output goes to standard output byte for byte. An address such as 3f2a91c0:GQ7wK2 stands in
/// the line that took the output's place; it is all that is needed, also inside a running agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The address of a folded output
    #[arg(required_unless_present = "search")]
    address: Option<String>,

    /// Search folded outputs for a regular expression
    #[arg(long, value_name = "REGEX", conflicts_with = "address")]
    search: Option<String>,

    /// The session to search: path, identifier or its beginning; the newest of this folder without it
    #[arg(long, value_name = "SESSION", requires = "search")]
    session: Option<String>,

    /// Most hits to print
    #[arg(long, default_value_t = 50, requires = "search")]
    limit: usize,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        match (&self.address, &self.search) {
            (Some(address), _) => self.one(cx, address),
            (None, Some(pattern)) => self.search(cx, pattern),
            (None, None) => Err(CommandError::usage("an address or --search is needed")),
        }
    }

    fn one(&self, cx: &Context, text: &str) -> CommandResult {
        let address: claude::Address = text
            .parse()
            .map_err(|e: claude::Error| CommandError::usage(e.to_string()))?;
        let path = claude::Store::new(&cx.env.claude_root)
            .find(address.session(), Some(&cx.env.cwd))
            .or_else(|e| journaled(cx, address.session()).ok_or(e))?;
        let folded = claude::unfold(&path, &address)?;
        if self.json {
            return output::json(&json(&folded));
        }
        for part in &folded.parts {
            if let claude::FoldedPart::Image { media_type, base64 } = part {
                cx.say(&format!(
                    "ctxfold: an image ({media_type}, {}) is left out; --json prints it",
                    output::bytes(base64.len() as u64)
                ));
            }
        }
        output::raw(folded.text().as_bytes())
    }

    fn search(&self, cx: &Context, pattern: &str) -> CommandResult {
        let regex = Regex::new(pattern).map_err(|e| CommandError::usage(e.to_string()))?;
        let place = agent::locate(&cx.env, self.session.as_deref(), Some(Agent::Claude))?;
        let hits = self.hits(&place, &regex)?;
        if self.json {
            return output::json(&serde_json::json!({ "v": 1, "hits": hits }));
        }
        if hits.is_empty() {
            return Err(CommandError::input(format!("nothing that was folded matches {pattern}")));
        }
        let mut out = String::new();
        for hit in &hits {
            out.push_str(&format!("{}:{}: {}\n", hit.address, hit.line, hit.text));
        }
        output::data(&out)
    }

    fn hits(&self, place: &Place, regex: &Regex) -> CommandResult<Vec<Hit>> {
        let mut hits = Vec::new();
        claude::folded(&place.path, &mut |folded| {
            for (index, line) in folded.text().lines().enumerate() {
                if regex.is_match(line) && hits.len() < self.limit {
                    hits.push(Hit {
                        address: folded.address.clone(),
                        label: folded.label.clone(),
                        line: index + 1,
                        text: output::cut(line, 400),
                    });
                }
            }
            hits.len() < self.limit
        })?;
        Ok(hits)
    }
}

/// A line that matches.
#[derive(Debug, serde::Serialize)]
struct Hit {
    address: String,
    label: String,
    /// Line in the output, from 1.
    line: usize,
    text: String,
}

/// The file of a session that was compacted outside the usual folders.
fn journaled(cx: &Context, beginning: &str) -> Option<PathBuf> {
    let lines = crate::journal::Journal::new(&cx.env.state_dir).read().ok()?;
    lines.into_iter().rev().find_map(|line| match line.entry {
        crate::journal::Entry::Begin(b) if b.session.starts_with(beginning) && b.path.is_file() => Some(b.path),
        _ => None,
    })
}

fn json(folded: &claude::Folded) -> serde_json::Value {
    let parts: Vec<_> = folded
        .parts
        .iter()
        .map(|part| match part {
            claude::FoldedPart::Text(text) => serde_json::json!({"type": "text", "text": text}),
            claude::FoldedPart::Image { media_type, base64 } => {
                serde_json::json!({"type": "image", "media_type": media_type, "base64": base64})
            }
            claude::FoldedPart::Json(raw) => serde_json::json!({"type": "other", "json": raw}),
            _ => serde_json::Value::Null,
        })
        .collect();
    serde_json::json!({
        "v": 1, "address": folded.address, "tool": folded.tool, "label": folded.label,
        "at_ms": folded.at_ms, "parts": parts,
    })
}
