//! The event stream of a client of HTTP+SSE.
//!
//! Owns its form: where messages go first of all, then each message as an event by that name, and a comment where it is quiet
//! for long (C16). Its end is the client's, and the other way round. Messages wait in a short queue; a client that does not read
//! slows down what is told to it.

use crate::downstream::body::WRITE;
use crate::downstream::keep_alive::KeepAlive;
use crate::wire::payload::Payload;
use crate::wire::sse;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

const BEGIN: &[u8] = b"event: message\ndata: ";
const END: &[u8] = b"\n\n";

/// A message that is at least so long is not copied.
const LONG: usize = 4 * 1024;

/// See the module.
pub(in crate::downstream) struct Told {
    ready: VecDeque<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    keep_alive: KeepAlive,
    /// The client goes with its stream.
    _gone: DropGuard,
}

impl Told {
    pub(super) fn new(
        endpoint: String,
        messages: mpsc::Receiver<Bytes>,
        keep_alive: Duration,
        gone: DropGuard,
    ) -> Self {
        let ready = VecDeque::from([Bytes::from(endpoint)]);
        Self { ready, messages, keep_alive: KeepAlive::new(keep_alive), _gone: gone }
    }

    /// What goes out next; `None` at the end.
    pub(in crate::downstream) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(bytes) = self.ready.pop_front() {
            self.keep_alive.reset();
            return Poll::Ready(Some(bytes));
        }
        let mut short = BytesMut::new();
        let over = loop {
            match self.messages.poll_recv(cx) {
                Poll::Ready(Some(message)) => {
                    // In JSON a line end is white space between tokens, and in data it would end the line.
                    let line = Payload::from(message).one_line().to_bytes();
                    short.extend_from_slice(BEGIN);
                    if line.len() >= LONG {
                        self.ready.extend([line, Bytes::from_static(END)]);
                        break false;
                    }
                    short.extend_from_slice(&line);
                    short.extend_from_slice(END);
                    if short.len() >= WRITE {
                        break false;
                    }
                }
                Poll::Ready(None) => break true,
                Poll::Pending => break false,
            }
        };
        if !short.is_empty() {
            self.keep_alive.reset();
            return Poll::Ready(Some(short.freeze()));
        }
        if over {
            return Poll::Ready(None);
        }
        self.keep_alive.poll(cx).map(|()| Some(Bytes::from_static(sse::KEEP_ALIVE)))
    }
}
