//! What a channel of messages is to whoever reads and writes it: the seam between `channel` above, and `child` and `old_sse`
//! below.
//!
//! Owns the two directions' interfaces alone. Above it nobody knows of processes and streams, below it nobody knows what a
//! message says, except that it is one text.

use super::body::Body;
use super::error::SendError;
use crate::wire::jsonrpc::Id;
use crate::wire::payload::Payload;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Response};
use std::borrow::Cow;
use std::sync::Arc;

/// Opens channels to one server: starts its process, or connects to its stream.
pub(super) trait Open: Send + Sync {
    /// Opens one. What comes in it goes to `inbox`, at the earliest before this returns. `headers` are what a request of this
    /// caller carries upstream. Bounded in time by itself.
    fn open<'a>(
        &'a self,
        headers: &'a HeaderMap,
        inbox: Arc<dyn Inbox>,
    ) -> BoxFuture<'a, Result<Arc<dyn Pipe>, Trouble>>;

    /// Ends all that is open, and resolves when it is over. Bounded in time by itself.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// One open channel, towards the server. Whoever lets go of it ends it first: what reads it holds it, too, by its inbox.
pub(super) trait Pipe: Send + Sync {
    /// Hands one message over: one text without a line end. Returns once it is in the channel's order, which is the order of
    /// these calls; waits where the server does not read. `headers` as in [`Open::open`]. Dropped half-way, it either has been
    /// handed over in full or not at all.
    fn send<'a>(&'a self, text: Payload, headers: &'a HeaderMap) -> BoxFuture<'a, Result<(), Trouble>>;

    /// Hands one message over without waiting: `false`, and it is not, where there is no room for it just now, or the channel
    /// is over.
    fn offer(&self, text: Payload, headers: &HeaderMap) -> bool;

    /// Ends the channel: politely, then by force. Returns at once; the inbox hears when it is over.
    fn end(&self);
}

/// Why something was not taken.
pub(super) enum Trouble {
    Send(SendError),
    /// The server's own refusal, which is the caller's answer.
    Refused(Box<Response<Body>>),
}

impl From<SendError> for Trouble {
    fn from(error: SendError) -> Self {
        Trouble::Send(error)
    }
}

/// Where what comes goes. None of these waits: who reads a server's output never stops.
pub(super) trait Inbox: Send + Sync {
    /// One text that may be a message.
    fn text(&self, text: Bytes);

    /// One that was longer than `limits.message_bytes`, and is gone; the id in it, if it could be found.
    fn too_long(&self, id: Option<Id>);

    /// It is over, in words for the log. Said once; nothing comes after it.
    fn ended(&self, why: Cow<'static, str>);
}
