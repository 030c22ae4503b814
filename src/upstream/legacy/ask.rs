//! Requests that the proxy itself makes in a session, and how their answers are awaited.
//!
//! Owns sending one and reading up to its answer: changes that come beside it are told to listeners, what the server asks
//! beside it is no less a question than on its GET stream (`question`). Does not own what an answer means (`level`, `feed`, `lookup`).
//! Rules: A1.2, A2.5, A14.2.

use super::super::reply::Reply;
use super::gate::{self, Gate};
use super::{Legacy, Session};
use crate::exchange::Principal;
use crate::translate::listen::Notice;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{Message, Reply as RpcReply, Response};
use crate::wire::payload::Payload;
use hyper::HeaderMap;
use std::sync::Arc;
use tokio::time::timeout;

/// How a request of our own ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    /// The server refused it, or did not answer in time or at all.
    Refused,
    /// The session is gone, or the server is one of the other era now.
    Lost,
}

/// In whose name it is made.
pub(super) struct Asker<'a> {
    pub(super) legacy: &'a Arc<Legacy>,
    pub(super) session: &'a Arc<Session>,
    pub(super) principal: Principal,
    /// The client's, for its credential.
    pub(super) headers: &'a HeaderMap,
}

impl Asker<'_> {
    /// Sends the request that was written under `number`; bounded by the time that `initialize` may take.
    pub(super) async fn ask(&self, number: u64, message: Payload) -> Answer {
        match self.ask_for(number, message, self.legacy.shared.limits).await {
            Ok(_) => Answer::Done,
            Err(answer) => answer,
        }
    }

    /// As [`ask`](Self::ask), for the result. `Err` is never `Done`.
    pub(super) async fn ask_for(
        &self,
        number: u64,
        message: Payload,
        limits: Limits,
    ) -> Result<Response, Answer> {
        let limit = self.legacy.shared.settings.timeouts.initialize;
        timeout(limit, self.exchange(number, message, limits)).await.unwrap_or(Err(Answer::Refused))
    }

    /// Whether a plain POST finds the session gone too: a server may answer 404 to one thing alone (C08).
    pub(super) async fn finds_it_gone(&self) -> bool {
        let number = self.legacy.shared.next_number();
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#);
        self.ask(number, Payload::from(ping)).await == Answer::Lost
    }

    async fn exchange(&self, number: u64, message: Payload, limits: Limits) -> Result<Response, Answer> {
        let shared = &self.legacy.shared;
        let head = shared.heads.legacy(self.headers, Some(self.session));
        let response = match shared.transport.send(head, message).await {
            Ok(response) => response,
            Err(error) => {
                tracing::debug!(upstream = %shared.settings.name, %error, "a request of the proxy's own failed");
                return Err(Answer::Refused);
            }
        };
        let mut messages = match Reply::read(response, shared.settings.limits.message_bytes, limits).await {
            Reply::Messages(messages) => messages.awaiting(number),
            Reply::Accepted => return Err(Answer::Refused),
            Reply::Refused(refusal) => {
                let gate = gate::judge(&refusal, Some(number), self.session.id.is_some());
                return Err(match gate {
                    Gate::Lost | Gate::OtherEra => Answer::Lost,
                    Gate::Answer | Gate::Refused => Answer::Refused,
                });
            }
        };
        while let Ok(Some(message)) = messages.next().await {
            match message {
                Message::Response(response) if response.answers(number) || response.id.is_none() => {
                    return match &response.reply {
                        RpcReply::Result(_) => Ok(response),
                        RpcReply::Error(_) if gate::not_initialized(&response) => Err(Answer::Lost),
                        RpcReply::Error(_) => Err(Answer::Refused),
                    };
                }
                Message::Request(asked) => {
                    // Bounded with the whole exchange.
                    if let Some(answer) = self.asked_beside(&asked) {
                        self.answer(answer).await;
                    }
                }
                Message::Notification(notification) => {
                    self.session.server_tells(&notification);
                    if let Some(notice) = Notice::of(notification) {
                        self.legacy.listeners.tell(self.principal, notice);
                    }
                }
                Message::Response(_) => {}
            }
        }
        Err(Answer::Refused)
    }
}
