//! How long to wait before a stream is opened or taken up again.
//!
//! Owns the growth from `timeouts.reconnect` to `timeouts.reconnect_max` and the jitter, so that many proxies do not
//! come back to a restarted server in one moment.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// A server's own `retry` is not believed below this.
const LEAST: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, most: Duration) -> Self {
        let most = most.max(first);
        Self { first, most, next: first }
    }

    /// The stream stood, so the next pause is a first one.
    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }

    /// The pause that is due now; `hint` is what the server asked for.
    pub(super) fn pause(&mut self, hint: Option<Duration>) -> Duration {
        let hint = hint.map(|hint| hint.clamp(LEAST, self.most));
        let base = match hint {
            // A first pause is the server's to choose; after failures it is no shorter than ours.
            Some(hint) if self.next == self.first => hint,
            Some(hint) => hint.max(self.next),
            None => self.next,
        };
        self.next = (self.next * 2).min(self.most);
        jittered(base)
    }
}

/// Up to a quarter more.
fn jittered(base: Duration) -> Duration {
    // Seeded by the system for each instance; no more than spreading is asked of it.
    let random = RandomState::new().build_hasher().finish() % 1000;
    base + base.mul_f64(random as f64 / 4000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(pause: Duration, seconds: u64) {
        let base = Duration::from_secs(seconds);
        assert!(pause >= base && pause <= base + base / 4, "{pause:?} is about {base:?}");
    }

    #[test]
    fn pauses_grow_to_the_bound_and_begin_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        for seconds in [1, 2, 4, 5, 5] {
            within(backoff.pause(None), seconds);
        }
        backoff.reset();
        within(backoff.pause(None), 1);
    }

    /// `retry` of the event stream format: honoured within reason, and no way to make the proxy spin.
    #[test]
    fn the_servers_own_pause_counts_after_a_stream_that_stood() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        within(backoff.pause(Some(Duration::from_secs(3))), 3);
        within(backoff.pause(Some(Duration::from_secs(1))), 2);
        backoff.reset();
        within(backoff.pause(Some(Duration::from_secs(60))), 5);
        backoff.reset();
        assert!(backoff.pause(Some(Duration::ZERO)) >= LEAST);
    }
}
