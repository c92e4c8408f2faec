//! JSON as the client wrote it: objects seen as spans of their text, so that a row nobody edited
//! is the same bytes, and an edit touches the value it names and nothing else. Key order, numbers,
//! duplicate keys, white space and lone surrogates survive because they are never re-printed.
//! What the values mean is decided in [`crate::row`].

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An object: its keys and the text of their values, in order.
#[derive(Debug)]
pub(crate) struct Object<'a> {
    text: &'a str,
    fields: Vec<(Cow<'a, [u8]>, &'a str)>,
}

struct Fields;

/// A key, as bytes: JavaScript writes keys that are no Unicode.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, [u8]>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_bytes<E>(self, v: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(v))
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(v.to_vec()))
    }

    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(v.as_bytes()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(v.as_bytes().to_vec()))
    }
}

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(Cow<'de, [u8]>, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(16);
        while let Some(key) = map.next_key_seed(Key)? {
            let value: &RawValue = map.next_value()?;
            fields.push((key, value.get()));
        }
        Ok(fields)
    }
}

impl<'a> Object<'a> {
    /// The object that is the whole of `text`, white space aside.
    pub(crate) fn parse(text: &'a str) -> Option<Object<'a>> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let fields = deserializer.deserialize_map(Fields).ok()?;
        deserializer.end().ok()?;
        Some(Object { text, fields })
    }

    /// The text of a value; of the last one where the key stands twice, as in JavaScript.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.fields
            .iter()
            .rev()
            .find(|(k, _)| &**k == key.as_bytes())
            .map(|(_, v)| *v)
    }

    /// A string value.
    pub(crate) fn str(&self, key: &str) -> Option<String> {
        string(self.get(key)?)
    }

    /// Whether a value is `true`.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }

    /// A value that is an object.
    pub(crate) fn object(&self, key: &str) -> Option<Object<'a>> {
        Object::parse(self.get(key)?)
    }

    /// A number without fraction.
    pub(crate) fn u64(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    /// Where a value stands in the object's text.
    pub(crate) fn span(&self, key: &str) -> Option<Range<usize>> {
        self.get(key).map(|value| span_in(self.text, value))
    }

    /// The text with the values of some keys replaced and some keys removed. Keys that are not
    /// there are passed over.
    pub(crate) fn edited(&self, replace: &[(&str, String)], remove: &[&str]) -> String {
        let mut edits: Vec<(Range<usize>, &str)> = Vec::new();
        for (key, value) in replace {
            if let Some(span) = self.span(key) {
                edits.push((span, value));
            }
        }
        for (key, value) in &self.fields {
            if remove.iter().any(|r| r.as_bytes() == &**key) {
                edits.push((member(self.text, &span_in(self.text, value)), ""));
            }
        }
        edits.sort_by_key(|(span, _)| span.start);
        splice(self.text, &edits)
    }
}

/// Where `part`, a slice of `whole`, stands in it.
pub(crate) fn span_in(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// Replaces spans, which are sorted and do not overlap.
pub(crate) fn splice(text: &str, edits: &[(Range<usize>, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (span, with) in edits {
        if span.start < at {
            continue;
        }
        out.push_str(&text[at..span.start]);
        out.push_str(with);
        at = span.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The span of a whole member, with one of the commas beside it.
fn member(text: &str, value: &Range<usize>) -> Range<usize> {
    let bytes = text.as_bytes();
    let blank = |b: u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b':');
    let mut start = value.start;
    while start > 0 && blank(bytes[start - 1]) {
        start -= 1;
    }
    // The key's closing quote is before us; its opening quote is the next one that is not escaped.
    start = start.saturating_sub(1);
    while start > 0 {
        start -= 1;
        let escapes = bytes[..start]
            .iter()
            .rev()
            .take_while(|b| **b == b'\\')
            .count();
        if bytes[start] == b'"' && escapes % 2 == 0 {
            break;
        }
    }
    let before = text[..start].trim_end();
    if before.ends_with(',') {
        return before.len() - 1..value.end;
    }
    let rest = &text[value.end..];
    let after = rest.trim_start();
    if let Some(after) = after.strip_prefix(',') {
        return start..text.len() - after.len();
    }
    start..value.end
}

/// The texts of an array's elements.
pub(crate) fn elements(text: &str) -> Option<Vec<&str>> {
    if !text.starts_with('[') {
        return None;
    }
    let values: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(values.into_iter().map(RawValue::get).collect())
}

/// The value of a JSON string. A lone surrogate, which JavaScript can write and Unicode cannot
/// hold, becomes U+FFFD; the file keeps the original.
pub(crate) fn string(text: &str) -> Option<String> {
    if !text.starts_with('"') {
        return None;
    }
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut units: Vec<u16> = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    let mut buffer = [0u16; 2];
    while let Some(c) = chars.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut buffer));
            continue;
        }
        units.push(match chars.next()? {
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'b' => 0x08,
            'f' => 0x0c,
            'u' => {
                let digits = chars.as_str().get(..4)?;
                chars = chars.as_str()[4..].chars();
                u16::from_str_radix(digits, 16).ok()?
            }
            other => u16::try_from(u32::from(other)).ok()?,
        });
    }
    Some(String::from_utf16_lossy(&units))
}

/// A JSON string with this value.
pub(crate) fn quote(value: &str) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "\"\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_edit_changes_one_value_and_nothing_else() {
        let text = r#"{ "b":1.50, "a" : "\ud800", "b":2e3,"c":[1, 2],"z":{}}"#;
        let object = Object::parse(text).unwrap();
        assert_eq!(object.get("b"), Some("2e3"));
        assert_eq!(object.str("a").unwrap(), "\u{fffd}");
        assert_eq!(
            object.edited(&[("c", "7".into())], &[]),
            r#"{ "b":1.50, "a" : "\ud800", "b":2e3,"c":7,"z":{}}"#
        );
        assert_eq!(
            object.edited(&[], &["z"]),
            r#"{ "b":1.50, "a" : "\ud800", "b":2e3,"c":[1, 2]}"#
        );
        assert_eq!(
            object.edited(&[], &["b"]),
            r#"{  "a" : "\ud800","c":[1, 2],"z":{}}"#
        );
    }

    #[test]
    fn keys_that_are_no_unicode_are_passed_over() {
        let object = Object::parse(r#"{"\ud800":1,"a":2}"#).unwrap();
        assert_eq!(object.get("a"), Some("2"));
    }

    #[test]
    fn removing_the_only_member_leaves_an_empty_object() {
        assert_eq!(
            Object::parse(r#"{"a\"b":1}"#)
                .unwrap()
                .edited(&[], &["a\"b"]),
            "{}"
        );
    }

    proptest! {
        /// The oracle edits a parsed value.
        #[test]
        fn removing_agrees_with_a_parsed_value(
            keys in proptest::collection::btree_set("[a-c\"\\\\]{1,3}", 1..5), pick in 0usize..5, pad in " {0,2}"
        ) {
            let keys: Vec<&String> = keys.iter().collect();
            let members: Vec<String> =
                keys.iter().enumerate().map(|(i, k)| format!("{pad}{}{pad}:{pad}{i}{pad}", quote(k))).collect();
            let text = format!("{{{}}}", members.join(","));
            let gone = keys[pick % keys.len()].clone();
            let edited = Object::parse(&text).unwrap().edited(&[], &[&gone]);
            let mut value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
            value.shift_remove(&gone);
            prop_assert_eq!(serde_json::from_str::<serde_json::Map<_, _>>(&edited).unwrap(), value);
        }

        #[test]
        fn strings_come_back(s in ".*") {
            prop_assert_eq!(string(&quote(&s)), Some(s));
        }
    }
}
