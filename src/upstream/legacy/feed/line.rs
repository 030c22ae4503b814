//! How far the GET stream of one session is, for all who depend on it.
//!
//! Owns the state and the word of each change. Whoever follows the stream (`stream`) sets it; a feed looks at it for its
//! members, a call before it is sent. Rules: B5, B9.3; case C48.

use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// How far the GET stream is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Asked for; nothing is known yet.
    #[default]
    Opening,
    /// Asked for, and nothing has come in time.
    Silent,
    /// Broken off or not to be had just now; to be asked for again.
    Broken,
    Open,
    /// The server has none.
    Absent,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Now {
    pub(super) stream: Stream,
    /// Times that something may have been missed.
    pub(super) gaps: u64,
}

/// A session's.
#[derive(Debug)]
pub(in super::super) struct Line {
    now: watch::Sender<Now>,
    /// It is followed as long as the session lasts.
    stands: AtomicBool,
}

impl Default for Line {
    fn default() -> Self {
        Self { now: watch::Sender::new(Now::default()), stands: AtomicBool::new(false) }
    }
}

impl Line {
    /// Whether nobody has begun to follow it for good yet; from now on somebody has.
    pub(super) fn claim(&self) -> bool {
        !self.stands.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is(&self, stream: Stream) {
        self.now.send_if_modified(|now| std::mem::replace(&mut now.stream, stream) != stream);
    }

    /// What the server tells from now on until the stream is open is told to nobody.
    pub(super) fn may_miss(&self) {
        self.now.send_modify(|now| now.gaps += 1);
    }

    pub(super) fn watch(&self) -> watch::Receiver<Now> {
        self.now.subscribe()
    }

    /// Waits until it has been opened, or is known not to be open soon.
    pub(in super::super) async fn settled(&self) {
        let settled = |now: &Now| now.stream != Stream::Opening;
        // The sender lives as long as this.
        let _ = self.watch().wait_for(settled).await;
    }
}
