//! Who follows the changes of one principal, what has to be listened for because of it, and whom a change concerns.
//!
//! Owns the followers and what they want together, and how the listens that stand compare to that. Pure; the lock around it
//! is `hub`'s, the listens are `line`'s, resources are looked after in `uris`. Rules: A1.8, B9.2, B9.7; vectors D98-D100.

use super::uris::{Refused, Uris, Wished};
use super::{Follower, Lists, NotSubscribed};
use crate::translate::legacy_client::notify::{Acknowledged, Change};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

pub(super) struct State {
    seats: HashMap<u64, Seat>,
    next_seat: u64,
    /// Followers per kind of list: tools, prompts, resources.
    counts: [usize; 3],
    /// The listen that stands asked for these.
    asked: Lists,
    /// And the server tells of these.
    held: Lists,
    uris: Uris,
    /// Somebody has come, or a newer credential, since this was looked at.
    prodded: bool,
    /// The task has ended; whoever comes now needs another hub.
    closed: bool,
}

struct Seat {
    follower: Weak<dyn Follower>,
    lists: Lists,
    /// It has come from another hub, and of these something may have been missed on its way.
    behind: Lists,
    /// Told when everything stands that it has come with.
    moved: Option<oneshot::Sender<()>>,
    /// What it was granted.
    uris: Vec<Arc<str>>,
}

/// What must be told when a listen stands, because nobody has listened for it for a while, or will any more.
#[derive(Default)]
pub(super) struct Missed {
    /// To everyone whom it concerns.
    pub(super) all: Vec<Change>,
    /// To those alone who have come from another hub.
    pub(super) moved: Vec<(Arc<dyn Follower>, Change)>,
    /// Subscriptions that were granted and that the server keeps no more.
    pub(super) lapsed: usize,
}

/// A follower that came from another hub.
pub(super) struct Adopted {
    /// Stands here already, so that it is to be looked at now.
    pub(super) missed: Vec<Change>,
    /// Resources for which there is no room here.
    pub(super) lost: usize,
    pub(super) stands: oneshot::Receiver<()>,
}

/// What one of the two listens is for (B9.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Lists,
    Uris,
}

/// What a listen asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) lists: Lists,
    pub(super) uris: Vec<Arc<str>>,
}

/// How what stands compares to what is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fit {
    /// Something is wanted.
    pub(super) wanted: bool,
    /// Something is wanted that is not asked for.
    pub(super) short: bool,
    /// Something is asked for that nobody wants any more.
    pub(super) surplus: bool,
    /// Somebody waits for an acknowledgement.
    pub(super) waiting: bool,
}

/// What became of a follower's wish.
pub(super) enum Subscribing {
    Granted,
    Wait(oneshot::Receiver<Result<(), NotSubscribed>>),
    /// The follower has as many as it may.
    TooMany,
    /// `most` URIs of all followers, or the bytes that they may have.
    Full,
}

impl State {
    /// `most` bounds the URIs.
    pub(super) fn new(most: usize) -> Self {
        Self {
            seats: HashMap::new(),
            next_seat: 0,
            counts: [0; 3],
            asked: Lists::default(),
            held: Lists::default(),
            uris: Uris::new(most),
            prodded: false,
            closed: false,
        }
    }

    /// The number of the follower's seat; `None` if it is over.
    pub(super) fn enter(&mut self, lists: Lists, follower: Weak<dyn Follower>) -> Option<u64> {
        if self.closed {
            return None;
        }
        let number = self.next_seat;
        self.next_seat += 1;
        let (behind, moved) = (Lists::default(), None);
        self.seats.insert(number, Seat { follower, lists, behind, moved, uris: Vec::new() });
        self.count(lists, 1);
        self.prodded = true;
        Some(number)
    }

    pub(super) fn leave(&mut self, number: u64) {
        let Some(seat) = self.seats.remove(&number) else { return };
        self.count(seat.lists, -1);
        seat.uris.iter().for_each(|uri| self.uris.unwant(number, uri));
    }

    /// What a follower had in another hub, which it has left for this one.
    pub(super) fn adopt(&mut self, number: u64, uris: &[Box<str>]) -> Adopted {
        let (moved, stands) = oneshot::channel();
        let mut adopted = Adopted { missed: Vec::new(), lost: 0, stands };
        let Some(seat) = self.seats.get_mut(&number) else { return adopted };
        seat.behind = seat.lists.without(self.asked);
        adopted.missed = changes(seat.lists.and(self.held));
        for uri in uris {
            let Some((uri, held)) = self.uris.adopt(number, uri) else {
                adopted.lost += 1;
                continue;
            };
            if held {
                adopted.missed.push(Change::Updated(Box::from(&*uri)));
            }
            if !seat.uris.contains(&uri) {
                seat.uris.push(uri);
            }
        }
        seat.moved = Some(moved);
        self.settle();
        adopted
    }

    /// A follower has `most` at most, with those that it waits for.
    pub(super) fn subscribe(&mut self, number: u64, uri: &str, most: usize) -> Subscribing {
        let Some(seat) = self.seats.get_mut(&number) else { return Subscribing::Full };
        let is_known = seat.uris.iter().any(|known| **known == *uri);
        if is_known && !self.uris.is_lapsed(uri) {
            // Where the listen has broken off just now it is opened again, and the gap made good.
            return Subscribing::Granted;
        }
        if !is_known && seat.uris.len() + self.uris.waited_for_by(number, uri) >= most {
            return Subscribing::TooMany;
        }
        match self.uris.want(number, uri) {
            Wished::Held(uri) => {
                if !is_known {
                    seat.uris.push(uri);
                }
                Subscribing::Granted
            }
            Wished::Wait(answer) => Subscribing::Wait(answer),
            Wished::Full => Subscribing::Full,
        }
    }

    pub(super) fn unsubscribe(&mut self, number: u64, uri: &str) {
        if let Some(seat) = self.seats.get_mut(&number) {
            seat.uris.retain(|known| **known != *uri);
        }
        self.uris.unwant(number, uri);
    }

    /// What the follower was granted.
    pub(super) fn uris_of(&self, number: u64) -> Vec<Box<str>> {
        self.seats
            .get(&number)
            .map(|seat| seat.uris.iter().map(|uri| Box::from(&**uri)).collect())
            .unwrap_or_default()
    }

    /// How a listen fits. Whoever has stopped waiting is forgotten.
    pub(super) fn fit(&mut self, kind: Kind) -> Fit {
        match kind {
            Kind::Lists => {
                let wanted = self.lists();
                Fit {
                    wanted: !wanted.is_empty(),
                    short: !wanted.without(self.asked).is_empty(),
                    surplus: !self.asked.without(wanted).is_empty(),
                    waiting: false,
                }
            }
            Kind::Uris => self.uris.fit(),
        }
    }

    /// Somebody has stopped waiting.
    pub(super) fn given_up(&mut self) {
        self.uris.given_up();
    }

    /// What the next listen asks for.
    pub(super) fn wish(&self, kind: Kind) -> Wish {
        match kind {
            Kind::Lists => Wish { lists: self.lists(), uris: Vec::new() },
            Kind::Uris => self.uris.wish(),
        }
    }

    /// A listen has been acknowledged, and stands instead of the one before. Whoever waited is told. After a gap: what
    /// those must look at again who relied on it.
    pub(super) fn stands(&mut self, kind: Kind, wish: &Wish, honoured: &Acknowledged, gap: bool) -> Missed {
        let missed = match kind {
            Kind::Lists => self.lists_stand(wish.lists, honoured, gap),
            Kind::Uris => {
                let (all, lapsed) = self.uris.stand(wish, honoured, gap, |seat, uri| {
                    let Some(seat) = self.seats.get_mut(&seat) else { return false };
                    if !seat.uris.contains(uri) {
                        seat.uris.push(uri.clone());
                    }
                    true
                });
                Missed { all, lapsed, ..Missed::default() }
            }
        };
        self.settle();
        missed
    }

    fn lists_stand(&mut self, asked: Lists, honoured: &Acknowledged, gap: bool) -> Missed {
        let honoured =
            Lists { tools: honoured.tools, prompts: honoured.prompts, resources: honoured.resources };
        (self.asked, self.held) = (asked, honoured.and(asked));
        let mut missed = Missed::default();
        for seat in self.seats.values_mut() {
            let behind = seat.behind.and(self.held);
            seat.behind = seat.behind.without(asked);
            // After a gap they are told with the others.
            if let Some(follower) = (!gap && !behind.is_empty()).then(|| seat.follower.upgrade()).flatten() {
                missed.moved.extend(changes(behind).into_iter().map(|change| (follower.clone(), change)));
            }
        }
        if gap {
            missed.all = changes(self.held.and(self.lists()));
        }
        missed
    }

    /// Those who have come from another hub are told when there is nothing left that they need that one for.
    fn settle(&mut self) {
        for seat in self.seats.values_mut().filter(|seat| seat.moved.is_some()) {
            if seat.behind.is_empty()
                && seat.uris.iter().all(|uri| self.uris.is_asked(uri))
                && let Some(moved) = seat.moved.take()
            {
                let _ = moved.send(());
            }
        }
    }

    /// No listen stands any more.
    pub(super) fn falls(&mut self, kind: Kind) {
        match kind {
            Kind::Lists => (self.asked, self.held) = (Lists::default(), Lists::default()),
            Kind::Uris => self.uris.fall(),
        }
    }

    /// A listen came to nothing: who waited for it is told.
    pub(super) fn failed(&mut self, wish: &Wish, told: &NotSubscribed) {
        self.uris.failed(wish, told);
    }

    /// Whoever waits is told.
    pub(super) fn deny(&mut self, told: &NotSubscribed) {
        self.uris.deny(told);
    }

    /// The server refuses a listen as a whole.
    pub(super) fn refused(&mut self, wish: &Wish) -> Refused {
        self.uris.refused(wish)
    }

    /// Who must be told of a change. Those who are gone are forgotten.
    pub(super) fn audience(&mut self, change: &Change) -> Vec<Arc<dyn Follower>> {
        let mut audience = Vec::with_capacity(self.seats.len());
        let mut gone = Vec::new();
        let mut invite = |number: u64, seat: &Seat| match seat.follower.upgrade() {
            Some(follower) => audience.push(follower),
            None => gone.push(number),
        };
        let of_list = |lists: fn(Lists) -> bool, invite: &mut dyn FnMut(u64, &Seat)| {
            let wanted = self.seats.iter().filter(|(_, seat)| lists(seat.lists));
            wanted.for_each(|(number, seat)| invite(*number, seat));
        };
        match change {
            Change::Tools => of_list(|lists| lists.tools, &mut invite),
            Change::Prompts => of_list(|lists| lists.prompts, &mut invite),
            Change::Resources => of_list(|lists| lists.resources, &mut invite),
            Change::Updated(uri) => {
                for number in self.uris.concerned(uri) {
                    if let Some(seat) = self.seats.get(&number) {
                        invite(number, seat);
                    }
                }
            }
        }
        gone.into_iter().for_each(|number| self.leave(number));
        audience
    }

    /// The resources subscribed to that an update concerns.
    pub(super) fn subscribed_above(&self, uri: &str) -> Vec<Change> {
        self.uris.above(uri).into_iter().map(|(uri, _)| Change::Updated(Box::from(&**uri))).collect()
    }

    pub(super) fn prod(&mut self) {
        self.prodded = true;
    }

    pub(super) fn take_prod(&mut self) -> bool {
        std::mem::take(&mut self.prodded)
    }

    /// Ends it, if nobody is in it. Whether it has ended.
    pub(super) fn close_if_empty(&mut self) -> bool {
        self.closed |= self.seats.is_empty();
        self.closed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }

    fn lists(&self) -> Lists {
        let [tools, prompts, resources] = self.counts.map(|count| count > 0);
        Lists { tools, prompts, resources }
    }

    fn count(&mut self, lists: Lists, by: isize) {
        let flags = [lists.tools, lists.prompts, lists.resources];
        for (count, _) in self.counts.iter_mut().zip(flags).filter(|(_, wanted)| *wanted) {
            *count = count.saturating_add_signed(by);
        }
    }
}

fn changes(lists: Lists) -> Vec<Change> {
    let all = [
        (lists.tools, Change::Tools),
        (lists.prompts, Change::Prompts),
        (lists.resources, Change::Resources),
    ];
    all.into_iter().filter_map(|(is_meant, change)| is_meant.then_some(change)).collect()
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
