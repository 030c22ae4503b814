//! What a channel gives for one request, or on the stream of a GET: messages in a bounded queue, and the response body that
//! reads them.
//!
//! Owns the queue: who writes into it never waits, and is told where there is no room. The body is one whole message where
//! that is all there is, else an event stream. Does not own which message belongs where (`connection`).

use crate::upstream::transport::BoxError;
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use std::any::Any;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use crate::wire::json::Span;
use crate::wire::jsonrpc::{self, Id, code};
use crate::wire::sse;

/// How much may wait in one queue, and for how long: `limits.events`, `limits.event_bytes` and `timeouts.hold`.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub events: usize,
    pub bytes: usize,
    /// How long the head of a response waits for the first message (B11).
    pub hold: Duration,
}

/// Why an answer will not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The channel is over; what it was.
    Ended(&'static str),
    TooLarge,
    /// What came under its id is no message.
    NoMessage,
    /// Of a subscription: its reader did not keep up.
    TooSlow,
}

impl Lost {
    /// For the caller.
    fn text(self) -> Cow<'static, str> {
        match self {
            Lost::Ended(what) => format!("{what} ended before an answer; the request may have run").into(),
            Lost::TooLarge => {
                "the upstream server's answer is larger than the limit `message_bytes`".into()
            }
            Lost::NoMessage => "the upstream server's answer is not a JSON-RPC message".into(),
            Lost::TooSlow => {
                "the subscription was ended: more waited for its reader than may (limits.events, limits.event_bytes)".into()
            }
        }
    }
}

/// The writing end.
#[derive(Clone)]
pub(super) struct Tail(Arc<Mutex<Queue>>);

/// The reading end. `kept` is dropped with it.
pub(super) struct Head {
    queue: Arc<Mutex<Queue>>,
    _kept: Box<dyn Any + Send>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    /// Answers that are still to come.
    awaited: usize,
    /// Requests whose answers will not come: their ids as their callers wrote them.
    lost: VecDeque<(Bytes, Lost)>,
    last: Option<Standing>,
    /// Nothing more comes.
    done: bool,
    /// The request has been handed over.
    sent: bool,
    waker: Option<Waker>,
    unread: bool,
}

/// What the last answer is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// An error, of this code.
    pub(super) error: Option<i64>,
}

/// What the reading end gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Message(Bytes),
    /// The answer to the request of this id will not come.
    Lost(Bytes, Lost),
    Done,
}

/// The two ends of a new queue that ends with so many answers; `kept` lives as long as the reading one.
pub(super) fn queue(awaited: usize, kept: impl Any + Send) -> (Tail, Head) {
    let queue = Arc::new(Mutex::new(Queue { awaited, ..Queue::default() }));
    (Tail(queue.clone()), Head { queue, _kept: Box::new(kept) })
}

impl Tail {
    /// Appends one that may be left out; `false` if there is no room for it, or no reader.
    pub(super) fn offer(&self, text: Bytes, room: Room) -> bool {
        let mut queue = lock(&self.0);
        let fits = queue.waiting.is_empty()
            || queue.waiting.len() < room.events && queue.bytes.saturating_add(text.len()) <= room.bytes;
        if queue.unread || queue.done || !fits {
            return false;
        }
        queue.push(text);
        true
    }

    /// Appends an answer, for which there is always room: each request has one. The last one ends the queue.
    pub(super) fn answer(&self, text: Bytes, standing: Standing) {
        let mut queue = lock(&self.0);
        if !queue.done {
            queue.last = Some(standing);
            queue.one_less();
            queue.push(text);
        }
    }

    /// One of the answers will not come.
    pub(super) fn without_answer(&self) {
        let mut queue = lock(&self.0);
        queue.one_less();
        queue.wake();
    }

    /// The answer to the request of this id will not come.
    pub(super) fn lose(&self, id: Bytes, lost: Lost) {
        let mut queue = lock(&self.0);
        queue.lost.push_back((id, lost));
        queue.one_less();
        queue.wake();
    }

    /// Nothing more comes. What waits is read first.
    pub(super) fn end(&self) {
        let mut queue = lock(&self.0);
        queue.done = true;
        queue.wake();
    }

    /// Whether somebody reads.
    pub(super) fn is_read(&self) -> bool {
        let queue = lock(&self.0);
        !queue.unread && !queue.done
    }

    /// Whether the request has been handed over.
    pub(super) fn was_sent(&self) -> bool {
        lock(&self.0).sent
    }
}

impl Queue {
    fn push(&mut self, text: Bytes) {
        self.bytes += text.len();
        self.waiting.push_back(text);
        self.wake();
    }

    fn one_less(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
        self.done |= self.awaited == 0;
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Head {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let mut queue = lock(&self.queue);
        if let Some(text) = queue.waiting.pop_front() {
            queue.bytes -= text.len();
            return Poll::Ready(Step::Message(text));
        }
        if let Some((id, lost)) = queue.lost.pop_front() {
            return Poll::Ready(Step::Lost(id, lost));
        }
        if queue.done {
            return Poll::Ready(Step::Done);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) async fn next(&mut self) -> Step {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// What the answer is that was read last, if it is all there is.
    pub(super) fn whole(&self) -> Option<Standing> {
        let queue = lock(&self.queue);
        queue.last.filter(|_| queue.waiting.is_empty() && queue.lost.is_empty() && queue.done)
    }

    /// The request has been handed over.
    pub(super) fn sent(&self) {
        lock(&self.queue).sent = true;
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        let mut queue = lock(&self.queue);
        queue.unread = true;
        queue.waiting.clear();
        queue.bytes = 0;
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // Nothing in here panics half-way.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct ChannelBody(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Events { first: Option<Bytes>, head: Head, over: bool },
}

impl ChannelBody {
    pub(in crate::upstream::transport) fn whole(text: Bytes) -> Self {
        Self(Kind::Whole(Some(text).filter(|text| !text.is_empty())))
    }

    pub(super) fn empty() -> Self {
        Self(Kind::Whole(None))
    }

    /// An event stream, of which `first` has been read already.
    pub(super) fn events(first: Option<Bytes>, head: Head) -> Self {
        Self(Kind::Events { first, head, over: false })
    }
}

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let (first, head, over) = match &mut self.0 {
            Kind::Whole(text) => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Kind::Events { over: true, .. } => return Poll::Ready(None),
            Kind::Events { first, head, over } => (first, head, over),
        };
        let step = match first.take() {
            Some(text) => Step::Message(text),
            None => ready!(head.poll(cx)),
        };
        let text = match step {
            Step::Message(text) => text,
            // Its head is out, so whoever waits is told in band, under the id that was sent (C56).
            Step::Lost(id, lost) => {
                let all = Span::new(0, id.len());
                jsonrpc::error(Id::accept(&id, all).as_ref(), code::INTERNAL_ERROR, &lost.text(), None)
            }
            Step::Done => {
                *over = true;
                return Poll::Ready(None);
            }
        };
        let mut event = BytesMut::with_capacity(text.len() + 16);
        sse::encode_data(&mut event, &[text]);
        Poll::Ready(Some(Ok(Frame::data(event.freeze()))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(text) => text.is_none(),
            Kind::Events { over, .. } => *over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Events { .. } => SizeHint::default(),
        }
    }
}
