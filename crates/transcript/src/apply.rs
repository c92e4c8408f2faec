//! What the next request holds once a plan was carried out: the oracle for whoever carries plans
//! out in a real file.

use std::collections::BTreeMap;

use crate::plan::{ENVELOPE, NOTE_GAP};
use crate::{
    Action, Author, Block, BlockRef, Call, Content, Fill, Message, Part, Plan, RowId, Target,
    Transcript, text_bytes,
};

impl Plan {
    /// The conversation as it is after the plan, which must be valid for `transcript`.
    ///
    /// A summary becomes a message of [`Author::Summary`] from the row [`RowId::NEW`], followed by
    /// what [`Transcript::standing`] names; a note is
    /// put behind the last text of its message, or before its first call where it has none.
    /// The fill is kept and marked as stale.
    pub fn apply(&self, transcript: &Transcript) -> Transcript {
        let mut out = Transcript {
            fill: transcript.fill.map(|fill| Fill {
                stale: true,
                ..fill
            }),
            ..Transcript::default()
        };
        let first = match &self.summary {
            Some(summary) => {
                out.messages.push(summary_message(summary));
                out.messages.extend(transcript.standing(self.tail));
                self.tail
            }
            None => 0,
        };
        let actions = self.actions_by_block(transcript);
        let mut moved = BTreeMap::new();
        for (index, message) in transcript.messages.iter().enumerate().skip(first) {
            let mut kept = Message {
                blocks: Vec::new(),
                ..message.clone()
            };
            for (place, block) in message.blocks.iter().enumerate() {
                let at = BlockRef {
                    message: index,
                    block: place,
                };
                let block = match actions.get(&at) {
                    Some(Action::Drop) => continue,
                    Some(Action::Truncate(text)) => replaced(block, text),
                    _ => block.clone(),
                };
                moved.insert(at, (out.messages.len(), kept.blocks.len()));
                kept.blocks.push(block);
            }
            if kept.blocks.is_empty() && !message.blocks.is_empty() {
                continue;
            }
            let note = self.notes.iter().find(|note| note.message == index);
            if let Some(note) = note
                && let Some(place) = add_note(&mut kept, &note.text)
            {
                for (message, block) in moved.values_mut() {
                    if *message == out.messages.len() && *block >= place {
                        *block += 1;
                    }
                }
            }
            out.messages.push(kept);
        }
        move_calls(transcript, &moved, &mut out);
        out
    }

    /// What happens to each block that a decision names: a call's action falls on the call when
    /// it is dropped, and on the result always.
    pub(crate) fn actions_by_block(&self, transcript: &Transcript) -> BTreeMap<BlockRef, &Action> {
        let mut actions = BTreeMap::new();
        for decision in &self.decisions {
            match decision.target {
                Target::Call(index) => {
                    let Some(call) = transcript.calls.get(index) else {
                        continue;
                    };
                    if decision.action == Action::Drop {
                        actions.insert(call.at, &decision.action);
                    }
                    if let Some(result) = call.result {
                        actions.insert(result, &decision.action);
                    }
                }
                Target::Attachment(at) => {
                    actions.insert(at, &decision.action);
                }
            }
        }
        actions
    }
}

fn summary_message(summary: &str) -> Message {
    Message {
        author: Author::Summary,
        blocks: vec![Block {
            row: RowId::NEW,
            bytes: text_bytes(summary),
            content: Content::Text(summary.to_owned()),
            address: None,
        }],
        rows: vec![RowId::NEW],
        at_ms: None,
    }
}

/// The block with `text` in the place of its output.
fn replaced(block: &Block, text: &str) -> Block {
    let mut block = block.clone();
    let envelope = block.bytes.saturating_sub(block.content.payload_bytes());
    match &mut block.content {
        Content::ToolResult { parts, .. } => *parts = vec![Part::Text(text.to_owned())],
        Content::Attachment { text: old, .. } => text.clone_into(old),
        _ => return block,
    }
    block.bytes = envelope + text_bytes(text);
    block
}

/// Adds a note and says where a new block came in, if one was needed.
fn add_note(message: &mut Message, note: &str) -> Option<usize> {
    let last_text = message
        .blocks
        .iter_mut()
        .rev()
        .find(|block| matches!(block.content, Content::Text(_)));
    if let Some(block) = last_text
        && let Content::Text(text) = &mut block.content
    {
        text.push_str("\n\n");
        text.push_str(note);
        block.bytes += NOTE_GAP + text_bytes(note);
        return None;
    }
    let place = message
        .blocks
        .iter()
        .position(|block| matches!(block.content, Content::ToolCall(_)))
        .unwrap_or(message.blocks.len());
    let row = message.rows.first().copied().unwrap_or(RowId::NEW);
    message.blocks.insert(
        place,
        Block {
            row,
            bytes: ENVELOPE + text_bytes(note),
            content: Content::Text(note.to_owned()),
            address: None,
        },
    );
    Some(place)
}

/// Brings over the calls that are still there, with their new places and numbers.
fn move_calls(
    transcript: &Transcript,
    moved: &BTreeMap<BlockRef, (usize, usize)>,
    out: &mut Transcript,
) {
    let place = |at: BlockRef| {
        moved
            .get(&at)
            .map(|&(message, block)| BlockRef { message, block })
    };
    let mut numbers = BTreeMap::new();
    for (index, call) in transcript.calls.iter().enumerate() {
        let Some(at) = place(call.at) else { continue };
        numbers.insert(index, out.calls.len());
        out.calls.push(Call {
            at,
            result: call.result.and_then(place),
            ..call.clone()
        });
    }
    for block in out.messages.iter_mut().flat_map(|m| &mut m.blocks) {
        match &mut block.content {
            Content::ToolCall(call) => {
                if let Some(&number) = numbers.get(call) {
                    *call = number;
                }
            }
            Content::ToolResult { call, .. } => {
                *call = call.and_then(|old| numbers.get(&old).copied());
            }
            _ => {}
        }
    }
}
