//! One event stream of a session: what it has said, and how far its reader has come.
//!
//! Owns the events of one stream, their ids, the answers that are still owed on it, and its one reader, which takes them in
//! `reading`. Pure state under its session's lock; `rows` bounds all of a session's streams together, `track` waits. Rules:
//! A12.19, A13.5, B14.

use super::event;
pub(super) use super::event::Kind;
use super::large::Large;
use crate::telemetry::metrics::Ended;
use crate::wire::jsonrpc::Id;
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::task::Waker;
use tokio::time::Instant;

mod reading;

pub(super) type Ids = SmallVec<[Id; 1]>;
pub(super) type Wakers = SmallVec<[Waker; 1]>;

/// What an event is worth when room is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Weight {
    /// It goes first.
    Light,
    /// The question of this id.
    Question(u64),
    /// What takes one back that has been read.
    TakenBack,
    Answer(Id),
    /// Stands for an answer that is not kept.
    Lost(Id),
}

#[derive(Debug)]
pub(super) struct Kept {
    /// Its number on the stream.
    pub(super) n: u64,
    /// Its age among all events of the session.
    pub(super) age: u64,
    pub(super) weight: Weight,
    /// As it goes out; nothing of an answer that is lost.
    pub(super) bytes: Bytes,
    came: Instant,
}

/// Who reads.
#[derive(Debug)]
struct Attached {
    generation: u64,
    /// The last event that it was given.
    at: u64,
    waker: Option<Waker>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) number: u64,
    pub(super) kind: Kind,
    owed: Ids,
    kept: VecDeque<Kept>,
    /// Bytes of `kept`.
    bytes: usize,
    last: u64,
    /// The last event that any reader was given.
    taken: u64,
    finished: bool,
    /// How its requests ended.
    ended: Option<Ended>,
    /// When it was finished, or a stream of the session's own was left by its reader.
    over: Option<Instant>,
    reader: Option<Attached>,
    room: Wakers,
    large: Option<Box<Large>>,
}

/// What a reader gets.
#[derive(Debug, Default)]
pub(super) enum Taken {
    /// Events, or a piece of one, and whether nothing follows.
    Bytes {
        bytes: Bytes,
        last: bool,
    },
    Wait,
    #[default]
    End,
    /// The result that it has the beginning of has no end.
    Broken,
}

/// Where a reader stands, for what may be written in a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::downstream) enum Gap {
    #[default]
    Events,
    Lines,
    None,
}

impl Row {
    pub(super) fn new(number: u64, kind: Kind, owed: Ids) -> Self {
        Self {
            number,
            kind,
            owed,
            kept: VecDeque::new(),
            bytes: 0,
            last: 0,
            taken: 0,
            finished: false,
            ended: None,
            over: None,
            reader: None,
            room: SmallVec::new(),
            large: None,
        }
    }

    /// Events and bytes that it keeps.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }

    pub(super) fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.kept.iter()
    }

    /// Whether the present reader is yet to be given this event, so that it must stay.
    pub(super) fn is_due(&self, kept: &Kept) -> bool {
        self.reader.as_ref().is_some_and(|reader| kept.n > reader.at)
    }

    pub(super) fn was_taken(&self, kept: &Kept) -> bool {
        kept.n <= self.taken
    }

    pub(super) fn is_attached(&self) -> bool {
        self.reader.is_some()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// No answer will come after the event of this number.
    pub(super) fn is_answered_by(&self, n: u64) -> bool {
        let answers = |kept: &Kept| matches!(kept.weight, Weight::Answer(_) | Weight::Lost(_));
        self.finished && self.large.is_none() && !self.kept.iter().any(|kept| kept.n > n && answers(kept))
    }

    /// Nobody can want anything of it any more.
    pub(super) fn is_empty(&self) -> bool {
        let nothing = self.kept.is_empty() || self.is_answered_by(0);
        self.over.is_some() && self.reader.is_none() && self.large.is_none() && nothing
    }

    /// Over for as long as `since`, or longer.
    pub(super) fn is_over_since(&self, since: Instant) -> bool {
        self.reader.is_none() && self.over.is_some_and(|over| over <= since)
    }

    /// Events and bytes that its reader has not taken; `None` without a reader.
    pub(super) fn behind(&self) -> Option<(usize, usize)> {
        let reader = self.reader.as_ref()?;
        let due = self.kept.iter().rev().take_while(|kept| kept.n > reader.at);
        let (events, bytes) =
            due.fold((0, 0), |(events, bytes), kept| (events + 1, bytes + kept.bytes.len()));
        Some((events, bytes + self.held()))
    }

    /// Bytes of a large result that nobody has taken.
    pub(super) fn held(&self) -> usize {
        self.large.as_ref().map_or(0, |large| large.waiting())
    }

    pub(super) fn wait_for_room(&mut self, waker: &Waker) {
        if !self.room.iter().any(|waiting| waiting.will_wake(waker)) {
            self.room.push(waker.clone());
        }
    }

    /// Those who wait for room.
    pub(super) fn take_room(&mut self) -> Wakers {
        std::mem::take(&mut self.room)
    }

    /// The reader, if it waits.
    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        self.reader.as_mut()?.waker.take()
    }

    /// The request has its answer, or will have none. With the last one the stream is over. `false`: it had it before.
    pub(super) fn settle(&mut self, id: &Id) -> bool {
        let Some(at) = self.owed.iter().position(|owed| owed == id) else { return false };
        self.owed.remove(at);
        if self.owed.is_empty() {
            self.finish();
        }
        true
    }

    pub(super) fn owed(&self) -> &[Id] {
        &self.owed
    }

    /// How its requests ended, once all of them have.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.filter(|_| self.finished)
    }

    pub(super) fn ends(&mut self, ended: Ended) {
        self.ended = Some(ended);
    }

    pub(super) fn finish(&mut self) {
        if !self.finished {
            self.finished = true;
            self.over = Some(Instant::now());
        }
    }

    /// Appends an event.
    pub(super) fn append(&mut self, parts: &[Bytes], weight: Weight, age: u64) {
        self.last += 1;
        let bytes = event::of(self.kind, self.number, self.last, parts);
        self.bytes += bytes.len();
        self.kept.push_back(Kept { n: self.last, age, weight, bytes, came: Instant::now() });
    }

    /// A piece of the result of `id`.
    pub(super) fn append_piece(&mut self, id: &Id, piece: &[u8], age: u64, most: usize) {
        if self.large.is_none() {
            self.last += 1;
            let head = event::head(self.kind, self.number, self.last);
            self.large = Some(Box::new(Large::new(id.clone(), self.last, age, head, most)));
        }
        if let Some(large) = &mut self.large {
            large.push(piece);
        }
    }

    /// The large result of its own has ended. `false`: there is none.
    pub(super) fn end_large(&mut self, whole: bool) -> bool {
        let attached = self.is_attached();
        let Some(large) = &mut self.large else { return false };
        let (id, n, age) = (large.id.clone(), large.n, large.age);
        match large.end(whole, attached) {
            Some(bytes) => self.stand(n, age, Weight::Answer(id.clone()), bytes),
            // Its reader takes the rest and learns how it ended.
            None if !large.is_lost() && (whole || large.is_begun()) => {}
            None => self.lost(id.clone(), n, age),
        }
        self.settle(&id);
        true
    }

    /// Gives up what is held of a large result that nobody takes. `false`: there was nothing to give up.
    pub(super) fn lose_large(&mut self) -> bool {
        let Some(large) = self.large.as_mut().filter(|large| !large.is_lost()) else { return false };
        large.lose();
        if large.is_over() {
            let (id, n, age) = (large.id.clone(), large.n, large.age);
            self.lost(id, n, age);
        }
        true
    }

    /// Puts what a large result comes to in its place.
    fn stand(&mut self, n: u64, age: u64, weight: Weight, bytes: Bytes) {
        self.large = None;
        self.bytes += bytes.len();
        let at = self.kept.partition_point(|kept| kept.n < n);
        self.kept.insert(at, Kept { n, age, weight, bytes, came: Instant::now() });
    }

    fn lost(&mut self, id: Id, n: u64, age: u64) {
        self.stand(n, age, Weight::Lost(id), Bytes::new());
    }

    /// Takes the event of this number out; of an answer a word stays that it is lost. Returns what it was, if nobody has read
    /// it.
    pub(super) fn evict(&mut self, n: u64, even_the_word: bool) -> Option<Weight> {
        let at = self.kept.binary_search_by_key(&n, |kept| kept.n).ok()?;
        let unread = n > self.taken;
        let weight = self.kept[at].weight.clone();
        if let Weight::Answer(id) = &weight
            && !even_the_word
        {
            let kept = &mut self.kept[at];
            self.bytes -= kept.bytes.len();
            (kept.weight, kept.bytes) = (Weight::Lost(id.clone()), Bytes::new());
        } else if let Some(kept) = self.kept.remove(at) {
            self.bytes -= kept.bytes.len();
        }
        unread.then_some(weight)
    }

    /// Takes the question of this id out: whoever comes back is not asked again. Whether it was there, and had been read.
    pub(super) fn forget(&mut self, question: u64) -> Option<bool> {
        let at = self.kept.iter().position(|kept| kept.weight == Weight::Question(question))?;
        let kept = self.kept.remove(at)?;
        self.bytes -= kept.bytes.len();
        Some(kept.n <= self.taken)
    }
}
