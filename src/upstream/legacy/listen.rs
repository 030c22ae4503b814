//! One `subscriptions/listen` request at a legacy server, from its acknowledgement to its end.
//!
//! Owns what is promised to the client (what it asked for, as far as the server offers it and has a stream to tell it on)
//! and the listener's own tagged copy of each change. Does not own the client's stream (`relay::listen`).
//! Rules: A1.9, A3.10, B9; vectors D95-D98; case C48.

use super::Legacy;
use super::feed::Member;
use super::listeners::{Listener, Presence};
use super::pool::Lease;
use crate::exchange::Call;
use crate::translate::listen::{self, Filter};
use crate::wire::jsonrpc::Id;
use crate::wire::payload::Payload;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// A client that listens. Dropping it takes back what was subscribed for it alone.
pub struct Listening {
    id: Id,
    server_info: Bytes,
    listener: Arc<Listener>,
    /// `None` where the server has nothing to tell it.
    member: Option<Member>,
    /// How long it waits for what it can be promised.
    patience: Duration,
    _presence: Presence,
}

impl Legacy {
    /// Begins to listen in the session; `waiting` bounds the listener's queue.
    pub fn listen(self: &Arc<Self>, call: &Call, lease: Lease, wanted: Filter, waiting: usize) -> Listening {
        let initialized = &lease.session().initialized;
        let offered = wanted.offered_by(initialized, self.shared.limits);
        let server_info = initialized.server_info.clone();
        let (listener, presence) = self.listeners.listen(call.principal, wanted, waiting);
        let member = (!offered.is_empty()).then(|| self.feeds.join(self, call, lease, &listener, offered));
        let patience = self.shared.settings.timeouts.initialize;
        Listening { id: call.id().clone(), server_info, listener, member, patience, _presence: presence }
    }
}

impl Listening {
    /// Waits until it is known what can be told, and promises that.
    pub async fn acknowledged(&mut self) -> Payload {
        let honoured = match &mut self.member {
            Some(member) => member.honoured(self.patience).await,
            None => Filter::default(),
        };
        self.promise(honoured)
    }

    /// Promises nothing, for a subscription that ends before it is known what could be told: the acknowledgement comes
    /// first all the same (B9.1).
    pub fn acknowledged_without(&mut self) -> Payload {
        self.promise(Filter::default())
    }

    fn promise(&mut self, honoured: Filter) -> Payload {
        if honoured.is_empty() {
            self.member = None;
        }
        self.listener.promise(honoured.clone());
        if let Some(member) = &self.member {
            member.promised();
        }
        listen::acknowledged(&self.id, &honoured)
    }

    /// The next change under the listener's own id; `None` when the server can tell nothing any more. Whoever stops
    /// waiting loses nothing.
    pub async fn next(&self) -> Option<Payload> {
        Some(self.listener.next().await?.tagged(&self.id))
    }

    /// The message that ends it.
    pub fn ended(&self) -> Payload {
        listen::ended(&self.id, &self.server_info)
    }
}
