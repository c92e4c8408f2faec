//! Whether a conversation that paused is worth a compaction before its next request.

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
