//! Why a warning comes or does not: for people who ask. The same rules as `machine.rs`, asked
//! instead of obeyed.

use crate::config::Config;
use crate::machine::{Effect, Event, Happening, Level, State, step};
use crate::reading::{Reading, Unusable};

/// What would be said after a tool call now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Nothing: warnings are switched off.
    Off,
    /// Nothing: it is not known how full the context is.
    NoReading,
    /// Nothing: what is known cannot be used.
    Unusable(Unusable),
    /// Nothing: there is enough room.
    Enough,
    /// Nothing: it was said lately, and comes again after so many more tool calls.
    Waits {
        /// The level.
        level: Level,
        /// How many tool calls, this one not counted.
        calls: u64,
    },
    /// A warning.
    Warns(Level),
}

/// Says what would be said after a tool call at a time in seconds since 1970, and why.
pub fn judge(state: &State, reading: Option<&Reading>, config: &Config, now: u64) -> Verdict {
    if !config.enabled {
        return Verdict::Off;
    }
    let Some(reading) = reading else {
        return Verdict::NoReading;
    };
    if let Err(why) = reading.check(now, state.compacted_at) {
        return Verdict::Unusable(why);
    }
    let Some(level) = config.thresholds.level(reading.remaining) else {
        return Verdict::Enough;
    };
    let event = Event {
        happening: Happening::ToolCall,
        reading: Some(*reading),
    };
    let (after, effects) = step(state.clone(), &event, config, now);
    if effects
        .iter()
        .any(|effect| matches!(effect, Effect::Warn(..)))
    {
        return Verdict::Warns(level);
    }
    let calls = after.warned.map_or(0, |warned| warned.calls);
    Verdict::Waits {
        level,
        calls: config.repeat.saturating_sub(calls),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::Source;

    const NOW: u64 = 1_800_000_000;

    fn reading(used: u64, at: u64) -> Reading {
        Reading::of_tokens(used, 100, Source::Bridge, Some(at))
    }

    #[test]
    fn every_verdict_has_its_cause() {
        let (state, config) = (State::default(), Config::default());
        let of = |reading: Option<Reading>| judge(&state, reading.as_ref(), &config, NOW);
        assert_eq!(of(None), Verdict::NoReading);
        assert_eq!(
            of(Some(reading(80, NOW - 61))),
            Verdict::Unusable(Unusable::Stale)
        );
        assert_eq!(
            of(Some(reading(80, 0))),
            Verdict::Unusable(Unusable::NoTime)
        );
        assert_eq!(of(Some(reading(20, NOW))), Verdict::Enough);
        assert_eq!(of(Some(reading(70, NOW))), Verdict::Warns(Level::Warning));
        let off = Config {
            enabled: false,
            ..config
        };
        assert_eq!(
            judge(&state, Some(&reading(80, NOW)), &off, NOW),
            Verdict::Off
        );
        let compacted = State {
            compacted_at: Some(NOW as f64),
            ..State::default()
        };
        assert_eq!(
            judge(&compacted, Some(&reading(80, NOW)), &config, NOW),
            Verdict::Unusable(Unusable::BeforeCompaction)
        );
    }

    #[test]
    fn a_wait_ends_when_it_says() {
        let config = Config::default();
        let event = Event {
            happening: Happening::ToolCall,
            reading: Some(reading(70, NOW)),
        };
        let (mut state, _) = step(State::default(), &event, &config, NOW);
        for left in (1..=4).rev() {
            let verdict = judge(&state, event.reading.as_ref(), &config, NOW);
            assert_eq!(
                verdict,
                Verdict::Waits {
                    level: Level::Warning,
                    calls: left
                }
            );
            state = step(state, &event, &config, NOW).0;
        }
        let verdict = judge(&state, event.reading.as_ref(), &config, NOW);
        assert_eq!(verdict, Verdict::Warns(Level::Warning));
    }
}
