//! Waiting: a gate that a test opens, and the one function of this crate that sleeps.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that a closed gate holds anybody up, so that no test hangs for ever.
const LONGEST: Duration = Duration::from_mins(2);

/// Holds a mock's answer back until the test opens it.
///
/// Clones are handles of the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    inner: Arc<(Mutex<bool>, Condvar)>,
}

impl Gate {
    /// A closed gate.
    pub fn closed() -> Self {
        Self::default()
    }

    /// Opens the gate for everybody, for good.
    pub fn open(&self) {
        let (open, changed) = &*self.inner;
        *open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Waits until the gate is open, two minutes at most.
    pub(crate) fn wait(&self) {
        let (open, changed) = &*self.inner;
        let guard = open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(changed.wait_timeout_while(guard, LONGEST, |open| !*open));
    }
}

/// Asks again and again, with a short pause between, until there is an answer or time is up.
///
/// For what can't be waited for otherwise: a screen, a file that another process writes.
pub fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= end {
            return None;
        }
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a terminal's screen can only be polled; this is the crate's one function that sleeps"
)]
fn pause() {
    thread::sleep(Duration::from_millis(40));
}
