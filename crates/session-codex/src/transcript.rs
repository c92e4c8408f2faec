//! The neutral transcript of a live part: items grouped into messages as the model speaks and is
//! answered.

use std::collections::HashMap;

use ctxfold_transcript::{
    Activity, Author, Block, BlockRef, Call, Content, Fill, Message, Outcome, Part, RowId,
    Transcript,
};

use crate::activity;
use crate::address;
use crate::item::Item;
use crate::live::{Entry, Live};

/// Builds the transcript. A row of it is an index into the live part's entries.
pub(crate) fn build(live: &Live) -> Transcript {
    let mut builder = Builder {
        out: Transcript {
            fill: live.tokens.as_ref().map(|count| Fill {
                tokens: count.total,
                window: count.window.or(live.window),
                stale: count.stale,
            }),
            ..Transcript::default()
        },
        open: HashMap::new(),
        exits: &live.exits,
        thread: &live.chain[0].meta.id,
    };
    for (index, entry) in live.entries.iter().enumerate() {
        builder.add(RowId(index as u32), entry);
    }
    builder.out
}

struct Builder<'a> {
    out: Transcript,
    /// The newest unanswered call of each identifier.
    open: HashMap<String, usize>,
    exits: &'a HashMap<String, i32>,
    thread: &'a str,
}

impl Builder<'_> {
    fn add(&mut self, row: RowId, entry: &Entry) {
        let bytes = entry.len();
        match &entry.item {
            Item::Message { author, blocks, .. } => {
                let joins = *author == Author::Assistant;
                self.begin(*author, row, entry, joins);
                for (bytes, content) in blocks {
                    self.push(row, *bytes, content.clone());
                }
            }
            Item::Reasoning => {
                self.begin(Author::Assistant, row, entry, true);
                self.push(row, bytes, Content::Thinking);
            }
            Item::Call { id, tool, input } => {
                self.begin(Author::Assistant, row, entry, true);
                let at = self.push(row, bytes, Content::ToolCall(self.out.calls.len()));
                self.open.insert(id.clone(), self.out.calls.len());
                self.out.calls.push(Call {
                    id: id.clone(),
                    tool: tool.clone(),
                    label: activity::label(tool, input),
                    input: input.clone(),
                    activities: activity::activities(tool, input, None),
                    outcome: Outcome::Pending,
                    address: address::of(self.thread, id),
                    at,
                    result: None,
                });
            }
            Item::ServerCall { tool, .. } => {
                self.begin(Author::Assistant, row, entry, true);
                let kind = tool.clone();
                self.push(row, bytes, Content::Other { kind });
            }
            Item::Output {
                call,
                parts,
                failed,
            } => self.output(row, entry, call, parts, *failed),
            Item::Compaction => {
                self.begin(Author::Summary, row, entry, false);
                let kind = "compaction".to_owned();
                self.push(row, bytes, Content::Other { kind });
            }
            Item::Unknown(kind) => {
                self.begin(Author::Client, row, entry, false);
                self.push(row, bytes, Content::Other { kind: kind.clone() });
            }
        }
    }

    fn output(
        &mut self,
        row: RowId,
        entry: &Entry,
        id: &str,
        parts: &[Part],
        failed: Option<bool>,
    ) {
        self.begin(Author::Tool, row, entry, true);
        let call = self.open.remove(id);
        let first = parts.iter().find_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let exit = self
            .exits
            .get(id)
            .copied()
            .or_else(|| first.and_then(activity::exit_in));
        let is_error = failed.unwrap_or(false) || exit.is_some_and(|code| code != 0);
        let content = Content::ToolResult {
            call,
            parts: parts.to_vec(),
            is_error,
        };
        let at = self.push(row, entry.len(), content);
        let Some(call) = call.and_then(|index| self.out.calls.get_mut(index)) else {
            return;
        };
        call.result = Some(at);
        call.outcome = if is_error {
            Outcome::Failure
        } else {
            Outcome::Success
        };
        // A call that failed without a code of its own did not read or write what it names.
        let exit = exit.or(is_error.then_some(1));
        let told = activity::activities(&call.tool, &call.input, exit);
        let changes = told.iter().any(Activity::changes_file);
        if !(is_error && changes) {
            call.activities = told;
        }
    }

    /// Begins a message, or goes on with the last one where `joins` and it is the same author's.
    fn begin(&mut self, author: Author, row: RowId, entry: &Entry, joins: bool) {
        if let Some(last) = self.out.messages.last_mut()
            && joins
            && last.author == author
        {
            if last.rows.last() != Some(&row) {
                last.rows.push(row);
            }
            return;
        }
        self.out.messages.push(Message {
            author,
            blocks: Vec::new(),
            rows: vec![row],
            at_ms: entry.at_ms,
        });
    }

    fn push(&mut self, row: RowId, bytes: u64, content: Content) -> BlockRef {
        let message = self.out.messages.len().saturating_sub(1);
        let blocks = &mut self.out.messages[message].blocks;
        blocks.push(Block {
            row,
            bytes,
            content,
        });
        BlockRef {
            message,
            block: blocks.len() - 1,
        }
    }
}
