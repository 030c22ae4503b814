//! A call's wait for its turn on the floor.
//!
//! Owns the row of those who wait, first come, first served, and that whoever stops waiting leaves nothing behind. What
//! the turn depends on is `state`'s. Rule: B5, start gently and learn; invariant 5.

use super::seat::Seat;
use super::state::Turn;
use super::{Floor, Full};
use std::future::pending;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// A place in the row; dropping it lets the next one look.
struct Waiting<'a, Q> {
    floor: &'a Arc<Floor<Q>>,
    woken: Arc<Notify>,
}

pub(super) async fn enter<Q>(floor: &Arc<Floor<Q>>) -> Result<Seat<Q>, Full> {
    let waiting = {
        let now = Instant::now();
        let mut state = floor.lock();
        if state.waiting() == 0
            && let Turn::Now = state.turn(floor.style.now(), now)
        {
            let (number, woken) = state.sit(now);
            return Ok(Seat::new(floor.clone(), number, woken));
        }
        if state.waiting() >= floor.bounds.waiting {
            return Err(Full);
        }
        let woken = Arc::new(Notify::new());
        state.wait(woken.clone());
        Waiting { floor, woken }
    };
    let mut style = floor.style.watch();
    loop {
        let due = match waiting.look() {
            Ok(seat) => return Ok(seat),
            Err(due) => due,
        };
        let due = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = waiting.woken.notified() => {}
            _ = style.changed() => {}
            () = due => {}
        }
    }
}

impl<Q> Waiting<'_, Q> {
    /// The seat if it is this one's turn, else when it is at the latest, if that is known.
    fn look(&self) -> Result<Seat<Q>, Option<Instant>> {
        let now = Instant::now();
        let mut state = self.floor.lock();
        if !state.is_first(&self.woken) {
            return Err(None);
        }
        match state.turn(self.floor.style.now(), now) {
            Turn::Now => {
                state.waits_no_more(&self.woken);
                let (number, woken) = state.sit(now);
                Ok(Seat::new(self.floor.clone(), number, woken))
            }
            Turn::At(due) => Err(Some(due)),
            Turn::Later => Err(None),
        }
    }
}

impl<Q> Drop for Waiting<'_, Q> {
    fn drop(&mut self) {
        self.floor.lock().waits_no_more(&self.woken);
    }
}
