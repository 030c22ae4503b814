//! The driver for legacy servers: sessions, calls in them, and what a server sends in between.
//!
//! Owns one upstream's session pool (`pool`, `session`, `claims`); the life of a call in a session, over all requests of the
//! client that wait for it (`call`, `turn`, `retry`, `at_work`); what the server asks on no call's stream (`question`) and
//! whose it is (`attribution`); the list of tools that a call's values are checked by (`lookup`); what is told to those who listen (`listen`, `feed`, `listeners`); and what is passed on for
//! legacy clients, who have sessions of their own (`relay`) or of the proxy's (`shield`). Knows no transport but the one it
//! is given, and no downstream.
//! Rules: A1.1, A2, A12.13, A12.22, A14, B1, B4, B5, B14; architecture section 4, "Session pool" and "Parked calls".

mod ask;
mod at_work;
mod attribution;
mod beside;
mod call;
mod claims;
mod feed;
mod gate;
mod level;
mod listen;
mod listeners;
mod lookup;
mod open;
mod pool;
mod question;
mod relay;
mod retry;
mod session;
mod shield;
mod turn;
mod wants;

pub use listen::Listening;
pub use open::OpenFault;
pub use pool::Lease;
pub use relay::{Carries, Passage, Passed};
pub use retry::is_retry;
pub(super) use session::Goodbye;
pub use session::Session;
pub use shield::Held;

use super::Shared;
use super::parked::Parked;
use super::reply::{NoAnswer, Refusal, Reply};
use crate::exchange::{Call, Fault, FaultKind, Sender};
use crate::translate::request;
use crate::wire::jsonrpc::Notification;
use crate::wire::payload::Payload;
use hyper::HeaderMap;
use std::sync::Arc;
use tokio::time::timeout;

/// One legacy upstream.
pub struct Legacy {
    shared: Arc<Shared>,
    pool: Arc<pool::Pool>,
    listeners: Arc<listeners::Listeners>,
    feeds: feed::Feeds,
    lookups: lookup::Lookups,
    parked: Arc<Parked>,
    /// `None` where legacy clients have the server's own sessions.
    shield: Option<Arc<shield::Shield>>,
}

impl Legacy {
    pub(super) fn new(shared: Arc<Shared>, parked: Arc<Parked>) -> Arc<Self> {
        let listeners = listeners::Listeners::new(shared.shutdown.clone());
        let pool = pool::Pool::new(shared.clone(), listeners.clone());
        let shield = shared.settings.session.shield.then(|| shield::Shield::new(shared.clone()));
        let lookups = lookup::Lookups::new(&shared);
        Arc::new(Self { shared, pool, listeners, feeds: feed::Feeds::default(), lookups, parked, shield })
    }

    /// A session for the call: the one of its key, or a new one.
    pub async fn lease(self: &Arc<Self>, call: &Call) -> Result<Lease, OpenFault> {
        let lease = self.pool.lease(call).await?;
        feed::attend(self, lease.session(), call);
        Ok(lease)
    }

    /// Runs the call in its session until there is an outcome or nobody waits for it any more.
    pub fn run(
        self: Arc<Self>,
        call: Arc<Call>,
        lease: Lease,
        sender: Sender,
    ) -> impl Future<Output = ()> + Send + use<> {
        call::run(self, call, lease, sender)
    }

    /// Passes a notification of the client on; the server's acceptance is all there is to it. `call` is whose it is.
    pub async fn notify(self: &Arc<Self>, call: &Call, message: &Notification) -> Result<(), Fault> {
        let mut lease = self.pool.lease_for_notification(call).await.map_err(|open| open.fault)?;
        let payload = request::notification_to_legacy(message);
        match self.post_once(lease.session(), &call.headers, payload.clone()).await? {
            Some(refusal)
                if gate::judge(&refusal, None, lease.session().id.is_some()) == gate::Gate::Lost =>
            {
                self.pool.lost(&mut lease);
                let lease = self.pool.lease_for_notification(call).await.map_err(|open| open.fault)?;
                self.post(lease.session(), &call.headers, payload).await
            }
            Some(refusal) => Err(refusal.fault("a notification")),
            None => Ok(()),
        }
    }

    /// Passes a legacy client's request on and waits for the head of the answer.
    pub async fn pass(&self, passage: &Passage) -> Result<Passed, Fault> {
        match &self.shield {
            None => relay::pass(&self.shared, passage).await,
            Some(shield) => Box::pin(shield.pass(passage)).await,
        }
    }

    /// Sessions open now.
    pub fn sessions(&self) -> usize {
        self.pool.len() + self.shield.as_ref().map_or(0, |shield| shield.len())
    }

    /// Sessions with listeners now.
    pub fn feeds(&self) -> usize {
        self.feeds.len()
    }

    /// Ends every session with DELETE; calls still in flight are not waited for.
    pub async fn close(&self) {
        let shielded = async {
            if let Some(shield) = &self.shield {
                shield.close().await;
            }
        };
        tokio::join!(self.pool.close(), shielded);
    }

    /// Sends one message that has no answer, within the time that `initialize` may take.
    async fn post(&self, session: &Session, client: &HeaderMap, message: Payload) -> Result<(), Fault> {
        match self.post_once(session, client, message).await? {
            None => Ok(()),
            Some(refusal) => Err(refusal.fault("a message")),
        }
    }

    async fn post_once(
        &self,
        session: &Session,
        client: &HeaderMap,
        message: Payload,
    ) -> Result<Option<Refusal>, Fault> {
        let shared = &self.shared;
        let head = shared.heads.legacy(client, Some(session));
        let limit = shared.settings.timeouts.initialize;
        let sent = async {
            let response = shared.transport.send_within(limit, head, message).await?;
            Ok(Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await)
        };
        match timeout(limit, sent).await {
            Err(_) => {
                Err(Fault::new(FaultKind::Timeout, "the upstream server did not take a message in time"))
            }
            Ok(Err(error)) => Err(super::send_fault(&shared.settings.name, &error)),
            Ok(Ok(Reply::Accepted | Reply::Messages(_))) => Ok(None),
            Ok(Ok(Reply::Refused(refusal))) => Ok(Some(refusal)),
        }
    }
}

impl Shared {
    fn no_answer(&self, trouble: &NoAnswer) -> Fault {
        match trouble {
            NoAnswer::Send(error) => super::send_fault(&self.settings.name, error),
            NoAnswer::Break(broken) => Fault::from(broken.clone()),
        }
    }
}
