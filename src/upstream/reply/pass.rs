//! A result that passes: taken in piece by piece, given on translated.
//!
//! Owns the reading of such a message up to its end, what each way of breaking off is called, and that a large one stays
//! at the server while there is nobody to take it. Nothing is read from the server unless a piece is asked for, so who takes
//! slowly slows the server down.

use super::{Body, Break, Messages, Source, frame};
use crate::translate::flow::{Plan, Stop};
use crate::wire::json::ScanFault;
use crate::wire::sse;
use bytes::Bytes;
use http_body::Body as _;

/// As much as may come at once of an event that is larger than `message_bytes` and will pass.
const ONE_READ: usize = 1 << 20;

impl Messages {
    /// The next piece of a message that passes, as the caller is to see it; `None` once all of it was good.
    pub(in crate::upstream) async fn piece(&mut self) -> Result<Option<Bytes>, Break> {
        loop {
            let Some(flow) = &mut self.flow else { return Ok(None) };
            let ended = match &mut self.source {
                Source::Done | Source::Other(_) => {
                    let last = flow.take();
                    if last.is_none() {
                        self.flow = None;
                    }
                    return Ok(last);
                }
                Source::Json(body) => {
                    if let Some(piece) = flow.take() {
                        return Ok(Some(piece));
                    }
                    match frame(body).await? {
                        Some(data) => {
                            flow.feed(&data)?;
                            false
                        }
                        None => true,
                    }
                }
                // Lines may be short; they go on together as far as they are there.
                Source::Events(..) if flow.is_worthwhile() => return Ok(flow.take()),
                Source::Events(body, decoder) => match decoder.next_piece() {
                    Some(Ok(sse::Piece::Data(data))) => {
                        flow.feed(&data)?;
                        false
                    }
                    Some(Ok(sse::Piece::End { .. })) => true,
                    Some(Err(sse::SseError::TooLarge { .. })) => return Err(Break::TooLarge),
                    None => {
                        if let Some(piece) = flow.take() {
                            return Ok(Some(piece));
                        }
                        // An event without its end is none.
                        decoder.feed(frame(body).await?.ok_or(Break::Body)?);
                        false
                    }
                },
            };
            if ended {
                flow.finish()?;
                self.error = flow.says_error();
                self.source = Source::Done;
            }
        }
    }

    /// Whether the result that has passed says of itself that it is an error.
    pub(in crate::upstream) fn says_error(&self) -> bool {
        self.error
    }

    /// Lets a large result pass by `plan` from `flow_bytes` on; without one, and until it is one, it is held. May be said
    /// anew as long as none passes. Whether one passes now, of which so much had come before.
    pub(in crate::upstream) fn pass_by(&mut self, plan: Option<Plan>, flow_bytes: usize) -> bool {
        self.bounds.plan = plan.filter(|_| flow_bytes < self.bounds.message_bytes);
        self.bounds.flow_bytes = flow_bytes;
        self.bounds.waits = false;
        if self.bounds.plan.is_some()
            && let Source::Events(_, decoder) = &mut self.source
        {
            decoder.allow(self.bounds.message_bytes.saturating_add(ONE_READ));
        }
        self.flow = self.flow.take().or_else(|| self.gather.pass(&self.bounds).map(Box::new));
        self.flow.is_some()
    }

    /// Nobody is there to take a result: until [`pass_by`](Self::pass_by) is said, no more is read once `flow_bytes` of a
    /// message have come that is not whole, which slows the server down.
    pub(in crate::upstream) fn wait(&mut self, flow_bytes: usize) {
        self.bounds.plan = None;
        self.bounds.flow_bytes = flow_bytes;
        self.bounds.waits = true;
    }
}

/// The next bytes of a body; never, where `stop` says that they stay at the server, unless nothing more will come.
pub(super) async fn more(body: &mut Body, stop: bool) -> Result<Option<Bytes>, Break> {
    if stop && !body.is_end_stream() {
        std::future::pending::<()>().await;
    }
    frame(body).await
}

impl From<Stop> for Break {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Members | Stop::Scan(ScanFault::Nesting(_)) => Break::Bounds,
            Stop::TooLarge => Break::TooLarge,
            Stop::Scan(_) | Stop::NotTheResult => Break::NotAMessage,
        }
    }
}
