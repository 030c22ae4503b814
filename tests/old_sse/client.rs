//! A client of HTTP+SSE of one revision that has done its handshake.
//!
//! Owns what such a client says; the stream and the POSTs are `old_sse_client`'s.

use std::ops::Deref;
use std::sync::Arc;

use crate::support::old::NAME;
use crate::support::{Net, OldSse, Proxy, Said, Value};

pub(crate) const PATH: &str = "/sse";
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What a client of each revision declares.
pub(crate) fn capabilities(revision: &str) -> &'static str {
    match revision {
        "2025-11-25" | "2025-06-18" => r#"{"elicitation":{},"sampling":{},"roots":{"listChanged":true}}"#,
        _ => r#"{"sampling":{},"roots":{"listChanged":true}}"#,
    }
}

/// A proxy with such clients, before the upstream of these lines.
pub(crate) async fn proxy(net: &Net, lines: &str) -> Arc<Proxy> {
    bounded(net, "", lines).await
}

/// The same with lines before the upstream's.
pub(crate) async fn bounded(net: &Net, front: &str, lines: &str) -> Arc<Proxy> {
    let url = if lines.contains("url =") || lines.contains("command =") {
        ""
    } else {
        "url = \"http://up.test/mcp\""
    };
    let toml = format!("{front}\n[upstream.up]\nsse_path = \"{PATH}\"\n{url}\n{lines}");
    Arc::new(Proxy::configured(net, &toml).await)
}

pub(crate) fn request(id: &str, method: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}}}}}"#)
}

pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> String {
    request(id, "tools/call", &format!(r#""name":"{tool}","arguments":{arguments}"#))
}

pub(crate) fn initialize(revision: &str) -> String {
    let capabilities = capabilities(revision);
    request(
        "0",
        "initialize",
        &format!(
            r#""protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"{NAME}","version":"1"}}"#
        ),
    )
}

pub(crate) struct Client {
    old: OldSse,
    /// What `initialize` was answered.
    pub(crate) initialized: Value,
}

impl Deref for Client {
    type Target = OldSse;

    fn deref(&self) -> &OldSse {
        &self.old
    }
}

impl Client {
    pub(crate) async fn begin(proxy: &Arc<Proxy>, revision: &str) -> Self {
        Self::begin_as(proxy, revision, None).await
    }

    pub(crate) async fn begin_as(proxy: &Arc<Proxy>, revision: &str, token: Option<&str>) -> Self {
        let old = OldSse::open_as(proxy, PATH, token).await;
        old.say(&initialize(revision)).await;
        let answer = old.ear.answer("0").await;
        let initialized = answer.message["result"].clone();
        assert!(initialized.is_object(), "a session, not {}", answer.raw);
        old.say(INITIALIZED).await;
        Self { old, initialized }
    }

    /// A request and its answer.
    pub(crate) async fn ask(&self, text: &str) -> Said {
        self.say(text).await;
        let id = crate::support::rpc::id(text.as_bytes()).unwrap();
        self.ear.answer(&id).await
    }

    /// The result of a request; anything else fails the test.
    pub(crate) async fn result(&self, text: &str) -> Value {
        let said = self.ask(text).await;
        said.message.get("result").cloned().unwrap_or_else(|| panic!("a result, not {}", said.raw))
    }

    /// The n-th question, from 1.
    pub(crate) async fn question(&self, n: usize) -> Value {
        self.ear.nth("a question", n, Said::is_question).await.message
    }

    pub(crate) async fn answer(&self, question: &Value, result: &str) {
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, question["id"])).await;
    }

    pub(crate) fn close(self) {
        self.old.close();
    }
}
