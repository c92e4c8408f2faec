//! A plan as bytes: the replacement history, and the synthetic turn that carries it.

use std::collections::BTreeSet;

use ctxfold_transcript::{Action, Author, BlockRef, Content, Plan, Transcript};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::address;
use crate::item::Item;
use crate::live::{Ending, Live};
use crate::{Error, ErrorKind, Stamp};

/// Where the lines of a synthetic turn stand, for the projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) turn: String,
    pub(crate) item: String,
    pub(crate) first_ordinal: u64,
    pub(crate) marker_ordinal: u64,
    pub(crate) last_ordinal: u64,
    pub(crate) at_ms: i64,
}

/// The bytes of a synthetic turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) bytes: Vec<u8>,
    /// Bytes before the first line: 1 where a line break had to be put in.
    pub(crate) lead: u64,
    /// Nothing for a legacy thread.
    pub(crate) layout: Option<Layout>,
}

/// The replacement history that carries a plan out, one JSON text an item.
pub(crate) fn replacement(
    live: &Live,
    transcript: &Transcript,
    plan: &Plan,
) -> Result<Vec<String>, Error> {
    let edits = Edits::of(live, transcript, plan);
    let mut out = Vec::new();
    let mut summary = plan.summary.as_deref().map(|text| {
        let text = format!("{}\n{text}", live.prefix);
        json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": text}]})
        .to_string()
    });
    for (index, message) in transcript.messages.iter().enumerate() {
        if index >= plan.tail
            && let Some(summary) = summary.take()
        {
            out.push(summary);
        }
        let note = plan.notes.iter().find(|note| note.message == index);
        let mut noted = None;
        if let Some(note) = note {
            let last = message
                .blocks
                .iter()
                .rev()
                .find(|b| matches!(b.content, Content::Text(_)));
            noted = last.map(|block| (block.row, note.text.as_str()));
            if noted.is_none() {
                out.push(assistant(&note.text));
            }
        }
        for row in &message.rows {
            let at = row.0 as usize;
            let entry = &live.entries[at];
            let keep_of_summary = matches!(entry.item, Item::Compaction);
            if plan.summary.is_some() && index < plan.tail && !keep_of_summary {
                continue;
            }
            if edits.gone.contains(&at) || never_carried(&entry.item) {
                continue;
            }
            let replaced = edits.texts.iter().find(|(row, _)| *row == at);
            let note = noted
                .filter(|(noted, _)| noted == row)
                .map(|(_, text)| text);
            let has_image = item_has_image(&entry.item) && index < plan.tail;
            if replaced.is_none() && note.is_none() && !has_image {
                out.push(live.raw(entry)?);
                continue;
            }
            let mut value: Value = serde_json::from_str(&live.raw(entry)?).map_err(|_| {
                Error::new(ErrorKind::Changed, "an item is not what it was when read")
                    .at(&live.chain[0].path)
            })?;
            if let Some((_, text)) = replaced {
                value["output"] = Value::String((*text).to_owned());
            }
            if has_image {
                fold_images(&mut value, &live.chain[0].meta.id);
            }
            if let Some(note) = note {
                add_note(&mut value, note);
            }
            out.push(value.to_string());
        }
    }
    out.extend(summary);
    Ok(out)
}

/// What is not carried into a replacement history: what the client writes anew by itself, and
/// kinds that it would send as an empty item.
pub(crate) fn never_carried(item: &Item) -> bool {
    matches!(
        item,
        Item::Message {
            reinjected: true,
            ..
        } | Item::Unknown(_)
    )
}

/// Rows that go, and rows whose output is replaced.
struct Edits<'p> {
    gone: BTreeSet<usize>,
    texts: Vec<(usize, &'p str)>,
}

impl<'p> Edits<'p> {
    fn of(live: &Live, transcript: &Transcript, plan: &'p Plan) -> Edits<'p> {
        let row = |at: BlockRef| transcript.block(at).map(|b| b.row.0 as usize);
        let mut edits = Edits {
            gone: BTreeSet::new(),
            texts: Vec::new(),
        };
        let mut turns = BTreeSet::new();
        for decision in &plan.decisions {
            let ctxfold_transcript::Target::Call(index) = decision.target else {
                continue;
            };
            let Some(call) = transcript.calls.get(index) else {
                continue;
            };
            match &decision.action {
                Action::Keep => {}
                Action::Truncate(text) => {
                    let row = call.result.and_then(row);
                    edits.texts.extend(row.map(|row| (row, text.as_str())));
                }
                Action::Drop => {
                    let rows = [Some(call.at), call.result];
                    edits
                        .gone
                        .extend(rows.into_iter().flatten().filter_map(row));
                    turns.insert(turn_of(transcript, call.at.message));
                }
            }
        }
        // Reasoning must not stay without the call that it led to.
        for (index, message) in transcript.messages.iter().enumerate().take(plan.tail) {
            if !turns.contains(&turn_of(transcript, index)) {
                continue;
            }
            let rows = message.rows.iter().map(|row| row.0 as usize);
            edits
                .gone
                .extend(rows.filter(|&row| matches!(live.entries[row].item, Item::Reasoning)));
        }
        edits
    }
}

/// The user's message that a message answers to.
fn turn_of(transcript: &Transcript, message: usize) -> Option<usize> {
    transcript.messages[..=message]
        .iter()
        .rposition(|m| m.author == Author::User)
}

fn item_has_image(item: &Item) -> bool {
    match item {
        Item::Message { blocks, .. } => blocks
            .iter()
            .any(|(_, content)| matches!(content, Content::Image(_))),
        Item::Output { parts, .. } => parts
            .iter()
            .any(|part| matches!(part, ctxfold_transcript::Part::Image(_))),
        _ => false,
    }
}

/// Puts a line with an address in the place of each image.
fn fold_images(value: &mut Value, thread: &str) {
    for key in ["content", "output"] {
        let Some(parts) = value.get_mut(key).and_then(Value::as_array_mut) else {
            continue;
        };
        for part in parts {
            let Some(url) = part["image_url"].as_str() else {
                continue;
            };
            let text = format!(
                "[image folded, {} bytes; ctxfold unfold {}:{}]",
                url.len(),
                address::tail(thread),
                image_key(url)
            );
            *part = json!({"type": "input_text", "text": text});
        }
    }
}

/// The key of an image: the beginning of its hash, which is the same wherever it was copied to.
pub(crate) fn image_key(url: &str) -> String {
    format!("img{}", &hex(&Sha256::digest(url.as_bytes()))[..12])
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn assistant(text: &str) -> String {
    json!({"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": text}]})
    .to_string()
}

fn add_note(value: &mut Value, note: &str) {
    let parts = value["content"].as_array_mut();
    let last = parts.and_then(|parts| parts.iter_mut().rev().find(|p| p["text"].is_string()));
    if let Some(Value::String(text)) = last.map(|part| &mut part["text"]) {
        text.push_str("\n\n");
        text.push_str(note);
    }
}

/// What a synthetic turn carries.
#[derive(Debug)]
pub(crate) struct Carried<'a> {
    /// The items, one JSON text an item.
    pub(crate) history: &'a [String],
    pub(crate) message: &'a str,
    /// The tokens they take.
    pub(crate) tokens: u64,
    /// The window before, where it is not the newest one: an undo goes on from an older one.
    pub(crate) previous: Option<&'a str>,
}

/// The synthetic turn around a replacement history.
pub(crate) fn turn(live: &Live, carried: &Carried<'_>, stamp: &Stamp) -> Turn {
    let time = stamp.timestamp();
    let now = stamp.now_ms();
    let seconds = now.div_euclid(1000);
    let turn = stamp.uuid();
    let item = stamp.uuid();
    let paginated = live.chain[0].is_paginated();
    let mut next = live.last_ordinal.map_or(0, |n| n.saturating_add(1));
    let mut bytes = Vec::new();
    if live.ending != Ending::Whole {
        bytes.push(b'\n');
    }
    let lead = bytes.len() as u64;
    let mut line = |kind: &str, payload: &str| {
        let ordinal = next;
        let number = if paginated {
            format!("\"ordinal\":{ordinal},")
        } else {
            String::new()
        };
        let text = format!(
            "{{\"timestamp\":\"{time}\",{number}\"type\":\"{kind}\",\"payload\":{payload}}}\n"
        );
        bytes.extend_from_slice(text.as_bytes());
        next = next.saturating_add(1);
        ordinal
    };
    let window = live.tokens.as_ref().and_then(|t| t.window).or(live.window);
    let first_ordinal = line(
        "event_msg",
        &json!({"type": "task_started", "turn_id": turn, "started_at": seconds,
            "model_context_window": window, "collaboration_mode_kind": "default"})
        .to_string(),
    );
    line("compacted", &compacted(live, carried, stamp));
    if let Some(count) = token_count(live, carried.tokens) {
        line("event_msg", &count);
    }
    let marker = if paginated {
        json!({"type": "item_completed", "thread_id": live.chain[0].meta.id, "turn_id": turn,
            "item": {"type": "ContextCompaction", "id": item},
            "started_at_ms": now, "completed_at_ms": now})
    } else {
        json!({"type": "context_compacted"})
    };
    let marker_ordinal = line("event_msg", &marker.to_string());
    let last_ordinal = line(
        "event_msg",
        &json!({"type": "task_complete", "turn_id": turn, "last_agent_message": null,
            "started_at": seconds, "completed_at": seconds, "duration_ms": 0})
        .to_string(),
    );
    Turn {
        bytes,
        lead,
        layout: paginated.then_some(Layout {
            turn,
            item,
            first_ordinal,
            marker_ordinal,
            last_ordinal,
            at_ms: now,
        }),
    }
}

/// The payload of `compacted`, with the items as they are, byte for byte.
fn compacted(live: &Live, carried: &Carried<'_>, stamp: &Stamp) -> String {
    let begin = live.begin.as_ref();
    let of_meta = || {
        let window = live.chain[0].meta.context_window.as_ref();
        window.and_then(|w| w.window_id.clone())
    };
    let previous = begin
        .and_then(|b| b.window_id.clone())
        .or_else(of_meta)
        .unwrap_or_else(|| stamp.uuid());
    let first = begin
        .and_then(|b| b.first_window_id.clone())
        .or_else(of_meta)
        .unwrap_or_else(|| previous.clone());
    let number = begin.map_or(1, |b| b.window_number.unwrap_or(0).saturating_add(1));
    format!(
        "{{\"message\":{},\"replacement_history\":[{}],\"window_number\":{number},\
         \"first_window_id\":{},\"previous_window_id\":{},\"window_id\":{}}}",
        Value::from(carried.message),
        carried.history.join(","),
        Value::from(first),
        Value::from(carried.previous.unwrap_or(&previous)),
        Value::from(stamp.uuid()),
    )
}

/// The last count of tokens with the context as it is after the compaction.
fn token_count(live: &Live, tokens: u64) -> Option<String> {
    let mut payload: Value = serde_json::from_str(&live.tokens.as_ref()?.payload).ok()?;
    let last = payload["info"]["last_token_usage"].as_object_mut()?;
    for (key, value) in last {
        *value = Value::from(if key == "total_tokens" { tokens } else { 0 });
    }
    Some(payload.to_string())
}
