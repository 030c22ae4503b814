//! B5 on a paused clock: whose turn it is, when an upstream is not known yet and when it asks beside its calls' streams.

use super::state::EARLY;
use super::style::Shown;
use super::tests::{Q, enters, floor_of, id, is_let_in, learned_floor, settle};
use super::*;
use std::time::Duration;
use tokio::time::{advance, sleep};

fn waits(floor: &Arc<Floor<Q>>) -> usize {
    floor.lock().waiting()
}

/// One that never reached the server asks nothing.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_not_sent_holds_up_nobody() {
    let floor = learned_floor();
    let start = Instant::now();
    floor.enter().await.unwrap().unsent();
    floor.enter().await.unwrap().answered();
    assert_eq!(start.elapsed(), Duration::ZERO);
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
    let _question = floor.asked(id(1), "all the same", 1).unwrap();
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
    next.await.unwrap().answered();
    assert_eq!(waits(&floor), 0);
    assert!(is_let_in(&floor).await.is_some());
}
