//! The log level of a session, set for the requests that want logs.
//!
//! Owns `logging/setLevel`: sent before the request that needs it and awaited, only where the server declares `logging`
//! and only to make it more verbose. There is no "off", and what is more than a request wants is filtered on its stream,
//! so a level is never lowered. Rules: A1.11, B8.1, B8.4.

use super::super::reply::Reply;
use super::{Legacy, Session};
use crate::exchange::Call;
use crate::translate::declared::LogLevel;
use crate::wire::payload::Payload;

/// Sees to it that the server sends messages from `level` on. A server that refuses sends what it likes, which is no
/// reason to refuse the call.
pub(super) async fn at_least(legacy: &Legacy, call: &Call, session: &Session, level: LogLevel) {
    let shared = &legacy.shared;
    if !session.initialized.has("logging", shared.limits) {
        return;
    }
    // Held while the server is told, so that a request that needs less waits instead of telling it less.
    let mut told = session.log_level.lock().await;
    if told.is_some_and(|told| told <= level) {
        return;
    }
    let number = shared.next_number();
    let message = Payload::from(format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"logging/setLevel","params":{{"level":"{}"}}}}"#,
        level.as_str()
    ));
    let head = shared.heads.legacy(&call.headers, Some(session));
    let limit = shared.settings.timeouts.initialize;
    let answered = async {
        let response = shared.transport.send_within(limit, head, message).await.ok()?;
        match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
            Reply::Messages(mut messages) => messages.next().await.ok(),
            Reply::Accepted | Reply::Refused(_) => None,
        }
    };
    if !matches!(tokio::time::timeout(limit, answered).await, Ok(Some(_))) {
        tracing::debug!(upstream = %shared.settings.name, "the upstream server did not take a log level");
    }
    // Also where it refused or was silent: it is not asked again for every call.
    *told = Some(level);
}
