//! An array of messages, as 2025-03-26 has it.
//!
//! Owns taking it apart, running its requests side by side, and putting the answers together: an array in JSON where all of
//! them come soon, one event stream where anything comes before the last of them or they take longer. The checks of the array
//! as a whole stand in `check`. Rules: A12.4, A14.1, B16; vector D81.

use super::super::check;
use super::super::session::{Track, Use};
use super::local::Local;
use super::pump::{Hold, Live, Pump};
use super::{Asked, Place, respond};
use crate::downstream::FrontBody;
use crate::downstream::ends::Ends;
use crate::downstream::front::Inner;
use crate::downstream::modern::check::Refusal;
use crate::downstream::modern::respond::{json, stream};
use crate::downstream::record::Record;
use crate::exchange::{Fault, FaultKind, LOST, Outcome, Step};
use crate::relay::Exchange;
use crate::telemetry::metrics::Ended;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Id, Message, Request, code};
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::{Response, StatusCode};
use smallvec::SmallVec;
use std::pin::pin;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

impl Inner {
    pub(super) async fn bridged_array(
        &self,
        asked: &Asked<'_>,
        text: &Bytes,
        record: &mut Record,
        place: &mut Place,
    ) -> Result<Response<FrontBody>, Refusal> {
        let limits = Limits { nesting: self.limits.nesting, members: self.limits.members };
        let session = self.session(asked, None).await?;
        if session.client.revision != LegacyRevision::V2025_03_26 {
            let text = "JSON-RPC batches are of 2025-03-26 alone; send one message in one request";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "batch", text));
        }
        let mut answers = Vec::new();
        let mut running = Vec::new();
        for item in check::items(text, limits)? {
            // It was read before, with the same bounds.
            let Ok(message) = jsonrpc::parse(text.slice(item.range()), limits) else { continue };
            match message {
                Message::Request(request) => {
                    self.one(asked, &session, request, &mut answers, &mut running, record, place).await;
                }
                Message::Notification(told) => {
                    if let Err(fault) = self.heard(asked, &session, &told).await {
                        tracing::warn!(%fault, method = %told.method, "a notification did not reach the server");
                    }
                }
                Message::Response(answer) => {
                    session.answer(asked.reply(answer));
                }
            }
        }
        if answers.is_empty() && running.is_empty() {
            record.outcome(Ended::Accepted);
            return Ok(respond::accepted());
        }
        self.together(asked, session, answers, running, record).await
    }

    /// One request of the array.
    #[allow(clippy::too_many_arguments, reason = "one caller")]
    async fn one(
        &self,
        asked: &Asked<'_>,
        session: &Use,
        request: Request,
        answers: &mut Vec<(Id, Payload)>,
        running: &mut Vec<Live>,
        record: &Record,
        place: &mut Place,
    ) {
        if let Err(refusal) = super::decides_once(&request) {
            let told = jsonrpc::error(Some(&request.id), refusal.code, &refusal.text, None);
            answers.push((request.id, Payload::from(told)));
            return;
        }
        match self.local(asked, session, &request).await {
            Local::Answer(message, _) => answers.push((request.id, message)),
            Local::Fault(fault) => {
                let told = respond::in_band(Outcome::Fault(fault), &request.id).0;
                answers.push((request.id, told));
            }
            Local::Call => {
                // Each is a request in work; the first one has the place of the array.
                let Some(place) = place.take().or_else(|| self.place()) else {
                    let full =
                        Fault::new(FaultKind::Busy, "the proxy has as many requests in work as it may");
                    answers.push((request.id.clone(), respond::in_band(Outcome::Fault(full), &request.id).0));
                    return;
                };
                let call = asked.call(asked.headers.clone(), request, record);
                running.push(self.live(asked, session.clone(), call, Some(place), true));
            }
        }
    }

    async fn together(
        &self,
        asked: &Asked<'_>,
        session: Use,
        mut answers: Vec<(Id, Payload)>,
        mut running: Vec<Live>,
        record: &mut Record,
    ) -> Result<Response<FrontBody>, Refusal> {
        let accepts = asked.accepts;
        let mut ids: SmallVec<[Id; 4]> = answers.iter().map(|(id, _)| id.clone()).collect();
        ids.extend(running.iter_mut().filter_map(|live| live.parts().map(|(_, hold)| hold.id.clone())));
        let mut steps: FuturesUnordered<_> = running.into_iter().map(next).collect();
        let mut patience = pin!(sleep(self.timeouts.hold));
        let mut first = None;
        while first.is_none() {
            let (live, came) = tokio::select! {
                biased;
                step = steps.next() => match step {
                    Some(step) => step,
                    // All were cancelled.
                    None if answers.is_empty() => {
                        record.outcome(Ended::Cancelled);
                        return Ok(respond::accepted());
                    }
                    None if accepts.json => {
                        record.outcome(Ended::Result);
                        return Ok(json(StatusCode::OK, array(&answers)));
                    }
                    None => break,
                },
                () = &mut patience, if accepts.event_stream => break,
            };
            match came {
                Came::Nothing => {
                    if let Some((_, hold)) = live.take() {
                        if hold.entered.session_has_ended() {
                            answers.push((hold.id.clone(), respond::in_band(ended(), &hold.id).0));
                        } else {
                            ids.retain(|id| *id != hold.id);
                        }
                    }
                }
                Came::Step(Step::Outcome(outcome)) => {
                    if let Some((_, hold)) = live.take() {
                        answers.push((hold.id.clone(), respond::in_band(outcome, &hold.id).0));
                    }
                }
                Came::Step(step) if accepts.event_stream => first = Some((live, step)),
                // A client that takes only JSON gets only answers, and no pieces of one.
                Came::Step(_) => steps.push(next(live)),
            }
        }
        let track = session.track(ids);
        let reader = track.reader();
        let shutdown = self.shutdown.clone();
        let patience = asked.upstream.settings.timeouts.request;
        let work = async move {
            // Beside the calls, which go on also where the client reads nothing.
            let mut said = pin!(timeout(patience, async {
                for (id, answer) in &answers {
                    track.answer(id, answer, Ended::Result).await;
                }
            }));
            let mut saying = true;
            let begun = first.and_then(|(live, step)| Some((live.take()?, Some(step))));
            // Those that wait for their next step are taken up where they are.
            let mut all = FuturesUnordered::new();
            if let Some((parts, step)) = begun {
                all.push(pumped(parts, step, &track, &shutdown));
            }
            loop {
                tokio::select! {
                    Some((live, came)) = steps.next() => match (live.take(), came) {
                        (Some(parts), Came::Step(step)) => {
                            all.push(pumped(parts, Some(step), &track, &shutdown));
                        }
                        // Without an answer, as its client wishes; unless it was the session that ended.
                        (Some((_, hold)), Came::Nothing) if !hold.entered.session_has_ended() => {
                            track.forgive(&hold.id);
                        }
                        (_, Came::Step(_) | Came::Nothing) => {}
                    },
                    Some(_) = all.next() => {}
                    _ = &mut said, if saying => saying = false,
                    else => break,
                }
            }
            drop(all);
            track.finish(LOST, Ended::Result);
        };
        // Owned by the tracker; ends with the calls.
        drop(self.shutdown.spawn(work.in_current_span()));
        let ends = Ends::after_last_words(self.shutdown.clone());
        Ok(stream(FrontBody::reading(reader, self.timeouts.keep_alive, ends)))
    }
}

/// How a call ends with its session.
fn ended() -> Outcome {
    Outcome::Fault(Fault::new(FaultKind::Internal, "the session was ended before this request was answered"))
}

enum Came {
    Step(Step),
    /// It was cancelled, and has no answer.
    Nothing,
}

/// The next step of one call, and the call. Dropped in the middle, the call goes on by itself.
async fn next(mut live: Live) -> (Live, Came) {
    let came = match live.parts() {
        None => Came::Nothing,
        Some((exchange, hold)) => tokio::select! {
            biased;
            step = exchange.next() => step.map_or(Came::Nothing, Came::Step),
            () = hold.entered.cancelled() => Came::Nothing,
        },
    };
    (live, came)
}

async fn pumped(
    (exchange, hold): (Exchange, Hold),
    step: Option<Step>,
    track: &Track,
    shutdown: &crate::shutdown::Shutdown,
) {
    Pump::new(exchange, hold).run(track, step, shutdown).await;
}

/// An array of whole messages.
fn array(messages: &[(Id, Payload)]) -> Payload {
    let mut out = Payload::from("[");
    for (at, (_, message)) in messages.iter().enumerate() {
        if at > 0 {
            out.push(Bytes::from_static(b","));
        }
        message.parts().iter().for_each(|part| out.push(part.clone()));
    }
    out.push(Bytes::from_static(b"]"));
    out
}
