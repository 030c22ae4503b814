//! The channel of one exchange: a bounded row of events, then exactly one outcome.
//!
//! Owns the two rules that keep invariant 1: `finish` consumes the sender, so there is no second outcome; a sender
//! dropped without it reports the call as lost. Dropping the receiver is cancellation; the sender learns of it by
//! `cancelled`. A full row makes the sender wait, which is how a slow client slows its server down.

use super::{Event, Fault, FaultKind, Outcome};
use tokio::sync::{mpsc, oneshot};

/// One exchange with room for `events` notifications that the receiver has not taken yet.
pub fn channel(events: usize) -> (Sender, Receiver) {
    let (event_tx, event_rx) = mpsc::channel(events.max(1));
    let (outcome_tx, outcome_rx) = oneshot::channel();
    let sender = Sender { events: event_tx, outcome: outcome_tx };
    (sender, Receiver { events: event_rx, outcome: Some(outcome_rx) })
}

/// The driver's half.
#[derive(Debug)]
pub struct Sender {
    events: mpsc::Sender<Event>,
    outcome: oneshot::Sender<Outcome>,
}

impl Sender {
    /// Waits for room. An event for a caller that has gone is dropped: `cancelled` reports that.
    pub async fn event(&self, event: Event) {
        let _ = self.events.send(event).await;
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
    events: mpsc::Receiver<Event>,
    /// Taken when the outcome has been handed out.
    outcome: Option<oneshot::Receiver<Outcome>>,
}

/// What came next.
#[derive(Debug)]
pub enum Step {
    Event(Event),
    Outcome(Outcome),
}

impl Receiver {
    /// The next step; `None` after the outcome.
    pub async fn next(&mut self) -> Option<Step> {
        self.outcome.as_ref()?;
        // The sender gives up its events before it hands over the outcome, so the row runs dry first.
        if let Some(event) = self.events.recv().await {
            return Some(Step::Event(event));
        }
        // Taken only once it is there, so that a caller who gives up waiting here loses nothing.
        let outcome = self.outcome.as_mut()?.await.unwrap_or_else(|_| Outcome::Fault(Fault::lost()));
        self.outcome = None;
        Some(Step::Outcome(outcome))
    }

    /// The next event if one is ready now.
    pub fn ready_event(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }
}

impl Fault {
    fn lost() -> Self {
        Fault::new(FaultKind::Internal, "the proxy lost track of this call")
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
        let (sender, mut receiver) = channel(2);
        sender.event(event("a")).await;
        sender.event(event("b")).await;
        sender.finish(Outcome::Result(Payload::default()));
        assert!(matches!(receiver.next().await, Some(Step::Event(e)) if e.message().to_bytes() == "a"));
        assert!(receiver.ready_event().is_some());
        assert!(matches!(receiver.next().await, Some(Step::Outcome(Outcome::Result(_)))));
        assert!(receiver.next().await.is_none());
    }

    #[tokio::test]
    async fn a_dropped_sender_is_a_lost_call_and_a_dropped_receiver_a_cancellation() {
        let (sender, mut receiver) = channel(1);
        drop(sender);
        assert!(matches!(
            receiver.next().await,
            Some(Step::Outcome(Outcome::Fault(Fault { kind: FaultKind::Internal, .. })))
        ));
        let (sender, receiver) = channel(1);
        drop(receiver);
        sender.cancelled().await;
        sender.event(event("a")).await;
    }
}
