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
    /// Of those that are in doubt so many are asked for at a time, since the server refused to take more together.
    portion: Option<usize>,
    /// The last that was refused was the only one in doubt.
    one_refused: bool,
}

#[derive(Default)]
pub(super) struct Subscription {
    /// The seats that it was granted to, in order.
    seats: SmallVec<[u64; 1]>,
    waiting: Vec<Waiter>,
    /// The listen that stands asked for it.
    asked: bool,
    /// And the server keeps it.
    held: bool,
    /// The server has acknowledged a listen that asked for it, and nothing has been refused since that may be because of it.
    sound: bool,
    lapse: Lapse,
}

/// What became of a subscription after it was granted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Lapse {
    #[default]
    No,
    /// The server keeps it no more, which its followers were told; it is asked for as before.
    NotKept,
    /// The server refuses whatever asks for it: it is left out until somebody wants it anew, or the server is another.
    LeftOut,
}

/// What comes of a listen that is refused as a whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// Something is left to be asked for at once.
    pub(super) again: bool,
    /// What is not listened for any more though it was granted.
    pub(super) lost: Vec<Change>,
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
        Self { all: HashMap::new(), bytes: 0, most, fit: None, portion: None, one_refused: false }
    }

    /// A seat comes with a subscription that it was granted elsewhere, and whether it stands here; `None`: no room.
    pub(super) fn adopt(&mut self, seat: u64, uri: &str) -> Option<(Arc<str>, bool)> {
        self.fit = None;
        let known = self.all.get_key_value(uri).map(|(uri, _)| uri.clone());
        let uri = match known {
            Some(uri) => uri,
            None if self.has_room(uri.len()) => Arc::from(uri),
            None => return None,
        };
        let subscription = self.of(&uri);
        subscription.seat(seat);
        let held = subscription.held;
        Some((uri, held))
    }

    /// The listen that stands asked for it, or it is left out.
    pub(super) fn is_asked(&self, uri: &str) -> bool {
        self.all.get(uri).is_some_and(|known| known.asked || known.lapse == Lapse::LeftOut)
    }

    /// It was granted, and the server keeps it no more.
    pub(super) fn is_lapsed(&self, uri: &str) -> bool {
        self.all.get(uri).is_some_and(|known| known.lapse != Lapse::No)
    }

    /// How many a seat waits for besides this one.
    pub(super) fn waited_for_by(&self, seat: u64, uri: &str) -> usize {
        let waits = |known: &Subscription| {
            known.waiting.iter().any(|waiter| waiter.seat == seat && !waiter.told.is_closed())
        };
        let others = self.all.iter().filter(|(other, _)| ***other != *uri);
        others.filter(|(_, known)| !known.has(seat) && waits(known)).count()
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
            let wanted = subscription.is_to_be_asked_for();
            fit.waiting |= waiting;
            fit.wanted |= wanted;
            fit.short |= waiting || wanted && !subscription.asked;
            fit.surplus |= subscription.asked && !wanted;
        }
        if !fit.short {
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
            if !subscription.is_to_be_asked_for() || subscription.sound {
                return subscription.sound && subscription.is_to_be_asked_for();
            }
            let taken = left > 0;
            left -= usize::from(taken);
            taken
        });
        let mut uris: Vec<_> = wanted.map(|(uri, _)| uri.clone()).collect();
        uris.sort_unstable();
        Wish { lists: Lists::default(), uris }
    }

    /// A listen has been acknowledged, and stands instead of the one before. Whoever waited is told, and `grant` tells
    /// whether the seat is still there. Returns what those must look at again who relied on it, where nobody has listened for
    /// it for a while or the server does so no more, and how many those are.
    pub(super) fn stand(
        &mut self,
        wish: &Wish,
        honoured: &Acknowledged,
        gap: bool,
        mut grant: impl FnMut(u64, &Arc<str>) -> bool,
    ) -> (Vec<Change>, usize) {
        let asked = self.all.iter().filter(|(_, known)| known.asked);
        let asked: HashSet<Arc<str>> = asked.map(|(uri, _)| uri.clone()).collect();
        self.let_go();
        self.one_refused = false;
        self.portion = self.portion.map(|portion| portion.saturating_mul(2));
        let honoured: HashSet<&str> = honoured.uris.iter().map(|uri| &**uri).collect();
        let (mut missed, mut lapsed) = (Vec::new(), 0);
        for uri in &wish.uris {
            let subscription = self.of(uri);
            let held = honoured.contains(&**uri);
            (subscription.asked, subscription.held, subscription.sound) = (true, held, true);
            let lapses = !held && !subscription.seats.is_empty() && subscription.lapse == Lapse::No;
            lapsed += usize::from(lapses);
            if !subscription.seats.is_empty() && (gap || lapses || !asked.contains(uri)) {
                missed.push(Change::Updated(Box::from(&**uri)));
            }
            let is_granted = !subscription.seats.is_empty();
            subscription.lapse = if held || !is_granted { Lapse::No } else { Lapse::NotKept };
            for Waiter { seat, told } in std::mem::take(&mut subscription.waiting) {
                let answer = if subscription.held { Ok(()) } else { Err(NotSubscribed::Refused) };
                if told.send(answer).is_ok() && subscription.held && grant(seat, uri) {
                    subscription.seat(seat);
                }
            }
        }
        self.forget_unwanted();
        (missed, lapsed)
    }

    /// No listen stands any more. The next one may be at another server, or another of its kind.
    pub(super) fn fall(&mut self) {
        self.let_go();
        for subscription in self.all.values_mut() {
            subscription.sound = false;
            if subscription.lapse == Lapse::LeftOut {
                subscription.lapse = Lapse::NotKept;
            }
        }
    }

    fn let_go(&mut self) {
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

    /// The server refuses a listen as a whole. Where several may be the reason, half of them are asked for next, and so on;
    /// where one alone may be, whoever waits for it is told, and it is left out.
    pub(super) fn refused(&mut self, wish: &Wish) -> Refused {
        self.fit = None;
        let mut refused = Refused { again: false, lost: Vec::new() };
        let mut doubted: Vec<_> = wish.uris.iter().filter(|uri| self.is_doubted(uri)).collect();
        // Two in a row, each with others that were taken before: more likely one of those is not taken any more.
        let again = doubted.len() == 1 && doubted.len() < wish.uris.len() && self.portion.is_none();
        if doubted.is_empty() || again && self.one_refused {
            for uri in &wish.uris {
                self.all.entry(uri.clone()).and_modify(|known| known.sound = false);
            }
            doubted = wish.uris.iter().filter(|uri| self.is_doubted(uri)).collect();
        }
        self.one_refused = again && !self.one_refused;
        match doubted[..] {
            [] => {}
            [uri] => {
                let Some(subscription) = self.all.get_mut(uri) else { return refused };
                refused.again = !subscription.waiting.is_empty();
                subscription.tell(&NotSubscribed::Refused);
                if !subscription.seats.is_empty() {
                    if subscription.lapse == Lapse::No {
                        refused.lost.push(Change::Updated(Box::from(&**uri)));
                    }
                    subscription.lapse = Lapse::LeftOut;
                }
            }
            _ => {
                self.portion = Some(doubted.len() / 2);
                refused.again = true;
            }
        }
        refused
    }

    fn is_doubted(&self, uri: &str) -> bool {
        self.all.get(uri).is_some_and(|known| !known.sound)
    }

    /// The seats that an update concerns, each once (B9.4).
    pub(super) fn concerned(&self, uri: &str) -> Vec<u64> {
        let above = self.above(uri);
        let mut numbers: Vec<u64> = Vec::new();
        above.iter().for_each(|(_, subscription)| numbers.extend_from_slice(&subscription.seats));
        if above.len() > 1 {
            numbers.sort_unstable();
            numbers.dedup();
        }
        numbers
    }

    /// What is subscribed to that is this, or that this is within.
    pub(super) fn above(&self, uri: &str) -> Vec<(&Arc<str>, &Subscription)> {
        // Two prefixes at most for each slash; whichever is less work.
        let slashes = memchr::memchr_iter(b'/', uri.as_bytes()).count();
        if self.all.len() <= slashes * 2 {
            self.all.iter().filter(|(subscribed, _)| is_within(uri, subscribed)).collect()
        } else {
            covering(uri).filter_map(|subscribed| self.all.get_key_value(subscribed)).collect()
        }
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

    fn is_to_be_asked_for(&self) -> bool {
        !self.seats.is_empty() && self.lapse != Lapse::LeftOut || !self.waiting.is_empty()
    }

    fn has(&self, number: u64) -> bool {
        self.seats.binary_search(&number).is_ok()
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
