//! What is wanted, who waits and whom a change concerns.

use super::super::uris::MOST_BYTES;
use super::*;
use crate::exchange::{Fault, FaultKind};
use crate::wire::payload::Payload;

struct Session;

impl Follower for Session {
    fn tell(&self, _: &Change, _: &Payload) {}
}

const TOOLS: Lists = Lists { tools: true, prompts: false, resources: false };
const PROMPTS: Lists = Lists { tools: false, prompts: true, resources: false };
const NONE: Lists = Lists { tools: false, prompts: false, resources: false };

struct Room {
    state: State,
    sessions: Vec<Arc<dyn Follower>>,
}

impl Room {
    fn new(most: usize, lists: &[Lists]) -> (Self, Vec<u64>) {
        let mut state = State::new(most);
        let sessions: Vec<Arc<dyn Follower>> =
            lists.iter().map(|_| Arc::new(Session) as Arc<dyn Follower>).collect();
        let seats =
            sessions.iter().zip(lists).map(|(session, lists)| state.enter(*lists, Arc::downgrade(session)));
        let seats = seats.map(Option::unwrap).collect();
        (Self { state, sessions }, seats)
    }

    fn waits(&mut self, seat: u64, uri: &str) -> oneshot::Receiver<Result<(), NotSubscribed>> {
        match self.state.subscribe(seat, uri, usize::MAX) {
            Subscribing::Wait(answer) => answer,
            Subscribing::Granted => panic!("{uri} is granted"),
            Subscribing::TooMany | Subscribing::Full => panic!("no room for {uri}"),
        }
    }

    fn is_granted(&mut self, seat: u64, uri: &str) -> bool {
        matches!(self.state.subscribe(seat, uri, usize::MAX), Subscribing::Granted)
    }

    /// Which of the sessions, by their order.
    fn told(&mut self, change: &Change) -> Vec<usize> {
        let audience = self.state.audience(change);
        let at = |follower: &Arc<dyn Follower>| {
            self.sessions.iter().position(|known| Arc::ptr_eq(known, follower))
        };
        let mut told: Vec<_> = audience.iter().map(|follower| at(follower).unwrap()).collect();
        told.sort_unstable();
        told
    }

    fn asks(&self) -> Vec<String> {
        self.state.wish(Kind::Uris).uris.iter().map(|uri| uri.to_string()).collect()
    }

    /// The listen for URIs is acknowledged with these.
    fn stands(&mut self, honoured: &[&str], gap: bool) -> Vec<Change> {
        let wish = self.state.wish(Kind::Uris);
        self.state.stands(Kind::Uris, &wish, &acknowledged(honoured), gap).all
    }
}

fn acknowledged(uris: &[&str]) -> Acknowledged {
    Acknowledged { uris: uris.iter().map(|uri| Box::from(*uri)).collect(), ..Acknowledged::default() }
}

fn updated(uri: &str) -> Change {
    Change::Updated(uri.into())
}

fn fit(wanted: bool, short: bool, surplus: bool, waiting: bool) -> Fit {
    Fit { wanted, short, surplus, waiting }
}

/// B9.7: one listen for the types that any of the principal's sessions wants; B9.2: each of them is told.
#[test]
fn lists_are_listened_for_as_long_as_anybody_wants_them() {
    let (mut room, seats) = Room::new(8, &[TOOLS, TOOLS, PROMPTS, NONE]);
    let state = &mut room.state;
    assert_eq!(state.fit(Kind::Lists), fit(true, true, false, false));
    let wish = state.wish(Kind::Lists);
    assert_eq!(wish, Wish { lists: Lists { prompts: true, ..TOOLS }, uris: vec![] });
    let honoured = Acknowledged { tools: true, ..Acknowledged::default() };
    assert!(state.stands(Kind::Lists, &wish, &honoured, false).all.is_empty());
    // Types that the server leaves out are asked for no more; it has said so.
    assert_eq!(state.fit(Kind::Lists), fit(true, false, false, false));
    assert_eq!(room.told(&Change::Tools), [0, 1]);
    assert_eq!(room.told(&Change::Prompts), [2]);
    assert_eq!(room.told(&Change::Resources), [0usize; 0]);
    room.state.leave(seats[0]);
    assert_eq!(room.state.fit(Kind::Lists), fit(true, false, false, false));
    room.state.leave(seats[1]);
    assert_eq!(room.state.fit(Kind::Lists), fit(true, false, true, false));
    room.state.leave(seats[2]);
    assert_eq!(room.state.fit(Kind::Lists), fit(false, false, true, false));
    room.state.falls(Kind::Lists);
    assert_eq!(room.state.fit(Kind::Lists), Fit::default());
}

/// D99: after a gap the types held are told as changed, and none that the server does not tell of.
#[test]
fn after_a_gap_what_is_held_may_have_changed() {
    let (mut room, seats) = Room::new(8, &[Lists { tools: true, prompts: true, resources: false }]);
    let wish = room.state.wish(Kind::Lists);
    let honoured = Acknowledged { tools: true, resources: true, ..Acknowledged::default() };
    assert_eq!(room.state.stands(Kind::Lists, &wish, &honoured, true).all, [Change::Tools]);
    let _wait = [room.waits(seats[0], "a"), room.waits(seats[0], "b")];
    assert!(room.stands(&["a", "b"], true).is_empty(), "nobody relied on them before");
    room.state.falls(Kind::Uris);
    // Also one that the server keeps no more: what happened to it meanwhile, nobody knows.
    assert_eq!(room.stands(&["b"], true), [updated("a"), updated("b")]);
    assert_eq!(room.state.fit(Kind::Uris), fit(true, false, false, false));
}

/// A1.8, D100.
#[test]
fn a_subscription_is_granted_by_an_acknowledgement_that_names_it() {
    let (mut room, seats) = Room::new(8, &[NONE, NONE]);
    let mut a = room.waits(seats[0], "a");
    let mut again = room.waits(seats[0], "a");
    let mut b = room.waits(seats[0], "b");
    let mut other = room.waits(seats[1], "a");
    assert_eq!(room.state.fit(Kind::Uris), fit(true, true, false, true));
    assert_eq!(room.asks(), ["a", "b"]);
    room.stands(&["a", "never asked for"], false);
    for granted in [&mut a, &mut again, &mut other] {
        assert_eq!(granted.try_recv().unwrap(), Ok(()));
    }
    assert_eq!(b.try_recv().unwrap(), Err(NotSubscribed::Refused));
    assert_eq!(room.state.uris_of(seats[0]), [Box::from("a")]);
    assert_eq!(room.told(&updated("a")), [0, 1]);
    assert_eq!(room.told(&updated("b")), [0usize; 0]);
    // What is refused is asked for again when somebody wants it again.
    assert_eq!(room.state.fit(Kind::Uris), fit(true, false, true, false));
    let _b = room.waits(seats[1], "b");
    assert_eq!(room.state.fit(Kind::Uris), fit(true, true, false, true));
}

/// B9.2: what stands for one session stands for all of the principal, and ends with the last.
#[test]
fn what_is_held_is_granted_at_once_and_kept_until_nobody_wants_it() {
    let (mut room, seats) = Room::new(8, &[NONE, NONE]);
    let _wait = room.waits(seats[0], "a");
    room.stands(&["a"], false);
    assert!(room.is_granted(seats[1], "a"));
    assert!(room.is_granted(seats[1], "a"), "twice is once");
    room.state.unsubscribe(seats[0], "a");
    assert_eq!(room.state.fit(Kind::Uris), fit(true, false, false, false));
    assert_eq!(room.told(&updated("a")), [1]);
    room.state.unsubscribe(seats[1], "a");
    room.state.unsubscribe(seats[1], "never subscribed");
    assert_eq!(room.state.fit(Kind::Uris), fit(false, false, true, false));
    assert_eq!(room.told(&updated("a")), [0usize; 0]);
    // It still stands: whoever comes back in time needs no other listen.
    assert!(room.is_granted(seats[0], "a"));
    assert_eq!(room.state.fit(Kind::Uris), fit(true, false, false, false));
    room.state.leave(seats[0]);
    room.state.falls(Kind::Uris);
    assert!(!room.state.fit(Kind::Uris).wanted);
    assert_eq!(room.state.uris.size(), (0, 0));
}

/// While a listen is broken, who relies on it goes on relying on it, and who is new waits.
#[test]
fn a_broken_listen_takes_nothing_away() {
    let (mut room, seats) = Room::new(8, &[NONE, NONE]);
    let _wait = room.waits(seats[0], "a");
    room.stands(&["a"], false);
    room.state.falls(Kind::Uris);
    assert!(room.is_granted(seats[0], "a"));
    let mut new = room.waits(seats[1], "a");
    assert_eq!(room.state.fit(Kind::Uris), fit(true, true, false, true));
    let fault = NotSubscribed::Fault(Fault::new(FaultKind::Timeout, "late"));
    let wish = room.state.wish(Kind::Uris);
    room.state.failed(&wish, &fault);
    assert_eq!(new.try_recv().unwrap(), Err(fault));
    assert_eq!(room.state.fit(Kind::Uris), fit(true, true, false, false));
    assert_eq!(room.told(&updated("a")), [0]);
}

#[test]
fn whoever_stops_waiting_is_forgotten() {
    let (mut room, seats) = Room::new(8, &[NONE, NONE]);
    let wait = room.waits(seats[0], "a");
    drop(wait);
    room.state.given_up();
    assert_eq!(room.state.fit(Kind::Uris), Fit::default());
    assert_eq!(room.state.uris.size(), (0, 0));
    // Unsubscribed before it was granted: it stays so.
    let mut wait = room.waits(seats[0], "a");
    let mut other = room.waits(seats[1], "a");
    room.state.unsubscribe(seats[0], "a");
    assert_eq!(wait.try_recv().unwrap(), Ok(()));
    room.stands(&["a"], false);
    assert_eq!(other.try_recv().unwrap(), Ok(()));
    assert_eq!(room.told(&updated("a")), [1]);
    // Gone while the listen was on its way: more stands than is wanted.
    let wait = room.waits(seats[0], "b");
    let wish = room.state.wish(Kind::Uris);
    drop(wait);
    room.state.given_up();
    room.state.fit(Kind::Uris);
    room.state.stands(Kind::Uris, &wish, &acknowledged(&["a", "b"]), false);
    assert_eq!(room.state.fit(Kind::Uris), fit(true, false, true, false));
    assert!(room.state.uris_of(seats[0]).is_empty());
}

/// B9.4, D98.
#[test]
fn an_update_concerns_whoever_subscribed_to_it_or_above_it_once() {
    let (mut room, seats) = Room::new(64, &[NONE, NONE, NONE, NONE]);
    let mut waits = Vec::new();
    let mut wants = |room: &mut Room, seat: usize, uri: &str| waits.push(room.waits(seats[seat], uri));
    wants(&mut room, 0, "file:///d");
    wants(&mut room, 0, "file:///d/a");
    wants(&mut room, 1, "file:///d/");
    wants(&mut room, 2, "file:///dx");
    let few: Vec<String> = room.asks();
    room.stands(&few.iter().map(String::as_str).collect::<Vec<_>>(), false);
    for many in [false, true] {
        if many {
            let more: Vec<_> = (0..40).map(|n| room.waits(seats[3], &format!("x:{n}"))).collect();
            let all = room.asks();
            room.stands(&all.iter().map(String::as_str).collect::<Vec<_>>(), false);
            drop(more);
        }
        assert_eq!(room.told(&updated("file:///d/a")), [0, 1], "{many}");
        assert_eq!(room.told(&updated("file:///d")), [0], "{many}");
        assert_eq!(room.told(&updated("file:///dx/1")), [2], "{many}");
        assert_eq!(room.told(&updated("file:///dxx")), [0usize; 0], "{many}");
    }
}

/// A server that refuses a listen as a whole does not say because of which URI: the others must not pay for it.
#[test]
fn what_is_refused_together_is_asked_for_singly() {
    let (mut room, seats) = Room::new(8, &[NONE]);
    let _held = room.waits(seats[0], "held");
    room.stands(&["held"], false);
    let mut waits: Vec<_> = ["a", "bad", "c"].iter().map(|uri| (*uri, room.waits(seats[0], uri))).collect();
    assert_eq!(room.asks(), ["a", "bad", "c", "held"]);
    let wish = room.state.wish(Kind::Uris);
    assert!(room.state.refused(&wish).again);
    assert!(waits.iter_mut().all(|(_, wait)| wait.try_recv().is_err()), "all wait");
    let mut asked = 0;
    while room.state.fit(Kind::Uris).waiting {
        asked += 1;
        let uris = room.asks();
        let wish = room.state.wish(Kind::Uris);
        if uris.iter().any(|uri| uri == "bad") {
            assert!(room.state.refused(&wish).again);
        } else {
            room.state.stands(
                Kind::Uris,
                &wish,
                &acknowledged(&uris.iter().map(String::as_str).collect::<Vec<_>>()),
                false,
            );
        }
    }
    assert!(asked <= 4, "{asked}");
    for (uri, mut wait) in waits {
        assert_eq!(wait.try_recv().unwrap().is_ok(), uri != "bad", "{uri}");
    }
    let mut held = room.state.uris_of(seats[0]);
    held.sort_unstable();
    assert_eq!(held, ["a", "c", "held"].map(Box::from));
    assert_eq!(room.asks(), ["a", "c", "held"]);
}

/// The same with many: by halves, so that it does not take as many listens as there are URIs.
#[test]
fn one_of_many_is_found_in_few_steps() {
    let (mut room, seats) = Room::new(1000, &[NONE]);
    let mut waits: Vec<_> = (0..500).map(|n| (n, room.waits(seats[0], &format!("x:{n}")))).collect();
    let mut asked = 0;
    while room.state.fit(Kind::Uris).waiting {
        asked += 1;
        let wish = room.state.wish(Kind::Uris);
        if wish.uris.iter().any(|uri| &**uri == "x:77") {
            assert!(room.state.refused(&wish).again);
        } else {
            let all = Acknowledged {
                uris: wish.uris.iter().map(|uri| Box::from(&**uri)).collect(),
                ..Acknowledged::default()
            };
            room.state.stands(Kind::Uris, &wish, &all, false);
        }
    }
    assert!(asked < 60, "{asked}");
    assert!(waits.iter_mut().all(|(n, wait)| wait.try_recv().unwrap().is_ok() == (*n != 77)));
    assert_eq!(room.state.uris_of(seats[0]).len(), 499);
}

/// Invariant 5.
#[test]
fn uris_are_bounded_in_number_and_bytes() {
    let (mut room, seats) = Room::new(2, &[NONE, NONE]);
    let _one = room.waits(seats[0], "a");
    let _two = room.waits(seats[0], "b");
    assert!(matches!(room.state.subscribe(seats[1], "c", usize::MAX), Subscribing::Full));
    let _shared = room.waits(seats[1], "a");
    // What only still stands takes no room.
    room.stands(&["a", "b"], false);
    room.state.unsubscribe(seats[0], "b");
    let _third = room.waits(seats[1], "c");
    assert!(matches!(room.state.subscribe(seats[1], "d", usize::MAX), Subscribing::Full));
    let (mut room, seats) = Room::new(1000, &[NONE]);
    let long = "x".repeat(MOST_BYTES / 2);
    let one = [room.waits(seats[0], &long), room.waits(seats[0], &long[1..])];
    assert!(matches!(room.state.subscribe(seats[0], "yz", usize::MAX), Subscribing::Full));
    drop(one);
    room.state.given_up();
    room.state.fit(Kind::Uris);
    let _room = room.waits(seats[0], "yz");
}

/// A follower that is gone without a word is found out when it should be told.
#[test]
fn those_who_are_gone_are_forgotten() {
    let (mut room, seats) = Room::new(8, &[TOOLS, TOOLS]);
    let _wait = room.waits(seats[0], "a");
    room.stands(&["a"], false);
    drop(room.sessions.remove(0));
    assert_eq!(room.told(&Change::Tools), [0]);
    assert_eq!(room.state.len(), 1);
    assert!(!room.state.fit(Kind::Uris).wanted);
    assert!(!room.state.close_if_empty());
    room.state.leave(seats[1]);
    assert!(room.state.close_if_empty());
    let late: Arc<dyn Follower> = Arc::new(Session);
    assert_eq!(room.state.enter(TOOLS, Arc::downgrade(&late)), None);
}

/// Thousands of sessions share a hub.
#[test]
fn a_seat_is_small() {
    assert!(size_of::<Seat>() + size_of::<u64>() <= 72, "{}", size_of::<Seat>());
}

/// B9.7: a follower that comes from another hub is told of what it held there as soon as it is listened for here, and of
/// that only once; what stands already is told at once. It needs the other hub until then.
#[test]
fn whoever_comes_from_another_hub_may_have_missed_something() {
    let (mut room, seats) = Room::new(8, &[TOOLS, Lists { prompts: true, ..TOOLS }]);
    let wish = room.state.wish(Kind::Lists);
    let mut adopted = room.state.adopt(seats[1], &[Box::from("a"), Box::from("b")]);
    assert!(adopted.missed.is_empty() && adopted.lost == 0);
    let honoured = Acknowledged { tools: true, prompts: true, ..Acknowledged::default() };
    let missed = room.state.stands(Kind::Lists, &wish, &honoured, false);
    assert!(missed.all.is_empty(), "those who were here know everything");
    let told: Vec<_> = missed.moved.iter().map(|(_, change)| change.clone()).collect();
    assert_eq!(told, [Change::Tools, Change::Prompts]);
    assert!(missed.moved.iter().all(|(follower, _)| Arc::ptr_eq(follower, &room.sessions[1])));
    assert!(adopted.stands.try_recv().is_err(), "resources are not listened for yet");
    assert!(room.state.stands(Kind::Lists, &wish, &honoured, false).moved.is_empty(), "once");
    // Given up meanwhile.
    room.state.unsubscribe(seats[1], "b");
    assert_eq!(room.asks(), ["a"]);
    assert_eq!(room.stands(&["a"], false), [updated("a")]);
    assert_eq!(adopted.stands.try_recv(), Ok(()));
    assert!(room.is_granted(seats[1], "a"));
    // Where all of it stands.
    let mut late = room.state.adopt(seats[0], &[Box::from("a")]);
    assert_eq!(late.missed, [Change::Tools, updated("a")]);
    assert_eq!(late.stands.try_recv(), Ok(()));
    assert_eq!(room.told(&updated("a")), [0, 1]);
}

/// B9.7: what the server keeps no more, though it was granted, is told once, so that its followers look; whoever subscribes
/// to it anew has the server's answer.
#[test]
fn what_the_server_lets_go_of_is_told() {
    let (mut room, seats) = Room::new(8, &[NONE]);
    let _wait = [room.waits(seats[0], "a"), room.waits(seats[0], "b")];
    room.stands(&["a", "b"], false);
    let _other = room.waits(seats[0], "c");
    let wish = room.state.wish(Kind::Uris);
    let missed = room.state.stands(Kind::Uris, &wish, &acknowledged(&["b", "c"]), false);
    assert_eq!((missed.all, missed.lapsed), (vec![updated("a")], 1));
    assert!(room.stands(&["b", "c"], false).is_empty(), "once");
    let mut again = room.waits(seats[0], "a");
    room.stands(&["b", "c"], false);
    assert_eq!(again.try_recv().unwrap(), Err(NotSubscribed::Refused));
    room.stands(&["a", "b", "c"], false);
    assert!(room.is_granted(seats[0], "a"));
    assert_eq!(room.stands(&["b", "c"], false), [updated("a")]);
}

/// One granted URI that the server takes no more does not cost the others their subscriptions, nor is a new one refused for it.
#[test]
fn a_granted_uri_that_is_refused_is_left_out() {
    let names: Vec<String> = (0..100).map(|n| format!("x:{n}")).collect();
    let (mut room, seats) = Room::new(1000, &[NONE]);
    let waits: Vec<_> = names.iter().map(|uri| room.waits(seats[0], uri)).collect();
    room.stands(&names.iter().map(String::as_str).collect::<Vec<_>>(), false);
    drop(waits);
    for bad in ["x:77", "x:5"] {
        // The listen has ended; with a new one among them they are asked for anew.
        room.state.falls(Kind::Uris);
        let new = format!("new for {bad}");
        let mut wait = room.waits(seats[0], &new);
        let (mut lost, mut asked) = (Vec::new(), 0);
        while room.state.fit(Kind::Uris).short {
            let wish = room.state.wish(Kind::Uris);
            asked += 1;
            assert!(asked < 60);
            if wish.uris.iter().any(|uri| **uri == *bad || **uri == *"x:77") {
                lost.extend(room.state.refused(&wish).lost);
            } else {
                let uris: Vec<String> = wish.uris.iter().map(|uri| uri.to_string()).collect();
                room.stands(&uris.iter().map(String::as_str).collect::<Vec<_>>(), true);
            }
        }
        assert_eq!(lost, [updated(bad)], "each once");
        assert_eq!(wait.try_recv().unwrap(), Ok(()));
    }
    assert_eq!(room.asks().len(), 100);
    assert_eq!(room.told(&updated("x:76")), [0]);
}

/// The same while the listen that asked for it still stands: not for long is a new one refused for an old one.
#[test]
fn an_old_uri_is_found_out_while_it_stands() {
    let (mut room, seats) = Room::new(8, &[NONE]);
    let _wait = [room.waits(seats[0], "a"), room.waits(seats[0], "gone")];
    room.stands(&["a", "gone"], false);
    let mut answers = Vec::new();
    let mut lost = Vec::new();
    for new in ["b", "c", "d"] {
        let mut wait = room.waits(seats[0], new);
        while room.state.fit(Kind::Uris).short {
            let uris = room.asks();
            let wish = room.state.wish(Kind::Uris);
            if uris.iter().any(|uri| uri == "gone") {
                lost.extend(room.state.refused(&wish).lost);
            } else {
                room.stands(&uris.iter().map(String::as_str).collect::<Vec<_>>(), false);
            }
        }
        answers.push(wait.try_recv().unwrap().is_ok());
    }
    assert_eq!(answers, [false, true, true]);
    assert_eq!(lost, [updated("gone")]);
    assert_eq!(room.asks(), ["a", "c", "d"]);
}

/// Invariant 5: what is waited for counts as well.
#[test]
fn inv5_a_follower_has_so_many_with_those_it_waits_for() {
    let (mut room, seats) = Room::new(8, &[NONE, NONE]);
    let _one = room.waits(seats[0], "a");
    room.stands(&["a"], false);
    let _two = room.waits(seats[0], "b");
    assert!(matches!(room.state.subscribe(seats[0], "c", 2), Subscribing::TooMany));
    assert!(matches!(room.state.subscribe(seats[0], "b", 2), Subscribing::Wait(_)), "the same once more");
    assert!(matches!(room.state.subscribe(seats[0], "a", 2), Subscribing::Granted));
    assert!(matches!(room.state.subscribe(seats[1], "c", 2), Subscribing::Wait(_)), "each for itself");
}
