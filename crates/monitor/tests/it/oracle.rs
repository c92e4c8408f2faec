//! The state machine against an oracle that keeps no state: it looks at the whole history anew
//! after each call, in whole numbers.

use ctxfold_monitor::{
    Config, Effect, Event, Happening, Level, Reading, Source, State, Thresholds, step,
};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
struct Call {
    happening: Happening,
    /// Percent used, age in seconds (negative: the future), whether from a bridge.
    reading: Option<(i64, i64, bool)>,
    pause: i64,
}

#[derive(Debug, Clone, Copy)]
struct Rules {
    warning: i64,
    critical: i64,
    repeat: usize,
    enabled: bool,
}

/// A reading that counts: what was used, whether somebody could be told.
struct Seen {
    used: i64,
    told: bool,
    index: usize,
}

/// Index, level and whether a breadcrumb goes with it, of every warning of a history.
fn expected(calls: &[(i64, Call)], rules: Rules) -> Vec<(usize, Level, bool)> {
    let mut warnings = Vec::new();
    let is_compaction =
        |c: &Call| matches!(c.happening, Happening::Compacting | Happening::Compacted);
    let cuts: Vec<usize> = (0..calls.len())
        .filter(|&i| is_compaction(&calls[i].1))
        .collect();
    let starts = std::iter::once(0).chain(cuts.iter().map(|c| c + 1));
    let ends = cuts.iter().copied().chain([calls.len()]);
    for (start, end) in starts.zip(ends) {
        let mark = start.checked_sub(1).map(|cut| calls[cut].0);
        let counts = |index: usize| {
            let (now, call) = calls[index];
            let (used, age, bridge) = call.reading?;
            let told = match call.happening {
                Happening::ToolCall => true,
                Happening::Silent => false,
                _ => return None,
            };
            let taken = now - age;
            let fresh = !bridge || (age <= 60 && age > -86_401);
            // A transcript holds no answer from before its compaction: the same second will do.
            let gap = if bridge { 61 } else { 0 };
            let after = mark.is_none_or(|mark| taken - mark >= gap);
            (rules.enabled && fresh && after).then_some(Seen { used, told, index })
        };
        let seen: Vec<Seen> = (start..end).filter_map(counts).collect();
        for cycle in cycles(&seen, rules) {
            warnings.extend(warnings_of(cycle, rules));
        }
    }
    warnings
}

fn level(used: i64, rules: Rules) -> Option<Level> {
    let left = 100 - used;
    match () {
        () if left <= rules.critical => Some(Level::Critical),
        () if left <= rules.warning => Some(Level::Warning),
        () => None,
    }
}

/// Cuts at readings with enough room and before readings that fell far below the last one noted.
fn cycles(seen: &[Seen], rules: Rules) -> Vec<&[Seen]> {
    let mut cycles = Vec::new();
    for low in seen.split(|s| level(s.used, rules).is_none()) {
        let mut from = 0;
        let mut noted = None;
        for (i, s) in low.iter().enumerate() {
            if noted.is_some_and(|n| n - s.used >= 25) {
                cycles.push(&low[from..i]);
                from = i;
            }
            if s.told || i == from {
                noted = Some(s.used);
            }
        }
        cycles.push(&low[from..]);
    }
    cycles
}

fn warnings_of(cycle: &[Seen], rules: Rules) -> Vec<(usize, Level, bool)> {
    let told: Vec<(usize, Level)> = cycle
        .iter()
        .filter(|s| s.told)
        .map(|s| (s.index, level(s.used, rules).unwrap()))
        .collect();
    let mut spoken: Vec<usize> = Vec::new();
    for i in 0..told.len() {
        let due = match spoken.last() {
            None => true,
            Some(&last) => i - last >= rules.repeat || told[i].1 > told[last].1,
        };
        if due {
            spoken.push(i);
        }
    }
    let first_critical = spoken
        .iter()
        .copied()
        .find(|&i| told[i].1 == Level::Critical);
    spoken
        .iter()
        .map(|&i| (told[i].0, told[i].1, Some(i) == first_critical))
        .collect()
}

fn call() -> impl Strategy<Value = Call> {
    let happening = prop_oneof![
        8 => Just(Happening::ToolCall),
        2 => Just(Happening::Silent),
        1 => Just(Happening::Subagent),
        1 => Just(Happening::Compacting),
        1 => Just(Happening::Compacted),
    ];
    let age = prop_oneof![4 => 0i64..3, 2 => 55i64..66, 1 => -90_000i64..0];
    let reading = (0i64..=100, age, any::<bool>());
    let pause = prop_oneof![3 => 0i64..5, 1 => 50i64..70];
    (happening, prop::option::weighted(0.9, reading), pause).prop_map(
        |(happening, reading, pause)| Call {
            happening,
            reading,
            pause,
        },
    )
}

fn rules() -> impl Strategy<Value = Rules> {
    (1i64..=100, 0i64..100, 1usize..7, prop::bool::weighted(0.9)).prop_filter_map(
        "the critical threshold is the lower one",
        |(warning, critical, repeat, enabled)| {
            (critical < warning).then_some(Rules {
                warning,
                critical,
                repeat,
                enabled,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "percentages")]
    fn the_machine_warns_as_the_oracle_does(
        calls in prop::collection::vec(call(), 1..60),
        rules in rules(),
    ) {
        let mut now = 1_800_000_000;
        let mut history = Vec::new();
        let mut state = State::default();
        let mut warnings = Vec::new();
        let thresholds = Thresholds::new(rules.warning as f64, rules.critical as f64);
        let config = Config {
            enabled: rules.enabled,
            thresholds: thresholds.unwrap().unwrap(),
            repeat: rules.repeat as u64,
        };
        for (index, call) in calls.into_iter().enumerate() {
            now += call.pause;
            history.push((now, call));
            let reading = call.reading.map(|(used, age, bridge)| Reading {
                source: if bridge { Source::Bridge } else { Source::Transcript },
                used: used as f64,
                remaining: (100 - used) as f64,
                tokens: None,
                at: Some((now - age).cast_unsigned()),
            });
            let event = Event { happening: call.happening, reading };
            let before = state.clone();
            let (after, effects) = step(state, &event, &config, now.cast_unsigned());
            let drops = effects.contains(&Effect::DropBridge);
            let compacts = matches!(call.happening, Happening::Compacting | Happening::Compacted);
            prop_assert_eq!(drops, compacts);
            if call.happening == Happening::Subagent {
                prop_assert_eq!(&after, &before);
            }
            if compacts {
                let fresh = State { compacted_at: Some(now as f64), ..State::default() };
                prop_assert_eq!(&after, &fresh);
            }
            let records = effects.iter().any(|e| matches!(e, Effect::Record(_)));
            let warned = effects.iter().find_map(|e| match e {
                Effect::Warn(level, _) => Some(*level),
                _ => None,
            });
            prop_assert!(warned.is_some() || !records);
            warnings.extend(warned.map(|level| (index, level, records)));
            state = after;
        }
        prop_assert_eq!(warnings, expected(&history, rules));
    }
}
