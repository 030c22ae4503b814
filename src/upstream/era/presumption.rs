//! What a legacy client may rely on where there is no verdict: that a probe has found the server not to be modern.
//!
//! Kept apart from the verdicts because it is less than one: legacy is believed only once `initialize` has succeeded, and
//! a legacy client's is its own. It never serves a modern client's call, and is not written to a file. Rules: A15.5, C39.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A presumption is not doubted twice within this time (C39e).
const CALM: Duration = Duration::from_secs(1);

/// A legacy client that comes to a server known as modern makes the proxy look again, at most this often.
const SECOND_LOOK: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Presumption {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    holds: bool,
    doubted: Option<Instant>,
    looked: Option<Instant>,
}

impl Presumption {
    pub(super) fn holds(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).holds
    }

    pub(super) fn hold(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).holds = true;
    }

    /// Drops it; `false`, and it stays, if the same was done only just now.
    pub(super) fn doubt(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if state.doubted.is_some_and(|last| now.duration_since(last) < CALM) {
            return false;
        }
        state.holds = false;
        state.doubted = Some(now);
        true
    }

    /// Somebody looks now.
    pub(super) fn looked(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).looked = Some(Instant::now());
    }

    /// Whether the last look is long enough ago for another; the first to ask gets the work.
    pub(super) fn claim_look(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due = state.looked.is_none_or(|last| now.duration_since(last) >= SECOND_LOOK);
        if due {
            state.looked = Some(now);
        }
        due
    }
}
