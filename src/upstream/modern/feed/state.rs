//! Who follows the changes of one principal, what has to be listened for because of it, and whom a change concerns.
//!
//! Owns the counts and what follows from them: whether the listens that stand cover what is wanted, what the next ones ask
//! for, who waits for an acknowledgement and what it makes of that. Pure; the lock around it is `hub`'s, the listens are
//! `line`'s. Rules: A1.8, B9.2, B9.4, B9.7; vectors D98-D100.

use super::{Follower, Lists, NotSubscribed};
use crate::translate::legacy_client::listen::{covering, is_within};
use crate::translate::legacy_client::notify::{Acknowledged, Change};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;

/// Bytes of all URIs that one principal subscribes to: they all stand in one request.
const MOST_BYTES: usize = 512 * 1024;

pub(super) struct State {
    seats: HashMap<u64, Seat>,
    next_seat: u64,
    /// Followers per kind of list: tools, prompts, resources.
    counts: [usize; 3],
    /// The listen that stands asked for these.
    asked: Lists,
    uris: HashMap<Arc<str>, Subscription>,
    bytes: usize,
    most: usize,
    /// How the URIs fit, until something changes.
    fit: Option<Fit>,
    /// So many of those who wait are asked for one at a time, since the server refused to take them together.
    singly: usize,
    /// Somebody has come, or a newer credential, since this was looked at.
    prodded: bool,
    /// The task has ended; whoever comes now needs another hub.
    closed: bool,
}

struct Seat {
    follower: Weak<dyn Follower>,
    lists: Lists,
    uris: Vec<Arc<str>>,
}

#[derive(Default)]
struct Subscription {
    /// The seats that it was granted to, in order.
    seats: SmallVec<[u64; 1]>,
    waiting: Vec<Waiter>,
    /// The listen that stands asked for it.
    asked: bool,
    /// And the server keeps it.
    held: bool,
}

struct Waiter {
    seat: u64,
    told: oneshot::Sender<Result<(), NotSubscribed>>,
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
    /// `most` URIs, or the bytes that they may have.
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
            uris: HashMap::new(),
            bytes: 0,
            most,
            fit: None,
            singly: 0,
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
        self.seats.insert(number, Seat { follower, lists, uris: Vec::new() });
        self.count(lists, 1);
        self.prodded = true;
        Some(number)
    }

    pub(super) fn leave(&mut self, number: u64) {
        let Some(seat) = self.seats.remove(&number) else { return };
        self.fit = None;
        self.count(seat.lists, -1);
        for uri in &seat.uris {
            self.unseat(uri, number);
        }
    }

    pub(super) fn subscribe(&mut self, number: u64, uri: &str) -> Subscribing {
        self.fit = None;
        let Some(seat) = self.seats.get_mut(&number) else { return Subscribing::Full };
        if seat.uris.iter().any(|known| **known == *uri) {
            // Where the listen has broken off just now it is opened again, and the gap made good.
            return Subscribing::Granted;
        }
        if let Some((uri, subscription)) = self.uris.get_key_value(uri)
            && subscription.held
        {
            let uri = uri.clone();
            seat.uris.push(uri.clone());
            if let Some(subscription) = self.uris.get_mut(&uri) {
                subscription.seat(number);
            }
            return Subscribing::Granted;
        }
        let (told, answer) = oneshot::channel();
        let waiter = Waiter { seat: number, told };
        if let Some(subscription) = self.uris.get_mut(uri) {
            subscription.waiting.push(waiter);
            return Subscribing::Wait(answer);
        }
        if self.uris.len() >= self.most || self.bytes + uri.len() > MOST_BYTES {
            return Subscribing::Full;
        }
        self.bytes += uri.len();
        let subscription = Subscription { waiting: vec![waiter], ..Subscription::default() };
        self.uris.insert(Arc::from(uri), subscription);
        Subscribing::Wait(answer)
    }

    pub(super) fn unsubscribe(&mut self, number: u64, uri: &str) {
        self.fit = None;
        if let Some(seat) = self.seats.get_mut(&number) {
            seat.uris.retain(|known| **known != *uri);
        }
        if let Some(subscription) = self.uris.get_mut(uri) {
            // One that is still waited for is as good as granted, and taken back.
            for waiter in subscription.waiting.extract_if(.., |waiter| waiter.seat == number) {
                let _ = waiter.told.send(Ok(()));
            }
        }
        self.unseat(uri, number);
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
            Kind::Uris => {
                let fit = self.fit.unwrap_or_else(|| self.uris_fit());
                self.fit = Some(fit);
                fit
            }
        }
    }

    fn uris_fit(&mut self) -> Fit {
        let mut fit = Fit::default();
        for subscription in self.uris.values_mut() {
            subscription.waiting.retain(|waiter| !waiter.told.is_closed());
            let waiting = !subscription.waiting.is_empty();
            let wanted = subscription.is_wanted();
            fit.waiting |= waiting;
            fit.wanted |= wanted;
            fit.short |= waiting || wanted && !subscription.asked;
            fit.surplus |= subscription.asked && !wanted;
        }
        if !fit.waiting {
            self.singly = 0;
        }
        self.forget_unwanted();
        fit
    }

    /// Somebody has stopped waiting.
    pub(super) fn given_up(&mut self) {
        self.fit = None;
    }

    /// What the next listen asks for.
    pub(super) fn wish(&self, kind: Kind) -> Wish {
        match kind {
            Kind::Lists => Wish { lists: self.lists(), uris: Vec::new() },
            Kind::Uris => {
                let mut one = false;
                let wanted = self.uris.iter().filter(|(_, subscription)| {
                    let new = subscription.seats.is_empty();
                    let left_out = new && self.singly > 0 && std::mem::replace(&mut one, true);
                    subscription.is_wanted() && !left_out
                });
                let mut uris: Vec<_> = wanted.map(|(uri, _)| uri.clone()).collect();
                uris.sort_unstable();
                Wish { lists: Lists::default(), uris }
            }
        }
    }

    /// A listen has been acknowledged, and stands instead of the one before. Whoever waited is told. After a gap: what
    /// those must look at again who relied on it.
    pub(super) fn stands(
        &mut self,
        kind: Kind,
        wish: &Wish,
        honoured: &Acknowledged,
        gap: bool,
    ) -> Vec<Change> {
        match kind {
            Kind::Lists => {
                let held =
                    Lists { tools: honoured.tools, prompts: honoured.prompts, resources: honoured.resources };
                self.asked = wish.lists;
                let missed = if gap { held.and(wish.lists).and(self.lists()) } else { Lists::default() };
                let changes = [
                    (missed.tools, Change::Tools),
                    (missed.prompts, Change::Prompts),
                    (missed.resources, Change::Resources),
                ];
                changes.into_iter().filter_map(|(missed, change)| missed.then_some(change)).collect()
            }
            Kind::Uris => self.uris_stand(wish, honoured, gap),
        }
    }

    fn uris_stand(&mut self, wish: &Wish, honoured: &Acknowledged, gap: bool) -> Vec<Change> {
        self.uris_fall();
        self.singly = self.singly.saturating_sub(1);
        let honoured: HashSet<&str> = honoured.uris.iter().map(|uri| &**uri).collect();
        let mut missed = Vec::new();
        for uri in &wish.uris {
            let subscription = self.uris.entry(uri.clone()).or_insert_with(|| {
                self.bytes += uri.len();
                Subscription::default()
            });
            subscription.asked = true;
            subscription.held = honoured.contains(&**uri);
            if gap && !subscription.seats.is_empty() {
                missed.push(Change::Updated(Box::from(&**uri)));
            }
            for waiter in std::mem::take(&mut subscription.waiting) {
                if !subscription.held {
                    let _ = waiter.told.send(Err(NotSubscribed::Refused));
                } else if let Some(seat) = self.seats.get_mut(&waiter.seat)
                    && waiter.told.send(Ok(())).is_ok()
                    && !seat.uris.contains(uri)
                {
                    seat.uris.push(uri.clone());
                    subscription.seat(waiter.seat);
                }
            }
        }
        self.forget_unwanted();
        missed
    }

    /// No listen stands any more.
    pub(super) fn falls(&mut self, kind: Kind) {
        match kind {
            Kind::Lists => self.asked = Lists::default(),
            Kind::Uris => {
                self.uris_fall();
                self.forget_unwanted();
            }
        }
    }

    fn uris_fall(&mut self) {
        self.fit = None;
        for subscription in self.uris.values_mut() {
            subscription.asked = false;
            subscription.held = false;
        }
    }

    /// A listen came to nothing: who waited for it is told.
    pub(super) fn failed(&mut self, wish: &Wish, told: &NotSubscribed) {
        self.fit = None;
        for uri in &wish.uris {
            if let Some(subscription) = self.uris.get_mut(uri) {
                subscription.tell(told);
            }
        }
    }

    /// Whoever waits is told.
    pub(super) fn deny(&mut self, told: &NotSubscribed) {
        self.fit = None;
        self.uris.values_mut().for_each(|subscription| subscription.tell(told));
    }

    /// The server refuses a listen as a whole. Where several waited for it, it is not known whose it refuses: they are
    /// asked for one at a time. Whether that, or telling the only one, leaves something to be asked for at once.
    pub(super) fn refused(&mut self, wish: &Wish) -> bool {
        let new = |uri: &&Arc<str>| {
            self.uris.get(*uri).is_some_and(|known| known.seats.is_empty() && !known.waiting.is_empty())
        };
        let new = wish.uris.iter().filter(new).count();
        if new > 1 {
            self.singly = new;
        } else {
            self.singly = self.singly.saturating_sub(1);
            self.failed(wish, &NotSubscribed::Refused);
        }
        new > 0
    }

    /// Who must be told of a change. Those who are gone are forgotten.
    pub(super) fn audience(&mut self, change: &Change) -> Vec<Arc<dyn Follower>> {
        let mut audience = Vec::new();
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
                for number in self.subscribed(uri) {
                    if let Some(seat) = self.seats.get(&number) {
                        invite(number, seat);
                    }
                }
            }
        }
        gone.into_iter().for_each(|number| self.leave(number));
        audience
    }

    /// The seats that an update concerns, each once (B9.4).
    fn subscribed(&self, uri: &str) -> Vec<u64> {
        let mut numbers: Vec<u64> = Vec::new();
        let slashes = memchr::memchr_iter(b'/', uri.as_bytes()).count();
        let mut several = 0;
        let mut add = |subscription: &Subscription| {
            numbers.extend_from_slice(&subscription.seats);
            several += 1;
        };
        if self.uris.len() <= slashes * 2 {
            let within = self.uris.iter().filter(|(subscribed, _)| is_within(uri, subscribed));
            within.for_each(|(_, subscription)| add(subscription));
        } else {
            covering(uri).filter_map(|subscribed| self.uris.get(subscribed)).for_each(add);
        }
        if several > 1 {
            numbers.sort_unstable();
            numbers.dedup();
        }
        numbers
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

    fn unseat(&mut self, uri: &str, number: u64) {
        if let Some(subscription) = self.uris.get_mut(uri)
            && let Ok(at) = subscription.seats.binary_search(&number)
        {
            subscription.seats.remove(at);
        }
    }

    fn forget_unwanted(&mut self) {
        let bytes = &mut self.bytes;
        self.uris.retain(|uri, subscription| {
            let keep = subscription.asked || subscription.is_wanted();
            if !keep {
                *bytes -= uri.len();
            }
            keep
        });
    }
}

impl Subscription {
    fn is_wanted(&self) -> bool {
        !self.seats.is_empty() || !self.waiting.is_empty()
    }

    fn seat(&mut self, number: u64) {
        if let Err(at) = self.seats.binary_search(&number) {
            self.seats.insert(at, number);
        }
    }

    fn tell(&mut self, told: &NotSubscribed) {
        for waiter in self.waiting.drain(..) {
            let _ = waiter.told.send(Err(told.clone()));
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
