//! The task of a feed: it keeps the session, the stream and the subscriptions as long as there are members.
//!
//! Owns the order of things when the server loses the session: a new one, the subscriptions anew, the stream anew, and
//! only then the members are told to look again (A12.13, D31).

use super::super::super::backoff::Backoff;
use super::super::ask::{Answer, Asker};
use super::super::pool::Lease;
use super::super::{Legacy, Session};
use super::line::Stream;
use super::state::{Status, Step};
use super::{Feed, stream};
use crate::exchange::Call;
use crate::translate::listen;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

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
    let timeouts = &legacy.shared.settings.timeouts;
    let mut backoff = Backoff::new(timeouts.reconnect, timeouts.reconnect_max);
    let mut pause = None;
    loop {
        let since = Instant::now();
        match in_session(&legacy, &feed, &call, &lease).await {
            Over::Left => break,
            Over::Lost => {
                feed.restart();
                legacy.pool.lost(&mut lease);
            }
        }
        if since.elapsed() >= timeouts.reconnect_max {
            backoff.reset();
            pause = None;
        }
        // At once the first time, but a server that loses each new session too is not flooded with them.
        match lease_again(&legacy, &feed, &call, pause).await {
            Some(new) => {
                feed.offered(&new.session().initialized, legacy.shared.limits);
                lease = new;
                pause = Some(backoff.pause(None));
            }
            None => break,
        }
    }
    // Both ways out: nobody is in it, or everyone was told to go.
    legacy.feeds.forget(key.as_ref(), &feed);
}

/// Another session, after the pause; `None` if nobody listens any more, or the server has become one of the other era.
async fn lease_again(
    legacy: &Arc<Legacy>,
    feed: &Arc<Feed>,
    call: &Call,
    mut pause: Option<Duration>,
) -> Option<Lease> {
    let timeouts = &legacy.shared.settings.timeouts;
    let mut backoff = Backoff::new(timeouts.reconnect, timeouts.reconnect_max);
    loop {
        let left = async {
            while !feed.close_if_empty() {
                feed.work.notified().await;
            }
        };
        let attempt = async {
            if let Some(pause) = pause.take() {
                tokio::select! {
                    () = sleep(pause) => {}
                    () = feed.joined.notified() => {}
                }
            }
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
    // Where the session has its stream followed anyway, it is not followed twice; one that is lost is told of by `lost`.
    let stands = super::stand::stands(legacy, session);
    let mut stream = pin!(async {
        let told = mirror(session, feed);
        if stands {
            return told.await;
        }
        session.line.is(Stream::Opening);
        tokio::select! {
            () = told => {}
            () = stream::follow(&asker, &session.line) => {}
        }
    });
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

/// Tells the feed how far its session's stream is, whoever follows it. Never ends.
async fn mirror(session: &Session, feed: &Feed) {
    let mut line = session.line.watch();
    let mut gaps = line.borrow().gaps;
    loop {
        let now = *line.borrow_and_update();
        if std::mem::replace(&mut gaps, now.gaps) != now.gaps {
            feed.may_miss();
        }
        if now.stream == Stream::Open && session.id.is_none() && feed.closes_gap() {
            // Nothing tells whether it is still the process that the subscriptions were made with (C04).
            feed.subscribe_again();
        }
        feed.stream_is(now.stream);
        if line.changed().await.is_err() {
            return std::future::pending().await;
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
        (Answer::Lost, _) if asker.finds_it_gone().await => None,
        (Answer::Done, Step::Subscribe(_)) => Some(Status::Subscribed),
        (Answer::Refused | Answer::Lost, Step::Subscribe(_)) => Some(Status::Refused),
        // Whoever wants it by now asks again; if nobody does it is forgotten.
        (Answer::Done | Answer::Refused | Answer::Lost, Step::Unsubscribe(_)) => Some(Status::Wanted),
    };
    (uri.clone(), status)
}
