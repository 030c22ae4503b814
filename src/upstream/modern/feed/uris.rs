//! The resources that one principal's followers subscribe to.
//!
//! Owns which of them the listen that stands asked for and the server keeps, who was granted which, and who waits for an
//! acknowledgement. Pure. Does not own the followers (`state`). Rules: A1.8, B9.2, B9.4, B9.7; vectors D98, D100.

use super::NotSubscribed;
use super::state::{Fit, Wish};
use crate::translate::legacy_client::listen::{Lists, covering, is_within};
use crate::translate::legacy_client::notify::{Acknowledged, Change};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Bytes of all URIs of one principal: they all stand in one request, which servers bound themselves, so that this is no
/// setting.
pub(super) const MOST_BYTES: usize = 512 * 1024;

pub(super) struct Uris {
    all: HashMap<Arc<str>, Subscription>,
    bytes: usize,
    most: usize,
    /// How they fit, until something changes.
    fit: Option<Fit>,
    /// Of those who wait so many are asked for at a time, since the server refused to take more together.
    portion: Option<usize>,
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

/// What becomes of a wish.
pub(super) enum Wished {
    /// It is kept already.
    Held(Arc<str>),
    Wait(oneshot::Receiver<Result<(), NotSubscribed>>),
    /// There are `most`, or they have the bytes that they may have.
    Full,
}

impl Uris {
    pub(super) fn new(most: usize) -> Self {
        Self { all: HashMap::new(), bytes: 0, most, fit: None, portion: None }
    }

    /// A seat that was not granted it yet wants it.
    pub(super) fn want(&mut self, seat: u64, uri: &str) -> Wished {
        self.fit = None;
        let held = self.all.get_key_value(uri).filter(|(_, subscription)| subscription.held);
        if let Some(uri) = held.map(|(uri, _)| uri.clone()) {
            self.of(&uri).seat(seat);
            return Wished::Held(uri);
        }
        if !self.all.contains_key(uri) {
            if !self.has_room(uri.len()) {
                return Wished::Full;
            }
            self.of(&Arc::from(uri));
        }
        let (told, answer) = oneshot::channel();
        if let Some(subscription) = self.all.get_mut(uri) {
            subscription.waiting.push(Waiter { seat, told });
        }
        Wished::Wait(answer)
    }

    /// A seat does not want it any more. What it still waits for is as good as granted, and taken back.
    pub(super) fn unwant(&mut self, seat: u64, uri: &str) {
        self.fit = None;
        let Some(subscription) = self.all.get_mut(uri) else { return };
        if let Ok(at) = subscription.seats.binary_search(&seat) {
            subscription.seats.remove(at);
        }
        for waiter in subscription.waiting.extract_if(.., |waiter| waiter.seat == seat) {
            let _ = waiter.told.send(Ok(()));
        }
    }

    /// Somebody has stopped waiting.
    pub(super) fn given_up(&mut self) {
        self.fit = None;
    }

    /// Whoever has stopped waiting is forgotten.
    pub(super) fn fit(&mut self) -> Fit {
        if let Some(fit) = self.fit {
            return fit;
        }
        let mut fit = Fit::default();
        for subscription in self.all.values_mut() {
            subscription.waiting.retain(|waiter| !waiter.told.is_closed());
            let waiting = !subscription.waiting.is_empty();
            let wanted = subscription.is_wanted();
            fit.waiting |= waiting;
            fit.wanted |= wanted;
            fit.short |= waiting || wanted && !subscription.asked;
            fit.surplus |= subscription.asked && !wanted;
        }
        if !fit.waiting {
            self.portion = None;
        }
        self.forget_unwanted();
        self.fit = Some(fit);
        fit
    }

    /// What the next listen asks for.
    pub(super) fn wish(&self) -> Wish {
        let mut left = self.portion.unwrap_or(usize::MAX);
        let wanted = self.all.iter().filter(|(_, subscription)| {
            if !subscription.seats.is_empty() {
                return true;
            }
            let taken = !subscription.waiting.is_empty() && left > 0;
            left -= usize::from(taken);
            taken
        });
        let mut uris: Vec<_> = wanted.map(|(uri, _)| uri.clone()).collect();
        uris.sort_unstable();
        Wish { lists: Lists::default(), uris }
    }

    /// A listen has been acknowledged, and stands instead of the one before. Whoever waited is told, and `grant` tells
    /// whether the seat is still there. After a gap: what those must look at again who relied on it.
    pub(super) fn stand(
        &mut self,
        wish: &Wish,
        honoured: &Acknowledged,
        gap: bool,
        mut grant: impl FnMut(u64, &Arc<str>) -> bool,
    ) -> Vec<Change> {
        self.fall();
        self.portion = self.portion.map(|portion| portion.saturating_mul(2));
        let honoured: HashSet<&str> = honoured.uris.iter().map(|uri| &**uri).collect();
        let mut missed = Vec::new();
        for uri in &wish.uris {
            let subscription = self.of(uri);
            subscription.asked = true;
            subscription.held = honoured.contains(&**uri);
            if gap && !subscription.seats.is_empty() {
                missed.push(Change::Updated(Box::from(&**uri)));
            }
            for Waiter { seat, told } in std::mem::take(&mut subscription.waiting) {
                let answer = if subscription.held { Ok(()) } else { Err(NotSubscribed::Refused) };
                if told.send(answer).is_ok() && subscription.held && grant(seat, uri) {
                    subscription.seat(seat);
                }
            }
        }
        self.forget_unwanted();
        missed
    }

    /// No listen stands any more.
    pub(super) fn fall(&mut self) {
        self.fit = None;
        for subscription in self.all.values_mut() {
            subscription.asked = false;
            subscription.held = false;
        }
    }

    /// A listen came to nothing: who waited for it is told.
    pub(super) fn failed(&mut self, wish: &Wish, told: &NotSubscribed) {
        self.fit = None;
        for uri in &wish.uris {
            if let Some(subscription) = self.all.get_mut(uri) {
                subscription.tell(told);
            }
        }
    }

    /// Whoever waits is told.
    pub(super) fn deny(&mut self, told: &NotSubscribed) {
        self.fit = None;
        self.all.values_mut().for_each(|subscription| subscription.tell(told));
    }

    /// The server refuses a listen as a whole. Where several waited for it, it is not known whose it refuses: half of them
    /// are asked for next, and so on. Whether that, or telling the only one, leaves something to be asked for at once.
    pub(super) fn refused(&mut self, wish: &Wish) -> bool {
        let is_new = |known: &Subscription| known.seats.is_empty() && !known.waiting.is_empty();
        let new = wish.uris.iter().filter(|uri| self.all.get(*uri).is_some_and(is_new)).count();
        if new > 1 {
            self.portion = Some(new / 2);
        } else {
            self.failed(wish, &NotSubscribed::Refused);
        }
        new > 0
    }

    /// The seats that an update concerns, each once (B9.4).
    pub(super) fn concerned(&self, uri: &str) -> Vec<u64> {
        let mut numbers: Vec<u64> = Vec::new();
        let mut several = 0;
        let mut add = |subscription: &Subscription| {
            numbers.extend_from_slice(&subscription.seats);
            several += 1;
        };
        // Two prefixes at most for each slash; whichever is less work.
        let slashes = memchr::memchr_iter(b'/', uri.as_bytes()).count();
        if self.all.len() <= slashes * 2 {
            let within = self.all.iter().filter(|(subscribed, _)| is_within(uri, subscribed));
            within.for_each(|(_, subscription)| add(subscription));
        } else {
            covering(uri).filter_map(|subscribed| self.all.get(subscribed)).for_each(add);
        }
        if several > 1 {
            numbers.sort_unstable();
            numbers.dedup();
        }
        numbers
    }

    /// Whether another URI of so many bytes may be wanted. What only still stands does not count.
    fn has_room(&self, bytes: usize) -> bool {
        let fits = |count: usize, all: usize| count < self.most && all + bytes <= MOST_BYTES;
        if fits(self.all.len(), self.bytes) {
            return true;
        }
        let wanted = self.all.iter().filter(|(_, subscription)| subscription.is_wanted());
        let (count, all) = wanted.fold((0, 0), |(count, all), (uri, _)| (count + 1, all + uri.len()));
        fits(count, all)
    }

    /// The entry of this URI, new if there was none.
    fn of(&mut self, uri: &Arc<str>) -> &mut Subscription {
        self.all.entry(uri.clone()).or_insert_with(|| {
            self.bytes += uri.len();
            Subscription::default()
        })
    }

    fn forget_unwanted(&mut self) {
        let bytes = &mut self.bytes;
        self.all.retain(|uri, subscription| {
            let keep = subscription.asked || subscription.is_wanted();
            if !keep {
                *bytes = bytes.saturating_sub(uri.len());
            }
            keep
        });
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.all.len(), self.bytes)
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
