//! A session's beginning at the server, the first time and after each loss: the client's own `initialize`, word for word.
//!
//! Owns that exchange and what is learnt from it, the session id and the version. Does not own `notifications/initialized`:
//! the first one is the client's to send, later ones are `renew`'s.

use super::super::super::Shared;
use super::super::super::reply::{NoAnswer, Reply, UpstreamBody};
use super::super::relay::{self, Carries, Passage, Passed};
use super::super::{Goodbye, pool};
use super::Shield;
use super::session::{Leg, Shielded};
use crate::exchange::{Fault, FaultKind};
use crate::seal::unguessable;
use crate::telemetry::metrics::{Opened, UpstreamLimit};
use crate::upstream::places::Place;
use crate::wire::headers::{JSON, MCP_SESSION_ID};
use crate::wire::jsonrpc::{Id, Message, Reply as RpcReply, Response as RpcResponse, string};
use crate::wire::payload::Payload;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Response};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// As much of an `initialize` as is kept for the next time; one that is longer gets no session.
const INITIALIZE: usize = 64 * 1024;

/// How it began.
pub(super) enum Begun {
    Session {
        unused: Unused,
        leg: Leg,
        head: HeaderMap,
        answer: Bytes,
    },
    /// The server's own answer, which is no session.
    Other(Passed),
}

/// The client's own `initialize`: a session of the proxy's for the client, and one of the server's behind it. In a task, so
/// that a session whose client goes away in the middle is still ended.
pub(super) async fn initialize(shield: &Arc<Shield>, passage: &Passage, id: &Id) -> Result<Passed, Fault> {
    let (told, tell) = oneshot::channel();
    let (of_task, passage, id) = (shield.clone(), passage.clone(), id.clone());
    // Owned by the tracker; bounded by the times of a place and of `initialize`.
    drop(shield.shared.shutdown.spawn(async move {
        let session = session(&of_task, &passage, &id).await;
        let name = session.as_ref().ok().and_then(|(name, _)| name.clone());
        if let (Err(_), Some(name)) = (told.send(session.map(|(_, passed)| passed)), name) {
            of_task.end_if(&name, |_| true);
        }
    }));
    let stopped = |_| Err(Fault::new(FaultKind::Draining, "the proxy is shutting down"));
    tell.await.unwrap_or_else(stopped)
}

/// The answer, and the session's name if there is one.
async fn session(
    shield: &Arc<Shield>,
    passage: &Passage,
    id: &Id,
) -> Result<(Option<String>, Passed), Fault> {
    let text = passage.body.to_bytes();
    if text.len() > INITIALIZE {
        let text = format!("an `initialize` of more than {INITIALIZE} bytes gets no session of the proxy");
        return Err(Fault::bad_gateway(text));
    }
    let place = place(shield).await?;
    let (unused, leg, mut head, answer) = match begin(shield, &passage.headers, &text, id, 0).await? {
        Begun::Other(passed) => return Ok((None, passed)),
        Begun::Session { unused, leg, head, answer } => (unused, leg, head, answer),
    };
    let name = unguessable().map_err(|_| internal("the system gives no random numbers"))?;
    let counted = shield.shared.metrics.session_ready();
    let session = Shielded::new(name.clone(), passage.principal, text, id.clone(), leg, place, counted);
    shield.sessions.insert(name.clone(), Arc::new(session));
    unused.taken();
    let shown = HeaderValue::try_from(&name).map_err(|_| internal("a session id could not be written"))?;
    head.insert(MCP_SESSION_ID, shown);
    head.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    let mut response = Response::new(UpstreamBody::Read(answer));
    *response.headers_mut() = head;
    Ok((Some(name), Passed::Response(response)))
}

/// Sends `initialize` and reads its answer, within the time that it may take.
pub(super) async fn begin(
    shield: &Shield,
    headers: &HeaderMap,
    text: &Bytes,
    id: &Id,
    generation: u64,
) -> Result<Begun, Fault> {
    let limit = shield.shared.opening();
    let metrics = &shield.shared.metrics;
    let _opening = metrics.session_opening();
    let begun = exchange(&shield.shared, headers, text, id, generation);
    let begun = timeout(limit, begun).await.unwrap_or_else(|_| {
        let text = format!("the upstream server did not complete `initialize` within {limit:?}");
        Err(Fault::new(FaultKind::Timeout, text))
    });
    metrics.initialized(match &begun {
        Ok(Begun::Session { .. }) => Opened::Ready,
        Ok(Begun::Other(_)) => Opened::Refused,
        Err(_) => Opened::Failed,
    });
    begun
}

async fn exchange(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    text: &Bytes,
    id: &Id,
    generation: u64,
) -> Result<Begun, Fault> {
    let carries = Carries::Initialize(id.clone());
    let head = shared.heads.passed(Method::POST, headers, &[]);
    let response = relay::open(shared, head, Payload::from(text.clone())).await?;
    if !response.status().is_success() {
        return relay::judge(shared, &carries, response).await.map(Begun::Other);
    }
    let response_head = response.headers().clone();
    let session = response_head.get(MCP_SESSION_ID).cloned();
    let authorization = shared.heads.credential(headers);
    let goodbye =
        session.clone().map(|id| Goodbye { id, revision: None, authorization: authorization.clone() });
    let mut unused = Unused { shared: shared.clone(), goodbye };
    let answer = answer(shared, response, id).await?;
    let version = match &answer.reply {
        RpcReply::Result(body) => body
            .object
            .first(&answer.text, "protocolVersion")
            .and_then(|span| string(&answer.text, span))
            .and_then(|version| HeaderValue::try_from(&*version).ok()),
        RpcReply::Error(_) => {
            let mut response = Response::new(UpstreamBody::Read(answer.text.clone()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
            return Ok(Begun::Other(Passed::Response(response)));
        }
    };
    let Some(version) = version else {
        return Err(Fault::bad_gateway("the upstream server's answer to `initialize` names no version"));
    };
    let leg = Leg::new(session, version, generation, authorization);
    unused.goodbye = leg.goodbye();
    Ok(Begun::Session { unused, leg, head: response_head, answer: answer.text })
}

async fn answer(
    shared: &Shared,
    response: Response<crate::upstream::transport::Body>,
    id: &Id,
) -> Result<RpcResponse, Fault> {
    let mut messages = match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await
    {
        Reply::Messages(messages) => messages,
        Reply::Accepted => {
            return Err(Fault::bad_gateway("the upstream server accepted `initialize` without answering it"));
        }
        Reply::Refused(refusal) => return Err(refusal.fault("`initialize`")),
    };
    loop {
        match messages.next().await.map_err(|broken| shared.no_answer(&NoAnswer::from(broken)))? {
            Some(Message::Response(answer))
                if answer.id.is_none_or(|span| span.of(&answer.text) == id.raw()) =>
            {
                return Ok(answer);
            }
            Some(other) => {
                tracing::debug!(?other, "a message before the answer to `initialize` is passed over")
            }
            None => {
                return Err(Fault::bad_gateway(
                    "the upstream server ended its answer to `initialize` without the result",
                ));
            }
        }
    }
}

/// A place for one more; if there is none, the session that has been idle longest makes room.
async fn place(shield: &Shield) -> Result<Place, Fault> {
    if let Some(place) = shield.places.take() {
        return Ok(place);
    }
    shield.shared.metrics.limit(UpstreamLimit::Sessions);
    let idle = shield.sessions.iter().filter_map(|entry| Some((entry.idle()?, entry.key().clone())));
    let longest = idle.max_by_key(|(idle, _)| *idle);
    if let Some((_, name)) = longest {
        shield.end_if(&name, |session| session.idle().is_some());
    }
    let limit = shield.shared.settings.timeouts.initialize;
    if let Some(place) = shield.places.take_freed(limit).await {
        return Ok(place);
    }
    let max = shield.shared.settings.session.max;
    tracing::warn!(upstream = %shield.shared.settings.name, max, "all shielded sessions are busy; raise session.max");
    Err(Fault::new(FaultKind::Busy, "all sessions of the proxy with the upstream server are in use"))
}

fn internal(text: &'static str) -> Fault {
    Fault::new(FaultKind::Internal, text)
}

/// A session that the server may have and nobody uses yet: ended there unless it comes into use.
pub(super) struct Unused {
    shared: Arc<Shared>,
    goodbye: Option<Goodbye>,
}

impl Unused {
    pub(super) fn taken(mut self) {
        self.goodbye = None;
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        if let Some(goodbye) = self.goodbye.take() {
            // Owned by the tracker; bounded as every goodbye.
            drop(self.shared.shutdown.spawn(pool::end(self.shared.clone(), goodbye)));
        }
    }
}
