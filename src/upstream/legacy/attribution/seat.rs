//! A call's place on the floor, and what comes to it there.
//!
//! Owns the handle that a call holds while it is in flight, and the rule that a question which a call was given and never
//! took is refused, however the call ends. Rule: B5.

use super::state::End;
use super::turn::Returning;
use super::{Floor, Unattributed};
use crate::wire::jsonrpc::Id;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// What comes for a call beside its own stream.
#[derive(Debug)]
pub(in super::super) enum Beside<Q> {
    Question(Given<Q>),
    /// The server has cancelled its request of this id, which may be one of the call's questions.
    Withdrawn(Id),
}

/// A question on its way to whoever answers it. Dropped on the way it is refused.
pub(in super::super) struct Given<Q> {
    id: Id,
    question: Q,
    refusal: Refusal,
}

/// Tells who waits for it, when dropped, that the question reaches no client.
struct Refusal(Option<oneshot::Sender<Unattributed>>);

impl<Q> Given<Q> {
    pub(super) fn new(id: Id, question: Q, refused: oneshot::Sender<Unattributed>) -> Self {
        Self { id, question, refusal: Refusal(Some(refused)) }
    }

    pub(super) fn id(&self) -> &Id {
        &self.id
    }

    /// The question; from now on the taker answers it.
    pub(in super::super) fn take(mut self) -> Q {
        self.refusal.0 = None;
        self.question
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        if let Some(refused) = self.0.take() {
            // Who waits for it has gone only with the session.
            let _ = refused.send(Unattributed::NoCall);
        }
    }
}

impl<Q> fmt::Debug for Given<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Given").field(&self.id).finish()
    }
}

/// A call in flight. Dropping it takes the call out as one that nobody waits for any more, unless it was said before how
/// it ended.
pub(in super::super) struct Seat<Q> {
    floor: Arc<Floor<Q>>,
    number: u64,
    woken: Arc<Notify>,
}

impl<Q> Seat<Q> {
    pub(super) fn new(floor: Arc<Floor<Q>>, number: u64, woken: Arc<Notify>) -> Self {
        Self { floor, number, woken }
    }

    /// The next that comes. Whoever stops waiting loses nothing.
    pub(in super::super) async fn next(&mut self) -> Beside<Q> {
        loop {
            if let Some(beside) = self.floor.lock().next_for(self.number) {
                return beside;
            }
            self.woken.notified().await;
        }
    }

    /// By which the floor knows it also when it is gone.
    pub(in super::super) fn number(&self) -> u64 {
        self.number
    }

    /// A question of the call has come on its own stream, where nothing needs to be found out about it.
    pub(in super::super) fn asked_here(&self) {
        self.floor.style.asks();
        self.floor.lock().asked_here(self.number);
    }

    /// The call's client has been asked, and the call waits for the answer: it holds up nobody meanwhile.
    pub(in super::super) fn set_aside(&self) {
        self.floor.lock().aside(self.number, true);
    }

    /// The call's client has answered. Once it is its turn, the call is to be given the answers.
    pub(in super::super) fn returning(&self) -> Returning<Q> {
        Returning::new(self.floor.clone(), self.number)
    }

    /// The call goes on at once, since the server has taken its question back or was answered in the client's place.
    pub(in super::super) fn resumed(&self) {
        self.floor.lock().aside(self.number, false);
    }

    /// The server has answered the call, so no question that is still open is its.
    pub(in super::super) fn answered(&self) {
        if self.leave(End::Answered) {
            self.floor.style.finished_quietly();
        }
    }

    /// The call is being sent only now: from here on it counts how long it runs.
    pub(in super::super) fn begins(&self) {
        self.floor.lock().begins(self.number, Instant::now());
    }

    /// The call has not reached the server, so nothing is or will be asked in it.
    pub(in super::super) fn unsent(&self) {
        self.leave(End::Unsent);
    }

    fn leave(&self, end: End) -> bool {
        self.floor.lock().leave(self.number, end, Instant::now())
    }
}

/// A seat whose call is not being sent yet: dropped, nothing was or will be asked in it.
pub(in super::super) struct Unsent<Q>(Option<Seat<Q>>);

impl<Q> Unsent<Q> {
    pub(in super::super) fn new(seat: Seat<Q>) -> Self {
        Self(Some(seat))
    }

    pub(in super::super) fn begins(mut self) -> Option<Seat<Q>> {
        self.0.take().inspect(Seat::begins)
    }
}

impl<Q> Drop for Unsent<Q> {
    fn drop(&mut self) {
        self.0.iter().for_each(Seat::unsent);
    }
}

impl<Q> Drop for Seat<Q> {
    fn drop(&mut self) {
        self.leave(End::Abandoned);
    }
}

impl<Q> fmt::Debug for Seat<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seat").field(&self.number).finish()
    }
}
