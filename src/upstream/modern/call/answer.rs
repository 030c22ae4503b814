//! What the server's answer to one request of a call means.
//!
//! Owns the three ways on: an outcome as the client is to see it, questions, or a refusal that proves that nothing has run.
//! The words of the translation are `translate::legacy_client`'s. Rules: A11.8-A11.10, A12.5-A12.9, B12; vectors D73-D77.

use super::super::super::guard::{Page, Scope};
use super::super::super::reply::Refusal;
use super::super::{Standing, is_challenge, standing};
use super::{Course, Leg, Trouble};
use crate::exchange::{Fault, Outcome};
use crate::telemetry::metrics::{NotAsked, UpstreamLimit};
use crate::translate::discover;
use crate::translate::legacy_client::error::{self, Answered};
use crate::translate::legacy_client::result::{self, Kind};
use crate::translate::legacy_client::round::{self, Unusable};
use crate::translate::legacy_client::tools::{self, Listed};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{Body, Reply, Response, RpcError, code};
use crate::wire::method::Method;
use crate::wire::version::MODERN;

impl Course<'_> {
    /// A response with the status of an error.
    pub(super) fn refused(&mut self, refusal: &Refusal, number: u64) -> Result<Leg, Trouble> {
        if is_challenge(refusal.status) {
            self.turned_away(refusal.status);
            return Err(Trouble::Fault(refusal.fault("the request")));
        }
        match standing(refusal, number) {
            Standing::Answer(answer) => self.answer(&answer),
            Standing::OtherEra => Err(Trouble::OtherEra(Outcome::Fault(refusal.fault("the request")))),
            Standing::Nothing => Err(Trouble::Fault(refusal.fault("the request"))),
        }
    }

    pub(super) fn answer(&mut self, response: &Response) -> Result<Leg, Trouble> {
        match &response.reply {
            Reply::Result(body) => self.result(response, body),
            Reply::Error(error) => self.error(response, error),
        }
    }

    fn result(&mut self, response: &Response, body: &Body) -> Result<Leg, Trouble> {
        let shared = &self.modern.shared;
        let unusable = |words: String| Trouble::Fault(Fault::bad_gateway(words));
        match result::kind(response, body, self.call.method) {
            Kind::Complete => {}
            Kind::InputRequired => {
                shared.guard.inputs(&response.text, &body.object).map_err(unusable)?;
                let most = shared.settings.limits.questions;
                let asked = round::read(response, body, most, shared.limits);
                return asked.map(Leg::Asked).map_err(|fault| {
                    if let Unusable::TooMany(_) = fault {
                        shared.metrics.limit(UpstreamLimit::Questions);
                    }
                    shared.metrics.question_refused(match fault {
                        Unusable::TooMany(_) => NotAsked::Full,
                        Unusable::Nothing
                        | Unusable::State
                        | Unusable::Requests
                        | Unusable::Duplicate(_)
                        | Unusable::Entry { .. } => NotAsked::Malformed,
                    });
                    unusable(fault.to_string())
                });
            }
            Kind::Unsupported(words) => {
                return Err(unusable(format!("the upstream server answered with {words}")));
            }
        }
        let (call, revision) = (self.call, self.caller.client.revision);
        let unreadable = |fault: crate::translate::result::Unreadable| unusable(fault.to_string());
        let message = if call.method == Method::ToolsList {
            let page = Page::of(&call.request, &response.text, &body.object);
            let sift = self.modern.sift(call.principal, page, &response.text, &body.object);
            let listed = tools::list(response, body, call.id(), revision, &sift).map_err(unreadable)?;
            let Listed { message, tools, cursor: _ } = listed;
            self.modern.catalog.learn(call.principal, tools);
            message
        } else {
            let convert = shared.settings.convert_content.contains(&revision);
            let output = self.output();
            result::to_legacy(response, body, call.method, call.id(), revision, output, convert)
                .map_err(unreadable)?
        };
        self.keep(response, body);
        if call.method == Method::ToolsCall {
            let scope = Scope::of(call.principal, None);
            if crate::translate::result::is_error(&response.text, body) {
                shared.metrics.tool_error();
            } else if let Err(denied) =
                shared.guard.result(scope, &call.request, &response.text, &body.object)
            {
                let message = result::tool_error(call.id(), denied.words());
                return Ok(Leg::Outcome(Outcome::Result(message)));
            }
        }
        Ok(Leg::Outcome(Outcome::Result(message)))
    }

    fn error(&self, response: &Response, error: &RpcError) -> Result<Leg, Trouble> {
        let shared = &self.modern.shared;
        let call = self.call;
        let not_found = shared.settings.legacy_not_found;
        let told = error::to_legacy(response, error, &call.request, call.method, not_found, shared.limits);
        let outcome = match told {
            Answered::Error(message) => Outcome::Error(message),
            Answered::Result(message) => Outcome::Result(message),
        };
        match error.code {
            // No refusal at the gate, whatever it says: it has begun to run.
            _ if self.heard => Ok(Leg::Outcome(outcome)),
            code::HEADER_MISMATCH => Err(Trouble::Mismatch(outcome)),
            code::UNSUPPORTED_PROTOCOL_VERSION if names_ours(response, error, shared.limits) => {
                Err(Trouble::Version(outcome))
            }
            code::UNSUPPORTED_PROTOCOL_VERSION => Err(Trouble::OtherEra(outcome)),
            _ => Ok(Leg::Outcome(outcome)),
        }
    }
}

/// Whether the server, which does not support the version of the request, names that very version.
pub(in crate::upstream::modern) fn names_ours(response: &Response, error: &RpcError, limits: Limits) -> bool {
    let named = discover::supported_versions(&response.text, error.data, limits);
    named.is_some_and(|named| named.iter().any(|version| version == MODERN))
}
