//! Whether a conversation that paused is worth a compaction before its next request, and what it
//! costs with and without one.
//!
//! A provider's cache is gone after a pause; the next request then pays for the whole history.
//! Compacting breaks a cache that is still warm, which costs more than it saves: see [`decide`].

use std::fmt;

use ctxfold_transcript::{Action, Decision, Outcome, Plan, Target, Transcript, text_bytes};

use crate::settle::settle;
use crate::{MaskOptions, Refusal, mask, pins};

/// The most characters of an idle summary.
pub const SUMMARY_CHARS: usize = 24_000;

/// How long the provider keeps the conversation, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheLife {
    /// This many milliseconds, from what the conversation's own records show.
    Known(u64),
    /// Not known: the setting decides.
    Unknown,
}

/// What is known of a paused conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleFacts {
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// The newest activity that was no compaction, in milliseconds since the Unix epoch.
    pub last_activity_ms: Option<i64>,
    /// The newest compaction, ours or the client's, in milliseconds since the Unix epoch.
    pub last_compaction_ms: Option<i64>,
    /// Bytes that the next request would hold.
    pub live_bytes: u64,
    /// Tokens that the next request would hold.
    pub live_tokens: u64,
    /// Tokens that it would hold after a compaction, where a plan was made already.
    pub tokens_after: Option<u64>,
    /// How long the provider keeps the conversation.
    pub cache: CacheLife,
    /// Whether a process has the conversation open.
    pub is_live: bool,
}

impl IdleFacts {
    /// Whether it was compacted since its newest activity.
    fn is_compacted(&self) -> bool {
        let last = self.last_activity_ms;
        self.last_compaction_ms
            .is_some_and(|at| last.is_none_or(|last| at >= last))
    }
}

/// The smallest conversation that is worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinSize {
    /// In bytes of the next request.
    Bytes(u64),
    /// In tokens of the next request.
    Tokens(u64),
}

/// What the user set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleSettings {
    /// Whether idle compaction is on for this kind of conversation.
    pub enabled: bool,
    /// The shortest pause, in milliseconds.
    pub after_ms: u64,
    /// The smallest conversation.
    pub min: MinSize,
    /// The smallest share of tokens to be saved, between 0 and 1.
    pub min_gain: f64,
    /// The cache's life in milliseconds where the conversation does not show it.
    pub cache_ms: u64,
}

impl Default for IdleSettings {
    fn default() -> IdleSettings {
        IdleSettings {
            enabled: false,
            after_ms: 15 * 60 * 1000,
            min: MinSize::Bytes(64 * 1024),
            min_gain: 0.25,
            cache_ms: 60 * 60 * 1000,
        }
    }
}

/// Whether to compact, and the costs either way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdleDecision {
    /// What to do.
    pub verdict: Verdict,
    /// What the next request costs.
    pub cost: Estimate,
}

/// What to do with a conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Compact it before its next request.
    Compact,
    /// Leave it as it is.
    Leave(Reason),
}

/// Why a conversation is left as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// Idle compaction is off.
    Off,
    /// A process has it open.
    Live,
    /// It has no activity that could be dated.
    NoActivity,
    /// Its newest activity lies in the future: the clock cannot be trusted.
    ClockBehind,
    /// It was compacted since its newest activity: once a pause.
    AlreadyCompacted,
    /// The provider still has it.
    Warm {
        /// Milliseconds until the cache is gone.
        left_ms: u64,
    },
    /// The pause is too short.
    Recent {
        /// Milliseconds until it is long enough.
        left_ms: u64,
    },
    /// It is too small.
    Small,
    /// Too little would be saved.
    LittleGain {
        /// The share of tokens that would be saved, between 0 and 1.
        gain: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = |ms: &u64| ms.div_ceil(60_000);
        match self {
            Reason::Off => f.write_str("idle compaction is off"),
            Reason::Live => f.write_str("a process has the conversation open"),
            Reason::NoActivity => f.write_str("the conversation has no dated activity"),
            Reason::ClockBehind => f.write_str("the newest activity lies in the future"),
            Reason::AlreadyCompacted => f.write_str("compacted in this pause already"),
            Reason::Warm { left_ms } => write!(
                f,
                "the provider's cache is warm for {} min more; breaking it costs more than it saves",
                minutes(left_ms)
            ),
            Reason::Recent { left_ms } => {
                write!(
                    f,
                    "idle for too short a time: {} min more",
                    minutes(left_ms)
                )
            }
            Reason::Small => f.write_str("the conversation is too small"),
            Reason::LittleGain { gain } => write!(
                f,
                "too little to gain: {:.0}% fewer tokens",
                (gain * 100.0).floor()
            ),
        }
    }
}

/// Tokens of a request, by how the provider charges them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTokens {
    /// Read from the provider's cache.
    pub cached: u64,
    /// Sent and stored anew.
    pub uncached: u64,
}

/// What the next request holds with and without a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Without one.
    pub without: RequestTokens,
    /// With one, where a plan tells. A compacted conversation is never in the cache.
    pub with: Option<RequestTokens>,
}

/// Prices of the user's model, in any currency a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Of tokens read from the cache.
    pub cached: f64,
    /// Of tokens sent anew, what the provider takes for storing them included.
    pub uncached: f64,
}

impl RequestTokens {
    /// What they cost.
    pub fn cost(self, price: Price) -> f64 {
        (self.cached as f64 * price.cached + self.uncached as f64 * price.uncached) / 1e6
    }
}

/// Decides over one conversation. The first reason against it, in the order of [`Reason`], wins.
pub fn decide(facts: &IdleFacts, settings: &IdleSettings) -> IdleDecision {
    let cache_ms = match facts.cache {
        CacheLife::Known(ms) => ms,
        CacheLife::Unknown => settings.cache_ms,
    };
    let idle_ms = facts
        .last_activity_ms
        .map(|last| facts.now_ms.saturating_sub(last));
    // What a compaction left was never sent: only what was said since can be cached.
    let is_warm =
        !facts.is_compacted() && idle_ms.is_some_and(|idle| idle >= 0 && (idle as u64) < cache_ms);
    let without = if is_warm {
        RequestTokens {
            cached: facts.live_tokens,
            uncached: 0,
        }
    } else {
        RequestTokens {
            cached: 0,
            uncached: facts.live_tokens,
        }
    };
    let with = facts.tokens_after.map(|uncached| RequestTokens {
        cached: 0,
        uncached,
    });
    let verdict = match reason(facts, settings, idle_ms, cache_ms) {
        Some(reason) => Verdict::Leave(reason),
        None => Verdict::Compact,
    };
    IdleDecision {
        verdict,
        cost: Estimate { without, with },
    }
}

fn reason(
    facts: &IdleFacts,
    settings: &IdleSettings,
    idle_ms: Option<i64>,
    cache_ms: u64,
) -> Option<Reason> {
    if !settings.enabled {
        return Some(Reason::Off);
    }
    if facts.is_live {
        return Some(Reason::Live);
    }
    let Some(idle) = idle_ms else {
        return Some(Reason::NoActivity);
    };
    let Ok(idle) = u64::try_from(idle) else {
        return Some(Reason::ClockBehind);
    };
    if facts.is_compacted() {
        return Some(Reason::AlreadyCompacted);
    }
    if idle < cache_ms {
        return Some(Reason::Warm {
            left_ms: cache_ms - idle,
        });
    }
    if idle < settings.after_ms {
        return Some(Reason::Recent {
            left_ms: settings.after_ms - idle,
        });
    }
    let is_small = match settings.min {
        MinSize::Bytes(least) => facts.live_bytes < least,
        MinSize::Tokens(least) => facts.live_tokens < least,
    };
    if is_small {
        return Some(Reason::Small);
    }
    let after = facts.tokens_after?;
    let gain = if facts.live_tokens == 0 {
        0.0
    } else {
        1.0 - (after as f64 / facts.live_tokens as f64).min(1.0)
    };
    (gain < settings.min_gain).then_some(Reason::LittleGain { gain })
}

/// Inputs longer than this, in bytes, go with their calls when a paused conversation is
/// shortened.
const LONG_INPUT: u64 = 2_000;

/// Shortens a paused conversation by rules alone: user and assistant words stay, every older
/// output is folded, and calls whose inputs are long are dropped with a note that names them.
///
/// # Errors
/// When nothing, or too little, would be saved.
pub fn shorten(
    transcript: &Transcript,
    keep_recent: usize,
    min_gain: f64,
) -> Result<Plan, Refusal> {
    let options = MaskOptions {
        keep_recent,
        aggressive: true,
        min_gain: 0.0,
        ..MaskOptions::default()
    };
    let tail = pins::tail(transcript, keep_recent)?;
    let mut plan = match mask(transcript, &options) {
        Ok(plan) => plan,
        Err(Refusal::NothingToGain { .. }) => {
            let mut plan = Plan::keep_all(transcript, ctxfold_transcript::Mode::Mask);
            plan.tail = tail;
            plan
        }
        Err(refusal) => return Err(refusal),
    };
    for (index, call) in transcript.calls.iter().enumerate() {
        let in_head = |at: usize| at > 0 && at < tail;
        let is_old = in_head(call.at.message) && call.result.is_some_and(|r| in_head(r.message));
        if !is_old || call.outcome != Outcome::Success || text_bytes(&call.input) < LONG_INPUT {
            continue;
        }
        plan.decisions
            .retain(|decision| decision.target != Target::Call(index));
        plan.decisions.push(Decision {
            target: Target::Call(index),
            action: Action::Drop,
            reason: "long-input".to_owned(),
        });
    }
    let notes = std::mem::take(&mut plan.notes);
    settle(transcript, &mut plan);
    plan.decisions.retain(|d| d.action != Action::Keep);
    if !notes.is_empty() {
        mask::add_note(transcript, &mut plan);
    }
    plan.measure(transcript);
    let gain = plan.before.gain(&plan.after);
    if gain <= 0.0 || gain < min_gain {
        return Err(Refusal::NothingToGain {
            gain,
            needed: min_gain,
        });
    }
    plan.validate(transcript).map_err(Refusal::Broken)?;
    Ok(plan)
}
