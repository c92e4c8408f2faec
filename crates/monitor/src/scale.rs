//! What the fill is measured against: the point where the client compacts by itself.

use crate::settings::Settings;

/// Room that the client keeps for its answer, in tokens.
const ANSWER: u64 = 20_000;
/// Room that it keeps besides, in tokens.
const BUFFER: u64 = 13_000;

/// Which scale a percentage is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scale {
    /// The point where the client compacts by itself is 100 %.
    #[default]
    Compaction,
    /// The model's whole window is 100 %, as early monitors had it.
    Window,
}

/// The values of the client's environment variables, as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// `CLAUDE_CODE_AUTO_COMPACT_WINDOW`
    pub window: Option<String>,
    /// `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE`
    pub percent: Option<String>,
    /// `DISABLE_AUTO_COMPACT`
    pub disable_auto_compact: Option<String>,
    /// `DISABLE_COMPACT`
    pub disable_compact: Option<String>,
}

impl Overrides {
    /// The window in tokens, between 100,000 and 1,000,000. `650_000` and `650,000` are fine.
    pub(crate) fn window(&self) -> Option<u64> {
        let digits = self.window.as_deref()?.trim().replace(['_', ','], "");
        digits
            .parse()
            .ok()
            .filter(|n| *n > 0)
            .map(|n: u64| n.clamp(100_000, 1_000_000))
    }

    fn percent(&self) -> Option<f64> {
        let percent = self.percent.as_deref()?.trim().parse().ok()?;
        (percent > 0.0 && percent <= 100.0).then_some(percent)
    }

    fn disabled(&self) -> bool {
        [&self.disable_auto_compact, &self.disable_compact]
            .into_iter()
            .flatten()
            .any(|value| {
                let value = value.trim().to_lowercase();
                ["1", "true", "yes", "on"].contains(&value.as_str())
            })
    }
}

/// Why a limit is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The client compacts by itself there.
    Compaction,
    /// Automatic compaction is off, or has no room: it is the model's window.
    Window,
}

/// Tokens that are 100 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// How many.
    pub tokens: u64,
    /// Why.
    pub why: Why,
}

impl Limit {
    /// The limit of a model with a window of so many tokens.
    ///
    /// ```
    /// use ctxfold_monitor::{Limit, Overrides, Settings};
    /// let limit = Limit::of(1_000_000, "claude-opus-5-5", &Overrides::default(), &Settings::default());
    /// assert_eq!(limit.tokens, 967_000);
    /// ```
    pub fn of(window: u64, model: &str, overrides: &Overrides, settings: &Settings) -> Self {
        let whole = Self {
            tokens: window,
            why: Why::Window,
        };
        if overrides.disabled() || settings.enabled == Some(false) {
            return whole;
        }
        let configured = overrides
            .window()
            .or_else(|| settings.window(model))
            .unwrap_or(window);
        let effective = configured.min(window).saturating_sub(ANSWER);
        let mut tokens = effective.saturating_sub(BUFFER);
        if let Some(percent) = overrides.percent() {
            #[expect(clippy::cast_sign_loss, reason = "a share of a positive number")]
            let share = (effective as f64 * percent / 100.0).floor() as u64;
            tokens = tokens.min(share);
        }
        if tokens == 0 {
            whole
        } else {
            Self {
                tokens,
                why: Why::Compaction,
            }
        }
    }
}

/// The window of a Claude model of which only the name is known, in tokens: 1,000,000 from the
/// fifth generation on and where the name or the tokens seen say so, else 200,000. `None` for a
/// name without a generation.
///
/// A client that tells its window, or a bridge that tells its limit, is right where this is wrong.
pub fn assumed_window(model: &str, seen: u64) -> Option<u64> {
    const SMALL: u64 = 200_000;
    const LARGE: u64 = 1_000_000;
    let name = model.to_lowercase();
    if name.contains("[1m]") || seen > SMALL {
        return Some(LARGE);
    }
    let (_, name) = name.split_once("claude-")?;
    let generation: u32 = name
        .split(['-', '@', '.'])
        .find_map(|part| part.parse().ok())?;
    Some(if generation >= 5 { LARGE } else { SMALL })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(window: u64, overrides: &Overrides) -> u64 {
        Limit::of(window, "m", overrides, &Settings::default()).tokens
    }

    #[test]
    fn the_window_is_the_clients_and_no_constant() {
        let none = Overrides::default();
        assert_eq!(tokens(1_000_000, &none), 967_000);
        assert_eq!(tokens(200_000, &none), 167_000);
        // No room for a buffer: the window itself.
        assert_eq!(tokens(33_000, &none), 33_000);
        assert_eq!(tokens(0, &none), 0);
    }

    #[test]
    fn the_environment_overrides() {
        let window = |text: &str| Overrides {
            window: Some(text.into()),
            ..Overrides::default()
        };
        for (text, expected) in [
            ("650000", 617_000),
            ("650_000", 617_000),
            (" 650,000 ", 617_000),
            ("5", 67_000),
            ("9999999", 967_000),
            ("0", 967_000),
            ("-1", 967_000),
            ("abc", 967_000),
        ] {
            assert_eq!(tokens(1_000_000, &window(text)), expected, "{text}");
        }
        let percent = |text: &str| Overrides {
            percent: Some(text.into()),
            ..Overrides::default()
        };
        for (text, expected) in [
            ("50", 490_000),
            ("99.9", 967_000),
            ("0", 967_000),
            ("101", 967_000),
            ("x", 967_000),
        ] {
            assert_eq!(tokens(1_000_000, &percent(text)), expected, "{text}");
        }
    }

    #[test]
    fn no_buffer_where_automatic_compaction_is_off() {
        for value in ["1", " TRUE ", "yes", "On"] {
            let off = Overrides {
                disable_compact: Some(value.into()),
                ..Overrides::default()
            };
            assert_eq!(tokens(200_000, &off), 200_000, "{value}");
        }
        for value in ["0", "false", "", "no"] {
            let on = Overrides {
                disable_auto_compact: Some(value.into()),
                ..Overrides::default()
            };
            assert_eq!(tokens(200_000, &on), 167_000, "{value}");
        }
        let off = Settings::merge([r#"{"autoCompactEnabled":false}"#]);
        let limit = Limit::of(200_000, "m", &Overrides::default(), &off);
        assert_eq!(
            limit,
            Limit {
                tokens: 200_000,
                why: Why::Window
            }
        );
    }

    #[test]
    fn a_window_is_assumed_by_the_models_generation() {
        for (model, window) in [
            ("claude-opus-5-5", Some(1_000_000)),
            ("us.anthropic.claude-haiku-5-5-v1:0", Some(1_000_000)),
            ("claude-sonnet-4-5-20250929", Some(200_000)),
            ("claude-sonnet-4-5[1m]", Some(1_000_000)),
            ("claude-3-5-haiku", Some(200_000)),
            ("claude-next", None),
            ("gpt-5", None),
        ] {
            assert_eq!(assumed_window(model, 10), window, "{model}");
        }
        assert_eq!(
            assumed_window("claude-sonnet-4-5", 200_001),
            Some(1_000_000)
        );
    }
}
