//! What may go out of a message that passes.
//!
//! Owns the pieces, in order: long ones are slices of what came in, short ones are put together.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::ops::Range;

/// Below this a piece is copied, so that a few bytes do not keep the buffer alive that they came in.
const COPY_BELOW: usize = 4 * 1024;

/// Pieces that may go out; short ones are put together.
#[derive(Debug, Default)]
pub(super) struct Out {
    pieces: VecDeque<Bytes>,
    tail: BytesMut,
}

impl Out {
    pub(super) fn slice(&mut self, piece: &Bytes, range: Range<usize>) {
        if range.len() < COPY_BELOW {
            return self.copy(piece.get(range).unwrap_or_default());
        }
        self.flush();
        self.pieces.push_back(piece.slice(range));
    }

    pub(super) fn copy(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// More is there than a few bytes.
    pub(super) fn is_worthwhile(&self) -> bool {
        !self.pieces.is_empty() || self.tail.len() >= COPY_BELOW
    }

    fn flush(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
    }

    pub(super) fn next(&mut self) -> Option<Bytes> {
        if self.pieces.is_empty() {
            self.flush();
        }
        self.pieces.pop_front()
    }
}
