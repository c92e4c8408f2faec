//! The API's JSON, and nothing that decides on it: requests are written, replies are taken apart.
//!
//! Replies are read as loose values instead of derived types, because a field of an unexpected type
//! or a kind that came later must cost that field and not the answer.

mod fault;
mod reply;
mod request;

pub(crate) use fault::Fault;
pub(crate) use reply::{Chunk, models_page, token_count};
pub(crate) use request::{count_body, generate_body};

use serde_json::Value;

/// Why a body is not the JSON that was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotJson {
    Empty,
    Html,
    Doubled,
    Broken { line: usize, column: usize },
}

impl NotJson {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Empty => "an empty body".to_owned(),
            Self::Html => "an HTML page instead of JSON".to_owned(),
            Self::Doubled => "two JSON documents in one body".to_owned(),
            Self::Broken { line, column } => format!("broken JSON at line {line}, column {column}"),
        }
    }
}

/// How often JSON inside a JSON string is unpacked; some proxies encode twice.
const UNPACK: usize = 3;

/// A body's documents: one, or the items of an array, which is what streams give without `alt=sse`.
pub(crate) fn documents(body: &[u8]) -> Result<Vec<Value>, NotJson> {
    let mut body = body;
    while let Some(rest) = body.strip_prefix(b"\xef\xbb\xbf") {
        body = rest;
    }
    let body = body.trim_ascii();
    if body.is_empty() {
        return Err(NotJson::Empty);
    }
    if body.starts_with(b"<") {
        return Err(NotJson::Html);
    }
    let mut parser = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    let first = match parser.next() {
        Some(Ok(first)) => first,
        // The parser's own message quotes the body, and bodies quote keys.
        Some(Err(error)) => {
            return Err(NotJson::Broken {
                line: error.line(),
                column: error.column(),
            });
        }
        None => return Err(NotJson::Empty),
    };
    match parser.next() {
        None => {}
        Some(Ok(second)) if second.is_object() || second.is_array() => {
            return Err(NotJson::Doubled);
        }
        Some(_) => {
            return Err(NotJson::Broken {
                line: 1,
                column: parser.byte_offset(),
            });
        }
    }
    Ok(match unpack(first) {
        Value::Array(items) => items.into_iter().map(unpack).collect(),
        one => vec![one],
    })
}

/// The first document of a body, however the rest looks: good enough to find out what an error
/// says.
fn first_document(body: &[u8]) -> Option<Value> {
    let start = body
        .iter()
        .position(|byte| matches!(byte, b'{' | b'[' | b'"'))?;
    let first = serde_json::Deserializer::from_slice(&body[start..])
        .into_iter::<Value>()
        .next()?
        .ok()?;
    Some(match unpack(first) {
        Value::Array(items) => unpack(items.into_iter().next()?),
        one => one,
    })
}

fn unpack(mut value: Value) -> Value {
    for _ in 0..UNPACK {
        let Value::String(text) = &value else { break };
        match serde_json::from_str::<Value>(text) {
            Ok(inner) if inner.is_object() || inner.is_array() || inner.is_string() => {
                value = inner;
            }
            _ => break,
        }
    }
    value
}

/// A number, also one in a string, which is how protocol buffers write 64 bits.
fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn string(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bodies_of_every_kind_are_told_apart() {
        let table: [(&str, Result<Vec<Value>, NotJson>); 11] = [
            ("{\"a\":1}", Ok(vec![json!({"a": 1})])),
            ("\u{feff}\u{feff} {\"a\":1} \n", Ok(vec![json!({"a": 1})])),
            (
                "[{\"a\":1},{\"b\":2}]",
                Ok(vec![json!({"a": 1}), json!({"b": 2})]),
            ),
            ("\"{\\\"a\\\":1}\"", Ok(vec![json!({"a": 1})])),
            ("", Err(NotJson::Empty)),
            (" \r\n", Err(NotJson::Empty)),
            ("<!doctype html><html>", Err(NotJson::Html)),
            ("{\"a\":1}{\"a\":1}", Err(NotJson::Doubled)),
            ("{\"a\":1}\n{\"a\":1}", Err(NotJson::Doubled)),
            ("{\"a\":", Err(NotJson::Broken { line: 1, column: 5 })),
            (
                "{\"a\":1} nonsense",
                Err(NotJson::Broken { line: 1, column: 8 }),
            ),
        ];
        for (body, expected) in table {
            assert_eq!(documents(body.as_bytes()), expected, "{body:?}");
        }
    }

    #[test]
    fn numbers_may_be_strings() {
        assert_eq!(number(Some(&json!("12"))), Some(12));
        assert_eq!(number(Some(&json!(12))), Some(12));
        assert_eq!(number(Some(&json!(-1))), None);
        assert_eq!(number(None), None);
    }
}
