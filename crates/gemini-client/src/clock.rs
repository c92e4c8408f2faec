//! Time, as the client sees it. Tests put a clock in its place that nobody waits for.

use std::fmt;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

pub(crate) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) trait Clock: fmt::Debug + Send + Sync {
    /// Time since the clock was made.
    fn now(&self) -> Duration;
    /// Waits on purpose.
    fn wait(&self, delay: Duration) -> Sleep;
    /// Rings when `now` reaches `at`, if something else takes that long.
    fn alarm(&self, at: Duration) -> Sleep;
}

/// Tokio's clock.
#[derive(Debug)]
pub(crate) struct TokioClock(tokio::time::Instant);

impl TokioClock {
    pub(crate) fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn wait(&self, delay: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(delay))
    }

    fn alarm(&self, at: Duration) -> Sleep {
        let left = at.saturating_sub(self.now());
        Box::pin(tokio::time::sleep(left))
    }
}

/// The work's result, or `None` if the alarm rings first.
pub(crate) async fn before<T>(mut alarm: Sleep, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        if let Poll::Ready(output) = work.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        alarm.as_mut().poll(context).map(|()| None)
    })
    .await
}
