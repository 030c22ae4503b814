//! An `http` or `https` server of which it is not said which transport it has: Streamable HTTP, or HTTP+SSE of 2024.
//!
//! Owns finding that out, by `initialize` alone and never by anybody's own request: the old transport is looked for only where a
//! POST of it is refused as a server refuses it that has no such endpoint (400, 404, 405), and not as a modern one does; whatever
//! comes of the look, what the caller hears is never worse than that refusal (C42). What was found is kept for `era_ttl`. Does
//! not own either transport. Rules: A14.8, A15.2.

use super::body::Body;
use super::error::{NoEndpoint, SendError};
use super::http::{Head, HttpTransport, RequestHead, within};
use super::old_sse::OldSse;
use crate::config;
use crate::wire::headers::ContentType;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Message, Reply, code};
use crate::wire::payload::Payload;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, WWW_AUTHENTICATE};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// As much of a refusal's body as is read to judge it.
const REFUSAL_BYTES: usize = 64 * 1024;

/// What is needed here of channels to a server of HTTP+SSE, presented as an endpoint of Streamable HTTP.
pub(super) trait Channels: Send + Sync {
    fn send(&self, head: RequestHead, body: Payload) -> BoxFuture<'_, Result<Response<Body>, SendError>>;

    /// Whether the request is in a session of theirs.
    fn owns(&self, headers: &HeaderMap) -> bool;

    /// Ends all, and resolves when it is over.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A way to such a server. Clones share what was found.
#[derive(Clone)]
pub struct Either {
    inner: Arc<Inner>,
}

struct Inner {
    upstream: String,
    http: HttpTransport,
    old: Arc<OldSse>,
    channels: Arc<dyn Channels>,
    /// When it was found that the server has the old transport.
    found: Mutex<Option<Instant>>,
    /// It was found at some time, so that there may be sessions.
    ever: AtomicBool,
    keep: Duration,
    request: Duration,
    limits: Limits,
}

impl Either {
    /// `channels` are those that `old` opens.
    pub(super) fn new(
        upstream: &config::Upstream,
        http: HttpTransport,
        old: Arc<OldSse>,
        channels: Arc<dyn Channels>,
        limits: Limits,
    ) -> Self {
        let inner = Inner {
            upstream: upstream.name.clone(),
            http,
            old,
            channels,
            found: Mutex::default(),
            ever: AtomicBool::new(false),
            keep: upstream.era_ttl,
            request: upstream.timeouts.request,
            limits,
        };
        Self { inner: Arc::new(inner) }
    }

    pub(super) async fn send(&self, head: RequestHead, body: Payload) -> Result<Response<Body>, SendError> {
        self.send_within(self.inner.request, head, body).await
    }

    pub(super) async fn send_due(&self, head: &Head<'_>, body: Payload) -> Result<Response<Body>, SendError> {
        let inner = &self.inner;
        if inner.ever.load(Ordering::Acquire) {
            let head = head();
            if inner.channels.owns(&head.headers) {
                return inner.channels.send(head, body).await;
            }
        }
        inner.http.send_due(head, body).await
    }

    pub(super) async fn send_within(
        &self,
        limit: Duration,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        let inner = &self.inner;
        if inner.ever.load(Ordering::Acquire) && inner.channels.owns(&head.headers) {
            return within(limit, pin!(inner.channels.send(head, body))).await;
        }
        inner.http.send_within(limit, head, body).await
    }

    /// Sends `initialize` over the transport that the server is known to have, or found to have by it.
    pub(super) async fn open(
        &self,
        limit: Duration,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        within(limit, pin!(Box::pin(self.inner.open(limit, head, body)))).await
    }

    /// Ends all channels.
    pub(super) async fn close(&self) {
        self.inner.channels.close().await;
    }

    /// The endpoint of Streamable HTTP.
    pub(super) fn http(&self) -> &HttpTransport {
        &self.inner.http
    }

    /// Whether the server is known to have the old transport.
    pub(super) fn is_old(&self) -> bool {
        self.inner.is_old()
    }
}

/// What came of `initialize` over a channel.
enum Opened {
    /// The server has the old transport: it has said where messages go.
    There(Result<Response<Body>, SendError>),
    /// It has not.
    Elsewhere(Result<Response<Body>, SendError>),
}

/// Whether a server that is known to have the old transport has it no more. Credentials, load and silence say nothing of it.
fn is_changed(opened: &Result<Response<Body>, SendError>) -> bool {
    match opened {
        Ok(response) => {
            response.status().is_client_error()
                && !matches!(response.status().as_u16(), 401 | 403 | 407 | 421 | 429)
        }
        Err(error) => matches!(error, SendError::Endpoint(NoEndpoint::NotAStream(_))),
    }
}

impl Inner {
    async fn open(
        &self,
        limit: Duration,
        head: RequestHead,
        body: Payload,
    ) -> Result<Response<Body>, SendError> {
        if self.is_old() {
            match self.over_channel(head.clone(), body.clone()).await {
                Opened::There(opened) => return opened,
                Opened::Elsewhere(opened) if !is_changed(&opened) => return opened,
                Opened::Elsewhere(_) => {
                    self.forget();
                    return self.http.send_within(limit, head, body).await;
                }
            }
        }
        let response = self.http.send_within(limit, head.clone(), body.clone()).await?;
        let status = response.status();
        if status.is_success() {
            self.forget();
        }
        if !matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
        {
            return Ok(response);
        }
        let (refusal, modern) = self.judge(response).await;
        if modern {
            return Ok(refusal);
        }
        match self.over_channel(head, body).await {
            Opened::There(opened) => {
                self.keep();
                opened
            }
            Opened::Elsewhere(opened) => Ok(self.neither(refusal, opened)),
        }
    }

    async fn over_channel(&self, head: RequestHead, body: Payload) -> Opened {
        let before = self.old.endpoints();
        let opened = self.channels.send(head, body).await;
        if self.old.endpoints() > before { Opened::There(opened) } else { Opened::Elsewhere(opened) }
    }

    /// What the caller hears where there is no endpoint of either kind: the refusal of the POST. A challenge to the GET, where the
    /// POST had none, goes before it: there may be a stream for those who can answer it.
    fn neither(&self, refusal: Response<Body>, opened: Result<Response<Body>, SendError>) -> Response<Body> {
        let post = refusal.status().as_u16();
        match opened {
            Ok(response)
                if response.status() == StatusCode::UNAUTHORIZED
                    && response.headers().contains_key(WWW_AUTHENTICATE)
                    && refusal.status() != StatusCode::BAD_REQUEST =>
            {
                tracing::info!(upstream = %self.upstream, post, get = 401, "`initialize` was refused, and the event stream of HTTP+SSE wants a credential");
                response
            }
            Ok(response) => {
                let get = response.status().as_u16();
                tracing::info!(upstream = %self.upstream, post, get, "`initialize` was refused, and there is no event stream of HTTP+SSE either");
                refusal
            }
            Err(error) => {
                tracing::info!(upstream = %self.upstream, post, get = %error, "`initialize` was refused, and there is no event stream of HTTP+SSE either");
                refusal
            }
        }
    }

    /// Whether a refusal is one of a modern server, which has no other transport.
    async fn judge(&self, refusal: Response<Body>) -> (Response<Body>, bool) {
        let kind = refusal.headers().get(CONTENT_TYPE).map(|value| ContentType::parse(value.as_bytes()));
        if kind != Some(ContentType::Json) {
            return (refusal, false);
        }
        let (mut head, body) = refusal.into_parts();
        // One that is too long or breaks off is as good as none.
        let text = Limited::new(body, REFUSAL_BYTES).collect().await;
        let text = text.map(|whole| whole.to_bytes()).unwrap_or_default();
        head.headers.remove(CONTENT_LENGTH);
        head.headers.remove(TRANSFER_ENCODING);
        let modern = match error_code(text.clone(), self.limits) {
            Some(code::METHOD_NOT_FOUND) => head.status == StatusCode::NOT_FOUND,
            Some(
                code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_PROTOCOL_VERSION,
            ) => true,
            Some(_) | None => false,
        };
        (Response::from_parts(head, Body::from(text)), modern)
    }

    fn is_old(&self) -> bool {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.is_some_and(|since| since.elapsed() < self.keep)
    }

    fn keep(&self) {
        self.ever.store(true, Ordering::Release);
        let before = self.found.lock().unwrap_or_else(PoisonError::into_inner).replace(Instant::now());
        if before.is_none() {
            tracing::info!(upstream = %self.upstream, "the upstream server has the old transport HTTP+SSE");
        }
    }

    fn forget(&self) {
        let before = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        if before.is_some() {
            tracing::info!(upstream = %self.upstream, "whether the upstream server has the old transport HTTP+SSE is looked at anew");
        }
    }
}

fn error_code(text: Bytes, limits: Limits) -> Option<i64> {
    match jsonrpc::parse(text, limits) {
        Ok(Message::Response(answer)) => match answer.reply {
            Reply::Error(error) => Some(error.code),
            Reply::Result(_) => None,
        },
        Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => None,
    }
}
