//! The machine interface of the mod, format version 1: one JSON object in, one out. Documented in
//! docs/plugins.md.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version that is read and written.
pub(crate) const VERSION: u32 = 1;

/// What the mod hands over.
#[derive(Debug, Deserialize)]
pub(crate) struct Request<'a> {
    pub(crate) v: u32,
    #[serde(default)]
    pub(crate) instructions: Option<String>,
    #[serde(default)]
    pub(crate) options: Options,
    #[serde(borrow)]
    pub(crate) messages: Vec<&'a RawValue>,
}

/// The plugin's settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Options {
    pub(crate) mode: Option<String>,
    pub(crate) keep_recent: Option<usize>,
    pub(crate) model: Option<String>,
    pub(crate) thinking: Option<String>,
    pub(crate) tier: Option<String>,
}

/// One row: a text, a call, the results, or thinking, which is an empty row.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row<'a> {
    pub(crate) role: String,
    pub(crate) text: String,
    #[serde(default, borrow)]
    pub(crate) tool_uses: Vec<ToolUse<'a>>,
    #[serde(default, borrow)]
    pub(crate) tool_results: Option<Vec<ToolResult<'a>>>,
}

/// A call.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ToolUse<'a> {
    #[serde(rename = "tool_use_id")]
    pub(crate) id: String,
    pub(crate) tool: String,
    #[serde(borrow)]
    pub(crate) input: &'a RawValue,
}

/// A result.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolResult<'a> {
    #[serde(rename = "tool_use_id")]
    pub(crate) tool_use_id: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) is_error: bool,
    #[serde(default, borrow)]
    pub(crate) result: Option<&'a RawValue>,
}

/// The answer: messages and a line for people, or why there are none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Reply<'a> {
    /// The conversation as it is to be.
    Messages {
        v: u32,
        messages: Vec<Out<'a>>,
        note: String,
    },
    /// The conversation stays as it is.
    Skip { v: u32, skip: String },
}

/// A row of the answer.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Out<'a> {
    /// As it was handed over.
    Same(&'a RawValue),
    /// Built anew.
    Built(BuiltRow<'a>),
}

/// A row that was built anew. Without a handle: the client then writes it as a row of its own.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuiltRow<'a> {
    pub(crate) role: &'static str,
    pub(crate) text: String,
    pub(crate) tool_uses: Vec<BuiltUse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_results: Option<Vec<BuiltResult>>,
}

/// A call of a built row.
#[derive(Debug, Serialize)]
pub(crate) struct BuiltUse<'a> {
    pub(crate) tool_use_id: String,
    pub(crate) tool: String,
    pub(crate) input: &'a RawValue,
}

/// A result of a built row.
#[derive(Debug, Serialize)]
pub(crate) struct BuiltResult {
    pub(crate) tool_use_id: String,
    pub(crate) text: String,
    #[serde(rename = "isError")]
    pub(crate) is_error: bool,
}
