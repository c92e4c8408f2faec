//! `ctxfold unfold`: folded outputs and messages, by address or by search.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;
use regex::Regex;

use super::Context;
use crate::agent::{self, Agent, Place};
use crate::error::{CommandError, CommandResult};
use crate::output;

/// Print a folded part, or search everything that was folded
///
/// Outputs, attached files and messages: whatever no longer reaches the model, after a compaction of
/// ctxfold's or of the agent's own. A part goes to standard output byte for byte. An address such
/// as 3f2a91c0:GQ7wK2 stands in the line that took the part's place; it is all that is needed, also
/// inside a running agent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The address of a folded part
    #[arg(required_unless_present = "search")]
    address: Option<String>,

    /// Search folded parts, line by line, for a regular expression
    #[arg(long, value_name = "REGEX", conflicts_with = "address")]
    search: Option<String>,

    /// The session to look in: path, identifier or its beginning. Without it an address is looked up
    /// by its session, and a search is of the newest session of this folder
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// Whose session it is, where both agents have one
    #[arg(long, value_enum)]
    agent: Option<Agent>,

    /// Most hits to print
    #[arg(long, default_value = "50", requires = "search")]
    limit: NonZeroUsize,

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
        let folded = match (&self.session, self.agent) {
            (Some(session), agent) => {
                output_in(&agent::locate(&cx.env, Some(session), agent)?, text)?
            }
            (None, Some(Agent::Claude)) => claude_output(cx, text)?,
            (None, Some(Agent::Codex)) => codex_output(cx, text).unwrap_or_else(|| {
                Err(CommandError::input(format!(
                    "no thread of Codex has the address {text}"
                )))
            })?,
            (None, None) => match claude_output(cx, text) {
                Ok(folded) => folded,
                Err(error) => codex_output(cx, text).unwrap_or(Err(error))?,
            },
        };
        if self.json {
            return output::json(&folded);
        }
        for part in &folded.parts {
            if let Piece::Image { media_type, base64 } = part {
                cx.say(&format!(
                    "ctxfold: an image ({media_type}, {}) is left out; --json prints it",
                    output::bytes(base64.len() as u64)
                ));
            }
        }
        output::raw(folded.text.as_bytes())
    }

    fn search(&self, cx: &Context, pattern: &str) -> CommandResult {
        let regex = Regex::new(pattern).map_err(|e| CommandError::usage(e.to_string()))?;
        let place = agent::locate(&cx.env, self.session.as_deref(), self.agent)?;
        let mut hits = Vec::new();
        let mut visit = |address: &str, label: &str, text: &str| {
            for (index, line) in text.lines().enumerate() {
                if hits.len() < self.limit.get() && regex.is_match(line) {
                    hits.push(Hit {
                        address: address.to_owned(),
                        label: label.to_owned(),
                        line: index + 1,
                        text: output::cut(line, 400),
                    });
                }
            }
            hits.len() < self.limit.get()
        };
        let shown = cx.reading(&place);
        match place.agent {
            Agent::Claude => {
                claude::folded(&place.path, &mut |f| visit(&f.address, &f.label, &f.text()))?;
            }
            Agent::Codex => codex::folded(&place.codex_store(), &place.path, &mut |f| {
                visit(&f.address, &f.label, &f.text())
            })?,
        }
        drop(shown);
        if self.json {
            return output::json(&serde_json::json!({ "v": 1, "hits": hits }));
        }
        if hits.is_empty() {
            return Err(CommandError::input(format!(
                "nothing that was folded matches {pattern}"
            )));
        }
        let mut out = String::new();
        for hit in &hits {
            out.push_str(&format!("{}:{}: {}\n", hit.address, hit.line, hit.text));
        }
        output::data(&out)
    }
}

/// A part, whatever the agent. Format version 1.
#[derive(Debug, serde::Serialize)]
struct Unfolded {
    v: u32,
    address: String,
    tool: String,
    label: String,
    at_ms: Option<i64>,
    parts: Vec<Piece>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, serde::Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Piece {
    Text { text: String },
    Image { media_type: String, base64: String },
    Other { json: String },
}

/// An output of one conversation, wherever its file is: a copy keeps the addresses of the session
/// that it was made of.
fn output_in(place: &Place, text: &str) -> CommandResult<Unfolded> {
    match place.agent {
        Agent::Claude => {
            let address = claude_address(text)?;
            Ok(of_claude(&claude::unfold(&place.path, &address)?))
        }
        Agent::Codex => {
            let address: codex::Address = text.parse().map_err(|e: codex::Error| no_address(&e))?;
            let folded = codex::unfold(&place.codex_store(), &place.path, &address)?;
            Ok(of_codex(&folded))
        }
    }
}

fn claude_address(text: &str) -> CommandResult<claude::Address> {
    text.parse().map_err(|e: claude::Error| no_address(&e))
}

fn no_address(error: &dyn std::error::Error) -> CommandError {
    CommandError::usage(error.to_string()).hint(
        "an address is like 3f2a91c0:GQ7wK2 and stands in the line that took the part's place; \
         --search REGEX finds parts by their text",
    )
}

fn claude_output(cx: &Context, text: &str) -> CommandResult<Unfolded> {
    let address = claude_address(text)?;
    let path = claude::Store::new(&cx.env.claude_root)
        .find(address.session(), Some(&cx.env.cwd))
        .or_else(|e| journaled(cx, address.session()).ok_or(e))?;
    Ok(of_claude(&claude::unfold(&path, &address)?))
}

/// The same in Codex's threads; `None` where no thread has the address's beginning.
fn codex_output(cx: &Context, text: &str) -> Option<CommandResult<Unfolded>> {
    let address: codex::Address = text.parse().ok()?;
    let store = codex::Store::new(&cx.env.codex_home);
    let thread = store
        .find(&codex::Query::Text(address.thread().to_owned()))
        .ok()?;
    let folded = codex::unfold(&store, &thread.path, &address);
    Some(folded.map(|f| of_codex(&f)).map_err(CommandError::from))
}

fn of_claude(folded: &claude::Folded) -> Unfolded {
    let parts = folded.parts.iter().map(|part| match part {
        claude::FoldedPart::Text(text) => Piece::Text { text: text.clone() },
        claude::FoldedPart::Image { media_type, base64 } => Piece::Image {
            media_type: media_type.clone(),
            base64: base64.clone(),
        },
        claude::FoldedPart::Json(json) => Piece::Other { json: json.clone() },
        _ => Piece::Other {
            json: "null".to_owned(),
        },
    });
    Unfolded {
        v: 1,
        text: folded.text(),
        parts: parts.collect(),
        address: folded.address.clone(),
        tool: folded.tool.clone(),
        label: folded.label.clone(),
        at_ms: folded.at_ms,
    }
}

fn of_codex(folded: &codex::Folded) -> Unfolded {
    let parts = folded.parts.iter().map(|part| match part {
        codex::FoldedPart::Text(text) => Piece::Text { text: text.clone() },
        codex::FoldedPart::Image { media_type, base64 } => Piece::Image {
            media_type: media_type.clone(),
            base64: base64.clone(),
        },
        codex::FoldedPart::Json(json) => Piece::Other { json: json.clone() },
        _ => Piece::Other {
            json: "null".to_owned(),
        },
    });
    Unfolded {
        v: 1,
        text: folded.text(),
        parts: parts.collect(),
        address: folded.address.clone(),
        tool: folded.tool.clone(),
        label: folded.label.clone(),
        at_ms: folded.at_ms,
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
    let lines = crate::journal::Journal::new(&cx.env.state_dir)
        .read()
        .ok()?;
    lines.into_iter().rev().find_map(|line| match line.entry {
        crate::journal::Entry::Begin(b) if b.session.starts_with(beginning) && b.path.is_file() => {
            Some(b.path)
        }
        _ => None,
    })
}
