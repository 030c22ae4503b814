//! What came back for one POST: messages one after another, a bare acceptance, or a refusal.
//!
//! Owns reading both answer styles (a JSON body, an event stream) into parsed messages, one at a time and bounded, a large
//! result in translated pieces where it may pass so, or not yet where nobody is there to take it (`gather`, `pass`), and a
//! refusal (`refusal`). Does not own what a refusal means: the era drivers decide that by status and code.
//! Rules: A12, A13.7, A14.1 (arrays from a 2025-03-26 server); cases C11, C13, C31, C36.

use super::guard::sieve::Sifted;
use super::legacy::Held;
use super::transport::{Body, SendError};
use crate::exchange::Fault;
use crate::telemetry::metrics::UpstreamLimit;
use crate::translate::flow::Flow;
use crate::wire::headers::ContentType;
use crate::wire::json::{Cursor, Limits, Span};
use crate::wire::jsonrpc::{self, Id, Message, code};
use crate::wire::sse;
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Response, StatusCode};
use std::collections::VecDeque;
use std::time::Duration;

mod gather;
mod pass;
mod refusal;

pub(super) use refusal::Refusal;

use gather::{Bounds, Gather};
use pass::more;

/// The body of a response that is passed on.
pub enum UpstreamBody {
    Streaming(Body),
    Read(Bytes),
    /// An event stream that outlives the server's.
    Held(Held),
    /// One that the schema guard looks into while it passes.
    Sifted(Box<Sifted>),
}

impl UpstreamBody {
    /// Whether it is put together of whole messages, as a channel gives them.
    pub fn is_of_channel(&self) -> bool {
        match self {
            UpstreamBody::Streaming(body) => matches!(body, Body::Channel(_)),
            UpstreamBody::Sifted(sifted) => sifted.is_of_channel(),
            UpstreamBody::Read(_) | UpstreamBody::Held(_) => false,
        }
    }

    /// Whether it is an event stream that outlives the server's.
    pub fn is_held(&self) -> bool {
        match self {
            UpstreamBody::Held(_) => true,
            UpstreamBody::Sifted(sifted) => sifted.is_held(),
            UpstreamBody::Streaming(_) | UpstreamBody::Read(_) => false,
        }
    }
}

#[allow(clippy::large_enum_variant, reason = "lives for one match")]
pub(super) enum Reply {
    Messages(Messages),
    /// 2xx without a body to speak of.
    Accepted,
    Refused(Refusal),
}

impl Reply {
    pub(super) async fn read(response: Response<Body>, message_bytes: usize, limits: Limits) -> Self {
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Reply::Refused(Refusal::read(head.status, head.headers, body, limits).await);
        }
        let kind = content_type(&head.headers);
        let nothing = matches!(head.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT)
            && kind != Some(ContentType::EventStream)
            || body.is_end_stream();
        if nothing {
            return Reply::Accepted;
        }
        Reply::Messages(match kind {
            Some(ContentType::EventStream) => Messages::events(body, message_bytes, limits),
            Some(ContentType::Json) => Messages::new(Source::Json(body), message_bytes, limits),
            Some(ContentType::Other) | None => {
                Messages::new(Source::Other(media_type(&head.headers)), message_bytes, limits)
            }
        })
    }
}

/// The messages of one response as they come.
pub(super) struct Messages {
    source: Source,
    queue: VecDeque<Message>,
    limits: Limits,
    bounds: Bounds,
    /// The message that is coming.
    gather: Gather,
    /// It, if it passes.
    flow: Option<Box<Flow>>,
    /// It said `isError`.
    error: bool,
    retry: Option<Duration>,
    /// A message has come since this stream was opened.
    moved: bool,
    awaited: Option<u64>,
}

/// What has come.
#[allow(clippy::large_enum_variant, reason = "lives for one match")]
pub(super) enum Arrival {
    Message(Message),
    /// The result that is waited for has begun; [`Messages::piece`] gives it.
    Flow,
}

enum Source {
    Events(Body, Box<sse::Decoder>),
    Json(Body),
    /// Neither; the media type.
    Other(String),
    Done,
}

/// Why the row of messages broke off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Break {
    #[error(
        "the upstream server answered with {0}, neither JSON nor an event stream; is the URL an MCP endpoint?"
    )]
    ContentType(String),
    #[error("the upstream server's answer is larger than the limit `message_bytes`")]
    TooLarge,
    #[error("the upstream server's answer is not a JSON-RPC message")]
    NotAMessage,
    #[error("the upstream server's answer is nested too deep or has too many members")]
    Bounds,
    #[error("the upstream server's answer broke off")]
    Body,
}

impl Break {
    /// The limit that was reached, if it was one.
    pub(super) fn limit(&self) -> Option<UpstreamLimit> {
        match self {
            Break::TooLarge => Some(UpstreamLimit::MessageBytes),
            Break::Bounds => Some(UpstreamLimit::Json),
            Break::ContentType(_) | Break::NotAMessage | Break::Body => None,
        }
    }
}

impl Messages {
    /// The messages of an event stream.
    pub(super) fn events(body: Body, message_bytes: usize, limits: Limits) -> Self {
        Self::events_after(None, body, message_bytes, limits)
    }

    /// Those of one that was taken up after the event of this id.
    pub(super) fn events_after(id: Option<Bytes>, body: Body, message_bytes: usize, limits: Limits) -> Self {
        let decoder = Box::new(sse::Decoder::new(message_bytes).after(id));
        Self::new(Source::Events(body, decoder), message_bytes, limits)
    }

    fn new(source: Source, message_bytes: usize, limits: Limits) -> Self {
        Self {
            source,
            queue: VecDeque::new(),
            limits,
            bounds: Bounds { message_bytes, flow_bytes: usize::MAX, plan: None, waits: false },
            gather: Gather::default(),
            flow: None,
            error: false,
            retry: None,
            moved: false,
            awaited: None,
        }
    }

    /// The next message; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, Break> {
        match self.arrival().await? {
            Some(Arrival::Message(message)) => Ok(Some(message)),
            // Nothing passes without a plan.
            Some(Arrival::Flow) => Err(Break::TooLarge),
            None => Ok(None),
        }
    }

    /// The next message, or the beginning of one that passes by the plan; `None` at the end.
    pub(super) async fn arrival(&mut self) -> Result<Option<Arrival>, Break> {
        loop {
            if let Some(message) = self.queue.pop_front() {
                self.moved = true;
                return Ok(Some(Arrival::Message(message)));
            }
            if self.flow.is_some() {
                self.moved = true;
                return Ok(Some(Arrival::Flow));
            }
            match &mut self.source {
                Source::Done => return Ok(None),
                Source::Other(media_type) => return Err(Break::ContentType(std::mem::take(media_type))),
                Source::Json(body) => match more(body, self.bounds.stop(self.gather.len())).await? {
                    // One that is there as a whole is taken as a whole.
                    Some(data) if body.is_end_stream() => {
                        self.gather.hold(data, self.bounds.message_bytes)?;
                    }
                    Some(data) => self.flow = self.gather.hold_or_pass(data, &self.bounds)?.map(Box::new),
                    None => {
                        self.source = Source::Done;
                        for message in split(self.gather.join(), self.limits)? {
                            self.queue.push_back(message.map_err(|_| Break::NotAMessage)?);
                        }
                    }
                },
                Source::Events(body, decoder) if decoder.is_in_pieces() => match decoder.next_piece() {
                    Some(Ok(sse::Piece::Data(data))) => {
                        self.flow = self.gather.hold_or_pass(data, &self.bounds)?.map(Box::new);
                    }
                    Some(Ok(sse::Piece::End { retry })) => {
                        self.retry = retry.or(self.retry);
                        let text = self.gather.join();
                        self.take(text)?;
                    }
                    Some(Err(sse::SseError::TooLarge { .. })) => return Err(Break::TooLarge),
                    None => match more(body, self.bounds.stop(self.gather.len() + decoder.held())).await? {
                        Some(data) => decoder.feed(data),
                        None => return Ok(None),
                    },
                },
                Source::Events(body, decoder) => match decoder.next_event() {
                    Some(Ok(event)) if event.data.len() > self.bounds.message_bytes => {
                        return Err(Break::TooLarge);
                    }
                    Some(Ok(event)) => {
                        self.retry = event.retry.or(self.retry);
                        self.take(event.data)?;
                    }
                    Some(Err(sse::SseError::TooLarge { .. })) => return Err(Break::TooLarge),
                    None if decoder.held() > self.bounds.flow_bytes => decoder.in_pieces(),
                    None => match frame(body).await? {
                        Some(data) => decoder.feed(data),
                        None => return Ok(None),
                    },
                },
            }
        }
    }

    /// Says which answer is waited for: what comes under this id and is no message ends the row.
    pub(super) fn awaiting(mut self, number: u64) -> Self {
        self.awaited = Some(number);
        self
    }

    /// Where to take the stream up again, and how long to wait before (D104).
    pub(super) fn resumption(&self) -> Option<(Bytes, Option<Duration>)> {
        match &self.source {
            Source::Events(_, decoder) => {
                let id = decoder.last_event_id().filter(|id| !id.is_empty())?;
                Some((id.clone(), self.retry))
            }
            Source::Json(_) | Source::Other(_) | Source::Done => None,
        }
    }

    /// How long the server wants its client to wait before it comes back.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Whether a message has come on this stream.
    pub(super) fn moved(&self) -> bool {
        self.moved
    }

    pub(super) fn retry_hint(&mut self, hint: Option<Duration>) {
        self.retry = self.retry.or(hint);
    }

    /// Events that hold no JSON-RPC message are passed over (C13); one that might have been ours is not.
    fn take(&mut self, data: Bytes) -> Result<(), Break> {
        if data.is_empty() {
            return Ok(());
        }
        if !is_array(&data) {
            let message = read(data, self.limits)?;
            return self.queue_up(message);
        }
        split(data, self.limits)?.into_iter().try_for_each(|message| self.queue_up(message))
    }

    fn queue_up(&mut self, message: Result<Message, NotAMessage>) -> Result<(), Break> {
        match message {
            Ok(message) => self.queue.push_back(message),
            Err(NotAMessage(Some(id)))
                if self.awaited.is_some_and(|number| jsonrpc::is_number(id.raw(), number)) =>
            {
                return Err(Break::NotAMessage);
            }
            Err(NotAMessage(_)) => {
                tracing::debug!("an upstream event without a JSON-RPC message is passed over");
            }
        }
        Ok(())
    }
}

/// The messages in a text; what is none is passed over.
pub(super) fn messages(text: Bytes, limits: Limits) -> Vec<Message> {
    if text.is_empty() {
        return Vec::new();
    }
    split(text, limits).unwrap_or_default().into_iter().filter_map(Result::ok).collect()
}

fn is_array(text: &[u8]) -> bool {
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// One message, or those of an array (A14.1), as many as an object may have members.
fn split(text: Bytes, limits: Limits) -> Result<Vec<Result<Message, NotAMessage>>, Break> {
    if !is_array(&text) {
        return Ok(vec![read(text, limits)?]);
    }
    let mut items = Vec::new();
    let Ok(mut cursor) = Cursor::new(&text, limits) else { return Ok(vec![Err(NotAMessage(None))]) };
    let mut left = limits.members;
    let whole = cursor.array(|cursor| {
        let item = cursor.skip()?;
        if let Some(fewer) = left.checked_sub(1) {
            left = fewer;
            items.push(item);
        }
        Ok(())
    });
    if whole.and_then(|_| cursor.end()).is_err() {
        return Ok(vec![Err(NotAMessage(None))]);
    }
    if left == 0 {
        return Err(Break::Bounds);
    }
    items.into_iter().map(|item: Span| read(text.slice(item.range()), limits)).collect()
}

/// A text that is no message; the id it was sent under, as far as it has one.
struct NotAMessage(Option<Id>);

fn read(text: Bytes, limits: Limits) -> Result<Result<Message, NotAMessage>, Break> {
    match jsonrpc::parse(text, limits) {
        Ok(message) => Ok(Ok(message)),
        Err(malformed) => match malformed.fault {
            jsonrpc::Fault::Scan(scan) if jsonrpc::Fault::Scan(scan).code() == code::INVALID_REQUEST => {
                Err(Break::Bounds)
            }
            jsonrpc::Fault::Scan(_)
            | jsonrpc::Fault::Duplicate(_)
            | jsonrpc::Fault::Batch
            | jsonrpc::Fault::Shape(_) => Ok(Err(NotAMessage(malformed.id))),
        },
    }
}

/// The whole body, `limit` bytes at most.
pub(super) async fn collect<B>(body: &mut B, limit: usize) -> Result<Bytes, Break>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let mut gather = Gather::default();
    while let Some(data) = frame(body).await? {
        gather.hold(data, limit)?;
    }
    Ok(gather.join())
}

/// The next bytes of a body.
async fn frame<B>(body: &mut B) -> Result<Option<Bytes>, Break>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|_| Break::Body)?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

pub(super) fn content_type(headers: &HeaderMap) -> Option<ContentType> {
    headers.get(CONTENT_TYPE).map(|value| ContentType::parse(value.as_bytes()))
}

/// For error texts.
fn media_type(headers: &HeaderMap) -> String {
    let named = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    named.map_or("no media type".into(), |value| {
        value.split(';').next().unwrap_or_default().trim().chars().take(80).collect()
    })
}

impl From<Break> for Fault {
    fn from(broken: Break) -> Self {
        Fault::bad_gateway(broken.to_string())
    }
}

/// Something that keeps an answer from coming: nothing was received, or what was received broke off.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error(transparent)]
    Send(#[from] SendError),
    #[error(transparent)]
    Break(#[from] Break),
}
