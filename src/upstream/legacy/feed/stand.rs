//! The GET stream of a session whose client can be asked: open as long as the session.
//!
//! A server may put its questions there, and SDK servers drop them without a word while it is not open. So may a server behind
//! one channel, whose pings and log messages come there too, whoever its client is. Owns the task that
//! follows it. The session is not kept busy by it: it is closed when it would be, which ends the task. Does not own what
//! listeners want of the stream (`run`). Rule: B5, last paragraph.

use super::super::ask::Asker;
use super::super::{Legacy, Session};
use super::line::Stream;
use super::stream;
use crate::exchange::Call;
use std::sync::Arc;

/// Whether the stream is followed as long as the session lasts.
pub(super) fn stands(legacy: &Legacy, session: &Session) -> bool {
    session.can_be_asked() || legacy.shared.transport.is_channel()
}

/// Has the session's stream followed from its first use on, in the name of the one who uses it: the session is of one
/// principal.
pub(in super::super) fn attend(legacy: &Arc<Legacy>, session: &Arc<Session>, call: &Call) {
    if !stands(legacy, session) || !session.line.claim() {
        return;
    }
    let standing = Standing(session.clone());
    let (legacy, principal, headers) = (legacy.clone(), call.principal, call.headers.clone());
    // Owned by the tracker; ends with the session, or once nobody uses it while the proxy drains.
    drop(legacy.shared.shutdown.clone().spawn(async move {
        let session = &standing.0;
        let asker = Asker { legacy: &legacy, session, principal, headers: &headers };
        let unused = async {
            legacy.shared.shutdown.draining().await;
            session.unused().await;
        };
        tokio::select! {
            biased;
            () = session.over() => {}
            () = unused => {}
            () = stream::follow(&asker, &session.line) => legacy.pool.found_lost(session),
        }
    }));
}

/// Nobody waits for a stream that nobody follows, however the task ends.
struct Standing(Arc<Session>);

impl Drop for Standing {
    fn drop(&mut self) {
        self.0.line.is(Stream::Absent);
    }
}
