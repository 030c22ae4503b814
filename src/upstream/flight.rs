//! One run for many who want the same thing at the same time.
//!
//! Owns the map of runs under way; a run is a task of the shutdown tracker, so it goes on when the caller that began it
//! has gone, and ends with its result or with the process. Does not keep results: those who come later start anew.

use crate::shutdown::Shutdown;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::watch;

/// Runs under way by key.
pub(super) struct Flights<K, V> {
    running: Arc<DashMap<K, watch::Receiver<Option<V>>>>,
    shutdown: Shutdown,
}

impl<K, V> Flights<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn new(shutdown: Shutdown) -> Self {
        Self { running: Arc::default(), shutdown }
    }

    /// Joins the run for `key`, or starts it. `None` if it ended without a result, as at the end of the process.
    pub(super) async fn join<F>(&self, key: K, run: impl FnOnce() -> F) -> Option<V>
    where
        F: Future<Output = V> + Send + 'static,
    {
        let mut result = match self.running.entry(key.clone()) {
            Entry::Occupied(running) => running.get().clone(),
            Entry::Vacant(free) => {
                let (sender, receiver) = watch::channel(None);
                free.insert(receiver.clone());
                let landing = Landing { running: self.running.clone(), key };
                let run = run();
                drop(self.shutdown.spawn(async move {
                    let value = run.await;
                    drop(landing);
                    let _ = sender.send(Some(value));
                }));
                receiver
            }
        };
        result.wait_for(Option::is_some).await.ok().and_then(|value| value.clone())
    }
}

/// Takes the run off the map when it is over, however it ends.
struct Landing<K: Eq + Hash, V> {
    running: Arc<DashMap<K, watch::Receiver<Option<V>>>>,
    key: K,
}

impl<K: Eq + Hash, V> Drop for Landing<K, V> {
    fn drop(&mut self) {
        self.running.remove(&self.key);
    }
}
