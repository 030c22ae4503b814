//! How many sessions an upstream may have open at once.
//!
//! Owns the places and the waiting for one that is about to be free. A session keeps its place until the server has been
//! told that it is over, so the bound holds at the server as well, not only in our books (invariant 5).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

#[derive(Debug, Clone)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// Sessions whose end is being told to the server.
    ending: Arc<AtomicUsize>,
    max: usize,
}

/// A session's place; dropping it frees it.
#[derive(Debug)]
pub(super) struct Place(#[allow(dead_code, reason = "held, never read")] OwnedSemaphorePermit);

/// A session's place while its end is being told.
pub(super) struct Ending {
    place: Option<Place>,
    ending: Arc<AtomicUsize>,
}

impl Places {
    pub(super) fn new(max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(max)), ending: Arc::default(), max }
    }

    pub(super) fn taken(&self) -> usize {
        self.max - self.free.available_permits()
    }

    pub(super) fn take(&self) -> Option<Place> {
        self.free.clone().try_acquire_owned().ok().map(Place)
    }

    /// Waits for a place that is being freed; `None` if none is, or not within `limit`.
    pub(super) async fn take_freed(&self, limit: Duration) -> Option<Place> {
        if self.ending.load(Ordering::Acquire) == 0 {
            // One may have become free since the last look.
            return self.take();
        }
        timeout(limit, self.free.clone().acquire_owned()).await.ok()?.ok().map(Place)
    }

    /// From now on the place counts as one that is being freed.
    pub(super) fn ending(&self, place: Place) -> Ending {
        self.ending.fetch_add(1, Ordering::AcqRel);
        Ending { place: Some(place), ending: self.ending.clone() }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // In this order: whoever sees nothing ending any more finds the place free.
        self.place = None;
        self.ending.fetch_sub(1, Ordering::AcqRel);
    }
}
