//! Which thinking setting a model takes: a level, a budget, or none.

use crate::request::{Level, Thinking};

/// The setting as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Setting {
    Level(Level),
    Budget(i32),
}

/// How a family of models is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Level,
    /// The smallest budget that is not zero, the largest, and whether zero is taken.
    Budget {
        least: i32,
        most: i32,
        zero: bool,
    },
    None,
}

/// `None` leaves the setting out.
pub(crate) fn setting(model: &str, thinking: Thinking) -> Option<Setting> {
    match (family(model), thinking) {
        (Family::None, _) | (_, Thinking::ModelDefault) => None,
        (Family::Level, Thinking::Level(level)) => Some(Setting::Level(level)),
        (Family::Level, Thinking::Budget(budget)) => level_of(budget).map(Setting::Level),
        (Family::Budget { .. }, Thinking::Budget(budget)) if budget < 0 => {
            Some(Setting::Budget(-1))
        }
        (Family::Budget { least, most, zero }, Thinking::Budget(budget)) => {
            let budget = if budget == 0 && zero {
                0
            } else {
                budget.clamp(least, most)
            };
            Some(Setting::Budget(budget))
        }
        (Family::Budget { least, most, zero }, Thinking::Level(level)) => {
            Some(Setting::Budget(match level {
                Level::Minimal if zero => 0,
                level => budget_of(level).clamp(least, most),
            }))
        }
    }
}

/// By name, because the list of models does not say it. An unknown newer Gemini is taken to have
/// levels; where that is wrong, the server's refusal is what the client learns from.
fn family(model: &str) -> Family {
    let Some(rest) = model.strip_prefix("gemini-") else {
        return Family::None;
    };
    let major: String = rest.chars().take_while(char::is_ascii_digit).collect();
    match major.parse::<u32>() {
        Ok(0 | 1) => Family::None,
        Ok(2) if !rest.starts_with("2.5") => Family::None,
        Ok(2) if rest.contains("pro") => Family::Budget {
            least: 128,
            most: 32_768,
            zero: false,
        },
        Ok(2) if rest.contains("lite") => Family::Budget {
            least: 512,
            most: 24_576,
            zero: true,
        },
        Ok(2) => Family::Budget {
            least: 1,
            most: 24_576,
            zero: true,
        },
        // Also names without a version, such as gemini-flash-latest.
        _ => Family::Level,
    }
}

/// The budgets that the API documents as equal to the levels.
fn budget_of(level: Level) -> i32 {
    match level {
        Level::Minimal => 512,
        Level::Low => 1_024,
        Level::Medium => 8_192,
        Level::High => 24_576,
    }
}

fn level_of(budget: i32) -> Option<Level> {
    Some(match budget {
        ..=-1 => return None,
        0..=512 => Level::Minimal,
        513..=1_024 => Level::Low,
        1_025..=8_192 => Level::Medium,
        _ => Level::High,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_is_told_in_its_own_way() {
        use Setting::{Budget as B, Level as L};
        use Thinking::{Budget, Level as Lv, ModelDefault};
        let table = [
            ("gemini-3.5-flash-lite", ModelDefault, None),
            (
                "gemini-3.5-flash-lite",
                Lv(Level::Minimal),
                Some(L(Level::Minimal)),
            ),
            (
                "gemini-3.1-pro-preview",
                Budget(4_000),
                Some(L(Level::Medium)),
            ),
            ("gemini-4-argon", Budget(0), Some(L(Level::Minimal))),
            ("gemini-4-argon", Budget(-1), None),
            ("gemini-flash-latest", Lv(Level::High), Some(L(Level::High))),
            ("gemini-2.5-flash", Lv(Level::Low), Some(B(1_024))),
            ("gemini-2.5-flash", Lv(Level::Minimal), Some(B(0))),
            ("gemini-2.5-flash", Budget(90_000), Some(B(24_576))),
            ("gemini-2.5-flash-lite", Budget(1), Some(B(512))),
            ("gemini-2.5-flash-lite", Budget(0), Some(B(0))),
            ("gemini-2.5-pro", Budget(0), Some(B(128))),
            ("gemini-2.5-pro", Lv(Level::Minimal), Some(B(512))),
            ("gemini-2.5-pro", Budget(-7), Some(B(-1))),
            ("gemini-2.0-flash", Lv(Level::High), None),
            ("gemma-3-27b-it", Budget(100), None),
        ];
        for (model, thinking, expected) in table {
            assert_eq!(setting(model, thinking), expected, "{model} {thinking:?}");
        }
    }
}
