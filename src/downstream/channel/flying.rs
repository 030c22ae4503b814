//! The client's requests that have no answer yet.
//!
//! Owns their ids, each in its own JSON type (`1` and `"1"` are two), the refusal of one that is under way already, and what a
//! cancellation finds. Rules: A2.2, A14.2, A14.3, B17; cases C18, C20, C23.

use crate::wire::jsonrpc::Id;
use crate::wire::version::Era;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// See the module.
#[derive(Default)]
pub(super) struct Flying {
    requests: Mutex<HashMap<Bytes, Arc<State>>>,
}

/// What kind of request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request(Era),
    /// It is not to be cancelled (C23c).
    Initialize,
}

struct State {
    kind: Kind,
    cancelled: CancellationToken,
    /// It may have reached the server.
    sent: AtomicBool,
}

/// One request under way; its id is free again when this is dropped.
pub(super) struct Flight<'a> {
    flying: &'a Flying,
    pub(super) id: Id,
    state: Arc<State>,
}

/// What a cancellation has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// It is answered, or never was; or it is `initialize`.
    Nothing,
    /// That is all: nothing of it has gone to a session.
    Here,
    /// Its server is to be told.
    AtServer,
}

impl Flying {
    /// `None`: this id is under way.
    pub(super) fn enter(&self, id: &Id, kind: Kind) -> Option<Flight<'_>> {
        let state =
            Arc::new(State { kind, cancelled: CancellationToken::new(), sent: AtomicBool::new(false) });
        let mut requests = self.lock();
        if requests.contains_key(id.raw()) {
            return None;
        }
        requests.insert(id.raw().clone(), state.clone());
        drop(requests);
        Some(Flight { flying: self, id: id.clone(), state })
    }

    /// Whether an answer under this id would be taken for that of a request under way.
    pub(super) fn is_awaited(&self, id: &Id) -> bool {
        self.lock().get(id.raw()).is_some_and(|state| !state.cancelled.is_cancelled())
    }

    /// The raw id of the request that is to stop.
    pub(super) fn cancel(&self, raw: &[u8]) -> Cancelled {
        let mut requests = self.lock();
        let Some(state) = requests.get(raw) else { return Cancelled::Nothing };
        match state.kind {
            Kind::Initialize => return Cancelled::Nothing,
            // No more is written for it, so its id is free.
            Kind::Request(Era::Modern) => {
                state.cancelled.cancel();
                requests.remove(raw);
                return Cancelled::Here;
            }
            Kind::Request(Era::Legacy) => {}
        }
        state.cancelled.cancel();
        if state.sent.load(Ordering::Acquire) { Cancelled::AtServer } else { Cancelled::Here }
    }

    /// Raw ids of legacy requests that are at the server.
    pub(super) fn at_server(&self) -> Vec<Bytes> {
        let legacy = |state: &State| match state.kind {
            Kind::Request(Era::Legacy) => {
                state.sent.load(Ordering::Acquire) && !state.cancelled.is_cancelled()
            }
            Kind::Request(Era::Modern) | Kind::Initialize => false,
        };
        self.lock().iter().filter(|(_, state)| legacy(state)).map(|(raw, _)| raw.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Bytes, Arc<State>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight<'_> {
    pub(super) async fn cancelled(&self) {
        self.state.cancelled.cancelled().await;
    }

    /// It has not run where it was, and is not anywhere until it goes again.
    pub(super) fn comes_back(&self) {
        self.state.sent.store(false, Ordering::Release);
    }

    /// What tells of it also where this is elsewhere.
    pub(super) fn token(&self) -> CancellationToken {
        self.state.cancelled.clone()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.state.cancelled.is_cancelled()
    }

    /// From here on it may be at the server.
    pub(super) fn goes(&self) {
        self.state.sent.store(true, Ordering::Release);
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut requests = self.flying.lock();
        // After a cancellation the id may be another's.
        if requests.get(self.id.raw()).is_some_and(|state| Arc::ptr_eq(state, &self.state)) {
            requests.remove(self.id.raw());
        }
    }
}
