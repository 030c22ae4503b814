//! Clients of the HTTP+SSE of 2024-11-05: everything that comes to a client comes on the one stream that it opens by GET, and
//! each of its messages is a POST to the place that the stream's first event names.
//!
//! Owns the two places of such an upstream (`sse_path`, and `messages` beside it), the table of clients by the names in their
//! places, and the ways in which a request to them is refused. What a message says is for `channel`, which serves the client like
//! one on pipes. `stream` is the response body. Off unless `sse_path` is set.
//!
//! A client lasts as long as its stream: when that goes, its calls are cancelled and its session is ended; there is no
//! resumption. Its name is unguessable, and is taken from nobody but who has opened the stream.
//! Rules: A14.8; architecture section 4, "Principal", and invariant 2; spec 2024-11-05 basic/transports, HTTP with SSE.

mod stream;

pub(super) use stream::Told;

use super::body::FrontBody;
use super::channel::{Brought, Client, Inbound};
use super::front::{Front, Inner};
use super::modern::check::Refusal;
use super::modern::respond;
use super::read::ClientBody;
use crate::exchange::Principal;
use crate::relay::Relay;
use crate::seal::{SealError, unguessable};
use crate::wire::headers::Accepts;
use crate::wire::jsonrpc::{self, Fault, Malformed, code};
use crate::wire::{json, payload::Payload};
use bytes::Bytes;
use dashmap::DashMap;
use hyper::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;

/// Messages of one client that wait to be taken; a POST beyond them waits, so long at most.
const TEXTS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(10);

/// Messages that wait for one client to read. What is behind them waits with its call.
const MESSAGES: usize = 2;

/// The query's parameter in which the client's name stands.
const NAME: &str = "session_id";

/// Who is there.
#[derive(Default)]
pub(super) struct OldClients {
    places: Vec<At>,
    by_name: DashMap<String, Row>,
}

/// A path of such clients, and the path of the upstream that they are in front of.
#[derive(Debug, Clone)]
pub(super) struct At {
    path: String,
    what: What,
    upstream: String,
}

#[derive(Debug, Clone)]
enum What {
    /// Where streams are opened. They name this for their messages.
    Stream {
        messages: String,
    },
    Messages,
}

/// One client.
struct Row {
    upstream: String,
    principal: Principal,
    texts: mpsc::Sender<Inbound>,
}

/// A client is in the table until this is dropped.
struct Listed {
    clients: Arc<OldClients>,
    name: String,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.clients.by_name.remove(&self.name);
    }
}

impl OldClients {
    pub(super) fn new(relay: &Relay) -> Arc<Self> {
        let mut places = Vec::new();
        for settings in relay.upstreams().iter().map(|upstream| &upstream.settings) {
            let (Some(path), Some(messages)) = (&settings.sse_path, settings.sse_messages_path()) else {
                continue;
            };
            let at = |path: &str, what| At { path: path.to_owned(), what, upstream: settings.path.clone() };
            places.push(at(&messages, What::Messages));
            places.push(at(path, What::Stream { messages }));
        }
        Arc::new(Self { places, by_name: DashMap::new() })
    }

    /// Whose path it is, if it is one of theirs; a trailing slash makes no difference.
    pub(super) fn at(&self, path: &str) -> Option<&At> {
        if self.places.is_empty() {
            return None;
        }
        let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
        self.places.iter().find(|at| at.path == path)
    }
}

impl Front {
    /// Answers one request to a place of such clients.
    pub(super) async fn old_sse<B: ClientBody>(
        &self,
        at: &At,
        request: hyper::Request<B>,
    ) -> Response<FrontBody> {
        let answered = match &at.what {
            What::Stream { messages } => self.open(at, messages, &request),
            What::Messages => self.inner().take(at, request).await,
        };
        answered.unwrap_or_else(|refusal| {
            let metrics = &self.inner().metrics;
            tracing::debug!(path = %at.path, reason = refusal.reason, text = %refusal.text, "refused");
            metrics.refused(refusal.reason);
            refusal.limit.inspect(|limit| metrics.limit(*limit));
            let mut response = respond::refusal(&refusal);
            if refusal.status == StatusCode::METHOD_NOT_ALLOWED {
                let verb = match &at.what {
                    What::Stream { .. } => "GET",
                    What::Messages => "POST",
                };
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(verb));
            }
            response
        })
    }

    /// Opens a stream, and serves its client from then on.
    fn open<B>(
        &self,
        at: &At,
        messages: &str,
        request: &hyper::Request<B>,
    ) -> Result<Response<FrontBody>, Refusal> {
        let inner = self.inner();
        if request.method() != Method::GET {
            let text = "clients of HTTP+SSE open their event stream here, by GET";
            return Err(invalid(StatusCode::METHOD_NOT_ALLOWED, "http-method", text));
        }
        if !Accepts::parse(request.headers().get_all(ACCEPT).iter().map(HeaderValue::as_bytes)).event_stream {
            return Err(invalid(
                StatusCode::NOT_ACCEPTABLE,
                "accept",
                "only text/event-stream is served here",
            ));
        }
        if inner.shutdown.is_draining() {
            return Err(shutting_down());
        }
        let place = inner.stream_place()?;
        let name = unguessable().map_err(no_name)?;
        let (texts, taken) = mpsc::channel(TEXTS);
        let (out, told) = mpsc::channel(MESSAGES);
        let gone = CancellationToken::new();
        let headers = request.headers().clone();
        let principal = Principal::of(headers.get(AUTHORIZATION));
        let row = Row { upstream: at.upstream.clone(), principal, texts };
        inner.old_clients.by_name.insert(name.clone(), row);
        let endpoint = format!("event: endpoint\ndata: {messages}?{NAME}={name}\n\n");
        let listed = Listed { clients: inner.old_clients.clone(), name };
        let client = Client { path: at.upstream.clone(), headers, texts: taken, out, gone: gone.clone() };
        let front = self.clone();
        // Owned by the tracker; ends when the client is gone or the drain is over, and ends the client's session last.
        drop(inner.shutdown.spawn_minding(async move {
            front.serve_channel(client).await;
            drop((listed, place));
        }));
        let told = Told::new(endpoint, told, inner.timeouts.keep_alive, gone.drop_guard());
        Ok(respond::stream(FrontBody::told(told)))
    }
}

impl Inner {
    /// Takes one message.
    async fn take<B: ClientBody>(
        &self,
        at: &At,
        request: hyper::Request<B>,
    ) -> Result<Response<FrontBody>, Refusal> {
        let (head, body) = request.into_parts();
        if head.method != Method::POST {
            let text = "clients of HTTP+SSE send their messages here, by POST";
            return Err(invalid(StatusCode::METHOD_NOT_ALLOWED, "http-method", text));
        }
        let texts = match self.addressed(at, head.uri.query(), &head.headers) {
            Ok(texts) => texts,
            Err(refusal) => return Err(refusal.with_id(self.reader().glance(body).await)),
        };
        let (text, place) = self.text(&head.headers, true, body).await?;
        let limits = json::Limits { nesting: self.limits.nesting, members: self.limits.members };
        match jsonrpc::parse(text.clone(), limits) {
            // Whether it may be one is found out where the client's revision is known.
            Ok(_) | Err(Malformed { fault: Fault::Batch, .. }) => {}
            Err(Malformed { fault, id }) => {
                let refusal =
                    Refusal::new(StatusCode::BAD_REQUEST, fault.code(), "envelope", fault.to_string());
                return Err(refusal.bounded_by(&fault).with_id(id));
            }
        }
        // With its place, so that what waits counts among what is in work until it goes on.
        self.hand_over(&texts, text, Brought { headers: Some(head.headers), place }).await?;
        let mut response = Response::new(FrontBody::whole(Payload::from("Accepted")));
        *response.status_mut() = StatusCode::ACCEPTED;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Ok(response)
    }

    /// The client that a message is of.
    fn addressed(
        &self,
        at: &At,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<mpsc::Sender<Inbound>, Refusal> {
        let unknown =
            || invalid(StatusCode::NOT_FOUND, "no-session", "there is no such session; a GET begins one");
        let mut names =
            form_urlencoded::parse(query.unwrap_or_default().as_bytes()).filter(|(name, _)| name == NAME);
        let (Some((_, name)), None) = (names.next(), names.next()) else { return Err(unknown()) };
        let row = self
            .old_clients
            .by_name
            .get(&*name)
            .filter(|row| row.upstream == at.upstream)
            .ok_or_else(unknown)?;
        if row.principal != Principal::of(headers.get(AUTHORIZATION)) {
            let text = "the session was opened with another credential";
            return Err(invalid(StatusCode::FORBIDDEN, "principal", text));
        }
        Ok(row.texts.clone())
    }

    async fn hand_over(
        &self,
        texts: &mpsc::Sender<Inbound>,
        text: Bytes,
        brought: Brought,
    ) -> Result<(), Refusal> {
        let id = || jsonrpc::find_id(&text);
        let inbound = Inbound::Text { text: text.clone(), brought };
        match timeout(PATIENCE, texts.send(inbound)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => {
                Err(invalid(StatusCode::NOT_FOUND, "no-session", "the session has ended").with_id(id()))
            }
            Err(_) => {
                let text = "as many messages of this client are under way as may be";
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Err(Refusal::new(status, code::INTERNAL_ERROR, "messages", text).with_id(id()))
            }
        }
    }
}

fn invalid(status: StatusCode, reason: &'static str, text: &'static str) -> Refusal {
    Refusal::new(status, code::INVALID_REQUEST, reason, text)
}

fn shutting_down() -> Refusal {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    Refusal::new(status, code::INTERNAL_ERROR, "draining", "the proxy is shutting down")
}

fn no_name(_: SealError) -> Refusal {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Refusal::new(status, code::INTERNAL_ERROR, "random", "the system gives no random numbers")
}
