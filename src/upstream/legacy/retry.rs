//! A client that comes back with answers to what a parked call's server has asked.
//!
//! Owns the checks before anything reaches the server, and how each refusal is said and counted: the state, who brings it,
//! for which request, and whether each answer fits its question. What is refused leaves the call parked.
//! Rules: B1.2, B1.5, B1.6, B1.10; vectors D35-D38; case C46.

use super::super::parked::{Found, Refused, Retry};
use super::Legacy;
use super::call::owner;
use crate::exchange::{Call, Fault, FaultKind, Outcome, Sender};
use crate::telemetry::metrics::StateRefused;
use crate::translate::answer::{Responses, to_legacy};
use crate::wire::jsonrpc::{Body, Request, string};
use std::borrow::Cow;
use std::sync::Arc;

/// Whether the request says that it goes on with an earlier one. Without a state it does not, whatever answers it brings:
/// they are to no question of this call.
pub fn is_retry(request: &Request) -> bool {
    let state = |body: &Body| body.object.first(&request.text, "requestState");
    request.params.body().and_then(state).is_some_and(|state| state.of(&request.text) != b"null")
}

fn state(request: &Request) -> Option<Cow<'_, str>> {
    let span = request.params.body()?.object.first(&request.text, "requestState")?;
    string(&request.text, span)
}

impl Legacy {
    /// Whether the request brings a state that was issued here.
    pub fn has_issued(&self, request: &Request) -> bool {
        state(request).is_some_and(|state| self.parked.has_issued(&state))
    }

    /// Takes a parked call up, whose outcome then goes to `sender`. `Some`: what was told before, to be told again (B1.6).
    pub fn resume(&self, call: Arc<Call>, sender: Sender) -> Result<Option<Outcome>, Fault> {
        let shared = &self.shared;
        let Some(state) = state(&call.request) else {
            return Err(self.refused(StateRefused::Unreadable, "`requestState` must be a string"));
        };
        let state_refused = |refused: Refused| self.refused(counted(refused), refused.to_string());
        let owner = owner(&shared.settings, &call);
        let claim = match self.parked.find(&state, owner, call.id()).map_err(state_refused)? {
            Found::Claim(claim) => claim,
            Found::Again(outcome) => return Ok(Some(outcome)),
        };
        let bad = |text: String| self.refused(StateRefused::Answers, text);
        let responses =
            Responses::read(&call.request, shared.limits).map_err(|fault| bad(fault.to_string()))?;
        let mut answers = Vec::new();
        let shown = claim.shown();
        for (key, question) in &shown.asked {
            // Keys of nothing that was asked are passed over (B1.5).
            let Some(value) = responses.get(key) else { continue };
            let answer = to_legacy(question, value, &call.request.text, shown.revision, shared.limits)
                .map_err(|fault| {
                    bad(format!("the answer under {key:?} does not fit its question: {fault}"))
                })?;
            answers.push((key.clone(), answer));
        }
        claim.take(Retry { call: call.clone(), sender, answers }).map_err(state_refused)?;
        Ok(None)
    }

    fn refused(&self, why: StateRefused, text: impl Into<Cow<'static, str>>) -> Fault {
        self.shared.metrics.state_refused(why);
        let text = text.into();
        tracing::info!(upstream = %self.shared.settings.name, why = why.label(), %text, "a client's answers were refused");
        Fault::new(FaultKind::InvalidParams, text)
    }
}

fn counted(refused: Refused) -> StateRefused {
    match refused {
        Refused::Unreadable => StateRefused::Unreadable,
        Refused::Principal => StateRefused::Principal,
        Refused::Request => StateRefused::Request,
        Refused::Expired => StateRefused::Expired,
        Refused::Unknown => StateRefused::Unknown,
        Refused::Used => StateRefused::Used,
    }
}
