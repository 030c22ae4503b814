//! The task of a feed: it keeps the session, the stream and the subscriptions as long as there are members.
//!
//! Owns the order of things when the server loses the session: a new one, the subscriptions anew, the stream anew, and
//! only then the members are told to look again (A12.13, D31).

use super::super::Legacy;
use super::super::ask::{Answer, Asker};
use super::super::pool::Lease;
use super::backoff::Backoff;
use super::{Feed, Status, Step, stream};
use crate::exchange::Call;
use crate::translate::listen;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::pin;
use std::sync::Arc;
use tokio::time::sleep;

/// Subscriptions that are asked for at once.
const AT_ONCE: usize = 8;

/// Why a session's time is over.
enum Over {
    /// Nobody listens any more.
    Left,
    Lost,
}

pub(super) async fn run(legacy: Arc<Legacy>, feed: Arc<Feed>, call: Call, mut lease: Lease) {
    let key = lease.session().key.clone();
    loop {
        match in_session(&legacy, &feed, &call, &lease).await {
            Over::Left => break,
            Over::Lost => {
                feed.restart();
                legacy.pool.lost(&mut lease);
            }
        }
        match lease_again(&legacy, &feed, &call).await {
            Some(new) => lease = new,
            None => break,
        }
    }
    // Both ways out: nobody is in it, or everyone was told to go.
    legacy.feeds.forget(key.as_ref(), &feed);
}

/// Another session; `None` if nobody listens any more, or the server has become one of the other era.
async fn lease_again(legacy: &Arc<Legacy>, feed: &Arc<Feed>, call: &Call) -> Option<Lease> {
    let timeouts = &legacy.shared.settings.timeouts;
    let mut backoff = Backoff::new(timeouts.reconnect, timeouts.reconnect_max);
    loop {
        let left = async {
            while !feed.close_if_empty() {
                feed.work.notified().await;
            }
        };
        let attempt = async {
            let open = match legacy.lease(call).await {
                Ok(lease) => return Some(Ok(lease)),
                Err(open) => open,
            };
            tracing::info!(upstream = %legacy.shared.settings.name, fault = %open.fault, "no session for the listeners");
            if open.refused {
                return Some(Err(()));
            }
            sleep(backoff.pause(None)).await;
            None
        };
        let attempted = tokio::select! {
            () = left => return None,
            attempted = attempt => attempted,
        };
        match attempted {
            Some(Ok(lease)) => return Some(lease),
            // Another era, most likely: their clients find out by listening again.
            Some(Err(())) => {
                feed.end();
                return None;
            }
            None => {}
        }
    }
}

async fn in_session(legacy: &Arc<Legacy>, feed: &Arc<Feed>, call: &Call, lease: &Lease) -> Over {
    let session = lease.session();
    let key = session.key.as_ref();
    let asker = Asker { legacy, session, principal: call.principal, headers: &call.headers };
    let mut stream = pin!(stream::follow(&asker, feed));
    let mut asking = FuturesUnordered::new();
    loop {
        while asking.len() < AT_ONCE
            && let Some(step) = feed.next_step()
        {
            asking.push(take(&asker, step));
        }
        feed.end_promised();
        feed.catch_up();
        if asking.is_empty() && legacy.feeds.forget(key, feed) {
            return Over::Left;
        }
        tokio::select! {
            () = &mut stream => return Over::Lost,
            () = session.lost() => return Over::Lost,
            Some((uri, status)) = asking.next() => match status {
                Some(status) => feed.answered(&uri, status),
                None => return Over::Lost,
            },
            () = feed.work.notified() => {}
        }
    }
}

/// Tells the server about one URI. `None`: the session is gone.
async fn take(asker: &Asker<'_>, step: Step) -> (Arc<str>, Option<Status>) {
    let number = asker.legacy.shared.next_number();
    let (method, uri) = match &step {
        Step::Subscribe(uri) => ("resources/subscribe", uri),
        Step::Unsubscribe(uri) => ("resources/unsubscribe", uri),
    };
    let answer = asker.ask(number, listen::subscribe(number, method, uri)).await;
    let status = match (answer, &step) {
        (Answer::Lost, _) => None,
        (Answer::Done, Step::Subscribe(_)) => Some(Status::Subscribed),
        (Answer::Refused, Step::Subscribe(_)) => Some(Status::Refused),
        // Whoever wants it by now asks again; if nobody does it is forgotten.
        (Answer::Done | Answer::Refused, Step::Unsubscribe(_)) => Some(Status::Wanted),
    };
    (uri.clone(), status)
}
