//! A result that is too large to be held, on its way through an event stream.
//!
//! Owns its pieces as one event that grows. What a reader has had of it is kept as well, as long as all of it together is no
//! more than may be kept, so that another reader can begin anew; beyond that a reader that has its beginning must get the rest,
//! and what is left of it is lost with that reader. Pure state, part of its row.
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
    /// What has been taken; `None` once it is more than may be kept.
    past: Option<Vec<Bytes>>,
    past_len: usize,
    most: usize,
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
    /// `head` stands before its data; `most` bytes of it are kept.
    pub(super) fn new(id: Id, n: u64, age: u64, head: Bytes, most: usize) -> Self {
        let waiting = head.len();
        let (lines, ready) = (DataLines::default(), VecDeque::from([head]));
        let past = Some(Vec::new());
        Self {
            id,
            n,
            age,
            lines,
            ready,
            waiting,
            begun: false,
            past,
            past_len: 0,
            most,
            lost: false,
            whole: None,
        }
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
            self.past_len += piece.len();
            if self.past_len > self.most {
                self.past = None;
            }
            self.past.iter_mut().for_each(|past| past.push(piece.clone()));
            return Next::Piece(piece);
        }
        match self.whole {
            Some(true) => Next::Whole,
            Some(false) => Next::Broken,
            None => Next::Wait,
        }
    }

    /// Its reader has gone: another one begins anew, if all of it is still there.
    pub(super) fn rewind(&mut self) -> bool {
        let Some(past) = self.past.as_mut().filter(|_| !self.lost && self.whole != Some(false)) else {
            return false;
        };
        let mut ready = VecDeque::from(std::mem::take(past));
        ready.append(&mut self.ready);
        self.ready = ready;
        self.waiting += std::mem::take(&mut self.past_len);
        self.begun = false;
        true
    }

    /// All of it as one event, if it has ended well and is still there.
    pub(super) fn joined(&mut self) -> Option<Bytes> {
        if self.whole != Some(true) || !self.rewind() {
            return None;
        }
        let mut joined = BytesMut::with_capacity(self.waiting);
        self.ready.drain(..).for_each(|piece| joined.extend_from_slice(&piece));
        Some(joined.freeze())
    }

    /// Nobody will get it.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.waiting = 0;
        self.ready = VecDeque::new();
        self.past = None;
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
