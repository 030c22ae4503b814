//! The sessions of one upstream, by key.
//!
//! Owns who gets which session: same key, same session; one `initialize` for all that wait; a lost session replaced
//! once for all that lost it; sessions without a call closed after a time; their number bounded. Every session leaves
//! the pool through `end`, which sends DELETE. Architecture section 4, "Session pool"; cases C01, C02, C04, C06.

use super::super::Shared;
use super::super::flight::Flights;
use super::attribution::Style;
use super::claims::{Claim, Claims};
use super::listeners::Listeners;
use super::open::{self, Agreed, OpenFault, Opener};
use super::session::{Goodbye, Session, SessionKey};
use crate::config::SessionScope;
use crate::exchange::{Call, Fault, FaultKind};
use crate::telemetry::metrics::UpstreamLimit;
use crate::translate::capabilities::Capabilities;
use crate::translate::declared;
use crate::upstream::places::{Place, Places};
use dashmap::DashMap;
use hyper::StatusCode;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

pub(super) struct Pool {
    shared: Arc<Shared>,
    listeners: Arc<Listeners>,
    ready: DashMap<SessionKey, Open>,
    /// The lease keeps a session that was just opened from being closed before those who waited have theirs.
    opening: Flights<SessionKey, Result<Arc<Lease>, OpenFault>>,
    /// Of sessions open, being opened or being ended, those of single calls included.
    places: Places,
    agreed: Arc<Agreed>,
    style: Arc<Style>,
    claims: Arc<Claims>,
}

/// A session lent to one call. Dropping it tells the session that the call is over.
pub struct Lease {
    session: Arc<Session>,
    /// Set where the session serves this call alone and ends with it.
    single: Option<(Arc<Shared>, Places, Place)>,
    /// Set for a call that may be asked, where its key may have several sessions.
    claim: Option<Claim>,
}

/// A session in the pool, and its place among those that may be open.
struct Open {
    session: Arc<Session>,
    place: Place,
}

impl Pool {
    pub(super) fn new(shared: Arc<Shared>, listeners: Arc<Listeners>) -> Arc<Self> {
        let opening = Flights::new(shared.shutdown.clone());
        let places = Places::new(shared.settings.session.max);
        let style = Arc::new(Style::new(&shared.settings.name));
        let claims = Claims::new(shared.settings.session.max_per_key);
        let pool = Arc::new(Self {
            shared,
            listeners,
            ready: DashMap::new(),
            opening,
            places,
            agreed: Arc::default(),
            style,
            claims,
        });
        // Owned by the tracker; ends with the drain or with the pool.
        drop(
            pool.shared
                .shutdown
                .spawn_until_drain(reap(Arc::downgrade(&pool), pool.shared.settings.session.idle)),
        );
        pool
    }

    pub(super) fn len(&self) -> usize {
        self.places.taken()
    }

    pub(super) async fn lease(self: &Arc<Self>, call: &Call) -> Result<Lease, OpenFault> {
        match self.shared.settings.session.scope {
            SessionScope::Request => self.lease_single(call).await,
            SessionScope::Principal => self.lease_shared(call).await,
        }
    }

    /// A session for a notification: where it does not say what its client can be asked, the one in which the client was
    /// active last, since it may be about what went on there.
    pub(super) async fn lease_for_notification(self: &Arc<Self>, call: &Call) -> Result<Lease, OpenFault> {
        let silent = declared::capabilities(&call.request).is_none();
        if silent && self.shared.settings.session.scope == SessionScope::Principal {
            let key = SessionKey::of(call, &self.shared);
            let of_client = self.ready.iter().filter(|open| open.key().is_same_client(&key));
            // Lent while its entry is held, as in `take`.
            if let Some(open) = of_client.min_by_key(|open| open.session.idle()) {
                return Ok(Lease::new(open.session.clone(), None));
            }
        }
        self.lease(call).await
    }

    /// Takes the session out of use because the server no longer knows it. Those who lost the same one find it gone or
    /// already replaced.
    pub(super) fn lost(&self, lease: &mut Lease) {
        lease.claim = None;
        lease.session.is_lost();
        if lease.session.key.is_some() {
            return self.found_lost(&lease.session);
        }
        // The server does not know it any more, so there is nothing to end; its place is free at once.
        lease.single = None;
        self.bury(&lease.session);
        self.shared.metrics.session_lost();
    }

    /// What a lost session ran in behind one channel may still be there, and is nobody's: it ends where the channel is told so.
    fn bury(&self, session: &Session) {
        if self.shared.transport.is_channel()
            && let Some(goodbye) = session.goodbye()
        {
            // Owned by the tracker; bounded by `FAREWELL`.
            drop(self.shared.shutdown.spawn(end(self.shared.clone(), goodbye)));
        }
    }

    /// As [`lost`](Self::lost), where it was not a call that found it out. Whoever has the session of a single call finds out
    /// by itself.
    pub(super) fn found_lost(&self, session: &Arc<Session>) {
        session.is_lost();
        let Some(key) = &session.key else { return };
        if self.ready.remove_if(key, |_, current| Arc::ptr_eq(&current.session, session)).is_some() {
            self.bury(session);
            self.shared.metrics.session_lost();
            tracing::info!(upstream = %self.shared.settings.name, "the upstream server lost a session; opening another");
        }
    }

    async fn lease_shared(self: &Arc<Self>, call: &Call) -> Result<Lease, OpenFault> {
        let key = SessionKey::of(call, &self.shared);
        let asks = call.method.can_ask() && !key.capabilities().is_empty();
        let claim = asks.then(|| self.choose(&key, self.style.is_beside())).flatten();
        let Some(claim) = claim else { return self.lease_of(call, key).await };
        let (opened, claim) = match self.lease_of(call, claim.key().clone()).await {
            Err(open) if claim.key().is_further() => {
                // It is there to save waiting, so the call waits for its turn instead.
                tracing::info!(
                    upstream = %self.shared.settings.name,
                    fault = %open.fault,
                    "no further session for a call that may be asked (session.max_per_key)"
                );
                drop(claim);
                (self.lease_of(call, key.clone()).await, self.choose(&key, false))
            }
            opened => (opened, Some(claim)),
        };
        let mut lease = opened?;
        lease.claim = claim;
        Ok(lease)
    }

    fn choose(&self, key: &SessionKey, further: bool) -> Option<Claim> {
        let parked = |key: &SessionKey| self.ready.get(key).map(|open| open.session.floor.parked());
        self.claims.choose(key, further, parked)
    }

    async fn lease_of(self: &Arc<Self>, call: &Call, key: SessionKey) -> Result<Lease, OpenFault> {
        if let Some(session) = self.take(&key) {
            return Ok(session);
        }
        let run = || {
            let pool = self.clone();
            let opener = self.opener(call, key.capabilities().clone());
            let key = key.clone();
            async move { pool.open_shared(opener, key).await }
        };
        match self.opening.join(key.clone(), run).await {
            Some(opened) => Ok(Lease::new(opened?.session.clone(), None)),
            None => Err(Fault::new(FaultKind::Draining, "the proxy is shutting down").into()),
        }
    }

    fn take(&self, key: &SessionKey) -> Option<Lease> {
        // Lent while the entry is held, so that the reaper cannot close it in between.
        let open = self.ready.get(key)?;
        Some(Lease::new(open.session.clone(), None))
    }

    async fn open_shared(self: Arc<Self>, opener: Opener, key: SessionKey) -> Result<Arc<Lease>, OpenFault> {
        // Opened by someone between the caller's look and this run.
        if let Some(lease) = self.take(&key) {
            return Ok(Arc::new(lease));
        }
        let place = self.place().await?;
        let session = open::open(&self.shared, opener, Some(key.clone())).await?;
        let lease = Lease::new(session.clone(), None);
        self.ready.insert(key, Open { session, place });
        Ok(Arc::new(lease))
    }

    async fn lease_single(self: &Arc<Self>, call: &Call) -> Result<Lease, OpenFault> {
        let place = self.place().await?;
        let opener = self.opener(call, SessionKey::of(call, &self.shared).capabilities().clone());
        let (shared, places) = (self.shared.clone(), self.places.clone());
        // In a task, so that a session whose caller goes away in the middle is still ended.
        let opening = self.shared.shutdown.spawn(async move {
            let session = open::open(&shared, opener, None).await?;
            Ok::<_, OpenFault>(Lease::new(session, Some((shared, places, place))))
        });
        match opening.await {
            Ok(Some(lease)) => lease,
            Ok(None) | Err(_) => Err(Fault::new(FaultKind::Draining, "the proxy is shutting down").into()),
        }
    }

    fn opener(&self, call: &Call, capabilities: Capabilities) -> Opener {
        Opener {
            principal: call.principal,
            listeners: self.listeners.clone(),
            headers: call.headers.clone(),
            client_info: open::client_info(&call.request),
            capabilities,
            agreed: self.agreed.clone(),
            style: self.style.clone(),
        }
    }

    /// A place for one more session; if there is none, the session that has been idle longest makes room.
    async fn place(&self) -> Result<Place, OpenFault> {
        if let Some(place) = self.places.take() {
            return Ok(place);
        }
        self.shared.metrics.limit(UpstreamLimit::Sessions);
        let idle = self.ready.iter().filter_map(|open| Some((open.session.idle()?, open.key().clone())));
        let longest = idle.max_by_key(|(idle, _)| *idle);
        if let Some((_, key)) = longest {
            self.end_if(&key, |session| session.idle().is_some());
        }
        if let Some(place) = self.places.take_freed(self.shared.settings.timeouts.initialize).await {
            return Ok(place);
        }
        let max = self.shared.settings.session.max;
        tracing::warn!(upstream = %self.shared.settings.name, max, "all sessions are busy; raise session.max");
        let text = "all sessions of the proxy with the upstream server are in use";
        Err(Fault::new(FaultKind::Busy, text).into())
    }

    /// Takes a session out and ends it, if `fit` still holds while nobody can lease it.
    fn end_if(&self, key: &SessionKey, fit: impl FnOnce(&Session) -> bool) {
        if let Some((_, open)) = self.ready.remove_if(key, |_, open| fit(&open.session)) {
            end_in_background(&self.shared, &self.places, &open.session, open.place);
        }
    }

    pub(super) async fn close(&self) {
        let keys: Vec<_> = self.ready.iter().map(|entry| entry.key().clone()).collect();
        let ends = keys.into_iter().filter_map(|key| {
            let (_, open) = self.ready.remove(&key)?;
            open.session.is_closed();
            Some(end(self.shared.clone(), open.session.goodbye()?))
        });
        futures_util::future::join_all(ends).await;
    }
}

/// The session keeps its place until the server knows.
fn end_in_background(shared: &Arc<Shared>, places: &Places, session: &Session, place: Place) {
    session.is_closed();
    let Some(goodbye) = session.goodbye() else { return };
    let (shared, ending) = (shared.clone(), places.ending(place));
    // Owned by the tracker; bounded by `FAREWELL`.
    drop(shared.shutdown.clone().spawn(async move {
        end(shared, goodbye).await;
        drop(ending);
    }));
}

/// How long a server may take to hear that a session is over.
const FAREWELL: Duration = Duration::from_secs(5);

/// Ends one session at the server. A server may refuse (405); the session is gone here all the same.
pub(super) async fn end(shared: Arc<Shared>, goodbye: Goodbye) {
    let _ending = shared.metrics.session_ending();
    let head = shared.heads.delete(&goodbye);
    match shared.transport.send_within(FAREWELL, head, Default::default()).await {
        Ok(response) => {
            let status = response.status();
            let known = status.is_success()
                || matches!(status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND);
            if !known {
                tracing::debug!(upstream = %shared.settings.name, %status, "the upstream server did not end a session");
            }
        }
        Err(error) => {
            tracing::debug!(upstream = %shared.settings.name, %error, "a session could not be ended");
        }
    }
}

/// Ends sessions that have been idle for too long.
async fn reap(pool: Weak<Pool>, idle: Duration) {
    let period = (idle / 4).max(Duration::from_millis(250));
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(pool) = pool.upgrade() else { return };
        let expired = |session: &Session| session.idle().is_some_and(|time| time >= idle);
        let keys: Vec<_> =
            pool.ready.iter().filter(|open| expired(&open.session)).map(|open| open.key().clone()).collect();
        for key in keys {
            pool.end_if(&key, expired);
        }
    }
}

impl Lease {
    fn new(session: Arc<Session>, single: Option<(Arc<Shared>, Places, Place)>) -> Self {
        session.call_begins();
        Self { session, single, claim: None }
    }

    /// Another lease of the same session, for what goes on beside the call.
    pub(super) fn beside(&self) -> Self {
        Self::new(self.session.clone(), None)
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.session.call_ends();
        if let Some((shared, places, place)) = self.single.take() {
            end_in_background(&shared, &places, &self.session, place);
        }
    }
}
