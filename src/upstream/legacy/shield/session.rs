//! What is kept of one shielded session.
//!
//! Owns the session's present leg at the server, what must be told again to another one, which of the server's questions
//! belong to which leg, and which calls have lost their listener. All of it is bounded; nothing here waits.

use super::super::Goodbye;
use crate::exchange::Principal;
use crate::telemetry::metrics::ReadySession;
use crate::upstream::places::Place;
use crate::wire::jsonrpc::Id;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use hyper::header::HeaderValue;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Subscriptions that are told to a new leg. Of more the oldest is forgotten.
const SUBSCRIPTIONS: usize = 1024;
/// Questions of the server that may be open, and calls without a listener, of which the session knows.
const QUESTIONS: usize = 256;
const ORPHANS: usize = 64;

/// See the module.
pub(super) struct Shielded {
    /// The proxy's own session id.
    pub(super) name: String,
    pub(super) principal: Principal,
    /// The client's `initialize` as it came, for the next leg.
    pub(super) initialize: Bytes,
    pub(super) initialize_id: Id,
    leg: Mutex<Arc<Leg>>,
    memory: Mutex<Memory>,
    ended: CancellationToken,
    place: Mutex<Option<Place>>,
    uses: AtomicUsize,
    born: Instant,
    /// Milliseconds after `born` at which the last use ended.
    last_used: AtomicU64,
    counted: ReadySession,
}

/// One session at the server.
pub(super) struct Leg {
    /// `None` for a server that issues no session ids (C04).
    pub(super) id: Option<HeaderValue>,
    /// As the server answered it.
    pub(super) version: HeaderValue,
    pub(super) generation: u64,
    /// The credential of the request that opened it, to end it with and for nothing else: the same principal's.
    pub(super) authorization: Option<HeaderValue>,
    lost: CancellationToken,
}

#[derive(Default)]
struct Memory {
    initialized: bool,
    /// Raw `params`.
    level: Option<Bytes>,
    /// Raw URIs and `params`.
    subscriptions: VecDeque<(Bytes, Bytes)>,
    /// Raw ids of the server's requests, and the leg they came on.
    questions: VecDeque<(Bytes, u64)>,
    /// Calls whose client went away, and the leg they run on.
    orphans: VecDeque<(Id, u64)>,
}

/// What a request changes, once the server has agreed.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    Level(Bytes),
    Subscribed { uri: Bytes, params: Bytes },
    Unsubscribed { uri: Bytes },
}

/// What another leg must be told.
pub(super) struct Again {
    pub(super) initialized: bool,
    pub(super) level: Option<Bytes>,
    pub(super) subscriptions: Vec<Bytes>,
}

/// A session in use; it is not idle before this is dropped.
pub(super) struct Use(Arc<Shielded>);

impl Leg {
    pub(super) fn new(
        id: Option<HeaderValue>,
        version: HeaderValue,
        generation: u64,
        authorization: Option<HeaderValue>,
    ) -> Self {
        Self { id, version, generation, authorization, lost: CancellationToken::new() }
    }

    /// The server no longer knows it: whatever waits in it waits in vain.
    pub(super) fn is_lost(&self) {
        self.lost.cancel();
    }

    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Whether events without data mean something to the client (A13.5).
    pub(super) fn primes(&self) -> bool {
        self.revision().is_none_or(|revision| revision >= LegacyRevision::V2025_11_25)
    }

    pub(super) fn goodbye(&self) -> Option<Goodbye> {
        Some(Goodbye {
            id: self.id.clone()?,
            revision: self.revision(),
            authorization: self.authorization.clone(),
        })
    }

    fn revision(&self) -> Option<LegacyRevision> {
        LegacyRevision::parse(self.version.to_str().ok()?)
    }
}

impl Shielded {
    pub(super) fn new(
        name: String,
        principal: Principal,
        initialize: Bytes,
        initialize_id: Id,
        leg: Leg,
        place: Place,
        counted: ReadySession,
    ) -> Self {
        Self {
            name,
            principal,
            initialize,
            initialize_id,
            leg: Mutex::new(Arc::new(leg)),
            memory: Mutex::default(),
            ended: CancellationToken::new(),
            place: Mutex::new(Some(place)),
            uses: AtomicUsize::new(0),
            born: Instant::now(),
            last_used: AtomicU64::new(0),
            counted,
        }
    }

    pub(super) fn leg(&self) -> Arc<Leg> {
        self.leg.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_leg(&self, leg: Leg) -> Arc<Leg> {
        let leg = Arc::new(leg);
        *self.leg.lock().unwrap_or_else(PoisonError::into_inner) = leg.clone();
        leg
    }

    pub(super) fn goodbye(&self) -> Option<Goodbye> {
        self.leg().goodbye()
    }

    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(super) fn take_place(&self) -> Option<Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// How long it has been without a use; `None` in use.
    pub(super) fn idle(&self) -> Option<Duration> {
        if self.uses.load(Ordering::Acquire) > 0 {
            return None;
        }
        let last = Duration::from_millis(self.last_used.load(Ordering::Acquire));
        Some(self.born.elapsed().saturating_sub(last))
    }

    /// The client has said that it is initialized.
    pub(super) fn initialized(&self) {
        self.memory().initialized = true;
    }

    pub(super) fn take_effect(&self, effect: Effect) {
        let mut memory = self.memory();
        match effect {
            Effect::Level(params) => memory.level = Some(params),
            Effect::Subscribed { uri, params } => {
                memory.subscriptions.retain(|(other, _)| *other != uri);
                bounded(&mut memory.subscriptions, (uri, params), SUBSCRIPTIONS);
            }
            Effect::Unsubscribed { uri } => memory.subscriptions.retain(|(other, _)| *other != uri),
        }
    }

    pub(super) fn again(&self) -> Again {
        let memory = self.memory();
        Again {
            initialized: memory.initialized,
            level: memory.level.clone(),
            subscriptions: memory.subscriptions.iter().map(|(_, params)| params.clone()).collect(),
        }
    }

    /// The server has asked something on that leg.
    pub(super) fn asked(&self, id: &Id, leg: &Leg) {
        let raw = id.raw().clone();
        let mut memory = self.memory();
        memory.questions.retain(|(other, _)| *other != raw);
        bounded(&mut memory.questions, (raw, leg.generation), QUESTIONS);
    }

    /// Whether an answer under this id is for the present leg. One to a leg that is gone must not reach another, which may
    /// ask something else under the same id.
    pub(super) fn answers(&self, id: &[u8]) -> bool {
        let generation = self.leg().generation;
        let mut memory = self.memory();
        let Some(at) = memory.questions.iter().position(|(raw, _)| raw == id) else { return true };
        memory.questions.remove(at).is_none_or(|(_, asked)| asked == generation)
    }

    /// The client has gone from the stream of these calls, which go on.
    pub(super) fn orphaned(&self, ids: Vec<Id>, leg: &Leg) {
        let mut memory = self.memory();
        for id in ids {
            bounded(&mut memory.orphans, (id, leg.generation), ORPHANS);
        }
    }

    /// Whether this was the answer to one of them.
    pub(super) fn adopted(&self, id: &[u8]) -> bool {
        let mut memory = self.memory();
        let before = memory.orphans.len();
        memory.orphans.retain(|(orphan, _)| orphan.raw() != id);
        memory.orphans.len() < before
    }

    /// Those that ran on legs before this one and will not be answered any more.
    pub(super) fn abandoned(&self, leg: &Leg) -> Vec<Id> {
        let mut memory = self.memory();
        let gone = |generation: u64| generation < leg.generation;
        let ids = memory.orphans.iter().filter(|(_, born)| gone(*born)).map(|(id, _)| id.clone()).collect();
        memory.orphans.retain(|(_, born)| !gone(*born));
        ids
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bounded<T>(row: &mut VecDeque<T>, item: T, most: usize) {
    if row.len() >= most {
        row.pop_front();
    }
    row.push_back(item);
}

impl Use {
    pub(super) fn new(session: Arc<Shielded>) -> Self {
        if session.uses.fetch_add(1, Ordering::AcqRel) == 0 {
            session.counted.begins();
        }
        Self(session)
    }

    pub(super) fn session(&self) -> &Arc<Shielded> {
        &self.0
    }
}

impl Deref for Use {
    type Target = Shielded;

    fn deref(&self) -> &Shielded {
        &self.0
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(now, Ordering::Release);
        if self.uses.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.counted.ends();
        }
    }
}
