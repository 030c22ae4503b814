//! Lists that are kept (`cache_lists`): a call that asks for one may be answered without the server.
//!
//! Owns what an answer is kept under: the method, what is asked for, and whatever headers of the client go upstream, since a
//! server may go by them. Does not own what is kept (`cache`). Rules: A4.11, A4.14, B7.6; case C60.

use super::super::cache::{self, Asked};
use super::{Course, Leg};
use crate::exchange::Outcome;
use crate::translate::input_required;
use crate::translate::legacy_client::fresh;
use crate::wire::jsonrpc::{self, Body, Message, Response};
use hyper::StatusCode;
use sha2::{Digest, Sha256};

/// A request of which nothing was kept, and the answer may be.
pub(super) struct Keep {
    params: [u8; 32],
    asked: Asked,
}

impl Course<'_> {
    /// The outcome, where the server's answer is kept.
    pub(super) fn kept(&mut self) -> Option<Outcome> {
        let cache = self.modern.cache.clone()?;
        if !cache::keeps(self.call.method) || self.goes_on() {
            return None;
        }
        let params = self.asks();
        let text = match cache.get(self.call.principal, self.call.method, &params) {
            Ok(text) => text,
            Err(asked) => {
                self.keep = Some(Keep { params, asked });
                return None;
            }
        };
        // It was read before, for this client or another.
        let Ok(Message::Response(response)) =
            jsonrpc::parse(text, self.modern.shared.limits_of(self.call.method))
        else {
            return None;
        };
        match self.answer(&response) {
            Ok(Leg::Outcome(outcome)) => Some(outcome),
            Ok(Leg::Asked(_)) | Err(_) => None,
        }
    }

    /// Whether the client brings something of an earlier round, which no list has (A4.14).
    fn goes_on(&self) -> bool {
        let request = &self.call.request;
        let brings =
            |name| request.params.body().is_some_and(|body| body.object.first(&request.text, name).is_some());
        ["inputResponses", "requestState"].into_iter().any(brings)
    }

    /// Everything that the answer may depend on but the principal.
    fn asks(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(input_required::digest(&self.call.request));
        for (name, value) in self.modern.shared.heads.forwarded(&self.call.headers) {
            for part in [name.as_str().as_bytes(), value.as_bytes()] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        hash.finalize().into()
    }

    /// The server has answered, completely: that is kept if it may be.
    pub(super) fn keep(&mut self, response: &Response, body: &Body) {
        let Some(cache) = &self.modern.cache else { return };
        let (principal, method) = (self.call.principal, self.call.method);
        match self.keep.take() {
            Some(Keep { params, asked }) => {
                let fresh = fresh::read(response, body);
                cache.put(principal, method, params, asked, &response.text, fresh.ttl, fresh.shared);
            }
            // One that was kept says nothing of the server.
            None if cache::keeps(method) => {}
            None => cache.admit(principal),
        }
    }

    /// The server has refused the client.
    pub(super) fn turned_away(&self, status: StatusCode) {
        if let Some(cache) = &self.modern.cache
            && matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        {
            cache.refuse(self.call.principal);
        }
    }
}
