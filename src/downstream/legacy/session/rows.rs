//! All event streams of one session, bounded together.
//!
//! Owns finding a stream, what makes room when more is kept than may be (notifications first, the oldest of them; then what
//! has been read; questions and answers that nobody has read last of all, and of an answer a word stays), and letting go of
//! what is over for long enough. Pure state under its session's lock: whoever must be woken is handed out.
//! Rules: A12.19, A13.5, B14; invariant 5.

use super::row::{Ids, Kept, Kind, Row, Taken, Wakers, Weight};
use crate::telemetry::metrics::Ended;
use crate::wire::jsonrpc::Id;
use bytes::Bytes;
use smallvec::SmallVec;
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// What may be kept of one session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) events: usize,
    pub(super) bytes: usize,
    /// After the end of a stream.
    pub(super) replay: Duration,
    /// How far a stream may be ahead of its reader.
    pub(super) ahead_events: usize,
    pub(super) ahead_bytes: usize,
    /// What was written on a session's own stream so shortly before its reader went may not have arrived.
    pub(super) again: Duration,
    /// Resources of which a notice waits.
    pub(super) resources: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Most sessions have one or none.
    rows: SmallVec<[Row; 1]>,
    ages: u64,
    generations: u64,
}

/// What came of saying something on a stream.
#[derive(Debug, Default)]
pub(super) enum Said {
    /// Those to wake, and what had to go for it.
    Kept(Wakers, Gone),
    /// Its reader has to take something first.
    Full,
    /// There is no such stream any more, or it is over.
    #[default]
    Over,
}

/// What went although nobody had read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) notices: usize,
    pub(super) questions: usize,
    pub(super) answers: usize,
}

impl Gone {
    pub(super) fn is_nothing(self) -> bool {
        self == Self::default()
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            notices: self.notices + other.notices,
            questions: self.questions + other.questions,
            answers: self.answers + other.answers,
        }
    }
}

impl Rows {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Events and bytes that are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        let sizes = self.rows.iter().map(|row| (row.size().0, row.size().1 + row.held()));
        sizes.fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.1))
    }

    pub(super) fn open(&mut self, number: u64, kind: Kind, owed: Ids) {
        self.rows.push(Row::new(number, kind, owed));
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.number == number)
    }

    /// The session's own stream.
    pub(super) fn own(&mut self) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.kind == Kind::Own)
    }

    /// Appends an event, if there is room.
    pub(super) fn say(
        &mut self,
        number: u64,
        parts: &[Bytes],
        weight: Weight,
        bounds: &Bounds,
        ended: Option<Ended>,
        waker: Option<&Waker>,
    ) -> Said {
        let age = self.age();
        let Some(row) = self.get(number).filter(|row| !row.is_finished()) else { return Said::Over };
        if let Some(waker) = waker
            && is_full(row, parts.iter().map(Bytes::len).sum(), bounds)
        {
            row.wait_for_room(waker);
            return Said::Full;
        }
        if let Weight::Answer(id) = &weight
            && !row.settle(id)
        {
            return Said::Over;
        }
        row.append(parts, weight, age);
        ended.into_iter().for_each(|ended| row.ends(ended));
        let waker = row.take_waker();
        let gone = self.make_room(bounds);
        Said::Kept(waker.into_iter().collect(), gone)
    }

    /// The question of this id has its answer.
    pub(super) fn answered(&mut self, question: u64) {
        self.rows.iter_mut().for_each(|row| {
            row.forget(question);
        });
    }

    /// Takes a question back, in words only from whoever has read it.
    pub(super) fn take_back(&mut self, number: u64, question: u64, parts: &[Bytes], bounds: &Bounds) -> Said {
        match self.get(number).and_then(|row| row.forget(question)) {
            Some(false) => Said::Kept(Wakers::new(), Gone::default()),
            Some(true) | None => self.say(number, parts, Weight::TakenBack, bounds, None, None),
        }
    }

    /// Appends a piece of a large result, if there is room.
    pub(super) fn say_piece(
        &mut self,
        number: u64,
        id: &Id,
        piece: &Bytes,
        bounds: &Bounds,
        waker: &Waker,
    ) -> Said {
        let age = self.age();
        let Some(row) = self.get(number).filter(|row| row.owed().contains(id)) else { return Said::Over };
        if is_full(row, piece.len(), bounds) {
            row.wait_for_room(waker);
            return Said::Full;
        }
        row.append_piece(id, piece, age, bounds.bytes);
        let waker = row.take_waker();
        let mut gone = Gone::default();
        if !row.is_attached() && row.held() > bounds.bytes {
            gone.answers = usize::from(row.lose_large());
        }
        Said::Kept(waker.into_iter().collect(), gone)
    }

    /// A large result has ended.
    pub(super) fn end_large(&mut self, number: u64, whole: bool, bounds: &Bounds) -> Said {
        let Some(row) = self.get(number).filter(|row| !row.is_finished()) else { return Said::Over };
        row.ends(if whole { Ended::Result } else { Ended::BrokenOff });
        if !row.end_large(whole) {
            return Said::Over;
        }
        let waker = row.take_waker();
        let gone = self.make_room(bounds);
        Said::Kept(waker.into_iter().collect(), gone)
    }

    /// Gives each request that still has none an answer, and ends the stream.
    pub(super) fn finish(
        &mut self,
        number: u64,
        answer: impl Fn(&Id) -> Bytes,
        ended: Ended,
        bounds: &Bounds,
    ) -> (Wakers, Gone) {
        let (mut wakers, mut gone) = Default::default();
        let Some(row) = self.get(number).filter(|row| !row.is_finished()) else { return (wakers, gone) };
        row.ends(ended);
        row.end_large(false);
        let owed: Ids = row.owed().iter().cloned().collect();
        for id in owed {
            let answer = answer(&id);
            let said = self.say(number, &[answer], Weight::Answer(id), bounds, None, None);
            if let Said::Kept(more, went) = said {
                wakers.extend(more);
                gone = gone.and(went);
            }
        }
        if let Some(row) = self.get(number) {
            row.finish();
            wakers.extend(row.take_waker());
            wakers.extend(row.take_room());
        }
        self.rows.retain(|row| !row.is_empty());
        (wakers, gone)
    }

    /// The request will have no answer, by its client's own wish.
    pub(super) fn forgive(&mut self, number: u64, id: &Id) -> Wakers {
        let Some(row) = self.get(number) else { return Wakers::new() };
        if row.settle(id) {
            row.ends(Ended::Cancelled);
        }
        let wakers = row.take_waker().into_iter().collect();
        self.rows.retain(|row| !row.is_empty());
        wakers
    }

    /// A new reader. The number that tells it from others, and whom to wake.
    pub(super) fn attach(
        &mut self,
        number: u64,
        after: Option<u64>,
        bounds: &Bounds,
    ) -> Option<(u64, Wakers)> {
        self.generations += 1;
        let generation = self.generations;
        let row = self.get(number)?;
        let mut wakers: Wakers = row.attach(generation, after, bounds.again).into_iter().collect();
        wakers.extend(row.take_room());
        Some((generation, wakers))
    }

    pub(super) fn detach(&mut self, number: u64, generation: u64, bounds: &Bounds) -> (Wakers, Gone) {
        let Some(row) = self.get(number) else { return Default::default() };
        let Some(lost) = row.detach(generation) else { return Default::default() };
        let lost = lost || row.held() > bounds.bytes && row.lose_large();
        let wakers = row.take_room();
        let gone = self.make_room(bounds).and(Gone { answers: usize::from(lost), ..Gone::default() });
        self.rows.retain(|row| !row.is_empty());
        (wakers, gone)
    }

    pub(super) fn take(
        &mut self,
        number: u64,
        generation: u64,
        waker: &Waker,
        most: usize,
        bounds: &Bounds,
    ) -> (Taken, Wakers, Gone) {
        let (mut wakers, mut gone) = Default::default();
        let Some(row) = self.get(number) else { return (Taken::End, wakers, gone) };
        let taken = row.take(generation, waker, most);
        if !matches!(taken, Taken::Wait) {
            wakers = row.take_room();
            gone = self.make_room(bounds);
        }
        (taken, wakers, gone)
    }

    /// Whether this reader is the present one and has taken everything.
    pub(super) fn is_caught_up(&mut self, number: u64, generation: u64) -> bool {
        self.get(number).is_some_and(|row| row.is_read_by(generation) && row.behind() == Some((0, 0)))
    }

    /// The event that tells a client where it stands (A13.5).
    pub(super) fn prime(&mut self, number: u64, generation: u64) -> Option<Bytes> {
        self.get(number)?.prime(generation)
    }

    /// Lets go of streams that have been over for long enough.
    pub(super) fn prune(&mut self, bounds: &Bounds) {
        let Some(since) = Instant::now().checked_sub(bounds.replay) else { return };
        self.rows.retain(|row| !row.is_over_since(since));
    }

    /// Ends all streams; `answer` is for the requests without one.
    pub(super) fn end(
        &mut self,
        answer: impl Fn(&Id) -> Bytes,
        ended: Ended,
        bounds: &Bounds,
    ) -> (Wakers, Gone) {
        let numbers: Vec<_> = self.rows.iter().map(|row| row.number).collect();
        let (mut wakers, mut gone): (Wakers, Gone) = Default::default();
        for number in numbers {
            let (more, went) = self.finish(number, &answer, ended, bounds);
            wakers.extend(more);
            gone = gone.and(went);
        }
        (wakers, gone)
    }

    fn age(&mut self) -> u64 {
        self.ages += 1;
        self.ages
    }

    fn make_room(&mut self, bounds: &Bounds) -> Gone {
        let mut gone = Gone::default();
        loop {
            let sizes = self.rows.iter().map(|row| row.size());
            let (events, bytes) = sizes.fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.1));
            if events <= bounds.events && bytes <= bounds.bytes {
                return gone;
            }
            let whole = events > bounds.events;
            let Some((at, n)) = self.least(whole) else { return gone };
            let Some(row) = self.rows.get_mut(at) else { return gone };
            match row.evict(n, whole) {
                Some(Weight::Light) => gone.notices += 1,
                Some(Weight::Question(_) | Weight::TakenBack) => gone.questions += 1,
                Some(Weight::Answer(_)) => gone.answers += 1,
                // Was counted when it was lost.
                Some(Weight::Lost(_)) | None => {}
            }
            if row.is_empty() {
                self.rows.swap_remove(at);
            }
        }
    }

    /// The event that is missed least: its row and number. `whole`: nothing of it may stay.
    fn least(&self, whole: bool) -> Option<(usize, u64)> {
        let rows = self.rows.iter().enumerate();
        let all = rows.flat_map(|(at, row)| row.kept().map(move |kept| (at, row, kept)));
        all.filter_map(|(at, row, kept)| Some((worth(row, kept, whole)?, kept.age, at, kept.n)))
            .min()
            .map(|(_, _, at, n)| (at, n))
    }
}

/// What an event is worth to its client; `None` where it has to stay.
fn worth(row: &Row, kept: &Kept, whole: bool) -> Option<u8> {
    if row.is_due(kept) {
        return None;
    }
    let read = row.was_taken(kept);
    match (&kept.weight, read) {
        (Weight::Light, _) => Some(0),
        (Weight::Question(_) | Weight::TakenBack | Weight::Answer(_), true) => Some(1),
        (Weight::Lost(_), _) => whole.then_some(2),
        (Weight::Answer(_), false) => Some(3),
        (Weight::Question(_) | Weight::TakenBack, false) => Some(4),
    }
}

/// Whether its reader has to take something before so many bytes more. One that has nothing to take may be given anything.
fn is_full(row: &Row, bytes: usize, bounds: &Bounds) -> bool {
    let Some((events, waiting)) = row.behind() else { return false };
    events > 0 && (events >= bounds.ahead_events || waiting + bytes > bounds.ahead_bytes)
        || row.held() > 0 && waiting + bytes > bounds.ahead_bytes
}
