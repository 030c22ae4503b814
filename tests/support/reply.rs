//! One answer of a raw server, byte by byte: whole, streamed, half, late, broken off or never.
//!
//! Owns the writing side of a peer's connection for one exchange. A reply that was completed gives the connection
//! back for the next request; one that was not, closes it when dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::sync::oneshot;

use super::http1::Buffered;
use super::{Seen, rpc};

pub type Io = Buffered<DuplexStream>;

pub struct Reply {
    io: Option<Io>,
    back: Option<oneshot::Sender<Io>>,
    broken: Arc<AtomicBool>,
    complete: bool,
    extra: String,
}

impl Reply {
    pub fn new(io: Io, broken: Arc<AtomicBool>) -> (Self, oneshot::Receiver<Io>) {
        let (back, given) = oneshot::channel();
        (Self { io: Some(io), back: Some(back), broken, complete: false, extra: String::new() }, given)
    }

    /// A header for the answer, whatever form it takes.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.extra.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Exact bytes on the connection; errors are ignored, as the other side may be gone.
    pub async fn raw(&mut self, bytes: &[u8]) {
        if let Some(io) = &mut self.io {
            let _ = io.io.write_all(bytes).await;
            let _ = io.io.flush().await;
        }
    }

    /// A whole answer with a body of any type.
    pub async fn body(mut self, status: u16, media_type: &str, body: &str) {
        let extra = std::mem::take(&mut self.extra);
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\n{extra}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw(&[head.as_bytes(), body.as_bytes()].concat()).await;
        self.complete = true;
    }

    pub async fn json(self, status: u16, body: &str) {
        self.body(status, "application/json", body).await;
    }

    pub async fn empty(mut self, status: u16) {
        let extra = std::mem::take(&mut self.extra);
        let length = if status == 204 { "" } else { "Content-Length: 0\r\n" };
        self.raw(format!("HTTP/1.1 {status} X\r\n{extra}{length}\r\n").as_bytes()).await;
        self.complete = true;
    }

    /// `{"jsonrpc":"2.0","id":<the request's>,"result":<raw>}` with 200.
    pub async fn result(self, seen: &Seen, result: &str) {
        self.json(200, &rpc::result_message(&seen.id(), result)).await;
    }

    pub async fn error(self, status: u16, seen: &Seen, error: &str) {
        self.json(status, &rpc::error_message(&seen.id(), error)).await;
    }

    /// Opens an event stream; `chunk`, `event` and `end` go on with it.
    pub async fn stream(&mut self) {
        let extra = std::mem::take(&mut self.extra);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{extra}Transfer-Encoding: chunked\r\n\r\n"
        );
        self.raw(head.as_bytes()).await;
    }

    /// One chunk of the open stream, in a write of its own.
    pub async fn chunk(&mut self, bytes: &[u8]) {
        let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.raw(&framed).await;
    }

    pub async fn event(&mut self, data: &str) {
        self.chunk(format!("event: message\ndata: {data}\n\n").as_bytes()).await;
    }

    pub async fn result_event(&mut self, seen: &Seen, result: &str) {
        self.event(&rpc::result_message(&seen.id(), result)).await;
    }

    pub async fn error_event(&mut self, seen: &Seen, error: &str) {
        self.event(&rpc::error_message(&seen.id(), error)).await;
    }

    /// Ends the stream as HTTP wants it.
    pub async fn end(mut self) {
        self.raw(b"0\r\n\r\n").await;
        self.complete = true;
    }

    /// The result as the only event of a stream.
    pub async fn streamed_result(mut self, seen: &Seen, result: &str) {
        self.stream().await;
        self.result_event(seen, result).await;
        self.end().await;
    }

    /// A stream without any message.
    pub async fn streamed_nothing(mut self) {
        self.stream().await;
        self.end().await;
    }

    /// Announces `whole` as a JSON answer, sends only its first `n` bytes, and closes.
    pub async fn half(mut self, whole: &str, n: usize) {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            whole.len()
        );
        self.raw(&[head.as_bytes(), &whole.as_bytes()[..n]].concat()).await;
    }

    /// Breaks the connection: the other side reads "connection reset".
    pub fn reset(self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    /// Never answers; returns when the other side has gone.
    pub async fn never(mut self) {
        self.closed().await;
    }

    /// Waits until the other side has closed the connection.
    pub async fn closed(&mut self) {
        if let Some(io) = &mut self.io {
            io.closed().await;
        }
    }

    /// Writes the answer, then closes the connection without having said so (a pooled connection goes stale).
    pub async fn json_then_close(mut self, status: u16, body: &str) {
        let extra = std::mem::take(&mut self.extra);
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw(&[head.as_bytes(), body.as_bytes()].concat()).await;
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.complete
            && let (Some(io), Some(back)) = (self.io.take(), self.back.take())
        {
            let _ = back.send(io);
        }
    }
}
