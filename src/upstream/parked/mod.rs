//! Calls whose server has asked something and whose client has been told so, until the client comes back with the answers.
//!
//! Owns who may take such a call up again: the `requestState` of its last round, once, by the same principal for the same
//! request, before it expires (`ticket`); how many there are (`places`); and the last answer of a call, kept a short time for
//! a client that lost it (`last`). A parked call is a linear token: taking it up removes it. Does not own the call, which its
//! driver holds (`legacy::call`); when the driver lets go of its `Slot`, the call is gone from here too.
//! Rules: B1.2, B1.6, B1.13; vectors D36-D38; architecture section 4, "Parked calls".

mod last;
mod places;
mod ticket;

pub use places::Full;

use crate::config;
use crate::exchange::{Call, Outcome, Principal, Sender};
use crate::seal::SealError;
use crate::shutdown::Shutdown;
use crate::translate::answer::Answer;
use crate::translate::input_required;
use crate::translate::question::Question;
use crate::wire::jsonrpc::Id;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use dashmap::DashMap;
use last::{Kept, Last};
pub use places::Place;
use places::Places;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use ticket::{Ticket, Tickets};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// All parked calls of one process.
pub struct Parked {
    tickets: Tickets,
    calls: DashMap<u64, Arc<Entry>>,
    next: AtomicU64,
    places: Arc<Places>,
    kept: Mutex<Kept>,
    replay_bytes: usize,
    /// Tickets count from here.
    born: Instant,
    shutdown: Shutdown,
}

/// Bounds of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Parked calls in all, and of one principal.
    pub calls: usize,
    pub calls_per_principal: usize,
    /// Bytes of last answers.
    pub replay_bytes: usize,
}

impl Bounds {
    pub fn of(limits: &config::Limits) -> Self {
        Self {
            calls: limits.parked,
            calls_per_principal: limits.parked_per_principal,
            replay_bytes: limits.replay_bytes,
        }
    }
}

/// Whose call it is, and what was asked for (`input_required::digest`, with the upstream's name in it).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) principal: Principal,
    pub(super) request: [u8; 32],
}

/// What the client is asked in one round.
#[derive(Debug)]
pub(super) struct Shown {
    /// By key.
    pub(super) asked: Vec<(String, Question)>,
    pub(super) revision: LegacyRevision,
    state: String,
    server_info: Bytes,
}

impl Shown {
    /// The whole `input_required` message.
    pub(super) fn message(&self, id: &Id) -> Payload {
        let entries = self.asked.iter().map(|(key, question)| (key.as_str(), question.entry()));
        input_required::message(id, entries, &self.state, &self.server_info)
    }
}

/// A client that has come back with answers that fit what it was asked.
pub(super) struct Retry {
    pub(super) call: Arc<Call>,
    pub(super) sender: Sender,
    pub(super) answers: Vec<(String, Answer)>,
}

/// Why a `requestState` takes up no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error(
        "`requestState` was not issued by this proxy since it was started, or was altered; the call is not run again by itself: call without it"
    )]
    Unreadable,
    #[error("`requestState` belongs to another caller")]
    Principal,
    #[error("`requestState` belongs to a call with another method or other parameters")]
    Request,
    #[error("`requestState` has expired (upstream.*.timeouts.answer); the call it belongs to is over")]
    Expired,
    #[error(
        "the call that `requestState` belongs to is over, and no answer of it is kept (upstream.*.timeouts.replay, limits.replay_bytes)"
    )]
    Unknown,
    #[error("`requestState` has been used already; a call is taken up once in each round")]
    Used,
}

/// What a `requestState` leads to.
pub(super) enum Found {
    Claim(Claim),
    /// The answer that was given to it before, under the id of whoever asks again (B1.6).
    Again(Outcome),
}

/// A parked call that waits for exactly these answers.
pub(super) struct Claim {
    entry: Arc<Entry>,
    round: u32,
    shown: Arc<Shown>,
}

struct Entry {
    state: Mutex<State>,
}

enum State {
    /// Its client waits for it.
    Running,
    Waiting {
        round: u32,
        shown: Arc<Shown>,
        to: oneshot::Sender<Retry>,
    },
    /// It is over, and this came of the round.
    Finished {
        round: u32,
        last: Last,
    },
}

impl Parked {
    pub fn new(bounds: Bounds, shutdown: Shutdown) -> Result<Arc<Self>, SealError> {
        Ok(Arc::new(Self {
            tickets: Tickets::new()?,
            calls: DashMap::new(),
            next: AtomicU64::new(1),
            places: Places::new(bounds.calls, bounds.calls_per_principal),
            kept: Mutex::new(Kept::new(bounds.replay_bytes)),
            replay_bytes: bounds.replay_bytes,
            born: Instant::now(),
            shutdown,
        }))
    }

    /// Calls that wait for their client, or were taken up again and still run.
    pub fn len(&self) -> usize {
        self.places.taken()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Last answers that are kept.
    pub fn kept(&self) -> usize {
        self.last().len()
    }

    /// Whether a state is one of this process.
    pub(super) fn has_issued(&self, state: &str) -> bool {
        self.tickets.open(state).is_some()
    }

    /// A place for a legacy client's call whose server asks something: it waits under no name, but is one more that waits.
    pub(super) fn place(&self, principal: Principal) -> Result<Place, Full> {
        self.places.take(principal)
    }

    /// A place for a call whose server asks something.
    pub(super) fn admit(self: &Arc<Self>, owner: Owner) -> Result<Slot, Full> {
        let place = self.places.take(owner.principal)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry { state: Mutex::new(State::Running) });
        self.calls.insert(number, entry.clone());
        Ok(Slot { parked: self.clone(), number, entry, owner, round: 0, place: Some(place) })
    }

    /// Looks the state up that a client has come back with; `id` is the id of its request.
    pub(super) fn find(&self, state: &str, owner: Owner, id: &Id) -> Result<Found, Refused> {
        let ticket = self.tickets.open(state).ok_or(Refused::Unreadable)?;
        if ticket.principal != owner.principal.name() {
            return Err(Refused::Principal);
        }
        if ticket.request != owner.request {
            return Err(Refused::Request);
        }
        let expired = ticket.expires <= self.now();
        let gone = || if expired { Refused::Expired } else { Refused::Unknown };
        // Cloned out, so that the map is not held while the entry is looked at.
        let entry = self.calls.get(&ticket.call).map(|entry| entry.clone()).ok_or_else(gone)?;
        let state = entry.lock();
        match &*state {
            State::Waiting { round, .. } if *round == ticket.round && expired => Err(Refused::Expired),
            State::Waiting { round, shown, .. } if *round == ticket.round => {
                let (round, shown) = (*round, shown.clone());
                drop(state);
                Ok(Found::Claim(Claim { entry, round, shown }))
            }
            // The answers arrived, and what the server asked next did not reach the client.
            State::Waiting { round, shown, .. } if *round == ticket.round + 1 => {
                Ok(Found::Again(Outcome::InputRequired(shown.message(id))))
            }
            State::Finished { round, last } if *round == ticket.round => {
                Ok(Found::Again(last.outcome(id).ok_or(Refused::Unknown)?))
            }
            State::Waiting { .. } | State::Running | State::Finished { .. } => Err(Refused::Used),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn last(&self) -> MutexGuard<'_, Kept> {
        // Nothing in there panics half-way through a change.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, call: u64) {
        self.last().forget(call);
        self.calls.remove(&call);
    }
}

impl Entry {
    fn lock(&self) -> MutexGuard<'_, State> {
        // As above.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    pub(super) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Takes the call up, unless another request has done so meanwhile.
    pub(super) fn take(self, retry: Retry) -> Result<(), Refused> {
        let mut state = self.entry.lock();
        if !matches!(&*state, State::Waiting { round, .. } if *round == self.round) {
            return Err(Refused::Used);
        }
        let taken = std::mem::replace(&mut *state, State::Running);
        drop(state);
        let State::Waiting { to, .. } = taken else { return Err(Refused::Used) };
        // A driver that has just given up on its client is as good as gone.
        to.send(retry).map_err(|_| Refused::Unknown)
    }
}

/// A call's place in the registry, held by its driver. Dropping it takes the call out.
pub(super) struct Slot {
    parked: Arc<Parked>,
    number: u64,
    entry: Arc<Entry>,
    owner: Owner,
    round: u32,
    place: Option<Place>,
}

impl Slot {
    /// Rounds begun so far.
    pub(super) fn round(&self) -> u32 {
        self.round
    }

    /// Begins a round: from now on the call can be taken up, for as long as `lasts`.
    pub(super) fn ask(
        &mut self,
        asked: Vec<(String, Question)>,
        revision: LegacyRevision,
        server_info: &Bytes,
        lasts: Duration,
    ) -> Result<(Arc<Shown>, oneshot::Receiver<Retry>), SealError> {
        self.round += 1;
        let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        let state = self.parked.tickets.close(&Ticket {
            call: self.number,
            round: self.round,
            expires: self.parked.now().saturating_add(lasts),
            principal: self.owner.principal.name(),
            request: self.owner.request,
        })?;
        let shown = Arc::new(Shown { asked, revision, state, server_info: server_info.clone() });
        let (to, from) = oneshot::channel();
        *self.entry.lock() = State::Waiting { round: self.round, shown: shown.clone(), to };
        Ok((shown, from))
    }

    /// The call is over, and its client is being told `outcome`, which is kept for as long as `lasts` if it may be.
    pub(super) fn finish(mut self, outcome: &Outcome, lasts: Duration) {
        if lasts.is_zero() {
            return;
        }
        let Some(last) = Last::of(outcome, self.parked.replay_bytes) else { return };
        let bytes = last.bytes();
        // The place is free for another call from now on; what is kept has a bound of its own.
        drop(self.place.take());
        let (parked, number) = (self.parked.clone(), self.number);
        *self.entry.lock() = State::Finished { round: self.round, last };
        let until = Instant::now() + lasts;
        let forget = {
            let parked = parked.clone();
            async move {
                sleep_until(until).await;
                parked.forget(number);
            }
        };
        // Owned by the tracker; ends with the time, earlier when others need its room.
        let task = parked.shutdown.spawn_until_drain(forget);
        let evicted = parked.last().keep(number, bytes, task.abort_handle());
        evicted.into_iter().for_each(|call| drop(parked.calls.remove(&call)));
        // Its entry stays.
        self.number = 0;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.parked.calls.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
