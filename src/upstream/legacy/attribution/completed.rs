//! URL elicitations that the server has told to be complete.
//!
//! Owns a short memory of them: the word may come before or after the client's retry, and not at all. Rule: B4.1;
//! invariant 5.

use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// As many as are remembered; one more and the oldest is forgotten, whose wait is bounded anyway.
const REMEMBERED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Completed {
    /// SHA-256 of their ids, which may be long.
    known: Mutex<VecDeque<[u8; 32]>>,
    more: Notify,
}

impl Completed {
    pub(super) fn add(&self, elicitation: &str) {
        let id = digest(elicitation);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&id) {
            return;
        }
        if known.len() == REMEMBERED {
            known.pop_front();
        }
        known.push_back(id);
        drop(known);
        self.more.notify_waiters();
    }

    /// Waits until it is told; whoever waits sets the bound.
    pub(super) async fn wait(&self, elicitation: &str) {
        let id = digest(elicitation);
        loop {
            // Registered before the look, so that what comes in between is not missed.
            let mut more = pin!(self.more.notified());
            more.as_mut().enable();
            if self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(&id) {
                return;
            }
            more.await;
        }
    }
}

fn digest(elicitation: &str) -> [u8; 32] {
    Sha256::digest(elicitation.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::time::timeout;

    /// B4.1: told before the wait or in the middle of it; what is remembered is bounded.
    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_url_elicitation_is_heard() {
        let completed = Arc::new(Completed::default());
        completed.add("e1");
        completed.wait("e1").await;
        let waiting = {
            let completed = completed.clone();
            tokio::spawn(async move { completed.wait("e2").await })
        };
        tokio::task::yield_now().await;
        completed.add("e3");
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        completed.add("e2");
        waiting.await.unwrap();
        for n in 0..1000 {
            completed.add(&n.to_string());
        }
        completed.wait("999").await;
        assert_eq!(completed.known.lock().unwrap().len(), REMEMBERED);
        assert!(timeout(Duration::from_secs(1), completed.wait("e1")).await.is_err(), "long forgotten");
    }
}
