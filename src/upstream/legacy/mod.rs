//! The driver for legacy servers: sessions, calls in them, and what a server sends in between.
//!
//! Owns one upstream's session pool (`pool`, `session`) and the life of a call in a session (`call`, `question`). The
//! driver knows no transport but the one it is given, and no downstream. Rules: A1.1, A2, A12.13, A12.22, A14, B5, B14;
//! architecture section 4, "Session pool".

mod call;
mod gate;
mod level;
mod open;
mod pool;
mod question;
mod session;

pub use open::OpenFault;
pub use pool::Lease;
pub use session::Session;

use super::Shared;
use super::reply::{NoAnswer, Reply};
use crate::exchange::{Call, Fault, Sender};
use crate::translate::request;
use crate::wire::jsonrpc::Notification;
use crate::wire::payload::Payload;
use hyper::HeaderMap;
use std::sync::Arc;

/// One legacy upstream.
pub struct Legacy {
    shared: Arc<Shared>,
    pool: Arc<pool::Pool>,
}

impl Legacy {
    pub(super) fn new(shared: Arc<Shared>) -> Arc<Self> {
        let pool = pool::Pool::new(shared.clone());
        Arc::new(Self { shared, pool })
    }

    /// A session for the call: the one of its key, or a new one.
    pub async fn lease(&self, call: &Call) -> Result<Lease, OpenFault> {
        self.pool.lease(call).await
    }

    /// Runs the call in its session until there is an outcome or nobody waits for it any more.
    pub async fn run(self: Arc<Self>, call: Call, lease: Lease, sender: Sender) {
        call::run(&self, call, lease, sender).await;
    }

    /// Passes a notification of the client on; the server's acceptance is all there is to it.
    pub async fn notify(
        &self,
        lease: &Lease,
        client: &HeaderMap,
        message: &Notification,
    ) -> Result<(), Fault> {
        self.post(lease.session(), client, request::notification_to_legacy(message)).await
    }

    /// Sessions open now.
    pub fn sessions(&self) -> usize {
        self.pool.len()
    }

    /// Ends every session with DELETE; calls still in flight are not waited for.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Sends one message that has no answer, within the time that `initialize` may take.
    async fn post(&self, session: &Session, client: &HeaderMap, message: Payload) -> Result<(), Fault> {
        let head = self.shared.heads.legacy(client, Some(session));
        let limit = self.shared.settings.timeouts.initialize;
        let sent = self.shared.transport.send_within(limit, head, message).await;
        let response = sent.map_err(|error| super::send_fault(&self.shared.settings.name, &error))?;
        match Reply::read(response, self.shared.settings.limits.message_bytes, self.shared.limits).await {
            Reply::Accepted | Reply::Messages(_) => Ok(()),
            Reply::Refused(refusal) => Err(refusal.fault("a notification")),
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
