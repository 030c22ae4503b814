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
use super::session::{Found, Opened, Sessions, Use};
use crate::downstream::FrontBody;
use crate::downstream::front::Inner;
use crate::downstream::modern::check::Refusal;
use crate::downstream::record::Record;
use crate::exchange::{Binding, Call, Principal, Reply};
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
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// A request's place among those in work; taken by what outlives the request.
pub(in crate::downstream) type Place = Option<OwnedSemaphorePermit>;

/// A body of a client that is legacy, or names a session of the proxy's own.
pub(in crate::downstream) struct Post<'a> {
    pub(in crate::downstream) upstream: &'a Arc<Upstream>,
    pub(in crate::downstream) headers: HeaderMap,
    pub(in crate::downstream) message: Result<Message, Malformed>,
    pub(in crate::downstream) text: Bytes,
    /// The session that it names, if that is one of the proxy's own.
    pub(in crate::downstream) ours: Option<Opened>,
}

/// What is to be known of where a request goes and how it is answered.
#[derive(Clone, Copy)]
pub(super) struct Course<'a> {
    pub(super) upstream: &'a Arc<Upstream>,
    pub(super) sessions: &'a Arc<Sessions>,
    pub(super) principal: Principal,
    pub(super) accepts: Accepts,
    pub(super) deadline: Instant,
}

/// What every step up to a call needs to know of the request.
pub(super) struct Asked<'a> {
    pub(super) course: Course<'a>,
    pub(super) headers: &'a HeaderMap,
    /// The session that it names, if that is one of the proxy's own.
    pub(super) ours: Option<&'a Opened>,
}

impl<'a> Deref for Asked<'a> {
    type Target = Course<'a>;

    fn deref(&self) -> &Course<'a> {
        &self.course
    }
}

impl Asked<'_> {
    /// The answer of the client to what it was asked.
    fn reply(&self, response: jsonrpc::Response) -> Reply {
        Reply { response, authorization: self.headers.get(AUTHORIZATION).cloned() }
    }
}

impl Course<'_> {
    /// The call that a request becomes.
    fn call(&self, headers: HeaderMap, request: Request, record: &Record) -> Arc<Call> {
        Arc::new(Call {
            method: Method::of(&request.method),
            request,
            principal: self.principal,
            headers,
            // Such a client says in no header what the server's era wants there.
            binding: Binding::Http,
            deadline: self.deadline,
            meter: record.meter(),
        })
    }
}

/// What a request comes to before anything goes to the server.
#[allow(clippy::large_enum_variant, reason = "made once and taken apart at once")]
enum Begun {
    Response(Response<FrontBody>),
    /// It goes there in this session.
    Call(Use),
}

impl Inner {
    /// The session of the proxy's own that the request names, whatever its server is thought to be by now.
    pub(in crate::downstream) fn our_session(
        &self,
        upstream: &Upstream,
        headers: &HeaderMap,
    ) -> Option<Opened> {
        let name = headers.get(MCP_SESSION_ID)?;
        self.sessions(upstream)?.open(name)
    }

    /// A POST of a legacy client to a modern server. What is not a call is boxed, as calls are the most and a future takes the
    /// room of its largest part.
    pub(super) async fn bridged(
        &self,
        sessions: &Arc<Sessions>,
        post: Post<'_>,
        checked: &Checked,
        record: &mut Record,
        place: &mut Place,
    ) -> Result<Response<FrontBody>, Refusal> {
        let Post { upstream, headers, message, text, ours } = post;
        let course = course(upstream, sessions, &headers);
        let asked = Asked { course, headers: &headers, ours: ours.as_ref() };
        match message {
            Ok(Message::Request(request)) => {
                let begun = self.bridged_request(&asked, &request, checked, record).await;
                match begun.map_err(|refusal| refusal.with_id(Some(request.id.clone())))? {
                    Begun::Response(response) => Ok(response),
                    Begun::Call(session) => {
                        let call = course.call(headers, request, record);
                        Ok(self.bridged_call(&course, session, call, record, place).await)
                    }
                }
            }
            Ok(Message::Notification(told)) => {
                let session = self.session(&asked, None).await?;
                Box::pin(self.bridged_notification(&asked, &session, &told, record)).await
            }
            Ok(Message::Response(answer)) => {
                let session = self.session(&asked, None).await?;
                if !session.answer(asked.reply(answer)) {
                    tracing::debug!("an answer to nothing that is asked is passed over");
                }
                record.outcome(Ended::Accepted);
                Ok(respond::accepted())
            }
            Err(_) => Box::pin(self.bridged_array(&asked, &text, record, place)).await,
        }
    }

    async fn bridged_request(
        &self,
        asked: &Asked<'_>,
        request: &Request,
        checked: &Checked,
        record: &mut Record,
    ) -> Result<Begun, Refusal> {
        match Method::of(&request.method) {
            Method::LegacyOnly(LegacyOnly::Initialize) => {
                let greeted = Box::pin(self.greet(asked, request, checked, record)).await;
                return greeted.map(Begun::Response);
            }
            // Also before there is a session (A1.2).
            Method::LegacyOnly(LegacyOnly::Ping) if !asked.headers.contains_key(MCP_SESSION_ID) => {
                record.outcome(Ended::Result);
                return Ok(Begun::Response(respond::message(local::pong(&request.id), asked.accepts)));
            }
            _ => {}
        }
        let session = self.session(asked, Some(&request.id)).await?;
        decides_once(request)?;
        match self.local(asked, &session, request).await {
            local::Local::Answer(message, ended) => {
                record.outcome(ended);
                Ok(Begun::Response(respond::message(message, asked.accepts)))
            }
            local::Local::Fault(fault) => Ok(Begun::Response(respond::fault(&fault, &request.id, record))),
            local::Local::Call if asked.accepts.nothing() => {
                Err(crate::downstream::legacy::check::no_form(Some(&request.id)))
            }
            local::Local::Call => Ok(Begun::Call(session)),
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
        if !asked.headers.contains_key(MCP_SESSION_ID) {
            let text = "the Mcp-Session-Id header is required; `initialize` begins a session";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "no-session", text)
                .with_id(id.cloned()));
        }
        if asked.headers.get_all(MCP_SESSION_ID).iter().nth(1).is_some() {
            let text = "the Mcp-Session-Id header is there twice";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "no-session", text)
                .with_id(id.cloned()));
        }
        let find = |ours| asked.sessions.find(ours, asked.principal, asked.headers);
        let found = match asked.ours.map_or(Found::Unknown, find) {
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

fn course<'a>(upstream: &'a Arc<Upstream>, sessions: &'a Arc<Sessions>, headers: &HeaderMap) -> Course<'a> {
    Course {
        upstream,
        sessions,
        principal: Principal::of(headers.get(AUTHORIZATION)),
        accepts: super::check::accepts(headers),
        deadline: Instant::now() + upstream.settings.timeouts.request,
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
