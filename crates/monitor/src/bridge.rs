//! The bridge file, `claude-ctx-{session}.json`: what a statusline knows and a hook does not.
//!
//! Other programs write and read it too, so its keys are theirs.

use crate::id::SessionId;
use crate::json::{Object, shown};
use crate::reading::{DAY, Reading, Source, Tokens};

/// What a bridge file says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bridge {
    /// Percent used.
    pub used: f64,
    /// Percent remaining.
    pub remaining: f64,
    /// Tokens in the context and their limit, which is not 0.
    pub tokens: Option<Tokens>,
    /// When it was written, in seconds since 1970.
    pub at: Option<u64>,
}

impl Bridge {
    /// Reads a bridge. `None` when it is no object, names another session, or says nothing about
    /// what remains.
    pub fn parse(text: &str, session: &SessionId) -> Option<Self> {
        let object = Object::parse(text)?;
        if object
            .string("session_id")
            .is_some_and(|id| id != session.as_str())
        {
            return None;
        }
        let remaining = object.number("remaining_percentage")?;
        let used = object
            .number("used_pct")
            .unwrap_or_else(|| (100.0 - remaining).round());
        Some(Self {
            used,
            remaining,
            tokens: tokens(&object),
            at: object
                .number("timestamp")
                .filter(|at| *at >= 0.0)
                .map(whole),
        })
    }

    /// The text of the file.
    pub fn encode(&self, session: &SessionId) -> String {
        let id = serde_json::Value::from(session.as_str());
        let (remaining, used) = (shown(self.remaining), shown(self.used));
        let at = self.at.unwrap_or_default();
        let tokens = self.tokens.map_or_else(String::new, |t| {
            format!(
                ",\"used_tokens\":{},\"threshold_tokens\":{}",
                t.used, t.limit
            )
        });
        format!(
            "{{\"session_id\":{id},\"remaining_percentage\":{remaining},\"used_pct\":{used},\"timestamp\":{at}{tokens}}}"
        )
    }

    /// The tokens, where the bridge is not older than a moment in seconds since 1970: what an older
    /// one says may have changed. A time after tomorrow is none.
    ///
    /// ```
    /// use ctxfold_monitor::{Bridge, Tokens};
    /// let tokens = Tokens { used: 1, limit: 967_000 };
    /// let bridge = Bridge { used: 0.0, remaining: 100.0, tokens: Some(tokens), at: Some(1000) };
    /// assert_eq!(bridge.tokens_since(1000, 2000), Some(tokens));
    /// assert_eq!(bridge.tokens_since(1001, 2000), None);
    /// ```
    pub fn tokens_since(&self, moment: u64, now: u64) -> Option<Tokens> {
        let at = self.at?;
        self.tokens.filter(|_| at >= moment && at <= now + DAY)
    }

    /// The reading that it is.
    pub fn reading(&self) -> Reading {
        Reading {
            source: Source::Bridge,
            used: self.used,
            remaining: self.remaining,
            tokens: self.tokens,
            at: self.at,
        }
    }
}

fn tokens(object: &Object<'_>) -> Option<Tokens> {
    let count = |name| object.number(name).filter(|n| *n >= 0.0).map(whole);
    Some(Tokens {
        used: count("used_tokens")?,
        limit: count("threshold_tokens").filter(|limit| *limit > 0)?,
    })
}

#[expect(
    clippy::cast_sign_loss,
    reason = "callers pass finite numbers of at least 0"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
