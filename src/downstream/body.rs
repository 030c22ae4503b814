//! Bodies of responses to clients.
//!
//! Owns turning an exchange into an event stream (events that are ready together go out in one write, keep-alive
//! comments in between) and passing a server's own body on, with keep-alive comments where it is an event stream. The
//! body holds the request's place among those in work and its log record, and lets both go with its last byte.

use super::half_event::HalfEvent;
use super::modern::respond;
use super::record::Record;
use crate::exchange::{Fault, Outcome, Receiver, Step};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::Ended;
use crate::upstream::UpstreamBody;
use crate::wire::jsonrpc::Id;
use crate::wire::meta;
use crate::wire::payload::Payload;
use crate::wire::sse;
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// As much as is put together from events that are ready before it is handed to the connection.
const WRITE: usize = 64 * 1024;

/// A comment that may stand between the lines of an event too: without a blank line, which would end the event.
const COMMENT: &[u8] = b":\n";

/// A response body, and what ends with it.
pub struct FrontBody {
    kind: Kind,
    /// Nothing comes any more.
    over: bool,
    record: Option<Record>,
    _place: Option<OwnedSemaphorePermit>,
}

enum Kind {
    Whole(Payload),
    Stream(Box<Stream>),
    Relayed(Incoming, Ends),
    RelayedStream(Incoming, Ends, Box<Quiet>),
}

/// What ends a relayed body from our side.
pub(super) struct Ends {
    when: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The graceful last message of a subscription; without one the body breaks off.
    last: Option<Bytes>,
}

impl Ends {
    /// Breaks it off at `deadline`, or when the process ends.
    pub(super) fn at(deadline: Instant, shutdown: Shutdown) -> Self {
        let when = async move {
            tokio::select! {
                () = sleep_until(deadline) => {}
                () = shutdown.cut_short() => {}
            }
        };
        Self { when: Box::pin(when), last: None }
    }

    /// Ends an exchange when the process ends.
    pub(super) fn cut(shutdown: Shutdown) -> Self {
        Self { when: Box::pin(async move { shutdown.cut_short().await }), last: None }
    }

    /// Ends a subscription when the proxy drains, by the result that says so (B9.6).
    pub(super) fn drain(shutdown: Shutdown, id: &Id) -> Self {
        let id = String::from_utf8_lossy(id.raw());
        let last = format!(
            "\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",\"_meta\":{{\"{}\":{id}}}}}}}\n\n",
            meta::SUBSCRIPTION_ID
        );
        Self { when: Box::pin(async move { shutdown.draining().await }), last: Some(Bytes::from(last)) }
    }
}

/// The server's body was not over when the call was due.
#[derive(Debug, thiserror::Error)]
#[error("the upstream server's answer was not complete in time")]
struct Overdue;

/// The event stream of one exchange.
struct Stream {
    /// `None` once the outcome is in.
    receiver: Option<Receiver>,
    /// The caller's.
    id: Id,
    ready: VecDeque<Bytes>,
    keep_alive: Interval,
    ends: Ends,
}

/// A relayed event stream's pauses.
struct Quiet {
    keep_alive: Interval,
    /// The last byte ended a line, so a comment line may follow; after a CR a LF may still come.
    between: bool,
    /// Looked at only where a last message may have to follow.
    half: HalfEvent,
}

impl FrontBody {
    pub(super) fn whole(message: Payload) -> Self {
        Self::of(Kind::Whole(message))
    }

    /// `first` is what has come already.
    pub(super) fn stream(
        receiver: Receiver,
        id: Id,
        first: Option<Payload>,
        keep_alive: Duration,
        ends: Ends,
    ) -> Self {
        let mut ready = VecDeque::new();
        if let Some(message) = first {
            encode(&mut ready, &message);
        }
        Self::of(Kind::Stream(Box::new(Stream {
            receiver: Some(receiver),
            id,
            ready,
            keep_alive: ticks(keep_alive),
            ends,
        })))
    }

    /// A stream of one message, for a client that takes nothing else.
    pub(super) fn event(message: &Payload) -> Self {
        let mut out = BytesMut::new();
        sse::encode_data(&mut out, message.parts());
        Self::of(Kind::Whole(Payload::from(out.freeze())))
    }

    pub(super) fn relayed(body: UpstreamBody, event_stream: bool, keep_alive: Duration, ends: Ends) -> Self {
        Self::of(match body {
            UpstreamBody::Read(bytes) => Kind::Whole(Payload::from(bytes)),
            UpstreamBody::Streaming(body) if event_stream => Kind::RelayedStream(
                body,
                ends,
                Box::new(Quiet { keep_alive: ticks(keep_alive), between: true, half: HalfEvent::default() }),
            ),
            UpstreamBody::Streaming(body) => Kind::Relayed(body, ends),
        })
    }

    fn of(kind: Kind) -> Self {
        Self { kind, over: false, record: None, _place: None }
    }

    pub(super) fn with(mut self, record: Record, place: Option<OwnedSemaphorePermit>) -> Self {
        self.record = Some(record);
        self._place = place;
        self
    }
}

/// A body of the server's own says only by its end how the request went.
impl Drop for FrontBody {
    fn drop(&mut self) {
        let relayed = matches!(self.kind, Kind::Relayed(..) | Kind::RelayedStream(..));
        if relayed
            && !self.over
            && !self.is_end_stream()
            && let Some(record) = &mut self.record
        {
            record.outcome(Ended::Cancelled);
        }
    }
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    ticks
}

/// One message as an event. A large one is not copied: its pieces go out between the event's own bytes.
fn encode(ready: &mut VecDeque<Bytes>, message: &Payload) {
    let raw_line_end = |part: &Bytes| memchr::memchr2(b'\n', b'\r', part).is_some();
    if message.len() > WRITE && !message.parts().iter().any(raw_line_end) {
        ready.push_back(Bytes::from_static(b"data: "));
        ready.extend(message.parts().iter().cloned());
        ready.push_back(Bytes::from_static(b"\n\n"));
        return;
    }
    let mut out = BytesMut::new();
    sse::encode_data(&mut out, message.parts());
    ready.push_back(out.freeze());
}

impl Stream {
    fn poll(&mut self, cx: &mut Context<'_>, record: &mut Option<Record>) -> Poll<Option<Bytes>> {
        if let Some(bytes) = self.ready.pop_front() {
            self.keep_alive.reset();
            return Poll::Ready(Some(bytes));
        }
        let Some(receiver) = &mut self.receiver else { return Poll::Ready(None) };
        let mut out = BytesMut::new();
        let mut over = false;
        while out.len() < WRITE {
            match receiver.poll_next(cx) {
                Poll::Ready(Some(Step::Event(event))) => sse::encode_data(&mut out, event.message().parts()),
                Poll::Ready(Some(Step::Outcome(outcome))) => {
                    let message = respond::in_band(outcome, &self.id, record);
                    encode(&mut self.ready, &message);
                    over = true;
                    break;
                }
                Poll::Ready(None) => {
                    over = true;
                    break;
                }
                Poll::Pending if self.ends.when.as_mut().poll(cx).is_ready() => {
                    let message = respond::in_band(Outcome::Fault(Fault::cut_short()), &self.id, record);
                    encode(&mut self.ready, &message);
                    over = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if over {
            self.receiver = None;
            if !out.is_empty() {
                // In one write with what comes before it, where it is small.
                if let [last] = self.ready.make_contiguous()
                    && last.len() < WRITE
                {
                    out.extend_from_slice(last);
                    self.ready.clear();
                }
                return Poll::Ready(Some(out.freeze()));
            }
            return Poll::Ready(self.ready.pop_front());
        }
        if !out.is_empty() {
            self.keep_alive.reset();
            return Poll::Ready(Some(out.freeze()));
        }
        ready!(self.keep_alive.poll_tick(cx));
        Poll::Ready(Some(Bytes::from_static(sse::KEEP_ALIVE)))
    }
}

impl Quiet {
    fn poll(&mut self, body: &mut Incoming, ends: &mut Ends, cx: &mut Context<'_>) -> Poll<Next> {
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) {
            self.keep_alive.reset();
            if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
                self.between = data.last().map_or(self.between, |last| *last == b'\n');
                if ends.last.is_some() {
                    self.half.feed(data);
                }
            }
            return Poll::Ready(frame.map_or(Next::End, |frame| Next::Frame(frame.map_err(BoxError::from))));
        }
        if ends.when.as_mut().poll(cx).is_ready() {
            return Poll::Ready(match ends.last.take().filter(|_| self.half.is_clean()) {
                Some(last) => Next::Last(last),
                None => Next::Frame(Err(Overdue.into())),
            });
        }
        // In the middle of a line a comment would break it; the next tick looks again.
        while self.keep_alive.poll_tick(cx).is_ready() {
            if self.between {
                return Poll::Ready(Next::Frame(Ok(Frame::data(Bytes::from_static(COMMENT)))));
            }
        }
        Poll::Pending
    }
}

/// What a relayed stream gives next.
enum Next {
    Frame(Result<Frame<Bytes>, BoxError>),
    /// Ours, and the end.
    Last(Bytes),
    End,
}

impl Body for FrontBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let frame = match &mut this.kind {
            Kind::Whole(message) => {
                ready!(Pin::new(message).poll_frame(cx)).map(|frame| frame.map_err(BoxError::from))
            }
            Kind::Stream(stream) => {
                ready!(stream.poll(cx, &mut this.record)).map(|bytes| Ok(Frame::data(bytes)))
            }
            Kind::Relayed(body, ends) => match Pin::new(body).poll_frame(cx) {
                Poll::Ready(frame) => frame.map(|frame| frame.map_err(BoxError::from)),
                Poll::Pending => {
                    ready!(ends.when.as_mut().poll(cx));
                    Some(Err(Overdue.into()))
                }
            },
            Kind::RelayedStream(body, ends, quiet) => match ready!(quiet.poll(body, ends, cx)) {
                Next::Frame(frame) => Some(frame),
                Next::Last(bytes) => {
                    // Letting go of the server's body is what ends it there.
                    this.kind = Kind::Whole(Payload::default());
                    Some(Ok(Frame::data(bytes)))
                }
                Next::End => None,
            },
        };
        this.over = frame.as_ref().is_none_or(Result::is_err);
        if let (Some(Err(_)), Some(record)) = (&frame, &mut this.record) {
            record.outcome(Ended::BrokenOff);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(message) => message.is_end_stream(),
            Kind::Stream(stream) => stream.receiver.is_none() && stream.ready.is_empty(),
            Kind::Relayed(body, _) | Kind::RelayedStream(body, ..) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(message) => message.size_hint(),
            Kind::Relayed(body, _) => body.size_hint(),
            Kind::Stream(_) | Kind::RelayedStream(..) => SizeHint::default(),
        }
    }
}
