//! A legacy client's request to a legacy server: the client's own bytes in the client's own session, passed on.
//!
//! Owns which statuses of the server are its answer to a legacy client, and which mean that there is none. The session is
//! between client and server: nothing is minted, renumbered, opened again or sent twice here. Does not own the shield.
//! Rules: A1.1, A11.3, A12.12-A12.15, A12.17, A12.21, A13, B14; cases C04, C06a, C08, C25, C39a, C44.

use super::super::Shared;
use super::super::reply::{Refusal, UpstreamBody, content_type};
use super::super::transport::{Body, RequestHead, Unanswered};
use crate::exchange::{Fault, Principal};
use crate::wire::headers::{ContentType, LAST_EVENT_ID, MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
use crate::wire::jsonrpc::{Id, Request, code};
use crate::wire::payload::Payload;
use http::response;
use http_body::Body as _;
use hyper::{HeaderMap, Method, Response, StatusCode};
use tokio::time::Instant;

/// One HTTP request of a legacy client that has passed the checks.
#[derive(Debug, Clone)]
pub struct Passage {
    pub carries: Carries,
    /// The client's; what of them goes on is decided by the upstream edge.
    pub headers: HeaderMap,
    /// Empty for GET and DELETE.
    pub body: Payload,
    pub principal: Principal,
    /// When the answer is due at the latest, the stream of a GET apart.
    pub deadline: Instant,
    /// Whether the client takes an event stream.
    pub streams: bool,
    /// Of an `initialize`: whether the client declares that it can be asked something.
    pub askable: bool,
    /// The request that the body is, if it is one.
    pub request: Option<Request>,
}

/// What the request holds, which decides what counts as an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carries {
    Initialize(Id),
    Request(Id),
    /// An array of 2025-03-26; the ids of its requests.
    Batch(Vec<Id>),
    /// A notification, or an answer to one of the server's requests.
    Unanswered,
    /// GET: the server's own stream, or one that is taken up again.
    Stream,
    /// DELETE: the end of the session.
    End,
}

/// What came of it.
pub enum Passed {
    Response(Response<UpstreamBody>),
    /// The server refused as only a modern one does, and has run nothing. The response is its answer if it is legacy after
    /// all.
    OtherEra(Response<UpstreamBody>),
    /// Likewise, and it has named a modern version, so that nothing is left to find out (A15.3).
    Modern(Response<UpstreamBody>),
}

impl Carries {
    fn verb(&self) -> Method {
        match self {
            Carries::Initialize(_) | Carries::Request(_) | Carries::Batch(_) | Carries::Unanswered => {
                Method::POST
            }
            Carries::Stream => Method::GET,
            Carries::End => Method::DELETE,
        }
    }

    /// The session headers that go on. An `initialize` begins a session and agrees on its version, whatever its sender
    /// remembers (A1.1, C06a).
    fn headers(&self) -> &'static [&'static str] {
        match self {
            Carries::Initialize(_) => &[],
            Carries::Request(_) | Carries::Batch(_) | Carries::Unanswered | Carries::End => {
                &[MCP_PROTOCOL_VERSION, MCP_SESSION_ID]
            }
            Carries::Stream => &[MCP_PROTOCOL_VERSION, MCP_SESSION_ID, LAST_EVENT_ID],
        }
    }

    /// For texts.
    fn name(&self) -> &'static str {
        match self {
            Carries::Initialize(_) => "`initialize`",
            Carries::Request(_) | Carries::Batch(_) => "the request",
            Carries::Unanswered => "a message",
            Carries::Stream => "the GET request",
            Carries::End => "the DELETE request",
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        match self {
            Carries::Initialize(_) | Carries::Request(_) => true,
            Carries::Batch(ids) => !ids.is_empty(),
            Carries::Unanswered | Carries::Stream | Carries::End => false,
        }
    }
}

pub(super) async fn pass(shared: &Shared, passage: &Passage) -> Result<Passed, Fault> {
    let carries = &passage.carries;
    let head = shared.heads.passed(carries.verb(), &passage.headers, carries.headers());
    let response = match carries {
        Carries::Initialize(_) => open(shared, head, passage.body.clone()).await?,
        _ => send(shared, head, passage.body.clone()).await?,
    };
    judge(shared, carries, response).await
}

pub(super) async fn send(shared: &Shared, head: RequestHead, body: Payload) -> Result<Response<Body>, Fault> {
    let sent = shared.transport.send(head, body).await;
    sent.map_err(|error| super::super::send_fault(&shared.settings.name, &error))
}

/// Sends an `initialize`, with which the server's transport is found out.
pub(super) async fn open(shared: &Shared, head: RequestHead, body: Payload) -> Result<Response<Body>, Fault> {
    let opened = shared.transport.open(shared.settings.timeouts.request, head, body).await;
    opened.map_err(|error| super::super::send_fault(&shared.settings.name, &error))
}

/// What the head of a response means to the client.
pub(super) async fn judge(
    shared: &Shared,
    carries: &Carries,
    response: Response<Body>,
) -> Result<Passed, Fault> {
    match response.status().as_u16() {
        200..300 => answer(carries, response).map(Passed::Response),
        400 | 404 if matches!(carries, Carries::Initialize(_) | Carries::Request(_)) => {
            let (head, body) = response.into_parts();
            let refusal = Refusal::read(head.status, head.headers.clone(), body, shared.limits).await;
            Ok(refused(shared, carries, head, &refusal))
        }
        // Ours to get right, not the client's (C25).
        406 | 415 if carries.verb() == Method::POST => Err(unusable(shared, carries, response).await),
        // A challenge, a rate limit and what a session is refused with mean something to a legacy client.
        400..500 => Ok(Passed::Response(response.map(UpstreamBody::Streaming))),
        _ => Err(unusable(shared, carries, response).await),
    }
}

async fn unusable(shared: &Shared, carries: &Carries, response: Response<Body>) -> Fault {
    let (head, body) = response.into_parts();
    Refusal::read(head.status, head.headers, body, shared.limits).await.fault(carries.name())
}

/// A success, if it can be the answer to what was sent (C04: never an empty one to a request).
fn answer(carries: &Carries, response: Response<Body>) -> Result<Response<UpstreamBody>, Fault> {
    let kind = content_type(response.headers());
    let fits = match carries {
        Carries::Unanswered | Carries::End => true,
        Carries::Stream => kind == Some(ContentType::EventStream),
        Carries::Initialize(_) | Carries::Request(_) | Carries::Batch(_) if carries.is_answered() => {
            let readable = matches!(kind, Some(ContentType::Json | ContentType::EventStream));
            readable && !matches!(response.status().as_u16(), 202 | 204) && !response.body().is_end_stream()
        }
        Carries::Initialize(_) | Carries::Request(_) | Carries::Batch(_) => true,
    };
    let cancelled = response.extensions().get::<Unanswered>().is_some();
    if fits || cancelled {
        return Ok(response.map(UpstreamBody::Streaming));
    }
    let form =
        if *carries == Carries::Stream { "no event stream" } else { "neither JSON nor an event stream" };
    Err(Fault::bad_gateway(format!(
        "the upstream server answered {} with HTTP status {} and {form}",
        carries.name(),
        response.status().as_u16()
    )))
}

/// A refusal that is the server's answer, or the sign of a modern server (C39a, A15.5).
pub(super) fn refused(
    shared: &Shared,
    carries: &Carries,
    head: response::Parts,
    refusal: &Refusal,
) -> Passed {
    let modern = match (head.status.as_u16(), refusal.code()) {
        (400, Some(code::UNSUPPORTED_PROTOCOL_VERSION | code::HEADER_MISMATCH)) => true,
        (404, Some(code::METHOD_NOT_FOUND)) => matches!(carries, Carries::Initialize(_)),
        _ => false,
    };
    let mut response = Response::from_parts(head, UpstreamBody::Read(refusal.body.clone()));
    if modern {
        let named = refusal.answer.as_ref().is_some_and(|answer| super::open::offers_modern(shared, answer));
        return if named { Passed::Modern(response) } else { Passed::OtherEra(response) };
    }
    // Of the method, not of the session, which a bare 404 would end (A11.3, A12.22).
    if refusal.code() == Some(code::METHOD_NOT_FOUND) && answers(refusal, carries) {
        *response.status_mut() = StatusCode::OK;
    }
    Passed::Response(response)
}

fn answers(refusal: &Refusal, carries: &Carries) -> bool {
    match (carries, &refusal.answer) {
        (Carries::Request(id), Some(answer)) => {
            answer.id.is_some_and(|span| span.of(&answer.text) == id.raw())
        }
        _ => false,
    }
}
