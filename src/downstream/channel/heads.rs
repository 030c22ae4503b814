//! The requests that a client of Streamable HTTP would send in the place of this one.
//!
//! Owns their headers: what the client's owner brings (credentials, what is forwarded), and what HTTP repeats of a message.
//! Rules: A13; spec 2026-07-28 basic/transports/streamable-http, Standard Request Headers.

use super::session::Standing;
use crate::exchange::Binding;
use crate::wire::headers::{
    ACCEPT_BOTH, EVENT_STREAM, JSON, LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION,
    MCP_SESSION_ID, encode_value,
};
use crate::wire::jsonrpc::{Notification, Request, string};
use crate::wire::meta;
use crate::wire::method::Method;
use crate::wire::version::MODERN;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::uri::InvalidUri;
use hyper::{HeaderMap, Method as Verb, Uri};

/// Headers that say something of the HTTP request that brought them, and nothing of its sender.
const NOT_CARRIED: [&str; 11] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "last-event-id",
    "te",
    "transfer-encoding",
];

/// What a request carries beyond its own.
const ROOM: usize = 8;

/// See the module.
pub(super) struct Heads {
    target: Uri,
    /// What every POST has where its text brings nothing.
    base: HeaderMap,
}

/// A request in memory.
pub(super) type Posted = hyper::Request<Full<Bytes>>;

impl Heads {
    pub(super) fn new(path: &str, headers: HeaderMap) -> Result<Self, InvalidUri> {
        Ok(Self { target: path.parse()?, base: carried(headers) })
    }

    /// A request of a modern client. What no header can hold is left out; the front goes by the body (`Binding::Channel`).
    pub(super) fn modern(&self, request: &Request, headers: Option<HeaderMap>) -> Posted {
        let mut headers = self.base(headers);
        let text = &request.text;
        let claim = request.params.meta().and_then(|meta| meta.first(text, meta::PROTOCOL_VERSION));
        let claim = claim.and_then(|span| string(text, span));
        insert(&mut headers, MCP_PROTOCOL_VERSION, claim.as_deref());
        insert(&mut headers, MCP_METHOD, Some(&request.method));
        if let (Some(member), Some(body)) = (Method::of(&request.method).name_member(), request.params.body())
        {
            let name = body.object.first(text, member.as_str()).and_then(|span| string(text, span));
            insert(&mut headers, MCP_NAME, name.as_deref().map(encode_value).as_deref());
        }
        self.request(Verb::POST, headers, text.clone())
    }

    /// A notification of a modern client (A2.11).
    pub(super) fn modern_notice(&self, told: Notification, headers: Option<HeaderMap>) -> Posted {
        let mut headers = self.base(headers);
        insert(&mut headers, MCP_PROTOCOL_VERSION, Some(MODERN));
        insert(&mut headers, MCP_METHOD, Some(&told.method));
        self.request(Verb::POST, headers, told.text)
    }

    /// An `initialize`.
    pub(super) fn opening(&self, text: Bytes, headers: Option<HeaderMap>) -> Posted {
        self.request(Verb::POST, self.base(headers), text)
    }

    /// A POST in a session.
    pub(super) fn in_session(&self, session: &Standing, text: Bytes, headers: Option<HeaderMap>) -> Posted {
        let mut headers = self.base(headers);
        session.name_in(&mut headers);
        self.request(Verb::POST, headers, text)
    }

    /// A GET: the session's own stream, or one that is taken up again.
    pub(super) fn stream(&self, session: &Standing, last: Option<&Bytes>) -> Posted {
        let mut headers = self.base.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        headers.remove(CONTENT_TYPE);
        session.name_in(&mut headers);
        let last = last.and_then(|id| HeaderValue::from_bytes(id).ok());
        headers.extend(last.map(|id| (HeaderName::from_static(LAST_EVENT_ID), id)));
        self.request(Verb::GET, headers, Bytes::new())
    }

    /// The DELETE that ends a session.
    pub(super) fn end(&self, session: &Standing) -> Posted {
        let mut headers = self.base.clone();
        headers.remove(CONTENT_TYPE);
        session.name_in(&mut headers);
        self.request(Verb::DELETE, headers, Bytes::new())
    }

    fn base(&self, headers: Option<HeaderMap>) -> HeaderMap {
        headers.map_or_else(|| self.base.clone(), carried)
    }

    fn request(&self, verb: Verb, headers: HeaderMap, text: Bytes) -> Posted {
        let mut request = hyper::Request::new(Full::new(text));
        *request.method_mut() = verb;
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = headers;
        request.extensions_mut().insert(Binding::Channel);
        request
    }
}

impl Standing {
    /// What names the session in each of its requests.
    fn name_in(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.id {
            headers.insert(HeaderName::from_static(MCP_SESSION_ID), id.clone());
        }
        if let Some(revision) = self.revision {
            let version = HeaderValue::from_static(revision.as_str());
            headers.insert(HeaderName::from_static(MCP_PROTOCOL_VERSION), version);
        }
    }
}

/// What goes on of the headers that came with a text, and what each POST has.
fn carried(headers: HeaderMap) -> HeaderMap {
    let mut carried = HeaderMap::with_capacity(headers.len() + ROOM);
    for (name, value) in &headers {
        if !NOT_CARRIED.contains(&name.as_str()) && !name.as_str().starts_with("mcp-") {
            carried.append(name.clone(), value.clone());
        }
    }
    carried.insert(ACCEPT, HeaderValue::from_static(ACCEPT_BOTH));
    carried.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    carried
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
