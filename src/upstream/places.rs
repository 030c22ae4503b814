//! How many sessions an upstream may have open at once.
//!
//! Owns the places and the waiting for one that is about to be free. A session keeps its place until the server has been
//! told that it is over, so the bound holds at the server as well, not only in our books (invariant 5).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

#[derive(Debug, Clone)]
pub(in crate::upstream) struct Places {
    free: Arc<Semaphore>,
    /// Sessions whose end is being told to the server.
    ending: Arc<AtomicUsize>,
    freed: Arc<Notify>,
    max: usize,
}

/// A session's place; dropping it frees it.
#[derive(Debug)]
pub(in crate::upstream) struct Place(#[allow(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

/// A session's place while its end is being told.
pub(in crate::upstream) struct Ending {
    place: Option<Place>,
    ending: Arc<AtomicUsize>,
    freed: Arc<Notify>,
}

impl Places {
    pub(in crate::upstream) fn new(max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(max)), ending: Arc::default(), freed: Arc::default(), max }
    }

    pub(in crate::upstream) fn taken(&self) -> usize {
        self.max - self.free.available_permits()
    }

    pub(in crate::upstream) fn take(&self) -> Option<Place> {
        self.free.clone().try_acquire_owned().ok().map(Place)
    }

    /// Waits for a place that is being freed. `None` when none is any more, or not within `limit`: of many who wait, those
    /// who come away empty are told so at once.
    pub(in crate::upstream) async fn take_freed(&self, limit: Duration) -> Option<Place> {
        let until = Instant::now() + limit;
        loop {
            // Registered before the look, so that what is freed in between is not missed.
            let mut freed = pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(place) = self.take() {
                return Some(place);
            }
            if self.ending.load(Ordering::Acquire) == 0 {
                // The last one may have become free since.
                return self.take();
            }
            timeout_at(until, freed).await.ok()?;
        }
    }

    /// How many are being freed.
    pub(in crate::upstream) fn being_freed(&self) -> usize {
        self.ending.load(Ordering::Acquire)
    }

    /// From now on the place counts as one that is being freed.
    pub(in crate::upstream) fn ending(&self, place: Place) -> Ending {
        self.ending.fetch_add(1, Ordering::AcqRel);
        Ending { place: Some(place), ending: self.ending.clone(), freed: self.freed.clone() }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // In this order: whoever sees nothing ending any more finds the place free.
        self.place = None;
        self.ending.fetch_sub(1, Ordering::AcqRel);
        self.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_freed_place_serves_one_of_those_who_wait_and_the_others_go() {
        let places = Places::new(1);
        let place = places.take().unwrap();
        assert!(places.take_freed(Duration::from_secs(30)).await.is_none(), "none is being freed");
        let ending = places.ending(place);
        let wait = || {
            let places = places.clone();
            tokio::spawn(async move { places.take_freed(Duration::from_secs(30)).await })
        };
        let waiting = [wait(), wait(), wait()];
        tokio::time::sleep(Duration::from_secs(1)).await;
        let start = Instant::now();
        drop(ending);
        let mut got = Vec::new();
        for one in waiting {
            got.push(one.await.unwrap());
        }
        assert_eq!(got.iter().flatten().count(), 1);
        assert_eq!(start.elapsed(), Duration::ZERO, "nobody waits for nothing");
        assert_eq!(places.taken(), 1);
    }
}
