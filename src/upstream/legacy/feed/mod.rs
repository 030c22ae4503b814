//! What a session's server tells outside calls: its GET stream, for as long as somebody listens or its client can be asked,
//! and its resource subscriptions.
//!
//! Owns the one feed of each session that has listeners, and how members come, wait for what they can be promised, and
//! go. `state` is who is in it and what is wanted, `run` the task that acts on this. `stream` is the GET stream, `line` how
//! far it is, `stand` what keeps it open where questions may come on it. Does not own what a listener gets of it
//! (`listeners`), whose a question is (`attribution`), nor what the client is told (`relay::listen`).
//! Rules: A1.8, A3.10, B5, B9.1-B9.6, A12.13; vectors D31, D95, D96; cases C08, C48.

mod line;
mod run;
mod stand;
mod state;
mod stream;

pub(super) use line::Line;
pub(super) use stand::attend;

use super::Legacy;
use super::listeners::Listener;
use super::pool::Lease;
use super::session::SessionKey;
use crate::exchange::Call;
use crate::translate::discover::Initialized;
use crate::translate::listen::Filter;
use crate::wire::json::Limits;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use line::Stream;
use state::{State, Status, Step};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// The feeds of one upstream by session.
#[derive(Default)]
pub(super) struct Feeds {
    by_session: DashMap<SessionKey, Arc<Feed>>,
}

/// One session's feed, as its members and its task see it.
pub(super) struct Feed {
    state: Mutex<State>,
    /// Wakes the task.
    work: Notify,
    /// Somebody has come, who is not to wait for a pause between sessions.
    joined: Notify,
    /// Told whenever something has been settled that a member may wait for.
    settled: watch::Sender<()>,
}

/// A listener's part in a feed; dropping it takes the listener out.
pub(super) struct Member {
    feed: Arc<Feed>,
    number: u64,
    filter: Filter,
}

impl Feeds {
    /// Puts a listener into its session's feed, and starts the feed if there is none. `filter` is not empty.
    pub(super) fn join(
        &self,
        legacy: &Arc<Legacy>,
        call: &Call,
        lease: Lease,
        listener: &Arc<Listener>,
        filter: Filter,
    ) -> Member {
        let Some(key) = lease.session().key.clone() else {
            // A session of this call alone: nobody else comes to it.
            return Feed::start(legacy, call, lease, listener, filter).1;
        };
        match self.by_session.entry(key) {
            Entry::Occupied(mut taken) => {
                if let Some(member) = taken.get().enter(listener, &filter) {
                    return member;
                }
                let (feed, member) = Feed::start(legacy, call, lease, listener, filter);
                taken.insert(feed);
                member
            }
            Entry::Vacant(free) => {
                let (feed, member) = Feed::start(legacy, call, lease, listener, filter);
                free.insert(feed);
                member
            }
        }
    }

    /// Forgets a feed that has ended, or ends it if it has no member.
    fn forget(&self, key: Option<&SessionKey>, feed: &Arc<Feed>) -> bool {
        if let Some(key) = key {
            // Under the entry's lock, so that nobody enters in between.
            self.by_session.remove_if(key, |_, current| Arc::ptr_eq(current, feed) && feed.close_if_empty());
            return feed.lock().closed;
        }
        feed.close_if_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.by_session.len()
    }
}

impl Feed {
    /// A feed with its first member.
    fn start(
        legacy: &Arc<Legacy>,
        call: &Call,
        lease: Lease,
        listener: &Arc<Listener>,
        filter: Filter,
    ) -> (Arc<Self>, Member) {
        let mut state = State::default();
        let number = state.enter(listener, &filter);
        let feed = Self {
            state: Mutex::new(state),
            work: Notify::new(),
            joined: Notify::new(),
            settled: watch::Sender::new(()),
        };
        let feed = Arc::new(feed);
        let task = run::run(legacy.clone(), feed.clone(), call.clone(), lease);
        // Owned by the tracker; ends with its last member or with the drain, which ends the sessions too.
        drop(legacy.shared.shutdown.spawn_until_drain(task));
        let member = Member { feed: feed.clone(), number, filter };
        (feed, member)
    }

    /// `None` if it is over: looked at and entered in one step, as it may end at any moment.
    fn enter(self: &Arc<Self>, listener: &Arc<Listener>, filter: &Filter) -> Option<Member> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let number = state.enter(listener, filter);
        drop(state);
        self.work.notify_one();
        self.joined.notify_one();
        Some(Member { feed: self.clone(), number, filter: filter.clone() })
    }

    fn close_if_empty(&self) -> bool {
        let mut state = self.lock();
        state.closed |= state.seats.is_empty();
        state.closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done about the next URI that needs it.
    fn next_step(&self) -> Option<Step> {
        self.lock().next_step()
    }

    /// The server has answered; `status` says what holds now.
    fn answered(&self, uri: &Arc<str>, status: Status) {
        self.lock().answered(uri, status);
        self.settled.send_replace(());
    }

    fn stream_is(&self, stream: Stream) {
        self.lock().stream = stream;
        self.settled.send_replace(());
        self.work.notify_one();
    }

    /// Listeners may miss something from now on until the stream stands again.
    fn may_miss(&self) {
        self.lock().may_miss();
    }

    /// The stream is open again after listeners may have missed something.
    fn closes_gap(&self) -> bool {
        self.lock().gap
    }

    /// The session is gone, and with it whatever the server knew of subscriptions.
    fn restart(&self) {
        self.lock().restart();
    }

    /// The server may have forgotten its subscriptions.
    fn subscribe_again(&self) {
        self.lock().subscribe_again();
    }

    /// Another session has begun: whom it offers less than the one before is told so by the end (A3.10).
    fn offered(&self, server: &Initialized, limits: Limits) {
        let state = self.lock();
        let less = state.seats.values().filter(|seat| seat.filter.offered_by(server, limits) != seat.filter);
        less.for_each(|seat| seat.listener.end());
    }

    /// Tells to look again whoever may have missed something, once all that it wants stands again.
    fn catch_up(&self) {
        self.lock().caught_up().iter().for_each(|listener| listener.offer_all());
    }

    /// A server without a stream cannot keep what was promised: those who rely on it are told so by the end.
    fn end_promised(&self) {
        let state = self.lock();
        if state.stream == Stream::Absent {
            state.seats.values().for_each(|seat| seat.listener.end_if_promised());
        }
    }

    /// Ends all listeners gracefully: nothing can be told to them any more.
    fn end(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.seats.values().for_each(|seat| seat.listener.end());
        drop(state);
        self.settled.send_replace(());
    }
}

impl Member {
    /// Waits until it is known what can be told, and says what: a server without a stream can promise nothing (A3.10,
    /// C48), one that refuses a subscription not that one (B9.1).
    ///
    /// What the server has not answered within `limit` is taken for refused.
    pub(super) async fn honoured(&mut self, limit: Duration) -> Filter {
        let mut settled = self.feed.settled.subscribe();
        let known = async {
            loop {
                if let Some(filter) = self.look(false) {
                    return filter;
                }
                if settled.changed().await.is_err() {
                    return Filter::default();
                }
            }
        };
        match timeout(limit, known).await {
            Ok(filter) => filter,
            Err(_) => self.look(true).unwrap_or_default(),
        }
    }

    /// `None` while it is not known yet.
    fn look(&mut self, late: bool) -> Option<Filter> {
        let mut state = self.feed.lock();
        if state.stream == Stream::Opening && !state.closed {
            return None;
        }
        if state.closed || state.stream == Stream::Absent {
            return Some(Filter::default());
        }
        let status = |uri: &Arc<str>| state.uris.get(uri).map(|subscription| subscription.status);
        let open = |uri| matches!(status(uri), Some(Status::Wanted | Status::Asking));
        if !late && self.filter.uris.iter().any(open) {
            return None;
        }
        let (kept, refused): (Vec<_>, Vec<_>) = std::mem::take(&mut self.filter.uris)
            .into_iter()
            .partition(|uri| status(uri) == Some(Status::Subscribed));
        refused.iter().for_each(|uri| state.unwant(uri));
        drop(state);
        self.feed.work.notify_one();
        self.filter.uris = kept;
        Some(self.filter.clone())
    }

    /// Has the task look whether the promise that was just made can still be kept.
    pub(super) fn promised(&self) {
        let state = self.feed.lock();
        let refused =
            |uri| state.uris.get(uri).is_some_and(|subscription| subscription.status == Status::Refused);
        if self.filter.uris.iter().any(refused)
            && let Some(seat) = state.seats.get(&self.number)
        {
            seat.listener.end();
        }
        drop(state);
        self.feed.work.notify_one();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.feed.lock();
        state.seats.remove(&self.number);
        for uri in &self.filter.uris {
            state.unwant(uri);
        }
        drop(state);
        self.feed.work.notify_one();
    }
}
