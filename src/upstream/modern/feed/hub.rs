//! One principal's followers and the task that listens for them.
//!
//! Owns the lock around what is wanted, the credential that the listens go out with, and telling followers. No follower is
//! told anything under the lock, since it may leave while it is told. Rules: B9.2, B9.5, B9.7; invariants 2 and 5.

use super::line::Line;
use super::state::{Kind, State};
use super::{Feed, Follower, Lists};
use crate::exchange::Principal;
use crate::telemetry::metrics::{NoticeKind, Noticed};
use crate::translate::legacy_client::notify::{Change, announce};
use crate::upstream::transport::RequestHead;
use crate::wire::payload::Payload;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A URI above this size is told as the subscription that it belongs to: many may keep it.
const LONG: usize = 8 * 1024;

pub(super) struct Hub {
    pub(super) principal: Principal,
    state: Mutex<State>,
    /// The newest that a client of this principal came with.
    head: Mutex<RequestHead>,
    /// Wakes the task.
    pub(super) work: Notify,
    /// How many of the listens are wanted and do not stand.
    unwell: AtomicUsize,
}

impl Hub {
    pub(super) fn new(principal: Principal, head: RequestHead, most_uris: usize) -> Self {
        let state = Mutex::new(State::new(most_uris));
        Self { principal, state, head: Mutex::new(head), work: Notify::new(), unwell: AtomicUsize::new(0) }
    }

    /// With its first follower.
    pub(super) fn with(self, lists: Lists, follower: Weak<dyn Follower>) -> (Arc<Self>, u64) {
        let seat = self.lock().enter(lists, follower);
        // A new one is not over.
        (Arc::new(self), seat.unwrap_or_default())
    }

    pub(super) fn is_unwell(&self) -> bool {
        self.unwell.load(Ordering::Relaxed) > 0
    }

    /// One more listen does not stand though it is wanted, or one less.
    pub(super) fn unwell(&self, more: bool) {
        if more {
            self.unwell.fetch_add(1, Ordering::Relaxed);
        } else {
            self.unwell.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn head(&self) -> RequestHead {
        self.head.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is another than before.
    pub(super) fn set_head(&self, head: RequestHead) -> bool {
        let mut known = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let differs = known.headers != head.headers;
        *known = head;
        differs
    }

    /// Tells everyone who wants to know, after what is kept of the server has been seen to.
    pub(super) fn tell(&self, feed: &Feed, change: &Change, message: &Payload) {
        (feed.changed)(self.principal, change);
        let audience = self.lock().audience(change);
        audience.iter().for_each(|follower| follower.tell(change, message));
    }

    /// Tells of a change that nobody may have heard of.
    pub(super) fn tell_missed(&self, feed: &Feed, change: &Change) {
        let audience = self.lock().audience(change);
        self.tell_these(feed, audience, change);
    }

    /// The same to these alone.
    pub(super) fn tell_these(
        &self,
        feed: &Feed,
        these: impl IntoIterator<Item = Arc<dyn Follower>>,
        change: &Change,
    ) {
        (feed.changed)(self.principal, change);
        let (kind, message) = (kind(change), announce(change));
        for follower in these {
            feed.shared.metrics.notice(kind, Noticed::Synthesised);
            follower.tell(change, &message);
        }
    }

    /// What is told of a change in the place of its own words, since those are many: which resources it concerns.
    pub(super) fn in_short(&self, change: &Change) -> Option<Vec<Change>> {
        match change {
            Change::Updated(uri) if uri.len() > LONG => Some(self.lock().subscribed_above(uri)),
            Change::Updated(_) | Change::Tools | Change::Prompts | Change::Resources => None,
        }
    }
}

/// The task: it listens as long as somebody follows, and for a moment longer. Owned by the tracker; it ends by itself or
/// with the drain, and has nothing to say then but closing its streams.
pub(super) async fn run(feed: Arc<Feed>, hub: Arc<Hub>) {
    let mut lists = Line::new(&feed, &hub, Kind::Lists);
    let mut uris = Line::new(&feed, &hub, Kind::Uris);
    let mut lingers = None;
    loop {
        // A stream whose messages are here already would go on and on.
        tokio::task::coop::consume_budget().await;
        if hub.lock().take_prod() {
            lists.prod();
            uris.prod();
        }
        // Nobody is in it: it lingers, as long as not too many others do.
        let is_empty = hub.lock().is_empty();
        lingers = if is_empty { lingers.or_else(|| feed.linger()) } else { None };
        let hurried = is_empty && lingers.is_none();
        lists.hurry(hurried);
        uris.hurry(hurried);
        let due = [lists.act(), uris.act()].into_iter().flatten().min();
        if lists.is_idle() && uris.is_idle() && feed.forget(&hub) {
            return;
        }
        tokio::select! {
            () = lists.hear() => {}
            () = uris.hear() => {}
            () = hub.work.notified() => {}
            () = until(due) => {}
        }
    }
}

fn kind(change: &Change) -> NoticeKind {
    match change {
        Change::Tools => NoticeKind::Tools,
        Change::Prompts => NoticeKind::Prompts,
        Change::Resources => NoticeKind::Resources,
        Change::Updated(_) => NoticeKind::Updated,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
