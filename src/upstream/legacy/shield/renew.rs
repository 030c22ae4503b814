//! Another session at the server for a client that need not know of it.
//!
//! Owns what the server is told, and in which order, before anything of the client's reaches it: the client's `initialize`,
//! `notifications/initialized`, the last log level, the subscriptions. What the proxy asks in the session has ids that no
//! client uses. Rules: A12.13; case C02.

use super::super::super::Shared;
use super::super::super::reply::{Refusal, Reply};
use super::super::gate::{self, Gate};
use super::super::relay::{self, Passed};
use super::begin::{self, Begun};
use super::session::{Leg, Shielded};
use super::{Shield, call};
use crate::exchange::{Fault, FaultKind};
use crate::seal::unguessable;
use crate::wire::payload::Payload;
use bytes::Bytes;
use hyper::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method};
use std::sync::Arc;
use tokio::time::timeout;

pub(super) async fn renew(
    shield: &Arc<Shield>,
    session: &Arc<Shielded>,
    lost: u64,
    headers: &HeaderMap,
) -> Result<Arc<Leg>, Fault> {
    let current = session.leg();
    if current.generation != lost {
        return Ok(current);
    }
    let (text, id) = (&session.initialize, &session.initialize_id);
    let (unused, leg) = match begin::begin(shield, headers, text, id, lost + 1).await? {
        Begun::Session { unused, leg, .. } => (unused, leg),
        Begun::Other(passed) => return Err(refused(shield, session, &passed)),
    };
    let again = session.again();
    if again.initialized {
        let message = Payload::from(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        if let Some(refusal) = tell(&shield.shared, &leg, headers, message).await? {
            return Err(refusal.fault("`notifications/initialized`"));
        }
    }
    if let Some(params) = again.level {
        ask(shield, &leg, headers, "logging/setLevel", Some(&params)).await;
    }
    for params in again.subscriptions {
        ask(shield, &leg, headers, "resources/subscribe", Some(&params)).await;
    }
    if session.is_over() {
        return Err(Fault::bad_gateway("the session was ended meanwhile"));
    }
    unused.taken();
    shield.shared.metrics.session_lost();
    tracing::info!(upstream = %shield.shared.settings.name, "the upstream server lost a shielded session; another is in its place");
    let leg = session.set_leg(leg);
    // In this order: whoever is woken finds the new one.
    current.is_lost();
    Ok(leg)
}

/// There is no other session. A challenge and a rate limit are the client's to know of (C58); a server that has become
/// modern takes the session with it, so that the client begins anew and is told (C39a).
fn refused(shield: &Shield, session: &Shielded, passed: &Passed) -> Fault {
    let text = "the upstream server lost the session and refused to begin another";
    let response = match passed {
        Passed::Response(response) => response,
        Passed::OtherEra(_) | Passed::Modern(_) => {
            shield.sessions.remove(&session.name);
            session.end();
            return Fault::bad_gateway(text);
        }
    };
    let headers = response.headers();
    let kind = match response.status().as_u16() {
        status @ (401 | 403) => {
            let challenges = headers.get_all(WWW_AUTHENTICATE).iter().cloned().collect();
            FaultKind::Unauthorized { status, challenges }
        }
        429 => FaultKind::RateLimited,
        _ => FaultKind::BadGateway,
    };
    Fault::new(kind, text).with_retry_after(headers.get(RETRY_AFTER).cloned())
}

/// Whether the session is gone by the word of a POST, which a refused GET alone does not say (C08). `None`: the server, in
/// the middle of a restart maybe, did not say.
pub(super) async fn is_lost(shield: &Shield, leg: &Leg, headers: &HeaderMap) -> Option<bool> {
    let id = unguessable().ok()?;
    let ping = Payload::from(format!(r#"{{"jsonrpc":"2.0","id":"janus-{id}","method":"ping"}}"#));
    let refusal = tell(&shield.shared, leg, headers, ping).await.ok()?;
    Some(refusal.is_some_and(|refusal| gate::judge(&refusal, None, leg.id.is_some()) == Gate::Lost))
}

/// A request of the proxy's own. What is answered does not matter; a refusal is handed back.
async fn ask(
    shield: &Shield,
    leg: &Leg,
    headers: &HeaderMap,
    method: &str,
    params: Option<&Bytes>,
) -> Option<Refusal> {
    let id = unguessable().ok()?;
    let params =
        params.map(|raw| format!(r#","params":{}"#, String::from_utf8_lossy(raw))).unwrap_or_default();
    let message = format!(r#"{{"jsonrpc":"2.0","id":"janus-{id}","method":"{method}"{params}}}"#);
    match tell(&shield.shared, leg, headers, Payload::from(message)).await {
        Ok(refusal) => refusal,
        Err(fault) => {
            tracing::debug!(upstream = %shield.shared.settings.name, method, %fault, "the upstream server was not told");
            None
        }
    }
}

/// One message of the proxy's own in the session, taken by the server within the time of `initialize`.
async fn tell(
    shared: &Shared,
    leg: &Leg,
    headers: &HeaderMap,
    message: Payload,
) -> Result<Option<Refusal>, Fault> {
    let limit = shared.settings.timeouts.initialize;
    let told = async {
        let response =
            relay::send(shared, call::head(shared, Method::POST, headers, leg, None), message).await?;
        match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
            Reply::Messages(mut messages) => {
                // Awaited, so that what comes next finds it done.
                let _ = messages.next().await;
                Ok(None)
            }
            Reply::Accepted => Ok(None),
            Reply::Refused(refusal) => Ok(Some(refusal)),
        }
    };
    timeout(limit, told).await.unwrap_or_else(|_| {
        Err(Fault::new(FaultKind::Timeout, "the upstream server did not take a message in time"))
    })
}
