//! What comes back, and which answers are good enough to hand out.

use std::fmt;

use crate::error::ErrorKind;
use crate::failure::Failure;
use crate::request::Schema;
use crate::scrub::Scrubber;
use crate::wire::Chunk;

/// A whole text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// All text parts that are no thoughts, joined. Never empty.
    pub text: String,
    /// Why the model stopped; anything but [`FinishReason::Stop`] deserves a look.
    pub finish: FinishReason,
    /// What it cost.
    pub usage: Usage,
    /// The model that answered, where the server says so; it may be another than was asked.
    pub model_version: Option<String>,
    /// The place of the key that was used, counted from 1.
    pub key_place: usize,
    /// The model refused the thinking setting, and the request was answered without it.
    pub thinking_dropped: bool,
}

/// Tokens, as the server counted them; 0 where it did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The input.
    pub prompt: u64,
    /// The text of the answer.
    pub output: u64,
    /// The thoughts; paid for like output, and counted against the output limit.
    pub thoughts: u64,
    /// The part of the input that came from a cache.
    pub cached: u64,
    /// All together.
    pub total: u64,
}

/// Why the model stopped.
///
/// Reasons that make a text unusable are errors ([`ErrorKind::Truncated`], [`ErrorKind::Blocked`],
/// [`ErrorKind::Stopped`]) and do not get here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// The server did not say.
    Unspecified,
    /// A reason that this version does not know, as the server spelled it.
    Unknown(String),
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "STOP",
            Self::Unspecified => "FINISH_REASON_UNSPECIFIED",
            Self::Unknown(name) => name,
        })
    }
}

impl Draft {
    pub(crate) fn answer(self, key_place: usize, thinking_dropped: bool) -> Answer {
        let Self {
            text,
            finish,
            usage,
            model_version,
        } = self;
        Answer {
            text,
            finish,
            usage,
            model_version,
            key_place,
            thinking_dropped,
        }
    }
}

/// What a finish reason means for the text.
fn verdict(finish: Option<&str>) -> Result<FinishReason, ErrorKind> {
    Ok(match finish {
        Some("STOP") => FinishReason::Stop,
        None | Some("" | "FINISH_REASON_UNSPECIFIED") => FinishReason::Unspecified,
        Some("MAX_TOKENS") => return Err(ErrorKind::Truncated),
        Some(
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII",
        ) => {
            return Err(ErrorKind::Blocked);
        }
        Some(name) if name.starts_with("IMAGE_") || name == "NO_IMAGE" => {
            return Err(ErrorKind::Blocked);
        }
        Some(
            "OTHER" | "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS",
        ) => {
            return Err(ErrorKind::Stopped);
        }
        Some(name) => FinishReason::Unknown(name.to_owned()),
    })
}

/// The checked parts of an [`Answer`] that the reply itself holds.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) finish: FinishReason,
    pub(crate) usage: Usage,
    pub(crate) model_version: Option<String>,
}

/// Joins what a reply or a stream brought, and refuses what is not a whole text.
///
/// The finish reason is judged before the text: an answer that was cut is called cut, not
/// malformed.
pub(crate) fn judge(
    chunks: impl IntoIterator<Item = Chunk>,
    schema: Option<&Schema>,
    scrub: &Scrubber,
) -> Result<Draft, Failure> {
    let mut whole = Chunk::default();
    for chunk in chunks {
        whole.text.push_str(&chunk.text);
        whole.candidate |= chunk.candidate;
        whole.tool_call |= chunk.tool_call;
        whole.finish = chunk.finish.or(whole.finish);
        whole.block = chunk.block.or(whole.block);
        whole.usage = chunk.usage.or(whole.usage);
        whole.model_version = chunk.model_version.or(whole.model_version);
    }
    let finish = whole.finish.as_deref().map(|name| scrub.line(name));
    let fail = |kind, text: String, reason: Option<String>| {
        Err(Failure {
            reason,
            usage: whole.usage.map(Box::new),
            ..Failure::of_answer(kind, text)
        })
    };
    if let Some(reason) = whole.block.as_deref().map(|name| scrub.line(name)) {
        return fail(
            ErrorKind::Blocked,
            format!("Gemini blocked the prompt: {reason}"),
            Some(reason),
        );
    }
    let reason = finish.clone();
    let named = finish.clone().unwrap_or_default();
    let finish = match verdict(finish.as_deref()) {
        Ok(finish) => finish,
        Err(ErrorKind::Truncated) => return fail(ErrorKind::Truncated, cut(whole.usage), reason),
        Err(ErrorKind::Blocked) => {
            return fail(
                ErrorKind::Blocked,
                format!("Gemini blocked the answer: {named}"),
                reason,
            );
        }
        Err(kind) => {
            return fail(
                kind,
                format!("Gemini stopped before the answer was done: {named}"),
                reason,
            );
        }
    };
    if whole.text.trim().is_empty() {
        let text = match (whole.candidate, whole.tool_call, &finish) {
            (false, ..) => "Gemini gave no answer: no candidates".to_owned(),
            (_, true, _) => "Gemini gave no text but a tool call".to_owned(),
            (_, _, FinishReason::Unknown(name)) => format!("Gemini gave no text: {name}"),
            _ => "Gemini gave no text".to_owned(),
        };
        return fail(ErrorKind::Empty, text, reason);
    }
    if let Some(problem) = schema.and_then(|schema| shape_problem(&whole.text, schema)) {
        return fail(
            ErrorKind::Malformed,
            format!("Gemini's answer is not the JSON that was asked for: {problem}"),
            reason,
        );
    }
    let model_version = whole.model_version.map(|version| scrub.line(&version));
    Ok(Draft {
        text: whole.text,
        finish,
        usage: whole.usage.unwrap_or_default(),
        model_version,
    })
}

fn cut(usage: Option<Usage>) -> String {
    let text = "Gemini's answer was cut at the output limit";
    match usage {
        Some(Usage {
            output, thoughts, ..
        }) if thoughts > 0 => {
            format!("{text} ({thoughts} tokens went to thoughts, {output} to the answer)")
        }
        _ => text.to_owned(),
    }
}

fn shape_problem(text: &str, schema: &Schema) -> Option<String> {
    let value = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) => value,
        // The parser's own message quotes the text.
        Err(error) => {
            return Some(format!(
                "broken at line {}, column {}",
                error.line(),
                error.column()
            ));
        }
    };
    let (fits, wanted) = match schema {
        Schema::Object(_) => (value.is_object(), "object"),
        Schema::Array { .. } => (value.is_array(), "array"),
        Schema::String | Schema::Enum(_) => (value.is_string(), "string"),
        Schema::Boolean => (value.is_boolean(), "boolean"),
    };
    (!fits).then(|| format!("no {wanted}"))
}

#[cfg(test)]
mod tests;
