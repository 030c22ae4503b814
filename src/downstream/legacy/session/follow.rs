//! What a session is told of: its part in what its principal listens to at the server.
//!
//! Owns joining once, from the first time that the session is to hear anything, and leaving with its end. Does not own the
//! listening (`upstream::modern::feed`), nor where what is told waits (`notices`). Rules: A1.8, A2.1, B9.7, B9.8.

use super::state::Session;
use super::uses::Use;
use crate::shutdown::Shutdown;
use crate::translate::legacy_client::notify::Change;
use crate::upstream::modern::feed::{Follower, Following};
use crate::wire::payload::Payload;
use hyper::HeaderMap;
use std::sync::{Arc, Weak};
use tokio::time::Instant;

impl Use {
    /// Its part, which `join` takes if it has none yet.
    pub(in crate::downstream) fn following(
        &self,
        join: impl FnOnce(Weak<dyn Follower>) -> Following,
    ) -> Arc<Following> {
        if let Some(following) = self.part() {
            return following;
        }
        let follower: Arc<dyn Follower> = self.session().clone();
        let joined = Arc::new(join(Arc::downgrade(&follower)));
        let mut state = self.state();
        if state.over {
            return joined;
        }
        // Whoever was first; the other part is given up with this.
        state.following.get_or_insert_with(|| joined.clone()).clone()
    }

    /// Its caller has another credential from now on: so has its part, which `join` takes anew. Resources are subscribed to
    /// there before the former part is given up. Without a part there is nothing to do.
    pub(in crate::downstream) fn follows_anew(
        &self,
        join: impl FnOnce(Weak<dyn Follower>) -> Following,
        shutdown: &Shutdown,
        deadline: Instant,
    ) {
        if self.part().is_none() {
            return;
        }
        let follower: Arc<dyn Follower> = self.session().clone();
        let joined = Arc::new(join(Arc::downgrade(&follower)));
        let mut state = self.state();
        if state.over {
            return;
        }
        let former = state.following.replace(joined.clone());
        drop(state);
        let Some(former) = former else { return };
        let upstream = self.common.upstream.clone();
        // Owned by the tracker; ends when all have been acknowledged or refused, at the deadline, or with the drain.
        drop(shutdown.spawn_until_drain(async move {
            for uri in former.uris() {
                if let Err(error) = joined.subscribe(&uri, deadline).await {
                    tracing::warn!(%upstream, %error, "a subscription is lost with a session's former token");
                }
            }
        }));
    }

    /// The client is ready to be told of changes.
    pub(in crate::downstream) fn listens(&self) {
        self.state().listens = true;
    }

    /// Whether it is to be told of changes, and is not.
    pub(in crate::downstream) fn lacks_its_part(&self) -> bool {
        let state = self.state();
        state.listens && !state.over && state.following.is_none()
    }

    /// The headers of a later request: where the server takes the former credential no more, this may do.
    pub(in crate::downstream) fn credential(&self, headers: &HeaderMap) {
        if let Some(following) = self.part() {
            following.credential(headers);
        }
    }

    pub(in crate::downstream) fn unsubscribe(&self, uri: &str) {
        if let Some(following) = self.part() {
            following.unsubscribe(uri);
        }
    }

    fn part(&self) -> Option<Arc<Following>> {
        self.state().following.clone()
    }
}

impl Follower for Session {
    fn tell(&self, change: &Change, message: &Payload) {
        self.heard(change, message);
    }
}
