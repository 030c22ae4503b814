//! One call in a session, from the first byte sent to its one outcome.
//!
//! Owns sending it at most once unless the server proved that it did not run it (invariant 3): `attempt` sends, `stream`
//! reads what comes, `reopen` takes the stream up again when the server closes it early (D104), `outcome` says what the
//! answer is to the caller, `flow` passes a large one on, `rounds` asks the client what the server asks and goes on with its
//! answers, `required` does so for a server that refuses until a page was visited. One future lives as long as the call, over
//! all requests of the client that wait for it one after another (`turn`). Does not own the session, which it leases and
//! gives back, nor the registry of those who wait (`parked`).
//! Rules: A12.19, B1, B4.1, B14.

mod asking;
mod flow;
mod outcome;
mod reopen;
mod required;
mod rounds;
mod stream;
mod waits;

pub(super) use asking::Asking;
pub(super) use rounds::owner;

use super::ask::Asker;
use super::at_work::{AtWork, Sent};
use super::attribution::Seat;
use super::level;
use super::lookup;
use super::pool::Lease;
use super::session::NoSeat;
use super::turn::{Over, Turn, Watch};
use super::{Legacy, Session};
use crate::exchange::{Call, Fault, FaultKind, Outcome, Replan, Sender};
use crate::telemetry::metrics::UpstreamLimit;
use crate::translate::question::Question;
use crate::translate::request;
use crate::wire::version::Era;
use std::pin::pin;
use std::sync::Arc;
use stream::Stream;

/// Why an attempt gave no outcome.
enum Trouble {
    Lost,
    /// The session was lost before the call's turn in it came.
    LostWaiting,
    /// How the call ended if it turns out that the era is what it was.
    OtherEra(Outcome),
    Fault(Fault),
    /// Nothing of it has run, and what it takes to run is there now (B4.1).
    Again,
    /// Nobody waits for it, or will; why.
    Left(&'static str),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}

enum End {
    Outcome(Outcome),
    Left(&'static str),
}

pub(super) async fn run(legacy: Arc<Legacy>, call: Arc<Call>, lease: Lease, sender: Sender) {
    let mut at_work = AtWork::new(&legacy, &call, lease);
    let Some(sent) = &mut at_work.sent else { return };
    let (mut turn, watch) = Turn::first(call, sender);
    // Looked at afterwards, so by references that end before.
    let end = {
        let work = pin!(attempts(&legacy, &mut turn, &watch, sent));
        watch.run(work).await
    };
    let outcome = match end {
        Ok(End::Outcome(outcome)) => {
            at_work.reason = "the proxy has given up on the call";
            outcome
        }
        Ok(End::Left(reason)) => {
            at_work.reason = reason;
            return;
        }
        Err(Over::Gone) => return,
        Err(Over::Late) => {
            at_work.reason = "timed out";
            sent.abandoned = true;
            Outcome::Fault(late(&legacy, sent))
        }
    };
    sent.asking.finish(&outcome, legacy.shared.settings.timeouts.replay);
    at_work.sent.take_if(|sent| !sent.abandoned);
    turn.finish(&watch, outcome);
}

fn late(legacy: &Legacy, sent: &Sent) -> Fault {
    let text = match sent.number {
        Some(_) => "the upstream server did not answer in time",
        None if sent.in_line => {
            tracing::warn!(
                upstream = %legacy.shared.settings.name,
                "a call waited for its turn in its session until its time was over and was not sent; session.max_per_key lets \
                 more sessions be opened, session.scope = \"request\" gives each call one of its own"
            );
            "the call could not be sent in time, and has not run: others of its session have to be done first \
             (session.max_per_key, session.scope)"
        }
        None => "the call could not be sent in time, and has not run",
    };
    Fault::new(FaultKind::Timeout, text)
}

async fn attempts(legacy: &Arc<Legacy>, turn: &mut Turn, watch: &Watch, sent: &mut Sent) -> End {
    let mut renewed = false;
    loop {
        let lost = match attempt(legacy, turn, watch, sent).await {
            Ok(outcome) => return End::Outcome(outcome),
            Err(Trouble::Left(reason)) => return End::Left(reason),
            Err(Trouble::Fault(fault)) => {
                sent.abandoned = true;
                return End::Outcome(Outcome::Fault(fault));
            }
            // A call that its client was asked about is no other era's any more.
            Err(Trouble::OtherEra(otherwise)) if sent.asking.has_asked() => {
                sent.number = None;
                return End::Outcome(otherwise);
            }
            Err(Trouble::OtherEra(otherwise)) => {
                sent.number = None;
                let call = turn.call.clone();
                return End::Outcome(Outcome::Replan(Box::new(Replan { call, otherwise })));
            }
            Err(Trouble::Again) => None,
            Err(Trouble::Lost) => Some(true),
            Err(Trouble::LostWaiting) => Some(false),
        };
        // The server has refused it, so there is nothing to cancel.
        sent.number = None;
        let Some(refused) = lost else { continue };
        legacy.pool.lost(&mut sent.lease);
        if refused && renewed {
            return End::Outcome(Outcome::Fault(Fault::bad_gateway(
                "the upstream server lost the session again right after a new one",
            )));
        }
        renewed |= refused;
        match Box::pin(legacy.lease(&turn.call)).await {
            Ok(lease) => {
                sent.lease = lease;
                legacy.shared.metrics.call_resent();
            }
            Err(open) if open.refused && !sent.asking.has_asked() => {
                let (call, otherwise) = (turn.call.clone(), Outcome::Fault(open.fault));
                return End::Outcome(Outcome::Replan(Box::new(Replan { call, otherwise })));
            }
            Err(open) => return End::Outcome(Outcome::Fault(open.fault)),
        }
    }
}

/// Waits until the call may be sent, if the server may ask it something (B5).
async fn seat(legacy: &Legacy, session: &Session, call: &Call) -> Result<Option<Seat<Question>>, Trouble> {
    if !call.method.can_ask() || !session.can_be_asked() {
        return Ok(None);
    }
    let shared = &legacy.shared;
    Box::pin(session.seat(shared.settings.timeouts.stream)).await.map_err(|none| match none {
        NoSeat::Lost => Trouble::LostWaiting,
        NoSeat::Full => {
            shared.metrics.limit(UpstreamLimit::WaitingCalls);
            tracing::warn!(
                upstream = %shared.settings.name,
                "too many calls wait for their turn at a server that asks outside its calls' streams; raise session.max_per_key or limits.waiting_calls"
            );
            let text = "the server asks outside its calls, so they run one at a time, and too many wait (limits.waiting_calls)";
            Fault::new(FaultKind::Busy, text).into()
        }
    })
}

async fn attempt(
    legacy: &Arc<Legacy>,
    turn: &mut Turn,
    watch: &Watch,
    sent: &mut Sent,
) -> Result<Outcome, Trouble> {
    let shared = &legacy.shared;
    let session = sent.lease.session().clone();
    let number = shared.next_number();
    let aside = turn.wants.aside(&session, number);
    let call = turn.call.clone();
    if turn.wants.log.is_some() {
        let asker = Asker { legacy, session: &session, principal: call.principal, headers: &call.headers };
        Box::pin(level::settle(&asker)).await;
    }
    if let Some(outcome) = lookup::settle(legacy, &sent.lease, &call).await {
        return Ok(outcome);
    }
    sent.in_line = true;
    let seat = seat(legacy, &session, &call).await;
    sent.in_line = false;
    let seat = seat?;
    sent.seat = seat.as_ref().map(Seat::number);
    let body = request::to_legacy(&call.request, call.method, session.initialized.revision, number);
    sent.number = Some(number);
    let waiting = Some(call.meter.sent(Era::Legacy));
    // The request is given away: a call that waits for its client keeps nothing of what it was asked with.
    let mut stream = Stream::new(legacy, session, turn, watch, sent, number, aside, seat, waiting);
    stream.follow(call, body).await
}
