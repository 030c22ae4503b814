//! Heads of requests to an upstream: which headers go, and which never do.
//!
//! Rules: A13, architecture "Security defaults". `Host` is the transport's. Nothing of the client's request goes on
//! except what is named here or in `forward_headers`; never cookies, `Origin` or hop-by-hop headers, and a session id only
//! where client and server are both legacy.

use super::legacy::{Goodbye, Session};
use super::transport::{RequestHead, Speaker};
use crate::config::{self, Authorization};
use crate::wire::headers::{self, ACCEPT_BOTH, EVENT_STREAM, JSON};
use crate::wire::version::MODERN;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method};

/// Trace context goes through in headers as it does in `_meta` (A4.6).
pub(super) const TRACE: [&str; 3] = ["traceparent", "tracestate", "baggage"];

const OWN_AGENT: &str = concat!("mcp-janus/", env!("CARGO_PKG_VERSION"));

/// What a request's head usually has beyond what every one has, so that the map does not grow.
const ROOM: usize = 10;

pub(super) struct Heads {
    /// What every request has.
    base: HeaderMap,
    forward: Vec<HeaderName>,
    forward_authorization: bool,
}

impl Heads {
    pub(super) fn new(settings: &config::Upstream) -> Self {
        let mut base = HeaderMap::new();
        base.insert(ACCEPT, HeaderValue::from_static(ACCEPT_BOTH));
        base.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        base.insert(USER_AGENT, HeaderValue::from_static(OWN_AGENT));
        // Names and values were checked when the settings were read.
        let pair =
            |name: &str, value: &config::Secret| Some((HeaderName::try_from(name).ok()?, secret(value)?));
        base.extend(settings.headers.iter().filter_map(|(name, value)| pair(name, value)));
        let forward_authorization = match &settings.authorization {
            // To a process it goes no further than to whose it is (`transport::channel`).
            _ if matches!(settings.target, config::Target::Command(_)) => true,
            Authorization::Forward => true,
            Authorization::Strip => false,
            Authorization::Fixed(value) => {
                base.extend(secret(value).map(|value| (AUTHORIZATION, value)));
                false
            }
        };
        let named = settings.forward_headers.iter().map(String::as_str);
        let forward =
            TRACE.into_iter().chain(named).filter_map(|name| HeaderName::try_from(name).ok()).collect();
        Self { base, forward, forward_authorization }
    }

    /// A POST to a legacy server outside or inside a session.
    pub(super) fn legacy(&self, client: &HeaderMap, session: Option<&Session>) -> RequestHead {
        let mut headers = self.common(client);
        if let Some(session) = session {
            in_session(&mut headers, session);
        }
        RequestHead { method: Method::POST, headers, speaker: Speaker::Driver }
    }

    /// A GET for a session's stream; after `last_event`, if it is taken up again.
    pub(super) fn stream(
        &self,
        client: &HeaderMap,
        session: &Session,
        last_event: Option<HeaderValue>,
    ) -> RequestHead {
        let mut headers = self.common(client);
        in_session(&mut headers, session);
        headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        headers.remove(CONTENT_TYPE);
        headers.extend(last_event.map(|id| (HeaderName::from_static(headers::LAST_EVENT_ID), id)));
        RequestHead { method: Method::GET, headers, speaker: Speaker::Driver }
    }

    /// The DELETE that ends a session, under the credential that the session was opened with.
    pub(super) fn delete(&self, goodbye: &Goodbye) -> RequestHead {
        let mut headers = self.base.clone();
        headers.remove(CONTENT_TYPE);
        headers.insert(HeaderName::from_static(headers::MCP_SESSION_ID), goodbye.id.clone());
        if let Some(revision) = goodbye.revision {
            let version = HeaderValue::from_static(revision.as_str());
            headers.insert(HeaderName::from_static(headers::MCP_PROTOCOL_VERSION), version);
        }
        if let Some(value) = &goodbye.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        RequestHead { method: Method::DELETE, headers, speaker: Speaker::Driver }
    }

    /// The modern probe.
    pub(super) fn probe(&self, client: &HeaderMap) -> RequestHead {
        self.modern_own(client, HeaderValue::from_static("server/discover"), None, Vec::new())
    }

    /// A client's own modern request: its `Mcp-*` headers go on, known or not, except a session id (A13.3, A13.4).
    pub(super) fn modern(&self, client: &HeaderMap) -> RequestHead {
        let mut headers = self.common(client);
        for (name, value) in client {
            if name.as_str().starts_with("mcp-") && name.as_str() != headers::MCP_SESSION_ID {
                headers.append(name.clone(), value.clone());
            }
        }
        RequestHead { method: Method::POST, headers, speaker: Speaker::Driver }
    }

    /// A request of the proxy's own making to a modern server, for `client`, whose own `Mcp-*` headers say nothing of it
    /// (A13.2, A13.3, A13.4).
    pub(super) fn modern_own(
        &self,
        client: &HeaderMap,
        method: HeaderValue,
        name: Option<HeaderValue>,
        params: Vec<(HeaderName, HeaderValue)>,
    ) -> RequestHead {
        let mut headers = self.common(client);
        headers
            .insert(HeaderName::from_static(headers::MCP_PROTOCOL_VERSION), HeaderValue::from_static(MODERN));
        headers.insert(HeaderName::from_static(headers::MCP_METHOD), method);
        headers.extend(name.map(|name| (HeaderName::from_static(headers::MCP_NAME), name)));
        headers.extend(params);
        RequestHead { method: Method::POST, headers, speaker: Speaker::Driver }
    }

    /// A legacy client's own request, in the session that it names; `Accept` is ours to say (C25).
    pub(super) fn passed(&self, verb: Method, client: &HeaderMap, names: &[&'static str]) -> RequestHead {
        let mut headers = self.common(client);
        for name in names {
            if let Some(value) = client.get(*name) {
                headers.insert(HeaderName::from_static(name), value.clone());
            }
        }
        if verb != Method::POST {
            headers.remove(CONTENT_TYPE);
        }
        if verb == Method::GET {
            headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        }
        RequestHead { method: verb, headers, speaker: Speaker::Client }
    }

    /// The credential that a request of this client carries upstream, if it is the client's own.
    pub(super) fn credential(&self, client: &HeaderMap) -> Option<HeaderValue> {
        self.forward_authorization.then(|| client.get(AUTHORIZATION).cloned()).flatten()
    }

    /// The headers of this client that go upstream by its name, so that an answer may depend on them; without trace context.
    pub(super) fn forwarded<'a>(
        &'a self,
        client: &'a HeaderMap,
    ) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
        let named = self.forward.iter().filter(|name| !TRACE.contains(&name.as_str()));
        named.flat_map(|name| client.get_all(name).into_iter().map(move |value| (name, value)))
    }

    fn common(&self, client: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.base.len() + ROOM);
        headers.extend(self.base.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(value) = self.credential(client) {
            headers.insert(AUTHORIZATION, value);
        }
        for name in &self.forward {
            for value in client.get_all(name) {
                headers.append(name.clone(), value.clone());
            }
        }
        headers
    }
}

fn in_session(headers: &mut HeaderMap, session: &Session) {
    let version = HeaderValue::from_static(session.initialized.revision.as_str());
    headers.insert(HeaderName::from_static(headers::MCP_PROTOCOL_VERSION), version);
    if let Some(id) = &session.id {
        headers.insert(HeaderName::from_static(headers::MCP_SESSION_ID), id.clone());
    }
}

fn secret(value: &config::Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value.expose()).ok()?;
    value.set_sensitive(true);
    Some(value)
}
