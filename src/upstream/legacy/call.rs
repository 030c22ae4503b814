//! One call in a session, from the first byte sent to its one outcome.
//!
//! Owns sending it at most once unless the server proved that it did not run it (invariant 3), reading what comes on its
//! stream, taking the stream up again when the server closes it early (D104), and its cancellation (A12.19, B14). Does
//! not own the session, which it leases and gives back.

use super::super::reply::{Break, Messages, Refusal, Reply};
use super::gate::{self, Gate};
use super::pool::Lease;
use super::{Legacy, level, question};
use crate::exchange::{Call, Event, Fault, FaultKind, Outcome, Sender};
use crate::translate::declared::{self, LogLevel, Question};
use crate::translate::notify::{self, Kind, Progress};
use crate::translate::{error, request, result};
use crate::wire::jsonrpc::{Message, Notification, Reply as RpcReply, Response, code};
use crate::wire::payload::Payload;
use bytes::Bytes;
use hyper::header::HeaderValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout_at};

/// Pause before a stream is taken up again where the server names none, and the longest one it may name.
const RESUME_AFTER: Duration = Duration::from_secs(1);
const RESUME_AFTER_MOST: Duration = Duration::from_secs(30);

/// What has been sent for the call, for its cancellation.
struct Sent {
    lease: Lease,
    /// The number it was sent under last; `None` while nothing is on its way.
    number: Option<u64>,
    /// The call ends here though the server still works on it.
    abandoned: bool,
}

/// What the caller wants to see on the way.
struct Wants {
    token: Option<Bytes>,
    log: Option<LogLevel>,
}

/// Why an attempt gave no outcome.
enum Trouble {
    Lost,
    OtherEra,
    Fault(Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}

pub(super) async fn run(legacy: &Arc<Legacy>, call: Call, lease: Lease, sender: Sender) {
    let mut sent = Sent { lease, number: None, abandoned: false };
    let end = tokio::select! {
        biased;
        () = sender.cancelled() => None,
        outcome = timeout_at(call.deadline, attempts(legacy, &call, &sender, &mut sent)) => Some(outcome),
    };
    let reason = match end {
        None => "the client closed its request",
        Some(Ok(outcome)) => {
            sender.finish(outcome);
            if !sent.abandoned {
                return;
            }
            "the proxy has given up on the call"
        }
        Some(Err(_)) => {
            let text = "the upstream server did not answer in time";
            sender.finish(Outcome::Fault(Fault::new(FaultKind::Timeout, text)));
            "timed out"
        }
    };
    cancel(legacy, &call, &sent, reason).await;
}

/// Tells the server that nobody waits any more; a bare disconnect means nothing to it (A12.19).
async fn cancel(legacy: &Arc<Legacy>, call: &Call, sent: &Sent, reason: &'static str) {
    let Some(number) = sent.number else { return };
    let message = Payload::from(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{number},"reason":"{reason}"}}}}"#
    ));
    if let Err(fault) = legacy.post(sent.lease.session(), &call.headers, message).await {
        tracing::debug!(upstream = %legacy.shared.settings.name, %fault, "a cancellation did not reach the upstream server");
    }
}

async fn attempts(legacy: &Arc<Legacy>, call: &Call, sender: &Sender, sent: &mut Sent) -> Outcome {
    let wants = Wants {
        token: declared::progress_token(&call.request).map(Bytes::copy_from_slice),
        log: declared::log_level(&call.request),
    };
    let mut renewed = false;
    loop {
        match attempt(legacy, call, &wants, sender, sent).await {
            Ok(outcome) => return outcome,
            Err(Trouble::Fault(fault)) => {
                sent.abandoned = true;
                return Outcome::Fault(fault);
            }
            Err(Trouble::OtherEra) => {
                sent.number = None;
                return Outcome::Replan(Box::new(call.clone()));
            }
            Err(Trouble::Lost) => {}
        }
        // The server has refused it at the gate, so there is nothing to cancel.
        sent.number = None;
        legacy.pool.lost(&sent.lease);
        if renewed {
            return Outcome::Fault(Fault::bad_gateway(
                "the upstream server lost the session again right after a new one",
            ));
        }
        renewed = true;
        match legacy.lease(call).await {
            Ok(lease) => sent.lease = lease,
            Err(open) if open.modern => return Outcome::Replan(Box::new(call.clone())),
            Err(open) => return Outcome::Fault(open.fault),
        }
    }
}

async fn attempt(
    legacy: &Arc<Legacy>,
    call: &Call,
    wants: &Wants,
    sender: &Sender,
    sent: &mut Sent,
) -> Result<Outcome, Trouble> {
    let shared = &legacy.shared;
    let session = sent.lease.session().clone();
    if let Some(level) = wants.log {
        level::at_least(legacy, call, &session, level).await;
    }
    let number = session.next_number();
    let body = request::to_legacy(&call.request, call.method, session.initialized.revision, number);
    let head = shared.heads.legacy(&call.headers, Some(&session));
    sent.number = Some(number);
    let response = match shared.transport.send(head, body).await {
        Ok(response) => response,
        Err(error) => {
            if error.did_not_run() {
                sent.number = None;
            }
            return Err(super::super::send_fault(&shared.settings.name, &error).into());
        }
    };
    let mut stream = Stream { legacy, call, wants, sender, number, progress: Progress::default(), sent };
    match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
        Reply::Messages(messages) => stream.follow(messages).await,
        Reply::Accepted => {
            Err(Fault::bad_gateway("the upstream server accepted the request without answering it").into())
        }
        Reply::Refused(refusal) => match gate::judge(&refusal, number, session.id.is_some()) {
            Gate::Lost => Err(Trouble::Lost),
            Gate::OtherEra => Err(Trouble::OtherEra),
            Gate::Answer => match &refusal.answer {
                Some(answer) => stream.outcome(answer),
                None => Err(refused(&refusal, stream.sent)),
            },
            Gate::Refused => Err(refused(&refusal, stream.sent)),
        },
    }
}

/// A refusal ends the call at the server too, so there is nothing to cancel.
fn refused(refusal: &Refusal, sent: &mut Sent) -> Trouble {
    sent.number = None;
    Trouble::Fault(refusal.fault("the request"))
}

/// The call while its answer is awaited.
struct Stream<'a> {
    legacy: &'a Arc<Legacy>,
    call: &'a Call,
    wants: &'a Wants,
    sender: &'a Sender,
    number: u64,
    progress: Progress,
    sent: &'a mut Sent,
}

impl Stream<'_> {
    async fn follow(&mut self, mut messages: Messages) -> Result<Outcome, Trouble> {
        let most = self.legacy.shared.settings.limits.resumptions;
        let mut left = most;
        loop {
            let ended = match messages.next().await {
                Ok(Some(message)) => {
                    if let Some(outcome) = self.message(message).await? {
                        return Ok(outcome);
                    }
                    continue;
                }
                Ok(None) => None,
                Err(broken) => Some(broken),
            };
            let resumption = match ended {
                None | Some(Break::Body) => messages.resumption(),
                Some(_) => None,
            };
            let Some((last_event, retry)) = resumption else {
                return Err(ended.map_or_else(no_answer, Fault::from).into());
            };
            left = if messages.moved() { most } else { left };
            left = left.checked_sub(1).ok_or_else(no_answer)?;
            messages = self.resume(last_event, retry).await?;
        }
    }

    /// Takes the stream up after `last_event`; polling by GET is how a 2025-11-25 server saves connections (D104).
    async fn resume(&self, last_event: Bytes, retry: Option<Duration>) -> Result<Messages, Trouble> {
        let shared = &self.legacy.shared;
        let last_event = HeaderValue::from_maybe_shared(last_event).map_err(|_| no_answer())?;
        sleep(retry.unwrap_or(RESUME_AFTER).min(RESUME_AFTER_MOST)).await;
        let head = shared.heads.resume(&self.call.headers, self.sent.lease.session(), last_event);
        let sent = shared.transport.send(head, Payload::default()).await;
        let response = sent.map_err(|error| super::super::send_fault(&shared.settings.name, &error))?;
        match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
            Reply::Messages(mut messages) => {
                messages.retry_hint(retry);
                Ok(messages)
            }
            Reply::Accepted | Reply::Refused(_) => Err(no_answer().into()),
        }
    }

    async fn message(&mut self, message: Message) -> Result<Option<Outcome>, Trouble> {
        match message {
            Message::Response(response) if response.answers(self.number) => self.outcome(&response).map(Some),
            // An error without an id on the stream of the one call is that call's: the server could not tell the id.
            Message::Response(response) if response.id.is_none() => self.outcome(&response).map(Some),
            Message::Response(_) => {
                tracing::debug!("an answer to another request on the stream of a call is passed over");
                Ok(None)
            }
            Message::Notification(notification) => {
                if let Some(event) = self.event(&notification) {
                    self.sender.event(event).await;
                }
                Ok(None)
            }
            Message::Request(asked) => {
                let can_ask = self.call.method.can_ask();
                let answer = question::answer(&asked, &self.call.request, can_ask, self.legacy.shared.limits);
                self.reply(answer.message);
                let Some(fault) = answer.ends else { return Ok(None) };
                tracing::info!(
                    upstream = %self.legacy.shared.settings.name,
                    asked = %asked.method.chars().take(64).collect::<String>(),
                    "a server's question was refused"
                );
                self.sent.abandoned = true;
                Ok(Some(Outcome::Fault(fault)))
            }
        }
    }

    /// Posts an answer to the server beside the stream, which must not wait for it.
    fn reply(&self, message: Payload) {
        let legacy = self.legacy.clone();
        let (session, headers) = (self.sent.lease.session().clone(), self.call.headers.clone());
        drop(self.legacy.shared.shutdown.spawn(async move {
            if let Err(fault) = legacy.post(&session, &headers, message).await {
                tracing::debug!(%fault, "an answer did not reach the upstream server");
            }
        }));
    }

    fn event(&mut self, notification: &Notification) -> Option<Event> {
        match Kind::of(&notification.method) {
            Kind::Progress => {
                let token = self.wants.token.as_ref()?;
                self.progress.to_modern(notification, self.number, token).map(Event::Progress)
            }
            Kind::Log => notify::log_to_modern(notification, self.wants.log).map(Event::Log),
            Kind::Custom => Some(Event::Custom(notify::custom_to_modern(notification))),
            Kind::Changed | Kind::LegacyOnly => {
                tracing::debug!(method = %notification.method, "not for the stream of a call");
                None
            }
        }
    }

    fn outcome(&mut self, response: &Response) -> Result<Outcome, Trouble> {
        self.sent.number = None;
        let shared = &self.legacy.shared;
        let session = self.sent.lease.session();
        match &response.reply {
            RpcReply::Result(body) => {
                result::readable(&response.text, body, self.call.method)
                    .map_err(|fault| Fault::bad_gateway(fault.to_string()))?;
                let info = &session.initialized.server_info;
                let id = self.call.id();
                let translated = result::to_modern(response, body, self.call.method, id, info, shared.limits);
                for finding in &translated.findings {
                    tracing::warn!(upstream = %shared.settings.name, tool = %finding.tool, "{}", finding.kind);
                }
                Ok(Outcome::Result(translated.message))
            }
            RpcReply::Error(_) if gate::no_session(response, self.number, session.id.is_some()) => {
                Err(Trouble::Lost)
            }
            RpcReply::Error(error)
                if error.code == code::URL_ELICITATION_REQUIRED && self.call.method.can_ask() =>
            {
                // A11.7: the modern form of this error is a question, which is not carried yet.
                Ok(Outcome::Fault(question::fault(
                    Question::UrlElicitation,
                    &self.call.request,
                    shared.limits,
                )))
            }
            RpcReply::Error(error) => {
                let (code, message) =
                    error::to_modern(response, error, &self.call.request, self.call.method, shared.limits);
                Ok(Outcome::Error(code, message))
            }
        }
    }
}

fn no_answer() -> Fault {
    Fault::bad_gateway("the upstream server ended its answer without the result")
}
