//! The models a key may use, and the closest names to a wrong one.

use crate::error::{Details, Error, ErrorKind};

/// A model that takes text and answers with text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Model {
    /// Its id, without `models/`.
    pub id: String,
    /// Its name for people.
    pub display_name: Option<String>,
    /// The longest input, in tokens.
    pub input_token_limit: Option<u64>,
    /// The longest output, in tokens.
    pub output_token_limit: Option<u64>,
    /// Whether it thinks, where the server says so.
    pub thinking: Option<bool>,
}

impl Model {
    pub(crate) fn named(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            display_name: None,
            input_token_limit: None,
            output_token_limit: None,
            thinking: None,
        }
    }
}

/// Parts of names of models that take `generateContent` but answer with something else than text,
/// or only to tools.
const NOT_TEXT: [&str; 9] = [
    "image",
    "imagen",
    "tts",
    "audio",
    "live",
    "embedding",
    "veo",
    "banana",
    "computer",
];

/// The list does not say what a model answers with; its name does.
pub(crate) fn answers_with_text(id: &str) -> bool {
    id.split('-').all(|part| !NOT_TEXT.contains(&part))
}

/// The listed model of this id.
pub(crate) fn find<'a>(models: &'a [Model], id: &str) -> Option<&'a Model> {
    models.iter().find(|model| model.id == id)
}

/// The refusal of an id that is not listed, with the three closest. `shown` is the id without keys.
pub(crate) fn unknown(models: &[Model], id: &str, shown: &str) -> Error {
    let mut ranked: Vec<_> = models
        .iter()
        .map(|model| (strsim::damerau_levenshtein(&model.id, id), &model.id))
        .collect();
    ranked.sort();
    let suggestions: Vec<String> = ranked
        .into_iter()
        .take(3)
        .map(|(_, id)| id.clone())
        .collect();
    let text = match suggestions.as_slice() {
        [] => format!("unknown model {shown}: the server lists no text model"),
        [one] => format!("unknown model {shown}; the closest is {one}"),
        [first @ .., last] => format!(
            "unknown model {shown}; the closest are {} and {last}",
            first.join(", ")
        ),
    };
    Error::with(
        ErrorKind::ModelUnknown,
        text,
        Details {
            suggestions,
            ..Details::default()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_closest_are_named_best_first() {
        let ids = [
            "gemini-2.5-pro",
            "gemini-3.5-flash",
            "gemini-3.5-flash-lite",
            "gemini-3.6-flash",
            "gemma-3-27b-it",
        ];
        let models = ids.map(Model::named);
        assert_eq!(
            find(&models, "gemini-3.5-flash").unwrap().id,
            "gemini-3.5-flash"
        );
        assert!(find(&models, "gemini-3.5").is_none());
        let error = unknown(&models, "gemini-3.5-flsh", "gemini-3.5-flsh");
        assert_eq!(
            error.suggestions(),
            ["gemini-3.5-flash", "gemini-3.6-flash", "gemini-2.5-pro"]
        );
        let expected = "unknown model gemini-3.5-flsh; the closest are gemini-3.5-flash, \
                        gemini-3.6-flash and gemini-2.5-pro";
        assert_eq!(error.to_string(), expected);
        let error = unknown(&models[..1], "AIzaPasted", "[key]");
        assert_eq!(
            error.to_string(),
            "unknown model [key]; the closest is gemini-2.5-pro"
        );
        let error = unknown(&[], "x", "x");
        assert_eq!(error.kind(), ErrorKind::ModelUnknown);
        assert_eq!(
            error.to_string(),
            "unknown model x: the server lists no text model"
        );
    }

    #[test]
    fn only_text_models_pass() {
        for id in [
            "gemini-3.5-flash-lite",
            "gemini-2.5-pro",
            "gemma-3-27b-it",
            "gemini-flash-latest",
        ] {
            assert!(answers_with_text(id), "{id}");
        }
        for id in [
            "gemini-2.5-flash-image",
            "gemini-2.5-flash-preview-tts",
            "gemini-2.5-flash-native-audio-latest",
            "gemini-3.1-flash-live-preview",
            "gemini-embedding-001",
            "imagen-4.0-generate-001",
            "veo-3.0-generate-001",
            "nano-banana-pro-preview",
            "gemini-2.5-computer-use-preview-10-2025",
        ] {
            assert!(!answers_with_text(id), "{id}");
        }
    }
}
