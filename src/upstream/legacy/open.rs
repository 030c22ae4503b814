//! Opening a session: `initialize`, then `notifications/initialized`, and only then anything else (A1.1, A2.1).
//!
//! Owns the handshake, what is declared in it (A3.5), the reading of its refusals, and what a server is answered that asks
//! something before it has answered (B1.12). The handshake runs in a task of its own (see `pool`), under the headers of the
//! request that made it necessary.

use super::super::Shared;
use super::super::reply::{Messages, NoAnswer, Refusal, Reply};
use super::super::transport::SendError;
use super::attribution::{Bounds, Floor, Style};
use super::listeners::Listeners;
use super::question;
use super::session::{Goodbye, Session, SessionKey};
use crate::exchange::{Fault, FaultKind, Principal};
use crate::telemetry::metrics::{NotAsked, Opened};
use crate::translate::answer::{self, Why};
use crate::translate::capabilities::Capabilities;
use crate::translate::discover::{self, Initialized};
use crate::translate::question::Question;
use crate::wire::headers;
use crate::wire::json::Kind;
use crate::wire::jsonrpc::{self, Message, Reply as RpcReply, Request, Response, code};
use crate::wire::payload::Payload;
use crate::wire::version::{LegacyRevision, MODERN};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Why there is no session.
#[derive(Debug, Clone)]
pub struct OpenFault {
    pub fault: Fault,
    /// The server itself refused to initialize, as one does that has become modern (C39a, A15.5).
    pub refused: bool,
    /// It did so with -32022, and names a modern version: it is a modern one (A15.1).
    pub offers_modern: bool,
}

impl From<Fault> for OpenFault {
    fn from(fault: Fault) -> Self {
        Self { fault, refused: false, offers_modern: false }
    }
}

/// What the opening needs of the request that made it necessary.
pub(super) struct Opener {
    pub(super) principal: Principal,
    pub(super) listeners: Arc<Listeners>,
    pub(super) headers: HeaderMap,
    pub(super) client_info: Option<Bytes>,
    pub(super) capabilities: Capabilities,
    pub(super) agreed: Arc<Agreed>,
    pub(super) style: Arc<Style>,
}

/// The revision that the server agreed on last. It is declared to at once from then on, since a declaration is read
/// before the revision is known (A3.5).
#[derive(Debug, Default)]
pub(super) struct Agreed(Mutex<Option<LegacyRevision>>);

impl Agreed {
    fn get(&self) -> LegacyRevision {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(LegacyRevision::LATEST)
    }

    fn set(&self, revision: LegacyRevision) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(revision);
    }
}

pub(super) async fn open(
    shared: &Arc<Shared>,
    opener: Opener,
    key: Option<SessionKey>,
) -> Result<Arc<Session>, OpenFault> {
    let limit = shared.opening();
    let _opening = shared.metrics.session_opening();
    match timeout(limit, handshake(shared, &opener, key)).await {
        Ok(Ok(session)) => {
            shared.metrics.initialized(Opened::Ready);
            tracing::debug!(
                upstream = %shared.settings.name,
                revision = session.initialized.revision.as_str(),
                stateful = session.id.is_some(),
                "session opened"
            );
            Ok(session)
        }
        Ok(Err(open)) => {
            shared.metrics.initialized(if open.refused { Opened::Refused } else { Opened::Failed });
            Err(open)
        }
        Err(_) => {
            shared.metrics.initialized(Opened::Failed);
            Err(late(limit))
        }
    }
}

fn late(limit: Duration) -> OpenFault {
    let text = format!("the upstream server did not complete `initialize` within {limit:?}");
    Fault::new(FaultKind::Timeout, text).into()
}

async fn handshake(
    shared: &Arc<Shared>,
    opener: &Opener,
    key: Option<SessionKey>,
) -> Result<Arc<Session>, OpenFault> {
    let told = opener.agreed.get();
    let mut greeted = greet(shared, opener, told).await?;
    let revision = greeted.initialized.revision;
    opener.agreed.set(revision);
    if opener.capabilities.misread_by(told, revision) {
        tracing::debug!(
            upstream = %shared.settings.name,
            revision = revision.as_str(),
            "the server is of another revision than was declared to; initializing once more"
        );
        // Before the next one begins: a server may be one that has a single session.
        greeted.unused.end().await;
        // Refused or not, it is a legacy server: it has just initialized.
        greeted =
            greet(shared, opener, revision).await.map_err(|open| OpenFault { refused: false, ..open })?;
        opener.agreed.set(greeted.initialized.revision);
    }
    let Greeted { id, initialized, mut unused } = greeted;
    let session = Arc::new(Session::new(
        id,
        initialized,
        shared.heads.credential(&opener.headers),
        opener.capabilities.clone(),
        key,
        floor(shared, opener),
        opener.listeners.session(opener.principal),
        shared.metrics.session_ready(),
    ));
    confirm(shared, opener, &session).await?;
    unused.goodbye = None;
    Ok(session)
}

fn floor(shared: &Shared, opener: &Opener) -> Arc<Floor<Question>> {
    let settings = &shared.settings;
    let bounds = Bounds {
        attribute: settings.timeouts.attribute,
        questions: settings.limits.questions,
        bytes: settings.limits.question_bytes,
        waiting: settings.limits.waiting_calls,
    };
    Floor::new(opener.style.clone(), bounds)
}

/// A server that has answered `initialize` and waits to be told that it may begin.
struct Greeted<'a> {
    id: Option<HeaderValue>,
    initialized: Initialized,
    unused: Unused<'a>,
}

/// `initialize` with what is declared to a server of the revision `told`.
async fn greet<'a>(
    shared: &'a Arc<Shared>,
    opener: &Opener,
    told: LegacyRevision,
) -> Result<Greeted<'a>, OpenFault> {
    let info = opener.client_info.as_deref();
    let number = shared.next_number();
    let request = discover::initialize_request(number, &opener.capabilities.declared_to(told), info);
    let head = shared.heads.legacy(&opener.headers, None);
    let response = shared
        .transport
        .open(shared.opening(), head, request)
        .await
        .map_err(|error| not_opened(shared, &error))?;
    let id = response.headers().get(headers::MCP_SESSION_ID).cloned();
    let credential = shared.heads.credential(&opener.headers);
    let goodbye =
        |id: &HeaderValue| Goodbye { id: id.clone(), revision: None, authorization: credential.clone() };
    // Whatever goes wrong from here on, the server is told that its session is over.
    let mut unused = Unused { shared, goodbye: id.as_ref().map(goodbye) };
    let answer = match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
        Reply::Messages(messages) => answer(shared, opener, id.as_ref(), messages, number)
            .await
            .map_err(|trouble| shared.no_answer(&trouble))?,
        Reply::Accepted => {
            return Err(
                Fault::bad_gateway("the upstream server accepted `initialize` without answering it").into()
            );
        }
        Reply::Refused(refusal) => return Err(refused(shared, &refusal)),
    };
    let initialized = match &answer.reply {
        RpcReply::Result(body) => Initialized::read(&answer, body),
        RpcReply::Error(error) => {
            let message = error.brief(&answer.text);
            return Err(OpenFault {
                fault: Fault::bad_gateway(format!(
                    "the upstream server refused `initialize`: {message} ({})",
                    error.code
                )),
                refused: true,
                offers_modern: offers_modern(shared, &answer),
            });
        }
    };
    let initialized = initialized.map_err(|fault| {
        OpenFault::from(Fault::bad_gateway(format!("no session with the upstream server: {fault}")))
    })?;
    if let Some(goodbye) = &mut unused.goodbye {
        goodbye.revision = Some(initialized.revision);
    }
    Ok(Greeted { id, initialized, unused })
}

fn not_opened(shared: &Shared, error: &SendError) -> Fault {
    let fault = super::super::send_fault(&shared.settings.name, error);
    match error {
        SendError::Ended { what } => {
            Fault::bad_gateway(format!("{what} ended before it answered `initialize`"))
        }
        _ => fault,
    }
}

/// A session that the server may have and nobody uses yet: ended there unless it is taken out, also where its opener
/// runs out of time.
struct Unused<'a> {
    shared: &'a Arc<Shared>,
    goodbye: Option<Goodbye>,
}

impl Unused<'_> {
    /// Ends it now. Whoever stops waiting leaves it to the drop.
    async fn end(&mut self) {
        if let Some(goodbye) = self.goodbye.clone() {
            super::pool::end(self.shared.clone(), goodbye).await;
            self.goodbye = None;
        }
    }
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        if let Some(goodbye) = self.goodbye.take() {
            // Owned by the tracker; bounded as every goodbye.
            drop(self.shared.shutdown.spawn(super::pool::end(self.shared.clone(), goodbye)));
        }
    }
}

async fn confirm(shared: &Shared, opener: &Opener, session: &Session) -> Result<(), OpenFault> {
    let message = Payload::from(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let head = shared.heads.legacy(&opener.headers, Some(session));
    let limit = shared.settings.timeouts.initialize;
    let response = shared
        .transport
        .send_within(limit, head, message)
        .await
        .map_err(|error| super::super::send_fault(&shared.settings.name, &error))?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let refusal = match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
        Reply::Refused(refusal) => refusal,
        Reply::Accepted | Reply::Messages(_) => return Ok(()),
    };
    Err(refusal.fault("`notifications/initialized`").into())
}

/// The answer to `initialize`. Of what a server may send before it, requests need an answer (A1.2, B1.12).
async fn answer(
    shared: &Arc<Shared>,
    opener: &Opener,
    id: Option<&HeaderValue>,
    mut messages: Messages,
    number: u64,
) -> Result<Response, NoAnswer> {
    while let Some(message) = messages.next().await.map_err(|broken| shared.broken(broken))? {
        match message {
            Message::Response(response) if response.answers(number) || response.id.is_none() => {
                return Ok(response);
            }
            Message::Request(asked) => {
                let mut head = shared.heads.legacy(&opener.headers, None);
                if let Some(id) = id {
                    head.headers.insert(headers::MCP_SESSION_ID, id.clone());
                }
                // Bounded with the whole handshake.
                shared.transport.send(head, early(shared, opener, &asked)).await?;
            }
            Message::Response(_) | Message::Notification(_) => {}
        }
    }
    Err(super::super::reply::Break::Body.into())
}

/// What a server is answered that asks before there is a session: nobody can be asked anything yet.
fn early(shared: &Shared, opener: &Opener, asked: &Request) -> Payload {
    match question::read(shared, &opener.capabilities, asked, question::EARLY) {
        Ok(asks) => {
            question::not_asked(shared, NotAsked::Method, &asked.method, question::EARLY);
            answer::refused(&asks, Why::NotPossible)
        }
        Err(answer) => answer,
    }
}

fn refused(shared: &Shared, refusal: &Refusal) -> OpenFault {
    // Credentials, rate limits and the like say nothing of eras (A15.6).
    let refused =
        refusal.status.is_client_error() && !matches!(refusal.status.as_u16(), 401 | 403 | 407 | 421 | 429);
    let offers_modern = refusal.answer.as_ref().is_some_and(|answer| offers_modern(shared, answer));
    OpenFault { fault: refusal.fault("`initialize`"), refused, offers_modern }
}

/// Whether it is -32022 and names a modern version.
pub(super) fn offers_modern(shared: &Shared, answer: &Response) -> bool {
    let RpcReply::Error(error) = &answer.reply else { return false };
    error.code == code::UNSUPPORTED_PROTOCOL_VERSION
        && discover::supported_versions(&answer.text, error.data, shared.limits)
            .is_some_and(|versions| versions.iter().any(|version| version == MODERN))
}

/// The raw `clientInfo` of a request as the session's own (A9.1).
pub(super) fn client_info(request: &jsonrpc::Request) -> Option<Bytes> {
    let info = crate::translate::declared::client_info(request)?;
    (Kind::of(info) == Some(Kind::Object)).then(|| Bytes::copy_from_slice(info))
}
