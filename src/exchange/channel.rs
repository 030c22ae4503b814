//! The channel of one exchange: a bounded row of events, then exactly one outcome.
//!
//! Owns the two rules that keep invariant 1: `finish` consumes the sender, so there is no second outcome; a sender
//! dropped without it reports the call as lost. Dropping the receiver is cancellation; the sender learns of it by
//! `cancelled`. A full row makes the sender wait, which is how a slow client slows its server down.
//!
//! A large result may go through the same row in pieces; `Outcome::Flowed` then says that it was whole and good.

use super::{Event, Fault, FaultKind, Outcome};
use crate::telemetry::metrics::{Limit, Meter};
use bytes::Bytes;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// One exchange with room for `events` notifications, or pieces of a result, of `bytes` in all that the receiver has
/// not taken yet. One that is larger than that waits until it is alone.
pub fn channel(events: usize, bytes: usize) -> (Sender, Receiver) {
    let (event_tx, event_rx) = mpsc::channel(events.max(1));
    let (outcome_tx, outcome_rx) = oneshot::channel();
    let most = u32::try_from(bytes.clamp(1, Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
    let room = Arc::new(Semaphore::new(most as usize));
    let sender = Sender { events: event_tx, outcome: outcome_tx, room, most, meter: None };
    (sender, Receiver { events: event_rx, outcome: Some(outcome_rx) })
}

#[derive(Debug)]
enum Item {
    Event(Event),
    Piece(Bytes),
}

/// The driver's half.
#[derive(Debug)]
pub struct Sender {
    events: mpsc::Sender<(Item, OwnedSemaphorePermit)>,
    outcome: oneshot::Sender<Outcome>,
    /// Bytes that may still wait.
    room: Arc<Semaphore>,
    most: u32,
    /// Counts each time the driver has to wait for its client.
    meter: Option<Meter>,
}

impl Sender {
    /// Waits for room. An event for a caller that has gone is dropped: `cancelled` reports that.
    pub async fn event(&self, event: Event) {
        let bytes = event.message().len();
        self.count_wait(bytes);
        self.item(Item::Event(event), bytes).await;
    }

    /// A piece of the result, which nothing but further pieces and the outcome may follow. Waits for room.
    pub async fn piece(&self, piece: Bytes) {
        let bytes = piece.len();
        self.item(Item::Piece(piece), bytes).await;
    }

    async fn item(&self, item: Item, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.most);
        tokio::select! {
            biased;
            () = self.events.closed() => {}
            // The row is never closed by us, so there is room in time or the caller goes.
            Ok(place) = self.room.clone().acquire_many_owned(bytes) => {
                let _ = self.events.send((item, place)).await;
            }
        }
    }

    /// Says where waiting for the client is counted.
    pub fn metered(mut self, meter: Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Of events alone: pieces wait for their client all the time, which is how a result of any size takes little room.
    fn count_wait(&self, bytes: usize) {
        let Some(meter) = self.meter.as_ref().filter(|_| !self.events.is_closed()) else { return };
        if self.room.available_permits() < bytes.min(self.most as usize) {
            meter.limit(Limit::EventBytes);
        } else if self.events.capacity() == 0 {
            meter.limit(Limit::Events);
        }
    }

    /// Resolves when nobody waits for the outcome any more.
    pub async fn cancelled(&self) {
        self.events.closed().await;
    }

    pub fn finish(self, outcome: Outcome) {
        // A caller that has gone does not need it.
        let _ = self.outcome.send(outcome);
    }
}

/// The caller's half.
#[derive(Debug)]
pub struct Receiver {
    events: mpsc::Receiver<(Item, OwnedSemaphorePermit)>,
    /// Taken when the outcome has been handed out.
    outcome: Option<oneshot::Receiver<Outcome>>,
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
        let Some(outcome) = self.outcome.as_mut() else { return Poll::Ready(None) };
        // The sender hands over the outcome before it gives up its events, so the row runs dry first.
        if let Some((item, _place)) = ready!(self.events.poll_recv(cx)) {
            return Poll::Ready(Some(match item {
                Item::Event(event) => Step::Event(event),
                Item::Piece(piece) => Step::Piece(piece),
            }));
        }
        let outcome = ready!(Pin::new(outcome).poll(cx)).unwrap_or_else(|_| Outcome::Fault(Fault::lost()));
        self.outcome = None;
        Poll::Ready(Some(Step::Outcome(outcome)))
    }
}

impl Fault {
    fn lost() -> Self {
        Fault::new(FaultKind::Internal, "the proxy was stopped, or lost track of this call")
    }
}

#[cfg(test)]
mod tests {
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
}
