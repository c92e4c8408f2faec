//! What requests of one client share about its keys: the place of the last good one, whose turn it
//! is, and which keys the server asked to leave alone for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::failure::Failure;
use crate::key::{Key, Keys};
use crate::retry::Cause;

#[derive(Debug)]
pub(crate) struct Ring {
    keys: Keys,
    good: AtomicUsize,
    /// One permit a key: parallel requests over one key would only run into its quota together.
    /// They are not spread over the other keys either, which are there for fail-over.
    turns: Vec<Semaphore>,
    cooling: Mutex<Vec<Option<Cooling>>>,
}

/// A quota failure with a hint, kept until the hint is over.
#[derive(Clone, Debug)]
struct Cooling {
    until: Duration,
    failure: Failure,
    daily: bool,
}

impl Ring {
    pub(crate) fn new(keys: Keys) -> Self {
        let count = keys.len();
        Self {
            keys,
            good: AtomicUsize::new(0),
            turns: (0..count).map(|_| Semaphore::new(1)).collect(),
            cooling: Mutex::new(vec![None; count]),
        }
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(crate) fn key(&self, index: usize) -> &Key {
        self.keys.at(index)
    }

    /// All keys, each once: from the last good one round, and those that cool down last, the
    /// soonest over at the very end, because only the last one is waited for.
    pub(crate) fn order(&self, now: Duration) -> Vec<usize> {
        let good = self.good.load(Ordering::Relaxed);
        let count = self.keys.len();
        let mut order: Vec<_> = (0..count).map(|step| (good + step) % count).collect();
        let cooling = self.cooling();
        let rest = |index: &usize| {
            cooling[*index]
                .as_ref()
                .map_or(Duration::ZERO, |cool| cool.until.saturating_sub(now))
        };
        order.sort_by_key(|index| {
            let rest = rest(index);
            (!rest.is_zero(), std::cmp::Reverse(rest))
        });
        order
    }

    /// Waits until no other request uses the key.
    pub(crate) async fn turn(&self, index: usize) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.turns[index].acquire().await.ok()
    }

    pub(crate) fn succeeded(&self, index: usize) {
        self.good.store(index, Ordering::Relaxed);
        self.cooling()[index] = None;
    }

    /// Remembers how long the server asked to leave the key alone.
    pub(crate) fn failed(&self, index: usize, failure: &Failure, now: Duration) {
        if let Cause::Quota {
            hint: Some(hint),
            daily,
        } = failure.cause
        {
            let until = now.saturating_add(hint);
            self.cooling()[index] = Some(Cooling {
                until,
                failure: failure.clone(),
                daily,
            });
        }
    }

    /// The failure that a key which cools down is known to give, with the rest of its hint.
    pub(crate) fn known_failure(&self, index: usize, now: Duration) -> Option<Failure> {
        let cooling = self.cooling();
        let Cooling {
            until,
            failure,
            daily,
        } = cooling[index].as_ref()?;
        let rest = until.checked_sub(now).filter(|rest| !rest.is_zero())?;
        Some(Failure {
            cause: Cause::Quota {
                hint: Some(rest),
                daily: *daily,
            },
            ..failure.clone()
        })
    }

    fn cooling(&self) -> MutexGuard<'_, Vec<Option<Cooling>>> {
        self.cooling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn quota(hint: u64) -> Failure {
        let cause = Cause::Quota {
            hint: Some(Duration::from_secs(hint)),
            daily: false,
        };
        Failure {
            cause,
            ..Failure::of_answer(ErrorKind::Quota, "quota".into())
        }
    }

    #[test]
    fn the_order_begins_at_the_last_good_key_and_ends_with_the_one_that_is_over_first() {
        let ring = Ring::new(Keys::parse("a,b,c,d").unwrap());
        assert_eq!(ring.order(Duration::ZERO), [0, 1, 2, 3]);
        ring.succeeded(2);
        assert_eq!(ring.order(Duration::ZERO), [2, 3, 0, 1]);
        ring.failed(2, &quota(10), Duration::ZERO);
        ring.failed(3, &quota(20), Duration::ZERO);
        assert_eq!(ring.order(Duration::ZERO), [0, 1, 3, 2]);
        let known = ring.known_failure(3, Duration::from_secs(5)).unwrap();
        assert_eq!(
            known.cause,
            Cause::Quota {
                hint: Some(Duration::from_secs(15)),
                daily: false
            }
        );
        assert_eq!(ring.known_failure(2, Duration::from_secs(10)), None);
        assert_eq!(ring.order(Duration::from_secs(10)), [2, 0, 1, 3]);
        ring.succeeded(3);
        assert_eq!(ring.known_failure(3, Duration::ZERO), None);
    }
}
