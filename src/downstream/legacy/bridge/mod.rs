//! A legacy client whose server is modern: one HTTP request of it, from its checks to the head of the response.
//!
//! Owns the order of the steps, and which message is served where: `greet` begins a session, `local` is what a modern server
//! has no method for, `call` runs what goes to the server, `batch` an array of 2025-03-26, `verbs` GET and DELETE. Sessions
//! and their streams are `session`'s; what runs at the server is `upstream::modern`'s.
//! Rules: A1, A2, A12.12-A12.15, A12.19-A12.21, B14-B16; cases C03 (client side), C06, C21, C32.

mod batch;
mod call;
mod greet;
mod local;
mod pump;
mod respond;
mod verbs;

use super::check::Checked;
use super::session::{Found, Sessions, Use};
use crate::downstream::FrontBody;
use crate::downstream::front::Inner;
use crate::downstream::modern::check::Refusal;
use crate::downstream::record::Record;
use crate::exchange::{Call, Principal, Reply};
use crate::telemetry::metrics::Ended;
use crate::upstream::Upstream;
use crate::upstream::legacy::Carries;
use crate::wire::headers::{Accepts, MCP_SESSION_ID};
use crate::wire::jsonrpc::{self, Id, Malformed, Message, Notification, Params, Request, code};
use crate::wire::meta;
use crate::wire::method::{LegacyOnly, Method};
use crate::wire::version::Era;
use bytes::Bytes;
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, Response, StatusCode};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// A request's place among those in work; taken by what outlives the request.
pub(in crate::downstream) type Place = Option<OwnedSemaphorePermit>;

/// What every step needs to know of the request.
pub(super) struct Asked<'a> {
    pub(super) upstream: &'a Arc<Upstream>,
    pub(super) sessions: &'a Arc<Sessions>,
    pub(super) headers: &'a HeaderMap,
    pub(super) principal: Principal,
    pub(super) accepts: Accepts,
    pub(super) deadline: Instant,
}

impl Asked<'_> {
    /// The answer of the client to what it was asked.
    fn reply(&self, response: jsonrpc::Response) -> Reply {
        Reply { response, authorization: self.headers.get(AUTHORIZATION).cloned() }
    }

    /// The call that a request becomes.
    fn call(&self, request: Request, record: &Record) -> Arc<Call> {
        Arc::new(Call {
            method: Method::of(&request.method),
            request,
            principal: self.principal,
            headers: self.headers.clone(),
            deadline: self.deadline,
            meter: record.meter(),
        })
    }
}

impl Inner {
    /// Whether the request names a session of the proxy's own, whatever its server is thought to be by now.
    pub(in crate::downstream) fn names_our_session(&self, upstream: &Upstream, headers: &HeaderMap) -> bool {
        let name = headers.get(MCP_SESSION_ID);
        name.is_some_and(|name| self.sessions(upstream).is_some_and(|sessions| sessions.is_ours(name)))
    }

    /// A POST of a legacy client to a modern server. `None`: this upstream serves no such clients.
    #[allow(clippy::too_many_arguments, reason = "one caller")]
    pub(super) async fn bridged(
        &self,
        upstream: &Arc<Upstream>,
        headers: &HeaderMap,
        message: &Result<Message, Malformed>,
        text: &Bytes,
        checked: &Checked,
        record: &mut Record,
        place: &mut Place,
    ) -> Result<Option<Response<FrontBody>>, Refusal> {
        let Some(asked) = self.asked(upstream, headers) else { return Ok(None) };
        match message {
            Ok(Message::Request(request)) => {
                let told = self.bridged_request(&asked, request, checked, record, place).await;
                told.map_err(|refusal| refusal.with_id(Some(request.id.clone()))).map(Some)
            }
            Ok(Message::Notification(told)) => {
                let session = self.session(&asked, None).await?;
                self.bridged_notification(&asked, &session, told, record).await.map(Some)
            }
            Ok(Message::Response(answer)) => {
                let session = self.session(&asked, None).await?;
                if !session.answer(asked.reply(answer.clone())) {
                    tracing::debug!("an answer to nothing that is asked is passed over");
                }
                record.outcome(Ended::Accepted);
                Ok(Some(respond::accepted()))
            }
            Err(_) => self.bridged_array(&asked, text, record, place).await.map(Some),
        }
    }

    fn asked<'a>(&'a self, upstream: &'a Arc<Upstream>, headers: &'a HeaderMap) -> Option<Asked<'a>> {
        Some(Asked {
            upstream,
            sessions: self.sessions(upstream)?,
            headers,
            principal: Principal::of(headers.get(AUTHORIZATION)),
            accepts: super::check::accepts(headers),
            deadline: Instant::now() + upstream.settings.timeouts.request,
        })
    }

    async fn bridged_request(
        &self,
        asked: &Asked<'_>,
        request: &Request,
        checked: &Checked,
        record: &mut Record,
        place: &mut Place,
    ) -> Result<Response<FrontBody>, Refusal> {
        match Method::of(&request.method) {
            Method::LegacyOnly(LegacyOnly::Initialize) => {
                return self.greet(asked, request, checked, record).await;
            }
            // Also before there is a session (A1.2).
            Method::LegacyOnly(LegacyOnly::Ping) if !asked.headers.contains_key(MCP_SESSION_ID) => {
                record.outcome(Ended::Result);
                return Ok(respond::message(local::pong(&request.id), asked.accepts));
            }
            _ => {}
        }
        let session = self.session(asked, Some(&request.id)).await?;
        decides_once(request)?;
        match self.local(asked, &session, request).await {
            local::Local::Answer(message, ended) => {
                record.outcome(ended);
                Ok(respond::message(message, asked.accepts))
            }
            local::Local::Fault(fault) => Ok(respond::fault(&fault, &request.id, record)),
            local::Local::Call => self.bridged_call(asked, session, request.clone(), record, place).await,
        }
    }

    async fn bridged_notification(
        &self,
        asked: &Asked<'_>,
        session: &Use,
        told: &Notification,
        record: &mut Record,
    ) -> Result<Response<FrontBody>, Refusal> {
        match self.heard(asked, session, told).await {
            Ok(()) => {
                record.outcome(Ended::Accepted);
                Ok(respond::accepted())
            }
            Err(fault) => Ok(super::respond::fault(&fault, &Carries::Unanswered, record)),
        }
    }

    /// The session that the request names, if it is this client's.
    async fn session(&self, asked: &Asked<'_>, id: Option<&Id>) -> Result<Use, Refusal> {
        let Some(name) = asked.headers.get(MCP_SESSION_ID) else {
            let text = "the Mcp-Session-Id header is required; `initialize` begins a session";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "no-session", text)
                .with_id(id.cloned()));
        };
        if asked.headers.get_all(MCP_SESSION_ID).iter().nth(1).is_some() {
            let text = "the Mcp-Session-Id header is there twice";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "no-session", text)
                .with_id(id.cloned()));
        }
        let found = match asked.sessions.find(name, asked.headers) {
            Found::Session(session) => {
                self.attend(asked, &session);
                Some(session)
            }
            Found::Unknown => None,
            Found::Full(fault) => {
                let (status, reason) = (StatusCode::SERVICE_UNAVAILABLE, fault.kind.ended().label());
                let full = Refusal::new(status, code::INTERNAL_ERROR, reason, fault.text);
                return Err(full.with_id(id.cloned()));
            }
            // The same subject, as it says, with another token: the server is asked whether it takes it for that.
            Found::Stranger(refresh) => {
                let vouched = Box::pin(asked.upstream.modern.vouches(asked.headers)).await;
                vouched.then(|| {
                    let session = refresh.accept();
                    self.follow_anew(asked, &session);
                    session
                })
            }
        };
        found.ok_or_else(|| {
            let text = "there is no such session; `initialize` begins another";
            Refusal::new(StatusCode::NOT_FOUND, code::INVALID_REQUEST, "unknown-session", text)
                .with_id(id.cloned())
        })
    }
}

/// The server is modern, which the log and the metrics are to know also where it is not asked.
pub(super) fn said(record: &Record) {
    record.meter().server(Era::Modern);
    tracing::Span::current().record("server", Era::Modern.name());
}

/// Members that decide something, the server's headers among it, may occur once (architecture, "Raw JSON").
fn decides_once(request: &Request) -> Result<(), Refusal> {
    let Params::Object(body) = &request.params else { return Ok(()) };
    let twice = |duplicate: crate::wire::json::Duplicate| {
        Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "duplicate", duplicate.to_string())
    };
    for name in ["name", "uri", "arguments", "cursor"] {
        body.object.get(&request.text, name).map_err(twice)?;
    }
    if let Some(meta) = &body.meta {
        for name in meta::MODERN_ONLY.iter().chain(&[meta::PROGRESS_TOKEN]) {
            meta.get(&request.text, name).map_err(twice)?;
        }
    }
    Ok(())
}
