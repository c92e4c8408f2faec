//! The client's settings that decide when it compacts by itself.

use std::collections::BTreeMap;
use std::path::Path;

use crate::files::read_settings;
use crate::json::{Object, number};

/// What the client's settings files say together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `autoCompactEnabled`, from the file that counts most.
    pub enabled: Option<bool>,
    /// `autoCompactWindow` for all models.
    window: Window,
    /// The same for single models, by their normalised names.
    models: BTreeMap<String, Window>,
}

/// A value of `autoCompactWindow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Window {
    /// The model's own.
    #[default]
    Auto,
    Tokens(u64),
}

impl Settings {
    /// Merges settings files, the one that counts least first: the user's `settings.json` and
    /// `settings.local.json`, then the project's. An unreadable file counts for nothing.
    pub fn merge<'a>(files: impl IntoIterator<Item = &'a str>) -> Self {
        let mut merged = Self::default();
        for file in files {
            if let Some(object) = Object::parse(file) {
                merged.layer(&object);
            }
        }
        merged
    }

    /// Reads and merges the client's files of a user's configuration folder and of a project.
    pub fn read(user: Option<&Path>, project: &Path) -> Self {
        let project = project.join(".claude");
        let texts: Vec<_> = [user, Some(&project)]
            .into_iter()
            .flatten()
            .flat_map(|folder| ["settings.json", "settings.local.json"].map(|n| folder.join(n)))
            .filter_map(|path| read_settings(&path))
            .collect();
        Self::merge(texts.iter().map(String::as_str))
    }

    /// The configured window for a model, in tokens.
    pub fn window(&self, model: &str) -> Option<u64> {
        match self.models.get(&normalise(model)).unwrap_or(&self.window) {
            Window::Auto => None,
            Window::Tokens(tokens) => Some(*tokens),
        }
    }

    fn layer(&mut self, file: &Object<'_>) {
        self.enabled = file.bool("autoCompactEnabled").or(self.enabled);
        if let Some(window) = window(file) {
            self.window = window;
            // A value for all replaces what lower files said of single models.
            self.models.clear();
        }
        let models = file.object("modelSettings").unwrap_or_default();
        for (name, raw) in models.members() {
            if let Some(window) = Object::parse(raw).as_ref().and_then(window) {
                self.models.insert(normalise(name), window);
            }
        }
    }
}

/// The valid value of `autoCompactWindow` that an object has.
fn window(object: &Object<'_>) -> Option<Window> {
    let raw = object.raw("autoCompactWindow")?;
    if raw == "\"auto\"" {
        return Some(Window::Auto);
    }
    let tokens = number(raw)?;
    let is_valid = tokens.fract() == 0.0 && (100_000.0..=1_000_000.0).contains(&tokens);
    #[expect(clippy::cast_sign_loss, reason = "between 100,000 and 1,000,000")]
    is_valid.then_some(Window::Tokens(tokens as u64))
}

/// The name of a model without its provider, version, date and window.
fn normalise(model: &str) -> String {
    let mut name = model.to_lowercase().replace("[1m]", "");
    if let Some((_, rest)) = name.split_once("anthropic.") {
        name = rest.to_owned();
    }
    name = without_version(&name).to_owned();
    for mark in ['@', '-'] {
        if let Some((head, date)) = name.rsplit_once(mark)
            && date.len() == 8
            && date.bytes().all(|b| b.is_ascii_digit())
        {
            name = head.to_owned();
        }
    }
    name
}

/// Drops `-v1` or `-v1:0` behind a digit.
fn without_version(name: &str) -> &str {
    let Some((head, version)) = name.rsplit_once("-v") else {
        return name;
    };
    let (major, minor) = version.split_once(':').unwrap_or((version, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_version = digits(major) && digits(minor) && head.ends_with(|c: char| c.is_ascii_digit());
    if is_version { head } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_all_their_names() {
        for name in [
            "claude-opus-5-5",
            "Claude-Opus-5-5[1m]",
            "us.anthropic.claude-opus-5-5-v1:0",
            "anthropic.claude-opus-5-5",
            "claude-opus-5-5@20260101",
            "claude-opus-5-5-20260101",
            "eu.anthropic.claude-opus-5-5-20260101-v2",
        ] {
            assert_eq!(normalise(name), "claude-opus-5-5", "{name}");
        }
        assert_eq!(normalise("model-v2"), "model-v2");
    }

    #[test]
    fn the_higher_file_wins_and_its_value_for_all_drops_single_models() {
        let user = r#"{"autoCompactEnabled":false,"autoCompactWindow":650000,
            "modelSettings":{"a-1-v1:0":{"autoCompactWindow":500000},"b":{"autoCompactWindow":"auto"}}}"#;
        let project = "\u{feff}{\"autoCompactEnabled\":true,\"autoCompactWindow\":300000}";
        let merged = Settings::merge([user]);
        assert_eq!(merged.window("a-1"), Some(500_000));
        assert_eq!(
            (merged.window("b"), merged.window("c")),
            (None, Some(650_000))
        );
        let merged = Settings::merge([user, "garbage", project, r#"{"autoCompactWindow":5}"#]);
        assert_eq!(merged.enabled, Some(true));
        assert_eq!(
            (merged.window("a-1"), merged.window("c")),
            (Some(300_000), Some(300_000))
        );
    }
}
