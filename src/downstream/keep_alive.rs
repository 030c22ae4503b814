//! When an event stream has been quiet for long enough to need a comment (C16).
//!
//! Owns the clock of one stream. What passes notes the time and leaves the timer alone, which looks at the note when it
//! runs out: a stream of many events sets one timer a period and not one an event.

use crate::shutdown::Dormant;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// See the module.
pub(super) struct KeepAlive {
    period: Duration,
    quiet_since: Instant,
    timer: Option<Pin<Box<Dormant<Sleep>>>>,
}

impl KeepAlive {
    pub(super) fn new(period: Duration) -> Self {
        Self { period, quiet_since: Instant::now(), timer: None }
    }

    /// Something goes out.
    pub(super) fn reset(&mut self) {
        self.quiet_since = Instant::now();
    }

    /// Ready once for each period without anything.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let due = self.quiet_since + self.period;
            let timer = self.timer.get_or_insert_with(|| Box::pin(Dormant::new(sleep_until(due))));
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
            let now = Instant::now();
            if due <= now {
                self.quiet_since = now;
                return Poll::Ready(());
            }
        }
    }
}
