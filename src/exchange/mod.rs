//! The vocabulary that both edges share and that belongs to neither era: a call, its events, its one outcome.
//!
//! Owns [`Call`], [`Event`], [`Outcome`], [`Fault`] and the [`channel`] between the edge that serves the client and
//! the driver that talks to the server. Does not know HTTP statuses or either era's spelling of an error.

mod call;
mod channel;
mod fault;

pub use call::{Call, Principal};
pub use channel::{Receiver, Sender, Step, channel};
pub use fault::{Fault, FaultKind};

use crate::wire::payload::Payload;

/// Something that happens before the outcome.
#[derive(Debug)]
pub enum Event {
    /// `notifications/progress` of this call, as the caller is to see it.
    Progress(Payload),
    /// `notifications/message` of this call, as the caller is to see it.
    Log(Payload),
    /// A notification that neither era's registry has (A2.11).
    Custom(Payload),
}

impl Event {
    /// The whole JSON-RPC message.
    pub fn message(&self) -> &Payload {
        match self {
            Event::Progress(message) | Event::Log(message) | Event::Custom(message) => message,
        }
    }
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome {
    /// The server's result: a whole JSON-RPC message under the caller's id.
    Result(Payload),
    /// The server's own error: a whole JSON-RPC message under the caller's id, and its code.
    Error(i64, Payload),
    /// The call ended here or on the way.
    Fault(Fault),
    /// The upstream is of the other era than was thought and has run nothing: plan the call anew.
    Replan(Box<Call>),
}
