//! Where the messages of a call come from: the answer to its POST, from before its head has come, or a stream that takes
//! that one up again.
//!
//! Owns sending the call, and taking its stream up with a pause before, `Last-Event-ID` and a bounded number of tries;
//! polling by GET is how a 2025-11-25 server saves connections (D104). Going on with it can be put off at any time, since a
//! call has more to wait for.

use super::super::super::backoff::Backoff;
use super::super::super::reply::{Arrival, Break, Messages, Reply};
use super::super::super::transport::SendError;
use super::super::{Legacy, Session};
use super::Trouble;
use super::stream::no_answer;
use crate::exchange::Call;
use crate::telemetry::metrics::UpstreamLimit;
use crate::wire::payload::Payload;
use bytes::Bytes;
use hyper::header::HeaderValue;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

type Sending = Pin<Box<dyn Future<Output = Result<Reply, SendError>> + Send>>;
type Reopening = Pin<Box<dyn Future<Output = Result<Option<Messages>, Trouble>> + Send>>;

#[allow(clippy::large_enum_variant, reason = "the large variant is the usual one")]
pub(super) enum Source {
    /// Nothing has been answered yet. A server may ask all the same, and answer only when it has been answered.
    Sent(Sending),
    Open(Messages),
    Reopening(Reopening),
    /// Taken by whoever passes the result on.
    Over,
}

/// What came of a source.
#[allow(clippy::large_enum_variant, reason = "lives for one match")]
pub(super) enum Came {
    /// The head of the answer.
    Replied(Result<Reply, SendError>),
    Arrival(Option<Arrival>),
    Broken(Break),
    /// `None`: the server could not be reached just now.
    Reopened(Result<Option<Messages>, Trouble>),
}

impl Source {
    /// What comes of sending the call.
    pub(super) fn sent(
        legacy: Arc<Legacy>,
        session: Arc<Session>,
        call: Arc<Call>,
        body: Payload,
        number: u64,
    ) -> Self {
        Source::Sent(Box::pin(async move { send(&legacy, &session, call, body, number).await }))
    }

    /// Whoever stops waiting loses nothing.
    pub(super) async fn next(&mut self) -> Came {
        match self {
            Source::Sent(sending) => Came::Replied(sending.await),
            Source::Open(messages) => match messages.arrival().await {
                Ok(arrival) => Came::Arrival(arrival),
                Err(broken) => Came::Broken(broken),
            },
            Source::Reopening(reopening) => Came::Reopened(reopening.await),
            Source::Over => std::future::pending().await,
        }
    }
}

/// Sends the call under `number` and waits for the head of the answer.
pub(super) async fn send(
    legacy: &Legacy,
    session: &Session,
    call: Arc<Call>,
    body: Payload,
    number: u64,
) -> Result<Reply, SendError> {
    let shared = &legacy.shared;
    let head = || shared.heads.legacy(&call.headers, Some(session));
    let response = shared.transport.send_due(&head, body).await?;
    let limits = shared.limits_of(call.method);
    Ok(match Reply::read(response, shared.settings.limits.message_bytes, limits).await {
        Reply::Messages(messages) => Reply::Messages(messages.awaiting(number)),
        Reply::Accepted => Reply::Accepted,
        Reply::Refused(refusal) => Reply::Refused(refusal),
    })
}

/// Where a stream of one call can be taken up, and how often that may be tried.
pub(super) struct Resumption {
    /// Kept over streams: an event id holds until another comes.
    last_event: Option<(Bytes, Option<Duration>)>,
    most: usize,
    left: usize,
}

impl Resumption {
    pub(super) fn new(legacy: &Legacy) -> Self {
        let most = legacy.shared.settings.limits.resumptions;
        Self { last_event: None, most, left: most }
    }

    /// Notes how the stream ended; `broken` is `None` where it ended as streams do.
    pub(super) fn ended(&mut self, messages: &Messages, broken: Option<&Break>) {
        self.note(messages, broken);
        if messages.moved() {
            self.left = self.most;
        }
    }

    /// Notes that it ended in the middle of a message that had begun to pass, which is nothing new.
    pub(super) fn ended_within(&mut self, messages: &Messages, broken: &Break) {
        self.note(messages, Some(broken));
    }

    fn note(&mut self, messages: &Messages, broken: Option<&Break>) {
        match broken {
            None | Some(Break::Body) => {
                self.last_event = messages.resumption().or_else(|| self.last_event.take());
            }
            // It would be the same again.
            Some(_) => self.last_event = None,
        }
    }

    /// Another stream after the one that ended; `None` where the server offers none. `polls`: nothing is to come yet, so
    /// that nothing came is no failure.
    pub(super) fn again(
        &mut self,
        polls: bool,
        legacy: &Arc<Legacy>,
        session: &Arc<Session>,
        call: &Arc<Call>,
        number: u64,
    ) -> Option<Source> {
        let (last_event, retry) = self.last_event.clone()?;
        let Some(left) = self.left.checked_sub(usize::from(!polls)) else {
            legacy.shared.metrics.limit(UpstreamLimit::Resumptions);
            tracing::info!(
                upstream = %legacy.shared.settings.name,
                "a call's stream ended too often without anything new (upstream.*.limits.resumptions)"
            );
            return None;
        };
        self.left = left;
        let (legacy, session, call) = (legacy.clone(), session.clone(), call.clone());
        let reopening = async move { reopen(&legacy, &session, &call, number, &last_event, retry).await };
        Some(Source::Reopening(Box::pin(reopening)))
    }
}

async fn reopen(
    legacy: &Legacy,
    session: &Session,
    call: &Call,
    number: u64,
    last_event: &Bytes,
    retry: Option<Duration>,
) -> Result<Option<Messages>, Trouble> {
    let shared = &legacy.shared;
    let last_event = HeaderValue::from_bytes(last_event).map_err(|_| no_answer())?;
    let timeouts = &shared.settings.timeouts;
    // Always a first pause: a caller waits, and the number of tries is bounded.
    sleep(Backoff::new(timeouts.reconnect, timeouts.reconnect_max).pause(retry)).await;
    let head = shared.heads.stream(&call.headers, session, Some(last_event));
    let response = match shared.transport.send(head, Payload::default()).await {
        Ok(response) if response.status().is_server_error() => return Ok(None),
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(upstream = %shared.settings.name, %error, "a stream could not be taken up again");
            return Ok(None);
        }
    };
    let limits = shared.limits_of(call.method);
    match Reply::read(response, shared.settings.limits.message_bytes, limits).await {
        Reply::Messages(mut messages) => {
            messages.retry_hint(retry);
            Ok(Some(messages.awaiting(number)))
        }
        Reply::Accepted | Reply::Refused(_) => Err(no_answer().into()),
    }
}
