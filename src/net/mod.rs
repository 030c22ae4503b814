//! Byte streams: the one shape in which sockets, TLS sessions and in-memory pipes reach both edges.
//!
//! Owns the stream traits ([`Io`], [`Stream`]), how a connection out is made ([`dial`]) and how a program becomes a process with
//! its streams ([`launch`], [`process`]). Does not own HTTP, TLS
//! settings, or any decision about who may connect. A leaf: nothing of the crate is imported here. Because both edges
//! know only these types, every time-dependent behaviour can be tried over `tokio::io::duplex` under a paused clock.

mod dial;
mod launch;
mod process;

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

pub use dial::{Dial, Origin, OriginError, Scheme, TcpDialer, prepare_tcp};
pub use launch::{Launch, Launched, Process, Program, Reads, Writes};
pub use process::{Processes, launched};

/// A bidirectional byte stream.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {
    /// Whether a stream on which nothing may arrive just now has something to read, an end or an error included: the
    /// peer has then closed it, or speaks out of turn. Answers at once; a stream that cannot tell says `false`.
    fn is_stale(&self) -> bool {
        false
    }
}

pub type BoxIo = Box<dyn Io>;

impl Io for DuplexStream {}

impl Io for TcpStream {
    /// Asks the kernel itself: the runtime's own notion of readiness lags behind by one turn of its poller.
    fn is_stale(&self) -> bool {
        let mut byte = [MaybeUninit::uninit(); 1];
        match SockRef::from(self).peek(&mut byte) {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}

/// A stream with or without TLS around it.
pub enum Stream {
    Plain(BoxIo),
    Tls(Box<TlsStream<BoxIo>>),
}

impl Stream {
    pub fn is_stale(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_stale(),
            Self::Tls(tls) => tls.get_ref().0.is_stale(),
        }
    }

    /// What ALPN settled on, if anything.
    pub fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls) => tls.get_ref().1.alpn_protocol(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, buf),
            Self::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write_vectored(cx, bufs),
            Self::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Tls(tls) => tls.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(cx),
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
