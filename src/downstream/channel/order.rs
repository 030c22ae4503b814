//! What must not overtake what on the way to the server.
//!
//! Owns the row of barriers: a legacy notification (and `initialize`) is one, and what is read after it begins when it has
//! arrived. Requests are none: a slow call holds nothing up. Rules: A2.1, A14.5.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// See the module.
#[derive(Default)]
pub(super) struct Order {
    last: Mutex<Option<CancellationToken>>,
}

/// What waits for the barrier before it.
pub(super) struct Turn(Option<CancellationToken>);

/// What others wait for, until it is dropped.
pub(super) struct Barrier(CancellationToken);

impl Order {
    /// The turn of what is read now.
    pub(super) fn turn(&self) -> Turn {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_some_and(CancellationToken::is_cancelled) {
            *last = None;
        }
        Turn(last.clone())
    }

    /// The turn of what is read now, for which all that follows waits.
    pub(super) fn barrier(&self) -> (Turn, Barrier) {
        let turn = self.turn();
        let token = CancellationToken::new();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        (turn, Barrier(token))
    }
}

impl Turn {
    pub(super) async fn come(&self) {
        if let Some(before) = &self.0 {
            before.cancelled().await;
        }
    }

    /// For what had better not come early, but must come.
    pub(super) async fn come_within(&self, patience: Duration) {
        let _ = timeout(patience, self.come()).await;
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
