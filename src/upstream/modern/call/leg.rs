//! One request to the server and what comes back for it.
//!
//! Owns its head and body, its time, and reading to the answer: what the server tells meanwhile goes on at once, a large
//! result passes while it comes. Does not own what the answer means (`answer`).
//! Rules: A2.3, A2.4, A2.11, A4.5, A13, B8; vectors D71, D93, D102, D104.

use super::super::super::guard::Scope;
use super::super::super::reply::{Arrival, Break, Messages, Reply};
use super::super::super::send_fault;
use super::super::super::transport::SendError;
use super::{Course, Leg, Trouble};
use crate::exchange::{Event, Fault, FaultKind, Outcome};
use crate::telemetry::metrics::Waiting;
use crate::translate::declared::LogLevel;
use crate::translate::flow::{Form, Plan};
use crate::translate::legacy_client::envelope::{self, Round};
use crate::translate::legacy_client::output::Output;
use crate::translate::legacy_client::{mirror, notify};
use crate::translate::notify::Kind;
use crate::wire::jsonrpc::{Message, Notification, Reply as RpcReply, string};
use crate::wire::method::Method;
use crate::wire::version::Era;
use hyper::header::{AUTHORIZATION, HeaderValue};
use tokio::time::{Instant, timeout_at};

/// Servers take headers of so many bytes in all, most of them 8 to 16 KiB; one that does not says so in ways that look like
/// another era's.
const MOST_HEADER: usize = 8 * 1024;

impl Course<'_> {
    /// Sends the request of this round and waits for the server's answer, `timeouts.request` at most.
    pub(super) async fn leg(&mut self, round: &Round) -> Result<Leg, Trouble> {
        let due = Instant::now() + self.modern.shared.settings.timeouts.request;
        timeout_at(due, self.ask(round)).await.unwrap_or_else(|_| {
            let text = "the upstream server did not answer in time; the request may have run";
            Err(Trouble::Fault(Fault::new(FaultKind::Timeout, text)))
        })
    }

    async fn ask(&mut self, round: &Round) -> Result<Leg, Trouble> {
        let shared = &self.modern.shared;
        let (call, number) = (self.call, shared.next_number());
        self.heard = false;
        let body =
            envelope::request(&call.request, call.method, &self.caller.client, self.level(), number, round);
        let method = match call.method.label() {
            known if known == call.request.method => Ok(HeaderValue::from_static(known)),
            _ => HeaderValue::from_str(&call.request.method),
        };
        let method = method.map_err(|_| {
            let text = "the method's name holds characters that no header can carry";
            Trouble::Fault(Fault::new(FaultKind::InvalidParams, text))
        })?;
        let name = mirror::name(&call.request, call.method);
        let params = match &self.tool {
            Some(tool) => mirror::headers(&tool.mirrors, &call.request, shared.limits),
            None => Vec::new(),
        };
        let values = [Some(&method), name.as_ref()].into_iter().flatten();
        if values.chain(params.iter().map(|(_, value)| value)).any(|value| value.len() > MOST_HEADER) {
            let text = format!(
                "what a header has to repeat of the request is longer than a header may be ({MOST_HEADER} bytes)"
            );
            return Err(Trouble::Fault(Fault::new(FaultKind::InvalidParams, text)));
        }
        let renewed = self.credential.as_ref().map(|credential| {
            let mut headers = call.headers.clone();
            headers.remove(AUTHORIZATION);
            headers.extend(credential.clone().map(|value| (AUTHORIZATION, value)));
            headers
        });
        let client = renewed.as_ref().unwrap_or(&call.headers);
        let head = || shared.heads.modern_own(client, method.clone(), name.clone(), params.clone());
        let waiting = call.meter.sent(Era::Modern);
        let sent = shared.transport.send_due(&head, body).await;
        let response = sent.map_err(|error| {
            let fault = send_fault(&shared.settings.name, &error);
            match error {
                SendError::Broken { .. } | SendError::Ended { .. } => Trouble::Broken(fault),
                SendError::Connect { .. }
                | SendError::Tls { .. }
                | SendError::Unsent { .. }
                | SendError::Start { .. }
                | SendError::Pausing { .. }
                | SendError::Full { .. }
                | SendError::NoMessage
                | SendError::TooLarge
                | SendError::Timeout { .. }
                | SendError::Endpoint(_)
                | SendError::Redirect(_) => Trouble::Fault(fault),
            }
        })?;
        let limits = shared.limits_of(call.method);
        match Reply::read(response, shared.settings.limits.message_bytes, limits).await {
            Reply::Messages(messages) => self.read(messages.awaiting(number), number, waiting).await,
            Reply::Refused(refusal) => {
                waiting.answered();
                self.refused(&refusal, number)
            }
            Reply::Accepted => {
                let text = "the upstream server accepted the request without answering it";
                Err(Trouble::Fault(Fault::bad_gateway(text)))
            }
        }
    }

    /// Reads to the answer.
    async fn read(&mut self, mut messages: Messages, number: u64, waiting: Waiting) -> Result<Leg, Trouble> {
        let shared = &self.modern.shared;
        let mut waiting = Some(waiting);
        messages.pass_by(self.plan(number), shared.settings.limits.flow_bytes);
        loop {
            let arrival = messages.arrival().await.map_err(|broken| shared.broken(broken));
            waiting.take().into_iter().for_each(Waiting::answered);
            match arrival {
                Ok(Some(Arrival::Message(Message::Response(response)))) => {
                    // A server that could not tell the id has an error for it; on the stream of the one call it is that
                    // call's.
                    let nameless = response.id.is_none() && matches!(response.reply, RpcReply::Error(_));
                    if response.answers(number) || nameless {
                        return self.answer(&response);
                    }
                    tracing::debug!("an answer to nothing that was asked is passed over");
                }
                Ok(Some(Arrival::Message(Message::Notification(told)))) => self.told(&told, number).await,
                // No modern server asks its client that way (A2, "Direction summary").
                Ok(Some(Arrival::Message(Message::Request(asked)))) => {
                    tracing::debug!(method = %asked.method, "a request of a modern server is passed over");
                }
                Ok(Some(Arrival::Flow)) => return self.flow(messages).await,
                Ok(None) => {
                    let text =
                        "the upstream server ended its answer without the result; the request may have run";
                    return Err(Trouble::Broken(Fault::bad_gateway(text)));
                }
                Err(broken @ Break::Body) => return Err(Trouble::Broken(broken.into())),
                Err(broken) => return Err(Trouble::Fault(broken.into())),
            }
        }
    }

    /// What the server tells of the call on its way.
    async fn told(&mut self, told: &Notification, number: u64) {
        self.heard = true;
        let event = match Kind::of(&told.method) {
            Kind::Progress => {
                let token = self.token.as_deref();
                token.and_then(|token| self.progress.to_legacy(told, number, token)).map(Event::Progress)
            }
            Kind::Log => self.wants(told).then(|| Event::Log(notify::stripped(told))),
            Kind::Custom => Some(Event::Custom(notify::stripped(told))),
            // Changes come on subscriptions alone; what is there is looked at anew in any case (B9.5).
            Kind::Changed => {
                if let Some((change, _)) = notify::change(told) {
                    self.modern.changed(self.call.principal, &change);
                }
                None
            }
            Kind::LegacyOnly => None,
        };
        match event {
            Some(event) => self.sender.event(event).await,
            None => tracing::debug!(method = %told.method, "a notification of the server goes no further"),
        }
    }

    /// As grave as the client has asked for; one that has asked for nothing takes what comes. Without a level that the
    /// revisions know it is no log message.
    fn wants(&self, told: &Notification) -> bool {
        let level = told.params.body().and_then(|body| body.object.first(&told.text, "level"));
        let level = level.and_then(|span| LogLevel::parse(&string(&told.text, span)?));
        level.is_some_and(|level| self.level().is_none_or(|wanted| level >= wanted))
    }

    fn level(&self) -> Option<LogLevel> {
        self.caller.level
    }

    /// How a large result passes, if it may.
    fn plan(&self, number: u64) -> Option<Plan> {
        let shared = &self.modern.shared;
        let revision = self.caller.client.revision;
        let convert = shared.settings.convert_content.contains(&revision);
        let form = Form { revision, output: self.output(), convert };
        let most = shared.settings.limits.message_bytes;
        let plan = Plan::to_legacy_client(
            self.call.method,
            form,
            number,
            self.call.id().clone(),
            shared.limits,
            most,
        );
        let scope = Scope::of(self.call.principal, None);
        // What is checked has to be whole.
        plan.filter(|_| !self.caller.whole && !shared.guard.checks_result(scope, &self.call.request))
    }

    /// What is known of the results of the tool that is called.
    pub(super) fn output(&self) -> Output {
        self.tool.as_ref().map_or(Output::Unstated, |tool| tool.output)
    }

    /// Hands a large result on as it comes. The first piece waits for another, or for the end: until it is out, the call can
    /// still end in words.
    async fn flow(&mut self, mut messages: Messages) -> Result<Leg, Trouble> {
        let shared = &self.modern.shared;
        let mut first = None;
        loop {
            match messages.piece().await {
                Ok(Some(piece)) => match first.replace(piece) {
                    Some(before) => self.sender.piece(before).await,
                    None => continue,
                },
                Ok(None) => break,
                Err(broken) => return Err(Trouble::Fault(shared.broken(broken).into())),
            }
        }
        if let Some(last) = first {
            self.sender.piece(last).await;
        }
        shared.metrics.result_flowed();
        if self.call.method == Method::ToolsCall && messages.says_error() {
            shared.metrics.tool_error();
        }
        Ok(Leg::Outcome(Outcome::Flowed))
    }
}
