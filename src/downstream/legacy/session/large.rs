//! A result that is too large to be held, on its way through an event stream.
//!
//! Owns its pieces as one event that grows. A reader that has its beginning must get the rest, so what is left of it is lost
//! with that reader; as long as nobody has its beginning it is held as far as it may be. Pure state, part of its row.
//! Rules: B14; architecture section 4, "Raw JSON".

use crate::wire::jsonrpc::Id;
use crate::wire::sse::DataLines;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// See the module.
#[derive(Debug)]
pub(super) struct Large {
    pub(super) id: Id,
    /// Its number on the stream.
    pub(super) n: u64,
    pub(super) age: u64,
    lines: DataLines,
    ready: VecDeque<Bytes>,
    waiting: usize,
    begun: bool,
    lost: bool,
    whole: Option<bool>,
}

/// What is next of it.
#[derive(Debug)]
pub(super) enum Next {
    Piece(Bytes),
    Wait,
    /// All of it has been taken.
    Whole,
    Broken,
}

impl Large {
    /// `head` stands before its data.
    pub(super) fn new(id: Id, n: u64, age: u64, head: Bytes) -> Self {
        let waiting = head.len();
        let (lines, ready) = (DataLines::default(), VecDeque::from([head]));
        Self { id, n, age, lines, ready, waiting, begun: false, lost: false, whole: None }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.lost || self.whole.is_some() {
            return;
        }
        let mut out = BytesMut::with_capacity(piece.len() + 8);
        self.lines.part(&mut out, piece);
        self.queue(out);
    }

    /// It has ended. Returns it as one event where nobody has its beginning, and all of it is there.
    pub(super) fn end(&mut self, whole: bool, attached: bool) -> Option<Bytes> {
        if self.lost {
            return None;
        }
        if whole {
            let mut out = BytesMut::new();
            std::mem::take(&mut self.lines).end(&mut out);
            self.queue(out);
        }
        self.whole = Some(whole);
        if self.begun || attached {
            return None;
        }
        let mut joined = BytesMut::with_capacity(self.waiting);
        self.ready.drain(..).for_each(|piece| joined.extend_from_slice(&piece));
        whole.then(|| joined.freeze())
    }

    pub(super) fn take(&mut self) -> Next {
        if self.lost {
            return Next::Wait;
        }
        if let Some(piece) = self.ready.pop_front() {
            self.waiting -= piece.len();
            self.begun = true;
            return Next::Piece(piece);
        }
        match self.whole {
            Some(true) => Next::Whole,
            Some(false) => Next::Broken,
            None => Next::Wait,
        }
    }

    /// Nobody will get it.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.waiting = 0;
        self.ready = VecDeque::new();
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn is_begun(&self) -> bool {
        self.begun
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    pub(super) fn is_over(&self) -> bool {
        self.whole.is_some()
    }

    /// Whether its reader stands between two of its lines.
    pub(super) fn is_between(&self) -> bool {
        self.ready.is_empty() && self.lines.is_between()
    }

    fn queue(&mut self, out: BytesMut) {
        if !out.is_empty() {
            self.waiting += out.len();
            self.ready.push_back(out.freeze());
        }
    }
}
