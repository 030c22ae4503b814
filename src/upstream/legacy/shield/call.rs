//! A POST of the client in its shielded session, to its one answer.
//!
//! Owns sending it at most once unless the server proved that it did not run it, following its stream, taking that up again
//! where it ends before the answer, and the error under the request's id where the server died with it. The bytes of
//! messages are the client's and the server's. Rules: A12.19-A12.21, A13.5, A14.2; cases C02, C03, C44.

use super::super::super::Shared;
use super::super::super::backoff::Backoff;
use super::super::super::reply::{self, Refusal, UpstreamBody, content_type};
use super::super::super::transport::RequestHead;
use super::super::gate::{self, Gate};
use super::super::relay::{self, Carries, Passage, Passed};
use super::Shield;
use super::events::{self, Events};
use super::held::{Feeder, held};
use super::session::{Effect, Leg, Use};
use crate::exchange::{Fault, FaultKind};
use crate::telemetry::metrics::UpstreamLimit;
use crate::upstream::transport::Body;
use crate::wire::headers::{ContentType, JSON, LAST_EVENT_ID, MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
use crate::wire::jsonrpc::{self, Id, Message, Reply as RpcReply, Request, code};
use crate::wire::payload::Payload;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout_at};

/// What a POST holds.
#[derive(Default)]
struct Sent {
    awaited: Vec<Id>,
    effect: Option<Effect>,
    /// `notifications/initialized`
    initialized: bool,
    /// Raw ids of the server's requests that are answered.
    answers: Vec<Bytes>,
}

enum Attempt {
    Done(Passed),
    Stream(Response<Body>),
    Lost,
}

pub(super) async fn pass(shield: &Arc<Shield>, session: Use, passage: &Passage) -> Result<Passed, Fault> {
    let sent = Sent::of(&passage.body.to_bytes(), &shield.shared);
    let answers_nothing = !sent.answers.is_empty() && !sent.answers.iter().all(|id| session.answers(id));
    if answers_nothing {
        return Ok(accepted());
    }
    let mut leg = session.leg();
    let mut renewed = false;
    loop {
        match attempt(&shield.shared, &session, passage, &sent, &leg).await? {
            Attempt::Done(passed) => return Ok(passed),
            Attempt::Stream(response) => {
                let (awaited, effect) = (sent.awaited, sent.effect);
                let headers = passage.headers.clone();
                let following = Following { shield: shield.clone(), session, leg, headers, awaited, effect };
                return following.begin(response, passage).await;
            }
            // The question went with the session.
            Attempt::Lost if !sent.answers.is_empty() => return Ok(accepted()),
            Attempt::Lost if renewed => {
                let text = "the upstream server lost the session again right after a new one";
                return Err(Fault::bad_gateway(text));
            }
            Attempt::Lost => {
                renewed = true;
                leg = shield.renewed(session.session(), &leg, &passage.headers).await?;
                shield.shared.metrics.call_resent();
            }
        }
    }
}

async fn attempt(
    shared: &Shared,
    session: &Use,
    passage: &Passage,
    sent: &Sent,
    leg: &Arc<Leg>,
) -> Result<Attempt, Fault> {
    let carries = &passage.carries;
    let head = head(shared, Method::POST, &passage.headers, leg, None);
    let response = relay::send(shared, head, passage.body.clone()).await?;
    let status = response.status();
    if matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) {
        let (head, body) = response.into_parts();
        let refusal = Refusal::read(head.status, head.headers.clone(), body, shared.limits).await;
        let ours = refusal.answer.as_ref().is_some_and(|answer| {
            answer.id.is_some_and(|span| sent.awaited.iter().any(|id| id.raw() == span.of(&answer.text)))
        });
        if gate::judge_by(&refusal, ours, leg.id.is_some()) == Gate::Lost {
            return Ok(Attempt::Lost);
        }
        return match relay::refused(shared, carries, head, &refusal) {
            // To the client it would be the end of its session (A11.3).
            Passed::Response(response) if response.status() == StatusCode::NOT_FOUND => {
                Err(refusal.fault("the request"))
            }
            passed => Ok(Attempt::Done(passed)),
        };
    }
    if !status.is_success() || !carries.is_answered() {
        if status.is_success() && sent.initialized {
            session.initialized();
        }
        return relay::judge(shared, carries, response).await.map(Attempt::Done);
    }
    match content_type(response.headers()) {
        Some(ContentType::EventStream) => Ok(Attempt::Stream(response)),
        Some(ContentType::Json) => whole(shared, session, sent, leg, response).await,
        Some(ContentType::Other) | None => relay::judge(shared, carries, response).await.map(Attempt::Done),
    }
}

/// An answer in one body.
async fn whole(
    shared: &Shared,
    session: &Use,
    sent: &Sent,
    leg: &Leg,
    response: Response<Body>,
) -> Result<Attempt, Fault> {
    let (head, mut body) = response.into_parts();
    let text = reply::collect(&mut body, shared.settings.limits.message_bytes).await?;
    let messages = reply::messages(text.clone(), shared.limits);
    if messages.is_empty() {
        return Err(Fault::bad_gateway("the upstream server's answer is not a JSON-RPC message"));
    }
    let mut awaited = sent.awaited.clone();
    for message in &messages {
        if let Message::Response(answer) = message
            && gate::not_initialized(answer)
        {
            return Ok(Attempt::Lost);
        }
        heed(session, leg, message, &mut awaited, sent.effect.as_ref());
    }
    Ok(Attempt::Done(Passed::Response(Response::from_parts(head, UpstreamBody::Read(text)))))
}

/// A call while its stream is followed.
struct Following {
    shield: Arc<Shield>,
    session: Use,
    leg: Arc<Leg>,
    /// Of the client's request.
    headers: HeaderMap,
    awaited: Vec<Id>,
    effect: Option<Effect>,
}

impl Following {
    async fn begin(mut self, response: Response<Body>, passage: &Passage) -> Result<Passed, Fault> {
        let (mut head, body) = response.into_parts();
        let events = Events::new(body, self.shield.shared.settings.limits.message_bytes);
        if !passage.streams && !matches!(passage.carries, Carries::Batch(_)) {
            // A client that takes only JSON gets only the answer (C25); the caller minds the time.
            let mut answer = None;
            self.follow(events, Sink::Last(&mut answer)).await?;
            head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
            let body = UpstreamBody::Read(answer.unwrap_or_default());
            return Ok(Passed::Response(Response::from_parts(head, body)));
        }
        let (feeder, held) = held();
        let (deadline, ended) = (passage.deadline, self.session.session().clone());
        let shutdown = self.shield.shared.shutdown.clone();
        // Owned by the tracker; ends with the answer, with its client, with the session or at the call's deadline.
        drop(self.shield.shared.shutdown.clone().spawn(async move {
            let end = tokio::select! {
                biased;
                () = feeder.closed() => None,
                () = shutdown.cut_short() => Some(Err(Fault::cut_short())),
                () = ended.ended() => Some(Err(Fault::bad_gateway("the session was ended"))),
                followed = timeout_at(deadline, self.follow(events, Sink::Client(&feeder))) => {
                    let late = |_| Err(Fault::new(FaultKind::Timeout, "the upstream server did not answer in time"));
                    Some(followed.unwrap_or_else(late))
                }
            };
            match end {
                // Going away cancels nothing (A12.19), and the client may come back for it.
                None => self.session.orphaned(std::mem::take(&mut self.awaited), &self.leg),
                Some(Ok(())) => {}
                Some(Err(fault)) => tell(&feeder, &self.awaited, &fault).await,
            }
        }));
        Ok(Passed::Response(Response::from_parts(head, UpstreamBody::Held(held))))
    }

    /// Follows the stream until everything is answered.
    async fn follow(&mut self, mut events: Events, mut sink: Sink<'_>) -> Result<(), Fault> {
        let settings = &self.shield.shared.settings;
        let most = settings.limits.resumptions;
        let mut left = most;
        let mut backoff = Backoff::new(settings.timeouts.reconnect, settings.timeouts.reconnect_max);
        let (mut last, mut retry) = (None, None);
        loop {
            let ended = match events.next().await {
                Ok(Some(event)) => {
                    left = most;
                    backoff.reset();
                    last.clone_from(&event.id);
                    retry = event.retry.or(retry);
                    for message in reply::messages(event.data.clone(), self.shield.shared.limits) {
                        heed(&self.session, &self.leg, &message, &mut self.awaited, self.effect.as_ref());
                        sink.note(&message);
                    }
                    sink.event(&event, &self.leg).await;
                    if self.awaited.is_empty() {
                        return Ok(());
                    }
                    continue;
                }
                Ok(None) => Fault::bad_gateway("the upstream server ended its answer without the result"),
                Err(broken) => Fault::from(broken),
            };
            let Some(id) = &last else { return Err(ended) };
            events = loop {
                let Some(fewer) = left.checked_sub(1) else {
                    self.shield.shared.metrics.limit(UpstreamLimit::Resumptions);
                    return Err(ended);
                };
                left = fewer;
                if let Some(events) = self.resume(id, backoff.pause(retry)).await? {
                    break events;
                }
            };
        }
    }

    /// `None`: the server could not be reached just now.
    async fn resume(&self, last: &Bytes, pause: Duration) -> Result<Option<Events>, Fault> {
        let shared = &self.shield.shared;
        let lost =
            || Fault::bad_gateway("the upstream server broke off its answer; the request may have run");
        let last = HeaderValue::from_bytes(last).map_err(|_| lost())?;
        sleep(pause).await;
        let head = head(shared, Method::GET, &self.headers, &self.leg, Some(last));
        match relay::send(shared, head, Payload::default()).await {
            Err(_) => Ok(None),
            Ok(response) if response.status().is_server_error() => Ok(None),
            Ok(response) => match content_type(response.headers()) {
                Some(ContentType::EventStream) if response.status().is_success() => {
                    shared.metrics.stream_resumed();
                    Ok(Some(Events::new(response.into_body(), shared.settings.limits.message_bytes)))
                }
                Some(_) | None => Err(lost()),
            },
        }
    }
}

/// Where what comes on a stream goes.
enum Sink<'a> {
    Client(&'a Feeder),
    /// Only the last answer counts.
    Last(&'a mut Option<Bytes>),
}

impl Sink<'_> {
    fn note(&mut self, message: &Message) {
        if let (Sink::Last(answer), Message::Response(response)) = (self, message) {
            **answer = Some(response.text.clone());
        }
    }

    /// A client that has gone is noticed elsewhere.
    async fn event(&self, event: &crate::wire::sse::Event, leg: &Leg) {
        match self {
            Sink::Client(feeder) => drop(feeder.send(events::encode(event, leg)).await),
            Sink::Last(_) => {}
        }
    }
}

/// Tells the client that these requests will not be answered.
pub(super) async fn tell(feeder: &Feeder, ids: &[Id], fault: &Fault) {
    for id in ids {
        let text = jsonrpc::error(Some(id), code::INTERNAL_ERROR, &fault.text, None);
        if feeder.send(events::message(&text)).await.is_err() {
            return;
        }
    }
}

/// What the session must know of a message that passes.
pub(super) fn heed(
    session: &Use,
    leg: &Leg,
    message: &Message,
    awaited: &mut Vec<Id>,
    effect: Option<&Effect>,
) {
    match message {
        Message::Request(asked) => session.asked(&asked.id, leg),
        Message::Notification(_) => {}
        Message::Response(answer) => {
            let Some(span) = answer.id else { return };
            let id = span.of(&answer.text);
            let before = awaited.len();
            awaited.retain(|one| one.raw() != id);
            let agreed = matches!(answer.reply, RpcReply::Result(_)) && awaited.len() < before;
            if let Some(effect) = effect.filter(|_| agreed) {
                session.take_effect(effect.clone());
            }
        }
    }
}

/// The head of a request in the session, at its leg.
pub(super) fn head(
    shared: &Shared,
    verb: Method,
    client: &HeaderMap,
    leg: &Leg,
    last_event: Option<HeaderValue>,
) -> RequestHead {
    let mut head = shared.heads.passed(verb, client, &[]);
    head.headers.insert(HeaderName::from_static(MCP_PROTOCOL_VERSION), leg.version.clone());
    head.headers.extend(leg.id.clone().map(|id| (HeaderName::from_static(MCP_SESSION_ID), id)));
    head.headers.extend(last_event.map(|id| (HeaderName::from_static(LAST_EVENT_ID), id)));
    head
}

fn accepted() -> Passed {
    let mut response = Response::new(UpstreamBody::Read(Bytes::new()));
    *response.status_mut() = StatusCode::ACCEPTED;
    Passed::Response(response)
}

impl Sent {
    fn of(text: &Bytes, shared: &Shared) -> Self {
        let mut sent = Self::default();
        for message in reply::messages(text.clone(), shared.limits) {
            match message {
                Message::Request(request) => {
                    sent.effect = effect(&request).or(sent.effect);
                    sent.awaited.push(request.id);
                }
                Message::Notification(notification) => {
                    sent.initialized |= notification.method == "notifications/initialized";
                }
                Message::Response(answer) => {
                    let id = answer.id.map(|span| Bytes::copy_from_slice(span.of(&answer.text)));
                    sent.answers.extend(id);
                }
            }
        }
        sent
    }
}

fn effect(request: &Request) -> Option<Effect> {
    let body = request.params.body()?;
    // Copies, so that a short piece does not keep a long body alive.
    let params = || Bytes::copy_from_slice(body.object.span.of(&request.text));
    let uri = || {
        let span = body.object.first(&request.text, "uri")?;
        Some(Bytes::copy_from_slice(span.of(&request.text)))
    };
    match request.method.as_str() {
        "logging/setLevel" => Some(Effect::Level(params())),
        "resources/subscribe" => Some(Effect::Subscribed { uri: uri()?, params: params() }),
        "resources/unsubscribe" => Some(Effect::Unsubscribed { uri: uri()? }),
        _ => None,
    }
}
