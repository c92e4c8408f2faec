//! JSON objects as other programs write them: only asked-for members are decoded, so that odd
//! numbers, deep nesting and lone surrogates elsewhere do no harm.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A JSON object that borrows its text. Of a repeated key the last value counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Object<'a> {
    /// `None` when the text is no JSON object. A byte-order mark before it is skipped.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        serde_json::from_str(text).ok().map(Self)
    }

    /// The JSON text of a member.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|raw| raw.get())
    }

    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::parse(self.raw(name)?)
    }

    /// The member's number when it is one and finite.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        number(self.raw(name)?)
    }

    pub(crate) fn bool(&self, name: &str) -> Option<bool> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    pub(crate) fn string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, raw)| (name.as_str(), raw.get()))
    }
}

/// The finite number that a JSON text is.
pub(crate) fn number(text: &str) -> Option<f64> {
    text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
        .filter(|n: &f64| n.is_finite())
}

/// The number as JSON and as people write it: without a fraction when it is whole.
pub(crate) fn shown(number: f64) -> String {
    // Adding zero turns -0 into 0.
    format!("{}", number + 0.0)
}
