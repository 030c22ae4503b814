//! One call of a legacy client at a modern server, up to the head of its response.
//!
//! Owns the form of the answer: an event stream where the session can be asked something, where anything comes before the
//! answer, or where it takes longer than `timeouts.hold`; JSON otherwise. And what becomes of a session whose server is not
//! modern any more. Does not own the call's further way (`pump`). Rules: A12.17, B2.2, B11, B14; vectors D75, D94.

use super::super::session::Use;
use super::pump::{Hold, Live, Pump};
use super::{Course, Place, respond};
use crate::downstream::FrontBody;
use crate::downstream::ends::Ends;
use crate::downstream::front::Inner;
use crate::downstream::modern::respond::{passing, stream};
use crate::downstream::record::Record;
use crate::exchange::{Call, Fault, LOST, Outcome, Replan, Step};
use crate::telemetry::metrics::Ended;
use crate::upstream::modern::Caller;
use crate::wire::headers::Accepts;
use crate::wire::version::Era;
use bytes::Bytes;
use hyper::Response;
use std::pin::pin;
use std::sync::Arc;
use tokio::time::sleep;
use tracing::Instrument;

/// What the response begins with.
enum First {
    Outcome(Outcome),
    /// A large result for a client that takes JSON.
    Passing(Bytes),
    Stream(Option<Step>),
    Cancelled,
}

impl Inner {
    pub(super) async fn bridged_call(
        &self,
        course: &Course<'_>,
        session: Use,
        call: Arc<Call>,
        record: &mut Record,
        place: &mut Place,
    ) -> Response<FrontBody> {
        let accepts = course.accepts;
        let may_ask = accepts.event_stream && call.method.can_ask() && session.client.can.anything();
        let mut live = self.live(course, session, call.clone(), place.take(), false);
        // Always in the form that a question would have (D94).
        let accepts = if may_ask { Accepts { json: false, ..accepts } } else { accepts };
        let first = self.first_of(&mut live, accepts).await;
        let Some((exchange, hold)) = live.take() else {
            return respond::fault(&Fault::lost(), call.id(), record);
        };
        match first {
            First::Outcome(outcome) => {
                let outcome = match outcome {
                    Outcome::Replan(replan) => match self.replanned(course, &hold, *replan).await {
                        Some(outcome) => outcome,
                        None => {
                            record.outcome(Ended::Refused);
                            return respond::gone(call.id());
                        }
                    },
                    outcome => outcome,
                };
                *place = hold.place;
                respond::outcome(outcome, call.id(), accepts, record)
            }
            First::Passing(piece) => {
                *place = hold.place;
                passing(exchange.detach(), piece, Ends::cut(self.shutdown.clone()))
            }
            First::Cancelled if hold.entered.session_has_ended() => {
                record.outcome(Ended::Refused);
                respond::gone(call.id())
            }
            First::Cancelled => {
                record.outcome(Ended::Cancelled);
                respond::accepted()
            }
            First::Stream(first) => {
                let track = hold.session.track([call.id().clone()]);
                let reader = track.reader();
                let (pump, shutdown) = (Pump::new(exchange, hold), self.shutdown.clone());
                let work = async move {
                    let ended = pump.run(&track, first, &shutdown).await;
                    track.finish(LOST, ended);
                };
                // Owned by the tracker; ends with the call, at its deadline, or when it is cancelled.
                drop(self.shutdown.spawn(work.in_current_span()));
                let ends = Ends::after_last_words(self.shutdown.clone());
                stream(FrontBody::reading(reader, self.timeouts.keep_alive, ends))
            }
        }
    }

    /// Starts a call.
    ///
    /// `whole`: the answer is a part of an array, and has to be held until it is whole.
    pub(super) fn live(
        &self,
        course: &Course<'_>,
        session: Use,
        call: Arc<Call>,
        place: Place,
        whole: bool,
    ) -> Live {
        let caller = Caller {
            client: session.client.clone(),
            // A server without logging is told of no level (A4.4).
            level: session.level().filter(|_| session.offers.logging),
            reachable: course.accepts.event_stream,
            whole,
        };
        let id = call.id().clone();
        let entered = session.enter(&id);
        let exchange = self.relay.bridge(course.upstream, call, caller);
        let hold = Hold { id, entered, session, place, upstream: course.upstream.clone() };
        Live::new(exchange, hold, self.shutdown.clone())
    }

    async fn first_of(&self, live: &mut Live, accepts: Accepts) -> First {
        let lost = || First::Outcome(Outcome::Fault(Fault::lost()));
        let Some((exchange, hold)) = live.parts() else { return lost() };
        let mut patience = pin!(sleep(self.timeouts.hold));
        loop {
            let step = tokio::select! {
                biased;
                step = exchange.next() => step,
                () = hold.entered.cancelled() => return First::Cancelled,
                () = self.shutdown.cut_short() => return First::Outcome(Outcome::Fault(Fault::cut_short())),
                () = &mut patience, if accepts.event_stream => return First::Stream(None),
            };
            match step {
                Some(Step::Outcome(outcome)) => return First::Outcome(outcome),
                Some(Step::Piece(piece)) if accepts.json => return First::Passing(piece),
                Some(step @ (Step::Event(_) | Step::Piece(_))) if accepts.event_stream => {
                    return First::Stream(Some(step));
                }
                // A client that takes only JSON gets only the outcome (C25).
                Some(Step::Event(_) | Step::Piece(_)) => {}
                None => return lost(),
            }
        }
    }

    /// The server refused as one of the other era does: `None` if that is what it is now. The session, which no legacy
    /// server knows, is over then, and its client begins another.
    async fn replanned(&self, course: &Course<'_>, hold: &Hold, replan: Replan) -> Option<Outcome> {
        if !course.upstream.era.contradicted(Era::Modern) {
            return Some(replan.otherwise);
        }
        let look = pin!(course.upstream.era.of(&replan.call));
        match self.in_time(course.deadline, look).await {
            Ok(Era::Modern) | Err(_) => Some(replan.otherwise),
            Ok(Era::Legacy) => {
                course.sessions.end(&hold.session);
                None
            }
        }
    }
}
