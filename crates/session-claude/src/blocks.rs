//! Content blocks of a message as the client writes them, turned into neutral ones.

use ctxfold_transcript::{Content, Image, Part};

use crate::image::size_of_base64;
use crate::wire::{Object, elements, string};
use crate::words::typed_while_busy;

/// Bytes of `{"type":"text","text":}`: what wraps a string that stands as the whole content.
pub(crate) const TEXT_ENVELOPE: u64 = 23;

/// One block: its bytes in the request, and what it is.
pub(crate) struct Parsed {
    pub(crate) bytes: u64,
    pub(crate) what: What,
}

/// A block, before calls and results are paired.
pub(crate) enum What {
    Done(Content),
    Call {
        id: String,
        tool: String,
        input: String,
    },
    Result {
        id: String,
        parts: Vec<Part>,
        is_error: bool,
    },
}

/// The blocks of a message's `content`.
pub(crate) fn blocks(content: &str) -> Vec<Parsed> {
    if let Some(text) = string(content) {
        return vec![Parsed {
            bytes: content.len() as u64 + TEXT_ENVELOPE,
            what: What::Done(Content::Text(text)),
        }];
    }
    let blocks = elements(content).unwrap_or_default();
    blocks
        .into_iter()
        .map(|text| Parsed {
            bytes: text.len() as u64,
            what: block(text),
        })
        .collect()
}

fn block(text: &str) -> What {
    let Some(object) = Object::parse(text) else {
        return other("unknown");
    };
    let kind = object.str("type").unwrap_or_default();
    match kind.as_str() {
        "text" => What::Done(Content::Text(object.str("text").unwrap_or_default())),
        "thinking" | "redacted_thinking" => What::Done(Content::Thinking),
        "tool_use" => What::Call {
            id: object.str("id").unwrap_or_default(),
            tool: object.str("name").unwrap_or_default(),
            input: object.get("input").unwrap_or("{}").to_owned(),
        },
        "tool_result" => What::Result {
            id: object.str("tool_use_id").unwrap_or_default(),
            parts: object.get("content").map(parts).unwrap_or_default(),
            is_error: object.is_true("is_error"),
        },
        "image" => What::Done(Content::Image(image(&object))),
        other_kind => other(other_kind),
    }
}

fn other(kind: &str) -> What {
    What::Done(Content::Other {
        kind: kind.to_owned(),
    })
}

/// The parts of a tool's output: a string, or an array of blocks.
pub(crate) fn parts(content: &str) -> Vec<Part> {
    if let Some(text) = string(content) {
        return vec![Part::Text(text)];
    }
    let elements = elements(content).unwrap_or_default();
    elements
        .into_iter()
        .map(|text| {
            let unknown = |kind: &str| Part::Other {
                kind: kind.to_owned(),
                bytes: text.len() as u64,
            };
            let Some(object) = Object::parse(text) else {
                return unknown("unknown");
            };
            match object.str("type").as_deref() {
                Some("text") => Part::Text(object.str("text").unwrap_or_default()),
                Some("image") => Part::Image(image(&object)),
                kind => unknown(kind.unwrap_or("unknown")),
            }
        })
        .collect()
}

fn image(object: &Object<'_>) -> Image {
    let source = object.object("source");
    let data = source
        .as_ref()
        .and_then(|s| s.get("data"))
        .unwrap_or("\"\"");
    Image {
        media_type: source
            .as_ref()
            .and_then(|s| s.str("media_type"))
            .unwrap_or_default(),
        bytes: data.len().saturating_sub(2) as u64,
        pixels: size_of_base64(data.trim_matches('"').as_bytes()).map(|s| (s.width, s.height)),
    }
}

/// What an attachment row puts into the request.
pub(crate) struct Attached {
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    pub(crate) text: String,
    pub(crate) bytes: u64,
    pub(crate) foldable: bool,
    /// Whether it is a prompt that the user typed while the client was busy.
    pub(crate) typed: bool,
}

/// Reads an attachment row. The newer client sends `rendered`, the older one renders from
/// `attachment` each time.
pub(crate) fn attached(row: &Object<'_>) -> Attached {
    let attachment = row.object("attachment");
    let field = |key: &str| attachment.as_ref().and_then(|a| a.str(key));
    let kind = field("type").unwrap_or_default();
    let rendered = row.get("rendered").and_then(elements).unwrap_or_default();
    let sent: Vec<&str> = rendered
        .into_iter()
        .filter_map(|r| Object::parse(r)?.get("content"))
        .collect();
    let (text, bytes) = if sent.is_empty() {
        let raw = match (kind.as_str(), &attachment) {
            ("prompt_snapshot" | "session_context", _) | (_, None) => Vec::new(),
            (_, Some(attachment)) => unrendered(attachment),
        };
        let bytes = raw.iter().map(|t| t.len() as u64).sum();
        (raw.iter().map(|t| plain(t)).collect::<Vec<_>>(), bytes)
    } else {
        let bytes = sent.iter().map(|t| t.len() as u64 + TEXT_ENVELOPE).sum();
        (sent.iter().map(|t| plain(t)).collect(), bytes)
    };
    let typed = attachment.as_ref().and_then(typed_while_busy);
    Attached {
        name: field("displayPath")
            .or_else(|| field("filename"))
            .or_else(|| field("skill")),
        bytes,
        foldable: kind == "file",
        typed: typed.is_some(),
        text: typed.unwrap_or_else(|| text.join("\n")),
        kind,
    }
}

/// The values from which an attachment without `rendered` is rendered.
fn unrendered<'a>(attachment: &Object<'a>) -> Vec<&'a str> {
    let file = attachment
        .object("content")
        .and_then(|c| c.object("file"))
        .and_then(|f| f.get("content"));
    match file {
        Some(file) => vec![file],
        None => ["content", "addedLines", "text", "prompt"]
            .iter()
            .filter_map(|key| attachment.get(key))
            .collect(),
    }
}

fn plain(raw: &str) -> String {
    string(raw).unwrap_or_else(|| match elements(raw) {
        Some(list) => list
            .into_iter()
            .filter_map(string)
            .collect::<Vec<_>>()
            .join("\n"),
        None => raw.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_output_keep_their_order() {
        let parts = parts(
            r#"[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"new"}]"#,
        );
        assert!(matches!(&parts[0], Part::Text(t) if t == "a"));
        assert!(matches!(&parts[1], Part::Image(i) if i.bytes == 4 && i.media_type == "image/png"));
        assert!(matches!(&parts[2], Part::Other { kind, bytes: 14 } if kind == "new"));
    }
}
