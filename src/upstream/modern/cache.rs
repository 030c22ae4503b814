//! Lists of a modern server that are kept for as long as the server says, for legacy clients (`cache_lists`).
//!
//! Owns which answer may be given to whom again: one that the server calls private to its own principal alone, one that it
//! calls public to every principal that the server has let in lately, so that a credential that it refuses never gets an
//! answer from here (C60). What has changed goes, and what was on its way meanwhile is not kept. Bounded in bytes; what has
//! not been asked for longest makes room. Does not own how long an answer holds (`translate::legacy_client::fresh`) nor what
//! the client sees of it. Rules: A4.11, A4.12, A4.14, B7.6, B9.5; case C60; invariants 2 and 5.

use crate::exchange::Principal;
use crate::telemetry::metrics::{HeldBytes, ListCache, UpstreamLimit, UpstreamMetrics};
use crate::translate::legacy_client::notify::Change;
use crate::wire::method::Method;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long the server's word holds that it lets a principal in; it holds anew with each answer.
const ADMITTED: Duration = Duration::from_secs(60);

/// What an entry takes beside its text.
const ENTRY: usize = 512;

/// Kinds of lists that change together: tools, prompts, resources with their templates.
const LISTS: usize = 3;

/// See the module.
pub(super) struct Cache {
    state: Mutex<State>,
    most: usize,
    /// Of which it is known that the server lets them in.
    principals: usize,
    metrics: Arc<UpstreamMetrics>,
}

/// A request that has gone to the server because nothing was kept. What changes before its answer comes makes that stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked(u64);

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// By when they were asked for last.
    order: BTreeMap<u64, Key>,
    /// By whose they are, and which list they are of.
    parts: HashMap<(Option<Principal>, usize), HashSet<Key>>,
    next: u64,
    bytes: usize,
    admitted: HashMap<Principal, Instant>,
    /// By list.
    changes: [u64; LISTS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    /// `None`: for all.
    principal: Option<Principal>,
    method: Method,
    params: [u8; 32],
}

struct Entry {
    text: Bytes,
    until: Instant,
    place: u64,
    _counted: HeldBytes,
}

impl Cache {
    /// `most` bounds its bytes, and `principals` of how many callers it is known that the server lets them in.
    pub(super) fn new(most: usize, principals: usize, metrics: Arc<UpstreamMetrics>) -> Self {
        Self { state: Mutex::default(), most, principals, metrics }
    }

    /// The whole message that the server answered this request with, `params` being a digest of all that the answer may
    /// depend on but the principal. Else what [`put`](Self::put) is to be told.
    pub(super) fn get(
        &self,
        principal: Principal,
        method: Method,
        params: &[u8; 32],
    ) -> Result<Bytes, Asked> {
        let now = Instant::now();
        let mut state = self.lock();
        let state = &mut *state;
        let asked = Asked(list(method).and_then(|list| state.changes.get(list)).copied().unwrap_or_default());
        if state.admitted.get(&principal).is_some_and(|until| *until > now) {
            for whose in [Some(principal), None] {
                let key = Key { principal: whose, method, params: *params };
                if let Some(text) = state.look_up(&key, now) {
                    self.metrics.list_cache(ListCache::Hit);
                    return Ok(text);
                }
            }
        }
        if keeps(method) {
            self.metrics.list_cache(ListCache::Miss);
        }
        Err(asked)
    }

    /// Keeps the answer, complete and without an error, of a request that was not a retry of another (A4.14).
    #[allow(clippy::too_many_arguments, reason = "all that an answer is known by")]
    pub(super) fn put(
        &self,
        principal: Principal,
        method: Method,
        params: [u8; 32],
        asked: Asked,
        text: &Bytes,
        ttl: Duration,
        shared: bool,
    ) {
        let now = Instant::now();
        let mut state = self.lock();
        let state = &mut *state;
        state.admit(principal, now, self.principals);
        let key = |principal| Key { principal, method, params };
        // What was said before does not hold beside it.
        state.take(&key(Some(principal)));
        state.take(&key(None));
        let Some(list) = list(method).filter(|list| state.changes.get(*list) == Some(&asked.0)) else {
            return;
        };
        if ttl.is_zero() {
            return;
        }
        let size = text.len() + ENTRY;
        if size > self.most / 4 {
            self.metrics.limit(UpstreamLimit::CacheBytes);
            return;
        }
        let key = key((!shared).then_some(principal));
        let place = state.place(key);
        let counted = self.metrics.list_cached(text.len());
        // A copy, so that it keeps no more of the stream than it is.
        let text = Bytes::copy_from_slice(text);
        state.bytes += size;
        state.parts.entry((key.principal, list)).or_default().insert(key);
        state.entries.insert(key, Entry { text, until: now + ttl, place, _counted: counted });
        self.metrics.list_cache(ListCache::Stored);
        while state.bytes > self.most
            && let Some((_, oldest)) = state.order.pop_first()
        {
            state.take(&oldest);
            self.metrics.list_cache(ListCache::Dropped);
            self.metrics.limit(UpstreamLimit::CacheBytes);
        }
    }

    /// The server has answered a request of this principal.
    pub(super) fn admit(&self, principal: Principal) {
        self.lock().admit(principal, Instant::now(), self.principals);
    }

    /// The server does not take this principal's credential, or not any more.
    pub(super) fn refuse(&self, principal: Principal) {
        let mut state = self.lock();
        if state.admitted.remove(&principal).is_some() {
            (0..LISTS).for_each(|list| self.drop_part(&mut state, Some(principal), list));
        }
    }

    /// What is kept of a list that has changed, for this principal or for all, is not given any more.
    pub(super) fn changed(&self, principal: Principal, change: &Change) {
        let list_changed = match change {
            Change::Tools => 0,
            Change::Prompts => 1,
            Change::Resources => 2,
            // Resources themselves are not kept.
            Change::Updated(_) => return,
        };
        let mut state = self.lock();
        if let Some(changes) = state.changes.get_mut(list_changed) {
            *changes += 1;
        }
        for whose in [Some(principal), None] {
            self.drop_part(&mut state, whose, list_changed);
        }
    }

    fn drop_part(&self, state: &mut State, whose: Option<Principal>, list: usize) {
        for key in state.parts.remove(&(whose, list)).unwrap_or_default() {
            state.take(&key);
            self.metrics.list_cache(ListCache::Dropped);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn look_up(&mut self, key: &Key, now: Instant) -> Option<Bytes> {
        if self.entries.get(key)?.until <= now {
            self.take(key);
            return None;
        }
        let place = self.place(*key);
        let entry = self.entries.get_mut(key)?;
        self.order.remove(&std::mem::replace(&mut entry.place, place));
        Some(entry.text.clone())
    }

    /// The newest.
    fn place(&mut self, key: Key) -> u64 {
        let place = self.next;
        self.next += 1;
        self.order.insert(place, key);
        place
    }

    fn take(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&entry.place);
            self.bytes = self.bytes.saturating_sub(entry.text.len() + ENTRY);
            let part = list(key.method).map(|list| (key.principal, list));
            if let Some(part) = part
                && let Some(keys) = self.parts.get_mut(&part)
            {
                keys.remove(key);
                if keys.is_empty() {
                    self.parts.remove(&part);
                }
            }
        }
    }

    /// One of `most`; whose admission ends soonest makes room, and is asked for anew.
    fn admit(&mut self, principal: Principal, now: Instant, most: usize) {
        if self.admitted.len() >= most && !self.admitted.contains_key(&principal) {
            self.admitted.retain(|_, until| *until > now);
            let soonest = self.admitted.iter().min_by_key(|(_, until)| **until).map(|(whose, _)| *whose);
            if let Some(soonest) = soonest.filter(|_| self.admitted.len() >= most) {
                self.admitted.remove(&soonest);
            }
        }
        self.admitted.insert(principal, now + ADMITTED);
    }
}

/// Whether answers to it are kept at all; with what they change.
fn list(method: Method) -> Option<usize> {
    match method {
        Method::ToolsList => Some(0),
        Method::PromptsList => Some(1),
        Method::ResourcesList | Method::ResourcesTemplatesList => Some(2),
        Method::Discover
        | Method::ToolsCall
        | Method::PromptsGet
        | Method::ResourcesRead
        | Method::Complete
        | Method::Listen
        | Method::LegacyOnly(_)
        | Method::Task
        | Method::ServerToClient
        | Method::Custom => None,
    }
}

/// Whether this is a request whose answer may be kept.
pub(super) fn keeps(method: Method) -> bool {
    list(method).is_some()
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
