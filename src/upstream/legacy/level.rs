//! The log level of a session, set for the requests that want logs.
//!
//! Owns `logging/setLevel`: the most verbose level among the session's calls in flight, told before the request that
//! needs it and awaited, only where the server declares `logging` and only when it changes. There is no "off": when
//! nobody wants logs the level stays, and what is more than a request wants is filtered on its stream.
//! Rules: A1.11, B8.1, B8.4; vector D101.

use super::ask::Asker;
use crate::wire::payload::Payload;

/// Sees to it that the server sends what the calls in flight want. A server that refuses sends what it likes, which is
/// no reason to refuse the call.
pub(super) async fn settle(asker: &Asker<'_>) {
    let (legacy, session) = (asker.legacy, asker.session);
    let shared = &legacy.shared;
    if !session.initialized.has("logging", shared.limits) {
        return;
    }
    // Held while the server is told, so that a request that wants less waits instead of telling it less.
    let mut told = session.log_level.lock().await;
    let Some(level) = session.beside.most_verbose().filter(|level| *told != Some(*level)) else { return };
    let number = shared.next_number();
    let message = Payload::from(format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"logging/setLevel","params":{{"level":"{}"}}}}"#,
        level.as_str()
    ));
    // Unknown until it has answered, also where nobody waits any more for that.
    *told = None;
    asker.ask(number, message).await;
    // Also where it refused or was silent: it is not asked again for every call. A lost session is the call's to notice.
    *told = Some(level);
}
