//! Requests of the proxy's own making to a modern server, each with one answer: `server/discover` for a legacy client that
//! begins a session, pages of `tools/list` for the catalog.
//!
//! Owns sending one and telling an answer from a refusal. Does not own calls of clients (`call`), nor streams that stay
//! (`feed`). Rules: A1.3, A12.17, A15.6.

use super::super::reply::{Refusal, Reply};
use super::{Modern, Trouble};
use crate::exchange::{Fault, FaultKind};
use crate::wire::jsonrpc::{Message, Reply as RpcReply, Response};
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use tokio::time::timeout;

impl Modern {
    /// Sends `message`, a request of `method` under `number`, for the client of these headers, within the time that a
    /// handshake may take.
    pub(super) async fn ask(
        &self,
        client: &HeaderMap,
        method: &'static str,
        number: u64,
        message: Payload,
    ) -> Result<Response, Trouble> {
        let limit = self.shared.settings.timeouts.initialize;
        let asked = timeout(limit, self.ask_for(client, method, number, message)).await;
        asked.unwrap_or_else(|_| {
            let text = format!("the upstream server did not answer {method} in time");
            Err(Trouble::Fault(Fault::new(FaultKind::Timeout, text)))
        })
    }

    /// Passes a notification of a legacy client on, in its modern form.
    pub async fn tell(&self, client: &HeaderMap, method: &str, message: Payload) -> Result<(), Fault> {
        let name = HeaderValue::from_str(method).map_err(|_| {
            let text = "the method's name holds characters that no header can carry";
            Fault::new(FaultKind::InvalidParams, text)
        })?;
        let shared = &self.shared;
        let limit = shared.settings.timeouts.initialize;
        let head = shared.heads.modern_own(client, name, None, Vec::new());
        let sent = shared.transport.send_within(limit, head, message).await;
        let response = sent.map_err(|error| super::super::send_fault(&shared.settings.name, &error))?;
        if response.status().is_success() {
            return Ok(());
        }
        let (head, body) = response.into_parts();
        Err(Refusal::read(head.status, head.headers, body, shared.limits).await.fault("the notification"))
    }

    async fn ask_for(
        &self,
        client: &HeaderMap,
        method: &'static str,
        number: u64,
        message: Payload,
    ) -> Result<Response, Trouble> {
        let shared = &self.shared;
        let fault = |text: String| Trouble::Fault(Fault::bad_gateway(text));
        let head = || shared.heads.modern_own(client, HeaderValue::from_static(method), None, Vec::new());
        let sent = shared.transport.send_due(&head, message).await;
        let response =
            sent.map_err(|error| Trouble::Fault(super::super::send_fault(&shared.settings.name, &error)))?;
        let limits = shared.limits_of(Method::of(method));
        let mut messages = match Reply::read(response, shared.settings.limits.message_bytes, limits).await {
            Reply::Messages(messages) => messages.awaiting(number),
            Reply::Accepted => {
                return Err(fault(format!("the upstream server accepted {method} without answering it")));
            }
            Reply::Refused(refusal) => return refused(refusal, method, number),
        };
        while let Some(message) =
            messages.next().await.map_err(|broken| Trouble::Fault(shared.broken(broken).into()))?
        {
            match message {
                Message::Response(response)
                    if response.answers(number)
                        || response.id.is_none() && matches!(response.reply, RpcReply::Error(_)) =>
                {
                    return Ok(response);
                }
                Message::Response(_) | Message::Notification(_) | Message::Request(_) => {}
            }
        }
        Err(fault(format!("the upstream server ended its answer to {method} without the result")))
    }
}

/// With the status of an error: still an answer, if it has the body of one.
fn refused(refusal: Refusal, method: &str, number: u64) -> Result<Response, Trouble> {
    if super::is_challenge(refusal.status) {
        return Err(Trouble::Fault(refusal.fault(method)));
    }
    match super::standing(&refusal, number) {
        super::Standing::Answer(answer) => Ok(answer),
        super::Standing::OtherEra => Err(Trouble::OtherEra(refusal.fault(method))),
        super::Standing::Nothing => Err(Trouble::Fault(refusal.fault(method))),
    }
}
