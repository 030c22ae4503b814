//! A call on its way to the server, and its cancellation there.
//!
//! Owns the rule that whatever is still on its way when nobody waits any more is cancelled once, by the id it was sent
//! under, however the call's own future ends; what the server has asked in it is answered before, so that it waits for
//! nobody. Does not own what is sent (`call`). Rules: A2.2, A12.19, B1.7, B14; case C23; vector D39.

use super::Legacy;
use super::call::Asking;
use super::pool::Lease;
use crate::exchange::Call;
use crate::wire::payload::Payload;
use futures_util::stream::{self, StreamExt};
use std::sync::Arc;
use tracing::Instrument;

/// What has been sent for the call, for its cancellation.
pub(super) struct Sent {
    pub(super) lease: Lease,
    /// The request in whose name the server is told.
    pub(super) call: Arc<Call>,
    /// The number it was sent under last; `None` while nothing is on its way.
    pub(super) number: Option<u64>,
    /// It waits for its turn among the calls of its session.
    pub(super) in_line: bool,
    /// The call ends here though the server still works on it.
    pub(super) abandoned: bool,
    /// Its seat's number, as long as it may be asked something.
    pub(super) seat: Option<u64>,
    /// What the server asks.
    pub(super) asking: Asking,
}

/// Answers in the client's place that are on their way at once.
const AT_ONCE: usize = 8;

pub(super) const CLIENT_GONE: &str = "the client closed its request";

/// A call on its way. Dropping it cancels the call at the server: at the end of `run`, or in the middle with whoever polls
/// it, which is its client's going away.
pub(super) struct AtWork {
    legacy: Arc<Legacy>,
    /// `None` once there is nothing to cancel.
    pub(super) sent: Option<Sent>,
    pub(super) reason: &'static str,
}

impl AtWork {
    pub(super) fn new(legacy: &Arc<Legacy>, call: &Arc<Call>, lease: Lease) -> Self {
        let sent = Sent {
            lease,
            call: call.clone(),
            number: None,
            in_line: false,
            abandoned: false,
            seat: None,
            asking: Asking::default(),
        };
        Self { legacy: legacy.clone(), sent: Some(sent), reason: CLIENT_GONE }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let Some(sent) = self.sent.take().filter(|sent| sent.number.is_some()) else { return };
        let legacy = self.legacy.clone();
        let stopped = self.reason == CLIENT_GONE && legacy.shared.shutdown.is_cut();
        let reason = if stopped { "the proxy was stopped" } else { self.reason };
        let cancel = async move { cancel(&legacy, sent, reason).await };
        // Owned by the tracker; bounded by twice the time that `initialize` may take. A task, since nobody may
        // poll the call any more: who waited for it has its outcome or has gone.
        drop(self.legacy.shared.shutdown.spawn(cancel.in_current_span()));
    }
}

/// Tells the server that nobody waits any more; a bare disconnect means nothing to it (A12.19).
async fn cancel(legacy: &Arc<Legacy>, sent: Sent, reason: &'static str) {
    let Sent { lease, call, number, seat, asking, .. } = sent;
    let Some(number) = number else { return };
    let cancelled = Payload::from(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},"reason":"{reason}"}}}}"#
    ));
    let post = async |message: Payload| {
        let posted = legacy.post(lease.session(), &call.headers, message).await;
        if let Err(fault) = &posted {
            tracing::debug!(upstream = %legacy.shared.settings.name, %fault, "a cancellation did not reach the upstream server");
        }
        posted.is_ok()
    };
    // In this order, but whatever becomes of the answers the cancellation goes too.
    let mut answers = stream::iter(asking.last_words()).map(&post).buffer_unordered(AT_ONCE);
    while answers.next().await.is_some() {}
    let told = post(cancelled).await;
    if let Some(seat) = seat.filter(|_| told) {
        lease.session().floor.is_told(seat);
    }
}
