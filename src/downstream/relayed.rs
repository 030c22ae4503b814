//! A server's own body on its way to the client.
//!
//! Owns the comments in its pauses, and how it ends where the proxy ends it: with a last message, without a word, or broken
//! off. The bytes are the server's and are looked at only to find where a comment may stand.

use super::body::{BoxError, COMMENT};
use super::ends::Ends;
use super::half_event::HalfEvent;
use super::keep_alive::KeepAlive;
use crate::upstream::UpstreamStream;
use crate::upstream::guard::sieve::Sifted;
use crate::upstream::legacy::Held;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Where a relayed body comes from.
pub(super) enum Source {
    Server(UpstreamStream),
    Held(Held),
    /// It is looked into as it comes.
    Sifted(Box<Sifted>),
}

/// The server's body was not over when the call was due.
#[derive(Debug, thiserror::Error)]
#[error("the upstream server's answer was not complete in time")]
pub(super) struct Overdue;

/// A relayed event stream's pauses.
pub(super) struct Quiet {
    keep_alive: KeepAlive,
    /// The last byte ended a line, so a comment line may follow; after a CR a LF may still come.
    between: bool,
    /// Looked at only where a last message may have to follow.
    half: HalfEvent,
}

impl Source {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Source::Server(body) => Pin::new(body).poll_frame(cx),
            Source::Sifted(body) => Pin::new(&mut **body).poll_frame(cx),
            Source::Held(held) => {
                Pin::new(held).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(BoxError::from)))
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Source::Server(body) => body.is_end_stream(),
            Source::Sifted(body) => body.is_end_stream(),
            Source::Held(_) => false,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Source::Server(body) => body.size_hint(),
            Source::Held(_) | Source::Sifted(_) => SizeHint::default(),
        }
    }
}

impl Quiet {
    pub(super) fn new(keep_alive: Duration) -> Self {
        Self { keep_alive: KeepAlive::new(keep_alive), between: true, half: HalfEvent::default() }
    }

    pub(super) fn poll(&mut self, body: &mut Source, ends: &mut Ends, cx: &mut Context<'_>) -> Poll<Next> {
        if let Poll::Ready(frame) = body.poll_frame(cx) {
            self.keep_alive.reset();
            if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
                self.between = data.last().map_or(self.between, |last| *last == b'\n');
                if ends.has_last() {
                    self.half.feed(data);
                }
            }
            return Poll::Ready(frame.map_or(Next::End, Next::Frame));
        }
        if ends.poll(cx).is_ready() {
            return Poll::Ready(match ends.take_last().filter(|_| self.half.is_clean()) {
                Some(last) => Next::Last(last),
                None if ends.quiet => Next::End,
                None => Next::Frame(Err(Overdue.into())),
            });
        }
        // In the middle of a line a comment would break it; the next tick looks again.
        while self.keep_alive.poll(cx).is_ready() {
            if self.between {
                return Poll::Ready(Next::Frame(Ok(Frame::data(Bytes::from_static(COMMENT)))));
            }
        }
        Poll::Pending
    }
}

/// What a relayed stream gives next.
pub(super) enum Next {
    Frame(Result<Frame<Bytes>, BoxError>),
    /// Ours, and the end.
    Last(Bytes),
    End,
}
