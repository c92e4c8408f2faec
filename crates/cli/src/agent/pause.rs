//! What the end of a conversation's file says of its pause.

use ctxfold_session_claude as claude;
use ctxfold_session_codex as codex;

use super::{Agent, Place, modified_ms};
use crate::error::CommandResult;

/// What the end of a conversation's file says of its pause.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pause {
    /// Time of the newest row, in milliseconds since the Unix epoch.
    pub(crate) active_ms: Option<i64>,
    /// Time of the model's newest answer, where there is one since the last compaction.
    pub(crate) answered_ms: Option<i64>,
    /// Whether it was compacted and nothing was answered since.
    pub(crate) is_compacted: bool,
    /// How long the provider keeps the conversation, in milliseconds.
    pub(crate) cache_ms: Option<u64>,
}

/// How long Codex's provider keeps a conversation, in milliseconds.
const CODEX_CACHE_MS: u64 = 30 * 60 * 1000;

/// Reads the end of a conversation's file.
pub(crate) fn pause(place: &Place) -> CommandResult<Pause> {
    match place.agent {
        Agent::Claude => {
            let tail = claude::read_tail(&place.path)?;
            Ok(Pause {
                active_ms: tail.active_ms,
                answered_ms: tail.answered_ms,
                is_compacted: tail.compacted_ms.is_some(),
                cache_ms: tail
                    .cache_ttl
                    .map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX)),
            })
        }
        Agent::Codex => {
            let tail = codex::pause(&place.path)?;
            Ok(Pause {
                // Where the end tells nothing, the file's time, which every append moves.
                active_ms: tail
                    .active_ms
                    .or(tail.compacted_ms)
                    .or_else(|| Some(modified_ms(&place.path))),
                answered_ms: tail.answered_ms,
                is_compacted: tail.compacted_ms.is_some(),
                cache_ms: Some(CODEX_CACHE_MS),
            })
        }
    }
}
