//! One conversation item, as it stands in a `response_item` or in a replacement history, turned
//! into what the transcript needs. Images are weighed and let go.

use ctxfold_transcript::{Author, Content, Image, Part};

use crate::prefix;
use crate::wire::{self, ContentPart, OutputObject};

/// An item, without its raw JSON.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// A message; blocks with their bytes in the request.
    Message {
        author: Author,
        blocks: Vec<(u64, Content)>,
        /// Whether the client puts it in anew by itself after a compaction.
        reinjected: bool,
    },
    /// Reasoning.
    Reasoning,
    /// A call.
    Call {
        id: String,
        tool: String,
        input: String,
    },
    /// A call that the provider carried out itself: it has no output item.
    ServerCall { tool: String },
    /// An output.
    Output {
        call: String,
        parts: Vec<Part>,
        failed: Option<bool>,
    },
    /// The provider's own compacted history, which only it can read.
    Compaction,
    /// A kind that is not known here.
    Unknown(String),
}

/// Beginnings of user messages that the client writes anew after every compaction.
const REINJECTED: &[&str] = &[
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
];
/// Beginnings of user messages that the client wrote, once.
const CLIENTS: &[&str] = &[
    "<turn_aborted>",
    "<subagent_notification>",
    "<skill>",
    "<user_shell_command>",
    "<hook_prompt",
];

/// Reads an item from its JSON.
pub(crate) fn parse(raw: &str, own_prefix: &str) -> Option<Item> {
    let item: wire::Item<'_> = serde_json::from_str(raw).ok()?;
    let name = || {
        let name = item.name.as_deref().unwrap_or(&item.kind);
        match item.namespace.as_deref() {
            Some(space) => format!("{space}.{name}"),
            None => name.to_owned(),
        }
    };
    let text = |raw: Option<&serde_json::value::RawValue>| {
        raw.map(|r| wire::string(r).unwrap_or_else(|| r.get().to_owned()))
            .unwrap_or_default()
    };
    let id = || item.call_id.as_deref().unwrap_or_default().to_owned();
    Some(match &*item.kind {
        "message" => message(&item, raw, own_prefix),
        "reasoning" => Item::Reasoning,
        "function_call" | "tool_search_call" => Item::Call {
            id: id(),
            tool: name(),
            input: text(item.arguments),
        },
        "custom_tool_call" => Item::Call {
            id: id(),
            tool: name(),
            input: text(item.input),
        },
        "local_shell_call" => Item::Call {
            id: id(),
            tool: "local_shell".to_owned(),
            input: text(item.action),
        },
        "function_call_output"
        | "custom_tool_call_output"
        | "local_shell_call_output"
        | "tool_search_output" => {
            let (parts, failed) = output(item.output);
            Item::Output {
                call: id(),
                parts,
                failed,
            }
        }
        "web_search_call" | "image_generation_call" => Item::ServerCall {
            tool: item.kind.trim_end_matches("_call").to_owned(),
        },
        "compaction" | "compaction_summary" | "context_compaction" => Item::Compaction,
        other => Item::Unknown(other.to_owned()),
    })
}

/// The texts of a message's blocks.
pub(crate) fn words(blocks: &[(u64, Content)]) -> impl Iterator<Item = &str> {
    blocks.iter().filter_map(|(_, content)| match content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

fn message(item: &wire::Item<'_>, raw: &str, own_prefix: &str) -> Item {
    let mut blocks = Vec::new();
    let mut first_text = None;
    match item.content.map(serde_json::value::RawValue::get) {
        Some(content) if content.starts_with('[') => {
            let parts: Vec<&serde_json::value::RawValue> =
                serde_json::from_str(content).unwrap_or_default();
            for part in parts {
                let (content, text) = content_part(part.get());
                first_text = first_text.or(text);
                blocks.push((part.get().len() as u64, content));
            }
        }
        Some(content) => {
            let text: String = serde_json::from_str(content).unwrap_or_default();
            first_text = Some(text.clone());
            blocks.push((content.len() as u64, Content::Text(text)));
        }
        None => {}
    }
    let inside: u64 = blocks.iter().map(|(bytes, _)| *bytes).sum();
    if let Some((bytes, _)) = blocks.first_mut() {
        *bytes += (raw.len() as u64).saturating_sub(inside);
    }
    let text = first_text.unwrap_or_default();
    let starts = |list: &[&str]| {
        list.iter()
            .any(|start| text.trim_start().starts_with(start))
    };
    let mut reinjected = false;
    let author = match item.role.as_deref() {
        Some("assistant") => Author::Assistant,
        Some("user") if starts(REINJECTED) => {
            reinjected = true;
            Author::Client
        }
        Some("user") if starts(CLIENTS) => Author::Client,
        Some("user") => match prefix::strip(&text, own_prefix) {
            Some(summary) => {
                if let Some((_, Content::Text(shown))) = blocks.first_mut() {
                    summary.clone_into(shown);
                }
                Author::Summary
            }
            None => Author::User,
        },
        _ => {
            reinjected = true;
            Author::Client
        }
    };
    Item::Message {
        author,
        blocks,
        reinjected,
    }
}

fn content_part(raw: &str) -> (Content, Option<String>) {
    let Ok(part) = serde_json::from_str::<ContentPart<'_>>(raw) else {
        return (
            Content::Other {
                kind: "unreadable".to_owned(),
            },
            None,
        );
    };
    match (&part.text, &part.image_url) {
        (_, Some(url)) => (Content::Image(image(url)), None),
        (Some(text), None) => (
            Content::Text(text.clone().into_owned()),
            Some(text.clone().into_owned()),
        ),
        (None, None) => (
            Content::Other {
                kind: part.kind.into_owned(),
            },
            None,
        ),
    }
}

fn image(url: &str) -> Image {
    let media_type = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split([';', ',']).next())
        .unwrap_or("image")
        .to_owned();
    Image {
        media_type,
        bytes: url.len() as u64,
        pixels: None,
    }
}

/// The parts of an output, and whether it says of itself that it failed.
fn output(raw: Option<&serde_json::value::RawValue>) -> (Vec<Part>, Option<bool>) {
    let Some(raw) = raw else {
        return (Vec::new(), None);
    };
    if let Some(text) = wire::string(raw) {
        return (vec![Part::Text(text)], None);
    }
    if let Ok(parts) = serde_json::from_str::<Vec<&serde_json::value::RawValue>>(raw.get()) {
        let parts = parts
            .into_iter()
            .map(|part| match content_part(part.get()).0 {
                Content::Text(text) => Part::Text(text),
                Content::Image(image) => Part::Image(image),
                Content::Other { kind } => Part::Other {
                    kind,
                    bytes: part.get().len() as u64,
                },
                _ => Part::Other {
                    kind: "part".to_owned(),
                    bytes: part.get().len() as u64,
                },
            })
            .collect();
        return (parts, None);
    }
    match serde_json::from_str::<OutputObject>(raw.get()) {
        Ok(object) => (
            vec![Part::Text(object.content.unwrap_or_default())],
            object.success.map(|ok| !ok),
        ),
        Err(_) => (vec![Part::Text(raw.get().to_owned())], None),
    }
}
