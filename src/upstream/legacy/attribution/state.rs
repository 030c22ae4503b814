//! Who is on the floor, and whose a question is.
//!
//! Owns the calls in flight, those that wait for their turn, the questions that are held, and the rules over them. Pure:
//! the lock around it, the waiting and the time are its callers'. Whatever changes it wakes the first that waits, who
//! looks again. Rule: B5.

use super::Unattributed;
use super::seat::{Beside, Given};
use super::style::Shown;
use crate::wire::jsonrpc::Id;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Questions come early in a call: one that has run for so long without one lets the next begin.
pub(super) const EARLY: Duration = Duration::from_millis(250);

/// A call that was given up may go on at the server until the server has heard of it, and ask for so long.
pub(super) const LINGERS: Duration = Duration::from_secs(1);

/// What it had asked by the time that the server heard of it may still be on its way.
pub(super) const TRAILS: Duration = Duration::from_millis(100);

pub(super) struct State<Q> {
    /// In the order in which they came.
    seats: BTreeMap<u64, Entry<Q>>,
    /// Calls that were given up lately, and until when they may ask.
    gone: VecDeque<(u64, Instant)>,
    waiting: VecDeque<Arc<Notify>>,
    /// Calls whose clients have answered, and that wait for their turn to go on.
    returning: VecDeque<(u64, Arc<Notify>)>,
    held: VecDeque<Held<Q>>,
    next: u64,
}

struct Entry<Q> {
    since: Instant,
    /// A question has been its.
    asked: bool,
    /// Its question waits for the client's answer.
    aside: bool,
    queue: VecDeque<Beside<Q>>,
    woken: Arc<Notify>,
}

/// A question that may be of several calls.
struct Held<Q> {
    number: u64,
    question: Given<Q>,
    /// Calls that may have asked it: those in flight when it came, less those that are known not to have.
    candidates: Vec<u64>,
}

/// Whether a call may begin.
pub(super) enum Turn {
    Now,
    /// Then, if nothing changes before.
    At(Instant),
    /// When something has changed.
    Later,
}

/// Who can have asked a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    One(u64),
    /// One of these.
    Several(Vec<u64>),
}

/// How a call leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The server has answered it, so it waits for no answer to a question of its own.
    Answered,
    /// Nobody waits for its answer any more. What the server still does for it is not known.
    Abandoned,
    /// The server has never heard of it.
    Unsent,
}

impl<Q> Default for State<Q> {
    fn default() -> Self {
        let (waiting, returning) = (VecDeque::new(), VecDeque::new());
        let (held, gone) = (VecDeque::new(), VecDeque::new());
        Self { seats: BTreeMap::new(), gone, waiting, returning, held, next: 0 }
    }
}

impl<Q> State<Q> {
    pub(super) fn turn(&self, shown: Shown, now: Instant) -> Turn {
        if !self.held.is_empty() {
            return Turn::Later;
        }
        match shown {
            Shown::Calm | Shown::Asks => Turn::Now,
            // Those before the last one have been waited for when it came.
            Shown::Nothing => match self.seats.values().next_back() {
                Some(last) if !last.asked && last.since + EARLY > now => Turn::At(last.since + EARLY),
                Some(_) | None => self.after_gone(now),
            },
            // Those who have begun go first.
            Shown::Beside if !self.returning.is_empty() => Turn::Later,
            Shown::Beside => self.alone(None, now),
        }
    }

    /// Whether a call whose question was answered may go on. It may ask again, and then nobody else is to be running.
    pub(super) fn turn_to_return(
        &self,
        number: u64,
        waiter: &Arc<Notify>,
        shown: Shown,
        now: Instant,
    ) -> Turn {
        match shown {
            Shown::Nothing | Shown::Calm | Shown::Asks => Turn::Now,
            Shown::Beside if !self.held.is_empty() => Turn::Later,
            Shown::Beside if !self.returning.front().is_some_and(|(_, first)| Arc::ptr_eq(first, waiter)) => {
                Turn::Later
            }
            Shown::Beside => self.alone(Some(number), now),
        }
    }

    /// Whether whoever begins now, or goes on in its seat, is the only one who may ask.
    fn alone(&self, own: Option<u64>, now: Instant) -> Turn {
        if self.seats.iter().any(|(number, seat)| !seat.aside && Some(*number) != own) {
            return Turn::Later;
        }
        self.after_gone(now)
    }

    /// What a call asks late that was given up would be taken for the next one's.
    fn after_gone(&self, now: Instant) -> Turn {
        match self.gone.iter().map(|(_, until)| *until).max() {
            Some(until) if until > now => Turn::At(until),
            Some(_) | None => Turn::Now,
        }
    }

    /// The server has heard that the call was given up.
    pub(super) fn is_told(&mut self, number: u64, now: Instant) {
        if let Some((_, until)) = self.gone.iter_mut().find(|(gone, _)| *gone == number) {
            *until = (*until).min(now + TRAILS);
        }
        self.wake_first();
    }

    pub(super) fn returns(&mut self, number: u64, waiter: Arc<Notify>) {
        self.returning.push_back((number, waiter));
    }

    pub(super) fn returns_no_more(&mut self, waiter: &Arc<Notify>) {
        self.returning.retain(|(_, other)| !Arc::ptr_eq(other, waiter));
        self.wake_first();
    }

    pub(super) fn sit(&mut self, now: Instant) -> (u64, Arc<Notify>) {
        let number = self.number();
        let woken = Arc::new(Notify::new());
        let (queue, asked, aside) = (VecDeque::new(), false, false);
        self.seats.insert(number, Entry { since: now, asked, aside, queue, woken: woken.clone() });
        self.wake_first();
        (number, woken)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn wait(&mut self, waiter: Arc<Notify>) {
        self.waiting.push_back(waiter);
    }

    pub(super) fn is_first(&self, waiter: &Arc<Notify>) -> bool {
        self.waiting.front().is_some_and(|first| Arc::ptr_eq(first, waiter))
    }

    pub(super) fn waits_no_more(&mut self, waiter: &Arc<Notify>) {
        self.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
        self.wake_first();
    }

    fn wake_first(&self) {
        if let Some((_, first)) = self.returning.front() {
            first.notify_one();
        }
        if let Some(first) = self.waiting.front() {
            first.notify_one();
        }
    }

    /// Whose a question is that has come beside the calls' streams.
    pub(super) fn whose(&mut self, now: Instant) -> Result<Whose, Unattributed> {
        self.forget_gone(now);
        let numbers = |aside: bool| {
            let seats = self.seats.iter().filter(move |(_, seat)| seat.aside == aside);
            seats.map(|(number, _)| *number).collect::<Vec<_>>()
        };
        // Blocked on one question, a call seldom asks another: it is looked at only where no other call runs.
        let (mut running, aside) = (numbers(false), numbers(true));
        let gone = self.gone.iter().map(|(number, _)| *number);
        match (running.as_slice(), aside.as_slice(), self.gone.len()) {
            ([], [], _) => Err(Unattributed::NoCall),
            ([one], _, 0) | ([], [one], 0) => Ok(Whose::One(*one)),
            ([], [..], _) => Err(Unattributed::Ambiguous),
            ([..], ..) => {
                running.extend(gone);
                Ok(Whose::Several(running))
            }
        }
    }

    fn forget_gone(&mut self, now: Instant) {
        self.gone.retain(|(_, until)| *until > now);
    }

    /// Holds a question until one of the calls is left; says under which number.
    pub(super) fn hold(&mut self, question: Given<Q>, candidates: Vec<u64>) -> u64 {
        let number = self.number();
        self.held.push_back(Held { number, question, candidates });
        number
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Takes a held question back.
    pub(super) fn release(&mut self, number: u64) -> Option<Given<Q>> {
        let at = self.held.iter().position(|held| held.number == number)?;
        let held = self.held.remove(at)?;
        self.wake_first();
        Some(held.question)
    }

    /// The server has cancelled its question: nobody is asked, and no answer is needed. Calls that may be at it already are
    /// told; `room` bounds what may wait for one.
    pub(super) fn withdrawn(&mut self, id: &Id, room: usize) {
        if let Some(number) = self.held.iter().find(|held| held.question.id() == id).map(|held| held.number) {
            drop(self.release(number).map(Given::take));
            return;
        }
        for seat in self.seats.values_mut() {
            let is_it = |beside: &Beside<Q>| matches!(beside, Beside::Question(given) if given.id() == id);
            if let Some(at) = seat.queue.iter().position(is_it) {
                if let Some(Beside::Question(given)) = seat.queue.remove(at) {
                    drop(given.take());
                }
                return;
            }
        }
        for seat in self.seats.values_mut().filter(|seat| seat.asked) {
            if seat.queue.len() < room {
                seat.queue.push_back(Beside::Withdrawn(id.clone()));
                seat.woken.notify_one();
            } else {
                tracing::debug!(
                    "a call does not keep up with its server's cancellations; one is passed over"
                );
            }
        }
    }

    pub(super) fn next_for(&mut self, number: u64) -> Option<Beside<Q>> {
        self.seat(number)?.queue.pop_front()
    }

    /// The call is being sent only now.
    pub(super) fn begins(&mut self, number: u64, now: Instant) {
        if let Some(seat) = self.seat(number) {
            seat.since = now;
        }
    }

    pub(super) fn asked_here(&mut self, number: u64) {
        if let Some(seat) = self.seat(number) {
            seat.asked = true;
        }
        self.wake_first();
    }

    /// Whether the call's question waits for its client. One that does is no candidate while others are.
    pub(super) fn aside(&mut self, number: u64, aside: bool) {
        if let Some(seat) = self.seat(number) {
            seat.aside = aside;
        }
        // What is held stays held: the call may have asked that too, before it had to wait for its client.
        self.wake_first();
    }

    pub(super) fn parked(&self) -> usize {
        self.seats.values().filter(|seat| seat.aside).count()
    }

    /// Takes the call out, and says whether it has shown that it finishes without a question. What it was given and has not
    /// taken is refused by being dropped.
    pub(super) fn leave(&mut self, number: u64, end: End, now: Instant) -> bool {
        let Some(seat) = self.seats.remove(&number) else { return false };
        self.forget_gone(now);
        match end {
            End::Answered | End::Unsent => self.rule_out(number),
            // It may have been the one: that it is gone does not make another the one that asked.
            End::Abandoned => {
                self.gone.push_back((number, now + LINGERS));
                self.settle();
            }
        }
        !seat.asked && end == End::Answered
    }

    /// The call has not asked what is held.
    fn rule_out(&mut self, number: u64) {
        self.held.iter_mut().for_each(|held| held.candidates.retain(|candidate| *candidate != number));
        self.settle();
    }

    /// Gives what is held to the last one that may have asked it. Where nobody is left who may have, it is dropped, which
    /// refuses it.
    fn settle(&mut self) {
        for held in std::mem::take(&mut self.held) {
            let present = |number: &u64| self.seats.contains_key(number);
            match held.candidates.as_slice() {
                candidates if !candidates.iter().any(present) => {}
                [one] => self.give(*one, held.question),
                [..] => self.held.push_back(held),
            }
        }
        self.wake_first();
    }

    pub(super) fn give(&mut self, number: u64, question: Given<Q>) {
        if let Some(seat) = self.seat(number) {
            seat.asked = true;
            seat.queue.push_back(Beside::Question(question));
            seat.woken.notify_one();
        }
    }

    fn seat(&mut self, number: u64) -> Option<&mut Entry<Q>> {
        self.seats.get_mut(&number)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
