//! A call that goes on without the HTTP request that brought it.
//!
//! Owns the two reasons for that: the call's answer is an event stream, which the client may leave and take up again, so a
//! task moves what comes into the stream's track (`session`); or the client went away before there was a head, which is no
//! cancellation in this era, so the call runs to its end and its outcome is nobody's. Owns also what an explicit
//! cancellation does: the server's part is let go of, and the client is told that its open questions are void.
//! Rules: A2.2, A12.19, B2.2, B2.8, B14; vectors D84, D89, D103.

use super::super::session::{Entered, Track, Use};
use super::{Place, respond};
use crate::exchange::{Event, Fault, FaultKind, Outcome, Receiver, Step};
use crate::relay::Exchange;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{ClientAnswer, Ended};
use crate::translate::legacy_client::notify;
use crate::upstream::Upstream;
use crate::wire::jsonrpc::Id;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use tracing::Instrument;

/// What a call keeps as long as it runs.
pub(super) struct Hold {
    pub(super) id: Id,
    pub(super) entered: Entered,
    pub(super) session: Use,
    pub(super) place: Place,
    pub(super) upstream: Arc<Upstream>,
}

/// A call whose answer has not begun; dropped, it goes on by itself.
pub(super) struct Live {
    parts: Option<(Exchange, Hold)>,
    shutdown: Shutdown,
}

impl Live {
    pub(super) fn new(exchange: Exchange, hold: Hold, shutdown: Shutdown) -> Self {
        Self { parts: Some((exchange, hold)), shutdown }
    }

    pub(super) fn parts(&mut self) -> Option<(&mut Exchange, &Hold)> {
        self.parts.as_mut().map(|(exchange, hold)| (exchange, &*hold))
    }

    /// From here on it is the caller's.
    pub(super) fn take(mut self) -> Option<(Exchange, Hold)> {
        self.parts.take()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some((exchange, hold)) = self.parts.take() {
            // Owned by the tracker; ends with the call, at its deadline, or when it is cancelled.
            drop(self.shutdown.spawn(alone(exchange, hold).in_current_span()));
        }
    }
}

/// Runs a call to its end for nobody. What it asks cannot be answered, which dropping the question says.
async fn alone(mut exchange: Exchange, hold: Hold) {
    tracing::debug!("the client has gone before its answer began; the call goes on");
    let end = async {
        while let Some(step) = exchange.next().await {
            if let Step::Outcome(_) = step {
                return;
            }
        }
    };
    tokio::select! {
        () = hold.entered.cancelled() => {}
        () = end => {}
    }
}

/// One call, into a track, which may be that of others too.
pub(super) struct Pump {
    steps: Receiver,
    hold: Hold,
    /// How long it waits for a client that reads nothing.
    patience: Duration,
    /// Questions that are with the client.
    open: SmallVec<[u64; 2]>,
    /// The result has begun to pass.
    passing: bool,
}

impl Pump {
    /// The call itself goes on in a task of its own, so that a client who reads slowly holds up neither its deadline nor the
    /// answers to its server.
    pub(super) fn new(exchange: Exchange, hold: Hold) -> Self {
        let patience = hold.upstream.settings.timeouts.request;
        Self { steps: exchange.detach(), hold, patience, open: SmallVec::new(), passing: false }
    }

    /// Moves everything up to the outcome; `first` has come already. How it ended.
    pub(super) async fn run(mut self, track: &Track, first: Option<Step>, shutdown: &Shutdown) -> Ended {
        let mut next = first;
        loop {
            let step = match next.take() {
                Some(step) => Some(step),
                None => tokio::select! {
                    biased;
                    () = self.hold.entered.cancelled() => return self.cancelled(track),
                    step = self.steps.next() => step,
                    () = shutdown.cut_short() => Some(Step::Outcome(Outcome::Fault(Fault::cut_short()))),
                },
            };
            let (taken_back, patience) = (self.hold.entered.signal(), self.patience);
            let over = tokio::select! {
                biased;
                over = self.step(step, track) => over,
                // A client that reads nothing may cancel all the same.
                () = taken_back.cancelled() => return self.cancelled(track),
                () = sleep(patience) => {
                    tracing::debug!("the client has read nothing for too long; its call is given up");
                    return Ended::BrokenOff;
                }
            };
            if let Some(ended) = over {
                return ended;
            }
        }
    }

    /// `Some` once it is over.
    async fn step(&mut self, step: Option<Step>, track: &Track) -> Option<Ended> {
        match step {
            Some(Step::Event(Event::Ask(ask))) => {
                // Before it is out, so that no answer finds nothing.
                self.hold.session.ask(ask.id, ask.answer);
                self.open.push(ask.id);
                // While its client is asked it is among the parked calls (limits.parked), not among the requests in work: the
                // answers need places there.
                self.hold.place = None;
                track.ask(ask.id, &ask.message).await;
            }
            Some(Step::Event(Event::Withdrawn(id, message))) => {
                self.open.retain(|open| *open != id);
                // One that was answered by now is not taken back.
                if self.hold.session.withdraw(id) {
                    track.take_back(id, &message);
                }
            }
            Some(Step::Event(event)) => track.push(event.message()).await,
            Some(Step::Piece(piece)) => {
                self.passing = true;
                track.piece(&self.hold.id, &piece).await;
            }
            Some(Step::Outcome(outcome)) if self.passing => {
                let whole = matches!(outcome, Outcome::Flowed);
                track.end_pieces(whole);
                return Some(if whole { Ended::Result } else { Ended::BrokenOff });
            }
            Some(Step::Outcome(outcome)) => {
                if let Outcome::Fault(
                    fault @ Fault { kind: FaultKind::BadGateway | FaultKind::Timeout, .. },
                ) = &outcome
                {
                    tracing::warn!(reason = %fault.text, "no answer of the server");
                }
                let (message, ended) = respond::in_band(outcome, &self.hold.id);
                // It is no request in work any more, however long its client takes.
                self.hold.place = None;
                track.answer(&self.hold.id, &message, ended).await;
                return Some(ended);
            }
            None => return Some(Ended::Internal),
        }
        None
    }

    /// No response is sent for a cancelled call; its questions are void.
    fn cancelled(&mut self, track: &Track) -> Ended {
        for id in std::mem::take(&mut self.open) {
            if self.hold.session.withdraw(id) {
                self.hold.upstream.metrics.client_answer(ClientAnswer::Cancelled);
                track.take_back(id, &notify::cancelled(id, "the request that asked it was cancelled"));
            }
        }
        track.forgive(&self.hold.id);
        Ended::Cancelled
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        for id in &self.open {
            self.hold.session.withdraw(*id);
        }
    }
}
