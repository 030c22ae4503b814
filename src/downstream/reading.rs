//! A reader of a session's stream as the body of a response.
//!
//! Owns what is written in its pauses, and how it ends: with its last answer, without a word where the proxy drains or the
//! client is to come back (`session.poll`), or, when the process ends, with what those who still wait are told.
//! Rules: A13.5, A13.9, B14; case C16.

use super::body::{BoxError, COMMENT};
use super::ends::Ends;
use super::keep_alive::KeepAlive;
use super::legacy::session::{Gap, Next, Reader};
use super::passing::BrokenOff;
use super::record::Record;
use crate::shutdown::Dormant;
use crate::wire::sse;
use bytes::Bytes;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// See the module.
pub(super) struct Reading {
    reader: Reader,
    keep_alive: KeepAlive,
    ends: Ends,
    poll_after: Option<Duration>,
    poll: Option<Pin<Box<Dormant<Sleep>>>>,
    over: bool,
}

impl Reading {
    /// The polling time begins here.
    pub(super) fn new(reader: Reader, keep_alive: Duration, ends: Ends) -> Self {
        let poll_after = reader.poll_after();
        Self { reader, keep_alive: KeepAlive::new(keep_alive), ends, poll_after, poll: None, over: false }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        record: &mut Option<Record>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        loop {
            match self.reader.poll_next(cx) {
                Poll::Ready(Next::Bytes { bytes, ended, last }) => {
                    self.keep_alive.reset();
                    self.over = last;
                    if let (Some(ended), Some(record)) = (ended, record) {
                        record.outcome(ended);
                    }
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Poll::Ready(Next::End) => return self.end(),
                Poll::Ready(Next::Broken) => {
                    self.over = true;
                    return Poll::Ready(Some(Err(BrokenOff.into())));
                }
                Poll::Pending => {}
            }
            if self.ends.poll(cx).is_ready() {
                if self.ends.quiet {
                    return self.end();
                }
                // What they are told is read above.
                self.reader.cut_short();
                self.ends.quiet = true;
                continue;
            }
            if self.is_polled(cx) {
                return self.end();
            }
            break;
        }
        while self.keep_alive.poll(cx).is_ready() {
            match self.reader.gap() {
                Gap::Events => return Poll::Ready(Some(Ok(Bytes::from_static(sse::KEEP_ALIVE)))),
                Gap::Lines => return Poll::Ready(Some(Ok(Bytes::from_static(COMMENT)))),
                // In the middle of a line a comment would break it.
                Gap::None => {}
            }
        }
        Poll::Pending
    }

    fn end(&mut self) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.over = true;
        Poll::Ready(None)
    }

    /// The client is to come back for its answer.
    fn is_polled(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(after) = self.poll_after else { return false };
        let timer = self.poll.get_or_insert_with(|| Box::pin(Dormant::new(sleep(after))));
        timer.as_mut().poll(cx).is_ready() && self.reader.gap() == Gap::Events
    }
}
