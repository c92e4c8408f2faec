//! One chunk of a scan: what its lines hold, looked at where they lie.
//!
//! Chunks are put together in [`super::whole`].

use std::collections::HashMap;

use memchr::memchr;

use super::{Compaction, Turn};
use crate::Finding;
use crate::glance::{self, Block, Glance, Inside, Usage, glance_inside};
use crate::json;
use crate::lines::{PieceKind, Place, is_object, split_line};
use crate::probe::{Probe, key};

/// A tool call as the scan saw it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: Box<str>,
    pub(super) id: Box<str>,
    pub(super) input: u64,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: Box<str>,
    pub(super) bytes: u64,
    pub(super) place: Place,
}

/// What was seen in one chunk. Lines are counted from 0.
#[derive(Default)]
pub(super) struct Part {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) rows: u64,
    pub(super) session: Option<String>,
    pub(super) kinds: HashMap<String, (u64, u64)>,
    label: String,
    pub(super) calls: Vec<Call>,
    pub(super) results: Vec<Answer>,
    pub(super) turns: Vec<(u128, Turn)>,
    pub(super) compactions: Vec<Compaction>,
    pub(super) first_ms: Option<i64>,
    /// The newest timestamp's text, so that only one a chunk is parsed.
    pub(super) last_time: Vec<u8>,
    pub(super) findings: Vec<Finding>,
    pub(super) probe: Option<Probe>,
}

/// Looks at the lines of a chunk.
pub(super) fn look(bytes: &[u8], offset: u64, deep: bool) -> Part {
    let mut part = Part {
        bytes: bytes.len() as u64,
        probe: deep.then(Probe::default),
        ..Part::default()
    };
    let mut inside = Inside::default();
    let mut start = 0;
    while start < bytes.len() {
        let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |n| start + n + 1);
        let place = Place {
            offset: offset + start as u64,
            line: Some(part.lines),
        };
        part.line(&bytes[start..end], place, &mut inside);
        part.lines += 1;
        start = end;
    }
    part
}

impl Part {
    fn line<'a>(&mut self, line: &'a [u8], place: Place, inside: &mut Inside<'a>) {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        if let Some(probe) = &mut self.probe {
            probe.line(line, body, place);
        }
        if is_object(body) {
            self.row(body, place, inside);
            return;
        }
        let mut rows = Vec::new();
        split_line(
            line,
            place,
            &mut |piece| {
                if piece.kind == PieceKind::Row {
                    rows.push((piece.bytes, piece.offset));
                }
            },
            &mut self.findings,
        );
        for (row, offset) in rows {
            self.row(row, Place { offset, ..place }, inside);
        }
    }

    fn row<'a>(&mut self, row: &'a [u8], place: Place, inside: &mut Inside<'a>) {
        let look = glance_inside(row, inside);
        self.rows += 1;
        self.count(&look, row.len() as u64);
        if self.session.is_none() && !look.session.is_empty() {
            self.session = Some(String::from_utf8_lossy(look.session).into_owned());
        }
        if !look.timestamp.is_empty() {
            if self.first_ms.is_none() {
                self.first_ms = look.at_ms();
            }
            self.last_time.clear();
            self.last_time.extend_from_slice(look.timestamp);
        }
        if let Some(probe) = &mut self.probe {
            probe.row(&look, row, place);
        }
        if look.is_boundary() {
            self.compaction(&look, place);
        }
        if !look.sidechain {
            self.message(&look, inside, place);
        }
    }

    fn count(&mut self, look: &Glance<'_>, bytes: u64) {
        self.label.clear();
        let kind = if look.kind.is_empty() {
            b"?"
        } else {
            look.kind
        };
        self.label.push_str(&String::from_utf8_lossy(kind));
        let within = match look.kind {
            b"system" => Some(look.subtype),
            b"attachment" => look
                .attachment
                .and_then(|a| json::field(a, "type"))
                .and_then(json::raw_text),
            _ => None,
        };
        if let Some(within) = within.filter(|w| !w.is_empty()) {
            self.label.push('/');
            self.label.push_str(&String::from_utf8_lossy(within));
        }
        if let Some(total) = self.kinds.get_mut(&self.label) {
            total.0 += 1;
            total.1 += bytes;
        } else {
            self.kinds.insert(self.label.clone(), (1, bytes));
        }
    }

    fn compaction(&mut self, look: &Glance<'_>, place: Place) {
        let field = |name| look.compact.and_then(|c| json::field(c, name));
        self.compactions.push(Compaction {
            line: place.line.unwrap_or(0),
            offset: place.offset,
            at_ms: look.at_ms(),
            trigger: field("trigger")
                .and_then(json::text)
                .map(std::borrow::Cow::into_owned),
            before: field("preTokens").and_then(glance::tokens),
            after: field("postTokens").and_then(glance::tokens),
        });
    }

    fn message(&mut self, look: &Glance<'_>, inside: &Inside<'_>, place: Place) {
        for block in &inside.blocks {
            self.block(block, look, place);
        }
        if look.kind == b"assistant"
            && let Some(used) = inside.usage.filter(|u| *u != Usage::default())
        {
            // Rows without a message's identifier are messages of their own.
            let id = key(inside.id.unwrap_or(look.uuid));
            let turn = Turn {
                line: place.line.unwrap_or(0),
                at_ms: look.at_ms(),
                context: used.context,
                output: used.output,
            };
            merge_turn(&mut self.turns, id, turn);
        }
    }

    fn block(&mut self, block: &Block<'_>, look: &Glance<'_>, place: Place) {
        let Some(id) = block.id.and_then(json::text) else {
            return;
        };
        let body = block.body.unwrap_or_default();
        match (look.kind, block.kind) {
            (b"assistant", b"\"tool_use\"") => self.calls.push(Call {
                tool: block.name.and_then(json::text).unwrap_or_default().into(),
                id: id.into(),
                input: body.len() as u64,
            }),
            (b"user", b"\"tool_result\"") => self.results.push(Answer {
                id: id.into(),
                bytes: json::raw_text(body).unwrap_or(body).len() as u64,
                place,
            }),
            _ => {}
        }
    }
}

/// The rows of a message repeat its usage while it is written: only the last is final, so the
/// larger counts.
fn merge_turn(turns: &mut Vec<(u128, Turn)>, id: u128, turn: Turn) {
    match turns.last_mut() {
        Some((last, old)) if *last == id => {
            old.context = old.context.max(turn.context);
            old.output = old.output.max(turn.output);
        }
        _ => turns.push((id, turn)),
    }
}
