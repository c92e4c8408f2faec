//! The rollout's own shapes: one twin a shape, with what is not needed left as raw JSON. Kinds and
//! fields that are not here stay untouched in the file.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// One line.
#[derive(Debug, Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(borrow, default)]
    pub(crate) timestamp: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) ordinal: Option<u64>,
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) payload: &'a RawValue,
    #[serde(default)]
    pub(crate) metadata: Option<LineMetadata>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LineMetadata {
    #[serde(default)]
    pub(crate) compaction_output: Option<bool>,
}

/// The payload of `session_meta`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct SessionMeta {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) cli_version: Option<String>,
    #[serde(default)]
    pub(crate) history_mode: Option<String>,
    #[serde(default)]
    pub(crate) history_base: Option<HistoryBase>,
    #[serde(default)]
    pub(crate) context_window: Option<ContextWindow>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct HistoryBase {
    pub(crate) thread_id: String,
    pub(crate) end_ordinal_exclusive: u64,
    pub(crate) end_byte_offset: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ContextWindow {
    #[serde(default)]
    pub(crate) window_id: Option<String>,
}

/// The payload of `compacted`.
#[derive(Debug, Deserialize)]
pub(crate) struct Compacted<'a> {
    #[serde(borrow, default)]
    pub(crate) message: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) replacement_history: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    pub(crate) window_number: Option<u64>,
    #[serde(default)]
    pub(crate) first_window_id: Option<String>,
    #[serde(default)]
    pub(crate) previous_window_id: Option<String>,
    #[serde(default)]
    pub(crate) window_id: Option<String>,
}

/// As much of `compacted` as says whether the live part begins there.
#[derive(Debug, Deserialize)]
pub(crate) struct BeginProbe<'a> {
    #[serde(borrow, default)]
    pub(crate) replacement_history: Option<&'a RawValue>,
}

/// The payload of `event_msg`, as far as it is read.
#[derive(Debug, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(default)]
    pub(crate) info: Option<TokenInfo>,
    #[serde(default)]
    pub(crate) model_context_window: Option<u64>,
    #[serde(default)]
    pub(crate) num_turns: Option<u32>,
    #[serde(borrow, default)]
    pub(crate) item: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct TokenInfo {
    #[serde(default)]
    pub(crate) last_token_usage: Option<Usage>,
    #[serde(default)]
    pub(crate) model_context_window: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Usage {
    #[serde(default)]
    pub(crate) total_tokens: u64,
}

/// The payload of `turn_context`.
#[derive(Debug, Deserialize)]
pub(crate) struct TurnContext {
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) model: Option<String>,
}

/// A finished command, which says its exit code in a field of its own.
#[derive(Debug, Deserialize)]
pub(crate) struct FinishedItem {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) exit_code: Option<i32>,
}

/// A conversation item, as in `response_item` and in replacement histories.
#[derive(Debug, Deserialize)]
pub(crate) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) action: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) output: Option<&'a RawValue>,
}

/// A part of a message's content or of an output list.
#[derive(Debug, Deserialize)]
pub(crate) struct ContentPart<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) image_url: Option<Cow<'a, str>>,
}

/// An output in the object form of old clients.
#[derive(Debug, Deserialize)]
pub(crate) struct OutputObject {
    #[serde(default)]
    pub(crate) content: Option<String>,
    #[serde(default)]
    pub(crate) success: Option<bool>,
}

/// A JSON string, or nothing where it is none.
pub(crate) fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

impl<'a> Line<'a> {
    /// A line, or nothing where it is no object with a type and a payload.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Line<'a>> {
        serde_json::from_slice(bytes).ok()
    }

    /// The payload as one of the shapes.
    pub(crate) fn payload<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.payload.get()).ok()
    }
}
