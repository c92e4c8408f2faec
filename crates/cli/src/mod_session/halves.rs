//! Halves of characters: JSON of a JavaScript program may hold them, text of ours may not.

use std::borrow::Cow;

/// JSON text in which an escape that stands for half of a character stands for `U+FFFD`, as where
/// such text is encoded. Everything else is left alone, and so is what is no JSON.
pub(crate) fn well_formed(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &json.as_bytes()[at..]) {
        let start = at + found;
        let Some(unit) = unit(json, start) else {
            // Any other escape is two bytes, of which the second may be a backslash.
            at = json.len().min(start + 2);
            continue;
        };
        at = start + ESCAPE;
        match unit {
            0xD800..=0xDBFF if unit_is_low(json, at) => at += ESCAPE,
            0xD800..=0xDFFF => {
                out.push_str(&json[done..start]);
                out.push_str("\\ufffd");
                done = at;
            }
            _ => {}
        }
    }
    if done == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[done..]);
    Cow::Owned(out)
}

/// Bytes of an escape `\u0000`.
const ESCAPE: usize = 6;

/// The number of the escape `\u0000` at a place.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

fn unit_is_low(json: &str, at: usize) -> bool {
    unit(json, at).is_some_and(|unit| (0xDC00..=0xDFFF).contains(&unit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn half_a_character_becomes_the_replacement() {
        for (json, expected) in [
            (r#"["\ud800"]"#, r#"["\ufffd"]"#),
            (r#"["\uDC00x\ud83d"]"#, r#"["\ufffdx\ufffd"]"#),
            (r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#),
            (r#"["\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ud83d\ude00"]"#),
            (r#"["\\ud800"]"#, r#"["\\ud800"]"#),
            (r#"["\\\ud800"]"#, r#"["\\\ufffd"]"#),
            (r#"["\ud800\n"]"#, r#"["\ufffd\n"]"#),
            (r#"["\u00é"]"#, r#"["\u00é"]"#),
            (r#"["\ud8"#, r#"["\ud8"#),
            ("\\", "\\"),
            ("\\é", "\\é"),
        ] {
            assert_eq!(well_formed(json), expected);
        }
    }

    proptest! {
        /// Another way to the same: the units of the string, decoded with loss.
        #[test]
        fn any_string_of_units_is_read_as_its_encoding(
            units in prop::collection::vec(prop_oneof![any::<u16>(), 0xD800u16..0xE000, 0x20u16..0x7f], 0..40),
        ) {
            let escaped: String = units.iter().fold(String::new(), |all, unit| all + &format!("\\u{unit:04x}"));
            let read: String = serde_json::from_str(&well_formed(&format!("\"{escaped}\""))).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }
    }
}
