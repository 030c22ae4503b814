//! A result that passes: its pieces as the body of a JSON response.
//!
//! Owns handing them to the connection one at a time, so that nothing is taken from the row that the client does not
//! take, and the end of the body: only a result that was whole and good ends well, everything else breaks the response
//! off (an HTTP/1 body without its last chunk, a reset HTTP/2 stream). Event streams belong to `body`. Invariant 1.

use super::body::{BoxError, WRITE};
use super::ends::Ends;
use super::record::Record;
use crate::exchange::{Fault, FaultKind, Outcome, Receiver, Step};
use crate::telemetry::metrics::Ended;
use bytes::{Bytes, BytesMut};
use std::task::{Context, Poll};

/// Pieces below this go out together with those that are there already.
const SMALL: usize = 4 * 1024;

/// The client has seen the beginning of a result that has no end.
#[derive(Debug, thiserror::Error)]
#[error("the result broke off")]
pub(super) struct BrokenOff;

pub(super) struct Passing {
    /// `None` once the outcome is in.
    receiver: Option<Receiver>,
    /// Came before its turn.
    next: Option<Bytes>,
    broken: Option<BrokenOff>,
    ends: Ends,
}

impl Passing {
    pub(super) fn new(receiver: Receiver, first: Bytes, ends: Ends) -> Self {
        Self { receiver: Some(receiver), next: Some(first), broken: None, ends }
    }

    pub(super) fn is_over(&self) -> bool {
        self.receiver.is_none() && self.next.is_none() && self.broken.is_none()
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        record: &mut Option<Record>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        let mut small = BytesMut::new();
        while small.len() < WRITE {
            let piece = match self.next.take() {
                Some(piece) => Some(piece),
                None => match self.piece(cx, record) {
                    Poll::Ready(piece) => piece,
                    Poll::Pending if small.is_empty() => return Poll::Pending,
                    Poll::Pending => break,
                },
            };
            match piece {
                Some(piece) if piece.len() < SMALL => small.extend_from_slice(&piece),
                Some(piece) if small.is_empty() => return Poll::Ready(Some(Ok(piece))),
                large_or_none => {
                    self.next = large_or_none;
                    break;
                }
            }
        }
        if !small.is_empty() {
            return Poll::Ready(Some(Ok(small.freeze())));
        }
        Poll::Ready(self.broken.take().map(|broken| Err(broken.into())))
    }

    /// The next piece; `None` after the last one.
    fn piece(&mut self, cx: &mut Context<'_>, record: &mut Option<Record>) -> Poll<Option<Bytes>> {
        let Some(receiver) = &mut self.receiver else { return Poll::Ready(None) };
        let outcome = loop {
            match receiver.poll_next(cx) {
                Poll::Ready(Some(Step::Piece(piece))) => return Poll::Ready(Some(piece)),
                // None comes between pieces.
                Poll::Ready(Some(Step::Event(_))) => {}
                Poll::Ready(Some(Step::Outcome(outcome))) => break Some(outcome),
                Poll::Ready(None) => break None,
                Poll::Pending if self.ends.poll(cx).is_ready() => {
                    break Some(Outcome::Fault(Fault::cut_short()));
                }
                Poll::Pending => return Poll::Pending,
            }
        };
        self.receiver = None;
        self.broken = settle(outcome, record).err();
        Poll::Ready(None)
    }
}

/// What the outcome after a piece means, for the log and for the response.
pub(super) fn settle(outcome: Option<Outcome>, record: &mut Option<Record>) -> Result<(), BrokenOff> {
    let fault = match outcome {
        Some(Outcome::Flowed) => {
            if let Some(record) = record {
                record.outcome(Ended::Result);
            }
            return Ok(());
        }
        Some(Outcome::Fault(fault)) => fault,
        Some(
            Outcome::Result(_)
            | Outcome::InputRequired(_)
            | Outcome::Error(_)
            | Outcome::Unimplemented(_)
            | Outcome::Replan(_),
        )
        | None => Fault::new(FaultKind::Internal, "another outcome came in the middle of a result"),
    };
    if let Some(record) = record {
        record.outcome(Ended::BrokenOff);
        tracing::warn!(
            parent: &record.span,
            kind = fault.kind.ended().label(),
            "a result broke off after its beginning had gone to the client: {fault}"
        );
    }
    Err(BrokenOff)
}
