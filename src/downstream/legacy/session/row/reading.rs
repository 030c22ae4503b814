//! The one reader of an event stream: how it comes and goes, and what it takes.
//!
//! Owns where a reader begins, what it is given next, and what becomes of a large result that it leaves half-way. Part of its
//! row; does not own what is kept. Rules: A12.19, A13.5, B9.8, B14.

use super::super::event;
use super::super::large::{Large, Next};
use super::{Attached, Gap, Kind, Row, Taken, Weight};
use bytes::{Bytes, BytesMut};
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

impl Row {
    /// A reader in the place of the one before. `after`: the last event that its client has; else it gets what none has had,
    /// or what was told on a session's own stream within `again`: the connection may have been dead already.
    pub(in super::super) fn attach(
        &mut self,
        generation: u64,
        after: Option<u64>,
        again: Duration,
    ) -> Option<Waker> {
        let at = after.unwrap_or_else(|| self.arrived(again)).min(self.last);
        self.lose_begun();
        if self.kind == Kind::Own {
            self.over = None;
        }
        let former = self.reader.replace(Attached { generation, at, waker: None });
        former.and_then(|former| former.waker)
    }

    /// The last event that whoever does not say has had for sure. On a session's own stream there are only notices, of which two
    /// do no harm.
    fn arrived(&self, again: Duration) -> u64 {
        let late = self.kept.iter().find(|kept| self.kind == Kind::Own && kept.came.elapsed() < again);
        late.map_or(self.taken, |kept| self.taken.min(kept.n - 1))
    }

    /// The reader has gone, and with it, perhaps, a result that it had the beginning of. `None`: it was not the present one.
    pub(in super::super) fn detach(&mut self, generation: u64) -> Option<bool> {
        if !self.is_read_by(generation) {
            return None;
        }
        self.reader = None;
        if self.kind == Kind::Own {
            self.over = Some(Instant::now());
        }
        Some(self.lose_begun())
    }

    /// Whoever had the beginning of a large result is gone, or all of it was there to be had: then it counts among what is
    /// kept. Whether the result is lost with it.
    fn lose_begun(&mut self) -> bool {
        let is_concerned = |large: &&mut Box<Large>| large.is_begun() || large.is_over();
        let Some(large) = self.large.as_mut().filter(is_concerned) else { return false };
        let (id, n, age) = (large.id.clone(), large.n, large.age);
        if let Some(bytes) = large.joined() {
            self.stand(n, age, Weight::Answer(id), bytes);
            return false;
        }
        // One that has broken off before anybody had anything of it is told as lost when it is read.
        large.is_begun() && !large.rewind() && self.lose_large()
    }

    pub(in super::super) fn is_read_by(&self, generation: u64) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.generation == generation)
    }

    /// An event without data, for a client that has had none: where it stands, and how long to wait before it comes back.
    pub(in super::super) fn prime(&self, generation: u64) -> Option<Bytes> {
        let reader = self.reader.as_ref().filter(|reader| reader.generation == generation)?;
        Some(event::priming(self.kind, self.number, reader.at))
    }

    pub(in super::super) fn gap(&self) -> Gap {
        match &self.large {
            Some(large) if large.is_begun() && large.is_between() => Gap::Lines,
            Some(large) if large.is_begun() => Gap::None,
            Some(_) | None => Gap::Events,
        }
    }

    /// What the reader of this generation is due; `most`: as much as goes out at once.
    pub(in super::super) fn take(&mut self, generation: u64, waker: &Waker, most: usize) -> Taken {
        loop {
            if !self.is_read_by(generation) {
                return Taken::End;
            }
            let bytes = self.take_events(most);
            if !bytes.is_empty() {
                return Taken::Bytes { bytes, last: self.is_at_end() };
            }
            let Some(large) = &mut self.large else { break };
            let (id, n, age) = (large.id.clone(), large.n, large.age);
            match large.take() {
                Next::Piece(bytes) => return Taken::Bytes { bytes, last: false },
                Next::Wait => break,
                Next::Whole => {
                    match large.joined() {
                        Some(bytes) => self.stand(n, age, Weight::Answer(id), bytes),
                        // Whoever comes back for it finds a word in its place.
                        None => self.lost(id, n, age),
                    }
                    self.pass(n);
                    if self.is_at_end() {
                        return Taken::End;
                    }
                }
                Next::Broken => {
                    self.lost(id, n, age);
                    self.detach(generation);
                    return Taken::Broken;
                }
            }
        }
        if self.is_at_end() {
            return Taken::End;
        }
        if let Some(reader) = &mut self.reader {
            reader.waker = Some(waker.clone());
        }
        Taken::Wait
    }

    fn take_events(&mut self, most: usize) -> Bytes {
        let Some(at) = self.reader.as_ref().map(|reader| reader.at) else { return Bytes::new() };
        let until = self.large.as_ref().map_or(u64::MAX, |large| large.n);
        let first = self.kept.partition_point(|kept| kept.n <= at);
        let mut joined = BytesMut::new();
        let mut one = Bytes::new();
        let mut reached = at;
        for kept in self.kept.range(first..).take_while(|kept| kept.n < until) {
            let bytes = match &kept.weight {
                Weight::Lost(id) => event::gone(self.kind, self.number, kept.n, id),
                Weight::Light | Weight::Question(_) | Weight::TakenBack | Weight::Answer(_) => {
                    kept.bytes.clone()
                }
            };
            let before = one.len() + joined.len();
            if before > 0 && before + bytes.len() > most {
                break;
            }
            if before == 0 {
                one = bytes;
            } else {
                joined.extend_from_slice(&std::mem::take(&mut one));
                joined.extend_from_slice(&bytes);
            }
            reached = kept.n;
        }
        let bytes = if joined.is_empty() { one } else { joined.freeze() };
        self.pass(reached);
        bytes
    }

    fn pass(&mut self, n: u64) {
        if let Some(reader) = &mut self.reader {
            reader.at = reader.at.max(n);
        }
        self.taken = self.taken.max(n);
    }

    /// Nothing will follow.
    fn is_at_end(&self) -> bool {
        let read = self.reader.as_ref().is_none_or(|reader| reader.at >= self.last);
        self.finished && read && self.large.is_none()
    }
}
