//! Opening a session: `initialize`, then `notifications/initialized`, and only then anything else (A1.1, A2.1).
//!
//! Owns the handshake and the reading of its refusals. The handshake runs in a task of its own (see `pool`), under the
//! headers of the request that made it necessary.

use super::super::Shared;
use super::super::reply::{Messages, NoAnswer, Refusal, Reply};
use super::session::{Session, SessionKey};
use crate::exchange::{Fault, FaultKind};
use crate::translate::discover::{self, Initialized};
use crate::wire::headers;
use crate::wire::json::Kind;
use crate::wire::jsonrpc::{self, Message, Reply as RpcReply, Response, code};
use crate::wire::payload::Payload;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Why there is no session.
#[derive(Debug, Clone)]
pub struct OpenFault {
    pub fault: Fault,
    /// The server refused in a way that only a modern server does (C39a).
    pub modern: bool,
}

impl From<Fault> for OpenFault {
    fn from(fault: Fault) -> Self {
        Self { fault, modern: false }
    }
}

/// What the opening needs of the request that made it necessary.
pub(super) struct Opener {
    pub(super) headers: HeaderMap,
    pub(super) client_info: Option<Bytes>,
    pub(super) capabilities: &'static str,
}

pub(super) async fn open(
    shared: &Arc<Shared>,
    opener: Opener,
    key: Option<SessionKey>,
) -> Result<Arc<Session>, OpenFault> {
    let limit = shared.settings.timeouts.initialize;
    match timeout(limit, handshake(shared, &opener, key)).await {
        Ok(Ok(session)) => {
            tracing::debug!(
                upstream = %shared.settings.name,
                revision = session.initialized.revision.as_str(),
                stateful = session.id.is_some(),
                "session opened"
            );
            Ok(session)
        }
        Ok(Err(fault)) => Err(fault),
        Err(_) => Err(late(limit)),
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
    let info = opener.client_info.as_deref();
    let number = shared.next_number();
    let request = discover::initialize_request(number, opener.capabilities, info);
    let head = shared.heads.legacy(&opener.headers, None);
    let limit = shared.settings.timeouts.initialize;
    let response = shared
        .transport
        .send_within(limit, head, request)
        .await
        .map_err(|error| super::super::send_fault(&shared.settings.name, &error))?;
    let id = response.headers().get(headers::MCP_SESSION_ID).cloned();
    let answer = match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
        Reply::Messages(messages) => answer(shared, opener, id.as_ref(), messages, number)
            .await
            .map_err(|trouble| shared.no_answer(&trouble))?,
        Reply::Accepted => {
            return Err(
                Fault::bad_gateway("the upstream server accepted `initialize` without answering it").into()
            );
        }
        Reply::Refused(refusal) => return Err(refused(&refusal)),
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
                modern: is_modern_code(error.code),
            });
        }
    };
    let initialized = initialized.map_err(|fault| {
        OpenFault::from(Fault::bad_gateway(format!("no session with the upstream server: {fault}")))
    })?;
    let credential = shared.heads.credential(&opener.headers);
    let session = Arc::new(Session::new(id, initialized, credential, key));
    let mut unused = Unused { shared, session: Some(session.clone()) };
    confirm(shared, opener, &session).await?;
    unused.session = None;
    Ok(session)
}

/// A session that the server may have and nobody uses yet: ended there unless it is taken out, also where its opener
/// runs out of time.
struct Unused<'a> {
    shared: &'a Arc<Shared>,
    session: Option<Arc<Session>>,
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            drop(self.shared.shutdown.spawn(super::pool::end(self.shared.clone(), session)));
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

/// The answer to `initialize`. Of what a server may send before it, only a `ping` needs an answer (A1.2).
async fn answer(
    shared: &Arc<Shared>,
    opener: &Opener,
    id: Option<&HeaderValue>,
    mut messages: Messages,
    number: u64,
) -> Result<Response, NoAnswer> {
    while let Some(message) = messages.next().await? {
        match message {
            Message::Response(response) if response.answers(number) || response.id.is_none() => {
                return Ok(response);
            }
            Message::Request(asked) if asked.method == "ping" => {
                let mut head = shared.heads.legacy(&opener.headers, None);
                if let Some(id) = id {
                    head.headers.insert(headers::MCP_SESSION_ID, id.clone());
                }
                let pong = format!(
                    r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#,
                    String::from_utf8_lossy(asked.id.raw())
                );
                // Bounded with the whole handshake.
                shared.transport.send(head, Payload::from(pong)).await?;
            }
            Message::Response(_) | Message::Request(_) | Message::Notification(_) => {}
        }
    }
    Err(super::super::reply::Break::Body.into())
}

fn refused(refusal: &Refusal) -> OpenFault {
    let modern = match refusal.status.as_u16() {
        400 => refusal.code().is_some_and(is_modern_code),
        // An unknown method by the modern rules (A11.3).
        404 => refusal.code() == Some(code::METHOD_NOT_FOUND),
        _ => false,
    };
    OpenFault { fault: refusal.fault("`initialize`"), modern }
}

fn is_modern_code(code: i64) -> bool {
    matches!(code, code::UNSUPPORTED_PROTOCOL_VERSION | code::HEADER_MISMATCH)
}

/// The raw `clientInfo` of a request as the session's own (A9.1).
pub(super) fn client_info(request: &jsonrpc::Request) -> Option<Bytes> {
    let info = crate::translate::declared::client_info(request)?;
    (Kind::of(info) == Some(Kind::Object)).then(|| Bytes::copy_from_slice(info))
}
