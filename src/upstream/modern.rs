//! The driver for modern servers: the client's own bytes, passed on.
//!
//! Owns relaying a checked modern request byte for byte and noticing that the server is not modern after all (C39b). A
//! modern request carries everything it needs, so there is nothing to keep. Streams are passed on as they come.

use super::Shared;
use super::reply::{Refusal, UpstreamBody, content_type};
use crate::exchange::{Call, Fault};
use crate::wire::headers::ContentType;
use crate::wire::jsonrpc::code;
use crate::wire::payload::Payload;
use bytes::Bytes;
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
        self.post(&call.headers, call.request.text.clone()).await
    }

    /// Passes a notification on.
    pub async fn notify(&self, client: &HeaderMap, text: Bytes) -> Result<Response<UpstreamBody>, Trouble> {
        self.post(client, text).await
    }

    async fn post(&self, client: &HeaderMap, text: Bytes) -> Result<Response<UpstreamBody>, Trouble> {
        let head = self.shared.heads.modern(client);
        let sent = self.shared.transport.send(head, Payload::from(text)).await;
        let response =
            sent.map_err(|error| Trouble::Fault(super::send_fault(&self.shared.settings.name, &error)))?;
        let status = response.status();
        if !may_be_legacy(status) {
            return Ok(response.map(UpstreamBody::Streaming));
        }
        let (head, body) = response.into_parts();
        let headers = head.headers.clone();
        let refusal = Refusal::read(status, headers, body, self.shared.limits).await;
        if refusal.code().is_some_and(is_modern) {
            return Ok(Response::from_parts(head, UpstreamBody::Read(refusal.body)));
        }
        Err(Trouble::OtherEra(refusal.fault("the request")))
    }
}

/// Statuses with which a server that knows only sessions refuses a request without one.
fn may_be_legacy(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 404 | 405 | 406 | 415 | 422)
}

/// Codes that a modern server has for refusing a request with such a status.
fn is_modern(code: i64) -> bool {
    matches!(code, code::PARSE_ERROR | -32603..=-32600 | -32022..=-32020)
}

/// Whether a response is an event stream.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    content_type(headers) == Some(ContentType::EventStream)
}
