//! `ctxfold stats`: totals of the journal.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Context;
use crate::error::CommandResult;
use crate::journal::{Begin, Entry, Journal};
use crate::output;

/// Show what ctxfold saved, from the journal
///
/// Sessions of Claude Code and threads of Codex together, by mode.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Totals of one mode.
#[derive(Debug, Default, Serialize)]
struct Total {
    compactions: usize,
    bytes_before: u64,
    bytes_after: u64,
    tokens_saved: u64,
    model_in: u64,
    model_out: u64,
}

/// Adds without overflow: the journal is a file like any other.
fn add(total: &mut u64, more: u64) {
    *total = total.saturating_add(more);
}

impl Args {
    pub(crate) fn run(self, cx: &Context) -> CommandResult {
        let journal = Journal::new(&cx.env.state_dir);
        let mut open: BTreeMap<String, Begin> = BTreeMap::new();
        let mut modes: BTreeMap<String, Total> = BTreeMap::new();
        let (mut failed, mut undone) = (0_usize, 0_usize);
        for line in journal.read()? {
            match line.entry {
                Entry::Begin(begin) => {
                    open.insert(begin.id.clone(), begin);
                }
                Entry::Failed { id, .. } => {
                    open.remove(&id);
                    failed += 1;
                }
                Entry::Done(done) => {
                    let mode = open
                        .remove(&done.id)
                        .map_or_else(|| "?".to_owned(), |b| b.mode);
                    if mode == "undo" {
                        undone += 1;
                    }
                    if mode == "undo" || mode == "repair" {
                        continue;
                    }
                    let total = modes.entry(mode).or_default();
                    total.compactions += 1;
                    add(&mut total.bytes_before, done.before.bytes);
                    add(&mut total.bytes_after, done.after.bytes);
                    add(
                        &mut total.tokens_saved,
                        done.before.tokens.saturating_sub(done.after.tokens),
                    );
                    add(&mut total.model_in, done.model_in);
                    add(&mut total.model_out, done.model_out);
                }
                Entry::Critical(_) | Entry::Unknown => {}
            }
        }
        if self.json {
            return output::json(&serde_json::json!({
                "v": 1, "modes": modes, "failed": failed, "undone": undone, "unfinished": open.len(),
            }));
        }
        if modes.is_empty() {
            cx.say("ctxfold: nothing was compacted yet");
            return Ok(());
        }
        let mut text = String::new();
        for (mode, t) in &modes {
            text.push_str(&format!(
                "{mode:<8} {:>4}×  {} → {}  about {} tokens saved",
                t.compactions,
                output::bytes(t.bytes_before),
                output::bytes(t.bytes_after),
                output::tokens(t.tokens_saved)
            ));
            if t.model_in > 0 {
                text.push_str(&format!(
                    "  for {} in, {} out",
                    output::tokens(t.model_in),
                    output::tokens(t.model_out)
                ));
            }
            text.push('\n');
        }
        text.push_str(&format!("undone   {undone:>4}×\nfailed   {failed:>4}×\n"));
        output::data(&text)
    }
}
