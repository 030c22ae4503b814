//! One request of one client, on its way to a server.

use crate::telemetry::metrics::Meter;
use crate::wire::json::{Object, Span};
use crate::wire::jsonrpc::{Id, Params, Request};
use crate::wire::method::Method;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// A request that has passed the checks of its client's era.
#[derive(Debug, Clone)]
pub struct Call {
    pub request: Request,
    pub method: Method,
    pub principal: Principal,
    /// The client's request headers; what of them goes on is the upstream edge's decision (A13).
    pub headers: HeaderMap,
    pub binding: Binding,
    /// When the caller's answer is due at the latest.
    pub deadline: Instant,
    /// What is measured of it.
    pub meter: Meter,
}

impl Call {
    pub fn id(&self) -> &Id {
        &self.request.id
    }

    /// The same without what was asked for, which may be large.
    pub fn without_request(&self) -> Self {
        let request = Request {
            text: Bytes::new(),
            top: Object { span: Span::default(), members: Default::default() },
            id: self.request.id.clone(),
            id_span: Span::default(),
            method: self.request.method.clone(),
            params: Params::Absent,
        };
        Self {
            request,
            method: self.method,
            principal: self.principal,
            headers: self.headers.clone(),
            binding: self.binding,
            deadline: self.deadline,
            meter: self.meter.clone(),
        }
    }
}

/// What brings a client's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Binding {
    /// The client has said in headers what HTTP wants said there.
    #[default]
    Http,
    /// There are no headers but those that are made of the message.
    Channel,
}

/// Whom a request belongs to. Nothing that one principal caused is shown to another (invariant 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Principal {
    /// No `Authorization` header: all such callers are one.
    Anonymous,
    /// SHA-256 of the `Authorization` value, so that the credential itself is not kept as a key.
    Credential([u8; 32]),
}

impl Principal {
    pub fn of(authorization: Option<&HeaderValue>) -> Self {
        match authorization {
            None => Principal::Anonymous,
            Some(value) => Principal::Credential(Sha256::digest(value.as_bytes()).into()),
        }
    }

    /// How it is written into what is sealed.
    pub fn name(self) -> [u8; 32] {
        let mut hash = Sha256::new();
        match self {
            Principal::Anonymous => hash.update([0]),
            Principal::Credential(credential) => {
                hash.update([1]);
                hash.update(credential);
            }
        }
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant 2: no credential, however chosen, is taken for having none.
    #[test]
    fn principals_have_names_of_their_own() {
        let credential = |value: &'static str| Principal::of(Some(&HeaderValue::from_static(value)));
        let all = [Principal::Anonymous, credential("anonymous"), credential("")];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(one.name(), other.name());
            }
        }
    }
}
