//! The client's GET stream in its shielded session, which stays open while the server's ends, breaks or is lost.
//!
//! Owns opening it, following the server's streams one after the other, and when there is none to follow any more. A loss
//! that a GET alone tells of is believed once a POST confirms it (C08). A stream that the client takes up again ends with the
//! answer that was missed, or with the error that there will be none. Rules: A12.14, A13.5, B8.3; cases C08, C10, C16.

use super::super::super::backoff::Backoff;
use super::super::super::reply::{self, Refusal, UpstreamBody, content_type};
use super::super::gate::{self, Gate};
use super::super::relay::{self, Carries, Passage, Passed};
use super::events::{self, Events};
use super::held::{Feeder, held};
use super::session::{Leg, Use};
use super::{Shield, call, renew};
use crate::exchange::Fault;
use crate::telemetry::metrics::StreamKind;
use crate::upstream::transport::Body;
use crate::wire::headers::{ContentType, LAST_EVENT_ID};
use crate::wire::jsonrpc::Message;
use crate::wire::payload::Payload;
use crate::wire::sse::Event;
use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A stream that lived this long, or on which something came, stood.
const STOOD: Duration = Duration::from_secs(1);

/// How often, and after which pauses, a client's GET is tried that a former one stands in the way of.
const TRIES: usize = 5;
const UNTIL_NOTICED: Duration = Duration::from_millis(200);

/// What a GET comes to.
enum Opened {
    Stream(Response<Body>),
    Lost,
    /// Not just now.
    Later(Fault),
    /// The server has not noticed yet that the former stream is over (409).
    Taken,
    /// The server's own answer.
    Passed(Passed),
}

pub(super) async fn open(shield: &Arc<Shield>, session: Use, passage: &Passage) -> Result<Passed, Fault> {
    let headers = &passage.headers;
    let mut leg = session.leg();
    // An id from before a loss means nothing to the server now: what it was for has its error instead.
    let named = headers.get(LAST_EVENT_ID);
    let mut last = named.and_then(|id| events::at_leg(id, &leg));
    let resumes = named.is_some();
    let mut renewed = false;
    let mut tries = 0;
    let response = loop {
        match get(shield, headers, &leg, last.clone()).await {
            Opened::Stream(response) => break response,
            Opened::Later(fault) => return Err(fault),
            Opened::Passed(passed) => return Ok(passed),
            Opened::Taken if tries < TRIES => {
                tries += 1;
                sleep(UNTIL_NOTICED).await;
            }
            Opened::Taken => {
                let text = "the upstream server still holds another stream of this session open";
                return Ok(super::refusal(StatusCode::CONFLICT, &Carries::Stream, text));
            }
            Opened::Lost if renewed => {
                let text = "the upstream server lost the session again right after a new one";
                return Err(Fault::bad_gateway(text));
            }
            Opened::Lost => {
                (renewed, last) = (true, None);
                leg = shield.renewed(session.session(), &leg, headers).await?;
            }
        }
    };
    let (head, body) = response.into_parts();
    let (feeder, held) = held();
    let (shutdown, ended) = (shield.shared.shutdown.clone(), session.session().clone());
    let watch = Watch {
        shield: shield.clone(),
        session,
        leg,
        headers: headers.clone(),
        feeder: feeder.clone(),
        resumes,
        last: None,
        retry: None,
        answered: false,
    };
    // Owned by the tracker; ends with its client, with the session, with the drain or where the server has no stream.
    drop(shutdown.clone().spawn(async move {
        tokio::select! {
            biased;
            () = feeder.closed() => {}
            () = ended.ended() => {}
            () = shutdown.draining() => {}
            () = watch.run(body) => {}
        }
    }));
    Ok(Passed::Response(Response::from_parts(head, UpstreamBody::Held(held))))
}

async fn get(shield: &Shield, headers: &HeaderMap, leg: &Leg, last: Option<HeaderValue>) -> Opened {
    let shared = &shield.shared;
    let head = call::head(shared, Method::GET, headers, leg, last);
    let response = match relay::send(shared, head, Payload::default()).await {
        Ok(response) => response,
        Err(fault) => return Opened::Later(fault),
    };
    let status = response.status();
    if status.is_success() && content_type(response.headers()) == Some(ContentType::EventStream) {
        return Opened::Stream(response);
    }
    if status == StatusCode::CONFLICT {
        return Opened::Taken;
    }
    if !matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) {
        return match relay::judge(shared, &Carries::Stream, response).await {
            Ok(passed) => Opened::Passed(passed),
            Err(fault) => Opened::Later(fault),
        };
    }
    let (head, body) = response.into_parts();
    let refusal = Refusal::read(status, head.headers.clone(), body, shared.limits).await;
    if gate::judge(&refusal, None, leg.id.is_some()) == Gate::Lost {
        match renew::is_lost(shield, leg, headers).await {
            Some(true) => return Opened::Lost,
            Some(false) => {}
            None => return Opened::Later(refusal.fault("the request for its stream")),
        }
    }
    // In words of the proxy's own: the server's are about a session that is not the client's.
    Opened::Passed(match status {
        // With 404 the client would give up a session that POST still accepts.
        StatusCode::NOT_FOUND => super::refusal(
            StatusCode::METHOD_NOT_ALLOWED,
            &Carries::Stream,
            "the upstream server offers no stream for GET",
        ),
        _ => super::refusal(status, &Carries::Stream, "the upstream server refused its stream"),
    })
}

/// A stream that is open for the client.
struct Watch {
    shield: Arc<Shield>,
    session: Use,
    leg: Arc<Leg>,
    /// Of the client's GET, which is still there.
    headers: HeaderMap,
    feeder: Feeder,
    /// The client came back for a stream that had ended.
    resumes: bool,
    last: Option<Bytes>,
    retry: Option<Duration>,
    /// What it came back for has been answered.
    answered: bool,
}

impl Watch {
    async fn run(mut self, first: Body) {
        let settings = &self.shield.shared.settings;
        let limit = settings.limits.message_bytes;
        let mut backoff = Backoff::new(settings.timeouts.reconnect, settings.timeouts.reconnect_max);
        let mut events = Events::new(first, limit);
        loop {
            self.abandon().await;
            let counted = self.shield.shared.metrics.stream(StreamKind::UpstreamGet);
            let began = Instant::now();
            if self.follow(&mut events).await || began.elapsed() >= STOOD {
                backoff.reset();
            }
            drop((events, counted));
            if self.answered {
                return;
            }
            let Some(response) = self.reopened(&mut backoff).await else { return };
            events = Events::new(response.into_body(), limit);
        }
    }

    /// Passes on what comes until the stream is over or its session gone; `true` if anything came.
    async fn follow(&mut self, events: &mut Events) -> bool {
        let leg = self.leg.clone();
        let mut moved = false;
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                () = leg.lost() => return moved,
            };
            let Ok(Some(event)) = event else { return moved };
            moved = true;
            self.event(&event).await;
        }
    }

    async fn event(&mut self, event: &Event) {
        self.last.clone_from(&event.id);
        self.retry = event.retry.or(self.retry);
        for message in reply::messages(event.data.clone(), self.shield.shared.limits) {
            call::heed(&self.session, &self.leg, &message, &mut Vec::new(), None);
            if let Message::Response(answer) = &message
                && let Some(span) = answer.id
            {
                self.session.adopted(span.of(&answer.text));
                self.answered = self.resumes;
            }
        }
        // A client that has gone is noticed elsewhere.
        let _ = self.feeder.send(events::encode(event, &self.leg)).await;
    }

    /// Calls that the client may have come back for and that ended with an earlier leg get their errors.
    async fn abandon(&self) {
        if self.resumes {
            let fault =
                Fault::bad_gateway("the upstream server lost the session of this call; it may have run");
            call::tell(&self.feeder, &self.session.abandoned(&self.leg), &fault).await;
        }
    }

    /// The next stream of the server; `None` where there will be none.
    async fn reopened(&mut self, backoff: &mut Backoff) -> Option<Response<Body>> {
        loop {
            tokio::select! {
                () = sleep(backoff.pause(self.retry)) => {}
                // A call has found the server again.
                () = self.leg.lost() => {}
            }
            let leg = self.session.leg();
            if leg.generation != self.leg.generation {
                self.is_at(leg);
            }
            let last = self.last.as_deref().and_then(|id| HeaderValue::from_bytes(id).ok());
            match get(&self.shield, &self.headers, &self.leg, last).await {
                Opened::Stream(response) => return Some(response),
                Opened::Passed(_) => return None,
                Opened::Taken => {}
                Opened::Later(fault) => {
                    tracing::debug!(upstream = %self.shield.shared.settings.name, %fault, "a client's stream is not open at the server just now");
                }
                Opened::Lost => {
                    match self.shield.renewed(self.session.session(), &self.leg, &self.headers).await {
                        Ok(leg) => {
                            self.is_at(leg);
                            // The server has just answered, so there is no need to wait.
                            backoff.reset();
                        }
                        Err(fault) => {
                            tracing::debug!(upstream = %self.shield.shared.settings.name, %fault, "no other session for a client's stream just now");
                        }
                    }
                }
            }
        }
    }

    /// Event ids mean nothing in another session.
    fn is_at(&mut self, leg: Arc<Leg>) {
        self.leg = leg;
        self.last = None;
    }
}
