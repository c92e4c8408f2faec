//! Reads folded parts back, byte for byte as they were first written.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::{Error, ErrorKind};

/// Where a folded part is found: the session's first eight digits and a key, as in
/// `3f2a91c0:GQ7wK2`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    session: String,
    key: String,
}

/// One part of a folded output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoldedPart {
    /// Words.
    Text(String),
    /// An image, as base64.
    Image {
        /// Media type, for example `image/png`.
        media_type: String,
        /// The image in base64.
        base64: String,
    },
    /// Anything else, as JSON.
    Json(String),
}

/// A folded output, as it was first written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Folded {
    /// The address that reads it back.
    pub address: String,
    /// The tool's name, or the attachment's kind.
    pub tool: String,
    /// One line for people, for example `Bash(cargo test)`.
    pub label: String,
    /// When it was written, in milliseconds since the Unix epoch.
    pub at_ms: Option<i64>,
    /// Offset in bytes of its row in the file.
    pub offset: u64,
    /// The output.
    pub parts: Vec<FoldedPart>,
}

impl Address {
    /// The first eight digits of the session's identifier.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The key within the session.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.session, self.key)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Address, Error> {
        let bad = || Error::new(ErrorKind::BadAddress, format!("not an address: {text:?}"));
        let (session, key) = text.trim().split_once(':').ok_or_else(bad)?;
        let word = |s: &str| {
            !s.is_empty()
                && s.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if !word(session) || !word(key) {
            return Err(bad());
        }
        Ok(Address {
            session: session.to_owned(),
            key: key.to_owned(),
        })
    }
}

impl Folded {
    /// The words of the output, parts joined by a line break; images are left out.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|p| match p {
                FoldedPart::Text(t) => Some(t.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// Reads one output back as it was first written, whether it is folded now or not.
///
/// # Errors
/// When the file cannot be read, or when the address names nothing or several things in it.
#[expect(clippy::todo, reason = "comes with a later commit")]
pub fn unfold(_path: &Path, _address: &Address) -> Result<Folded, Error> {
    todo!()
}

/// Calls `visit` with every output and attachment of the file that no longer reaches the model, in
/// file order, until it returns `false`. Memory is bounded by the live part and one output.
///
/// # Errors
/// When the file cannot be read.
#[expect(clippy::todo, reason = "comes with a later commit")]
pub fn folded(_path: &Path, _visit: &mut dyn FnMut(Folded) -> bool) -> Result<(), Error> {
    todo!()
}
