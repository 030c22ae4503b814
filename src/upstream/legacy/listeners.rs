//! Who listens for changes of one upstream, and how a change reaches each of them.
//!
//! Owns the listeners by principal and the queue of each: bounded, never waited for by whoever tells of a change. A
//! change says "look again" and nothing else, so where a slow listener's queue is full, equal ones become one, and
//! updates of sub-resources become one of the resource subscribed to: what a listener must look at again is never lost.
//! Equal changes that several sessions of one principal tell within a short time are told once (B9.3). Does not own the
//! streams on which changes come (`feed`, `call`).
//! Rules: B9.1-B9.5, invariants 2 and 5; vectors D96-D98.

use crate::exchange::Principal;
use crate::shutdown::Shutdown;
use crate::translate::listen::{Change, Filter, Notice};
use dashmap::DashMap;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// How long changes are collected where a principal has several sessions, each of which may tell the same one.
const COLLECT: Duration = Duration::from_millis(50);

/// Changes that are collected at most; with one more they are passed on at once.
const COLLECTED: usize = 64;

/// All listeners of one upstream.
pub(super) struct Listeners {
    circles: DashMap<Principal, Circle>,
    next: AtomicU64,
    shutdown: Shutdown,
}

/// One principal's sessions and listeners.
#[derive(Default)]
struct Circle {
    sessions: usize,
    listeners: HashMap<u64, Arc<Listener>>,
    /// Changes being collected.
    collected: Vec<Arc<Notice>>,
}

impl Listeners {
    pub(super) fn new(shutdown: Shutdown) -> Arc<Self> {
        Arc::new(Self { circles: DashMap::new(), next: AtomicU64::new(0), shutdown })
    }

    /// Counts a session in for as long as the guard lives.
    pub(super) fn session(self: &Arc<Self>, principal: Principal) -> Presence {
        self.circles.entry(principal).or_default().sessions += 1;
        Presence { listeners: self.clone(), principal, listener: None }
    }

    /// Adds a listener for as long as the guard lives; `most` bounds its queue.
    pub(super) fn listen(
        self: &Arc<Self>,
        principal: Principal,
        wanted: Filter,
        most: usize,
    ) -> (Arc<Listener>, Presence) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let listener = Arc::new(Listener::new(wanted, most));
        self.circles.entry(principal).or_default().listeners.insert(number, listener.clone());
        (listener, Presence { listeners: self.clone(), principal, listener: Some(number) })
    }

    /// Tells a principal's listeners of a change that one of its sessions told of.
    pub(super) fn tell(self: &Arc<Self>, principal: Principal, notice: Notice) {
        let Some(mut circle) = self.circles.get_mut(&principal) else { return };
        if circle.listeners.is_empty() {
            return;
        }
        if circle.sessions <= 1 || notice.is_large() {
            let notice = Arc::new(notice);
            circle.listeners.values().for_each(|listener| listener.offer(&notice));
            return;
        }
        if circle.collected.iter().any(|known| known.change == notice.change) {
            return;
        }
        circle.collected.push(Arc::new(notice));
        if circle.collected.len() == COLLECTED {
            circle.pass_on();
        } else if circle.collected.len() == 1 {
            let listeners = self.clone();
            // Owned by the tracker; over in `COLLECT`.
            drop(self.shutdown.spawn(async move {
                sleep(COLLECT).await;
                listeners.pass_on(principal);
            }));
        }
    }

    fn pass_on(&self, principal: Principal) {
        if let Some(mut circle) = self.circles.get_mut(&principal) {
            circle.pass_on();
        }
    }

    /// Principals with a session or a listener.
    #[cfg(test)]
    pub(super) fn circles(&self) -> usize {
        self.circles.len()
    }
}

impl Circle {
    fn pass_on(&mut self) {
        for notice in std::mem::take(&mut self.collected) {
            self.listeners.values().for_each(|listener| listener.offer(&notice));
        }
    }
}

/// A session's or listener's place among the others of its principal.
pub(super) struct Presence {
    listeners: Arc<Listeners>,
    principal: Principal,
    /// `None` for a session.
    listener: Option<u64>,
}

impl std::fmt::Debug for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presence").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let circles = &self.listeners.circles;
        let alone = |circle: &Circle| circle.sessions == 0 && circle.listeners.is_empty();
        let empty = circles.get_mut(&self.principal).is_some_and(|mut circle| {
            match self.listener {
                None => circle.sessions -= 1,
                Some(number) => drop(circle.listeners.remove(&number)),
            }
            alone(&circle)
        });
        if empty {
            circles.remove_if(&self.principal, |_, circle| alone(circle));
        }
    }
}

/// One `subscriptions/listen` request, as those who tell of changes see it.
pub(super) struct Listener {
    state: Mutex<State>,
    woken: Notify,
    most: usize,
}

struct State {
    /// What it asked for; what it was promised, once it was.
    filter: Filter,
    promised: bool,
    queue: VecDeque<Arc<Notice>>,
    over: bool,
}

impl Listener {
    fn new(wanted: Filter, most: usize) -> Self {
        let state = State { filter: wanted, promised: false, queue: VecDeque::new(), over: false };
        Self { state: Mutex::new(state), woken: Notify::new(), most }
    }

    /// From now on `honoured` counts; what has been queued beyond it is taken back (B9.1c).
    pub(super) fn promise(&self, honoured: Filter) {
        let mut state = self.lock();
        state.queue.retain(|notice| honoured.covers(&notice.change));
        state.filter = honoured;
        state.promised = true;
    }

    /// Queues a change, if it is among those that it listens for.
    pub(super) fn offer(&self, notice: &Arc<Notice>) {
        let mut state = self.lock();
        if state.over || !state.filter.covers(&notice.change) {
            return;
        }
        if state.queue.len() < self.most && !notice.is_large() {
            state.queue.push_back(notice.clone());
        } else {
            state.merge(notice);
        }
        drop(state);
        self.woken.notify_one();
    }

    /// Everything that it was promised may have changed. Before a promise there is nothing to tell: the client has not
    /// begun to rely on it.
    pub(super) fn offer_all(&self) {
        let changes: Vec<_> = {
            let state = self.lock();
            if !state.promised {
                return;
            }
            state.filter.changes().collect()
        };
        changes.into_iter().for_each(|change| self.offer(&Arc::new(Notice::plain(change))));
    }

    /// Ends it gracefully once its queue is empty.
    pub(super) fn end(&self) {
        self.lock().over = true;
        self.woken.notify_one();
    }

    /// Whether it was promised the updates of this resource.
    pub(super) fn relies_on(&self, uri: &Arc<str>) -> bool {
        let state = self.lock();
        state.promised && state.filter.uris.contains(uri)
    }

    pub(super) fn end_if_promised(&self) {
        if self.lock().promised {
            self.end();
        }
    }

    /// The next change; `None` when it is over. Whoever stops waiting loses nothing.
    pub(super) async fn next(&self) -> Option<Arc<Notice>> {
        loop {
            {
                let mut state = self.lock();
                if let Some(notice) = state.queue.pop_front() {
                    return Some(notice);
                }
                if state.over {
                    return None;
                }
            }
            self.woken.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes room by telling less precisely, never less: each list and each resource subscribed to once.
    fn merge(&mut self, notice: &Arc<Notice>) {
        if self.queue.iter().any(|known| known.change == notice.change) {
            // It is told again later than now.
            return;
        }
        let mut merged: VecDeque<Arc<Notice>> = VecDeque::new();
        let mut keep = |notice: Arc<Notice>| {
            if !merged.iter().any(|known| known.change == notice.change) {
                merged.push_back(notice);
            }
        };
        for notice in self.queue.drain(..).chain([notice.clone()]) {
            let Change::Updated(_) = &notice.change else {
                keep(notice);
                continue;
            };
            for uri in &self.filter.uris {
                let parent = Filter { uris: vec![uri.clone()], ..Filter::default() };
                if parent.covers(&notice.change) {
                    keep(Arc::new(Notice::plain(Change::Updated(uri.clone()))));
                }
            }
        }
        self.queue = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(uris: &[&str]) -> Filter {
        Filter { tools: true, uris: uris.iter().map(|uri| Arc::from(*uri)).collect(), ..Filter::default() }
    }

    fn updated(uri: &str) -> Change {
        Change::Updated(Arc::from(uri))
    }

    async fn drained(listener: &Listener) -> Vec<Change> {
        listener.end();
        let mut changes = Vec::new();
        while let Some(notice) = listener.next().await {
            changes.push(notice.change.clone());
        }
        changes
    }

    /// B9.2, B9.3, invariant 2.
    #[tokio::test]
    async fn a_change_reaches_all_listeners_of_its_principal_that_asked_and_nobody_else() {
        let listeners = Listeners::new(Shutdown::new(Duration::ZERO));
        let other = Principal::Credential([1; 32]);
        let (tools, _a) = listeners.listen(Principal::Anonymous, filter(&[]), 8);
        let (both, _b) = listeners.listen(Principal::Anonymous, filter(&["u"]), 8);
        let (foreign, _c) = listeners.listen(other, filter(&["u"]), 8);
        listeners.tell(Principal::Anonymous, Notice::plain(Change::Tools));
        listeners.tell(Principal::Anonymous, Notice::plain(updated("u")));
        listeners.tell(Principal::Anonymous, Notice::plain(Change::Prompts));
        assert_eq!(drained(&tools).await, [Change::Tools]);
        assert_eq!(drained(&both).await, [Change::Tools, updated("u")]);
        assert_eq!(drained(&foreign).await, []);
    }

    /// B9.3: with several sessions, equal changes within a short time are one, and the last is never the one left out.
    #[tokio::test(start_paused = true)]
    async fn what_several_sessions_tell_at_once_is_told_once() {
        let listeners = Listeners::new(Shutdown::new(Duration::ZERO));
        let principal = Principal::Anonymous;
        let (listener, _a) = listeners.listen(principal, filter(&[]), 8);
        let _one = listeners.session(principal);
        let _two = listeners.session(principal);
        listeners.tell(principal, Notice::plain(Change::Tools));
        sleep(COLLECT / 2).await;
        listeners.tell(principal, Notice::plain(Change::Tools));
        sleep(COLLECT).await;
        listeners.tell(principal, Notice::plain(Change::Tools));
        sleep(COLLECT * 2).await;
        assert_eq!(drained(&listener).await, [Change::Tools, Change::Tools]);
    }

    /// Invariant 5: what is collected is bounded, and all of it is told.
    #[tokio::test(start_paused = true)]
    async fn what_is_collected_is_bounded() {
        let listeners = Listeners::new(Shutdown::new(Duration::ZERO));
        let principal = Principal::Anonymous;
        let (listener, _a) = listeners.listen(principal, filter(&["d"]), 1000);
        let _one = listeners.session(principal);
        let _two = listeners.session(principal);
        for n in 0..200 {
            listeners.tell(principal, Notice::plain(updated(&format!("d/{n}"))));
            let waiting = listeners.circles.get(&principal).unwrap().collected.len();
            assert!(waiting <= COLLECTED, "{waiting}");
        }
        sleep(COLLECT * 2).await;
        assert_eq!(drained(&listener).await.len(), 200);
    }

    /// Invariant 5: the queue is bounded, and what must be looked at again is still told.
    #[tokio::test]
    async fn a_full_queue_tells_less_precisely_and_never_less() {
        let listeners = Listeners::new(Shutdown::new(Duration::ZERO));
        let principal = Principal::Anonymous;
        let (listener, _a) = listeners.listen(principal, filter(&["d", "e"]), 3);
        for uri in ["d/1", "d/2", "e/1", "d/3", "d/4", "d/5"] {
            listeners.tell(principal, Notice::plain(updated(uri)));
        }
        listeners.tell(principal, Notice::plain(Change::Tools));
        listeners.tell(principal, Notice::plain(Change::Tools));
        assert!(listener.lock().queue.len() <= 3 + 2);
        let told = drained(&listener).await;
        for change in [updated("d"), updated("e"), Change::Tools] {
            assert!(told.contains(&change), "{change:?} is told: {told:?}");
        }
    }

    /// B9.1c: what came before the acknowledgement is kept as far as it is honoured.
    #[tokio::test]
    async fn what_is_not_promised_is_taken_back() {
        let listeners = Listeners::new(Shutdown::new(Duration::ZERO));
        let principal = Principal::Anonymous;
        let (listener, presence) = listeners.listen(principal, filter(&["u", "v"]), 8);
        listener.offer_all();
        listeners.tell(principal, Notice::plain(updated("v")));
        listeners.tell(principal, Notice::plain(updated("u")));
        listener.promise(Filter { uris: vec![Arc::from("u")], ..Filter::default() });
        listeners.tell(principal, Notice::plain(Change::Tools));
        assert_eq!(drained(&listener).await, [updated("u")]);
        drop(presence);
        assert_eq!(listeners.circles(), 0);
    }
}
