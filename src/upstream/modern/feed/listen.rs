//! One `subscriptions/listen` at a modern server, from its request to its end.
//!
//! Owns sending it, reading what comes, telling what of it belongs to the subscription, and what its end means. Does not own
//! when it is sent nor what follows (`plan`, `line`). Messages that are kept hold no piece of the stream.
//! Rules: A2.5, A2.6, A2.10, A4.9, A12, B9.6, B9.7; spec 2026-07-28 basic/patterns/subscriptions.

use super::plan::End;
use super::state::Wish;
use crate::exchange::Fault;
use crate::telemetry::metrics::Held;
use crate::translate::legacy_client::listen;
use crate::translate::legacy_client::notify::{self, Acknowledged, Change};
use crate::translate::notify::cancelled_request;
use crate::upstream::reply::{Messages, Refusal, Reply};
use crate::upstream::transport::RequestHead;
use crate::upstream::{Shared, unsent};
use crate::wire::jsonrpc::{Message, Notification, Reply as RpcReply, Response, code, is_number};
use crate::wire::payload::Payload;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper::header::{HeaderValue, RETRY_AFTER};
use std::sync::Arc;
use std::time::Duration;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A notification above this size is passed on as no more than its change: many may keep it.
const LARGE: usize = 16 * 1024;

/// No message of a subscription is larger: an acknowledgement may repeat all URIs, however they are written.
const MOST_BYTES: usize = 4 * 1024 * 1024;

pub(super) struct Listen {
    shared: Arc<Shared>,
    number: u64,
    pub(super) wish: Wish,
    acknowledged: bool,
    phase: Phase,
}

enum Phase {
    Opening(BoxFuture<'static, Result<Messages, End>>),
    /// Counted as long as it is open.
    Open(Box<Messages>, #[allow(dead_code, reason = "a guard")] Held),
    Ended,
}

/// What a listen tells.
pub(super) enum Heard {
    /// The first message of the server; what it says comes only once.
    Acknowledged(Acknowledged),
    Changed(Change, Payload),
    Ended(End),
}

impl Listen {
    pub(super) fn begin(shared: &Arc<Shared>, head: RequestHead, wish: Wish) -> Self {
        let number = shared.next_number();
        let body = listen::request(number, wish.lists, &wish.uris);
        let opening = open(shared.clone(), head, body, number).boxed();
        Self { shared: shared.clone(), number, wish, acknowledged: false, phase: Phase::Opening(opening) }
    }

    /// What it tells next; never anything after its end. Whoever stops waiting loses nothing.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            let messages = match &mut self.phase {
                Phase::Opening(opening) => {
                    match opening.await {
                        Ok(messages) => {
                            let counted = self.shared.metrics.listen();
                            self.phase = Phase::Open(Box::new(messages), counted);
                        }
                        Err(end) => return self.end(end),
                    }
                    continue;
                }
                Phase::Open(messages, _) => messages,
                Phase::Ended => return std::future::pending().await,
            };
            let end = match messages.next().await {
                Ok(Some(message)) => match self.read(message) {
                    Some(Heard::Ended(end)) => end,
                    Some(heard) => return heard,
                    None => continue,
                },
                Ok(None) => self.over(),
                Err(broken) => {
                    let broken = self.shared.broken(broken);
                    tracing::debug!(upstream = %self.shared.settings.name, %broken, "a listen broke off");
                    if self.acknowledged { self.over() } else { End::Failed(Fault::from(broken)) }
                }
            };
            return self.end(end);
        }
    }

    fn end(&mut self, end: End) -> Heard {
        self.phase = Phase::Ended;
        Heard::Ended(end)
    }

    /// It has ended without an error.
    fn over(&self) -> End {
        if !self.acknowledged {
            let text = "the upstream server ended the subscription before it had acknowledged it";
            return End::Failed(Fault::bad_gateway(text));
        }
        let retry = match &self.phase {
            Phase::Open(messages, _) => messages.retry(),
            Phase::Opening(_) | Phase::Ended => None,
        };
        End::Over { retry }
    }

    fn read(&mut self, message: Message) -> Option<Heard> {
        match message {
            Message::Notification(notification) => self.notified(&notification),
            Message::Response(response) if response.answers(self.number) || response.id.is_none() => {
                Some(Heard::Ended(self.answered(&response)))
            }
            Message::Response(_) => None,
            Message::Request(request) => {
                // No modern server asks anything in this way.
                tracing::debug!(method = %request.method, "a request on the stream of a listen");
                None
            }
        }
    }

    fn notified(&mut self, notification: &Notification) -> Option<Heard> {
        if let Some(id) = cancelled_request(notification) {
            return is_number(id.raw(), self.number).then(|| Heard::Ended(self.over()));
        }
        let foreign = notify::subscription_id(notification).is_some_and(|id| !is_number(id, self.number));
        if foreign {
            tracing::debug!(method = %notification.method, "a message of another subscription is passed over");
            return None;
        }
        if notification.method == ACKNOWLEDGED {
            if std::mem::replace(&mut self.acknowledged, true) {
                return None;
            }
            // What cannot be read names nothing.
            let honoured = notify::acknowledged(notification, self.shared.limits).unwrap_or_default();
            return Some(Heard::Acknowledged(honoured));
        }
        let Some((change, message)) = notify::change(notification) else {
            tracing::debug!(method = %notification.method, "nobody can be told of it");
            return None;
        };
        let message = if message.len() > LARGE {
            notify::announce(&change)
        } else {
            // A copy, so that a short message which waits does not keep a long piece of the stream.
            Payload::from(Bytes::copy_from_slice(&message.to_bytes()))
        };
        Some(Heard::Changed(change, message))
    }

    /// The answer to the request is the end of the subscription: a graceful one, or a refusal.
    fn answered(&self, response: &Response) -> End {
        match &response.reply {
            RpcReply::Result(_) => self.over(),
            RpcReply::Error(_) if self.acknowledged => self.over(),
            RpcReply::Error(error) => {
                let told = error.brief(&response.text);
                let text = format!("the upstream server refused {}: {told} ({})", listen::METHOD, error.code);
                by_code(error.code, Fault::bad_gateway(text))
            }
        }
    }
}

async fn open(shared: Arc<Shared>, head: RequestHead, body: Payload, number: u64) -> Result<Messages, End> {
    let sent = shared.transport.send(head, body).await;
    let response = sent.map_err(|error| {
        tracing::debug!(upstream = %shared.settings.name, %error, "a listen could not be sent");
        End::Failed(unsent(&error))
    })?;
    let most = shared.settings.limits.message_bytes.min(MOST_BYTES);
    match Reply::read(response, most, shared.limits).await {
        Reply::Messages(messages) => Ok(messages.awaiting(number)),
        // Taken for a notification, most likely.
        Reply::Accepted => Err(End::Absent),
        Reply::Refused(refusal) => Err(refused(&refusal)),
    }
}

fn refused(refusal: &Refusal) -> End {
    let fault = refusal.fault(listen::METHOD);
    match (refusal.status.as_u16(), refusal.code()) {
        (401 | 403, _) => End::Denied(fault),
        (429, _) => End::Limited(fault, retry_after(refusal)),
        (503, _) if refusal.headers.contains_key(RETRY_AFTER) => End::Limited(fault, retry_after(refusal)),
        (_, Some(code)) => by_code(code, fault),
        (404 | 405 | 501, None) => End::Absent,
        (_, None) => End::Failed(fault),
    }
}

fn by_code(code: i64, fault: Fault) -> End {
    match code {
        code::METHOD_NOT_FOUND => End::Absent,
        code::INVALID_PARAMS | code::INVALID_REQUEST => End::Refused(fault),
        _ => End::Failed(fault),
    }
}

/// Seconds; a date is as good as nothing said, since clocks differ.
fn retry_after(refusal: &Refusal) -> Option<Duration> {
    let seconds = |value: &HeaderValue| value.to_str().ok()?.trim().parse().ok();
    refusal.headers.get(RETRY_AFTER).and_then(seconds).map(Duration::from_secs)
}
