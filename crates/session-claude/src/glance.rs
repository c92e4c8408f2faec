//! The parts of a row that scans need, borrowed from its bytes: nothing is built or copied.

use ctxfold_transcript::Fill;

use crate::json::{self, Cursor, Object};
use crate::stamp::parse_timestamp;

/// A look at one row. Values are raw JSON unless said otherwise; of a key that stands twice the
/// last one counts, as in JavaScript.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Glance<'a> {
    /// `type`, without quotes.
    pub(crate) kind: &'a [u8],
    /// `subtype`, without quotes.
    pub(crate) subtype: &'a [u8],
    /// `uuid`, without quotes; empty where there is none.
    pub(crate) uuid: &'a [u8],
    /// `parentUuid`, without quotes; empty for null and where there is none.
    pub(crate) parent: &'a [u8],
    /// `timestamp`, without quotes.
    pub(crate) timestamp: &'a [u8],
    /// `sessionId`, without quotes.
    pub(crate) session: &'a [u8],
    pub(crate) sidechain: bool,
    pub(crate) meta: bool,
    pub(crate) summary: bool,
    pub(crate) message: Option<&'a [u8]>,
    pub(crate) attachment: Option<&'a [u8]>,
    pub(crate) compact: Option<&'a [u8]>,
    pub(crate) cwd: Option<&'a [u8]>,
    pub(crate) version: Option<&'a [u8]>,
    /// `leafUuid`, without quotes.
    pub(crate) leaf: &'a [u8],
    /// `explicit` of a last-prompt row.
    pub(crate) explicit: bool,
    /// Title or prompt of the rows that hold one, and which of them it is.
    pub(crate) words: Option<&'a [u8]>,
}

/// What one request used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Input, cache creation and cache read together.
    pub(crate) context: u64,
    pub(crate) output: u64,
    /// Tokens written to the cache for one hour, and for five minutes.
    pub(crate) hour: u64,
    pub(crate) minutes: u64,
}

/// One block of a message's content. Values are raw JSON.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Block<'a> {
    pub(crate) kind: &'a [u8],
    /// `id` of a call, `tool_use_id` of a result.
    pub(crate) id: Option<&'a [u8]>,
    pub(crate) name: Option<&'a [u8]>,
    /// `input` of a call, `content` of a result.
    pub(crate) body: Option<&'a [u8]>,
}

/// What is in a row's message.
#[derive(Debug, Default)]
pub(crate) struct Inside<'a> {
    pub(crate) id: Option<&'a [u8]>,
    pub(crate) usage: Option<Usage>,
    pub(crate) blocks: Vec<Block<'a>>,
}

/// Looks at a row.
pub(crate) fn glance(row: &[u8]) -> Glance<'_> {
    look(row, None)
}

/// Looks at a row and into its message, in one walk over its bytes.
pub(crate) fn glance_inside<'a>(row: &'a [u8], inside: &mut Inside<'a>) -> Glance<'a> {
    inside.id = None;
    inside.usage = None;
    inside.blocks.clear();
    look(row, Some(inside))
}

/// Walks through a message.
fn message<'a>(cursor: &mut Cursor<'a>, inside: &mut Inside<'a>) {
    if !cursor.object() {
        return;
    }
    while let Some(key) = cursor.key() {
        match key {
            b"id" => inside.id = Some(cursor.value()),
            b"usage" => inside.usage = Some(usage(cursor.value())),
            b"content" if cursor.array() => {
                while cursor.element() {
                    let mut block = Block::default();
                    if cursor.object() {
                        while let Some(key) = cursor.key() {
                            let value = cursor.value();
                            match key {
                                b"type" => block.kind = value,
                                b"id" | b"tool_use_id" => block.id = Some(value),
                                b"name" => block.name = Some(value),
                                b"input" | b"content" => block.body = Some(value),
                                _ => {}
                            }
                        }
                    }
                    inside.blocks.push(block);
                }
            }
            b"content" => {}
            _ => {
                cursor.value();
            }
        }
    }
}

fn look<'a>(row: &'a [u8], mut inside: Option<&mut Inside<'a>>) -> Glance<'a> {
    let mut out = Glance::default();
    let mut cursor = Cursor::new(row);
    if !cursor.object() {
        return out;
    }
    while let Some(key) = cursor.key() {
        if let (b"message", Some(inside)) = (key, inside.as_deref_mut()) {
            let from = cursor.rest();
            message(&mut cursor, inside);
            let end = from.len() - cursor.rest().len();
            out.message = Some(&from[..end]);
            continue;
        }
        let value = cursor.value();
        let bare = || json::raw_text(value).unwrap_or_default();
        match key {
            b"type" => out.kind = bare(),
            b"subtype" => out.subtype = bare(),
            b"uuid" => out.uuid = bare(),
            b"parentUuid" => out.parent = bare(),
            b"timestamp" => out.timestamp = bare(),
            b"sessionId" => out.session = bare(),
            b"isSidechain" => out.sidechain = value == b"true",
            b"isMeta" => out.meta = value == b"true",
            b"isCompactSummary" => out.summary = value == b"true",
            b"explicit" => out.explicit = value == b"true",
            b"message" => out.message = Some(value),
            b"attachment" => out.attachment = Some(value),
            b"compactMetadata" => out.compact = Some(value),
            b"cwd" => out.cwd = Some(value),
            b"version" => out.version = Some(value),
            b"leafUuid" => out.leaf = bare(),
            b"customTitle" | b"aiTitle" | b"title" | b"summary" | b"lastPrompt" => {
                out.words = Some(value);
            }
            _ => {}
        }
    }
    out
}

impl<'a> Glance<'a> {
    /// Whether it is the row of a compaction.
    pub(crate) fn is_boundary(&self) -> bool {
        self.kind == b"system" && self.subtype == b"compact_boundary"
    }

    /// Its time in milliseconds since the Unix epoch.
    pub(crate) fn at_ms(&self) -> Option<i64> {
        parse_timestamp(std::str::from_utf8(self.timestamp).ok()?)
    }

    /// The content of its message.
    pub(crate) fn content(&self) -> Option<&'a [u8]> {
        json::field(self.message?, "content")
    }

    /// What its request used, where it says so.
    pub(crate) fn usage(&self) -> Option<Usage> {
        Some(usage(json::field(self.message?, "usage")?))
    }
}

/// Reads a number of tokens.
pub(crate) fn tokens(value: &[u8]) -> Option<u64> {
    json::number(value).map(|n| n.min(Fill::MOST_TOKENS))
}

/// Reads a usage object.
pub(crate) fn usage(object: &[u8]) -> Usage {
    let mut out = Usage::default();
    for (key, value) in Object::new(object) {
        let n = || tokens(value).unwrap_or(0);
        match key {
            b"input_tokens" | b"cache_creation_input_tokens" | b"cache_read_input_tokens" => {
                out.context = out.context.saturating_add(n()).min(Fill::MOST_TOKENS);
            }
            b"output_tokens" => out.output = n(),
            b"cache_creation" => {
                for (key, value) in Object::new(value) {
                    let n = tokens(value).unwrap_or(0);
                    match key {
                        b"ephemeral_1h_input_tokens" => out.hour = n,
                        b"ephemeral_5m_input_tokens" => out.minutes = n,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    out
}
