//! Sessions of legacy clients in front of a modern server.
//!
//! Owns the table of one upstream's sessions and what their ids are: sealed state (`ticket`), bound to the credential that
//! opened it (and, once the server has vouched for it, to a newer one of the same `subject`), good in any process that has
//! the key. Owns their number, their idle time and their end. `state` is one session, `uses` a session in the hands of a
//! request, `track` both ends of its event streams, `rows`, `row` and `large` what is kept of them, `event` how it is
//! written, `notices` what waits for its own stream, `follow` where that comes from, `graves` the ids that are used up.
//! Does not own what a request in a session does (`bridge`).
//! Rules: A12.12-A12.15, A12.19, A13.4, A13.5, B9.8, B14; D82, D103; cases C03 (client side), C10.

mod event;
mod follow;
mod graves;
mod large;
mod notices;
mod row;
mod rows;
mod state;
mod subject;
mod ticket;
mod track;
mod uses;

pub(in crate::downstream) use row::Gap;
pub(in crate::downstream) use state::Session;
pub(in crate::downstream) use track::{Next, Reader, Track};
pub(in crate::downstream) use uses::{Entered, Resumed, Use};

use crate::config;
use crate::exchange::{Fault, FaultKind, Principal};
use crate::seal::{self, Seal, SealError};
use crate::shutdown::Shutdown;
use crate::telemetry::metrics::{SessionBegan, SessionEnd, UpstreamLimit, UpstreamMetrics};
use crate::translate::legacy_client::discovered::Offers;
use crate::translate::legacy_client::initialize::Client;
use bytes::Bytes;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use graves::Graves;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use rows::Bounds;
use state::{Common, Place};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ticket::{Key, Ticket};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// One upstream's sessions.
pub(in crate::downstream) struct Sessions {
    seal: Seal,
    settings: config::Session,
    /// Whether a credential is the client's own all the way to the server.
    forwards: bool,
    table: DashMap<Key, Arc<Session>>,
    common: Arc<Common>,
    /// `None` where an id is good for no longer than the table knows it.
    graves: Option<Mutex<Graves>>,
}

/// What a session id leads to.
pub(in crate::downstream) enum Found {
    Session(Use),
    /// None of this caller's, or none any more: 404.
    Unknown,
    /// Perhaps this caller's, who has another credential than before: the server has to vouch for it first.
    Stranger(Refresh),
    /// One that is not in the table, for which there is no room.
    Full(Fault),
}

/// A session whose caller seems to have a newer token.
pub(in crate::downstream) struct Refresh {
    session: Use,
    principal: Principal,
}

impl Refresh {
    /// The server has vouched for the credential.
    pub(in crate::downstream) fn accept(self) -> Use {
        self.session.accept(self.principal);
        self.session
    }
}

/// A session's id, unsealed.
pub(in crate::downstream) struct Opened(Vec<u8>);

impl Sessions {
    pub(in crate::downstream) fn new(
        upstream: &config::Upstream,
        front: &config::Limits,
        keep_alive: Duration,
        shutdown: &Shutdown,
        metrics: Arc<UpstreamMetrics>,
    ) -> Result<Arc<Self>, SealError> {
        let settings = upstream.session.clone();
        let purpose = ticket::purpose(&upstream.name);
        let seal = match &settings.key {
            Some(key) => Seal::keyed(key.expose(), &purpose)?,
            None => Seal::random(&purpose)?,
        };
        let bounds = Bounds {
            events: settings.replay_events,
            bytes: settings.replay_bytes,
            replay: settings.replay,
            ahead_events: front.events,
            ahead_bytes: front.event_bytes,
            again: keep_alive,
            resources: front.subscriptions,
        };
        let common = Arc::new(Common {
            bounds,
            metrics,
            upstream: upstream.name.clone(),
            // Far enough from its end to go on for ever.
            numbers: AtomicU64::new(u64::from_be_bytes(seal::random()?) >> 16),
            poll: settings.poll,
            born: Instant::now(),
            taken: Arc::new(AtomicUsize::new(0)),
        });
        let (idle, replay) = (settings.idle, settings.replay);
        let graves = settings.key.is_some().then(|| Mutex::new(Graves::new(settings.max)));
        let forwards = matches!(upstream.authorization, config::Authorization::Forward);
        let sessions = Arc::new(Self { seal, settings, forwards, table: DashMap::new(), common, graves });
        // Owned by the tracker; ends with the drain or with the table.
        drop(shutdown.spawn_until_drain(reap(Arc::downgrade(&sessions), idle, replay)));
        Ok(sessions)
    }

    /// A new session, and the id by which its client names it.
    pub(in crate::downstream) fn begin(
        &self,
        client: Client,
        offers: Offers,
        principal: Principal,
        headers: &HeaderMap,
    ) -> Result<(Use, HeaderValue), Fault> {
        let place = self.place()?;
        let internal = |_| Fault::new(FaultKind::Internal, "the proxy cannot seal a session id");
        let ticket = Ticket {
            key: seal::random().map_err(internal)?,
            minted: now(),
            principal: principal.name(),
            subject: self.subject(headers),
            level: self.settings.log_level,
            offers,
            // Copied, so that it keeps nothing larger alive.
            client: Client {
                info: Bytes::copy_from_slice(&client.info),
                capabilities: Bytes::copy_from_slice(&client.capabilities),
                ..client
            },
        };
        let sealed = self.seal.close(&ticket.write()).map_err(internal)?;
        let name = HeaderValue::try_from(sealed)
            .map_err(|_| Fault::new(FaultKind::Internal, "the session id fits no header"))?;
        let key = ticket.key;
        let session = Arc::new(Session::new(self.common.clone(), ticket, place, SessionBegan::Begun));
        self.table.insert(key, session.clone());
        Ok((Use::new(session), name))
    }

    /// What an id says that this proxy has issued, whoever's it is; `None` for any other.
    pub(in crate::downstream) fn open(&self, name: &HeaderValue) -> Option<Opened> {
        self.seal.open(name.as_bytes()).map(Opened)
    }

    /// The session of that id, for this principal; the headers are those of its request.
    pub(in crate::downstream) fn find(
        &self,
        Opened(text): &Opened,
        principal: Principal,
        headers: &HeaderMap,
    ) -> Found {
        let Some(key) = ticket::key(text) else { return Found::Unknown };
        let known = self.table.get(&key).map(|session| Use::new(session.clone()));
        let found = match known {
            Some(session) => self.admit(session, principal, headers),
            None => self.rebuild(text, principal, headers),
        };
        found.unwrap_or_else(Found::Full)
    }

    pub(in crate::downstream) fn end(&self, session: &Session) {
        // In this order: an id that is not in the table any more is known to be used up.
        self.bury(session);
        self.table.remove(&session.key);
        session.end(SessionEnd::Delete);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.common.taken.load(Ordering::Acquire)
    }

    /// Whose it is decides.
    fn admit(&self, session: Use, principal: Principal, headers: &HeaderMap) -> Result<Found, Fault> {
        if session.accepts(principal) {
            return Ok(Found::Session(session));
        }
        Ok(if self.is_of(session.subject, headers) {
            Found::Stranger(Refresh { session, principal })
        } else {
            Found::Unknown
        })
    }

    /// A session that another process, or this one before a restart, has issued.
    fn rebuild(&self, text: &[u8], principal: Principal, headers: &HeaderMap) -> Result<Found, Fault> {
        let (Some(graves), Some(ticket)) = (&self.graves, Ticket::read(text)) else {
            return Ok(Found::Unknown);
        };
        let (key, minted) = (ticket.key, ticket.minted);
        let theirs = ticket.principal == principal.name() || self.is_of(ticket.subject, headers);
        let aged = now().saturating_sub(ticket.minted) >= self.settings.max_age.as_secs();
        if aged || !theirs || lock(graves).has(minted, &key) {
            return Ok(Found::Unknown);
        }
        // Before the entry is locked: making room takes other entries out.
        let place = self.place()?;
        let session = match self.table.entry(key) {
            Entry::Occupied(known) => Use::new(known.get().clone()),
            Entry::Vacant(_) if lock(graves).has(minted, &key) => return Ok(Found::Unknown),
            Entry::Vacant(free) => {
                let session = Session::new(self.common.clone(), ticket, place, SessionBegan::Rebuilt);
                let session = Use::new(Arc::new(session));
                session.missed();
                free.insert(session.session().clone());
                session
            }
        };
        self.admit(session, principal, headers)
    }

    /// A place for one more, if need be of the session that has been idle longest.
    fn place(&self) -> Result<Place, Fault> {
        if let Some(place) = self.free_place() {
            return Ok(place);
        }
        self.common.metrics.limit(UpstreamLimit::Sessions);
        self.evict();
        self.free_place().ok_or_else(|| {
            tracing::warn!(
                upstream = %self.common.upstream,
                max = self.settings.max,
                "all sessions are in use; raise upstream.*.session.max"
            );
            Fault::new(FaultKind::Busy, "the proxy has as many sessions open as it may")
        })
    }

    fn free_place(&self) -> Option<Place> {
        let one_more = |taken: usize| (taken < self.settings.max).then_some(taken + 1);
        let taken = &self.common.taken;
        taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Place(taken.clone()))
    }

    /// Its id stays good where it is good without the table.
    fn evict(&self) {
        let idle = |session: &Session| session.idle().map(|time| (time, session.key));
        let Some((_, key)) = self.table.iter().filter_map(|session| idle(&session)).max() else { return };
        if let Some((_, session)) = self.table.remove_if(&key, |_, session| session.idle().is_some()) {
            session.end(SessionEnd::Evicted);
        }
    }

    /// Whether the credential says that it is of the same caller, which nobody has verified.
    fn is_of(&self, subject: Option<subject::Subject>, headers: &HeaderMap) -> bool {
        subject.is_some() && self.subject(headers) == subject
    }

    fn subject(&self, headers: &HeaderMap) -> Option<subject::Subject> {
        if self.forwards { subject::of(headers) } else { None }
    }

    fn bury(&self, session: &Session) {
        if let Some(graves) = &self.graves {
            lock(graves).add(session.minted, session.key);
        }
    }

    fn sweep(&self, idle: Duration) {
        let expired = |session: &Session| session.idle().is_some_and(|time| time >= idle);
        let mut keys = Vec::new();
        for session in &self.table {
            session.prune();
            if expired(&session) {
                keys.push(*session.key());
            }
        }
        for key in keys {
            // Its id is used up before it is out of the table, so that nobody rebuilds it in between.
            let over = |_: &Key, session: &Arc<Session>| {
                let over = expired(session);
                if over {
                    self.bury(session);
                }
                over
            };
            if let Some((_, session)) = self.table.remove_if(&key, over) {
                session.end(SessionEnd::Idle);
            }
        }
    }
}

fn lock(graves: &Mutex<Graves>) -> MutexGuard<'_, Graves> {
    graves.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since 1970, which is what processes have in common.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Ends sessions that have been idle for too long, and lets go of what is kept too long.
async fn reap(sessions: Weak<Sessions>, idle: Duration, replay: Duration) {
    let period = (idle.min(replay) / 4).max(Duration::from_millis(250));
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(sessions) = sessions.upgrade() else { return };
        sessions.sweep(idle);
    }
}

#[cfg(test)]
mod tests;
