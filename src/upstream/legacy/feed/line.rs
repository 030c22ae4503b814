//! How far the GET stream of one session is, for all who depend on it.
//!
//! Owns the state and the word of each change. Whoever follows the stream (`stream`) sets it; a feed looks at it for its
//! members, a call before it is sent. Rules: B5, B9.3; case C48.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

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
    /// Times in a row that it could not be opened, or was gone at once.
    failures: u32,
    /// Times that it was opened; a server may end it at once.
    openings: u64,
    /// When that, or a failure, was last.
    tried: Option<Instant>,
}

/// A call has a stream opened again at once, instead of after the pause. One that failed so often in a row, or was gone at
/// once, is tried no more often than once in this time.
const PATIENCE: u32 = 3;
const SELDOM: Duration = Duration::from_secs(1);

/// A session's.
#[derive(Debug)]
pub(in super::super) struct Line {
    now: watch::Sender<Now>,
    /// Somebody waits for it.
    wanted: Notify,
    /// It is followed as long as the session lasts.
    stands: AtomicBool,
}

impl Default for Line {
    fn default() -> Self {
        let now = watch::Sender::new(Now::default());
        Self { now, wanted: Notify::new(), stands: AtomicBool::new(false) }
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

    pub(super) fn is_open(&self) {
        self.now.send_modify(|now| {
            now.stream = Stream::Open;
            now.openings += 1;
            now.tried = Some(Instant::now());
        });
    }

    /// It was there for long enough to be relied on.
    pub(super) fn has_stood(&self) {
        self.now.send_modify(|now| now.failures = 0);
    }

    /// It could not be opened, or was gone at once.
    pub(super) fn has_failed(&self) {
        self.now.send_modify(|now| {
            now.failures = now.failures.saturating_add(1);
            now.tried = Some(Instant::now());
        });
    }

    /// Resolves when somebody waits for the stream to be opened again.
    pub(super) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// What the server tells from now on until the stream is open is told to nobody.
    pub(super) fn may_miss(&self) {
        self.now.send_modify(|now| now.gaps += 1);
    }

    pub(super) fn watch(&self) -> watch::Receiver<Now> {
        self.now.subscribe()
    }

    /// Waits until it has been opened, or is known not to be open soon. One that broke off is opened again for that.
    pub(in super::super) async fn settled(&self) {
        let mut watch = self.watch();
        let before = *watch.borrow();
        if before.stream == Stream::Broken {
            let lately = before.tried.is_some_and(|tried| tried.elapsed() < SELDOM);
            if before.failures >= PATIENCE && lately {
                return;
            }
            self.wanted.notify_one();
        }
        let settled = |now: &Now| match now.stream {
            Stream::Opening => false,
            Stream::Broken if before.stream != Stream::Broken => true,
            Stream::Broken => now.failures > before.failures || now.openings > before.openings,
            Stream::Silent | Stream::Open | Stream::Absent => true,
        };
        // The sender lives as long as this.
        let _ = watch.wait_for(settled).await;
    }
}
