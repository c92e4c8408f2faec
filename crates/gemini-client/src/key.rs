//! API keys that cannot print, and how failures name them: by place.

use std::fmt::{self, Write as _};

use crate::error::{Error, ErrorKind};

/// One API key.
///
/// `Debug` and `Display` show its place and nothing of the key; there is no way to read the secret
/// back.
///
/// ```
/// # use ctxfold_gemini_client::Keys;
/// let keys = Keys::parse("first-secret, second-secret")?;
/// assert_eq!(keys.iter().nth(1).unwrap().to_string(), "key 2");
/// # Ok::<(), ctxfold_gemini_client::Error>(())
/// ```
#[derive(Clone)]
pub struct Key {
    place: usize,
    secret: String,
}

impl Key {
    /// The key's place in the list that was parsed, counted from 1.
    pub fn place(&self) -> usize {
        self.place
    }

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.place)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.place)
    }
}

/// The keys a client tries, in order.
///
/// Several keys are for fail-over, when one is revoked or its project is out of quota. They are not
/// for adding up quotas: a quota belongs to a project, and the API's terms forbid getting round it
/// with many projects.
#[derive(Clone, Debug)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// Reads keys that are separated by commas or white space.
    ///
    /// Empty entries are skipped. A key that occurs twice is kept once, at its first place.
    ///
    /// # Errors
    /// [`ErrorKind::NoKey`] when nothing is left, [`ErrorKind::Config`] when a key holds a
    /// character that no HTTP header can carry. The message names the key's place, never the key.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut keys: Vec<Key> = Vec::new();
        let entries = text.split(|c: char| c == ',' || c.is_whitespace());
        for (index, secret) in entries.filter(|entry| !entry.is_empty()).enumerate() {
            let place = index + 1;
            if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
                let text = format!("key {place} holds a character that an API key cannot have");
                return Err(Error::new(ErrorKind::Config, text));
            }
            if keys.iter().all(|key| key.secret != secret) {
                keys.push(Key {
                    place,
                    secret: secret.to_owned(),
                });
            }
        }
        if keys.is_empty() {
            return Err(Error::new(ErrorKind::NoKey, "no API key was given"));
        }
        Ok(Self(keys))
    }

    /// How many distinct keys there are; at least one.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a list without a key cannot be made"
    )]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The keys in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    pub(crate) fn at(&self, index: usize) -> &Key {
        &self.0[index]
    }
}

/// Writes places as people count them: `key 5`, `keys 1-4, 6-34`.
pub(crate) fn places(sorted: &[usize]) -> String {
    let mut text = String::from(if sorted.len() == 1 { "key " } else { "keys " });
    let mut rest = sorted;
    while let Some(&first) = rest.first() {
        let run = rest
            .iter()
            .zip(first..)
            .take_while(|&(&place, expected)| place == expected)
            .count();
        if rest.len() < sorted.len() {
            text.push_str(", ");
        }
        // Writing to a string does not fail.
        let _ = match run {
            1 => write!(text, "{first}"),
            _ => write!(text, "{first}-{}", first + run - 1),
        };
        rest = &rest[run..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_split_trimmed_and_kept_once() {
        let keys = Keys::parse(" a1 ,,b2\n\tc3, a1 ,").unwrap();
        let secrets: Vec<_> = keys.iter().map(Key::secret).collect();
        assert_eq!(secrets, ["a1", "b2", "c3"]);
        assert_eq!(keys.len(), 3);
        let keys = Keys::parse("a1,a1,b2").unwrap();
        assert_eq!(
            keys.iter().map(Key::place).collect::<Vec<_>>(),
            [1, 3],
            "places are the caller's"
        );
    }

    #[test]
    fn nothing_of_a_key_prints() {
        let keys = Keys::parse("AIzaPlanted,secret-two").unwrap();
        for text in [
            format!("{keys:?}"),
            format!("{:#?}", keys.at(1)),
            keys.at(0).to_string(),
        ] {
            assert!(!text.contains("AIza") && !text.contains("secret"), "{text}");
        }
        let error = Keys::parse("good,AIzaPlanted\u{7f}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(
            error.to_string(),
            "key 2 holds a character that an API key cannot have"
        );
    }

    #[test]
    fn a_list_without_a_key_is_refused() {
        for text in ["", " , ,\n", ","] {
            assert_eq!(Keys::parse(text).unwrap_err().kind(), ErrorKind::NoKey);
        }
    }

    #[test]
    fn places_are_written_as_ranges() {
        let all_but_five: Vec<_> = (1..=34).filter(|&place| place != 5).collect();
        assert_eq!(places(&all_but_five), "keys 1-4, 6-34");
        assert_eq!(places(&[5]), "key 5");
        assert_eq!(places(&[1, 2]), "keys 1-2");
        assert_eq!(places(&[1, 3, 5, 6]), "keys 1, 3, 5-6");
    }
}
