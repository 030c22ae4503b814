//! B5 on a paused clock: who enters when, and whose a question is.

use super::state::EARLY;
use super::style::Shown;
use super::*;
use std::time::Duration;
use tokio::time::{advance, sleep, timeout};

type Q = &'static str;

pub(super) const BOUND: Duration = Duration::from_secs(10);

fn floor_of(style: &Arc<Style>) -> Arc<Floor<Q>> {
    Floor::new(style.clone(), Bounds { attribute: BOUND, questions: 4, waiting: 3 })
}

/// Of an upstream that asks on its calls' streams, so that nothing is held up.
fn open_floor() -> Arc<Floor<Q>> {
    let style = Arc::new(Style::new("up"));
    style.asks();
    floor_of(&style)
}

/// Of one that asks beside them.
fn learned_floor() -> Arc<Floor<Q>> {
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

async fn is_let_in(floor: &Arc<Floor<Q>>) -> Option<Seat<Q>> {
    timeout(Duration::ZERO, floor.enter()).await.ok().map(|seat| seat.unwrap())
}

fn enters(floor: &Arc<Floor<Q>>) -> tokio::task::JoinHandle<Seat<Q>> {
    let floor = floor.clone();
    tokio::spawn(async move { floor.enter().await.unwrap() })
}

async fn given(seat: &mut Seat<Q>) -> Option<Q> {
    match timeout(Duration::ZERO, seat.next()).await.ok()? {
        Beside::Question(given) => Some(given.take()),
        Beside::Withdrawn(id) => panic!("{id:?} is withdrawn"),
    }
}

fn waits(floor: &Arc<Floor<Q>>) -> usize {
    floor.lock().waiting()
}

/// B5 wait to attribute, D48: the call that asked cannot finish, so it is the one that is left.
#[tokio::test(start_paused = true)]
async fn a_question_is_that_calls_which_is_left() {
    let floor = open_floor();
    let (a, mut b, c) =
        (floor.enter().await.unwrap(), floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let question = floor.asked(id(7), "b's").unwrap();
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
    let (one, two) = (floor.asked(id(1), "a's").unwrap(), floor.asked(id(2), "b's").unwrap());
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
    let one = floor.asked(id(1), "one").unwrap();
    let two = floor.asked(id(2), "two").unwrap();
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
    let question = floor.asked(id(1), "a's or b's").unwrap();
    drop(a);
    assert_eq!(given(&mut b).await, None);
    let refused = question.refused().await.unwrap();
    assert_eq!(refused.why, Unattributed::Ambiguous);
    drop(b);

    let floor = open_floor();
    let (a, b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    let question = floor.asked(id(1), "a's").unwrap();
    drop(a);
    b.answered();
    let start = Instant::now();
    assert_eq!(question.refused().await.unwrap().why, Unattributed::NoCall, "its call has gone");
    assert_eq!(start.elapsed(), Duration::ZERO, "and nobody waits for nothing");
}

/// B5, D52: attached to the one call, refused without one. What comes outside all calls makes nobody wait later.
#[tokio::test(start_paused = true)]
async fn one_call_has_the_question_and_without_a_call_it_is_refused() {
    let style = Arc::new(Style::new("up"));
    style.asks();
    let floor = floor_of(&style);
    let refused = floor.asked(id(1), "early").map(|_| ()).unwrap_err();
    assert_eq!(refused, Refused { question: "early", why: Unattributed::NoCall });
    assert_eq!(style.now(), Shown::Asks);
    let mut a = floor.enter().await.unwrap();
    let question = floor.asked(id(1), "a's").unwrap();
    assert_eq!(given(&mut a).await, Some("a's"));
    assert_eq!(question.refused().await, None);
    assert_eq!(style.now(), Shown::Beside);
    a.answered();
    assert_eq!(floor.asked(id(2), "late").map(|_| ()).unwrap_err().why, Unattributed::NoCall);
}

/// B5 start gently: 250 ms, or the end of the one before, or a question.
#[tokio::test(start_paused = true)]
async fn the_first_calls_begin_one_after_the_other() {
    let style = Arc::new(Style::new("up"));
    let floor = floor_of(&style);
    let start = Instant::now();
    let a = floor.enter().await.unwrap();
    let b = floor.enter().await.unwrap();
    assert_eq!(start.elapsed(), EARLY, "the one before has run for a while");
    let c = enters(&floor);
    sleep(EARLY / 2).await;
    a.answered();
    settle().await;
    assert!(!c.is_finished(), "it is the one before that counts");
    b.answered();
    let c = c.await.unwrap();
    assert_eq!(start.elapsed(), EARLY + EARLY / 2);
    let (d, e) = (enters(&floor), enters(&floor));
    settle().await;
    c.asked_here();
    let (d, e) = (d.await.unwrap(), e.await.unwrap());
    assert_eq!(start.elapsed(), EARLY + EARLY / 2, "it asks on streams, so nobody waits");
    drop((c, d, e));
    assert_eq!(style.now(), Shown::Asks);
}

/// B5 start gently: what one session has shown holds for all of the upstream.
#[tokio::test(start_paused = true)]
async fn a_question_in_one_session_lets_the_other_go_on() {
    let style = Arc::new(Style::new("up"));
    let (here, there) = (floor_of(&style), floor_of(&style));
    let start = Instant::now();
    let _a = here.enter().await.unwrap();
    let b = enters(&here);
    settle().await;
    there.enter().await.unwrap().asked_here();
    b.await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// B5 start gently: 16 that finished without a question are enough; those that were given up say nothing.
#[tokio::test(start_paused = true)]
async fn sixteen_calls_without_a_question_show_a_calm_server() {
    let style = Arc::new(Style::new("up"));
    let floor = floor_of(&style);
    for _ in 0..20 {
        drop(floor.enter().await.unwrap());
    }
    for _ in 0..15 {
        floor.enter().await.unwrap().answered();
    }
    let a = floor.enter().await.unwrap();
    assert!(is_let_in(&floor).await.is_none(), "15 are not 16");
    a.answered();
    let start = Instant::now();
    let _both = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    assert_eq!(start.elapsed(), Duration::ZERO);
    let _question = floor.asked(id(1), "all the same").unwrap();
    assert_eq!(style.now(), Shown::Beside, "it does ask");
}

/// B5 learn: one at a time, first come first served, bounded.
#[tokio::test(start_paused = true)]
async fn a_learned_session_runs_one_call_at_a_time_in_order() {
    let floor = learned_floor();
    let first = floor.enter().await.unwrap();
    let mut row = Vec::new();
    for n in 1..=3 {
        row.push(enters(&floor));
        settle().await;
        assert_eq!(waits(&floor), n);
    }
    assert_eq!(floor.enter().await.map(drop), Err(Full), "limits.waiting_calls");
    advance(EARLY * 100).await;
    first.answered();
    for one in row.drain(..) {
        settle().await;
        assert!(one.is_finished(), "the next in order");
        one.await.unwrap().answered();
    }
    assert_eq!(waits(&floor), 0);
}

/// B5, and invariant 5: who stops waiting leaves nothing behind and holds up nobody.
#[tokio::test(start_paused = true)]
async fn whoever_stops_waiting_makes_way() {
    let floor = learned_floor();
    let first = floor.enter().await.unwrap();
    let (gone, next) = (enters(&floor), enters(&floor));
    settle().await;
    gone.abort();
    settle().await;
    assert_eq!(waits(&floor), 1);
    drop(first);
    let seat = next.await.unwrap();
    let (gone, next) = (enters(&floor), enters(&floor));
    settle().await;
    // Its turn comes in the same moment in which it goes.
    seat.answered();
    gone.abort();
    next.await.unwrap();
    assert_eq!(waits(&floor), 0);
    assert!(is_let_in(&floor).await.is_some());
}

/// B5, set aside: a parked call gives its turn away, and is no candidate beside a running one.
#[tokio::test(start_paused = true)]
async fn a_parked_call_is_asked_only_where_no_other_runs() {
    let floor = learned_floor();
    let mut a = floor.enter().await.unwrap();
    let _one = floor.asked(id(1), "a's").unwrap();
    assert_eq!(given(&mut a).await, Some("a's"));
    assert!(is_let_in(&floor).await.is_none(), "more may come of it before its client is asked");
    a.set_aside();
    let mut b = floor.enter().await.unwrap();
    let _two = floor.asked(id(2), "b's").unwrap();
    assert_eq!((given(&mut a).await, given(&mut b).await), (None, Some("b's")));
    b.answered();
    let _three = floor.asked(id(3), "a's again").unwrap();
    assert_eq!(given(&mut a).await, Some("a's again"), "the only one in flight");
    let b = floor.enter().await.unwrap();
    b.asked_here();
    b.set_aside();
    let refused = floor.asked(id(4), "either's").map(|_| ()).unwrap_err();
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
    let question = floor.asked(id(1), "a's").unwrap();
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
    let held = floor.asked(id(2), "b's or c's").unwrap();
    // It was waiting for its client when the question came.
    a.resumed();
    b.answered();
    assert_eq!((given(&mut a).await, given(&mut c).await), (None, Some("b's or c's")));
    assert_eq!(held.refused().await, None);
}

/// B5: being set aside rules a call out.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_set_aside_leaves_the_question_to_the_other() {
    let floor = open_floor();
    let (mut a, mut b) = (floor.enter().await.unwrap(), floor.enter().await.unwrap());
    a.asked_here();
    let question = floor.asked(id(1), "b's").unwrap();
    a.set_aside();
    assert_eq!((given(&mut a).await, given(&mut b).await), (None, Some("b's")));
    assert_eq!(question.refused().await, None);
}

/// Invariant 5: what waits is bounded, in all of the session; what is taken waits no more.
#[tokio::test(start_paused = true)]
async fn questions_that_wait_are_bounded() {
    let floor = open_floor();
    let mut a = floor.enter().await.unwrap();
    let mut waiting: Vec<_> = (0..4).map(|n| floor.asked(id(n), "a's").unwrap()).collect();
    let refused = floor.asked(id(9), "one more").map(|_| ()).unwrap_err();
    assert_eq!(refused, Refused { question: "one more", why: Unattributed::Full });
    assert_eq!(given(&mut a).await, Some("a's"));
    assert_eq!(waiting.remove(0).refused().await, None);
    waiting.push(floor.asked(id(9), "one more").unwrap());
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
    let held = floor.asked(id(1), "held").unwrap();
    floor.withdrawn(&id(1));
    assert_eq!(held.refused().await, None);
    a.answered();
    assert_eq!(given(&mut b).await, None);
    let unread = floor.asked(id(2), "unread").unwrap();
    floor.withdrawn(&id(2));
    assert_eq!(unread.refused().await, None);
    assert_eq!(given(&mut b).await, None);
    let read = floor.asked(id(3), "read").unwrap();
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
    let held = floor.asked(id(1), "held").unwrap();
    let waits = tokio::spawn(held.refused());
    settle().await;
    waits.abort();
    settle().await;
    drop((a, b));
    assert!(is_let_in(&floor).await.is_some());
}
