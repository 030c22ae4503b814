//! The shield: legacy clients' sessions that outlive the server's.
//!
//! Owns the table of sessions that the proxy has issued to legacy clients, each bound to its principal, bounded in number
//! and in idle time, and the way of a request through it: `session` is what is kept of one, `begin` its handshake with the
//! server, first and again, `renew` what the server is told after a loss, `call` a POST in it, `stream` its GET stream, `held`
//! the body that stays open meanwhile. Does not own the table of refusals that mean a loss (`gate`), nor what is passed on
//! without a session of the proxy's own (`relay`).
//! Rules: A11.3, A12.12-A12.15, A12.21, A13.4; cases C02, C03 (client side), C04, C06, C08, C10, C44.

mod begin;
mod call;
mod events;
mod held;
mod renew;
mod session;
mod stream;

pub use held::Held;

use super::super::Shared;
use super::super::flight::Flights;
use super::super::reply::UpstreamBody;
use super::pool;
use super::relay::{Carries, Passage, Passed};
use crate::exchange::{Fault, FaultKind, Principal};
use crate::upstream::places::Places;
use crate::wire::headers::{JSON, MCP_SESSION_ID};
use crate::wire::jsonrpc::{self, Id, code};
use dashmap::DashMap;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use session::{Leg, Shielded, Use};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// One upstream's shielded sessions.
pub(super) struct Shield {
    shared: Arc<Shared>,
    sessions: DashMap<String, Arc<Shielded>>,
    /// One new session at the server for all whose request found the old one gone.
    renewals: Flights<String, Result<Arc<Leg>, Fault>>,
    places: Places,
}

impl Shield {
    pub(super) fn new(shared: Arc<Shared>) -> Arc<Self> {
        let renewals = Flights::new(shared.shutdown.clone());
        let places = Places::new(shared.settings.session.max);
        let idle = shared.settings.session.idle;
        let shield = Arc::new(Self { shared, sessions: DashMap::new(), renewals, places });
        // Owned by the tracker; ends with the drain or with the shield.
        drop(shield.shared.shutdown.spawn_until_drain(reap(Arc::downgrade(&shield), idle)));
        shield
    }

    pub(super) async fn pass(self: &Arc<Self>, passage: &Passage) -> Result<Passed, Fault> {
        if let Carries::Initialize(id) = &passage.carries {
            return begin::initialize(self, passage, id).await;
        }
        let mut passed = self.pass_in_session(passage).await?;
        let (Passed::Response(response) | Passed::OtherEra(response) | Passed::Modern(response)) =
            &mut passed;
        // The server's own session is nothing that the client may know of (C06b).
        response.headers_mut().remove(MCP_SESSION_ID);
        Ok(passed)
    }

    async fn pass_in_session(self: &Arc<Self>, passage: &Passage) -> Result<Passed, Fault> {
        let Some(name) = passage.headers.get(MCP_SESSION_ID) else {
            return Ok(refusal(
                StatusCode::BAD_REQUEST,
                &passage.carries,
                "the Mcp-Session-Id header is required",
            ));
        };
        let Some(session) = self.find(name, passage.principal) else {
            return Ok(refusal(StatusCode::NOT_FOUND, &passage.carries, "there is no such session"));
        };
        match &passage.carries {
            Carries::End => Ok(self.end(&session, passage).await),
            Carries::Stream => stream::open(self, session, passage).await,
            Carries::Initialize(_) | Carries::Request(_) | Carries::Batch(_) | Carries::Unanswered => {
                call::pass(self, session, passage).await
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.taken()
    }

    /// Ends every session at the server.
    pub(super) async fn close(&self) {
        let names: Vec<_> = self.sessions.iter().map(|entry| entry.key().clone()).collect();
        let ends = names.into_iter().filter_map(|name| {
            let (_, session) = self.sessions.remove(&name)?;
            session.end();
            Some(pool::end(self.shared.clone(), session.goodbye()?))
        });
        futures_util::future::join_all(ends).await;
    }

    /// The session by that name, if it is this principal's: another's is none to it.
    fn find(&self, name: &HeaderValue, principal: Principal) -> Option<Use> {
        let session = self.sessions.get(name.to_str().ok()?)?;
        (session.principal == principal).then(|| Use::new(session.clone()))
    }

    /// DELETE ends the session here, and at the server as far as that allows it.
    async fn end(&self, session: &Use, passage: &Passage) -> Passed {
        self.sessions.remove(&session.name);
        session.end();
        let credential = self.shared.heads.credential(&passage.headers);
        if let Some(goodbye) = session.goodbye() {
            let authorization = credential.or_else(|| goodbye.authorization.clone());
            pool::end(self.shared.clone(), super::Goodbye { authorization, ..goodbye }).await;
        }
        let mut response = Response::new(UpstreamBody::Read(Default::default()));
        *response.status_mut() = StatusCode::OK;
        Passed::Response(response)
    }

    /// Another session at the server in the place of `lost`: the one that somebody else has opened already, or a new one.
    async fn renewed(
        self: &Arc<Self>,
        session: &Arc<Shielded>,
        lost: &Leg,
        headers: &HeaderMap,
    ) -> Result<Arc<Leg>, Fault> {
        let run = || {
            let (shield, session) = (self.clone(), session.clone());
            let (generation, headers) = (lost.generation, headers.clone());
            async move { renew::renew(&shield, &session, generation, &headers).await }
        };
        match self.renewals.join(session.name.clone(), run).await {
            Some(renewed) => renewed,
            None => Err(Fault::new(FaultKind::Draining, "the proxy is shutting down")),
        }
    }

    /// Takes the session out if `fit` still holds while nobody can use it.
    fn end_if(&self, name: &str, fit: impl FnOnce(&Shielded) -> bool) {
        let Some((_, session)) = self.sessions.remove_if(name, |_, session| fit(session)) else { return };
        session.end();
        let (Some(goodbye), Some(place)) = (session.goodbye(), session.take_place()) else { return };
        let (shared, ending) = (self.shared.clone(), self.places.ending(place));
        // Owned by the tracker; bounded as every goodbye.
        drop(self.shared.shutdown.spawn(async move {
            pool::end(shared, goodbye).await;
            drop(ending);
        }));
    }
}

/// What the proxy itself says of a session.
fn refusal(status: StatusCode, carries: &Carries, text: &str) -> Passed {
    let id: Option<&Id> = match carries {
        Carries::Initialize(id) | Carries::Request(id) => Some(id),
        Carries::Batch(_) | Carries::Unanswered | Carries::Stream | Carries::End => None,
    };
    let message = jsonrpc::error(id, code::INVALID_REQUEST, text, None);
    let mut response = Response::new(UpstreamBody::Read(message));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    Passed::Response(response)
}

/// Ends sessions that have been idle for too long.
async fn reap(shield: Weak<Shield>, idle: Duration) {
    let period = (idle / 4).max(Duration::from_millis(250));
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shield) = shield.upgrade() else { return };
        let expired = |session: &Shielded| session.idle().is_some_and(|time| time >= idle);
        let names: Vec<_> =
            shield.sessions.iter().filter(|entry| expired(entry)).map(|entry| entry.key().clone()).collect();
        for name in names {
            shield.end_if(&name, expired);
        }
    }
}
