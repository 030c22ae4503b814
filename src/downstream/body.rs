//! Bodies of responses to clients.
//!
//! Owns turning an exchange into an event stream (events that are ready together go out in one write, keep-alive comments
//! in between, a result that passes as one event that grows), reading a session's stream (`reading`) and passing a server's
//! own body on (`relayed`, where it is an event stream). The body holds the request's place among those in work and its log
//! record, and lets both go with its last byte.

use super::ends::Ends;
use super::keep_alive::KeepAlive;
use super::legacy::session::Reader;
use super::modern::respond;
use super::old_sse::Told;
use super::passing::{self, BrokenOff, Passing};
use super::reading::Reading;
use super::record::Record;
use super::relayed::{Next, Overdue, Quiet, Source};
use crate::exchange::{Fault, Outcome, Receiver, Step};
use crate::telemetry::metrics::Ended;
use crate::upstream::UpstreamBody;
use crate::wire::jsonrpc::Id;
use crate::wire::payload::Payload;
use crate::wire::sse::{self, DataLines};
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// As much as is put together from events that are ready before it is handed to the connection.
pub(super) const WRITE: usize = 64 * 1024;

/// A comment that may stand between the lines of an event too: without a blank line, which would end the event.
pub(super) const COMMENT: &[u8] = b":\n";

/// A response body, and what ends with it.
pub struct FrontBody {
    kind: Kind,
    /// Nothing comes any more.
    over: bool,
    /// How it breaks off, once what has come before it has gone out.
    breaks: Option<BoxError>,
    record: Option<Record>,
    _place: Option<OwnedSemaphorePermit>,
}

enum Kind {
    Whole(Payload),
    Stream(Box<Stream>),
    Passing(Box<Passing>),
    Reading(Box<Reading>),
    Relayed(Source, Ends),
    RelayedStream(Source, Ends, Box<Quiet>),
    Told(Box<Told>),
}

/// The event stream of one exchange.
struct Stream {
    /// `None` once the outcome is in.
    receiver: Option<Receiver>,
    /// The caller's.
    id: Id,
    ready: VecDeque<Bytes>,
    /// The event of a result that passes, once it has begun.
    lines: Option<DataLines>,
    /// That result has no end.
    broken: Option<BrokenOff>,
    keep_alive: KeepAlive,
    ends: Ends,
}

impl FrontBody {
    pub(super) fn whole(message: Payload) -> Self {
        Self::of(Kind::Whole(message))
    }

    /// `first` is what has come already.
    pub(super) fn stream(
        receiver: Receiver,
        id: Id,
        first: Option<Step>,
        keep_alive: Duration,
        ends: Ends,
    ) -> Self {
        let mut ready = VecDeque::new();
        let mut lines = None;
        match first {
            Some(Step::Event(event)) => encode(&mut ready, event.message()),
            Some(Step::Piece(piece)) => {
                let mut out = BytesMut::new();
                lines.get_or_insert_with(DataLines::default).part(&mut out, &piece);
                ready.push_back(out.freeze());
            }
            // With an outcome in hand there is no need of a stream.
            Some(Step::Outcome(_)) | None => {}
        }
        Self::of(Kind::Stream(Box::new(Stream {
            receiver: Some(receiver),
            id,
            ready,
            lines,
            broken: None,
            keep_alive: KeepAlive::new(keep_alive),
            ends,
        })))
    }

    /// A JSON body whose beginning has come.
    pub(super) fn passing(receiver: Receiver, first: Bytes, ends: Ends) -> Self {
        Self::of(Kind::Passing(Box::new(Passing::new(receiver, first, ends))))
    }

    /// A stream of a session.
    pub(super) fn reading(reader: Reader, keep_alive: Duration, ends: Ends) -> Self {
        Self::of(Kind::Reading(Box::new(Reading::new(reader, keep_alive, ends))))
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
            UpstreamBody::Streaming(body) if event_stream => {
                Kind::RelayedStream(Source::Server(body), ends, Box::new(Quiet::new(keep_alive)))
            }
            UpstreamBody::Streaming(body) => Kind::Relayed(Source::Server(body), ends),
            UpstreamBody::Sifted(body) if event_stream => {
                Kind::RelayedStream(Source::Sifted(body), ends, Box::new(Quiet::new(keep_alive)))
            }
            UpstreamBody::Sifted(body) => Kind::Relayed(Source::Sifted(body), ends),
            UpstreamBody::Held(held) => {
                Kind::RelayedStream(Source::Held(held), ends, Box::new(Quiet::new(keep_alive)))
            }
        })
    }

    /// The stream of a client of HTTP+SSE.
    pub(super) fn told(told: Told) -> Self {
        Self::of(Kind::Told(Box::new(told)))
    }

    fn of(kind: Kind) -> Self {
        Self { kind, over: false, breaks: None, record: None, _place: None }
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
        if let Kind::Reading(reading) = &self.kind
            && !reading.is_over()
            && let Some(record) = &mut self.record
        {
            record.outcome(Ended::Left);
        }
    }
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
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        record: &mut Option<Record>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        if let Some(bytes) = self.ready.pop_front() {
            self.keep_alive.reset();
            return Poll::Ready(Some(Ok(bytes)));
        }
        let mut out = BytesMut::new();
        while out.len() < WRITE {
            let Some(receiver) = &mut self.receiver else { break };
            match receiver.poll_next(cx) {
                Poll::Ready(Some(Step::Event(event))) => sse::encode_data(&mut out, event.message().parts()),
                Poll::Ready(Some(Step::Piece(piece))) => {
                    self.lines.get_or_insert_with(DataLines::default).part(&mut out, &piece);
                }
                Poll::Ready(Some(Step::Outcome(outcome))) => self.end(Some(outcome), &mut out, record),
                Poll::Ready(None) => self.end(None, &mut out, record),
                Poll::Pending if self.ends.poll(cx).is_ready() => {
                    self.end(Some(Outcome::Fault(Fault::cut_short())), &mut out, record);
                }
                Poll::Pending => break,
            }
        }
        if !out.is_empty() {
            self.keep_alive.reset();
            // In one write with what comes before it, where it is small.
            if let [last] = self.ready.make_contiguous()
                && last.len() < WRITE
            {
                out.extend_from_slice(last);
                self.ready.clear();
            }
            return Poll::Ready(Some(Ok(out.freeze())));
        }
        if self.receiver.is_none() {
            let broken = self.broken.take().map(|broken| Err(broken.into()));
            return Poll::Ready(self.ready.pop_front().map(Ok).or(broken));
        }
        loop {
            ready!(self.keep_alive.poll(cx));
            match &self.lines {
                None => return Poll::Ready(Some(Ok(Bytes::from_static(sse::KEEP_ALIVE)))),
                Some(lines) if lines.is_between() => {
                    return Poll::Ready(Some(Ok(Bytes::from_static(COMMENT))));
                }
                // In the middle of a line a comment would break it.
                Some(_) => {}
            }
        }
    }

    /// The exchange is over: with its outcome as the last event, or with what the outcome means for a result that
    /// has begun to pass.
    fn end(&mut self, outcome: Option<Outcome>, out: &mut BytesMut, record: &mut Option<Record>) {
        self.receiver = None;
        match (self.lines.take(), outcome) {
            (Some(lines), outcome) => match passing::settle(outcome, record) {
                Ok(()) => lines.end(out),
                Err(broken) => self.broken = Some(broken),
            },
            (None, Some(outcome)) => {
                let message = respond::in_band(outcome, &self.id, record);
                encode(&mut self.ready, &message);
            }
            (None, None) => {}
        }
    }
}

impl Body for FrontBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Some(broken) = this.breaks.take() {
            return Poll::Ready(Some(Err(broken)));
        }
        let frame = match &mut this.kind {
            Kind::Whole(message) => {
                ready!(Pin::new(message).poll_frame(cx)).map(|frame| frame.map_err(BoxError::from))
            }
            Kind::Stream(stream) => {
                ready!(stream.poll(cx, &mut this.record)).map(|bytes| bytes.map(Frame::data))
            }
            Kind::Passing(passing) => {
                ready!(passing.poll(cx, &mut this.record)).map(|bytes| bytes.map(Frame::data))
            }
            Kind::Reading(reading) => {
                ready!(reading.poll(cx, &mut this.record)).map(|bytes| bytes.map(Frame::data))
            }
            Kind::Told(told) => ready!(told.poll(cx)).map(|bytes| Ok(Frame::data(bytes))),
            Kind::Relayed(body, ends) => match body.poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    ready!(ends.poll(cx));
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
        if let Some(Err(broken)) = frame {
            // A connection that is broken off loses what it has not written, and that may be the head: it writes while it
            // waits.
            this.breaks = Some(broken);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(message) => message.is_end_stream(),
            Kind::Stream(stream) => {
                stream.receiver.is_none() && stream.ready.is_empty() && stream.broken.is_none()
            }
            Kind::Passing(passing) => passing.is_over(),
            Kind::Reading(reading) => reading.is_over(),
            Kind::Relayed(body, _) | Kind::RelayedStream(body, ..) => body.is_end_stream(),
            Kind::Told(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(message) => message.size_hint(),
            Kind::Relayed(body, _) => body.size_hint(),
            Kind::Stream(_)
            | Kind::Passing(_)
            | Kind::Reading(_)
            | Kind::RelayedStream(..)
            | Kind::Told(_) => SizeHint::default(),
        }
    }
}
