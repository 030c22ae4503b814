//! A modern (2026-07-28) Streamable HTTP server with canned answers.
//!
//! Owns `server/discover` and one answer a method; requests are checked as they arrive (`shape_requests`).

use std::collections::HashMap;
use std::sync::Arc;

use super::net::{Handler, Receiver, handler};
use super::{Net, Reply, Seen, Upstream};

const SI: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"8"}}"#;

#[derive(Clone, Default)]
pub struct ModernServer {
    handlers: HashMap<String, Handler>,
}

impl ModernServer {
    pub fn new() -> Self {
        let cached = format!(r#""resultType":"complete","ttlMs":0,"cacheScope":"private",{SI}"#);
        Self::default()
            .result(
                "server/discover",
                &format!(
                    r#"{{{cached},"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}}}}"#
                ),
            )
            .result(
                "tools/list",
                &format!(r#"{{{cached},"tools":[{{"name":"echo","inputSchema":{{"type":"object"}}}}]}}"#),
            )
            .result(
                "tools/call",
                &format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"modern"}}],{SI}}}"#),
            )
    }

    #[must_use]
    pub fn result(self, method: &str, raw: &str) -> Self {
        let raw = raw.to_owned();
        self.on(method, move |seen, reply| {
            let raw = raw.clone();
            async move { reply.result(&seen, &raw).await }
        })
    }

    #[must_use]
    pub fn on<F, T>(mut self, method: &str, f: F) -> Self
    where
        F: Fn(Arc<Seen>, Reply) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        self.handlers.insert(method.to_owned(), handler(f));
        self
    }

    pub fn start(&self, net: &Net) -> Upstream {
        self.start_at(net, "up.test")
    }

    pub fn start_at(&self, net: &Net, authority: &str) -> Upstream {
        let server = self.clone();
        net.serve(authority, Receiver::Modern, handler(move |seen, reply| server.clone().answer(seen, reply)))
    }

    /// For tests in which it has taken a legacy server's place and is sent what it does not know.
    pub fn start_unchecked(&self, net: &Net) -> Upstream {
        let server = self.clone();
        let answer = handler(move |seen, reply| server.clone().answer(seen, reply));
        net.serve("up.test", Receiver::Unchecked, answer)
    }

    pub async fn answer(self, seen: Arc<Seen>, reply: Reply) {
        let brief = seen.brief();
        let version = seen.header("mcp-protocol-version").unwrap_or_default();
        let request = seen.verb == "POST" && !brief.starts_with("notifications/") && brief != "initialize";
        if request && version != "2026-07-28" {
            let data = format!(r#"{{"supported":["2026-07-28"],"requested":"{version}"}}"#);
            let error =
                format!(r#"{{"code":-32022,"message":"Unsupported protocol version","data":{data}}}"#);
            return reply.error(400, &seen, &error).await;
        }
        match self.handlers.get(&brief) {
            Some(own) => own(seen, reply).await,
            None if brief == "initialize" => {
                let error = r#"{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}"#;
                reply.error(400, &seen, error).await;
            }
            None if seen.verb != "POST" => reply.empty(405).await,
            None if brief.starts_with("notifications/") => reply.empty(202).await,
            None => reply.error(404, &seen, r#"{"code":-32601,"message":"Method not found"}"#).await,
        }
    }
}
