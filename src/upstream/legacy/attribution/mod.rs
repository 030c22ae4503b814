//! Which call a server's question belongs to, where the stream that it came on does not say.
//!
//! Owns, for each session, the calls in flight that may be asked and their turns (`Floor`), and for each upstream what it
//! has shown of its way to ask (`Style`). A question that came beside the call's own stream is held until one call is left
//! that can have asked it; one that stays ambiguous is refused. A floor is one session's, so principals never meet on it.
//! Never guesses: a call that was answered did not ask what is still open, but one that was given up may have, and may ask
//! for a moment longer.
//!
//! Pure but for the waiting: what is to be sent to the server is handed back to the caller. Does not own the questions
//! themselves (`Q`), nor where they are asked. Rules: B4.1, B5; vectors D48, D49, D52; case C45.

mod completed;
mod seat;
mod state;
mod style;
mod turn;

#[cfg(test)]
mod play;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turn_tests;

pub(super) use seat::{Beside, Given, Seat, Unsent};
pub(super) use style::Style;
pub(super) use turn::Returning;

use crate::wire::jsonrpc::Id;
use completed::Completed;
use state::{State, Whose};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

/// The calls of one session that may be asked.
pub(super) struct Floor<Q> {
    state: Mutex<State<Q>>,
    style: Arc<Style>,
    bounds: Bounds,
    /// For questions that no call has taken yet, and for their bytes.
    places: Arc<Semaphore>,
    room: Arc<Semaphore>,
    completed: Completed,
}

/// From the settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How long a question is held.
    pub(super) attribute: Duration,
    /// Questions that no call has taken yet.
    pub(super) questions: usize,
    /// Their bytes.
    pub(super) bytes: usize,
    /// Calls that wait for their turn.
    pub(super) waiting: usize,
}

/// More calls wait than may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// A question that reaches no client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused<Q> {
    pub(super) question: Q,
    pub(super) why: Unattributed,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unattributed {
    /// No call can have asked it, or the one that did is over.
    NoCall,
    /// Several may have.
    Ambiguous,
    /// Too many questions wait already.
    Full,
    /// It is too large, beside those that wait.
    Large,
}

/// A question that waits for a call to take it.
pub(super) struct Pending<Q> {
    question: Q,
    until: Instant,
    refused: oneshot::Receiver<Unattributed>,
    hold: Option<Hold<Q>>,
    _place: OwnedSemaphorePermit,
    _room: OwnedSemaphorePermit,
}

/// A question's place among those that are held: dropped, it holds up nobody any more.
struct Hold<Q> {
    floor: Arc<Floor<Q>>,
    number: u64,
}

impl<Q> Floor<Q> {
    pub(super) fn new(style: Arc<Style>, bounds: Bounds) -> Arc<Self> {
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        let (places, room) = (semaphore(bounds.questions), semaphore(bounds.bytes));
        let (state, completed) = (Mutex::default(), Completed::default());
        Arc::new(Self { state, style, bounds, places, room, completed })
    }

    /// Waits for the call's turn. Whoever stops waiting leaves nothing behind.
    pub(super) async fn enter(self: &Arc<Self>) -> Result<Seat<Q>, Full> {
        turn::enter(self).await
    }

    /// A question has come beside the stream of the call that asked it. Whoever read it sees to its refusal, at once or
    /// by way of what is handed back.
    pub(super) fn asked(self: &Arc<Self>, id: Id, question: Q, bytes: usize) -> Result<Pending<Q>, Refused<Q>>
    where
        Q: Clone,
    {
        let Ok(_place) = self.places.clone().try_acquire_owned() else {
            return Err(Refused { question, why: Unattributed::Full });
        };
        let Ok(_room) = self.room.clone().try_acquire_many_owned(u32::try_from(bytes).unwrap_or(u32::MAX))
        else {
            return Err(Refused { question, why: Unattributed::Large });
        };
        let now = Instant::now();
        let mut state = self.lock();
        if !state.is_empty() {
            // One that comes outside all calls says nothing of how it asks in them.
            self.style.asks_beside();
        }
        let whose = match state.whose(now) {
            Ok(whose) => whose,
            Err(why) => return Err(Refused { question, why }),
        };
        let (verdict, refused) = oneshot::channel();
        let given = Given::new(id, question.clone(), verdict);
        let held = match whose {
            Whose::One(number) => {
                state.give(number, given);
                None
            }
            Whose::Several(candidates) => Some(state.hold(given, candidates)),
        };
        drop(state);
        let hold = held.map(|number| Hold { floor: self.clone(), number });
        Ok(Pending { question, until: now + self.bounds.attribute, refused, hold, _place, _room })
    }

    /// Calls that wait for their clients, and hold up nobody meanwhile.
    pub(super) fn parked(&self) -> usize {
        self.lock().parked()
    }

    /// The server has cancelled its own request, elsewhere than on the stream of the call that it came on.
    pub(super) fn withdrawn(&self, id: &Id) {
        self.lock().withdrawn(id, 2 * self.bounds.questions);
    }

    /// The server has been told that nobody waits any more for the call that had this seat.
    pub(super) fn is_told(&self, number: u64) {
        self.lock().is_told(number, Instant::now());
    }

    /// The server says that what a URL elicitation was about is done.
    pub(super) fn completed(&self, elicitation: &str) {
        self.completed.add(elicitation);
    }

    /// Waits for that, also where it was said before. Whoever waits sets the bound.
    pub(super) async fn completion(&self, elicitation: &str) {
        self.completed.wait(elicitation).await;
    }

    fn lock(&self) -> MutexGuard<'_, State<Q>> {
        // Nothing in here panics half-way through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Q> Pending<Q> {
    /// Waits until a call has taken the question, or the server has withdrawn it: `None`. Else it is to be refused.
    pub(super) async fn refused(mut self) -> Option<Refused<Q>> {
        let why = self.why().await?;
        Some(Refused { question: self.question, why })
    }

    async fn why(&mut self) -> Option<Unattributed> {
        if let Some(hold) = self.hold.take() {
            if let Ok(refused) = timeout_at(self.until, &mut self.refused).await {
                return refused.ok();
            }
            if let Some(question) = hold.release() {
                drop(question.take());
                return Some(Unattributed::Ambiguous);
            }
        }
        // A call has it, whose end is the end of this wait too.
        (&mut self.refused).await.ok()
    }
}

impl<Q> Hold<Q> {
    /// `None` where it is held no more.
    fn release(&self) -> Option<Given<Q>> {
        self.floor.lock().release(self.number)
    }
}

impl<Q> Drop for Hold<Q> {
    fn drop(&mut self) {
        drop(self.release());
    }
}

impl<Q> fmt::Debug for Floor<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Floor").field("bounds", &self.bounds).finish_non_exhaustive()
    }
}
