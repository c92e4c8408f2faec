//! JSON as hosts really write it: any depth, numbers of any size, repeated keys, lone surrogates.
//!
//! Only the members that somebody asks for are decoded; all others stay the text they were.

use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind};

/// A JSON value as the text that the host wrote.
#[derive(Debug, Clone)]
pub struct Raw(Box<RawValue>);

impl Raw {
    /// The value's JSON text, unchanged.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The value when it is a string. Lone surrogates become U+FFFD.
    pub fn string(&self) -> Option<String> {
        decode_string(self.text())
    }

    /// The member of that name when the value is an object that has one.
    pub fn member(&self, name: &str) -> Option<Self> {
        Payload::parse(self.text()).ok()?.raw(name).cloned()
    }

    /// The items when the value is an array.
    pub fn items(&self) -> Option<Vec<Self>> {
        serde_json::from_str::<Vec<Box<RawValue>>>(self.text())
            .ok()
            .map(|items| items.into_iter().map(Self).collect())
    }

    /// The value as a type of yours. `None` when it has another shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.text()).ok()
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Raw {}

/// A JSON object whose members are kept in order and as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    members: Vec<(String, Raw)>,
}

impl Payload {
    /// Parses one JSON object. Of a repeated key the last value counts.
    ///
    /// # Errors
    /// [`ErrorKind::NotAnObject`] when the text is anything else.
    pub fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text)
            .map_err(|e| Error::new(ErrorKind::NotAnObject, format!("not a JSON object: {e}")))
    }

    /// The member of that name.
    pub fn raw(&self, name: &str) -> Option<&Raw> {
        self.members
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, raw)| raw)
    }

    /// The member of that name, when it is a string.
    pub fn string(&self, name: &str) -> Option<String> {
        self.raw(name)?.string()
    }

    /// The member of that name, when it has that type.
    pub fn decode<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.raw(name)?.decode()
    }

    /// Names and values, in the host's order.
    pub fn members(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.members.iter().map(|(name, raw)| (name.as_str(), raw))
    }
}

impl fmt::Display for Payload {
    /// The object as JSON, each value as the host wrote it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (name, raw)) in self.members().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{}:{}", quote(name), raw.text())?;
        }
        f.write_str("}")
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Payload;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Payload, A::Error> {
                let mut members: Vec<(String, Raw)> = Vec::new();
                // Names have places of their own, so that many members cost no more than each.
                let mut places: HashMap<String, usize> = HashMap::new();
                while let Some((key, value)) = map.next_entry::<&RawValue, Box<RawValue>>()? {
                    let name = decode_string(key.get()).unwrap_or_default();
                    if let Some(place) = places.get(&name) {
                        members[*place].1 = Raw(value);
                    } else {
                        places.insert(name.clone(), members.len());
                        members.push((name, Raw(value)));
                    }
                }
                Ok(Payload { members })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A JSON string literal of a text.
pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text of a JSON string literal; `None` when the literal is no string.
fn decode_string(literal: &str) -> Option<String> {
    let literal = literal.trim();
    if !literal.starts_with('"') {
        return None;
    }
    match serde_json::from_str(literal) {
        Ok(text) => Some(text),
        // Valid JSON whose escapes are no valid Unicode.
        Err(_) => Some(decode_loosely(&literal[1..literal.len() - 1])),
    }
}

fn decode_loosely(body: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(body.len());
    let mut rest = body.chars();
    while let Some(c) = rest.next() {
        let decoded = match (c, if c == '\\' { rest.next() } else { None }) {
            ('\\', Some('u')) => {
                let hex: String = rest.by_ref().take(4).collect();
                units.push(u16::from_str_radix(&hex, 16).unwrap_or(0xFFFD));
                continue;
            }
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            ('\\', Some('t')) => '\t',
            ('\\', Some('b')) => '\u{8}',
            ('\\', Some('f')) => '\u{c}',
            ('\\', Some(other)) => other,
            _ => c,
        };
        units.extend_from_slice(decoded.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_json_that_a_host_writes_is_kept_as_it_was() {
        let deep = format!("{}{}", "[".repeat(600), "]".repeat(600));
        let text = format!(
            r#"{{"s":"\ud800 tail","n":1e999,"m":123456789012345678901234567890,"d":{deep}}}"#
        );
        let payload = Payload::parse(&text).unwrap();
        assert_eq!(payload.to_string(), text);
        assert_eq!(payload.string("s").unwrap(), "\u{fffd} tail");
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        let payload = Payload::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!(payload.to_string(), r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn a_hundred_thousand_members_are_read() {
        let members: Vec<_> = (0..100_000).map(|i| format!("\"k{i}\":{i}")).collect();
        let payload = Payload::parse(&format!("{{{}}}", members.join(","))).unwrap();
        assert_eq!(payload.raw("k99999").unwrap().text(), "99999");
    }

    #[test]
    fn escapes_decode_the_same_in_both_decoders() {
        let body = r#"a\"\\\/\b\f\n\r\tA😀é"#;
        let strict: String = serde_json::from_str(&format!("\"{body}\"")).unwrap();
        assert_eq!(decode_loosely(body), strict);
    }

    #[test]
    fn only_strings_are_strings() {
        let payload = Payload::parse(r#"{"a":1,"b":null,"c":["x"]}"#).unwrap();
        assert!(
            ["a", "b", "c", "none"]
                .iter()
                .all(|n| payload.string(n).is_none())
        );
    }
}
