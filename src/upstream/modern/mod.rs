//! The driver for modern servers: the client's own bytes, passed on.
//!
//! Owns relaying a checked modern request byte for byte and noticing that the server is not modern after all (C39b). A
//! modern request carries everything it needs, so there is nothing to keep. Streams are passed on as they come.

pub mod feed;

use super::Shared;
use super::reply::{Messages, Refusal, UpstreamBody, content_type};
use crate::exchange::{Call, Fault};
use crate::telemetry::metrics::Waiting;
use crate::wire::headers::{self, ContentType};
use crate::wire::jsonrpc::{Id, Message, Reply};
use crate::wire::payload::Payload;
use crate::wire::version::Era;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use std::sync::Arc;

pub struct Modern {
    shared: Arc<Shared>,
}

/// Why there is no response to pass on.
#[derive(Debug)]
pub enum Trouble {
    /// The server refused in a way that no modern server does; the request did not run.
    OtherEra(Fault),
    Fault(Fault),
}

impl Modern {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Sends the request as it came. A connection that breaks afterwards breaks the response: the request is lost, and
    /// the client decides whether to ask again (A12.20).
    pub async fn send(&self, call: &Call) -> Result<Response<UpstreamBody>, Trouble> {
        let waiting = call.meter.sent(Era::Modern);
        self.post(&call.headers, call.request.text.clone(), Some((call.id(), waiting))).await
    }

    /// Passes a notification on.
    pub async fn notify(&self, client: &HeaderMap, text: Bytes) -> Result<Response<UpstreamBody>, Trouble> {
        self.post(client, text, None).await
    }

    /// The outcome of a response that the client cannot take as an event stream (C25).
    pub async fn collapse(
        &self,
        response: Response<UpstreamBody>,
        id: &Id,
    ) -> Result<Response<UpstreamBody>, Fault> {
        let (mut head, body) = response.into_parts();
        let UpstreamBody::Streaming(body) = body else { return Ok(Response::from_parts(head, body)) };
        let limit = self.shared.settings.limits.message_bytes;
        let mut messages = Messages::events(body, limit, self.shared.limits);
        while let Some(message) = messages.next().await.map_err(|broken| self.shared.broken(broken))? {
            let Message::Response(answer) = message else { continue };
            match (answer.id, &answer.reply) {
                (Some(span), _) if span.of(&answer.text) == id.raw() => {
                    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(headers::JSON));
                    return Ok(Response::from_parts(head, UpstreamBody::Read(answer.text)));
                }
                // The server could not tell the id; on the stream of the one call it is that call's.
                (None, Reply::Error(error)) => {
                    let told = error.brief(&answer.text);
                    return Err(Fault::bad_gateway(format!(
                        "the upstream server answered: {told} ({})",
                        error.code
                    )));
                }
                (Some(_), _) | (None, Reply::Result(_)) => {}
            }
        }
        Err(Fault::bad_gateway("the upstream server ended its answer without the result"))
    }

    async fn post(
        &self,
        client: &HeaderMap,
        text: Bytes,
        request: Option<(&Id, Waiting)>,
    ) -> Result<Response<UpstreamBody>, Trouble> {
        let head = || self.shared.heads.modern(client);
        let sent = self.shared.transport.send_due(&head, Payload::from(text)).await;
        let response =
            sent.map_err(|error| Trouble::Fault(super::send_fault(&self.shared.settings.name, &error)))?;
        let id = request.map(|(id, waiting)| {
            waiting.answered();
            id
        });
        let status = response.status();
        if id.is_some() && !may_be_legacy(status) && !answers(&response) {
            let text = format!(
                "the upstream server answered with HTTP status {} and neither JSON nor an event stream",
                status.as_u16()
            );
            return Err(Trouble::Fault(Fault::bad_gateway(text)));
        }
        if !may_be_legacy(status) && !matches!(status.as_u16(), 401 | 403 | 429) {
            return Ok(response.map(UpstreamBody::Streaming));
        }
        let (head, body) = response.into_parts();
        let headers = head.headers.clone();
        let refusal = Refusal::read(status, headers, body, self.shared.limits).await;
        if !may_be_legacy(status) && refusal.answer.is_none() {
            // A challenge or a rate limit without a body that the client could take for its answer.
            return Err(Trouble::Fault(refusal.fault("the request")));
        }
        if !may_be_legacy(status) || is_modern(&refusal, id) {
            return Ok(Response::from_parts(head, UpstreamBody::Read(refusal.body)));
        }
        Err(Trouble::OtherEra(refusal.fault("the request")))
    }
}

/// Statuses with which a server that knows only sessions refuses a request without one.
fn may_be_legacy(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415 | 422)
}

/// Whether a modern server refused: by an error of its era's own, or by any error under the id that was sent, which a
/// server that misses a session does not get to read.
fn is_modern(refusal: &Refusal, id: Option<&Id>) -> bool {
    let (Some(answer), Some(code)) = (&refusal.answer, refusal.code()) else { return false };
    let ours = id.is_none_or(|id| answer.id.is_some_and(|span| span.of(&answer.text) == id.raw()));
    ours || matches!(code, -32022..=-32020)
}

/// Whether the response can be passed on as an answer to a request (A12.21, C04): a challenge and a rate limit as they
/// are, else JSON or an event stream.
fn answers(response: &Response<Incoming>) -> bool {
    let status = response.status();
    if matches!(status.as_u16(), 401 | 403 | 429) {
        return true;
    }
    let kind = content_type(response.headers());
    !matches!(status.as_u16(), 202 | 204)
        && matches!(kind, Some(ContentType::Json | ContentType::EventStream))
}

/// Whether a response is an event stream.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    content_type(headers) == Some(ContentType::EventStream)
}
