//! The driver for modern servers.
//!
//! Owns, for modern clients, relaying a checked request byte for byte and noticing that the server is not modern after all
//! (C39b): a modern request carries everything it needs, so there is nothing to keep, and streams are passed on as they come.
//! For legacy clients it owns the parts below: `call` runs one of their calls through all rounds, `catalog` is what is known of
//! the server's tools, `lookup` finds the one that is called, `own` sends what the proxy asks for itself, `feed` listens to
//! changes, `vouch` asks about credentials, `pace` says when a call that is not finished goes on, `cache` keeps lists where that
//! is wanted. `mirrored` does for a modern client on a channel what HTTP wants done of its calls.

mod cache;
mod call;
mod catalog;
mod lookup;
mod mirrored;
mod own;
mod pace;
mod vouch;

pub use call::Caller;

pub mod feed;

use super::Shared;
use super::legacy::Carries;
use super::parked::Parked;
use super::reply::{Messages, Refusal, UpstreamBody, collect, content_type};
use super::transport::Body;
use crate::exchange::{Call, Fault, Principal, Sender};
use crate::telemetry::metrics::Waiting;
use crate::translate::legacy_client::discovered::{self, Discovered};
use crate::translate::legacy_client::envelope;
use crate::translate::legacy_client::initialize::Client;
use crate::translate::legacy_client::notify::{Change, announce};
use crate::wire::headers::{self, ContentType};
use crate::wire::jsonrpc::{self, Id, Message, Reply, Response as Answer, code};
use crate::wire::payload::Payload;
use crate::wire::version::{Era, LegacyRevision};
use bytes::Bytes;
use cache::Cache;
use catalog::Catalog;
use feed::Feed;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use lookup::Lookups;
use std::sync::Arc;
use vouch::Vouching;

pub struct Modern {
    shared: Arc<Shared>,
    parked: Arc<Parked>,
    catalog: Arc<Catalog>,
    lookups: Lookups,
    /// `None` without `cache_lists`.
    cache: Option<Arc<Cache>>,
    vouching: Vouching,
    /// What legacy clients are told of.
    pub feed: Arc<Feed>,
}

/// Why there is no response to pass on.
#[derive(Debug)]
pub enum Trouble {
    /// The server refused in a way that no modern server does; the request did not run.
    OtherEra(Fault),
    Fault(Fault),
}

impl Modern {
    pub(super) fn new(shared: Arc<Shared>, parked: Arc<Parked>) -> Arc<Self> {
        let limits = &shared.settings.limits;
        let catalog = Catalog::new(limits.catalogs, limits.catalog_tools, shared.metrics.clone());
        let catalog = Arc::new(catalog);
        let keeps = shared.settings.cache_lists;
        let cache =
            keeps.then(|| Arc::new(Cache::new(limits.cache_bytes, limits.catalogs, shared.metrics.clone())));
        let kept = (catalog.clone(), cache.clone());
        let changed = move |principal: Principal, change: &Change| {
            let (catalog, cache) = &kept;
            forget(catalog, cache.as_deref(), principal, change);
        };
        let feed = Feed::new(shared.clone(), limits.resources, Box::new(changed));
        let vouching = Vouching::new(shared.shutdown.clone());
        let lookups = Lookups::new(shared.shutdown.clone());
        Arc::new(Self { shared, parked, catalog, lookups, cache, vouching, feed })
    }

    /// Runs a legacy client's call until there is an outcome or nobody waits for it any more.
    pub fn run(
        self: Arc<Self>,
        call: Arc<Call>,
        caller: Caller,
        sender: Sender,
    ) -> impl Future<Output = ()> + Send + use<> {
        call::run(self, call, caller, sender)
    }

    /// Something of the server is not what it was, as it says outside its listens: what was kept of it goes, and whoever
    /// listens for that is told (A2.5).
    fn changed(&self, principal: Principal, change: &Change) {
        self.feed.tell(principal, change, &announce(change));
    }

    /// What the server says of itself, asked for a legacy client that begins a session.
    pub async fn discover(&self, headers: &HeaderMap, client: &Client) -> Result<Discovered, Trouble> {
        let ask = || {
            let number = self.shared.next_number();
            let message = envelope::own("server/discover", "", client, number);
            self.ask(headers, "server/discover", number, message)
        };
        let mut answer = ask().await?;
        if let Reply::Error(error) = &answer.reply
            && error.code == code::UNSUPPORTED_PROTOCOL_VERSION
            && call::names_ours(&answer, error, self.shared.limits)
        {
            answer = ask().await?;
        }
        match &answer.reply {
            Reply::Result(body) => discovered::read(&answer, body, self.shared.limits)
                .map_err(|unusable| Trouble::OtherEra(Fault::bad_gateway(unusable.to_string()))),
            Reply::Error(error) => Err(Trouble::OtherEra(Fault::bad_gateway(format!(
                "the upstream server answered server/discover: {} ({})",
                error.brief(&answer.text),
                error.code
            )))),
        }
    }

    /// Sends the request as it came. A connection that breaks afterwards breaks the response: the request is lost, and
    /// the client decides whether to ask again (A12.20).
    pub async fn send(self: &Arc<Self>, call: &Call) -> Result<Response<UpstreamBody>, Trouble> {
        if self.says_headers_of(call) {
            return Box::pin(self.send_of_channel(call)).await;
        }
        let waiting = call.meter.sent(Era::Modern);
        self.post(&call.headers, Vec::new(), call.request.text.clone(), Some((call.id(), waiting))).await
    }

    /// Passes a notification on.
    pub async fn notify(&self, client: &HeaderMap, text: Bytes) -> Result<Response<UpstreamBody>, Trouble> {
        self.post(client, Vec::new(), text, None).await
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

    /// The whole answer to `initialize`, where it is one: a result that names a legacy version (A15.2).
    pub async fn read_whole(
        &self,
        response: Response<UpstreamBody>,
        carries: &Carries,
    ) -> Result<Response<UpstreamBody>, Fault> {
        let none = || Fault::bad_gateway("the upstream server did not answer `initialize`");
        let Carries::Initialize(id) = carries else { return Err(none()) };
        let response =
            if is_event_stream(response.headers()) { self.collapse(response, id).await? } else { response };
        let (head, body) = response.into_parts();
        let text = match body {
            UpstreamBody::Read(text) => text,
            UpstreamBody::Streaming(mut body) => {
                let limit = self.shared.settings.limits.message_bytes;
                collect(&mut body, limit).await.map_err(|broken| self.shared.broken(broken))?
            }
            UpstreamBody::Held(_) | UpstreamBody::Sifted(_) => return Err(none()),
        };
        let initialized = match jsonrpc::parse(text.clone(), self.shared.limits) {
            Ok(Message::Response(Answer { reply: Reply::Result(body), text, .. })) => {
                let named = body.object.first(&text, "protocolVersion");
                let named = named.and_then(|span| jsonrpc::string(&text, span));
                // A modern version is never the outcome of a handshake (A1.1).
                named.is_some_and(|version| LegacyRevision::parse(&version).is_some())
            }
            Ok(_) | Err(_) => false,
        };
        if initialized { Ok(Response::from_parts(head, UpstreamBody::Read(text))) } else { Err(none()) }
    }

    async fn post(
        &self,
        client: &HeaderMap,
        params: Vec<(HeaderName, HeaderValue)>,
        text: Bytes,
        request: Option<(&Id, Waiting)>,
    ) -> Result<Response<UpstreamBody>, Trouble> {
        let head = || {
            let mut head = self.shared.heads.modern(client);
            head.headers.extend(params.iter().cloned());
            head
        };
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
        if !may_be_legacy(status) && !is_challenge(status) {
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

/// What was kept of something that has changed goes.
fn forget(catalog: &Catalog, cache: Option<&Cache>, principal: Principal, change: &Change) {
    if *change == Change::Tools {
        catalog.forget(principal);
    }
    if let Some(cache) = cache {
        cache.changed(principal, change);
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

fn is_challenge(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 429)
}

/// What a refusal is to the request that was sent under `number`.
#[allow(clippy::large_enum_variant, reason = "lives for one match")]
enum Standing {
    /// The server's answer, whatever its status (A11.3, A12.5-A12.9).
    Answer(Answer),
    /// Refused as only a server refuses that knows nothing but sessions (C39b).
    OtherEra,
    /// The status is all there is.
    Nothing,
}

fn standing(refusal: &Refusal, number: u64) -> Standing {
    let legacy = may_be_legacy(refusal.status);
    match &refusal.answer {
        Some(answer) if answer.answers(number) => Standing::Answer(answer.clone()),
        Some(answer) if legacy && matches!(refusal.code(), Some(-32022..=-32020)) => {
            Standing::Answer(answer.clone())
        }
        Some(_) | None if legacy => Standing::OtherEra,
        Some(_) | None => Standing::Nothing,
    }
}

/// Whether the response can be passed on as an answer to a request (A12.21, C04): a challenge and a rate limit as they
/// are, else JSON or an event stream.
fn answers(response: &Response<Body>) -> bool {
    let status = response.status();
    if is_challenge(status) {
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
