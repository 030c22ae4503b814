//! The vocabulary that both edges share and that belongs to neither era: a call, its events, its one outcome.
//!
//! Owns [`Call`], [`Event`], [`Outcome`], [`Fault`] and the [`channel`] between the edge that serves the client and
//! the driver that talks to the server. Does not know HTTP statuses or either era's spelling of an error.

mod call;
mod channel;
mod fault;

pub use call::{Binding, Call, Principal};
pub use channel::{Receiver, Sender, Step, Watcher, channel};
pub use fault::{Fault, FaultKind, LOST};

use crate::wire::jsonrpc::Response;
use crate::wire::payload::Payload;
use hyper::header::HeaderValue;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Something that happens before the outcome.
#[derive(Debug)]
pub enum Event {
    /// `notifications/progress` of this call, as the caller is to see it.
    Progress(Payload),
    /// `notifications/message` of this call, as the caller is to see it.
    Log(Payload),
    /// What a subscription tells: its acknowledgement, then changes.
    Changed(Payload),
    /// A notification that neither era's registry has (A2.11).
    Custom(Payload),
    /// The server asks the caller something in the middle of the call (B2.2).
    Ask(Ask),
    /// The answer to what was asked under this id is waited for no more; the notification that says so.
    Withdrawn(u64, Payload),
}

impl Event {
    /// The whole JSON-RPC message.
    pub fn message(&self) -> &Payload {
        match self {
            Event::Progress(message)
            | Event::Log(message)
            | Event::Changed(message)
            | Event::Custom(message)
            | Event::Ask(Ask { message, .. })
            | Event::Withdrawn(_, message) => message,
        }
    }
}

/// A request to a legacy client, on the stream of its own call.
#[derive(Debug)]
pub struct Ask {
    /// What the client answers under; unique in the process, and unlike those of an earlier one.
    pub id: u64,
    /// The whole request.
    pub message: Payload,
    /// Takes the client's answer. Dropped where none can come.
    pub answer: oneshot::Sender<Reply>,
}

/// A client's answer to what it was asked.
#[derive(Debug)]
pub struct Reply {
    pub response: Response,
    /// The credential that it came with, which is the newest of its caller.
    pub authorization: Option<HeaderValue>,
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome {
    /// The server's result: a whole JSON-RPC message under the caller's id.
    Result(Payload),
    /// The server's result has gone through the channel in pieces, and all of it was good. Any other outcome after a
    /// piece means that the result broke off.
    Flowed,
    /// The server asks the client: a whole `input_required` result under the caller's id. The call itself goes on, parked,
    /// and another request of the client takes it up again.
    InputRequired(Payload),
    /// The server's own error: a whole JSON-RPC message under the caller's id.
    Error(Payload),
    /// The server's own error that says it does not have the method (-32601); likewise whole.
    Unimplemented(Payload),
    /// The call ended here or on the way.
    Fault(Fault),
    /// The upstream seems to be of the other era than was thought and has run nothing: look again.
    Replan(Box<Replan>),
}

/// A call that its driver gives back.
#[derive(Debug)]
pub struct Replan {
    pub call: Arc<Call>,
    /// How it ended if the upstream's era is what it was.
    pub otherwise: Outcome,
}
