//! The channel of one exchange: a bounded row of events, then exactly one outcome.
//!
//! Owns the two rules that keep invariant 1: `finish` consumes the sender, so there is no second outcome; a sender
//! dropped without it reports the call as lost. Dropping the receiver is cancellation; the sender learns of it by
//! `cancelled`. A full row makes the sender wait, which is how a slow client slows its server down.
//!
//! A large result may go through the same row in pieces; `Outcome::Flowed` then says that it was whole and good.
//!
//! Most exchanges carry one outcome and nothing else, so both halves share one small state: a row of events has no memory
//! until there is one.

use super::{Event, Fault, Outcome};
use crate::telemetry::metrics::{Limit, Meter};
use bytes::Bytes;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// One exchange with room for `events` notifications, or pieces of a result, of `bytes` in all that the receiver has
/// not taken yet. One that is larger than that waits until it is alone.
pub fn channel(events: usize, bytes: usize) -> (Sender, Receiver) {
    let shared = Arc::new(Shared { events: events.max(1), bytes: bytes.max(1), state: Mutex::default() });
    (Sender { shared: shared.clone(), meter: None }, Receiver { shared, over: false })
}

#[derive(Debug)]
enum Item {
    Event(Event),
    Piece(Bytes),
}

#[derive(Debug)]
struct Shared {
    /// What may wait at most.
    events: usize,
    bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// With the size that each counts for.
    row: VecDeque<(Item, usize)>,
    waiting: usize,
    outcome: Option<Outcome>,
    sender_gone: bool,
    receiver_gone: bool,
    /// Who waits for a step, for room, and for the receiver to go.
    step: Option<Waker>,
    room: Option<Waker>,
    gone: Option<Waker>,
}

impl Shared {
    /// Nothing that can panic is done under the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_cancelled(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.receiver_gone {
            return Poll::Ready(());
        }
        wait(&mut state.gone, cx);
        Poll::Pending
    }
}

/// Sees whether anybody still waits for the outcome.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
}

impl Watcher {
    /// Ready when nobody waits any more.
    pub fn poll_cancelled(&self, cx: &Context<'_>) -> Poll<()> {
        self.shared.poll_cancelled(cx)
    }
}

/// The driver's half.
#[derive(Debug)]
pub struct Sender {
    shared: Arc<Shared>,
    /// Counts each time the driver has to wait for its client.
    meter: Option<Meter>,
}

impl Sender {
    /// Waits for room. An event for a caller that has gone is dropped: `cancelled` reports that.
    pub async fn event(&self, event: Event) {
        let bytes = event.message().len();
        self.item(Item::Event(event), bytes, self.meter.as_ref()).await;
    }

    /// A piece of the result, which nothing but further pieces and the outcome may follow. Waits for room.
    pub async fn piece(&self, piece: Bytes) {
        let bytes = piece.len();
        // Pieces wait for their client all the time, which is how a result of any size takes little room: not counted.
        self.item(Item::Piece(piece), bytes, None).await;
    }

    /// `meter` counts that there was no room, once.
    async fn item(&self, item: Item, bytes: usize, mut meter: Option<&Meter>) {
        let bytes = bytes.min(self.shared.bytes);
        let mut item = Some(item);
        poll_fn(|cx| self.poll_item(&mut item, bytes, &mut meter, cx)).await;
    }

    fn poll_item(
        &self,
        item: &mut Option<Item>,
        bytes: usize,
        meter: &mut Option<&Meter>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let mut state = self.shared.state();
        if state.receiver_gone {
            return Poll::Ready(());
        }
        let reached = if state.waiting + bytes > self.shared.bytes {
            Some(Limit::EventBytes)
        } else if state.row.len() == self.shared.events {
            Some(Limit::Events)
        } else {
            None
        };
        if let Some(limit) = reached {
            wait(&mut state.room, cx);
            drop(state);
            if let Some(meter) = meter.take() {
                meter.limit(limit);
            }
            return Poll::Pending;
        }
        state.row.extend(item.take().map(|item| (item, bytes)));
        state.waiting += bytes;
        let step = state.step.take();
        drop(state);
        wake(step);
        Poll::Ready(())
    }

    /// Says where waiting for the client is counted.
    pub fn metered(mut self, meter: Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Resolves when nobody waits for the outcome any more.
    pub async fn cancelled(&self) {
        poll_fn(|cx| self.shared.poll_cancelled(cx)).await;
    }

    /// Says the same where the sender itself is out of reach. One of both may be waited for at a time.
    pub fn watcher(&self) -> Watcher {
        Watcher { shared: self.shared.clone() }
    }

    pub fn finish(self, outcome: Outcome) {
        // A caller that has gone does not need it.
        self.shared.state().outcome = Some(outcome);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.sender_gone = true;
        let step = state.step.take();
        drop(state);
        wake(step);
    }
}

/// The caller's half.
#[derive(Debug)]
pub struct Receiver {
    shared: Arc<Shared>,
    /// The outcome has been handed out.
    over: bool,
}

/// What came next.
#[derive(Debug)]
pub enum Step {
    Event(Event),
    /// Of the result.
    Piece(Bytes),
    Outcome(Outcome),
}

impl Receiver {
    /// The next step; `None` after the outcome. Whoever stops waiting loses nothing.
    pub async fn next(&mut self) -> Option<Step> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`next`](Self::next), for a body that is polled.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        if self.over {
            return Poll::Ready(None);
        }
        let mut state = self.shared.state();
        if let Some((item, bytes)) = state.row.pop_front() {
            state.waiting -= bytes;
            let room = state.room.take();
            drop(state);
            wake(room);
            return Poll::Ready(Some(match item {
                Item::Event(event) => Step::Event(event),
                Item::Piece(piece) => Step::Piece(piece),
            }));
        }
        if !state.sender_gone {
            wait(&mut state.step, cx);
            return Poll::Pending;
        }
        let outcome = state.outcome.take();
        drop(state);
        self.over = true;
        Poll::Ready(Some(Step::Outcome(outcome.unwrap_or_else(|| Outcome::Fault(Fault::lost())))))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.receiver_gone = true;
        let (row, outcome) = (std::mem::take(&mut state.row), state.outcome.take());
        let (room, gone) = (state.room.take(), state.gone.take());
        drop(state);
        drop((row, outcome));
        wake(room);
        wake(gone);
    }
}

fn wait(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::super::FaultKind;
    use super::*;
    use crate::wire::payload::Payload;

    fn event(text: &str) -> Event {
        Event::Progress(Payload::from(text.to_owned()))
    }

    #[tokio::test]
    async fn events_come_before_the_outcome_and_nothing_after_it() {
        let (sender, mut receiver) = channel(2, 1024);
        sender.event(event("a")).await;
        sender.event(event("b")).await;
        sender.finish(Outcome::Result(Payload::default()));
        assert!(matches!(receiver.next().await, Some(Step::Event(e)) if e.message().to_bytes() == "a"));
        assert!(matches!(receiver.next().await, Some(Step::Event(_))));
        assert!(matches!(receiver.next().await, Some(Step::Outcome(Outcome::Result(_)))));
        assert!(receiver.next().await.is_none());
    }

    #[tokio::test]
    async fn a_dropped_sender_is_a_lost_call_and_a_dropped_receiver_a_cancellation() {
        let (sender, mut receiver) = channel(1, 1024);
        drop(sender);
        assert!(matches!(
            receiver.next().await,
            Some(Step::Outcome(Outcome::Fault(Fault { kind: FaultKind::Internal, .. })))
        ));
        let (sender, receiver) = channel(1, 1024);
        drop(receiver);
        sender.cancelled().await;
        sender.event(event("a")).await;
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_wait_are_bounded_and_a_large_event_goes_alone() {
        let (sender, mut receiver) = channel(8, 10);
        sender.event(event("12345678")).await;
        let second = sender.event(event("a larger one than there is room for"));
        let waited = tokio::time::timeout(std::time::Duration::from_secs(1), second).await;
        assert!(waited.is_err(), "no room yet");
        assert!(receiver.next().await.is_some());
        sender.event(event("a larger one than there is room for")).await;
        assert!(receiver.next().await.is_some());
    }

    #[tokio::test]
    async fn each_half_wakes_the_other_and_what_waited_is_kept() {
        let (sender, mut receiver) = channel(1, 1024);
        let driver = tokio::spawn(async move {
            for text in ["a", "b", "c"] {
                sender.event(event(text)).await;
            }
            sender.finish(Outcome::Result(Payload::from("d")));
        });
        for text in ["a", "b", "c"] {
            assert!(matches!(receiver.next().await, Some(Step::Event(e)) if e.message().to_bytes() == text));
        }
        assert!(matches!(receiver.next().await, Some(Step::Outcome(Outcome::Result(_)))));
        driver.await.unwrap();
        let (sender, receiver) = channel(1, 1024);
        sender.event(event("a")).await;
        let waiting = tokio::spawn(async move {
            let full = sender.event(event("b"));
            tokio::join!(full, sender.cancelled());
        });
        tokio::task::yield_now().await;
        drop(receiver);
        waiting.await.unwrap();
    }
}
