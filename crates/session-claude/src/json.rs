//! A borrowed look at JSON objects without building them: keys, and the bytes of their values.
//!
//! It is made for bytes that are known to be valid JSON and is lenient with others: it ends early,
//! and never panics or reads past the end.

use std::borrow::Cow;

use memchr::memchr2;

/// The fields of an object in order: raw key (between its quotes) and the value's bytes.
pub(crate) struct Object<'a> {
    bytes: &'a [u8],
    pos: usize,
}

/// The elements of an array in order.
pub(crate) struct Array<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Object<'a> {
    /// The fields of `bytes`; none when it is no object.
    pub(crate) fn new(bytes: &'a [u8]) -> Object<'a> {
        let pos = skip_space(bytes, 0);
        let pos = if bytes.get(pos) == Some(&b'{') {
            pos + 1
        } else {
            bytes.len()
        };
        Object { bytes, pos }
    }
}

impl<'a> Iterator for Object<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut pos = skip_space(self.bytes, self.pos);
        if self.bytes.get(pos) == Some(&b',') {
            pos = skip_space(self.bytes, pos + 1);
        }
        if self.bytes.get(pos) != Some(&b'"') {
            self.pos = self.bytes.len();
            return None;
        }
        let key_end = skip_string(self.bytes, pos);
        let key = self.bytes.get(pos + 1..key_end.saturating_sub(1))?;
        pos = skip_space(self.bytes, key_end);
        if self.bytes.get(pos) != Some(&b':') {
            self.pos = self.bytes.len();
            return None;
        }
        pos = skip_space(self.bytes, pos + 1);
        let end = skip_value(self.bytes, pos);
        self.pos = end;
        Some((key, &self.bytes[pos..end]))
    }
}

impl<'a> Array<'a> {
    /// The elements of `bytes`; none when it is no array.
    pub(crate) fn new(bytes: &'a [u8]) -> Array<'a> {
        let pos = if bytes.first() == Some(&b'[') {
            1
        } else {
            bytes.len()
        };
        Array { bytes, pos }
    }
}

impl<'a> Iterator for Array<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let mut pos = skip_space(self.bytes, self.pos);
        if self.bytes.get(pos) == Some(&b',') {
            pos = skip_space(self.bytes, pos + 1);
        }
        let end = skip_value(self.bytes, pos);
        if end == pos {
            self.pos = self.bytes.len();
            return None;
        }
        self.pos = end;
        Some(&self.bytes[pos..end])
    }
}

/// Reads a value while it is walked, so that nested values are passed over once and not once a
/// level. After each `key` or `element` the value must be read by one of the methods.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor before a value.
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        let pos = skip_space(bytes, 0);
        Cursor { bytes, pos }
    }

    /// Goes into an object; `false`, and the value is passed over, when there is none.
    pub(crate) fn object(&mut self) -> bool {
        self.enter(b'{')
    }

    /// Goes into an array; `false`, and the value is passed over, when there is none.
    pub(crate) fn array(&mut self) -> bool {
        self.enter(b'[')
    }

    fn enter(&mut self, open: u8) -> bool {
        if self.bytes.get(self.pos) == Some(&open) {
            self.pos += 1;
            return true;
        }
        self.value();
        false
    }

    /// The next key of the object, still escaped; `None` goes out of the object.
    pub(crate) fn key(&mut self) -> Option<&'a [u8]> {
        if !self.more(b'"') {
            return None;
        }
        let end = skip_string(self.bytes, self.pos);
        let key = self.bytes.get(self.pos + 1..end.saturating_sub(1));
        self.pos = skip_space(self.bytes, end);
        if self.bytes.get(self.pos) == Some(&b':') {
            self.pos = skip_space(self.bytes, self.pos + 1);
        }
        key
    }

    /// Whether another element of the array follows; `false` goes out of the array.
    pub(crate) fn element(&mut self) -> bool {
        let before = self.pos;
        if !self.more(0) {
            return false;
        }
        // What is no value would never end.
        self.pos > before
            || self
                .bytes
                .get(self.pos)
                .is_some_and(|b| *b != b',' && *b != b':')
    }

    /// Passes over a comma or the end of what was entered; whether a value begins here.
    fn more(&mut self, start: u8) -> bool {
        let mut pos = skip_space(self.bytes, self.pos);
        if self.bytes.get(pos) == Some(&b',') {
            pos = skip_space(self.bytes, pos + 1);
        }
        self.pos = pos;
        match self.bytes.get(pos) {
            None => false,
            Some(b'}' | b']') => {
                self.pos += 1;
                false
            }
            Some(byte) => start == 0 || *byte == start,
        }
    }

    /// What is not yet read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.pos..).unwrap_or_default()
    }

    /// The value's bytes.
    pub(crate) fn value(&mut self) -> &'a [u8] {
        let start = self.pos.min(self.bytes.len());
        self.pos = skip_value(self.bytes, start).max(start);
        &self.bytes[start..self.pos]
    }
}

/// The value of a key in an object.
pub(crate) fn field<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    Object::new(object)
        .find(|(key, _)| *key == name.as_bytes())
        .map(|(_, value)| value)
}

/// A string's content, unescaped; what cannot be read becomes a replacement character. `None` when
/// the value is no string.
pub(crate) fn text(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = raw_text(value)?;
    let lossy = String::from_utf8_lossy(inner);
    if !lossy.contains('\\') {
        return Some(lossy);
    }
    Some(Cow::Owned(unescape(&lossy)))
}

/// A string's bytes between its quotes, still escaped.
pub(crate) fn raw_text(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// A number that is no less than 0; a fraction is cut off.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(value.get(..digits)?).ok()?.parse().ok()
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(n) = rest.find('\\') {
        out.push_str(&rest[..n]);
        let mut chars = rest[n + 1..].chars();
        let Some(c) = chars.next() else {
            return out;
        };
        rest = chars.as_str();
        match c {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let (unit, after) = hex4(rest);
                rest = after;
                let low = rest.strip_prefix("\\u").map(hex4);
                match (unit, low) {
                    (Some(high @ 0xd800..=0xdbff), Some((Some(low @ 0xdc00..=0xdfff), after))) => {
                        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                        rest = after;
                    }
                    (unit, _) => out.push(
                        unit.and_then(char::from_u32)
                            .unwrap_or(char::REPLACEMENT_CHARACTER),
                    ),
                }
            }
            other => out.push(other),
        }
    }
    out.push_str(rest);
    out
}

fn hex4(text: &str) -> (Option<u32>, &str) {
    match text.get(..4) {
        Some(digits) => (u32::from_str_radix(digits, 16).ok(), &text[4..]),
        None => (None, ""),
    }
}

fn skip_space(bytes: &[u8], mut pos: usize) -> usize {
    while matches!(bytes.get(pos), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        pos += 1;
    }
    pos
}

/// End of the string that begins at `pos` with its quote.
fn skip_string(bytes: &[u8], pos: usize) -> usize {
    let mut at = pos + 1;
    while let Some(n) = bytes.get(at..).and_then(|b| memchr2(b'"', b'\\', b)) {
        if bytes[at + n] == b'"' {
            return at + n + 1;
        }
        at += n + 2;
    }
    bytes.len()
}

/// End of the value that begins at `pos`.
fn skip_value(bytes: &[u8], pos: usize) -> usize {
    match bytes.get(pos) {
        Some(b'"') => skip_string(bytes, pos),
        Some(b'{' | b'[') => {
            let (mut depth, mut at) = (0usize, pos);
            while let Some(byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = skip_string(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            bytes.len()
        }
        _ => {
            let mut at = pos;
            while let Some(byte) = bytes.get(at) {
                if matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') {
                    break;
                }
                at += 1;
            }
            at
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u32>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..5)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    /// Rebuilds a value in one walk.
    fn walk(cursor: &mut Cursor<'_>) -> Value {
        match cursor.bytes[cursor.pos] {
            b'{' => {
                assert!(cursor.object());
                let mut map = serde_json::Map::new();
                while let Some(k) = cursor.key() {
                    let quoted = [b"\"", k, b"\""].concat();
                    let value = walk(cursor);
                    map.insert(text(&quoted).unwrap().into_owned(), value);
                }
                Value::Object(map)
            }
            b'[' => {
                assert!(cursor.array());
                let mut list = Vec::new();
                while cursor.element() {
                    list.push(walk(cursor));
                }
                Value::from(list)
            }
            _ => rebuild(cursor.value()),
        }
    }

    /// Rebuilds a value through the borrowed look alone.
    fn rebuild(bytes: &[u8]) -> Value {
        match bytes.first() {
            Some(b'{') => Value::Object(
                Object::new(bytes)
                    .map(|(k, v)| {
                        let quoted = [b"\"", k, b"\""].concat();
                        (text(&quoted).unwrap().into_owned(), rebuild(v))
                    })
                    .collect(),
            ),
            Some(b'[') => Array::new(bytes).map(rebuild).collect(),
            Some(b'"') => Value::from(text(bytes).unwrap().into_owned()),
            _ => serde_json::from_slice(bytes).unwrap(),
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_full_parser(value in any_json(), pretty: bool) {
            let bytes = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
            let bytes = bytes.unwrap();
            prop_assert_eq!(&rebuild(&bytes), &value);
            prop_assert_eq!(walk(&mut Cursor::new(&bytes)), value);
        }

        #[test]
        fn never_panics_on_anything(bytes in prop::collection::vec(prop_oneof![
            Just(b'{'), Just(b'"'), Just(b'}'), Just(b'['), Just(b'\\'), Just(b':'), Just(b','), any::<u8>()], 0..60)) {
            for (k, v) in Object::new(&bytes) { let _ = (text(v), number(v), k); }
            for v in Array::new(&bytes) { let _ = text(v); }
            let mut cursor = Cursor::new(&bytes);
            if cursor.object() { while cursor.key().is_some() { cursor.value(); } }
            let mut cursor = Cursor::new(&bytes);
            if cursor.array() { while cursor.element() { cursor.value(); } }
        }
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        assert_eq!(text(br#""a\ud83db""#).unwrap(), "a\u{fffd}b");
        assert_eq!(text(br#""\ud83d\ude00""#).unwrap(), "\u{1f600}");
    }
}
