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
use crate::telemetry::metrics::Ended;
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
    /// That the process ends.
    told: bool,
    over: bool,
}

impl Reading {
    /// The polling time begins here.
    pub(super) fn new(reader: Reader, keep_alive: Duration, ends: Ends) -> Self {
        let poll_after = reader.poll_after();
        let keep_alive = KeepAlive::new(keep_alive);
        Self { reader, keep_alive, ends, poll_after, poll: None, told: false, over: false }
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
                Poll::Ready(Next::Bytes { bytes, last }) => {
                    self.keep_alive.reset();
                    if last {
                        self.end(record);
                    }
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Poll::Ready(Next::End) => {
                    self.end(record);
                    return Poll::Ready(None);
                }
                Poll::Ready(Next::Broken) => {
                    self.over = true;
                    return Poll::Ready(Some(Err(BrokenOff.into())));
                }
                Poll::Pending => {}
            }
            if self.told || self.ends.poll(cx).is_ready() {
                if self.told {
                    return self.leave(record, Ended::Draining);
                }
                if self.ends.quiet {
                    let _ = self.leave(record, Ended::Draining);
                    // Clients try a few times and then never again: not before somebody can be there.
                    let back = format!("retry: {}\n\n", self.ends.absence().as_millis());
                    return Poll::Ready(Some(Ok(Bytes::from(back))));
                }
                // What they are told is read above.
                self.reader.cut_short();
                self.told = true;
                continue;
            }
            if self.is_polled(cx) {
                // The call goes on, and is answered to whoever comes back.
                return self.leave(record, Ended::Accepted);
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

    /// Nothing comes any more: its requests have ended, or the session, or another reader is there.
    fn end(&mut self, record: &mut Option<Record>) {
        let ended = self.reader.ended().unwrap_or(Ended::Accepted);
        let _ = self.leave(record, ended);
    }

    fn leave(&mut self, record: &mut Option<Record>, ended: Ended) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.over = true;
        if let Some(record) = record {
            record.outcome(ended);
        }
        Poll::Ready(None)
    }

    /// The client is to come back for its answer.
    fn is_polled(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(after) = self.poll_after else { return false };
        let timer = self.poll.get_or_insert_with(|| Box::pin(Dormant::new(sleep(after))));
        timer.as_mut().poll(cx).is_ready() && self.reader.gap() == Gap::Events
    }
}
