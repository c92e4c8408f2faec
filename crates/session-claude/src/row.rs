//! A row of the file as the chain sees it. How its text is cut into values is [`crate::wire`]'s
//! business; which rows are read is decided in [`crate::live`].

use ctxfold_transcript::Fill;

use crate::stamp::parse_timestamp;
use crate::wire::{Object, elements};

/// A row that stands in the conversation's tree.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) uuid: Box<str>,
    pub(crate) parent: Option<Box<str>>,
    pub(crate) kind: Kind,
    pub(crate) message_id: Option<Box<str>>,
    pub(crate) at_ms: Option<i64>,
    pub(crate) sidechain: bool,
    pub(crate) meta: bool,
    pub(crate) summary: bool,
    /// Whether it holds results of tool calls.
    pub(crate) results: bool,
    /// What a compaction's boundary preserves.
    pub(crate) boundary: Option<Boundary>,
    /// Offset in bytes of the newest version of this row.
    pub(crate) offset: u64,
    /// Offset of the first version in the part that was read: the row's place in file order.
    pub(crate) order: u64,
    /// The row as it stands in the file; invalid UTF-8 is replaced.
    pub(crate) text: Box<str>,
}

/// What kind of row it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    User,
    Assistant,
    Attachment,
    System,
}

/// What a `compact_boundary` row says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Boundary {
    pub(crate) anchor: Option<Box<str>>,
    /// `preservedMessages.uuids`.
    pub(crate) list: Option<Vec<Box<str>>>,
    /// `preservedSegment`: head and tail.
    pub(crate) segment: Option<(Box<str>, Box<str>)>,
    /// Tokens after the compaction, as its author estimated.
    pub(crate) post_tokens: Option<u64>,
    pub(crate) pre_tokens: Option<u64>,
    /// Our own mark: how it was made, and the length of the file before it.
    pub(crate) mark: Option<(Box<str>, u64)>,
}

/// One line, understood.
#[derive(Debug)]
pub(crate) enum Line {
    /// A row of the tree.
    Row(Box<Row>),
    /// A row that has a place in the tree but is no part of the conversation: progress and kinds
    /// that are not known. The client looks through them.
    Through {
        uuid: Box<str>,
        parent: Option<Box<str>>,
    },
    /// The client's note of the newest prompt and leaf.
    LastPrompt(LastPrompt),
    /// A title: the kind of row, and the title.
    Title { own: bool, title: String },
    /// Anything else.
    Other,
}

/// A `last-prompt` row.
#[derive(Debug, Clone)]
pub(crate) struct LastPrompt {
    pub(crate) leaf: Option<Box<str>>,
    pub(crate) prompt: Option<String>,
    pub(crate) explicit: bool,
    pub(crate) offset: u64,
}

/// Understands one line; `None` when it is no JSON object.
pub(crate) fn understand(text: &str, offset: u64) -> Option<Line> {
    let object = Object::parse(text)?;
    let kind = object.str("type");
    let boxed = |key: &str| object.str(key).map(String::into_boxed_str);
    let uuid = boxed("uuid").filter(|u| !u.is_empty());
    let parent = boxed("parentUuid");
    let known = match kind.as_deref() {
        Some("user") => Kind::User,
        Some("assistant") => Kind::Assistant,
        Some("attachment") => Kind::Attachment,
        Some("system") => Kind::System,
        other => {
            return Some(match (other, uuid) {
                (Some("last-prompt"), _) => Line::LastPrompt(LastPrompt {
                    leaf: boxed("leafUuid"),
                    prompt: object.str("lastPrompt"),
                    explicit: object.is_true("explicit"),
                    offset,
                }),
                (Some("custom-title"), _) => title(&object, "customTitle", true),
                (Some("ai-title"), _) => title(&object, "aiTitle", false),
                (_, Some(uuid)) => Line::Through { uuid, parent },
                _ => Line::Other,
            });
        }
    };
    let Some(uuid) = uuid else {
        return Some(Line::Other);
    };
    let message = object.object("message");
    let content = message.as_ref().and_then(|m| m.get("content"));
    let results = known == Kind::User
        && content.and_then(elements).is_some_and(|blocks| {
            blocks.iter().any(|b| {
                Object::parse(b).and_then(|b| b.str("type")).as_deref() == Some("tool_result")
            })
        });
    let is_boundary =
        known == Kind::System && object.str("subtype").as_deref() == Some("compact_boundary");
    Some(Line::Row(Box::new(Row {
        uuid,
        parent,
        kind: known,
        message_id: match known {
            Kind::Assistant => message
                .as_ref()
                .and_then(|m| m.str("id"))
                .filter(|id| !id.is_empty())
                .map(String::into_boxed_str),
            _ => None,
        },
        at_ms: object.str("timestamp").and_then(|t| parse_timestamp(&t)),
        sidechain: object.is_true("isSidechain"),
        meta: object.is_true("isMeta"),
        summary: object.is_true("isCompactSummary"),
        results,
        boundary: is_boundary.then(|| boundary(&object)),
        offset,
        order: offset,
        text: text.into(),
    })))
}

fn title(object: &Object<'_>, key: &str, own: bool) -> Line {
    match object.str(key) {
        Some(title) => Line::Title { own, title },
        None => Line::Other,
    }
}

fn boundary(object: &Object<'_>) -> Boundary {
    let Some(metadata) = object.object("compactMetadata") else {
        return Boundary::default();
    };
    let mark = metadata
        .object("ctxfold")
        .and_then(|m| Some((m.str("mode")?.into_boxed_str(), m.u64("from")?)));
    let messages = metadata.object("preservedMessages");
    let segment = metadata.object("preservedSegment");
    let anchor = messages
        .as_ref()
        .or(segment.as_ref())
        .and_then(|o| o.str("anchorUuid"))
        .map(String::into_boxed_str);
    let list = messages
        .as_ref()
        .and_then(|m| m.get("uuids"))
        .and_then(|raw| serde_json::from_str::<Vec<String>>(raw).ok())
        .map(|list| list.into_iter().map(String::into_boxed_str).collect());
    let segment = segment.and_then(|s| {
        let boxed = |key| s.str(key).map(String::into_boxed_str);
        Some((boxed("headUuid")?, boxed("tailUuid")?))
    });
    let tokens = |key| metadata.u64(key).map(|n| n.min(Fill::MOST_TOKENS));
    Boundary {
        anchor,
        list,
        segment,
        post_tokens: tokens("postTokens"),
        pre_tokens: tokens("preTokens"),
        mark,
    }
}

impl Boundary {
    /// Whether it names rows before it that stay.
    pub(crate) fn preserves(&self) -> bool {
        self.list.as_ref().is_some_and(|l| !l.is_empty()) || self.segment.is_some()
    }
}
