//! What a session's server tells outside calls: its GET stream and its resource subscriptions, for as long as somebody
//! listens.
//!
//! Owns the one feed of each session that has listeners: who is in it, which URIs it is subscribed to and how many want
//! each, and how far its stream is. `run` is the task that acts on this, `stream` the GET stream. Does not own what a
//! listener gets of it (`listeners`), nor what the client is told (`relay::listen`).
//! Rules: A1.8, A3.10, B9.1-B9.6, A12.13; vectors D31, D95, D96; cases C08, C48.

mod backoff;
mod run;
mod stream;

pub(super) use backoff::Backoff;

use super::Legacy;
use super::listeners::Listener;
use super::pool::Lease;
use super::session::SessionKey;
use crate::exchange::Call;
use crate::translate::listen::Filter;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

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
    /// Told whenever something has been settled that a member may wait for.
    settled: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    members: HashMap<u64, Arc<Listener>>,
    next_member: u64,
    uris: HashMap<Arc<str>, Subscription>,
    /// URIs that something must be done about.
    todo: VecDeque<Arc<str>>,
    stream: Stream,
    /// Listeners may have missed something: they are told once stream and subscriptions stand again.
    missed: bool,
    /// The task has ended; whoever comes now needs another feed.
    closed: bool,
}

/// How far the GET stream is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stream {
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

#[derive(Debug)]
struct Subscription {
    wanted_by: usize,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Wanted,
    /// The server is being told, one way or the other.
    Asking,
    Subscribed,
    Refused,
}

/// What the task does next about a URI.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
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
            let feed = Arc::new(Feed::new());
            let member = feed.enter(listener, filter);
            feed.start(legacy, call, lease);
            return member;
        };
        match self.by_session.entry(key) {
            Entry::Occupied(mut taken) => {
                let feed = taken.get().clone();
                if !feed.lock().closed {
                    return feed.enter(listener, filter);
                }
                let (feed, member) = started(legacy, call, lease, listener, filter);
                taken.insert(feed);
                member
            }
            Entry::Vacant(free) => {
                let (feed, member) = started(legacy, call, lease, listener, filter);
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

fn started(
    legacy: &Arc<Legacy>,
    call: &Call,
    lease: Lease,
    listener: &Arc<Listener>,
    filter: Filter,
) -> (Arc<Feed>, Member) {
    let feed = Arc::new(Feed::new());
    let member = feed.enter(listener, filter);
    feed.start(legacy, call, lease);
    (feed, member)
}

impl Feed {
    fn new() -> Self {
        Self { state: Mutex::default(), work: Notify::new(), settled: watch::Sender::new(()) }
    }

    /// Owned by the tracker; ends with its last member or with the drain, which ends the sessions too.
    fn start(self: &Arc<Self>, legacy: &Arc<Legacy>, call: &Call, lease: Lease) {
        let task = run::run(legacy.clone(), self.clone(), call.clone(), lease);
        drop(legacy.shared.shutdown.spawn_until_drain(task));
    }

    fn enter(self: &Arc<Self>, listener: &Arc<Listener>, filter: Filter) -> Member {
        let mut state = self.lock();
        let number = state.next_member;
        state.next_member += 1;
        state.members.insert(number, listener.clone());
        for uri in &filter.uris {
            state.want(uri);
        }
        drop(state);
        self.work.notify_one();
        Member { feed: self.clone(), number, filter }
    }

    fn close_if_empty(&self) -> bool {
        let mut state = self.lock();
        state.closed |= state.members.is_empty();
        state.closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done about the next URI that needs it.
    fn next_step(&self) -> Option<Step> {
        let mut state = self.lock();
        while let Some(uri) = state.todo.pop_front() {
            let Some(subscription) = state.uris.get_mut(&uri) else { continue };
            match (subscription.status, subscription.wanted_by) {
                (Status::Wanted, 0) | (Status::Refused, 0) => drop(state.uris.remove(&uri)),
                (Status::Wanted, _) => {
                    subscription.status = Status::Asking;
                    return Some(Step::Subscribe(uri));
                }
                (Status::Subscribed, 0) => {
                    subscription.status = Status::Asking;
                    return Some(Step::Unsubscribe(uri));
                }
                // Asking: its answer comes back to here.
                (Status::Asking, _) | (Status::Subscribed, _) | (Status::Refused, _) => {}
            }
        }
        None
    }

    /// The server has answered; `subscribed` says what holds now.
    fn answered(&self, uri: &Arc<str>, status: Status) {
        let mut state = self.lock();
        let Some(subscription) = state.uris.get_mut(uri) else { return };
        subscription.status = status;
        // Whoever came or went meanwhile.
        if subscription.wanted_by == 0 || status == Status::Wanted {
            state.todo.push_back(uri.clone());
        }
        drop(state);
        self.settled.send_replace(());
    }

    fn stream_is(&self, stream: Stream) {
        self.lock().stream = stream;
        self.settled.send_replace(());
        self.work.notify_one();
    }

    /// Listeners may miss something from now on until the stream stands again.
    fn may_miss(&self) {
        self.lock().missed = true;
        self.work.notify_one();
    }

    /// The session is gone, and with it whatever the server knew of subscriptions.
    fn restart(&self) {
        let mut state = self.lock();
        state.stream = Stream::Opening;
        state.missed = true;
        let State { uris, todo, .. } = &mut *state;
        todo.clear();
        for (uri, subscription) in uris.iter_mut() {
            subscription.status = Status::Wanted;
            todo.push_back(uri.clone());
        }
    }

    /// Tells everyone to look again, if they may have missed something and everything stands again.
    fn catch_up(&self) {
        let members: Vec<_> = {
            let mut state = self.lock();
            let stands = matches!(state.stream, Stream::Open | Stream::Silent)
                && state
                    .uris
                    .values()
                    .all(|subscription| !matches!(subscription.status, Status::Wanted | Status::Asking));
            if !state.missed || !stands {
                return;
            }
            state.missed = false;
            state.members.values().cloned().collect()
        };
        members.iter().for_each(|listener| listener.offer_all());
    }

    /// A server without a stream cannot keep what was promised: those who rely on it are told so by the end.
    fn end_promised(&self) {
        let members: Vec<_> = {
            let state = self.lock();
            if state.stream != Stream::Absent {
                return;
            }
            state.members.values().cloned().collect()
        };
        members.iter().for_each(|listener| listener.end_if_promised());
    }

    /// Ends all listeners gracefully: nothing can be told to them any more.
    fn end(&self) {
        let members: Vec<_> = {
            let mut state = self.lock();
            state.closed = true;
            state.members.values().cloned().collect()
        };
        members.iter().for_each(|listener| listener.end());
        self.settled.send_replace(());
    }
}

impl State {
    fn want(&mut self, uri: &Arc<str>) {
        let subscription =
            self.uris.entry(uri.clone()).or_insert(Subscription { wanted_by: 0, status: Status::Wanted });
        subscription.wanted_by += 1;
        if subscription.status == Status::Refused {
            subscription.status = Status::Wanted;
        }
        if subscription.status == Status::Wanted {
            self.todo.push_back(uri.clone());
        }
    }

    fn unwant(&mut self, uri: &Arc<str>) {
        let Some(subscription) = self.uris.get_mut(uri) else { return };
        subscription.wanted_by = subscription.wanted_by.saturating_sub(1);
        if subscription.wanted_by == 0 {
            self.todo.push_back(uri.clone());
        }
    }
}

impl Member {
    /// Waits until it is known what can be told, and says what: a server without a stream can promise nothing (A3.10,
    /// C48), one that refuses a subscription not that one (B9.1).
    pub(super) async fn honoured(&mut self) -> Filter {
        let mut settled = self.feed.settled.subscribe();
        loop {
            if let Some(filter) = self.look() {
                return filter;
            }
            if settled.changed().await.is_err() {
                return Filter::default();
            }
        }
    }

    fn look(&mut self) -> Option<Filter> {
        let mut state = self.feed.lock();
        if state.stream == Stream::Opening && !state.closed {
            return None;
        }
        if state.closed || state.stream == Stream::Absent {
            return Some(Filter::default());
        }
        let status = |uri: &Arc<str>| state.uris.get(uri).map(|subscription| subscription.status);
        let open = |uri| matches!(status(uri), Some(Status::Wanted | Status::Asking));
        if self.filter.uris.iter().any(open) {
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
        self.feed.work.notify_one();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut state = self.feed.lock();
        state.members.remove(&self.number);
        for uri in &self.filter.uris {
            state.unwant(uri);
        }
        drop(state);
        self.feed.work.notify_one();
    }
}
