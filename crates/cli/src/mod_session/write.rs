//! Plan → rows for the mod. Rows that nothing changed go back as they came; a row of an answer or
//! a result is always built anew, because the client undoes a compaction whose kept rows are its
//! own. An answer becomes one row: two in a row would be sent as two messages.

use std::collections::HashMap;

use ctxfold_transcript::{Action, Author, Content, Message, Plan, Target};

use super::read::Handed;
use super::wire::{BuiltResult, BuiltRow, BuiltUse, Out};

/// The messages that the plan leaves.
pub(crate) fn write<'a>(handed: &Handed<'a>, plan: &Plan) -> Vec<Out<'a>> {
    let writer = Writer {
        handed,
        plan,
        inputs: inputs(handed),
    };
    let mut out = Vec::new();
    let mut first = 0;
    if let Some(summary) = &plan.summary {
        first = plan.tail;
        out.push(Out::Built(BuiltRow {
            role: "user",
            text: summary.clone(),
            ..BuiltRow::default()
        }));
    }
    for (index, message) in handed.transcript.messages.iter().enumerate().skip(first) {
        writer.message(index, message, &mut out);
    }
    out
}

/// The inputs of the calls, as they came.
fn inputs<'a>(handed: &Handed<'a>) -> HashMap<(u32, String), &'a serde_json::value::RawValue> {
    let mut inputs = HashMap::new();
    for (index, row) in handed.rows.iter().enumerate() {
        for call in &row.tool_uses {
            inputs.insert(
                (u32::try_from(index).unwrap_or(u32::MAX), call.id.clone()),
                call.input,
            );
        }
    }
    inputs
}

struct Writer<'h, 'a> {
    handed: &'h Handed<'a>,
    plan: &'h Plan,
    inputs: HashMap<(u32, String), &'a serde_json::value::RawValue>,
}

impl<'a> Writer<'_, 'a> {
    fn message(&self, index: usize, message: &Message, out: &mut Vec<Out<'a>>) {
        match message.author {
            Author::Assistant => self.answer(index, message, out),
            Author::Tool => self.results(message, out),
            _ => {
                let raw = message
                    .rows
                    .iter()
                    .filter_map(|r| self.handed.raw.get(r.0 as usize));
                out.extend(raw.map(|r| Out::Same(r)));
            }
        }
    }

    fn answer(&self, index: usize, message: &Message, out: &mut Vec<Out<'a>>) {
        let mut row = BuiltRow {
            role: "assistant",
            text: message.text(),
            ..BuiltRow::default()
        };
        if let Some(note) = self.plan.notes.iter().find(|n| n.message == index) {
            if !row.text.is_empty() {
                row.text.push_str("\n\n");
            }
            row.text.push_str(&note.text);
        }
        for block in &message.blocks {
            let Content::ToolCall(call) = block.content else {
                continue;
            };
            if *self.plan.action(Target::Call(call)) == Action::Drop {
                continue;
            }
            let Some(call) = self.handed.transcript.calls.get(call) else {
                continue;
            };
            if let Some(input) = self.inputs.get(&(block.row.0, call.id.clone())) {
                row.tool_uses.push(BuiltUse {
                    tool_use_id: call.id.clone(),
                    tool: call.tool.clone(),
                    input,
                });
            }
        }
        if !row.text.is_empty() || !row.tool_uses.is_empty() {
            // An answer whose neighbour was dropped would stand beside another one.
            if let Some(Out::Built(last)) = out.last_mut()
                && last.role == "assistant"
            {
                if !last.text.is_empty() && !row.text.is_empty() {
                    last.text.push_str("\n\n");
                }
                last.text.push_str(&row.text);
                last.tool_uses.append(&mut row.tool_uses);
            } else {
                out.push(Out::Built(row));
            }
        }
    }

    fn results(&self, message: &Message, out: &mut Vec<Out<'a>>) {
        for block in &message.blocks {
            let (call, is_error) = match &block.content {
                Content::ToolResult { call, is_error, .. } => (call, is_error),
                // What stands beside results stays, whatever happens to them.
                Content::Said(text) | Content::Text(text) => {
                    out.push(Out::Built(BuiltRow {
                        role: "user",
                        text: text.clone(),
                        ..BuiltRow::default()
                    }));
                    continue;
                }
                _ => continue,
            };
            // A result without its call is dropped by the client; so it is here.
            let Some(index) = call else { continue };
            let Some(call) = self.handed.transcript.calls.get(*index) else {
                continue;
            };
            let text = match self.plan.action(Target::Call(*index)) {
                Action::Drop => continue,
                Action::Truncate(text) => text.clone(),
                Action::Keep => block.content.result_text().unwrap_or_default(),
            };
            let result = BuiltResult {
                tool_use_id: call.id.clone(),
                text,
                is_error: *is_error,
            };
            out.push(Out::Built(BuiltRow {
                role: "user",
                tool_results: Some(vec![result]),
                ..BuiltRow::default()
            }));
        }
    }
}
