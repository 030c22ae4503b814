//! A call's wait for its turn on the floor.
//!
//! Owns the row of those who wait, first come, first served, and that whoever stops waiting leaves nothing behind. What
//! the turn depends on is `state`'s. Rule: B5, start gently and learn; invariant 5.

use super::seat::Seat;
use super::state::Turn;
use super::style::Shown;
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
            return match floor.style.now() {
                Shown::Beside => Err(Full),
                // Only a precaution is given up: what cannot be told apart then is held.
                Shown::Nothing | Shown::Calm | Shown::Asks => {
                    let (number, woken) = state.sit(now);
                    Ok(Seat::new(floor.clone(), number, woken))
                }
            };
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

/// A call whose client has answered, on its way back among those that run. Dropping it leaves the call where it is.
pub(in super::super) struct Returning<Q> {
    floor: Arc<Floor<Q>>,
    number: u64,
    woken: Arc<Notify>,
    until: Instant,
}

impl<Q> Returning<Q> {
    pub(super) fn new(floor: Arc<Floor<Q>>, number: u64) -> Self {
        let woken = Arc::new(Notify::new());
        floor.lock().returns(number, woken.clone());
        // A call that runs for long is not waited for: what is asked meanwhile may still become clear.
        let until = Instant::now() + floor.bounds.attribute;
        Self { floor, number, woken, until }
    }

    /// Waits for the turn, and takes it. Whoever stops waiting keeps the place.
    pub(in super::super) async fn turn(&mut self) {
        let mut style = self.floor.style.watch();
        loop {
            let Some(due) = self.look() else { return };
            tokio::select! {
                () = self.woken.notified() => {}
                _ = style.changed() => {}
                () = sleep_until(due) => {}
            }
        }
    }

    /// `None` where the turn was taken, else when to look again at the latest.
    fn look(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.floor.lock();
        let due = match state.turn_to_return(self.number, &self.woken, self.floor.style.now(), now) {
            _ if self.until <= now => None,
            Turn::Now => None,
            Turn::At(due) => Some(due.min(self.until)),
            Turn::Later => Some(self.until),
        };
        if due.is_none() {
            state.returns_no_more(&self.woken);
            state.aside(self.number, false);
        }
        due
    }
}

impl<Q> Drop for Returning<Q> {
    fn drop(&mut self) {
        self.floor.lock().returns_no_more(&self.woken);
    }
}

impl<Q> Drop for Waiting<'_, Q> {
    fn drop(&mut self) {
        self.floor.lock().waits_no_more(&self.woken);
    }
}
