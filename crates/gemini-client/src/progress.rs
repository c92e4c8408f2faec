//! What a caller can show while it waits.

use std::time::Duration;

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What it is doing now.
    pub phase: Phase,
    /// The attempt, counted from 1 over all keys.
    pub attempt: u32,
    /// The place of the key in use, counted from 1.
    pub key_place: usize,
    /// The size of the text so far, in bytes. A new attempt begins at 0 again.
    pub text_bytes: u64,
    /// The size of the thoughts that the server showed so far, in bytes.
    pub thought_bytes: u64,
}

/// What a call is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// An attempt was begun, and there is no answer yet.
    Asking,
    /// The answer is coming in.
    Receiving,
    /// The server was busy; the next attempt is made after this long.
    Waiting(Duration),
}

/// Keeps the numbers and tells the caller.
pub(crate) struct Watch<'a> {
    now: Progress,
    tell: &'a mut (dyn FnMut(Progress) + Send),
}

impl<'a> Watch<'a> {
    pub(crate) fn new(tell: &'a mut (dyn FnMut(Progress) + Send)) -> Self {
        let now = Progress {
            phase: Phase::Asking,
            attempt: 0,
            key_place: 0,
            text_bytes: 0,
            thought_bytes: 0,
        };
        Self { now, tell }
    }

    pub(crate) fn asking(&mut self, key_place: usize) {
        let attempt = self.now.attempt + 1;
        self.now = Progress {
            phase: Phase::Asking,
            attempt,
            key_place,
            text_bytes: 0,
            thought_bytes: 0,
        };
        (self.tell)(self.now.clone());
    }

    pub(crate) fn received(&mut self, text_bytes: u64, thought_bytes: u64) {
        self.now.phase = Phase::Receiving;
        self.now.text_bytes += text_bytes;
        self.now.thought_bytes += thought_bytes;
        (self.tell)(self.now.clone());
    }

    pub(crate) fn waiting(&mut self, delay: Duration) {
        self.now.phase = Phase::Waiting(delay);
        (self.tell)(self.now.clone());
    }
}
