//! How long a client connection has been doing what: the times by which an idle or slow one is closed.
//!
//! Owns the observation (bytes read, requests in work) and the deadline that follows. Does not own the closing.
//!
//! hyper's own header timer also runs while a connection idles between requests, and does not run before the protocol
//! is known. So neither `timeouts.idle` nor `timeouts.header` could be kept with it. Here the clock starts with the first
//! byte of a head, and requests count as in work until the last byte of their response was handed over.
//! In HTTP/2 bytes between requests may be pings, so only `idle` applies there once the connection has begun.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::net::Stream;
use crate::telemetry::metrics;

/// What is known of one connection. Only its own tasks write it, and nothing is ordered by it.
#[derive(Debug)]
pub(super) struct Activity {
    base: Instant,
    in_work: AtomicUsize,
    /// Milliseconds since `base` at which the last request was done with.
    idle_since: AtomicU64,
    /// Milliseconds since `base`, plus one, at which a head began to arrive; zero for none.
    head_since: AtomicU64,
    http2: AtomicBool,
}

/// A request in work; dropping it is the end of the work.
#[derive(Debug)]
pub(super) struct InWork(Arc<Activity>);

/// What the times say about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Look again then, at the latest.
    Fine(Instant),
    /// Nothing in work for too long.
    Idle,
    /// A head has begun and does not come to its end.
    SlowHead,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            base: Instant::now(),
            in_work: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            http2: AtomicBool::new(false),
        })
    }

    /// A whole head has arrived.
    pub(super) fn begin(self: &Arc<Self>) -> InWork {
        self.in_work.fetch_add(1, Relaxed);
        self.head_since.store(0, Relaxed);
        InWork(Arc::clone(self))
    }

    pub(super) fn is_busy(&self) -> bool {
        self.in_work.load(Relaxed) > 0
    }

    /// A head has begun to arrive and is not complete.
    pub(super) fn in_head(&self) -> bool {
        !self.is_busy() && self.head_since.load(Relaxed) != 0
    }

    pub(super) fn verdict(&self, header: Duration, idle: Duration) -> Verdict {
        let now = Instant::now();
        // A state that begins right after this look must still be seen in time.
        let latest = now + header.min(idle);
        if self.is_busy() {
            return Verdict::Fine(latest);
        }
        let idle_until = self.at(self.idle_since.load(Relaxed)) + idle;
        let head_until = match self.head_since.load(Relaxed) {
            0 => None,
            since => Some(self.at(since - 1) + header),
        };
        match head_until {
            Some(until) if until <= now => Verdict::SlowHead,
            _ if idle_until <= now => Verdict::Idle,
            Some(until) => Verdict::Fine(until.min(idle_until).min(latest)),
            None => Verdict::Fine(idle_until.min(latest)),
        }
    }

    fn bytes_came(&self) {
        if !self.is_busy() && !self.http2.load(Relaxed) && self.head_since.load(Relaxed) == 0 {
            self.head_since.store(self.now() + 1, Relaxed);
        }
    }

    fn http2_began(&self) {
        self.http2.store(true, Relaxed);
        self.head_since.store(0, Relaxed);
    }

    fn now(&self) -> u64 {
        self.base.elapsed().as_millis().try_into().unwrap_or(u64::MAX - 1)
    }

    fn at(&self, milliseconds: u64) -> Instant {
        self.base + Duration::from_millis(milliseconds)
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.now(), Relaxed);
        self.0.in_work.fetch_sub(1, Relaxed);
    }
}

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// A client's stream under observation.
pub(super) struct Watched {
    stream: Stream,
    activity: Arc<Activity>,
    /// Bytes of the HTTP/2 preface seen so far; `None` once it is known whether there is one.
    preface: Option<usize>,
    /// What was read to know that, until it is read again.
    head: SmallVec<[u8; PREFACE.len()]>,
    /// Counted while it is open, with every byte; `None` where nothing is.
    counted: Option<metrics::Connection>,
}

/// The beginning of the HTTP/2 preface, whose "method" no HTTP/1 request has.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl Watched {
    pub(super) fn new(stream: Stream, activity: Arc<Activity>, counted: Option<metrics::Connection>) -> Self {
        Self { stream, activity, preface: Some(0), head: SmallVec::new(), counted }
    }

    /// Reads up to where it is known what the client speaks, which is to be read again.
    ///
    /// hyper-util can tell the versions apart as well. But it hands the first bytes on alone, and hyper then has a buffer that
    /// is too small by these and doubles it, for as long as the connection lasts.
    pub(super) async fn version(&mut self) -> io::Result<Version> {
        let mut head = [0; PREFACE.len()];
        let mut room = ReadBuf::new(&mut head);
        while self.preface.is_some() {
            let before = room.filled().len();
            poll_fn(|cx| Pin::new(&mut *self).poll_read(cx, &mut room)).await?;
            if room.filled().len() == before {
                break;
            }
        }
        self.head.extend_from_slice(room.filled());
        Ok(if self.activity.http2.load(Relaxed) { Version::Http2 } else { Version::Http1 })
    }

    fn went(&self, bytes: usize) {
        if let Some(counted) = &self.counted {
            counted.sent(bytes);
        }
    }

    fn look_for_preface(&mut self, bytes: &[u8]) {
        let Some(seen) = self.preface else { return };
        let expected = PREFACE.get(seen..).unwrap_or_default();
        let common = expected.len().min(bytes.len());
        if expected[..common] != bytes[..common] {
            self.preface = None;
        } else if common == expected.len() {
            self.preface = None;
            self.activity.http2_began();
        } else {
            self.preface = Some(seen + common);
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let start = buf.filled().len();
        let again = self.head.len().min(buf.remaining());
        buf.put_slice(self.head.get(..again).unwrap_or_default());
        self.head.drain(..again);
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            // There is something to read all the same.
            Poll::Pending if before > start => return Poll::Ready(Ok(())),
            Poll::Ready(Ok(())) => {}
            other => return other,
        }
        let bytes = buf.filled().get(before..).unwrap_or_default();
        if !bytes.is_empty() {
            self.activity.bytes_came();
            self.look_for_preface(bytes);
            if let Some(counted) = &self.counted {
                counted.received(bytes.len());
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.went(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs))?;
        self.went(written);
        Poll::Ready(Ok(written))
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

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
