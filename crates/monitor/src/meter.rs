//! From a statusline's numbers to a fill: what the meter shows and what the bridge says.

use crate::bridge::Bridge;
use crate::reading::{Reading, Source, Tokens};
use crate::scale::Overrides;

/// The share of the window that early monitors took off for the client's own room, in percent.
const RAW_BUFFER: f64 = 16.5;
/// The window that they took for granted, in tokens.
const RAW_WINDOW: f64 = 1_000_000.0;

/// How full the context is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fill {
    /// Percent that the meter shows, 0 to 100.
    pub shown: f64,
    /// What the bridge says.
    pub bridge: Bridge,
}

impl Fill {
    /// Tokens against a limit.
    pub fn of_tokens(used: u64, limit: u64, now: u64) -> Self {
        let reading = Reading::of_tokens(used, limit, Source::Bridge, Some(now));
        Self {
            shown: reading.used,
            bridge: Bridge {
                used: reading.used,
                remaining: reading.remaining,
                tokens: Some(Tokens { used, limit }),
                at: Some(now),
            },
        }
    }

    /// A bare percentage of an unknown window.
    pub fn of_percent(remaining: f64, now: u64) -> Self {
        let used = percent(100.0 - remaining);
        let bridge = Bridge {
            used,
            remaining: 100.0 - used,
            tokens: None,
            at: Some(now),
        };
        Self {
            shown: used,
            bridge,
        }
    }
}

/// The fill as early monitors had it: the meter leaves out the client's room, the bridge does
/// not. `window` is the payload's, in tokens.
pub(crate) fn raw_fill(
    remaining: f64,
    window: Option<f64>,
    overrides: &Overrides,
    now: u64,
) -> Fill {
    let window = window.filter(|w| *w > 0.0).unwrap_or(RAW_WINDOW);
    let configured = overrides
        .window
        .as_deref()
        .and_then(|text| text.trim().parse::<f64>().ok());
    let buffer = match configured {
        Some(tokens) if tokens > 0.0 => ((1.0 - tokens / window) * 100.0).clamp(0.0, 100.0),
        _ => RAW_BUFFER,
    };
    let usable = if buffer < 100.0 {
        ((remaining - buffer) / (100.0 - buffer) * 100.0).max(0.0)
    } else {
        0.0
    };
    let used = (100.0 - remaining + 0.5).floor();
    let bridge = Bridge {
        used,
        remaining,
        tokens: None,
        at: Some(now),
    };
    Fill {
        shown: percent(100.0 - usable),
        bridge,
    }
}

fn percent(value: f64) -> f64 {
    (value + 0.5).floor().clamp(0.0, 100.0)
}
