//! The GET stream of one session.
//!
//! Owns opening it, reading it, and opening it again with backoff, jitter and `Last-Event-ID`; whether a refusal means
//! that the server has no such stream, that it has none just now, or that the session is gone, which a POST must
//! confirm (C08). Nothing here holds up a POST, nor does a server that does not take an answer hold up the stream.
//! Rules: A12.14, A13.5, B9.3, B8.3; cases C08, C48; spec 2025-11-25 basic/transports, Listening for Messages.

use super::super::super::backoff::Backoff;
use super::super::super::reply::{Break, Messages, Refusal, Reply};
use super::super::ask::Asker;
use super::line::{Line, Stream};
use crate::telemetry::metrics::StreamKind;
use crate::translate::listen::Notice;
use crate::translate::notify::Kind;
use crate::wire::headers::ContentType;
use crate::wire::jsonrpc::Message;
use crate::wire::payload::Payload;
use bytes::Bytes;
use hyper::header::HeaderValue;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// A stream that lived this long, or on which something came, stood; one that did not is a server's way of having none.
const STOOD: Duration = Duration::from_secs(1);

/// Answers to a server's requests that may be on their way at once; a server that asks faster waits.
const REPLIES: usize = 8;

/// Where a stream goes on, and when. Both hold until the server says otherwise.
#[derive(Default)]
struct Resumption {
    /// The stream has been open in this session.
    stood: bool,
    last_event: Option<Bytes>,
    retry: Option<Duration>,
}

enum Opened {
    Messages(Box<Messages>),
    /// Not now.
    Later,
    /// Not from where the last one ended.
    Forgotten,
    /// Not in this session.
    Never(String),
    Lost,
}

/// Follows the stream until the session is gone.
pub(super) async fn follow(asker: &Asker<'_>, line: &Line) {
    let timeouts = &asker.legacy.shared.settings.timeouts;
    let mut backoff = Backoff::new(timeouts.reconnect, timeouts.reconnect_max);
    let mut from = Resumption::default();
    let upstream = &asker.legacy.shared.settings.name;
    let mut away = false;
    loop {
        match opened(asker, line, &from).await {
            Opened::Lost => return,
            Opened::Never(why) => {
                tracing::debug!(upstream, why, "no stream for messages outside calls");
                line.is(Stream::Absent);
                return std::future::pending().await;
            }
            Opened::Later => {
                if !std::mem::replace(&mut away, true) {
                    tracing::warn!(
                        upstream,
                        "the upstream server's stream cannot be opened now; what it tells or asks there waits for it"
                    );
                }
                line.may_miss();
                line.has_failed();
            }
            Opened::Forgotten => {
                from.last_event = None;
                line.may_miss();
            }
            Opened::Messages(mut messages) => {
                line.is_open();
                from.stood = true;
                if std::mem::take(&mut away) {
                    tracing::info!(upstream, "the upstream server's stream is open again");
                }
                let _counted = asker.legacy.shared.metrics.stream(StreamKind::UpstreamGet);
                let since = Instant::now();
                let broken = read(asker, &mut messages).await;
                if broken.is_none() && asker.legacy.shared.transport.is_channel() {
                    // It ends with the session alone.
                    return;
                }
                from.last_event = match broken {
                    None | Some(Break::Body) => messages.resumption().map(|(id, _)| id),
                    // It would be the same again.
                    Some(_) => None,
                };
                from.retry = messages.retry().or(from.retry);
                if from.last_event.is_none() {
                    // What the server tells until it is open again is told to nobody.
                    line.may_miss();
                }
                if messages.moved() || since.elapsed() >= STOOD {
                    backoff.reset();
                    line.has_stood();
                } else {
                    line.has_failed();
                }
            }
        }
        line.is(Stream::Broken);
        tokio::select! {
            () = sleep(backoff.pause(from.retry)) => {}
            // A call would be sent without it.
            () = line.wanted() => {}
        }
    }
}

/// Asks for the stream. While the server is silent, whoever waits for it is let go after `timeouts.stream`.
async fn opened(asker: &Asker<'_>, line: &Line, from: &Resumption) -> Opened {
    let mut open = pin!(open(asker, from));
    let settle = asker.legacy.shared.settings.timeouts.stream;
    match timeout(settle, &mut open).await {
        Ok(opened) => opened,
        Err(_) => {
            line.is(Stream::Silent);
            open.await
        }
    }
}

async fn open(asker: &Asker<'_>, from: &Resumption) -> Opened {
    let shared = &asker.legacy.shared;
    let last_event = from.last_event.as_ref().and_then(|id| HeaderValue::from_bytes(id).ok());
    let head = shared.heads.stream(asker.headers, asker.session, last_event);
    let response = match shared.transport.send(head, Payload::default()).await {
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(upstream = %shared.settings.name, %error, "the stream cannot be opened");
            return Opened::Later;
        }
    };
    let status = response.status();
    let kind = response.headers().get("content-type").map(|value| ContentType::parse(value.as_bytes()));
    if status.is_success() {
        if kind != Some(ContentType::EventStream) {
            return Opened::Never(format!("status {}, no event stream", status.as_u16()));
        }
        let limit = shared.settings.limits.message_bytes;
        let body = response.into_body();
        let messages = Messages::events_after(from.last_event.clone(), body, limit, shared.limits);
        return Opened::Messages(Box::new(messages));
    }
    match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
        Reply::Refused(refusal) => refused(asker, &refusal, from).await,
        Reply::Accepted | Reply::Messages(_) => Opened::Never(format!("status {}", status.as_u16())),
    }
}

async fn refused(asker: &Asker<'_>, refusal: &Refusal, from: &Resumption) -> Opened {
    let status = refusal.status.as_u16();
    match status {
        // Credentials and load come and go; they are no verdict on the stream (C16).
        401 | 403 | 408 | 425 | 429 => return Opened::Later,
        // The server has not noticed yet that the former stream broke: there may be one a session.
        409 => return Opened::Later,
        // The protocol's own way to say so.
        405 if !from.stood => return Opened::Never(String::from("status 405")),
        501 => {}
        500.. => return Opened::Later,
        _ => {}
    }
    // A server that has become a modern one has no such stream either.
    if asker.finds_it_gone().await {
        return Opened::Lost;
    }
    if from.last_event.is_some() && !matches!(status, 405 | 501) {
        return Opened::Forgotten;
    }
    Opened::Never(format!("status {status}"))
}

/// Reads the stream to its end, and says how it broke off if it did.
async fn read(asker: &Asker<'_>, messages: &mut Messages) -> Option<Break> {
    let legacy = asker.legacy;
    let places = Arc::new(Semaphore::new(REPLIES));
    loop {
        let message = match messages.next().await {
            Ok(Some(message)) => message,
            Ok(None) => return None,
            Err(broken) => {
                let broken = legacy.shared.broken(broken);
                tracing::debug!(upstream = %legacy.shared.settings.name, %broken, "the stream broke off");
                return Some(broken);
            }
        };
        match message {
            Message::Notification(notification) => match Kind::of(&notification.method) {
                Kind::Changed => {
                    if let Some(notice) = Notice::of(notification) {
                        legacy.listeners.tell(asker.principal, notice);
                    }
                }
                Kind::Progress => asker.session.beside.progress(notification),
                Kind::Log => asker.session.beside.log(notification),
                Kind::LegacyOnly => asker.session.server_tells(&notification),
                Kind::Custom => {
                    tracing::debug!(method = %notification.method, "nobody can be told of it");
                }
            },
            Message::Request(asked) => {
                if let Some(answer) = asker.asked_beside(&asked) {
                    asker.answer_aside(answer, &places).await;
                }
            }
            // An answer that is repeated here has been given where it was waited for, or nobody waits any more.
            Message::Response(_) => {}
        }
    }
}
