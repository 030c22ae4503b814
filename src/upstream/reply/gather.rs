//! A message that has begun to come and is not whole yet.
//!
//! Owns holding it, bounded by `message_bytes` and in hardly more memory than it has bytes, and noticing when it may
//! pass on while it comes, or has to stay at the server for now (`flow_bytes`, `translate::flow`). Does not read it: that is
//! for whoever takes it whole.

use super::Break;
use crate::translate::flow::{Flow, Plan};
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

/// Below this a piece is copied to its neighbours: many small ones cost more than their bytes.
const COPY_BELOW: usize = 4 * 1024;

/// Copied pieces are put together up to this size.
const BLOCK: usize = 64 * 1024;

/// What a message may be.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Bytes of one that is held.
    pub(super) message_bytes: usize,
    /// Bytes from which on it passes instead, if it may, or is read no further, if it has to wait.
    pub(super) flow_bytes: usize,
    pub(super) plan: Option<Plan>,
    /// There is nobody to whom it could go.
    pub(super) waits: bool,
}

impl Bounds {
    /// Whether so much is held of a message that no more of it is read for now.
    pub(super) fn stop(&self, held: usize) -> bool {
        self.waits && held > self.flow_bytes
    }
}

#[derive(Debug, Default)]
pub(super) struct Gather {
    pieces: SmallVec<[Bytes; 1]>,
    tail: BytesMut,
    len: usize,
    probe: Probe,
}

#[derive(Debug, Default)]
enum Probe {
    /// Too few bytes to ask.
    #[default]
    Idle,
    Looking(Box<Flow>),
    /// It is none that may pass.
    Never,
}

impl Gather {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn hold(&mut self, piece: Bytes, limit: usize) -> Result<(), Break> {
        if piece.len() > limit.saturating_sub(self.len) {
            return Err(Break::TooLarge);
        }
        self.len += piece.len();
        if self.len == piece.len() || piece.len() >= COPY_BELOW {
            self.flush();
            self.pieces.push(piece);
            return Ok(());
        }
        self.tail.extend_from_slice(&piece);
        if self.tail.len() >= BLOCK {
            self.flush();
        }
        Ok(())
    }

    /// As [`hold`](Self::hold), unless the message can pass on from here: then it is given back, on its way.
    pub(super) fn hold_or_pass(&mut self, piece: Bytes, bounds: &Bounds) -> Result<Option<Flow>, Break> {
        let Some(plan) = &bounds.plan else { return self.hold(piece, bounds.message_bytes).map(|()| None) };
        // One read may go beyond both bounds, and what passes need not keep the larger one.
        self.hold(piece.clone(), usize::MAX)?;
        let settle = |len: usize| if len > bounds.message_bytes { Err(Break::TooLarge) } else { Ok(None) };
        if self.len <= bounds.flow_bytes {
            return settle(self.len);
        }
        if let Some(flow) = self.pass(bounds) {
            return Ok(Some(flow));
        }
        if !self.looks_good(plan, &piece) {
            return settle(self.len);
        }
        let mut flow = Flow::new(plan.clone());
        self.flush();
        for piece in std::mem::take(self).pieces {
            flow.feed(&piece)?;
        }
        Ok(Some(flow))
    }

    /// The message on its way, if it can pass on with what has come of it.
    pub(super) fn pass(&mut self, bounds: &Bounds) -> Option<Flow> {
        let plan = bounds.plan.as_ref().filter(|_| self.len > bounds.flow_bytes)?;
        if !matches!(self.probe, Probe::Idle) {
            return None;
        }
        // Almost always what has come says enough, so this is its first and only reading.
        let mut flow = Flow::new(plan.clone());
        self.flush();
        let fed = self.pieces.iter().try_for_each(|piece| flow.feed(piece));
        let passes = fed.is_ok() && flow.is_underway();
        passes.then(|| {
            *self = Self::default();
            flow
        })
    }

    /// Looks at each byte once.
    fn looks_good(&mut self, plan: &Plan, piece: &Bytes) -> bool {
        let fed = match &mut self.probe {
            Probe::Never => return false,
            Probe::Looking(probe) => probe.feed(piece),
            Probe::Idle => {
                let mut probe = Box::new(Flow::probe(plan.clone()));
                self.flush();
                let fed = self.pieces.iter().try_for_each(|piece| probe.feed(piece));
                self.probe = Probe::Looking(probe);
                fed
            }
        };
        if fed.is_err() {
            // What is wrong with it is said of the whole.
            self.probe = Probe::Never;
        }
        matches!(&self.probe, Probe::Looking(probe) if probe.is_underway())
    }

    /// The whole message. Each piece is let go as soon as it is copied.
    pub(super) fn join(&mut self) -> Bytes {
        self.flush();
        let whole = std::mem::take(self);
        let mut pieces = whole.pieces;
        if pieces.len() <= 1 {
            return pieces.pop().unwrap_or_default();
        }
        let mut joined = BytesMut::with_capacity(whole.len);
        for piece in pieces {
            joined.extend_from_slice(&piece);
        }
        joined.freeze()
    }

    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push(self.tail.split().freeze());
        }
    }
}
