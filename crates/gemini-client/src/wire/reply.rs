//! Successful replies, taken apart.

use serde_json::Value;

use super::{number, string};
use crate::answer::Usage;
use crate::model::Model;
use crate::request::model_id;

/// What one reply, or one event of a stream, holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chunk {
    /// Text parts that are no thoughts, joined.
    pub(crate) text: String,
    pub(crate) thought_bytes: u64,
    /// Whether there is a candidate at all.
    pub(crate) candidate: bool,
    /// Whether there is a part that calls a tool.
    pub(crate) tool_call: bool,
    pub(crate) finish: Option<String>,
    pub(crate) block: Option<String>,
    pub(crate) usage: Option<Usage>,
    pub(crate) model_version: Option<String>,
}

impl Chunk {
    pub(crate) fn read(document: &Value) -> Self {
        let candidate = document.pointer("/candidates/0");
        let mut chunk = Self {
            candidate: candidate.is_some(),
            finish: string(candidate.and_then(|candidate| candidate.get("finishReason"))),
            block: string(document.pointer("/promptFeedback/blockReason")),
            usage: document
                .get("usageMetadata")
                .filter(|usage| usage.is_object())
                .map(usage),
            model_version: string(document.get("modelVersion")),
            ..Self::default()
        };
        let parts = candidate
            .and_then(|candidate| candidate.pointer("/content/parts"))
            .and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            chunk.tool_call |= part.get("functionCall").is_some();
            let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
            if part.get("thought").and_then(Value::as_bool) == Some(true) {
                chunk.thought_bytes += text.len() as u64;
            } else {
                chunk.text.push_str(text);
            }
        }
        chunk
    }
}

fn usage(value: &Value) -> Usage {
    let count = |name| number(value.get(name)).unwrap_or(0);
    Usage {
        prompt: count("promptTokenCount"),
        output: count("candidatesTokenCount"),
        thoughts: count("thoughtsTokenCount"),
        cached: count("cachedContentTokenCount"),
        total: count("totalTokenCount"),
    }
}

/// The models of a page that take `generateContent`, and the token of the next page.
pub(crate) fn models_page(document: &Value) -> Option<(Vec<Model>, Option<String>)> {
    // A page may be empty, and then has no list; anything else that has none is no page.
    let models = match document.get("models") {
        Some(models) => models.as_array()?.as_slice(),
        None if document
            .as_object()?
            .keys()
            .all(|name| name == "nextPageToken") =>
        {
            &[]
        }
        None => return None,
    };
    let next = string(document.get("nextPageToken")).filter(|token| !token.is_empty());
    Some((models.iter().filter_map(model).collect(), next))
}

fn model(value: &Value) -> Option<Model> {
    let methods = value.get("supportedGenerationMethods")?.as_array()?;
    if !methods
        .iter()
        .any(|method| method.as_str() == Some("generateContent"))
    {
        return None;
    }
    // Ids are shown and asked for; what could not be asked for is not listed.
    let id = model_id(value.get("name")?.as_str()?).ok()?;
    Some(Model {
        display_name: string(value.get("displayName")),
        input_token_limit: number(value.get("inputTokenLimit")),
        output_token_limit: number(value.get("outputTokenLimit")),
        thinking: value.get("thinking").and_then(Value::as_bool),
        ..Model::named(id)
    })
}

/// The reply of `countTokens`.
pub(crate) fn token_count(document: &Value) -> Option<u64> {
    number(document.get("totalTokens"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_joined_and_thoughts_left_out() {
        let chunk = Chunk::read(&json!({
            "candidates": [{
                "content": { "role": "model", "parts": [
                    { "text": "secret plan", "thought": true },
                    { "text": "one " }, { "inlineData": {} }, { "text": "two", "thought": false },
                ] },
                "finishReason": "NEW_ONE",
            }, { "content": { "parts": [{ "text": "other candidate" }] } }],
            "usageMetadata": {
                "promptTokenCount": 7, "candidatesTokenCount": "2",
                "thoughtsTokenCount": 3, "totalTokenCount": 12,
            },
            "modelVersion": "gemini-3.5-flash-001",
        }));
        assert_eq!(chunk.text, "one two");
        assert_eq!(chunk.thought_bytes, 11);
        assert_eq!(chunk.finish.as_deref(), Some("NEW_ONE"));
        assert_eq!(
            chunk.usage,
            Some(Usage {
                prompt: 7,
                output: 2,
                thoughts: 3,
                cached: 0,
                total: 12
            })
        );
        assert_eq!(chunk.model_version.as_deref(), Some("gemini-3.5-flash-001"));
    }

    #[test]
    fn fields_of_a_wrong_type_cost_only_themselves() {
        let chunk = Chunk::read(&json!({
            "candidates": [{
                "content": { "parts": [{ "text": 5 }, "x", { "text": "ok" }] },
                "finishReason": 7,
            }],
            "usageMetadata": [], "promptFeedback": "no", "modelVersion": null,
        }));
        assert_eq!(
            chunk,
            Chunk {
                text: "ok".into(),
                candidate: true,
                ..Chunk::default()
            }
        );
        for odd in [
            json!(null),
            json!([]),
            json!("text"),
            json!({ "candidates": {} }),
            json!({ "candidates": [] }),
        ] {
            assert_eq!(Chunk::read(&odd), Chunk::default());
        }
    }

    #[test]
    fn a_page_of_models() {
        let (models, next) = models_page(&json!({ "models": [
            {
                "name": "models/a", "supportedGenerationMethods": ["generateContent"],
                "inputTokenLimit": 100, "thinking": true,
            },
            { "name": "models/b", "supportedGenerationMethods": ["embedContent"] },
            { "name": "models/c" },
            { "name": "models/d\u{1b}[2J", "supportedGenerationMethods": ["generateContent"] },
        ], "nextPageToken": "t" }))
        .unwrap();
        assert_eq!(
            models,
            [Model {
                input_token_limit: Some(100),
                thinking: Some(true),
                ..Model::named("a")
            }]
        );
        assert_eq!(next.as_deref(), Some("t"));
        assert_eq!(models_page(&json!({})), Some((vec![], None)));
        assert_eq!(models_page(&json!({ "models": 1 })), None);
        assert_eq!(models_page(&json!({ "hello": 1 })), None);
    }
}
