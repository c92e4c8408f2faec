//! The words for the agent. Advice, never an order: the user decides.

use crate::json::shown;
use crate::machine::Level;
use crate::reading::Reading;

/// What the words depend on besides the fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// The host's own command that compacts, for instance `/compact`.
    pub compact_command: String,
    /// Whether `ctxfold` can inspect and unfold this host's conversations.
    pub foldable: bool,
    /// Whether the project tracks its state, so that nothing needs to be saved.
    pub tracked: bool,
}

impl Default for Wording {
    fn default() -> Self {
        Self {
            compact_command: "/compact".into(),
            foldable: true,
            tracked: false,
        }
    }
}

/// The message of a warning: how full the context is, and what could be done.
pub fn advise(level: Level, reading: &Reading, wording: &Wording) -> String {
    let head = match level {
        Level::Warning => "CONTEXT WARNING",
        Level::Critical => "CONTEXT CRITICAL",
    };
    let advice = match (level, wording.tracked) {
        (Level::Warning, false) => {
            "Room is getting short: prefer targeted reads and finish what is open before taking up \
             anything large."
        }
        (Level::Warning, true) => {
            "Room is getting short: finish the current step before taking up anything large, and \
             let the user know between steps, so that they can plan a pause."
        }
        (Level::Critical, false) => {
            "Room is nearly gone: let the user know and ask how they want to go on. Saving state or \
             writing handoff files is for them to ask for."
        }
        (Level::Critical, true) => {
            "Room is nearly gone: better take up nothing large. The project's state is tracked, so \
             no handoff file is needed; let the user know that /gsd:pause-work makes a clean stop."
        }
    };
    let compact = &wording.compact_command;
    let tools = if wording.foldable {
        format!(
            "`ctxfold inspect` shows what fills the context, {compact} makes room, and `ctxfold \
             unfold` reads folded parts back."
        )
    } else {
        format!("{compact} makes room.")
    };
    format!("{head}: {}. {advice} {tools}", fill(reading))
}

fn fill(reading: &Reading) -> String {
    let tokens = reading.tokens.map_or_else(String::new, |t| {
        format!(
            " ({} of {} usable tokens)",
            thousands(t.used),
            thousands(t.limit)
        )
    });
    format!(
        "{}% used, {}% remaining{tokens}",
        shown(reading.used),
        shown(reading.remaining)
    )
}

fn thousands(tokens: u64) -> String {
    format!("{}k", tokens.saturating_add(500) / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Source;

    #[test]
    fn every_variant_says_percent_tokens_and_ways_out_and_gives_no_order() {
        for level in [Level::Warning, Level::Critical] {
            for tracked in [false, true] {
                let reading = Reading::of_tokens(401_050, 617_000, Source::Bridge, None);
                let text = advise(
                    level,
                    &reading,
                    &Wording {
                        tracked,
                        ..Wording::default()
                    },
                );
                for needed in [
                    "65% used, 35% remaining (401k of 617k usable tokens)",
                    "`ctxfold inspect`",
                    "/compact",
                    "`ctxfold unfold`",
                ] {
                    assert!(text.contains(needed), "{text}");
                }
                for order in ["STOP", "NOW", "MUST", "immediately"] {
                    assert!(!text.contains(order), "{text}");
                }
                assert_eq!(
                    text.contains("/gsd:pause-work"),
                    tracked && level == Level::Critical
                );
                assert!(text.len() < 600, "{}", text.len());
            }
        }
    }

    #[test]
    fn another_host_has_another_command() {
        let wording = Wording {
            compact_command: "/compress".into(),
            foldable: false,
            tracked: false,
        };
        let reading = Reading::of_tokens(1, 2, Source::Bridge, None);
        let text = advise(Level::Warning, &reading, &wording);
        assert!(
            text.contains("/compress") && !text.contains("ctxfold"),
            "{text}"
        );
    }
}
