//! What of a response goes to the client.
//!
//! Owns the one answer of each request: under the id that the client gave it, once, and not after its cancellation; what else
//! may come with it in the client's era; and the error in words where there is no answer. What is no message never goes out.
//! Rules: A2 ("Direction summary"), A12.2, A12.17, A12.21; cases C17, C18, C31, C53; architecture, invariant 1.

use super::Channel;
use super::again::Effect;
use super::flying::Flight;
use crate::wire::json::{Cursor, Limits, Span, Splice, unescape};
use crate::wire::jsonrpc::{self, Fault, Id, Malformed, Message, Reply, Response};
use crate::wire::version::Era;
use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use smallvec::SmallVec;
use std::borrow::Cow;

/// What a server says was bounded where it was read.
pub(super) const UNBOUNDED: Limits = Limits { nesting: usize::MAX, members: usize::MAX };

/// The requests of one POST that have no answer yet.
pub(super) struct Awaited<'a> {
    pub(super) era: Era,
    flights: SmallVec<[Flight<'a>; 1]>,
    /// The POST held one message and no array.
    single: bool,
    /// What the request changes in its session.
    effect: Option<Effect>,
}

impl<'a> Awaited<'a> {
    pub(super) fn one(era: Era, flight: Flight<'a>) -> Self {
        Self { era, flights: SmallVec::from_iter([flight]), single: true, effect: None }
    }

    pub(super) fn array(flights: SmallVec<[Flight<'a>; 1]>) -> Self {
        Self { era: Era::Legacy, flights, single: false, effect: None }
    }

    pub(super) fn with(mut self, effect: Option<Effect>) -> Self {
        self.effect = effect;
        self
    }

    pub(super) fn is_over(&self) -> bool {
        self.flights.is_empty()
    }

    /// Nobody waits for any more of them.
    pub(super) fn is_cancelled(&self) -> bool {
        self.flights.iter().all(Flight::is_cancelled)
    }

    pub(super) fn is_array(&self) -> bool {
        !self.single
    }

    /// The text without the requests in it that were cancelled before it goes; `None`: nothing is left of it.
    pub(super) fn goes(&mut self, text: Bytes) -> Option<Bytes> {
        let text = match (self.flights.iter().any(Flight::is_cancelled), self.single) {
            (false, _) => text,
            (true, true) => return None,
            (true, false) => {
                let mut kept = items(&text);
                kept.retain(|item| !self.has_given_up(item));
                self.flights.retain(|flight| !flight.is_cancelled());
                if kept.is_empty() {
                    return None;
                }
                array_of(&kept)
            }
        };
        self.flights.iter().for_each(Flight::goes);
        Some(text)
    }

    fn has_given_up(&self, item: &Bytes) -> bool {
        match jsonrpc::parse(item.clone(), UNBOUNDED) {
            Ok(Message::Request(request)) => {
                self.flights.iter().any(|flight| flight.is_cancelled() && flight.id == request.id)
            }
            Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => false,
        }
    }

    /// It has not run, and may go once more.
    pub(super) fn comes_back(&self) {
        self.flights.iter().for_each(Flight::comes_back);
    }

    /// Whether the answer names one of them.
    pub(super) fn names(&self, answer: &Response) -> bool {
        let raw = answer.id.map(|span| span.of(&answer.text));
        raw.is_some_and(|raw| self.flights.iter().any(|flight| is_same(flight.id.raw(), raw)))
    }

    /// The request that is answered, and whether the answer is to be given its id first.
    fn take(&mut self, answer: &Response) -> Option<(Flight<'a>, bool)> {
        let raw = answer.id.map(|span| span.of(&answer.text));
        if let Some(raw) = raw
            && let Some(at) = self.flights.iter().position(|flight| is_same(flight.id.raw(), raw))
        {
            let flight = self.flights.remove(at);
            let spelled_otherwise = flight.id.raw() != raw;
            return Some((flight, spelled_otherwise));
        }
        let ours = match raw {
            // A server that wrote the id in the other JSON type (C17).
            Some(raw) => self.flights.first().is_some_and(|flight| says_the_same(flight.id.raw(), raw)),
            // One that could not tell the id; on the way of the one request it is that request's.
            None => matches!(answer.reply, Reply::Error(_)),
        };
        (self.single && ours).then(|| self.flights.pop()).flatten().map(|flight| (flight, true))
    }

    pub(super) fn into_ids(self) -> impl Iterator<Item = Id> {
        self.flights.into_iter().filter(|flight| !flight.is_cancelled()).map(|flight| flight.id.clone())
    }
}

impl Channel {
    /// One text of a response.
    pub(super) async fn deliver(&self, awaited: &mut Awaited<'_>, text: Bytes) {
        match jsonrpc::parse(text.clone(), UNBOUNDED) {
            Ok(message) => self.message(awaited, message).await,
            Err(Malformed { fault: Fault::Batch, .. }) => {
                for item in items(&text) {
                    if let Ok(message) = jsonrpc::parse(item, UNBOUNDED) {
                        self.message(awaited, message).await;
                    }
                }
            }
            Err(fault) => tracing::debug!(%fault, "what is no message does not go to the client"),
        }
    }

    async fn message(&self, awaited: &mut Awaited<'_>, message: Message) {
        match message {
            Message::Response(answer) => match awaited.take(&answer) {
                Some((flight, named)) => {
                    let cancelled = flight.is_cancelled();
                    if let (Reply::Result(_), Some(effect)) = (&answer.reply, awaited.effect.take()) {
                        self.sessions.memory.take(effect);
                    }
                    let text = if named { under(&flight.id, &answer) } else { answer.text };
                    // The id is free before its sender can know.
                    drop(flight);
                    if !cancelled {
                        self.say(text).await;
                    }
                }
                None => tracing::debug!("an answer to nothing that is awaited is passed over"),
            },
            Message::Notification(told) => self.say(told.text).await,
            Message::Request(asked) => match awaited.era {
                Era::Legacy => self.say(asked.text).await,
                // No modern server asks its client that way.
                Era::Modern => {
                    tracing::debug!(method = %asked.method, "a request of a modern server is passed over")
                }
            },
        }
    }

    /// The answers to an array, as one array; `None`: this is none of them.
    pub(super) async fn array(&self, awaited: &mut Awaited<'_>, text: &Bytes) -> Option<()> {
        let mut answers = Vec::new();
        for item in items(text) {
            match jsonrpc::parse(item, UNBOUNDED) {
                Ok(Message::Response(answer)) => answers.push(answer),
                Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => return None,
            }
        }
        if answers.is_empty() {
            return None;
        }
        let all = answers.len();
        let mut kept = Vec::with_capacity(all);
        for answer in answers {
            if !awaited.take(&answer).is_some_and(|(flight, _)| flight.is_cancelled()) {
                kept.push(answer.text);
            }
        }
        match kept.len() {
            0 => {}
            len if len == all => self.say(text.clone()).await,
            _ => self.say(array_of(&kept)).await,
        }
        Some(())
    }

    /// There is no answer: an error for each that waits for one.
    pub(super) async fn fail(&self, awaited: Awaited<'_>, code: i64, words: &str) {
        for id in awaited.into_ids() {
            self.say(jsonrpc::error(Some(&id), code, words, None)).await;
        }
    }
}

/// Why a response has no answer in it, in words.
pub(super) fn words(status: StatusCode) -> String {
    let number = status.as_u16();
    match number {
        401 | 403 => format!(
            "the upstream server wants a credential, or another one than it was given (HTTP status {number}): see \
             `authorization` in the settings"
        ),
        202 | 204 => "the request was accepted without being answered".to_owned(),
        _ if status.is_success() => "the answer holds no answer to the request".to_owned(),
        _ => format!("the request was refused with HTTP status {number}"),
    }
}

/// An answer under the id that its request has.
fn under(id: &Id, answer: &Response) -> Bytes {
    let mut splice = Splice::new(&answer.text);
    match answer.top.first(&answer.text, "id") {
        Some(span) => splice.replace(span, id.raw().clone()),
        None => {
            let member = format!("\"id\":{},", String::from_utf8_lossy(id.raw()));
            let start = answer.top.span.start + 1;
            splice.replace(Span { start, end: start }, member);
        }
    }
    splice.finish().to_bytes()
}

/// Whether two raw ids are one and the same, however they are spelled.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one == other || one.first() == other.first() && says_the_same(one, other)
}

/// The same where one is a string and the other a number.
fn says_the_same(one: &[u8], other: &[u8]) -> bool {
    bare(one).is_some_and(|text| bare(other) == Some(text))
}

/// The text of an id, of whichever type.
fn bare(raw: &[u8]) -> Option<Cow<'_, str>> {
    unescape(raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or(raw))
}

fn array_of(items: &[Bytes]) -> Bytes {
    let mut array = BytesMut::with_capacity(items.iter().map(|item| item.len() + 1).sum::<usize>() + 1);
    for (at, item) in items.iter().enumerate() {
        array.extend_from_slice(if at == 0 { b"[" } else { b"," });
        array.extend_from_slice(item);
    }
    array.extend_from_slice(b"]");
    array.freeze()
}

/// The texts in an array.
pub(super) fn items(text: &Bytes) -> Vec<Bytes> {
    let mut items = Vec::new();
    let Ok(mut cursor) = Cursor::new(text, UNBOUNDED) else { return items };
    let _ = cursor.array(|cursor| {
        items.push(text.slice(cursor.skip()?.range()));
        Ok(())
    });
    items
}
