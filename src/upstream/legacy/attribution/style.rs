//! How an upstream asks its client: not at all, on the stream of the call that asks, or beside it.
//!
//! Owns what is known of that, for all sessions of one upstream: nothing at first, then what it showed. Once it has asked
//! beside a call's stream it stays one that does. Rules: B5, start gently and learn.

use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::watch;

/// Calls that must have finished without a question until the upstream is taken for one that does not ask.
const QUIET: u32 = 16;

/// What an upstream has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Too little.
    Nothing,
    /// Its calls finish without questions.
    Calm,
    /// It asks on the stream of the call.
    Asks,
    /// It asks on other streams of the session too, where nothing says whose question it is.
    Beside,
}

/// The one of an upstream.
#[derive(Debug)]
pub(in super::super) struct Style {
    upstream: String,
    shown: watch::Sender<Shown>,
    quiet: AtomicU32,
}

impl Style {
    pub(in super::super) fn new(upstream: &str) -> Self {
        let shown = watch::Sender::new(Shown::Nothing);
        Self { upstream: upstream.to_owned(), shown, quiet: AtomicU32::new(0) }
    }

    /// Whether it asks beside the call's stream, so that a session runs one call at a time.
    pub(in super::super) fn is_beside(&self) -> bool {
        self.now() == Shown::Beside
    }

    pub(super) fn now(&self) -> Shown {
        *self.shown.borrow()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Shown> {
        self.shown.subscribe()
    }

    /// A call that may be asked has finished without a question.
    pub(super) fn finished_quietly(&self) {
        if self.now() == Shown::Nothing && self.quiet.fetch_add(1, Ordering::Relaxed) + 1 >= QUIET {
            self.show(Shown::Calm);
        }
    }

    pub(super) fn asks(&self) {
        self.show(Shown::Asks);
    }

    pub(super) fn asks_beside(&self) {
        if self.show(Shown::Beside) {
            tracing::info!(
                upstream = %self.upstream,
                "the upstream server asks its client outside the stream of the call; from now on each of its sessions \
                 with client capabilities runs one call at a time that may be asked (session.max_per_key allows more \
                 sessions)"
            );
        }
    }

    /// Whether that is new.
    fn show(&self, shown: Shown) -> bool {
        self.shown.send_if_modified(|now| {
            let new = match (*now, shown) {
                (Shown::Beside, _) | (_, Shown::Nothing) | (Shown::Asks, Shown::Asks | Shown::Calm) => false,
                (Shown::Calm, Shown::Calm) => false,
                (Shown::Nothing | Shown::Calm | Shown::Asks, Shown::Beside)
                | (Shown::Nothing, Shown::Calm)
                | (Shown::Nothing | Shown::Calm, Shown::Asks) => true,
            };
            if new {
                *now = shown;
            }
            new
        })
    }
}
