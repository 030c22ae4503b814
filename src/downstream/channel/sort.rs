//! What a text of the client is.
//!
//! Owns the kinds of texts that are handled differently, and what is said of a text that is no message. Era: `client`, with
//! no header to go by. Rules: A2.2, A11.1, A11.2, A11.15, A14.1; cases C21, C31, C53.

use super::{Brought, Channel, Inbound};
use crate::downstream::client;
use crate::translate::notify;
use crate::wire::jsonrpc::{self, Fault, Id, Malformed, Message, Notification, Request, code};
use crate::wire::version::{Era, LegacyRevision};
use bytes::Bytes;
use hyper::HeaderMap;

/// A text, and what it has brought.
pub(super) struct Item {
    pub(super) what: What,
    pub(super) brought: Brought,
}

impl Item {
    /// Nothing that the client sent.
    pub(super) fn own(what: What) -> Self {
        Self { what, brought: Brought::default() }
    }
}

#[allow(clippy::large_enum_variant, reason = "made once and taken apart at once")]
pub(super) enum What {
    Modern(Request),
    ModernNotice(Notification),
    Initialize(Request),
    Legacy(Request),
    LegacyNotice(Notification),
    /// The client's answer to what the server has asked.
    Answer(Bytes),
    /// The raw id of the request that is to stop.
    Cancel {
        raw: Bytes,
        text: Bytes,
    },
    Array(Bytes),
    /// It is answered here.
    Say(Bytes),
    /// It comes to nothing.
    Nothing,
}

impl What {
    /// The id of a request.
    pub(super) fn id(&self) -> Option<&Id> {
        match self {
            What::Modern(request) | What::Initialize(request) | What::Legacy(request) => Some(&request.id),
            What::ModernNotice(_)
            | What::LegacyNotice(_)
            | What::Answer(_)
            | What::Cancel { .. }
            | What::Array(_)
            | What::Say(_)
            | What::Nothing => None,
        }
    }

    /// Whether it takes a place among the requests that run.
    pub(super) fn takes_a_place(&self) -> bool {
        match self {
            What::Modern(_) | What::Initialize(_) | What::Legacy(_) | What::Array(_) => true,
            What::ModernNotice(_)
            | What::LegacyNotice(_)
            | What::Answer(_)
            | What::Cancel { .. }
            | What::Say(_)
            | What::Nothing => false,
        }
    }
}

impl Channel {
    pub(super) fn sort(&self, inbound: Inbound) -> Item {
        match inbound {
            Inbound::Text { text, brought } => Item { what: self.what(text), brought },
            Inbound::TooLong(id) => {
                let limit = self.inner().limits.body_bytes;
                let told = format!("the message is larger than {limit} bytes (limits.body_bytes)");
                Item::own(self.refused(id, code::INVALID_REQUEST, &told))
            }
        }
    }

    fn what(&self, text: Bytes) -> What {
        let message = jsonrpc::parse(text.clone(), self.json_limits());
        let era = client::era(&HeaderMap::new(), &message);
        match message {
            Ok(Message::Request(request)) => match era {
                Era::Modern => What::Modern(request),
                Era::Legacy if request.method == "initialize" => What::Initialize(request),
                // Also before there is a session (A1.2).
                Era::Legacy if request.method == "ping" && self.sessions.current().is_none() => {
                    What::Say(pong(&request.id))
                }
                Era::Legacy => What::Legacy(request),
            },
            Ok(Message::Notification(told)) => self.notice(told, era),
            Ok(Message::Response(_)) if self.sessions.are_wanted() => What::Answer(text),
            Ok(Message::Response(_)) => {
                tracing::debug!("an answer of a client that was asked nothing is passed over");
                What::Nothing
            }
            Err(Malformed { fault: Fault::Batch, .. }) => What::Array(text),
            Err(Malformed { fault, id }) => self.refused(id, fault.code(), &fault.to_string()),
        }
    }

    fn notice(&self, told: Notification, era: Era) -> What {
        if told.method == "notifications/cancelled" {
            let id = told.params.body().and_then(|body| body.object.first(&told.text, "requestId"));
            return match id {
                Some(span) => {
                    let raw = Bytes::copy_from_slice(span.of(&told.text));
                    What::Cancel { raw, text: told.text }
                }
                None if era == Era::Legacy && self.sessions.are_wanted() => What::LegacyNotice(told),
                None => What::Nothing,
            };
        }
        match era {
            Era::Legacy if self.sessions.are_wanted() => What::LegacyNotice(told),
            // A modern client's notification need not claim anything.
            Era::Legacy if notify::Kind::of(&told.method) == notify::Kind::Custom => What::ModernNotice(told),
            Era::Modern => What::ModernNotice(told),
            Era::Legacy => {
                tracing::debug!(method = %told.method, "a notification outside any session is passed over");
                What::Nothing
            }
        }
    }

    /// What is said of a text that is not taken: under its id, unless that would be taken for the answer to another.
    pub(super) fn refused(&self, id: Option<Id>, code: i64, told: &str) -> What {
        match id.filter(|id| !self.flying.is_awaited(id)) {
            Some(id) => What::Say(jsonrpc::error(Some(&id), code, told, None)),
            None => self.nameless(code, told),
        }
    }

    /// An error under no id, where the revision has such a thing: 2025-06-18 and older have none (A11.15).
    pub(super) fn nameless(&self, code: i64, told: &str) -> What {
        let revision = self.sessions.current().and_then(|session| session.revision);
        if revision.is_some_and(|revision| revision < LegacyRevision::V2025_11_25) {
            tracing::warn!(told, "a text of the client is no message, which it cannot be told");
            return What::Nothing;
        }
        tracing::debug!(told, "a text of the client is no message");
        What::Say(jsonrpc::error(None, code, told, None))
    }
}

fn pong(id: &Id) -> Bytes {
    let mut answer = Vec::with_capacity(48);
    answer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    answer.extend_from_slice(id.raw());
    answer.extend_from_slice(b",\"result\":{}}");
    answer.into()
}
