//! What a modern server tells outside calls, for legacy clients: list changes, and updates of resources.
//!
//! Owns the hubs, one per principal, however many sessions it has: who follows, and how sessions come, subscribe and go.
//! A hub (`hub`) keeps two listens at most, one for lists and one for resources (`line`), by a plan (`plan`), for what its
//! followers want (`state`, `uris`); `listen` is one of them. Does not own what a session does with what it is told, nor the answers
//! to `resources/subscribe`.
//! Rules: A1.8, A2.5, A2.6, A2.10, A3.10, A3.11, B9.2-B9.8; vectors D98-D100; invariants 2 and 5.

mod hub;
mod line;
mod listen;
mod plan;
mod state;
mod uris;

#[cfg(test)]
mod tests;

pub use crate::translate::legacy_client::listen::Lists;

use super::Shared;
use crate::exchange::{Fault, FaultKind, Principal};
use crate::telemetry::metrics::Limit;
use crate::translate::legacy_client::listen::METHOD;
use crate::translate::legacy_client::notify::{Change, announce};
use crate::upstream::head::TRACE;
use crate::upstream::transport::RequestHead;
use crate::wire::payload::Payload;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use hub::Hub;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use state::{Adopted, Subscribing};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// A session that is told of changes.
pub trait Follower: Send + Sync {
    /// Never blocks. `message` is the notification as a legacy client sees it.
    fn tell(&self, change: &Change, message: &Payload);
}

/// Told of every change before its followers are.
pub type Changed = Box<dyn Fn(Principal, &Change) + Send + Sync>;

/// Hubs of one upstream that are kept for a moment longer than anybody is in them. More end at once, so that the listens at
/// the server are bounded by the sessions (invariant 5).
const LINGERING: usize = 16;

/// A place among those; dropping it frees it.
struct Lingers(Arc<AtomicUsize>);

impl Drop for Lingers {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The hubs of one upstream.
pub struct Feed {
    shared: Arc<Shared>,
    hubs: DashMap<Principal, Arc<Hub>>,
    most_uris: usize,
    changed: Changed,
    /// Listens that are wanted and cannot be had.
    away: AtomicUsize,
    /// Hubs that nobody is in and that are kept for a moment longer.
    lingering: Arc<AtomicUsize>,
    /// It has been said that the server has no such method.
    absent: AtomicBool,
}

/// A follower's part in a hub; dropping it takes the follower out.
pub struct Following {
    feed: Arc<Feed>,
    hub: Arc<Hub>,
    seat: u64,
}

/// What comes of taking over a former part.
pub struct Moved {
    /// What may have been missed, as far as it is listened for here already; the rest is told when it is.
    pub missed: Vec<Change>,
    /// Resolves when all of it is listened for here, or will not be.
    pub stands: oneshot::Receiver<()>,
}

/// Why a subscription was not granted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotSubscribed {
    /// By the server: it does not honour this URI, or has no subscriptions at all (D100).
    #[error("the upstream server does not take a subscription to this resource")]
    Refused,
    /// The session has as many as it may, with those that it waits for.
    #[error("this session is subscribed to as many resources as it may be (limits.subscriptions)")]
    TooMany,
    /// All sessions of the principal together have.
    #[error("the sessions of this client are subscribed to as many resources as the proxy listens for")]
    Full,
    #[error(transparent)]
    Fault(Fault),
}

impl PartialEq for NotSubscribed {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused, Self::Refused) | (Self::TooMany, Self::TooMany) | (Self::Full, Self::Full) => {
                true
            }
            (Self::Fault(one), Self::Fault(other)) => one.kind == other.kind && one.text == other.text,
            (Self::Refused | Self::TooMany | Self::Full | Self::Fault(_), _) => false,
        }
    }
}

impl Eq for NotSubscribed {}

impl Feed {
    /// `most_uris` bounds what one principal subscribes to.
    pub(in crate::upstream) fn new(shared: Arc<Shared>, most_uris: usize, changed: Changed) -> Arc<Self> {
        Arc::new(Self {
            shared,
            hubs: DashMap::new(),
            most_uris,
            changed,
            away: AtomicUsize::new(0),
            lingering: Arc::default(),
            absent: AtomicBool::new(false),
        })
    }

    /// Lets a follower be told of `lists`, and of what it subscribes to. `headers` are its client's.
    pub fn join(
        self: &Arc<Self>,
        principal: Principal,
        headers: &HeaderMap,
        lists: Lists,
        follower: Weak<dyn Follower>,
    ) -> Following {
        // Under the entry's lock, so that none ends in between.
        let entry = self.hubs.entry(principal);
        if let Entry::Occupied(taken) = &entry
            && let Some(seat) = taken.get().lock().enter(lists, follower.clone())
        {
            let hub = taken.get().clone();
            hub.set_head(self.head(headers));
            hub.work.notify_one();
            return Following { feed: self.clone(), hub, seat };
        }
        let hub = Hub::new(principal, self.head(headers), self.most_uris);
        let (hub, seat) = hub.with(lists, follower);
        entry.insert(hub.clone());
        drop(self.shared.shutdown.spawn_until_drain(hub::run(self.clone(), hub.clone())));
        Following { feed: self.clone(), hub, seat }
    }

    /// Tells a principal's followers of a change that came in another way than on a listen (A2.5).
    pub fn tell(&self, principal: Principal, change: &Change, message: &Payload) {
        let hub = self.hubs.get(&principal).map(|hub| hub.clone());
        let Some(hub) = hub else { return (self.changed)(principal, change) };
        match hub.in_short(change) {
            None => hub.tell(self, change, message),
            Some(changes) => changes.iter().for_each(|change| hub.tell(self, change, &announce(change))),
        }
    }

    /// Hubs now.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.hubs.len()
    }

    /// Ends a hub that nobody is in. Whether it has ended.
    fn forget(&self, hub: &Arc<Hub>) -> bool {
        let over =
            |_: &Principal, current: &Arc<Hub>| Arc::ptr_eq(current, hub) && hub.lock().close_if_empty();
        let empty = hub.lock().is_empty();
        empty && self.hubs.remove_if(&hub.principal, over).is_some()
    }

    /// Without trace context: a listen is no part of what its first client does.
    fn head(&self, client: &HeaderMap) -> RequestHead {
        let method = HeaderValue::from_static(METHOD);
        let mut head = self.shared.heads.modern_own(client, method, None, Vec::new());
        for name in TRACE {
            head.headers.remove(name);
        }
        head
    }

    /// A place for a hub that nobody is in, while it is kept for those who come back.
    fn linger(&self) -> Option<Lingers> {
        let one_more = |now: usize| (now < LINGERING).then_some(now + 1);
        let taken = self.lingering.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        taken.ok().map(|_| Lingers(self.lingering.clone()))
    }

    /// Whether it is the first.
    fn one_more_away(&self) -> bool {
        self.away.fetch_add(1, Ordering::AcqRel) == 0
    }

    fn one_less_away(&self) {
        self.away.fetch_sub(1, Ordering::AcqRel);
    }

    fn is_one_away(&self) -> bool {
        self.away.load(Ordering::Acquire) == 1
    }

    /// The server has no such method.
    fn has_none(&self) {
        if !self.absent.swap(true, Ordering::AcqRel) {
            let upstream = &self.shared.settings.name;
            tracing::info!(
                upstream,
                "the upstream server has no {METHOD}: legacy clients are told of no changes"
            );
        }
    }
}

impl Following {
    /// Subscribes to a resource, and waits until the server has acknowledged it: until `deadline`, and for each listen that is
    /// sent no longer than a handshake may take (`timeouts.initialize`). What was granted before is granted at once. This
    /// follower is subscribed to `most` at most.
    pub async fn subscribe(&self, uri: &str, most: usize, deadline: Instant) -> Result<(), NotSubscribed> {
        let subscribing = self.hub.lock().subscribe(self.seat, uri, most);
        let limited = match subscribing {
            Subscribing::Granted => return Ok(()),
            Subscribing::Wait(answer) => Ok(answer),
            Subscribing::TooMany => Err(NotSubscribed::TooMany),
            Subscribing::Full => Err(NotSubscribed::Full),
        };
        let answer = limited.inspect_err(|_| self.feed.shared.metrics.front().limit(Limit::Subscriptions))?;
        self.hub.work.notify_one();
        let mut waiting = Waiting { hub: &self.hub, answer };
        tokio::select! {
            biased;
            answer = timeout_at(deadline, &mut waiting.answer) => match answer {
                Ok(Ok(told)) => told,
                Ok(Err(_)) => Err(fault(FaultKind::Internal, "the subscription was given up")),
                Err(_) => Err(NotSubscribed::Fault(late())),
            },
            () = self.feed.shared.shutdown.draining() => Err(fault(FaultKind::Draining, "the proxy is about to end")),
        }
    }

    /// Takes over what the follower had in its `former` part, which is to be kept until this one stands.
    pub fn adopt(&self, former: &Self) -> Moved {
        let uris = former.uris();
        let Adopted { missed, lost, stands } = self.hub.lock().adopt(self.seat, &uris);
        self.hub.work.notify_one();
        if lost > 0 {
            self.feed.shared.metrics.front().limit(Limit::Subscriptions);
            let upstream = &self.feed.shared.settings.name;
            tracing::warn!(upstream, lost, "subscriptions are lost with a session's former token: no room");
        }
        Moved { missed, stands }
    }

    /// Whose changes these are.
    pub fn is_of(&self, principal: Principal) -> bool {
        self.hub.principal == principal
    }

    pub fn unsubscribe(&self, uri: &str) {
        self.hub.lock().unsubscribe(self.seat, uri);
        self.hub.work.notify_one();
    }

    /// What is subscribed to.
    pub fn uris(&self) -> Vec<Box<str>> {
        self.hub.lock().uris_of(self.seat)
    }

    /// The headers of a later request of the same principal: a listen that does not stand is opened with these from now
    /// on, and one that was refused is tried again, if they are others than those that it was refused with. Those of another
    /// principal change nothing.
    pub fn credential(&self, headers: &HeaderMap) {
        if self.hub.is_unwell()
            && self.is_of(Principal::of(headers.get(AUTHORIZATION)))
            && self.hub.set_head(self.feed.head(headers))
        {
            self.hub.lock().prod();
            self.hub.work.notify_one();
        }
    }
}

impl std::fmt::Debug for Following {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following").field("seat", &self.seat).finish_non_exhaustive()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.hub.lock().leave(self.seat);
        self.hub.work.notify_one();
    }
}

/// A subscription that is waited for; dropping it takes it back unless it has been granted.
struct Waiting<'a> {
    hub: &'a Hub,
    answer: oneshot::Receiver<Result<(), NotSubscribed>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.answer.close();
        self.hub.lock().given_up();
        self.hub.work.notify_one();
    }
}

fn late() -> Fault {
    Fault::new(FaultKind::Timeout, "the upstream server did not acknowledge the subscription in time")
}

fn fault(kind: FaultKind, text: &'static str) -> NotSubscribed {
    NotSubscribed::Fault(Fault::new(kind, text))
}
