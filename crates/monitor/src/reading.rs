//! One measurement of the context's fill, and whether it can be used now.

/// Where a reading comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The session's own file: the last usage after the last compaction. Exact, never stale.
    Transcript,
    /// The bridge file that a statusline writes. As old as the last time it was drawn.
    Bridge,
}

/// Tokens in the context and the point to which they may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens in the context.
    pub used: u64,
    /// Tokens at which the client compacts, or the model's window.
    pub limit: u64,
}

/// One measurement. Percentages are of the scale in use; they may be fractions and may leave
/// 0 to 100 when a statusline says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Where it comes from.
    pub source: Source,
    /// Percent used.
    pub used: f64,
    /// Percent remaining.
    pub remaining: f64,
    /// The tokens behind the percentages, when known.
    pub tokens: Option<Tokens>,
    /// When it was taken, in seconds since 1970, when known.
    pub at: Option<u64>,
}

/// Why a reading counts for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// The statusline was last drawn too long ago.
    Stale,
    /// A bridge without a time, or with one that no clock shows.
    NoTime,
    /// It may be of the time before the last compaction.
    BeforeCompaction,
}

/// A bridge older than this many seconds is stale.
const STALE: u64 = 60;
/// A bridge must be this many seconds younger than a compaction's start.
const WATERMARK: f64 = 60.0;
/// A compaction may seem to start this many seconds in the future.
const SKEW: f64 = 5.0;
/// A time further ahead than this is no time, for instance milliseconds.
pub(crate) const DAY: u64 = 86_400;

impl Reading {
    /// A reading of tokens against a limit, rounded to whole percents. A limit of 0 is full.
    pub fn of_tokens(used: u64, limit: u64, source: Source, at: Option<u64>) -> Self {
        let percent = if limit == 0 {
            100.0
        } else {
            used as f64 / limit as f64 * 100.0
        };
        let percent = percent.round().clamp(0.0, 100.0);
        Self {
            source,
            used: percent,
            remaining: 100.0 - percent,
            tokens: Some(Tokens { used, limit }),
            at,
        }
    }

    /// Whether the reading can be used at a time, after a compaction that began at another.
    ///
    /// # Errors
    /// Says why it cannot.
    pub fn check(&self, now: u64, compacted_at: Option<f64>) -> Result<(), Unusable> {
        // A watermark from the future is another clock's.
        let watermark = compacted_at.filter(|at| *at <= now as f64 + SKEW);
        match (self.source, self.at) {
            (Source::Bridge, None | Some(0)) => Err(Unusable::NoTime),
            (Source::Bridge, Some(at)) if at > now + DAY => Err(Unusable::NoTime),
            (Source::Bridge, Some(at)) => {
                if watermark.is_some_and(|mark| at as f64 <= mark + WATERMARK) {
                    Err(Unusable::BeforeCompaction)
                } else if now.saturating_sub(at) > STALE {
                    Err(Unusable::Stale)
                } else {
                    Ok(())
                }
            }
            (Source::Transcript, at) => {
                // Times are whole seconds, and an answer may follow a compaction within one: what
                // the file holds from before it is told by the compaction's own row. Without a time
                // of its own, the answer must have come after the window.
                let is_before = |mark: f64| match at {
                    Some(at) => (at as f64) < mark.floor(),
                    None => now as f64 <= mark + WATERMARK,
                };
                if watermark.is_some_and(is_before) {
                    Err(Unusable::BeforeCompaction)
                } else {
                    Ok(())
                }
            }
        }
    }
}
