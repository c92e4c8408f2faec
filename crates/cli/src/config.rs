//! `config.toml`: every key with its type, default and meaning in one table. An unknown key or a
//! wrong type is an error that names the key and the line, never a silent default. Changes of the
//! file are `edit`'s.

mod edit;

pub(crate) use edit::{edit, remove};

use std::path::{Path, PathBuf};

use toml_edit::{Document, Item, TableLike, Value};

use crate::env::{self, Env};
use crate::error::{CommandError, CommandResult};
use crate::files;

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number, not negative.
    Number,
    /// `true` or `false`.
    Switch,
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A size: tokens as `60k` or a number, bytes as `64KB`.
    Size,
    /// Percent, 0 to 100.
    Percent,
    /// A number of tokens as `200k`, not 0; empty for none.
    Window,
    /// A model's identifier; empty for none.
    Model,
    /// A price, not negative; empty for none.
    Price,
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name, with a dot between table and key.
    pub(crate) name: &'static str,
    /// The type of its value.
    pub(crate) kind: Kind,
    /// What holds without it, as it would be written.
    pub(crate) default: &'static str,
    /// What it does, in one sentence.
    pub(crate) about: &'static str,
}

const fn key(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key {
        name,
        kind,
        default,
        about,
    }
}

/// Thinking levels, and the model's own.
pub(crate) const THINKING: &[&str] = &["default", "minimal", "low", "medium", "high"];

/// Every key there is.
pub(crate) const KEYS: &[Key] = &[
    key(
        "mode",
        Kind::Word(&["mask", "prune", "summary"]),
        "mask",
        "How `compact` compacts when the command line does not say",
    ),
    key("keep", Kind::Number, "6", "Newest messages kept verbatim"),
    key(
        "max-output",
        Kind::Size,
        "8000",
        "Largest older output in bytes that masking leaves whole",
    ),
    key(
        "window",
        Kind::Window,
        "",
        "Context window in tokens where the files do not tell it; empty to derive it from the model",
    ),
    key(
        "fallback",
        Kind::Word(&["mask", "none"]),
        "mask",
        "What happens when the model fails",
    ),
    key(
        "redact",
        Kind::Switch,
        "true",
        "Whether secrets are replaced before anything is sent",
    ),
    key(
        "gemini.model",
        Kind::Model,
        "gemini-3.5-flash-lite",
        "Model that writes summaries and judges calls",
    ),
    key(
        "gemini.thinking",
        Kind::Word(THINKING),
        "default",
        "How much the model thinks",
    ),
    key(
        "gemini.tier",
        Kind::Word(&["free", "paid"]),
        "free",
        "Whether the key's project pays; on the free tier the provider may read and train on what is sent",
    ),
    key(
        "gemini.deadline",
        Kind::Number,
        "60",
        "Seconds after which no new attempt begins",
    ),
    key(
        "gemini.base-url",
        Kind::Text,
        "",
        "Another address of the API; empty for the provider's own",
    ),
    key(
        "gemini.proxy",
        Kind::Text,
        "",
        "Proxy for the API; empty for none",
    ),
    key(
        "idle.enabled",
        Kind::Switch,
        "false",
        "Whether paused sessions are compacted by `resume`, `idle run` and `idle watch`",
    ),
    key(
        "idle.codex",
        Kind::Switch,
        "false",
        "The same for Codex threads, which need both switches",
    ),
    key(
        "idle.after",
        Kind::Number,
        "15",
        "Minutes of pause after which a conversation counts as idle",
    ),
    key(
        "idle.min",
        Kind::Size,
        "64KB",
        "Smallest conversation that is worth it, in tokens or bytes",
    ),
    key(
        "idle.model",
        Kind::Model,
        "",
        "Model that summarises idle conversations; empty for rules and no network",
    ),
    key(
        "idle.codex-stop",
        Kind::Switch,
        "false",
        "Whether the Codex hook stops a prompt that would pay for a long idle thread, once a pause",
    ),
    key(
        "idle.price-cached",
        Kind::Price,
        "",
        "What a million tokens read from the provider's cache cost you; estimates then show money",
    ),
    key(
        "idle.price-uncached",
        Kind::Price,
        "",
        "What a million tokens sent anew cost you, storing them in the cache included",
    ),
    key(
        "monitor.enabled",
        Kind::Switch,
        "true",
        "Whether hooks warn",
    ),
    key(
        "monitor.warning",
        Kind::Percent,
        "35",
        "Percent remaining at which the agent is warned",
    ),
    key(
        "monitor.critical",
        Kind::Percent,
        "25",
        "Percent remaining at which the warning is critical",
    ),
];

/// The key of that name.
///
/// # Errors
/// Names the closest keys when there is none.
pub(crate) fn key_named(name: &str) -> CommandResult<&'static Key> {
    KEYS.iter().find(|k| k.name == name).ok_or_else(|| {
        let close = closest(name);
        CommandError::input(format!("unknown setting {name}")).hint(format!(
            "did you mean {close}? `ctxfold config list` shows all"
        ))
    })
}

/// The key whose name is most like `name`.
fn closest(name: &str) -> &'static str {
    KEYS.iter()
        .map(|k| k.name)
        .min_by_key(|k| distance(k, name))
        .unwrap_or_default()
}

/// How many characters differ when both are sorted: enough to find a typing mistake.
fn distance(a: &str, b: &str) -> usize {
    let prefix = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    a.len().max(b.len()) - prefix
}

/// A size as the user writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Without a unit of bytes: `60k`, `1.5M`, `60000`.
    Plain(u64),
    /// With one: `64KB`, `2MB`.
    Bytes(u64),
}

impl Size {
    /// Reads a size.
    pub(crate) fn parse(text: &str) -> Option<Size> {
        let lower = text.trim().to_ascii_lowercase().replace('_', "");
        let (number, is_bytes) = match lower.strip_suffix('b') {
            Some(rest) => (rest, true),
            None => (lower.as_str(), false),
        };
        let (number, factor) = match number.as_bytes().last()? {
            b'k' => (&number[..number.len() - 1], 1e3),
            b'm' => (&number[..number.len() - 1], 1e6),
            b'g' => (&number[..number.len() - 1], 1e9),
            _ => (number, 1.0),
        };
        let value: f64 = number.trim().parse().ok()?;
        if !(0.0..=1e15).contains(&(value * factor)) {
            return None;
        }
        let whole = (value * factor).round() as u64;
        Some(if is_bytes {
            Size::Bytes(whole)
        } else {
            Size::Plain(whole)
        })
    }

    /// The number, whatever its unit.
    pub(crate) fn number(self) -> u64 {
        match self {
            Size::Plain(n) | Size::Bytes(n) => n,
        }
    }
}

/// The settings of the file over the defaults.
#[derive(Debug, Default)]
pub(crate) struct Config {
    values: Vec<(&'static str, String)>,
}

impl Config {
    /// Reads the file; without one every default holds.
    pub(crate) fn read(env: &Env) -> CommandResult<Config> {
        match files::read_small(&env.config_file)? {
            Some(text) => Config::parse(&text, &env.config_file),
            None => Ok(Config::default()),
        }
    }

    fn parse(text: &str, path: &Path) -> CommandResult<Config> {
        let text = text.trim_start_matches('\u{feff}');
        let document = Document::parse(text).map_err(|e| {
            let line = e.span().map_or(1, |s| line_of(text, s.start));
            CommandError::input(format!("{}:{line}: {}", path.display(), e.message()))
                .hint("mend the line with an editor; ctxfold changes only a file that it can read")
        })?;
        let mut config = Config::default();
        config.table(document.as_table(), "", text, path)?;
        Ok(config)
    }

    fn table(
        &mut self,
        table: &dyn TableLike,
        prefix: &str,
        text: &str,
        path: &Path,
    ) -> CommandResult {
        for (name, item) in table.iter() {
            let full = if prefix.is_empty() {
                name.to_owned()
            } else {
                format!("{prefix}.{name}")
            };
            let line = item
                .span()
                .or_else(|| table.key(name).and_then(toml_edit::Key::span))
                .map_or(1, |s| line_of(text, s.start));
            let place = format!("{}:{line}", path.display());
            if let Some(inner) = item.as_table_like() {
                let inside = format!("{full}.");
                if !KEYS.iter().any(|k| k.name.starts_with(&inside)) {
                    return Err(unknown(&place, &full));
                }
                self.table(inner, &full, text, path)?;
                continue;
            }
            let Some(key) = KEYS.iter().find(|k| k.name == full) else {
                return Err(unknown(&place, &full));
            };
            let value = written(key.kind, item)
                .filter(|v| fits(key.kind, v))
                .ok_or_else(|| {
                    CommandError::input(format!("{place}: {full} must be {}", expected(key.kind)))
                        .hint(format!(
                            "`ctxfold config set {full} VALUE` changes it, `ctxfold config unset {full}` removes it"
                        ))
                })?;
            self.values.push((key.name, value));
        }
        Ok(())
    }

    /// The value of a key as text, from the file or by default.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.values
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v.as_str())
            .or_else(|| KEYS.iter().find(|k| k.name == name).map(|k| k.default))
            .unwrap_or_default()
    }

    /// Whether the file sets the key.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.values.iter().any(|(n, _)| *n == name)
    }

    /// A text, or nothing when it is empty.
    pub(crate) fn maybe(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|t| !t.is_empty())
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// A switch.
    pub(crate) fn switch(&self, name: &str) -> bool {
        self.text(name) == "true"
    }

    /// A price.
    pub(crate) fn price(&self, name: &str) -> Option<f64> {
        self.text(name).parse().ok()
    }

    /// A size.
    pub(crate) fn size(&self, name: &str) -> Option<Size> {
        Size::parse(self.text(name))
    }
}

fn unknown(place: &str, name: &str) -> CommandError {
    CommandError::input(format!("{place}: unknown setting {name}")).hint(format!(
        "did you mean {}? `ctxfold config unset {name}` removes it",
        closest(name)
    ))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()
        .iter()
        .take(offset)
        .filter(|b| **b == b'\n')
        .count()
        + 1
}

/// A value of the key's own type as text: texts of numbers are no numbers.
fn written(kind: Kind, item: &Item) -> Option<String> {
    match (kind, item.as_value()?) {
        (
            Kind::Text | Kind::Model | Kind::Word(_) | Kind::Size | Kind::Window,
            Value::String(s),
        ) => Some(s.value().clone()),
        (
            Kind::Number | Kind::Percent | Kind::Size | Kind::Window | Kind::Price,
            Value::Integer(n),
        ) => Some(n.value().to_string()),
        (Kind::Price, Value::Float(n)) => Some(n.value().to_string()),
        (Kind::Switch, Value::Boolean(b)) => Some(b.value().to_string()),
        _ => None,
    }
}

fn fits(kind: Kind, text: &str) -> bool {
    match kind {
        Kind::Number => text.parse::<u32>().is_ok(),
        Kind::Percent => text.parse::<u32>().is_ok_and(|n| n <= 100),
        Kind::Window => text.is_empty() || Size::parse(text).is_some_and(|s| s.number() > 0),
        Kind::Model => !text.contains(|c: char| c.is_whitespace() || c.is_control()),
        Kind::Switch => matches!(text, "true" | "false"),
        Kind::Text => true,
        Kind::Word(words) => words.contains(&text),
        Kind::Size => text.is_empty() || Size::parse(text).is_some(),
        Kind::Price => {
            let is_price = |n: f64| n.is_finite() && n >= 0.0;
            text.is_empty() || text.parse().is_ok_and(is_price)
        }
    }
}

fn expected(kind: Kind) -> String {
    match kind {
        Kind::Number => "a whole number, not negative".into(),
        Kind::Percent => "a whole number from 0 to 100".into(),
        Kind::Window => "tokens such as 200k, not 0".into(),
        Kind::Model => "a model's identifier, without spaces; `ctxfold models` lists them".into(),
        Kind::Switch => "true or false".into(),
        Kind::Text => "a text".into(),
        Kind::Word(words) => format!("one of {}", words.join(", ")),
        Kind::Size => "a size such as 60k or 64KB".into(),
        Kind::Price => "a number, not negative".into(),
    }
}

/// The file with Gemini API keys, one a line.
pub(crate) fn keys_file(env: &Env) -> PathBuf {
    env.config_file.with_file_name("gemini-keys")
}

/// Where keys came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// This variable.
    Variable(&'static str),
    /// The keys file.
    File,
}

/// The Gemini API keys, comma-separated, and where they came from: environment before file.
pub(crate) fn gemini_keys(env: &Env) -> CommandResult<Option<(String, KeySource)>> {
    for name in ["CTXFOLD_GEMINI_API_KEY", "GEMINI_API_KEY"] {
        if let Some(keys) = env::var(name) {
            return Ok(Some((keys, KeySource::Variable(name))));
        }
    }
    let path = keys_file(env);
    let Some(text) = files::read_small(&path)? else {
        return Ok(None);
    };
    if files::is_open_to_others(&path) {
        return Err(
            CommandError::refused(format!("{} can be read by others", path.display()))
                .hint(format!("chmod 600 {}", path.display())),
        );
    }
    let keys: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    Ok((!keys.is_empty()).then(|| (keys.join(","), KeySource::File)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> CommandResult<Config> {
        Config::parse(text, Path::new("config.toml"))
    }

    #[test]
    fn every_default_fits_its_type() {
        for key in KEYS {
            assert!(fits(key.kind, key.default), "{}", key.name);
        }
    }

    #[test]
    fn a_wrong_type_names_key_and_line() {
        for (text, key) in [
            (
                "\nkeep = \"six\"\n",
                "config.toml:2: keep must be a whole number",
            ),
            (
                "[idle]\nenabled = \"true\"\n",
                "config.toml:2: idle.enabled must be true or false",
            ),
            (
                "[idle]\n\nafter = -5\n",
                "config.toml:3: idle.after must be a whole number",
            ),
            (
                "mode = \"fast\"\n",
                "config.toml:1: mode must be one of mask, prune, summary",
            ),
            ("keep = \"6\"", "config.toml:1: keep must be a whole number"),
            (
                "[idle]\nprice-cached = \"1\"",
                "config.toml:2: idle.price-cached must be a number",
            ),
            (
                "[idle]\nprice-cached = -1.5",
                "config.toml:2: idle.price-cached must be a number",
            ),
            (
                "[gemini]\nmodel = 7\nx = 1\n",
                "config.toml:2: gemini.model must be a model's identifier",
            ),
            (
                "[gemini]\nx = 1\n",
                "config.toml:2: unknown setting gemini.x",
            ),
            (
                "[gemeni]\nmodel = \"a\"\n",
                "config.toml:1: unknown setting gemeni",
            ),
            ("keep = = 1", "config.toml:1:"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), crate::exit::INPUT);
            assert!(error.to_string().starts_with(key), "{error} for {text:?}");
        }
    }

    #[test]
    fn sizes_have_units_or_none() {
        for (text, size) in [
            ("60k", Some(Size::Plain(60_000))),
            ("1.5M", Some(Size::Plain(1_500_000))),
            ("64KB", Some(Size::Bytes(64_000))),
            ("12", Some(Size::Plain(12))),
            ("650_000", Some(Size::Plain(650_000))),
            ("-1", None),
            ("x", None),
            ("", None),
            ("1e99", None),
        ] {
            assert_eq!(Size::parse(text), size, "{text}");
        }
    }
}
