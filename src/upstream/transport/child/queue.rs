//! What waits to be written to a process: whole lines in the order in which they were handed over.
//!
//! Owns the bound on what waits, and that a message is one line. Callers wait for room in the order of their coming; one
//! that stops waiting has handed over nothing. Once the queue is closed nothing new is taken, and what is in it is still
//! written.

use crate::wire::payload::Payload;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, mpsc};

/// Bytes that wait at most, where a message may be that long; a longer one waits until it is alone. More would only be
/// memory: a server that reads slowly is not read faster for it.
const BYTES: usize = 1024 * 1024;

/// What a short message counts for, so that there are at most 1024 of them.
const LEAST: usize = 1024;

/// The process takes no messages any more.
#[derive(Debug, thiserror::Error)]
#[error("it takes no messages any more")]
pub(super) struct Closed;

/// The way in.
pub(super) struct Queue {
    room: Arc<Semaphore>,
    all: usize,
    /// `None` once it is closed.
    lines: Mutex<Option<mpsc::UnboundedSender<Line>>>,
}

/// The way out.
pub(super) struct Queued {
    room: Arc<Semaphore>,
    lines: mpsc::UnboundedReceiver<Line>,
}

/// A message without its line end.
pub(super) struct Line {
    pub(super) text: Payload,
    room: usize,
}

impl Queue {
    /// For messages of `message_bytes` at most.
    pub(super) fn new(message_bytes: usize) -> (Arc<Self>, Queued) {
        let all = message_bytes.clamp(LEAST, BYTES);
        let (lines, queued) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(all));
        let queued = Queued { room: room.clone(), lines: queued };
        (Arc::new(Self { room, all, lines: Mutex::new(Some(lines)) }), queued)
    }

    pub(super) async fn push(&self, text: Payload) -> Result<(), Closed> {
        let text = text.one_line();
        let room = text.len().clamp(LEAST, self.all);
        let taken = u32::try_from(room).map_err(|_| Closed)?;
        self.room.acquire_many(taken).await.map_err(|_| Closed)?.forget();
        self.lines().as_ref().and_then(|lines| lines.send(Line { text, room }).ok()).ok_or(Closed)
    }

    /// The same without waiting.
    pub(super) fn offer(&self, text: Payload) -> bool {
        let text = text.one_line();
        let room = text.len().clamp(LEAST, self.all);
        let Ok(taken) = u32::try_from(room) else { return false };
        let Ok(place) = self.room.try_acquire_many(taken) else { return false };
        place.forget();
        self.lines().as_ref().is_some_and(|lines| lines.send(Line { text, room }).is_ok())
    }

    pub(super) fn close(&self) {
        self.room.close();
        *self.lines() = None;
    }

    fn lines(&self) -> MutexGuard<'_, Option<mpsc::UnboundedSender<Line>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queued {
    /// Waits for lines and takes at most `count`; none where the queue is closed and empty.
    pub(super) async fn take(&mut self, lines: &mut Vec<Line>, count: usize) {
        self.lines.recv_many(lines, count).await;
    }

    /// Gives back the room of lines that have been written.
    pub(super) fn written(&self, lines: &mut Vec<Line>) {
        self.room.add_permits(lines.drain(..).map(|line| line.room).sum());
    }
}

/// Whoever writes is gone: nothing is taken any more.
impl Drop for Queued {
    fn drop(&mut self) {
        self.room.close();
    }
}
