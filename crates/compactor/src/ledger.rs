//! The ledger.
/// The ledger's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerOptions {
    /// Tokens for user messages that stay verbatim, newest first; at four characters a token.
    pub user_tokens: usize,
}

impl Default for LedgerOptions {
    fn default() -> LedgerOptions {
        LedgerOptions {
            user_tokens: 20_000,
        }
    }
}
