//! HTTP+SSE of 2024-11-05: the messages of a server come as events on one stream, those to it go by POST to the place that the
//! stream's first `endpoint` event names.
//!
//! Owns opening such a channel. `endpoint` is where messages go, `events` the reading of a stream, `channel` an open channel, of
//! which one task alone speaks to the inbox, `post` one message on its way. The protocol has no resumption: a stream that breaks
//! is the end of its session. Does not own when this transport is tried (`either`), nor what messages say.
//! Rules: A14.8, invariant 4; case C42; spec 2024-11-05 basic/transports, HTTP with SSE.

mod channel;
mod endpoint;
mod events;
mod post;

use super::error::{NoEndpoint, TransportBuildError};
use super::http::{HttpTransport, RequestHead, Speaker};
use super::pipe::{Inbox, Open, Pipe, Trouble};
use super::place::Place;
use crate::config;
use crate::shutdown::Shutdown;
use crate::wire::headers::{ContentType, EVENT_STREAM, LAST_EVENT_ID, MCP_SESSION_ID};
use crate::wire::payload::Payload;
use endpoint::Override;
use events::{Events, Next};
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Opens channels of HTTP+SSE to one server.
pub(super) struct OldSse {
    source: Arc<Source>,
}

/// What all channels to the server share.
struct Source {
    upstream: String,
    http: HttpTransport,
    instead: Option<Override>,
    /// Until the `endpoint` event.
    opening: Duration,
    /// From a message to the head of the response to its POST, and again to the end of that response.
    posting: Duration,
    message_bytes: usize,
    shutdown: Shutdown,
    /// `endpoint` events that have named a place.
    endpoints: AtomicU64,
    /// Every channel's token is a child of it.
    closing: CancellationToken,
    /// Tasks of channels. Not the shutdown's: a channel outlives the calls that are being drained, and is closed after them.
    tasks: TaskTracker,
}

impl OldSse {
    pub(super) fn new(
        upstream: &config::Upstream,
        http: HttpTransport,
        shutdown: Shutdown,
    ) -> Result<Self, TransportBuildError> {
        let instead = upstream.sse_endpoint.as_deref().map(|text| Override::read(text, &http));
        let instead = instead.transpose().map_err(|reason| TransportBuildError::Url {
            upstream: upstream.name.clone(),
            url: upstream.sse_endpoint.clone().unwrap_or_default(),
            reason,
        })?;
        let initialize = upstream.timeouts.initialize;
        let source = Source {
            upstream: upstream.name.clone(),
            http,
            instead,
            // Whoever waits for the answer to `initialize` waits no longer than that for the whole, and is to hear why.
            opening: initialize - initialize / 4,
            posting: upstream.timeouts.request,
            message_bytes: upstream.limits.message_bytes,
            shutdown,
            endpoints: AtomicU64::new(0),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        Ok(Self { source: Arc::new(source) })
    }

    /// How many `endpoint` events have named a place so far: proof that the server has this transport.
    pub(super) fn endpoints(&self) -> u64 {
        self.source.endpoints.load(Ordering::Acquire)
    }
}

impl Open for OldSse {
    fn open<'a>(
        &'a self,
        headers: &'a HeaderMap,
        inbox: Arc<dyn Inbox>,
    ) -> BoxFuture<'a, Result<Arc<dyn Pipe>, Trouble>> {
        let source = &self.source;
        Box::pin(async move {
            let found = timeout(source.opening, source.find(headers)).await;
            let (events, endpoint) =
                found.unwrap_or_else(|_| Err(Trouble::Send(NoEndpoint::Late(source.opening).into())))?;
            source.endpoints.fetch_add(1, Ordering::AcqRel);
            tracing::debug!(upstream = %source.upstream, endpoint = endpoint.url().path(), "a channel of HTTP+SSE is open");
            Ok(channel::open(source, events, endpoint, inbox))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.source.closing.cancel();
            self.source.tasks.close();
            // Each of them ends by the token.
            self.source.tasks.wait().await;
        })
    }
}

impl Source {
    /// Opens the stream and waits for where messages go. Dropped half-way, the stream is closed.
    async fn find(&self, headers: &HeaderMap) -> Result<(Events, Place), Trouble> {
        let head =
            RequestHead { method: Method::GET, headers: stream_headers(headers), speaker: Speaker::Driver };
        let (http, home) = (&self.http, self.http.home());
        let (response, from) = http.send_to(self.posting, home, head, Payload::default()).await?;
        if !response.status().is_success() {
            return Err(Trouble::Refused(Box::new(response)));
        }
        let kind = response.headers().get(CONTENT_TYPE);
        if kind.map(|value| ContentType::parse(value.as_bytes())) != Some(ContentType::EventStream) {
            let status = response.status().as_u16();
            let kind = kind.map_or("no media type".into(), |kind| String::from_utf8_lossy(kind.as_bytes()));
            let what = format!("status {status} and {}", kind.chars().take(80).collect::<String>());
            return Err(Trouble::Send(NoEndpoint::NotAStream(what).into()));
        }
        let mut events = Events::new(response.into_body(), self.message_bytes);
        loop {
            match events.next().await {
                Ok(Some(Next::Event(event))) if event.name() == "endpoint" && !event.data.is_empty() => {
                    let told = String::from_utf8_lossy(&event.data);
                    let place = endpoint::resolve(&told, &from, &self.http, self.instead.as_ref())
                        .inspect_err(|why| {
                            tracing::warn!(upstream = %self.upstream, %why, "no messages can be sent to the server");
                        });
                    return Ok((events, place.map_err(|none| Trouble::Send(none.into()))?));
                }
                Ok(Some(Next::Event(event))) => {
                    tracing::debug!(upstream = %self.upstream, event = %event.name(), "an event before `endpoint` is dropped");
                }
                Ok(Some(Next::TooLong(_))) => {
                    tracing::debug!(upstream = %self.upstream, "an event before `endpoint` is dropped, as too long besides");
                }
                Ok(None) | Err(_) => return Err(Trouble::Send(NoEndpoint::Ended.into())),
            }
        }
    }
}

/// What is the caller's in the headers of a request of its own to another kind of endpoint.
fn plain_headers(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    // Ours, for the endpoint that a channel is presented as.
    for name in [MCP_SESSION_ID, LAST_EVENT_ID] {
        headers.remove(name);
    }
    headers.remove(CONTENT_LENGTH);
    headers
}

fn stream_headers(headers: &HeaderMap) -> HeaderMap {
    let mut headers = plain_headers(headers);
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
    headers
}

#[cfg(test)]
mod tests;
