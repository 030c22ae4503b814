//! One call in a session, from the first byte sent to its one outcome.
//!
//! Owns sending it at most once unless the server proved that it did not run it (invariant 3), reading what comes on its
//! stream, taking the stream up again when the server closes it early (D104), and its cancellation (A12.19, B14). Does
//! not own the session, which it leases and gives back.

use super::super::reply::{Arrival, Break, Messages, Refusal, Reply};
use super::ask::Asker;
use super::at_work::{AtWork, Sent};
use super::backoff::Backoff;
use super::gate::{self, Gate};
use super::pool::Lease;
use super::wants::{Aside, Wants};
use super::{Legacy, level, question};
use crate::exchange::{Call, Event, Fault, FaultKind, Outcome, Replan, Sender};
use crate::telemetry::metrics::{UpstreamLimit, Waiting};
use crate::translate::flow::Plan;
use crate::translate::listen::Notice;
use crate::translate::notify::{self, Kind, Progress};
use crate::translate::question::Kind as Question;
use crate::translate::tools::Finding;
use crate::translate::{error, request, result};
use crate::wire::jsonrpc::{Message, Notification, Reply as RpcReply, Response, code};
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use crate::wire::version::Era;
use bytes::Bytes;
use hyper::header::HeaderValue;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{sleep, sleep_until};

/// Answers to a server's requests that may be on their way at once for one call; a server that asks faster waits.
const REPLIES: usize = 8;

/// Why an attempt gave no outcome.
enum Trouble {
    Lost,
    /// How the call ended if it turns out that the era is what it was.
    OtherEra(Outcome),
    Fault(Fault),
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Fault(fault)
    }
}

pub(super) async fn run(legacy: Arc<Legacy>, call: Arc<Call>, lease: Lease, sender: Sender) {
    let mut at_work = AtWork::new(&legacy, &call, lease);
    let Some(sent) = &mut at_work.sent else { return };
    // Looked at afterwards, so by a reference that ends before.
    let end = {
        let work = pin!(attempts(&legacy, &call, &sender, sent));
        tokio::select! {
            biased;
            () = sender.cancelled() => return,
            outcome = work => Some(outcome),
            () = sleep_until(call.deadline) => None,
        }
    };
    match end {
        Some(outcome) => {
            at_work.reason = "the proxy has given up on the call";
            at_work.sent.take_if(|sent| !sent.abandoned);
            sender.finish(outcome);
        }
        None => {
            at_work.reason = "timed out";
            let text = "the upstream server did not answer in time";
            sender.finish(Outcome::Fault(Fault::new(FaultKind::Timeout, text)));
        }
    }
}

async fn attempts(legacy: &Arc<Legacy>, call: &Arc<Call>, sender: &Sender, sent: &mut Sent) -> Outcome {
    let wants = Wants::of(&call.request);
    let mut renewed = false;
    loop {
        match attempt(legacy, call, &wants, sender, sent).await {
            Ok(outcome) => return outcome,
            Err(Trouble::Fault(fault)) => {
                sent.abandoned = true;
                return Outcome::Fault(fault);
            }
            Err(Trouble::OtherEra(otherwise)) => {
                sent.number = None;
                return Outcome::Replan(Box::new(Replan { call: call.clone(), otherwise }));
            }
            Err(Trouble::Lost) => {}
        }
        // The server has refused it at the gate, so there is nothing to cancel.
        sent.number = None;
        legacy.pool.lost(&mut sent.lease);
        if renewed {
            return Outcome::Fault(Fault::bad_gateway(
                "the upstream server lost the session again right after a new one",
            ));
        }
        renewed = true;
        match Box::pin(legacy.lease(call)).await {
            Ok(lease) => {
                sent.lease = lease;
                legacy.shared.metrics.call_resent();
            }
            Err(open) if open.refused => {
                let otherwise = Outcome::Fault(open.fault);
                return Outcome::Replan(Box::new(Replan { call: call.clone(), otherwise }));
            }
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
    let number = shared.next_number();
    let aside = wants.aside(&session, number);
    if wants.log.is_some() {
        let asker = Asker { legacy, session: &session, principal: call.principal, headers: &call.headers };
        Box::pin(level::settle(&asker)).await;
    }
    let body = request::to_legacy(&call.request, call.method, session.initialized.revision, number);
    let head = || shared.heads.legacy(&call.headers, Some(&session));
    sent.number = Some(number);
    let waiting = Some(call.meter.sent(Era::Legacy));
    let response = match shared.transport.send_due(&head, body).await {
        Ok(response) => response,
        Err(error) => {
            if error.did_not_run() {
                sent.number = None;
            }
            return Err(super::super::send_fault(&shared.settings.name, &error).into());
        }
    };
    let mut stream = Stream {
        legacy,
        call,
        wants,
        sender,
        number,
        progress: Progress::default(),
        aside,
        sent,
        heard: false,
        waiting,
        replies: Arc::new(Semaphore::new(REPLIES)),
    };
    match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
        Reply::Messages(messages) => {
            let messages = stream.passing(messages.awaiting(number));
            stream.follow(messages).await
        }
        Reply::Accepted => {
            Err(Fault::bad_gateway("the upstream server accepted the request without answering it").into())
        }
        Reply::Refused(refusal) => stream.refused(refusal, session.id.is_some()),
    }
}

/// The call while its answer is awaited.
struct Stream<'a> {
    legacy: &'a Arc<Legacy>,
    call: &'a Call,
    wants: &'a Wants,
    sender: &'a Sender,
    number: u64,
    progress: Progress,
    /// `None` for a call that wants no notifications.
    aside: Option<Aside>,
    sent: &'a mut Sent,
    /// Something has come for the call, so the server has begun to run it.
    heard: bool,
    replies: Arc<Semaphore>,
    /// Until the first answer.
    waiting: Option<Waiting>,
}

impl Stream<'_> {
    /// A refusal ends the call at the server too, so there is nothing to cancel.
    fn refused(&mut self, refusal: Refusal, has_session: bool) -> Result<Outcome, Trouble> {
        self.sent.number = None;
        self.waiting.take().into_iter().for_each(Waiting::answered);
        let gate = gate::judge(&refusal, Some(self.number), has_session);
        match (gate, &refusal.answer) {
            (Gate::Lost, _) => Err(Trouble::Lost),
            (Gate::OtherEra, Some(answer)) => Err(Trouble::OtherEra(self.spell(answer))),
            (Gate::Answer, Some(answer)) => Ok(match self.spell(answer) {
                // With the status of an error the server speaks of the method, not of a tool (A12.22).
                Outcome::Error(message) if refusal.code() == Some(code::METHOD_NOT_FOUND) => {
                    Outcome::Unimplemented(message)
                }
                outcome => outcome,
            }),
            (Gate::OtherEra | Gate::Answer, None) | (Gate::Refused, _) => {
                Err(refusal.fault("the request").into())
            }
        }
    }

    async fn follow(&mut self, mut messages: Messages) -> Result<Outcome, Trouble> {
        let most = self.legacy.shared.settings.limits.resumptions;
        let mut left = most;
        // Kept over streams: an event id holds until another comes.
        let mut last_event = None;
        loop {
            let ended = match self.next(&mut messages).await {
                Ok(Some(Arrival::Flow)) => return self.flow(messages).await,
                Ok(Some(Arrival::Message(message))) => {
                    if let Some(outcome) = self.message(message).await? {
                        return Ok(outcome);
                    }
                    continue;
                }
                Ok(None) => None,
                Err(broken) => Some(self.legacy.shared.broken(broken)),
            };
            if matches!(ended, None | Some(Break::Body)) {
                last_event = messages.resumption().or(last_event);
            } else {
                last_event = None;
            }
            left = if messages.moved() { most } else { left };
            messages = loop {
                let Some((id, retry)) = &last_event else {
                    return Err(ended.map_or_else(no_answer, Fault::from).into());
                };
                left = left.checked_sub(1).ok_or_else(|| {
                    self.legacy.shared.metrics.limit(UpstreamLimit::Resumptions);
                    no_answer()
                })?;
                if let Some(messages) = Box::pin(self.resume(id, *retry)).await? {
                    break messages;
                }
            };
            self.heard = true;
            self.legacy.shared.metrics.stream_resumed();
        }
    }

    /// The next message of the call's own stream; what comes for it elsewhere is passed on meanwhile.
    async fn next(&mut self, messages: &mut Messages) -> Result<Option<Arrival>, Break> {
        let mut next = pin!(messages.arrival());
        loop {
            let Some(aside) = &mut self.aside else { return next.await };
            let notification = tokio::select! {
                biased;
                Some(notification) = aside.from.recv() => notification,
                message = &mut next => return message,
            };
            if let Some(event) = self.event(&notification) {
                self.sender.event(event).await;
            }
        }
    }

    /// Takes the stream up after `last_event`; polling by GET is how a 2025-11-25 server saves connections (D104).
    /// `None`: the server could not be reached just now.
    async fn resume(&self, last_event: &Bytes, retry: Option<Duration>) -> Result<Option<Messages>, Trouble> {
        let shared = &self.legacy.shared;
        let last_event = HeaderValue::from_bytes(last_event).map_err(|_| no_answer())?;
        let timeouts = &shared.settings.timeouts;
        // Always a first pause: a caller waits, and the number of tries is bounded.
        sleep(Backoff::new(timeouts.reconnect, timeouts.reconnect_max).pause(retry)).await;
        let head = shared.heads.stream(&self.call.headers, self.sent.lease.session(), Some(last_event));
        let response = match shared.transport.send(head, Payload::default()).await {
            Ok(response) if response.status().is_server_error() => return Ok(None),
            Ok(response) => response,
            Err(error) => {
                tracing::debug!(upstream = %shared.settings.name, %error, "a stream could not be taken up again");
                return Ok(None);
            }
        };
        match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
            Reply::Messages(mut messages) => {
                messages.retry_hint(retry);
                Ok(Some(self.passing(messages.awaiting(self.number))))
            }
            Reply::Accepted | Reply::Refused(_) => Err(no_answer().into()),
        }
    }

    /// Lets a large result of this call go on while it comes.
    fn passing(&self, messages: Messages) -> Messages {
        let shared = &self.legacy.shared;
        let info = self.sent.lease.session().initialized.server_info.clone();
        let most = shared.settings.limits.message_bytes;
        let id = self.call.id().clone();
        let plan = Plan::new(self.call.method, self.number, id, info, shared.limits, most);
        messages.passing(plan, shared.settings.limits.flow_bytes)
    }

    /// Hands the result on as it comes. Once a piece is out there is no way back: no resuming, no other answer.
    async fn flow(&mut self, mut messages: Messages) -> Result<Outcome, Trouble> {
        self.waiting.take().into_iter().for_each(Waiting::answered);
        let shared = &self.legacy.shared;
        while let Some(piece) =
            messages.piece().await.map_err(|broken| shared.broken(broken)).map_err(Fault::from)?
        {
            self.sender.piece(piece).await;
        }
        self.sent.number = None;
        shared.metrics.result_flowed();
        if self.call.method == Method::ToolsCall && messages.says_error() {
            shared.metrics.tool_error();
        }
        Ok(Outcome::Flowed)
    }

    async fn message(&mut self, message: Message) -> Result<Option<Outcome>, Trouble> {
        let first = !std::mem::replace(&mut self.heard, true);
        self.waiting.take().into_iter().for_each(Waiting::answered);
        match message {
            // An error without an id on the stream of the one call is that call's: the server could not tell the id.
            Message::Response(response)
                if response.answers(self.number)
                    || response.id.is_none() && matches!(response.reply, RpcReply::Error(_)) =>
            {
                if first && gate::not_initialized(&response) {
                    return Err(Trouble::Lost);
                }
                self.outcome(&response).map(Some)
            }
            Message::Response(_) => {
                tracing::debug!("an answer to another request on the stream of a call is passed over");
                Ok(None)
            }
            Message::Notification(notification) => {
                if Kind::of(&notification.method) == Kind::Changed {
                    // Never on a call's own stream (A2.5, D97).
                    if let Some(notice) = Notice::of(notification) {
                        self.legacy.listeners.tell(self.call.principal, notice);
                    }
                } else if let Some(event) = self.event(&notification) {
                    self.sender.event(event).await;
                }
                Ok(None)
            }
            Message::Request(asked) => {
                let can_ask = self.call.method.can_ask();
                let answer = question::answer(&asked, &self.call.request, can_ask, self.legacy.shared.limits);
                Box::pin(self.reply(answer.message)).await;
                let Some(fault) = answer.ends else { return Ok(None) };
                tracing::info!(
                    upstream = %self.legacy.shared.settings.name,
                    asked = ?asked.method.chars().take(64).collect::<String>(),
                    "a server's question was refused"
                );
                self.sent.abandoned = true;
                Ok(Some(Outcome::Fault(fault)))
            }
        }
    }

    /// Posts an answer to the server beside the stream, which must not wait for the server to take it.
    async fn reply(&self, message: Payload) {
        let Ok(place) = self.replies.clone().acquire_owned().await else { return };
        let (legacy, lease) = (self.legacy.clone(), self.sent.lease.beside());
        let headers = self.call.headers.clone();
        drop(self.legacy.shared.shutdown.spawn(async move {
            if let Err(fault) = legacy.post(lease.session(), &headers, message).await {
                tracing::debug!(%fault, "an answer did not reach the upstream server");
            }
            drop((lease, place));
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
        if let RpcReply::Result(body) = &response.reply {
            result::readable(&response.text, body, self.call.method)
                .map_err(|fault| Fault::bad_gateway(fault.to_string()))?;
        }
        Ok(self.spell(response))
    }

    /// The server's answer as the caller is to see it.
    fn spell(&self, response: &Response) -> Outcome {
        let shared = &self.legacy.shared;
        let initialized = &self.sent.lease.session().initialized;
        let method = self.call.method;
        match &response.reply {
            RpcReply::Result(body) => {
                let info = &initialized.server_info;
                let translated =
                    result::to_modern(response, body, method, self.call.id(), info, shared.limits);
                self.report(&translated.findings);
                if method == Method::ToolsCall && result::is_error(&response.text, body) {
                    shared.metrics.tool_error();
                }
                Outcome::Result(translated.message)
            }
            RpcReply::Error(error) if error.code == code::URL_ELICITATION_REQUIRED && method.can_ask() => {
                // A11.7: the modern form of this error is a question, which is not carried yet.
                Outcome::Fault(question::fault(Question::UrlElicitation, &self.call.request, shared.limits))
            }
            RpcReply::Error(error) => {
                let (code, message) =
                    error::to_modern(response, error, &self.call.request, method, shared.limits);
                // A server that has tools, but not this one, does have the method (B11).
                let implemented = method.can_ask() && initialized.has(method.capability(), shared.limits);
                if code == code::METHOD_NOT_FOUND && !implemented {
                    Outcome::Unimplemented(message)
                } else {
                    Outcome::Error(message)
                }
            }
        }
    }

    /// One line a list, however many its tools are.
    fn report(&self, findings: &[Finding]) {
        let Some(first) = findings.first() else { return };
        tracing::warn!(
            upstream = %self.legacy.shared.settings.name,
            tools = findings.len(),
            first = ?first.tool,
            "odd tools in a list; the first one: {}",
            first.kind
        );
    }
}

fn no_answer() -> Fault {
    Fault::bad_gateway("the upstream server ended its answer without the result")
}
