//! What a legacy client may rely on besides the verdict: that a probe has found a server without one not to be modern, and
//! that a modern server serves legacy clients as well.
//!
//! Kept apart from the verdicts because it is less than one: legacy is believed only once `initialize` has succeeded, and
//! a legacy client's is its own. It never serves a modern client's call, and is not written to a file. Rules: A15.5, C39.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A presumption is not doubted twice within this time (C39e).
const CALM: Duration = Duration::from_secs(1);

/// The `initialize` of a legacy client is tried at a server known as modern, at most this often.
const TRY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Presumption {
    state: Mutex<State>,
}

/// What a server known as modern does for legacy clients, as far as it has been tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Serves {
    #[default]
    Nothing,
    /// It answers them without sessions, so it can never ask them anything, nor tell them of changes.
    Stateless,
    Sessions,
}

#[derive(Debug, Default)]
struct State {
    holds: bool,
    doubted: Option<Instant>,
    serves: Serves,
    tried: Option<Instant>,
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
        state.serves = Serves::Nothing;
        state.doubted = Some(now);
        true
    }

    /// Whether the server, known as modern, serves legacy clients as well.
    pub(super) fn serves(&self) -> Serves {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).serves
    }

    pub(super) fn tried(&self, serves: Serves) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).serves = serves;
    }

    /// The claim is given back.
    pub(super) fn untried(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).tried = None;
    }

    /// Whether the last try is long enough ago for another; the first to ask gets the work.
    pub(super) fn claim_try(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due = state.tried.is_none_or(|last| now.duration_since(last) >= TRY);
        if due {
            state.tried = Some(now);
        }
        due
    }
}
