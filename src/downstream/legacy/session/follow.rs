//! What a session is told of: its part in what its principal listens to at the server.
//!
//! Owns joining once, from the first time that the session is to hear anything, moving with its caller's credential, leaving
//! with its end, and taking what is told. Does not own the listening (`upstream::modern::feed`), nor where what is told waits
//! (`notices`). Rules: A1.8, A2.1, B9.7, B9.8.

use super::notices::Added;
use super::state::{Session, wake};
use super::uses::Use;
use crate::exchange::Principal;
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{NoticeKind, Noticed, ReplayDropped};
use crate::translate::legacy_client::notify::{Change, announce};
use crate::upstream::modern::feed::{Follower, Following, Moved};
use crate::wire::payload::Payload;
use hyper::HeaderMap;
use std::sync::{Arc, Weak};
use tokio::time::{Instant, timeout_at};

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

    /// Its caller has another credential from now on: so has its part, which `join` takes anew. The former part is kept until
    /// what it heard is listened for in the new one, which tells what may have been missed. Without a part, or with one that is
    /// this principal's, there is nothing to do.
    pub(in crate::downstream) fn follows_anew(
        &self,
        principal: Principal,
        join: impl FnOnce(Weak<dyn Follower>) -> Following,
        shutdown: &Shutdown,
        deadline: Instant,
    ) {
        if self.part().is_none_or(|part| part.is_of(principal)) {
            return;
        }
        let follower: Arc<dyn Follower> = self.session().clone();
        let joined = Arc::new(join(Arc::downgrade(&follower)));
        let mut state = self.state();
        if state.over || state.following.as_ref().is_none_or(|part| part.is_of(principal)) {
            return;
        }
        let Some(former) = state.following.replace(joined.clone()) else { return };
        state.former = Arc::downgrade(&former);
        // Under the lock: who unsubscribes does so before this, or in both.
        let Moved { missed, stands } = joined.adopt(&former);
        drop(state);
        for change in missed {
            self.common.metrics.notice(kind(&change), Noticed::Synthesised);
            self.heard(&change, &announce(&change));
        }
        // Owned by the tracker; ends when the new part stands or is left, at the deadline, or with the drain.
        drop(shutdown.spawn_until_drain(async move {
            let _ = timeout_at(deadline, stands).await;
            drop(former);
        }));
    }

    /// Whether its part is another principal's than its caller's, who is not one that comes with what it had before.
    pub(in crate::downstream) fn is_followed_elsewhere(&self, principal: Principal) -> bool {
        let state = self.state();
        state.following.as_ref().is_some_and(|part| !part.is_of(principal)) && state.is_newest(principal)
    }

    /// Whether it has another part by now.
    pub(in crate::downstream) fn has_left(&self, following: &Arc<Following>) -> bool {
        self.part().is_some_and(|part| !Arc::ptr_eq(&part, following))
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
        // Of a part that is still kept as well, and under the lock, so that it is not taken over meanwhile.
        let state = self.state();
        let former = state.former.upgrade();
        for part in [state.following.as_ref(), former.as_ref()].into_iter().flatten() {
            part.unsubscribe(uri);
        }
        drop(state);
    }

    fn part(&self) -> Option<Arc<Following>> {
        self.state().following.clone()
    }
}

impl Session {
    /// Something has changed at the server. Told when the client's own stream is there to tell it.
    pub(super) fn heard(&self, change: &Change, message: &Payload) {
        let told = self.live(|work| {
            let taken = work.notices.add(change, message, self.common.bounds.resources);
            let own = work.rows.own().filter(|row| row.is_attached());
            (taken, own.is_some(), own.and_then(|row| row.take_waker()))
        });
        let Some((taken, read, waker)) = told else { return };
        let kind = kind(change);
        match taken {
            Added::New if read => {}
            Added::New => self.common.metrics.notice(kind, Noticed::Kept),
            Added::Merged => self.common.metrics.notice(kind, Noticed::Merged),
            Added::Full => {
                self.common.metrics.replay_dropped(ReplayDropped::Notice);
                tracing::warn!(
                    upstream = %self.common.upstream,
                    "a notice is dropped: as many resources as limits.subscriptions have changed that the client was not told of"
                );
            }
        }
        wake(waker);
    }

    /// Nobody listened for it for a while: what may have changed meanwhile is told, to be sure (B9.7).
    pub(super) fn missed(&self) {
        let offers = self.offers;
        let lists = [
            (offers.tools_changed, Change::Tools),
            (offers.prompts_changed, Change::Prompts),
            (offers.resources_changed, Change::Resources),
        ];
        for (_, change) in lists.iter().filter(|(offered, _)| *offered) {
            let most = self.common.bounds.resources;
            self.live(|work| work.notices.add(change, &announce(change), most));
            self.common.metrics.notice(kind(change), Noticed::Synthesised);
        }
    }
}

impl Follower for Session {
    fn tell(&self, change: &Change, message: &Payload) {
        self.heard(change, message);
    }
}

pub(super) fn kind(change: &Change) -> NoticeKind {
    match change {
        Change::Tools => NoticeKind::Tools,
        Change::Prompts => NoticeKind::Prompts,
        Change::Resources => NoticeKind::Resources,
        Change::Updated(_) => NoticeKind::Updated,
    }
}
