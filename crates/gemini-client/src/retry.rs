//! Decides what follows a failed attempt: wait, the next key, or stop. It never sleeps and knows no
//! clock; the one function that does is in `exchange.rs`.
//!
//! | failure | what follows |
//! |---|---|
//! | 429, 401, 403, 400 with an invalid key | the next key at once; each key once a request |
//! | 429 on the last key, with a hint, not a per-day quota | wait as the hint says, same key |
//! | 503 | wait 1, 2, 3 s, same key: the model is busy for everybody, another key changes nothing |
//! | 408, 500, 502, a connection that failed or broke | wait 1 s, same key, once |
//! | 504, silence past the idle limit | stop: it would take as long again, and cost as much |
//! | 400 that names the thinking setting | once more without it, at once |
//! | all else | stop: the same request gets the same answer |
//!
//! 500 and 502 are often over in a second. But 500 is also what an input that the model cannot
//! digest gets, so one repetition is worth its cost and four are not. A broken connection is the
//! same bet. Waits of all kinds share one count, so that a request makes at most four attempts on a
//! key. No attempt begins at or after the deadline.

use std::time::Duration;

/// Waits after which 503 is tried again.
const LADDER: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(3),
];
/// How many of them a failure of the server or the connection gets.
const TRANSIENT_WAITS: usize = 1;

/// A failed attempt, as far as the decision needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// 503.
    Overloaded,
    /// 429.
    Quota { hint: Option<Duration>, daily: bool },
    /// 401, 403, 400 with an invalid or expired key.
    KeyRefused,
    /// 408, 500, 502, a failed or broken connection.
    Transient,
    /// 400 that names the thinking setting.
    ThinkingRefused,
    /// Anything that repeating does not change.
    Final,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Try the same key again after this long.
    Wait(Duration),
    /// Try the next key now.
    NextKey,
    /// Try the same key now, without the thinking setting.
    WithoutThinking,
    /// Give up.
    Stop(Stop),
}

/// Why it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Every key was refused.
    NoKeyLeft,
    /// The last failure is final, or was repeated often enough.
    GiveUp,
    /// Another attempt was due, but would begin past the deadline.
    NoTime,
}

/// One request's way through the keys.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    deadline: Duration,
    keys_left: usize,
    waits: usize,
    thinking_dropped: bool,
}

impl Retry {
    /// `keys` counts the first; `deadline` is measured from the request's beginning.
    pub(crate) fn new(keys: usize, deadline: Duration) -> Self {
        Self {
            deadline,
            keys_left: keys.saturating_sub(1),
            waits: 0,
            thinking_dropped: false,
        }
    }

    /// `elapsed` is the time since the request's beginning.
    pub(crate) fn after(&mut self, cause: Cause, elapsed: Duration) -> Step {
        match cause {
            Cause::KeyRefused | Cause::Quota { .. } if self.keys_left > 0 => {
                self.keys_left -= 1;
                // Waits belong to a key: the next one starts afresh.
                self.waits = 0;
                self.now(Step::NextKey, elapsed)
            }
            Cause::Quota {
                hint: Some(hint),
                daily: false,
            } => self.obey(hint, elapsed),
            Cause::KeyRefused | Cause::Quota { .. } => Step::Stop(Stop::NoKeyLeft),
            Cause::Overloaded => self.climb(LADDER.len(), elapsed),
            Cause::Transient => self.climb(TRANSIENT_WAITS, elapsed),
            Cause::ThinkingRefused if !self.thinking_dropped => {
                self.thinking_dropped = true;
                self.now(Step::WithoutThinking, elapsed)
            }
            Cause::ThinkingRefused | Cause::Final => Step::Stop(Stop::GiveUp),
        }
    }

    fn now(&self, step: Step, elapsed: Duration) -> Step {
        if elapsed < self.deadline {
            step
        } else {
            Step::Stop(Stop::NoTime)
        }
    }

    fn climb(&mut self, limit: usize, elapsed: Duration) -> Step {
        let Some(&delay) = LADDER[..limit].get(self.waits) else {
            return Step::Stop(Stop::GiveUp);
        };
        self.wait(delay, elapsed)
            .unwrap_or(Step::Stop(Stop::NoTime))
    }

    /// The server's hint replaces the ladder's delay, not its count: a hint of zero, repeated, must
    /// come to an end.
    fn obey(&mut self, hint: Duration, elapsed: Duration) -> Step {
        let allowed = self.waits < LADDER.len();
        allowed
            .then(|| self.wait(hint, elapsed))
            .flatten()
            .unwrap_or(Step::Stop(Stop::NoKeyLeft))
    }

    /// `None` when the attempt after the wait would begin too late.
    fn wait(&mut self, delay: Duration, elapsed: Duration) -> Option<Step> {
        let fits = elapsed
            .checked_add(delay)
            .is_some_and(|begin| begin < self.deadline);
        fits.then(|| {
            self.waits += 1;
            Step::Wait(delay)
        })
    }
}

#[cfg(test)]
mod tests;
