//! A connection to an upstream that knows whether the request on it was handed over in full.
//!
//! Owns the proof behind [`SendError::Unsent`](super::SendError::Unsent). Does not own retries. Case C30.
//!
//! HTTP/1 carries one request at a time, so the state of writing is the state of the request: if a write fails, or the
//! peer hangs up while a write has bytes left, the request's last byte has not left this process and no server can have
//! read the request to its end. This needs a body that never keeps the connection waiting, which
//! [`Payload`](crate::wire::payload::Payload) guarantees. HTTP/2 says such things itself, in frames.
//!
//! Before the first byte of a request goes out on a reused connection, the socket is asked once more whether the peer has
//! hung up meanwhile. What is left is the peer that hangs up after that: then the request counts as written.

use std::error::Error;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net::Stream;
use crate::telemetry::metrics;

/// Marks an I/O error as "the request was not handed over in full".
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub(super) struct HandoverBroken {
    /// The connection had served requests before.
    pub(super) reused: bool,
    source: io::Error,
}

impl HandoverBroken {
    pub(super) fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref()
    }
}

pub(super) struct Link {
    stream: Stream,
    protocol: Protocol,
    /// Counted while it is open, with every byte.
    counted: metrics::Connection,
}

enum Protocol {
    Http1(Turn),
    Http2,
}

/// Where an HTTP/1 connection is in its alternation of request and response.
#[derive(Default)]
struct Turn {
    /// Anything was ever read.
    reused: bool,
    /// Something was read since the last write.
    answered: bool,
    /// The last write left bytes behind.
    unfinished: bool,
}

impl Link {
    pub(super) fn new(stream: Stream, counted: metrics::Connection) -> Self {
        let protocol = match stream.alpn() {
            Some(b"h2") => Protocol::Http2,
            Some(_) | None => Protocol::Http1(Turn::default()),
        };
        Self { stream, protocol, counted }
    }

    fn write(
        &mut self,
        offered: usize,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut Stream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let turn = match &mut self.protocol {
            Protocol::Http2 => {
                let written = write(Pin::new(&mut self.stream), cx);
                self.counted.sent(taken(&written));
                return written;
            }
            Protocol::Http1(turn) => turn,
        };
        if turn.begins_request() && self.stream.is_stale() {
            return Poll::Ready(Err(turn.broken(io::ErrorKind::BrokenPipe.into())));
        }
        match write(Pin::new(&mut self.stream), cx) {
            Poll::Pending => {
                turn.unfinished = true;
                Poll::Pending
            }
            Poll::Ready(Ok(0)) if offered > 0 => {
                Poll::Ready(Err(turn.broken(io::ErrorKind::WriteZero.into())))
            }
            Poll::Ready(Ok(taken)) => {
                self.counted.sent(taken);
                turn.unfinished = taken < offered;
                turn.answered = false;
                Poll::Ready(Ok(taken))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(turn.broken(error))),
        }
    }
}

fn taken(written: &Poll<io::Result<usize>>) -> usize {
    match written {
        Poll::Ready(Ok(taken)) => *taken,
        Poll::Ready(Err(_)) | Poll::Pending => 0,
    }
}

impl Turn {
    /// An answer has come since, and nothing was left to write: what is written now is the next request.
    fn begins_request(&self) -> bool {
        self.answered && !self.unfinished
    }

    fn awaits_handover(&self) -> bool {
        self.unfinished && !self.answered
    }

    fn broken(&self, source: io::Error) -> io::Error {
        io::Error::new(source.kind(), HandoverBroken { reused: self.reused, source })
    }
}

impl AsyncRead for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut this.stream).poll_read(cx, buf));
        this.counted.received(buf.filled().len() - before);
        let Protocol::Http1(turn) = &mut this.protocol else { return Poll::Ready(read) };
        let ended = buf.filled().len() == before && buf.remaining() > 0;
        Poll::Ready(match read {
            Err(error) if turn.awaits_handover() => Err(turn.broken(error)),
            Err(error) => Err(error),
            Ok(()) if ended && turn.awaits_handover() => {
                Err(turn.broken(io::ErrorKind::UnexpectedEof.into()))
            }
            Ok(()) => {
                if !ended {
                    turn.reused = true;
                    turn.answered = true;
                }
                Ok(())
            }
        })
    }
}

impl AsyncWrite for Link {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.write(buf.len(), cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let offered = bufs.iter().map(|buf| buf.len()).sum();
        self.write(offered, cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        match self.protocol {
            Protocol::Http1(_) => Connected::new(),
            Protocol::Http2 => Connected::new().negotiated_h2(),
        }
    }
}
