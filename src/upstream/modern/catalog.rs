//! What is known of a modern server's tools, for the calls of legacy clients.
//!
//! A modern client sees a tool's schema and acts on it; for a legacy client the proxy does: the headers that repeat
//! arguments, and whether results are wrapped, both follow from the schema. Owns what was read of each tool, kept per principal
//! since lists may differ by authorization, bounded by `limits.catalogs` and `limits.catalog_tools`; and when it is known that
//! a tool is on no list. Does not own reading lists (`lookup`), nor what the facts mean (`translate::legacy_client`).
//! Rules: A5.10, A11.8, B6.1, B9.5; vectors D77, D78; case C67.

use crate::exchange::Principal;
use crate::telemetry::metrics::{UpstreamLimit, UpstreamMetrics};
use crate::translate::legacy_client::tools::Tool;
use dashmap::DashMap;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A tool that was not on a list which is no older than this does not make it fetched again.
const FRESH: Duration = Duration::from_secs(30);

/// A list that could not be had is not asked for again for so long.
const FAILED: Duration = Duration::from_secs(1);

/// For each tool that may be kept, the names of so many others are known, as hashes, to tell them from what is on no list.
const OTHERS: usize = 4;

/// See the module.
pub(super) struct Catalog {
    principals: DashMap<Principal, Arc<Known>>,
    /// Of names; nobody can choose two that meet.
    hashes: RandomState,
    /// Principals, and tools of each.
    most: usize,
    tools: usize,
    metrics: Arc<UpstreamMetrics>,
}

/// What one principal's list says.
pub(super) struct Known {
    state: Mutex<State>,
}

struct State {
    tools: HashMap<Box<str>, Entry>,
    /// Names on the list whose tools are not kept, by hash, and when they were last seen there.
    others: HashMap<u64, Instant>,
    /// When there were last too many of those.
    more: Option<Instant>,
    /// When all of the list had been read.
    whole: Option<Instant>,
    failed: Option<Instant>,
    /// How often the server has said that its list is not what it was.
    changes: u64,
    used: Instant,
}

struct Entry {
    tool: Arc<Tool>,
    /// When it was last seen on a list.
    seen: Instant,
}

pub(super) enum Found {
    Tool(Arc<Tool>),
    /// The list is known, and the tool is not on it; or it cannot be had just now.
    None,
    Unknown,
}

/// A list that is being read, page by page.
pub(super) struct Reading {
    known: Arc<Known>,
    pub(super) began: Instant,
    changes: u64,
}

impl Catalog {
    pub(super) fn new(most: usize, tools: usize, metrics: Arc<UpstreamMetrics>) -> Self {
        Self { principals: DashMap::new(), hashes: RandomState::new(), most, tools, metrics }
    }

    /// Takes in a list that passes by, or a page of one.
    pub(super) fn learn(&self, principal: Principal, listed: Vec<Tool>) {
        self.take_in(&self.known(principal), listed.into_iter().map(Arc::new), |_| false);
    }

    pub(super) fn begin(&self, principal: Principal) -> Reading {
        let known = self.known(principal);
        let changes = known.lock().changes;
        Reading { known, began: Instant::now(), changes }
    }

    /// Takes in a page; tools that are `wanted` take the room of others, if they must.
    pub(super) fn page(&self, reading: &Reading, listed: &[Arc<Tool>], wanted: impl Fn(&str) -> bool) {
        self.take_in(&reading.known, listed.iter().cloned(), wanted);
    }

    /// All pages were read, or no more can be. Whether the list is still the one that was read.
    pub(super) fn end(&self, reading: &Reading, whole: bool) -> bool {
        let mut state = reading.known.lock();
        let same = state.changes == reading.changes;
        if !whole {
            state.failed = Some(Instant::now());
        } else if same {
            // What was not met again is not on the list any more.
            state.tools.retain(|_, entry| entry.seen >= reading.began);
            state.others.retain(|_, seen| *seen >= reading.began);
            state.more = state.more.filter(|seen| *seen >= reading.began);
            (state.whole, state.failed) = (Some(Instant::now()), None);
        }
        same
    }

    /// The server's list is not what it was.
    pub(super) fn forget(&self, principal: Principal) {
        let Some(known) = self.principals.get(&principal).map(|known| known.clone()) else { return };
        let mut state = known.lock();
        state.tools.clear();
        state.others.clear();
        (state.more, state.whole, state.failed) = (None, None, None);
        state.changes += 1;
    }

    /// The server says that a call was not as it wants it: what was known of the tool before is wrong.
    pub(super) fn doubt(&self, principal: Principal, name: &str) {
        let Some(known) = self.principals.get(&principal).map(|known| known.clone()) else { return };
        let mut state = known.lock();
        state.tools.remove(name);
        (state.whole, state.failed) = (None, None);
    }

    pub(super) fn get(&self, principal: Principal, name: &str) -> Found {
        let Some(known) = self.principals.get(&principal).map(|known| known.clone()) else {
            return Found::Unknown;
        };
        let mut state = known.lock();
        state.used = Instant::now();
        let lately = |at: Option<Instant>, within| at.is_some_and(|at: Instant| at.elapsed() < within);
        match state.tools.get(name) {
            Some(entry) => Found::Tool(entry.tool.clone()),
            None if lately(state.failed, FAILED) => Found::None,
            None if state.more.is_some() || state.others.contains_key(&self.hashes.hash_one(name)) => {
                Found::Unknown
            }
            None if lately(state.whole, FRESH) => Found::None,
            None => Found::Unknown,
        }
    }

    /// The tool, if it was on a list after `since`.
    pub(super) fn seen_after(&self, principal: Principal, name: &str, since: Instant) -> Option<Arc<Tool>> {
        let known = self.principals.get(&principal).map(|known| known.clone())?;
        let state = known.lock();
        state.tools.get(name).filter(|entry| entry.seen > since).map(|entry| entry.tool.clone())
    }

    fn take_in(&self, known: &Known, listed: impl Iterator<Item = Arc<Tool>>, wanted: impl Fn(&str) -> bool) {
        let mut full = false;
        let mut guard = known.lock();
        let state = &mut *guard;
        let seen = Instant::now();
        for tool in listed {
            if state.tools.len() >= self.tools && !state.tools.contains_key(&tool.name) {
                // What is not known is fetched when it is called.
                full = true;
                let other = state.tools.keys().next().filter(|_| wanted(&tool.name)).cloned();
                let left_out = other.as_deref().unwrap_or(&tool.name);
                let hash = self.hashes.hash_one(left_out);
                let room = state.others.len() < OTHERS.saturating_mul(self.tools);
                if room || state.others.contains_key(&hash) {
                    state.others.insert(hash, seen);
                } else {
                    state.more = Some(seen);
                }
                let Some(other) = other else { continue };
                state.tools.remove(&other);
            }
            state.tools.insert(tool.name.clone(), Entry { tool, seen });
        }
        drop(guard);
        if full {
            self.metrics.limit(UpstreamLimit::CatalogTools);
        }
    }

    fn known(&self, principal: Principal) -> Arc<Known> {
        if let Some(known) = self.principals.get(&principal) {
            return known.clone();
        }
        self.make_room();
        self.principals.entry(principal).or_insert_with(|| Arc::new(Known::new())).clone()
    }

    /// The principal that has been quiet for longest makes room.
    fn make_room(&self) {
        if self.principals.len() < self.most {
            return;
        }
        let oldest = self.principals.iter().min_by_key(|entry| entry.lock().used).map(|entry| *entry.key());
        if let Some(oldest) = oldest {
            self.metrics.limit(UpstreamLimit::Catalogs);
            self.principals.remove(&oldest);
        }
    }
}

impl Known {
    fn new() -> Self {
        let state = State {
            tools: HashMap::new(),
            others: HashMap::new(),
            more: None,
            whole: None,
            failed: None,
            changes: 0,
            used: Instant::now(),
        };
        Self { state: Mutex::new(state) }
    }

    /// Held for a look or an entry.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
