//! B5 as a play: a server whose calls ask and wait for their answers in any order, and a floor that never gets it wrong.

use super::state::{EARLY, LINGERS};
use super::tests::{BOUND, id, settle};
use super::*;
use std::time::Duration;
use tokio::time::{advance, timeout};

/// B5, never guess: whatever the order of things, a server's question reaches the call that asked it or nobody.
#[tokio::test(start_paused = true)]
async fn no_question_ever_reaches_another_call() {
    let mut reached = 0;
    for seed in 1..=200 {
        reached += Play::new(seed).run().await;
    }
    assert!(reached > 1000, "questions do reach their calls: {reached}");
}

/// A server with calls that ask one question at a time and wait for its answer, in an order that the seed makes.
struct Play {
    random: u64,
    floor: Arc<Floor<u64>>,
    running: Vec<Running>,
    /// Who is being let in.
    next: Option<tokio::task::JoinHandle<Result<Seat<u64>, Full>>>,
    /// When a call was given up last, and may still ask.
    gone: Option<Instant>,
    reached: usize,
    asked: u64,
}

struct Running {
    seat: Seat<u64>,
    /// Its open question, and whether its client knows of it.
    open: Option<(u64, bool)>,
    pending: Option<tokio::task::JoinHandle<Option<Refused<u64>>>>,
}

impl Play {
    fn new(seed: u64) -> Self {
        let style = Arc::new(Style::new("up"));
        let bounds = Bounds { attribute: BOUND, questions: 8, bytes: 1000, waiting: 8 };
        Self {
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            floor: Floor::new(style, bounds),
            running: Vec::new(),
            next: None,
            gone: None,
            reached: 0,
            asked: 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % bound.max(1)
    }

    async fn run(mut self) -> usize {
        for _ in 0..200 {
            self.step().await;
            settle().await;
            self.look().await;
        }
        self.reached
    }

    async fn step(&mut self) {
        let one = self.below(self.running.len());
        match (self.below(7), self.running.get_mut(one)) {
            (0 | 1, _) if self.next.is_none() => {
                let floor = self.floor.clone();
                self.next = Some(tokio::spawn(async move { floor.enter().await }));
            }
            // It asks, once no question of its is open.
            (2 | 3, Some(running)) if running.open.is_none() => {
                self.asked += 1;
                running.open = Some((self.asked, false));
                match self.floor.asked(id(self.asked), self.asked, 1) {
                    Ok(pending) => running.pending = Some(tokio::spawn(pending.refused())),
                    Err(_) => running.open = None,
                }
            }
            // Its client answers.
            (4, Some(running)) if running.open.is_some_and(|(_, known)| known) => {
                running.open = None;
                running.seat.resumed();
            }
            (5, Some(running)) if running.open.is_none() => {
                self.running.remove(one).seat.answered();
            }
            // Nobody waits for it any more, at times with a question of its that is held.
            (5, Some(_)) => {
                self.gone = Some(Instant::now());
                drop(self.running.remove(one));
            }
            (6, _) if self.gone.is_some_and(|gone| gone.elapsed() < LINGERS) => {
                self.asked += 1;
                drop(
                    self.floor.asked(id(self.asked), self.asked, 1).map(|late| tokio::spawn(late.refused())),
                );
            }
            _ => advance(EARLY / 3).await,
        }
    }

    async fn look(&mut self) {
        if self.next.as_ref().is_some_and(tokio::task::JoinHandle::is_finished)
            && let Some(next) = self.next.take()
        {
            let seat = next.await.unwrap().unwrap();
            self.running.push(Running { seat, open: None, pending: None });
        }
        for running in &mut self.running {
            while let Ok(beside) = timeout(Duration::ZERO, running.seat.next()).await {
                let Beside::Question(question) = beside else { panic!("nothing is withdrawn") };
                assert_eq!(Some((question.take(), false)), running.open, "the one that it asked");
                running.open = running.open.map(|(question, _)| (question, true));
                running.seat.set_aside();
                self.reached += 1;
            }
            if running.pending.as_ref().is_some_and(tokio::task::JoinHandle::is_finished)
                && let Some(pending) = running.pending.take()
                && pending.await.unwrap().is_some()
            {
                running.open = None;
            }
        }
    }
}
