//! A raw legacy client: `initialize`, then requests in the session that the answer named.
//!
//! Owns what such a client remembers, its session and version, and the requests that follow from that. Sending is
//! `client`'s; nothing here uses the proxy's wire code.

use super::{Ask, Done, Proxy};

/// By this name the checks of requests to servers know that `initialize` is a client's own.
pub const NAME: &str = "an old client";

#[derive(Debug, Clone)]
pub struct Old {
    /// What the server named, if anything.
    pub session: Option<String>,
    /// Sent as `MCP-Protocol-Version`; `None` before 2025-06-18, whose clients send none (C27c).
    pub version: Option<String>,
    pub token: Option<String>,
}

impl Old {
    /// The request that opens a session, with a capability of every kind.
    pub fn initialize(version: &str) -> Ask {
        Self::initialize_with(version, r#"{"roots":{},"sampling":{},"elicitation":{}}"#)
    }

    /// The same with these capabilities, as raw JSON.
    pub fn initialize_with(version: &str, capabilities: &str) -> Ask {
        Ask::old("initialize").id("0").params(&format!(
            r#""protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"{NAME}","version":"1"}}"#
        ))
    }

    /// A whole handshake as a client of `version` does it.
    pub async fn open(proxy: &Proxy, version: &str) -> Self {
        Self::open_as(proxy, version, None).await
    }

    pub async fn open_as(proxy: &Proxy, version: &str, token: Option<&str>) -> Self {
        let ask = Self::initialize(version);
        let done = proxy.send(&token.map_or(ask.clone(), |token| ask.bearer(token))).await;
        Self::initialized(proxy, &done, token).await
    }

    /// What is left of the handshake when `initialize` has been answered.
    pub async fn initialized(proxy: &Proxy, done: &Done, token: Option<&str>) -> Self {
        let old = Self::answered(done, token);
        let accepted = proxy.send(&old.note("notifications/initialized")).await;
        assert_eq!(accepted.status, 202, "{}", accepted.raw);
        old
    }

    /// What a client remembers of the answer to `initialize`.
    pub fn answered(done: &Done, token: Option<&str>) -> Self {
        let agreed = done.result()["protocolVersion"].as_str().expect("a version").to_owned();
        Self {
            session: done.headers.get("mcp-session-id"),
            version: (agreed.as_str() >= "2025-06-18").then_some(agreed),
            token: token.map(str::to_owned),
        }
    }

    pub async fn latest(proxy: &Proxy) -> Self {
        Self::open(proxy, "2025-11-25").await
    }

    fn dressed(&self, ask: Ask) -> Ask {
        let ask = self.session.iter().fold(ask, |ask, id| ask.header("Mcp-Session-Id", id));
        let ask = self.version.iter().fold(ask, |ask, version| ask.header("MCP-Protocol-Version", version));
        self.token.iter().fold(ask, |ask, token| ask.bearer(token))
    }

    pub fn ask(&self, method: &str) -> Ask {
        self.dressed(Ask::old(method))
    }

    pub fn call(&self, tool: &str, arguments: &str) -> Ask {
        self.ask("tools/call").params(&format!(r#""name":"{tool}","arguments":{arguments}"#))
    }

    pub fn note(&self, method: &str) -> Ask {
        self.ask(method).notification()
    }

    /// Any body at all.
    pub fn raw(&self, body: &str) -> Ask {
        self.ask("").raw_body(body.as_bytes())
    }

    /// The answer to a request of the server, its id as raw JSON.
    pub fn answer(&self, id: &str, result: &str) -> Ask {
        self.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }

    fn bare(&self, verb: &str) -> Ask {
        let mut ask = Ask::verb(verb).without("MCP-Protocol-Version");
        ask.legacy = true;
        self.dressed(ask)
    }

    pub fn get(&self) -> Ask {
        self.bare("GET").header("Accept", "text/event-stream")
    }

    pub fn delete(&self) -> Ask {
        self.bare("DELETE")
    }
}

impl Done {
    /// The error that stands in the place of a result, with the status of an answer (A12.21).
    #[track_caller]
    pub fn is_answered_error(&self, code: i64) {
        self.is_error(200, code);
    }
}
