//! What a legacy server is told of a question that does not go on to its client.
//!
//! Owns posting the answer in the client's own session, as the client itself would have, and how many such are on their way at
//! once. Rules: A12.4, B1.12.

use crate::exchange::Principal;
use crate::upstream::Shared;
use crate::upstream::legacy::{Carries, Legacy, Passage};
use bytes::Bytes;
use hyper::HeaderMap;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::PollSemaphore;

/// Answers of one upstream that are on their way.
const AT_ONCE: usize = 64;

/// See the module.
pub(super) struct Answers {
    shared: Arc<Shared>,
    legacy: Arc<Legacy>,
    places: Arc<Semaphore>,
}

/// Whose session the questions come in.
pub(super) struct Origin {
    shared: Arc<Shared>,
    legacy: Arc<Legacy>,
    places: PollSemaphore,
    headers: HeaderMap,
    principal: Principal,
}

impl Answers {
    pub(super) fn new(shared: Arc<Shared>, legacy: Arc<Legacy>) -> Self {
        Self { shared, legacy, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// For what comes as the response to this request.
    pub(super) fn to(&self, passage: &Passage) -> Origin {
        Origin {
            shared: self.shared.clone(),
            legacy: self.legacy.clone(),
            places: PollSemaphore::new(self.places.clone()),
            headers: passage.headers.clone(),
            principal: passage.principal,
        }
    }
}

impl Origin {
    /// Posts the answer beside the stream that the question came on, which may end before; pending while too many are on their
    /// way.
    pub(super) fn poll_answer(&mut self, text: &Bytes, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(place) = ready!(self.places.poll_acquire(cx)) {
            self.post(text.clone(), place);
        }
        Poll::Ready(())
    }

    /// The same for one that there is a place for now.
    pub(super) fn answer(&self, text: Bytes) {
        match self.places.clone_inner().try_acquire_owned() {
            Ok(place) => self.post(text, place),
            Err(_) => tracing::warn!(
                upstream = %self.shared.settings.name,
                "a question that does not go on stays without an answer: too many are on their way"
            ),
        }
    }

    fn post(&self, text: Bytes, place: OwnedSemaphorePermit) {
        let limit = self.shared.settings.timeouts.initialize;
        let passage = Passage {
            carries: Carries::Unanswered,
            headers: self.headers.clone(),
            body: text.into(),
            principal: self.principal,
            deadline: Instant::now() + limit,
            streams: true,
            askable: false,
            request: None,
        };
        let legacy = self.legacy.clone();
        // Owned by the tracker; bounded by the time that `initialize` may take.
        drop(self.shared.shutdown.spawn(async move {
            if !matches!(timeout(limit, legacy.pass(&passage)).await, Ok(Ok(_))) {
                tracing::debug!(
                    "the answer to a question that does not go on did not reach the upstream server"
                );
            }
            drop(place);
        }));
    }
}
