//! Addresses of folded parts: the last eight digits of the thread's id and a key, as in
//! `d69144ab:9fGh2kLm`. The first digits of a thread's id are the time it was made, so the last
//! ones are taken. An output's key is made of its call's identifier. A message has none, so its key
//! is made of its words, and is the same wherever they were copied to.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::write::hex;
use crate::{Error, ErrorKind};

/// Characters of a call's identifier that make its key.
const KEY: usize = 10;

/// Where a folded output is found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    thread: String,
    key: String,
}

impl Address {
    /// The last eight digits of the thread's identifier.
    pub fn thread(&self) -> &str {
        &self.thread
    }

    /// The key within the thread.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Whether the key can be that of a message's words.
    pub(crate) fn may_name_words(&self) -> bool {
        self.key.starts_with(WORDS)
    }

    /// Whether the address names this call of this thread.
    pub(crate) fn names(&self, call: &str) -> bool {
        key(call) == self.key || bare(call) == self.key
    }
}

/// What the key of a message's words begins with.
const WORDS: &str = "say";

/// The address of a message with these words.
pub(crate) fn of_words<'w>(thread: &str, words: impl Iterator<Item = &'w str>) -> String {
    format!("{}:{}", tail(thread), words_key(words))
}

/// The key of a message with these words.
pub(crate) fn words_key<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut hash = Sha256::new();
    for text in words {
        hash.update(text.len().to_le_bytes());
        hash.update(text.as_bytes());
    }
    format!("{WORDS}{}", &hex(&hash.finalize())[..12])
}

/// The address of a call's output.
pub(crate) fn of(thread: &str, call: &str) -> String {
    format!("{}:{}", tail(thread), key(call))
}

/// The last eight digits of a thread's id, in characters that an address may hold.
pub(crate) fn tail(thread: &str) -> String {
    let digits: Vec<char> = thread.chars().collect();
    let from = digits.len().saturating_sub(8);
    bare(&digits[from..].iter().collect::<String>())
}

/// The identifier in characters that an address may hold; a dash where there is none.
fn bare(call: &str) -> String {
    let call = call.strip_prefix("call_").unwrap_or(call);
    if call.is_empty() {
        return "-".to_owned();
    }
    call.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect()
}

fn key(call: &str) -> String {
    let bare = bare(call);
    let from = bare.len().saturating_sub(KEY);
    bare[from..].to_owned()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.thread, self.key)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address, Error> {
        let bad = || Error::new(ErrorKind::BadAddress, format!("not an address: {text:?}"));
        let (thread, key) = text.trim().split_once(':').ok_or_else(bad)?;
        let word = |s: &str| {
            !s.is_empty()
                && s.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if !word(thread) || !word(key) {
            return Err(bad());
        }
        Ok(Address {
            thread: thread.to_owned(),
            key: key.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_call_is_named_by_its_address(call in "(call_)?\\PC{0,40}") {
            let address = of("01a22eb2-072d-76f3-a271-8cf7acd69144", &call);
            let parsed: Address = address.parse().unwrap();
            prop_assert_eq!(parsed.to_string(), address);
            prop_assert_eq!(parsed.thread(), "acd69144");
            prop_assert!(parsed.names(&call));
        }
    }

    #[test]
    fn a_damaged_thread_id_makes_an_address_that_can_be_read() {
        for (id, tail) in [("0za2-8cf7acd|69144", "cd-69144"), ("é", "-"), ("", "-")] {
            let address: Address = of(id, "call_b").parse().unwrap();
            assert_eq!(address.thread(), tail, "{id:?}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "a", "a:", ":b", "a b:c", "a:b:c"] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }
}
