//! B5 on a paused clock: whose a question is.

use super::state::LINGERS;
use super::style::Shown;
use super::*;
use std::time::Duration;
use tokio::time::{advance, timeout};

pub(super) type Q = &'static str;

pub(super) const BOUND: Duration = Duration::from_secs(10);

pub(super) fn floor_of(style: &Arc<Style>) -> Arc<Floor<Q>> {
    Floor::new(style.clone(), Bounds { attribute: BOUND, questions: 4, bytes: 100, waiting: 3 })
}

/// Of an upstream that asks on its calls' streams, so that nothing is held up.
pub(super) fn open_floor() -> Arc<Floor<Q>> {
    let style = Arc::new(Style::new("up"));
    style.asks();
    floor_of(&style)
}

/// Of one that asks beside them.
pub(super) fn learned_floor() -> Arc<Floor<Q>> {
    let style = Arc::new(Style::new("up"));
    style.asks_beside();
    floor_of(&style)
}

pub(super) fn id(number: u64) -> Id {
    Id::number(number)
}

/// Those who wait have had their turn to look, and no time passes.
pub(super) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

pub(super) async fn is_let_in(floor: &Arc<Floor<Q>>) -> Option<Seat<Q>> {
    timeout(Duration::ZERO, floor.enter()).await.ok().map(|seat| seat.unwrap())
}

pub(super) fn enters(floor: &Arc<Floor<Q>>) -> tokio::task::JoinHandle<Seat<Q>> {
    let floor = floor.clone();
    tokio::spawn(async move { floor.enter().await.unwrap() })
}

async fn given(seat: &mut Seat<Q>) -> Option<Q> {
    match timeout(Duration::ZERO, seat.next()).await.ok()? {
        Beside::Question(given) => Some(given.take()),
        Beside::Withdrawn(id) => panic!("{id:?} is withdrawn"),
    }
}

/// B5 wait to attribute, D48: the call that asked cannot finish, so it is the one that is left.
#[tokio::test(start_paused = true)]
async fn a_question_is_that_calls_which_is_left() {
    let floor = open_floor();
    let (a, mut b, c) =
        (floor.enter().await.unwrap(), floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let question = floor.asked(id(7), "b's", 1).unwrap();
    let next = enters(&floor);
    advance(BOUND / 2).await;
    assert_eq!(given(&mut b).await, None);
    a.answered();
    assert_eq!(given(&mut b).await, None, "two are left");
    assert!(!next.is_finished(), "nobody is let in while a question is held");
    c.answered();
    assert_eq!(given(&mut b).await, Some("b's"));
    assert_eq!(question.refused().await, None);
    settle().await;
    assert!(!next.is_finished(), "D48: from then on one at a time");
    b.answered();
    next.await.unwrap();
}

/// B5: bounded, D49: refused and nobody is asked.
#[tokio::test(start_paused = true)]
async fn what_is_ambiguous_after_the_bound_is_refused() {
    let floor = open_floor();
    let (mut a, mut b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let start = Instant::now();
    let (one, two) = (floor.asked(id(1), "a's", 1).unwrap(), floor.asked(id(2), "b's", 1).unwrap());
    let (one, two) = tokio::join!(one.refused(), two.refused());
    assert_eq!(start.elapsed(), BOUND);
    assert_eq!(one, Some(Refused { question: "a's", why: Unattributed::Ambiguous }));
    assert_eq!(two, Some(Refused { question: "b's", why: Unattributed::Ambiguous }));
    assert_eq!((given(&mut a).await, given(&mut b).await), (None, None));
    a.answered();
    assert_eq!(given(&mut b).await, None, "it has been refused");
}

/// B5: held questions stop admission until all of them are settled.
#[tokio::test(start_paused = true)]
async fn all_that_is_held_goes_to_the_last_call() {
    let floor = open_floor();
    let (a, mut b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let one = floor.asked(id(1), "one", 1).unwrap();
    let two = floor.asked(id(2), "two", 1).unwrap();
    a.answered();
    assert_eq!((given(&mut b).await, given(&mut b).await), (Some("one"), Some("two")));
    assert_eq!((one.refused().await, two.refused().await), (None, None));
    assert!(is_let_in(&floor).await.is_none());
    b.set_aside();
    assert!(is_let_in(&floor).await.is_some());
}

/// B5, never guess: a call that was given up may have asked, and the server may still work on it.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_given_up_leaves_the_question_ambiguous() {
    let floor = open_floor();
    let (a, mut b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let question = floor.asked(id(1), "a's or b's", 1).unwrap();
    drop(a);
    assert_eq!(given(&mut b).await, None);
    let refused = question.refused().await.unwrap();
    assert_eq!(refused.why, Unattributed::Ambiguous);
    drop(b);

    let floor = open_floor();
    let (a, b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let question = floor.asked(id(1), "a's", 1).unwrap();
    drop(a);
    b.answered();
    let start = Instant::now();
    assert_eq!(question.refused().await.unwrap().why, Unattributed::NoCall, "its call has gone");
    assert_eq!(start.elapsed(), Duration::ZERO, "and nobody waits for nothing");
}

/// B5, never guess: what a call asks that has just been given up is nobody's, and the next one waits until that is over.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_given_up_may_ask_for_a_moment_longer() {
    let floor = learned_floor();
    let start = Instant::now();
    drop(floor.enter().await.unwrap());
    let next = enters(&floor);
    settle().await;
    assert_eq!(floor.asked(id(1), "late", 1).map(|_| ()).unwrap_err().why, Unattributed::NoCall);
    let mut next = next.await.unwrap();
    assert_eq!(start.elapsed(), LINGERS);
    let _own = floor.asked(id(2), "own", 1).unwrap();
    assert_eq!(given(&mut next).await, Some("own"));

    let floor = open_floor();
    let (gone, mut other) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    drop(gone);
    let question = floor.asked(id(1), "whose", 1).unwrap();
    advance(LINGERS).await;
    assert_eq!(given(&mut other).await, None);
    other.answered();
    assert_eq!(question.refused().await.unwrap().why, Unattributed::NoCall);

    // Beside calls that wait for their clients, too.
    let floor = learned_floor();
    let (parked, gone) = (floor.enter().await.unwrap(), floor.clone());
    parked.set_aside();
    drop(gone.enter().await.unwrap());
    assert_eq!(floor.asked(id(1), "late", 1).map(|_| ()).unwrap_err().why, Unattributed::Ambiguous);
}

/// B5, D52: attached to the one call, refused without one. What comes outside all calls makes nobody wait later.
#[tokio::test(start_paused = true)]
async fn one_call_has_the_question_and_without_a_call_it_is_refused() {
    let style = Arc::new(Style::new("up"));
    style.asks();
    let floor = floor_of(&style);
    let refused = floor.asked(id(1), "early", 1).map(|_| ()).unwrap_err();
    assert_eq!(refused, Refused { question: "early", why: Unattributed::NoCall });
    assert_eq!(style.now(), Shown::Asks);
    let mut a = floor.enter().await.unwrap();
    let question = floor.asked(id(1), "a's", 1).unwrap();
    assert_eq!(given(&mut a).await, Some("a's"));
    assert_eq!(question.refused().await, None);
    assert_eq!(style.now(), Shown::Beside);
    a.answered();
    assert_eq!(floor.asked(id(2), "late", 1).map(|_| ()).unwrap_err().why, Unattributed::NoCall);
}

/// B5, set aside: a parked call gives its turn away, and is no candidate beside a running one.
#[tokio::test(start_paused = true)]
async fn a_parked_call_is_asked_only_where_no_other_runs() {
    let floor = learned_floor();
    let mut a = floor.enter().await.unwrap();
    let _one = floor.asked(id(1), "a's", 1).unwrap();
    assert_eq!(given(&mut a).await, Some("a's"));
    assert!(is_let_in(&floor).await.is_none(), "more may come of it before its client is asked");
    a.set_aside();
    let mut b = floor.enter().await.unwrap();
    let _two = floor.asked(id(2), "b's", 1).unwrap();
    assert_eq!((given(&mut a).await, given(&mut b).await), (None, Some("b's")));
    b.answered();
    let _three = floor.asked(id(3), "a's again", 1).unwrap();
    assert_eq!(given(&mut a).await, Some("a's again"), "the only one in flight");
    let b = floor.enter().await.unwrap();
    b.asked_here();
    b.set_aside();
    let refused = floor.asked(id(4), "either's", 1).map(|_| ()).unwrap_err();
    assert_eq!(refused.why, Unattributed::Ambiguous, "only parked ones, and more than one");
}

/// B5: once resumed, a call is a candidate again, for what comes from then on.
#[tokio::test(start_paused = true)]
async fn a_resumed_call_is_a_candidate_again() {
    let floor = learned_floor();
    let mut a = floor.enter().await.unwrap();
    a.set_aside();
    let mut b = floor.enter().await.unwrap();
    a.resumed();
    let question = floor.asked(id(1), "a's", 1).unwrap();
    assert_eq!((given(&mut a).await, given(&mut b).await), (None, None), "two run");
    b.answered();
    assert_eq!(given(&mut a).await, Some("a's"));
    assert_eq!(question.refused().await, None);
    a.set_aside();
    let b = floor.enter().await.unwrap();
    let mut c = {
        b.set_aside();
        floor.enter().await.unwrap()
    };
    b.resumed();
    let held = floor.asked(id(2), "b's or c's", 1).unwrap();
    // It was waiting for its client when the question came.
    a.resumed();
    b.answered();
    assert_eq!((given(&mut a).await, given(&mut c).await), (None, Some("b's or c's")));
    assert_eq!(held.refused().await, None);
}

/// B5, never guess: what came before a call had to wait for its client may be its as well.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_set_aside_may_have_asked_what_is_held() {
    let floor = open_floor();
    let (mut a, mut b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    a.asked_here();
    let question = floor.asked(id(1), "a's or b's", 1).unwrap();
    a.set_aside();
    assert_eq!((given(&mut a).await, given(&mut b).await), (None, None));
    b.answered();
    assert_eq!(given(&mut a).await, Some("a's or b's"));
    assert_eq!(question.refused().await, None);
}

/// Invariant 5: what waits is bounded, in all of the session; what is taken waits no more.
#[tokio::test(start_paused = true)]
async fn questions_that_wait_are_bounded() {
    let floor = open_floor();
    let mut a = floor.enter().await.unwrap();
    let mut waiting: Vec<_> = (0..4).map(|n| floor.asked(id(n), "a's", 1).unwrap()).collect();
    let refused = floor.asked(id(9), "one more", 1).map(|_| ()).unwrap_err();
    assert_eq!(refused, Refused { question: "one more", why: Unattributed::Full });
    assert_eq!(given(&mut a).await, Some("a's"));
    assert_eq!(waiting.remove(0).refused().await, None);
    let refused = floor.asked(id(9), "large", 98).map(|_| ()).unwrap_err();
    assert_eq!(refused.why, Unattributed::Large, "98 bytes beside three of 1, and 100 is the bound");
    waiting.push(floor.asked(id(9), "one more", 1).unwrap());
    a.answered();
    for pending in waiting {
        let refused = pending.refused().await.unwrap();
        assert_eq!(refused.why, Unattributed::NoCall, "its call was over before it took the question");
    }
}

/// B1.9: a question that the server takes back is nobody's, wherever it is.
#[tokio::test(start_paused = true)]
async fn a_withdrawn_question_reaches_nobody_and_is_not_refused() {
    let floor = open_floor();
    let (a, mut b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let held = floor.asked(id(1), "held", 1).unwrap();
    floor.withdrawn(&id(1));
    assert_eq!(held.refused().await, None);
    a.answered();
    assert_eq!(given(&mut b).await, None);
    let unread = floor.asked(id(2), "unread", 1).unwrap();
    floor.withdrawn(&id(2));
    assert_eq!(unread.refused().await, None);
    assert_eq!(given(&mut b).await, None);
    let read = floor.asked(id(3), "read", 1).unwrap();
    assert_eq!(given(&mut b).await, Some("read"));
    assert_eq!(read.refused().await, None);
    floor.withdrawn(&id(3));
    match timeout(Duration::ZERO, b.next()).await {
        Ok(Beside::Withdrawn(withdrawn)) => assert_eq!(withdrawn, id(3)),
        other => panic!("{other:?}"),
    }
    for _ in 0..100 {
        floor.withdrawn(&id(3));
    }
    let mut told = 0;
    while let Ok(Beside::Withdrawn(_)) = timeout(Duration::ZERO, b.next()).await {
        told += 1;
    }
    assert_eq!(told, 8, "what waits for a call is bounded");
}

/// A held question whose keeper has gone holds up nobody.
#[tokio::test(start_paused = true)]
async fn whoever_stops_waiting_for_a_refusal_lets_the_calls_go_on() {
    let floor = open_floor();
    let (a, b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let held = floor.asked(id(1), "held", 1).unwrap();
    let waits = tokio::spawn(held.refused());
    settle().await;
    waits.abort();
    settle().await;
    drop((a, b));
    advance(LINGERS).await;
    assert!(is_let_in(&floor).await.is_some());
}
