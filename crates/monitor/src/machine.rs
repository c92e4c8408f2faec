//! The state machine: what to do about one event. Pure; the time is passed in.
//!
//! A *cycle* is the time between two compactions, or between a moment with enough room and the
//! next. Within a cycle the first warning comes at once and then at every few tool calls; a rise
//! from warning to critical comes at once too. A new cycle starts afresh.

use crate::config::Config;
use crate::reading::Reading;

/// A fall of this many percentage points is a compaction that nobody told us of.
const DROP: f64 = 25.0;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// At or below the warning threshold.
    Warning,
    /// At or below the critical threshold.
    Critical,
}

impl Level {
    /// `warning` or `critical`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Warning, Self::Critical]
            .into_iter()
            .find(|level| level.name() == name)
    }
}

/// The last warning of the cycle, in the words of the file that other monitors keep.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Warned {
    /// Tool calls since the last warning.
    pub calls: u64,
    /// The level of the last warning.
    pub level: Option<Level>,
    /// Members of the file that we do not know: name and JSON text.
    pub others: Vec<(String, String)>,
}

/// What the other file has no words for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cycle {
    /// The level was seen at an event whose output reaches nobody: the warning is still due.
    pub due: bool,
    /// The breadcrumb of this cycle was left.
    pub recorded: bool,
    /// Percent used at the last low reading.
    pub used: Option<f64>,
}

/// What is known of a session between two calls.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// The last warning of this cycle; `None` at its start.
    pub warned: Option<Warned>,
    /// The rest of the cycle; without meaning while `warned` is `None`.
    pub cycle: Cycle,
    /// When the last compaction began, in seconds since 1970.
    pub compacted_at: Option<f64>,
}

/// What kind of call this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// A tool has run, and what we say reaches the model.
    ToolCall,
    /// Something else, at which we can say nothing.
    Silent,
    /// The conversation is about to be compacted.
    Compacting,
    /// The conversation was compacted.
    Compacted,
    /// Something in a sub-agent, which has a context of its own.
    Subagent,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// What kind of call it is.
    pub happening: Happening,
    /// How full the main conversation's context is, when known.
    pub reading: Option<Reading>,
}

/// A note that the context ran out, for the journal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breadcrumb {
    /// When, in seconds since 1970.
    pub at: u64,
    /// How full the context was.
    pub reading: Reading,
}

/// What the caller has to do.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Tell the model.
    Warn(Level, Reading),
    /// Append a breadcrumb to the journal. Once a cycle.
    Record(Breadcrumb),
    /// Delete the bridge: what it says is of the time before the compaction.
    DropBridge,
}

/// Takes one call and says what to remember and what to do.
pub fn step(state: State, event: &Event, config: &Config, now: u64) -> (State, Vec<Effect>) {
    match event.happening {
        Happening::Subagent => (state, Vec::new()),
        // Also with warnings off: they may be switched on before the next reading.
        Happening::Compacting | Happening::Compacted => {
            let fresh = State {
                compacted_at: Some(now as f64),
                ..State::default()
            };
            (fresh, vec![Effect::DropBridge])
        }
        Happening::ToolCall | Happening::Silent => {
            match event
                .reading
                .filter(|r| config.enabled && r.check(now, state.compacted_at).is_ok())
            {
                Some(reading) => observe(state, event.happening, reading, config, now),
                None => (state, Vec::new()),
            }
        }
    }
}

fn observe(
    mut state: State,
    happening: Happening,
    reading: Reading,
    config: &Config,
    now: u64,
) -> (State, Vec<Effect>) {
    let level = config.thresholds.level(reading.remaining);
    let fell = state
        .cycle
        .used
        .is_some_and(|before| before - reading.used >= DROP);
    if level.is_none() || fell {
        state.warned = None;
    }
    if state.warned.is_none() {
        state.cycle = Cycle::default();
    }
    let Some(level) = level else {
        return (state, Vec::new());
    };
    if happening == Happening::Silent {
        // A level that was announced stays so; a new cycle's first one is due.
        if state.warned.is_none() {
            state.warned = Some(Warned {
                level: Some(level),
                ..Warned::default()
            });
            state.cycle = Cycle {
                due: true,
                used: Some(reading.used),
                ..Cycle::default()
            };
        }
        return (state, Vec::new());
    }
    let calls = state
        .warned
        .as_ref()
        .map_or(0, |warned| warned.calls.saturating_add(1));
    let rises = level == Level::Critical
        && state
            .warned
            .as_ref()
            .is_some_and(|warned| warned.level == Some(Level::Warning));
    let speaks = state.warned.is_none() || state.cycle.due || calls >= config.repeat || rises;
    state.cycle.used = Some(reading.used);
    let mut warned = state.warned.unwrap_or_default();
    warned.calls = calls;
    let mut effects = Vec::new();
    if speaks {
        warned.calls = 0;
        warned.level = Some(level);
        state.cycle.due = false;
        effects.push(Effect::Warn(level, reading));
        if level == Level::Critical && !state.cycle.recorded {
            state.cycle.recorded = true;
            effects.push(Effect::Record(Breadcrumb { at: now, reading }));
        }
    }
    state.warned = Some(warned);
    (state, effects)
}
