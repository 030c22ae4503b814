//! What the server's answer to a call becomes for the caller.
//!
//! Owns which refusals mean that the call did not run, and may be sent again in another session or to another era. Does not
//! own reading the answer (`stream`), nor the words of its translation (`translate`).
//! Rules: A12.13, A12.22, B11; vector D18.

use super::super::super::guard::{Page, Scope};
use super::super::super::reply::Refusal;
use super::super::gate::{self, Gate};
use super::Trouble;
use super::stream::Stream;
use crate::exchange::{Fault, Outcome};
use crate::schema::Speaker;
use crate::translate::{error, result};
use crate::wire::jsonrpc::{Reply as RpcReply, Response, code};
use crate::wire::method::Method;

impl Stream<'_> {
    /// A refusal ends the call at the server too, so there is nothing to cancel.
    pub(super) fn refused(&mut self, refusal: Refusal) -> Result<Outcome, Trouble> {
        let gate = gate::judge(&refusal, Some(self.number), self.session.id.is_some());
        match (gate, &refusal.answer) {
            // It has asked something by then, so the call has run.
            (Gate::Lost | Gate::OtherEra, _) if self.heard => Err(refusal.fault("the request").into()),
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

    pub(super) fn outcome(&self, response: &Response) -> Result<Outcome, Trouble> {
        if let RpcReply::Result(body) = &response.reply {
            result::readable(&response.text, body, self.turn.call.method)
                .map_err(|fault| Fault::bad_gateway(fault.to_string()))?;
        }
        Ok(self.spell(response))
    }

    /// The server's answer as the caller is to see it.
    pub(super) fn spell(&self, response: &Response) -> Outcome {
        let shared = &self.legacy.shared;
        let initialized = &self.session.initialized;
        let call = &self.turn.call;
        let method = call.method;
        match &response.reply {
            RpcReply::Result(body) => {
                let info = &initialized.server_info;
                let scope = Scope::of(call.principal, None);
                let speaker = Speaker::Legacy(Some(initialized.revision));
                let page = Page::of(&call.request, &response.text, &body.object);
                let sift = (method == Method::ToolsList)
                    .then(|| shared.guard.listed(scope, speaker, page, &response.text, &body.object))
                    .flatten();
                let translated =
                    result::to_modern(response, body, method, call.id(), info, sift.as_ref(), shared.limits);
                shared.guard.report(scope, &translated.findings);
                if method == Method::ToolsCall {
                    if result::is_error(&response.text, body) {
                        shared.metrics.tool_error();
                    } else if let Err(denied) =
                        shared.guard.result(scope, &call.request, &response.text, &body.object)
                    {
                        return Outcome::Result(result::tool_error(call.id(), denied.words(), Some(info)));
                    }
                }
                Outcome::Result(translated.message)
            }
            RpcReply::Error(error) => {
                let (code, message) = error::to_modern(response, error, &call.request, method, shared.limits);
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
}
