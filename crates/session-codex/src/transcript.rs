//! The neutral transcript of a live part: items grouped into messages as the model speaks and is
//! answered.

use std::collections::HashMap;

use ctxfold_transcript::{
    Activity, Author, Block, BlockRef, Call, Content, Fill, Message, Outcome, Part, RowId,
    Transcript,
};
use serde_json::Value;

use crate::activity;
use crate::address;
use crate::item::{self, Item};
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
                let address = address::of_words(self.thread, item::words(blocks));
                for (bytes, content) in blocks {
                    let at = self.push(row, *bytes, content.clone());
                    if matches!(content, Content::Text(_)) {
                        let block = &mut self.out.messages[at.message].blocks[at.block];
                        block.address = Some(address.clone());
                    }
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
        let made = call.and_then(|index| self.out.calls.get(index));
        let content = Content::ToolResult {
            call,
            parts: parts.to_vec(),
            is_error,
            said: made.and_then(|made| answers(&made.tool, &made.input, first?)),
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
            address: None,
        });
        BlockRef {
            message,
            block: blocks.len() - 1,
        }
    }
}

/// What the user answered to questions that a tool asked: a line each, behind the question.
fn answers(tool: &str, input: &str, output: &str) -> Option<String> {
    if !tool.ends_with("request_user_input") && !tool.ends_with("request_user_input_async") {
        return None;
    }
    let output: Value = serde_json::from_str(output).ok()?;
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let question = |id: &str| {
        let asked = input["questions"].as_array()?.iter();
        let of_id = asked.into_iter().find(|asked| asked["id"] == id)?;
        of_id["question"].as_str()
    };
    let mut lines = Vec::new();
    for (id, answer) in output["answers"].as_object()? {
        let given = answer["answers"].as_array().into_iter().flatten();
        let given: Vec<&str> = given.filter_map(Value::as_str).collect();
        if !given.is_empty() {
            let asked = question(id).unwrap_or(id);
            lines.push(format!("{asked} {}", given.join(", ")));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_behind_their_questions() {
        let input = r#"{"questions":[{"id":"db","header":"Db","question":"Which database?","options":[]}]}"#;
        let output = r#"{"answers":{"db":{"answers":["Other","user_note: postgres, never sqlite"]},"x":{"answers":[]}}}"#;
        let told = "Which database? Other, user_note: postgres, never sqlite";
        let answers = |tool, output| answers(tool, input, output);
        assert_eq!(answers("request_user_input", output).as_deref(), Some(told));
        assert_eq!(
            answers("request_user_input_async", output).as_deref(),
            Some(told)
        );
        assert_eq!(answers("exec_command", output), None);
        for output in [
            "unavailable",
            "{}",
            r#"{"answers":{}}"#,
            r#"{"answers":{"db":3}}"#,
        ] {
            assert_eq!(answers("request_user_input", output), None, "{output}");
        }
    }
}
