//! The pauses before a server that ends whenever it is started is started again.
//!
//! Owns the count of failures in a row and the growth of the pause. The first failure costs no pause: a process may die once.
//! Whoever comes in a pause is told at once, and not kept waiting. Case C56.

use super::super::error::SendError;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Starts(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    /// When the last of them was counted.
    counted: Option<Instant>,
    not_before: Option<Instant>,
}

impl Starts {
    /// Whether it may be started now.
    pub(super) fn allow(&self) -> Result<(), SendError> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait =
            state.not_before.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        if wait.is_zero() { Ok(()) } else { Err(SendError::Pausing { failures: state.failures, wait }) }
    }

    /// What was begun then could not be started, or ended before it had answered anything. Of those that were begun side by
    /// side one counts.
    pub(super) fn failed(&self, begun: Instant) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.counted.is_some_and(|counted| begun < counted) {
            return;
        }
        state.counted = Some(Instant::now());
        state.failures = state.failures.saturating_add(1);
        if let Some(doublings) = state.failures.checked_sub(2) {
            let pause = FIRST.saturating_mul(1 << doublings.min(5)).min(MOST);
            state.not_before = Some(Instant::now() + pause);
        }
    }

    /// It has been of use.
    pub(super) fn worked(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    /// C56: a crash loop is backed off, up to a bound, and the first success ends that.
    #[tokio::test(start_paused = true)]
    async fn pauses_begin_with_the_second_failure_and_grow() {
        let starts = Starts::default();
        let fails = || async {
            advance(Duration::from_millis(1)).await;
            starts.failed(Instant::now());
        };
        fails().await;
        assert!(starts.allow().is_ok());
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            let before = Instant::now();
            fails().await;
            // Begun before that was known: it is the same trouble.
            starts.failed(before);
            advance(Duration::from_secs(seconds) - Duration::from_millis(1)).await;
            assert!(matches!(starts.allow(), Err(SendError::Pausing { .. })), "{seconds} s");
            advance(Duration::from_millis(1)).await;
            assert!(starts.allow().is_ok(), "{seconds} s");
        }
        fails().await;
        starts.worked();
        assert!(starts.allow().is_ok());
    }
}
