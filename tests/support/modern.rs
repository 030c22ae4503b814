//! A modern (2026-07-28) Streamable HTTP server with canned answers.
//!
//! Owns `server/discover` and one answer a method; requests are checked as they arrive (`shape_requests`).

use std::collections::HashMap;
use std::sync::Arc;

use super::net::{Handler, Receiver, handler};
use super::{Net, Reply, Seen, Upstream};

/// What every result of this server says of it.
pub const SI: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"8"}}"#;

/// What `full` offers.
pub const EVERYTHING: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}"#;
/// Members of results that a client may keep.
pub const UNCACHED: &str = r#""ttlMs":0,"cacheScope":"private","#;
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The raw result of a method with these members, as this revision wants it.
pub fn complete(method: &str, members: &str) -> String {
    let cache = if CACHEABLE.contains(&method) { UNCACHED } else { "" };
    let comma = if members.is_empty() { "" } else { "," };
    format!(r#"{{"resultType":"complete",{cache}{members}{comma}{SI}}}"#)
}

/// The raw result of a list with these members that may be kept for so long by those of this scope.
pub fn kept(members: &str, ttl: u64, scope: &str) -> String {
    format!(r#"{{"resultType":"complete","ttlMs":{ttl},"cacheScope":"{scope}",{members},{SI}}}"#)
}

/// The raw result that asks for these, each a key and a raw request, with this state as raw JSON.
pub fn asks(entries: &[(&str, &str)], state: Option<&str>) -> String {
    let all: Vec<_> = entries.iter().map(|(key, entry)| format!(r#""{key}":{entry}"#)).collect();
    let asked =
        if all.is_empty() { String::new() } else { format!(r#""inputRequests":{{{}}},"#, all.join(",")) };
    let state = state.map(|state| format!(r#""requestState":{state},"#)).unwrap_or_default();
    format!(r#"{{"resultType":"input_required",{asked}{state}{SI}}}"#)
}

#[derive(Clone, Default)]
pub struct ModernServer {
    handlers: HashMap<String, Handler>,
    guard: Option<Guard>,
}

/// Whether a token (empty: none) is taken.
type Guard = Arc<dyn Fn(&str) -> bool + Send + Sync>;

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

    /// As `new`, with everything that a server may offer.
    pub fn full() -> Self {
        let results = [
            ("prompts/list", r#""prompts":[{"name":"p"}]"#),
            ("prompts/get", r#""messages":[{"role":"user","content":{"type":"text","text":"hi"}}]"#),
            ("resources/list", r#""resources":[{"uri":"file:///x","name":"x"}]"#),
            ("resources/templates/list", r#""resourceTemplates":[{"uriTemplate":"file:///{p}","name":"t"}]"#),
            ("resources/read", r#""contents":[{"uri":"file:///x","text":"body"}]"#),
            ("completion/complete", r#""completion":{"values":["a"]}"#),
        ];
        let server = Self::new().discovers(&format!(r#""capabilities":{EVERYTHING}"#));
        results.into_iter().fold(server, |server, (method, members)| server.completes(method, members))
    }

    /// What `server/discover` says besides the version.
    #[must_use]
    pub fn discovers(self, members: &str) -> Self {
        self.completes("server/discover", &format!(r#""supportedVersions":["2026-07-28"],{members}"#))
    }

    /// The members of a method's result besides those that every result has.
    #[must_use]
    pub fn completes(self, method: &str, members: &str) -> Self {
        self.result(method, &complete(method, members))
    }

    /// Its tools, as raw JSON.
    #[must_use]
    pub fn tools(self, tools: &str) -> Self {
        self.completes("tools/list", &format!(r#""tools":[{tools}]"#))
    }

    /// A raw JSON-RPC error for a method, with this status.
    #[must_use]
    pub fn fails(self, method: &str, status: u16, error: &str) -> Self {
        let error = error.to_owned();
        self.on(method, move |seen, reply| {
            let error = error.clone();
            async move { reply.error(status, &seen, &error).await }
        })
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

    /// Everything that comes without a token that is taken gets 401 and a challenge.
    #[must_use]
    pub fn guarded(mut self, takes: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.guard = Some(Arc::new(takes));
        self
    }

    pub fn start(&self, net: &Net) -> Upstream {
        self.start_at(net, "up.test")
    }

    pub fn start_at(&self, net: &Net, authority: &str) -> Upstream {
        self.start_as(net, authority, Receiver::Modern)
    }

    /// Behind legacy clients only.
    pub fn start_bridged(&self, net: &Net) -> Upstream {
        self.start_as(net, "up.test", Receiver::Bridged)
    }

    fn start_as(&self, net: &Net, authority: &str, receiver: Receiver) -> Upstream {
        let server = self.clone();
        net.serve(authority, receiver, handler(move |seen, reply| server.clone().answer(seen, reply)))
    }

    /// For tests in which it has taken a legacy server's place and is sent what it does not know.
    pub fn start_unchecked(&self, net: &Net) -> Upstream {
        self.start_as(net, "up.test", Receiver::Unchecked)
    }

    pub async fn answer(self, seen: Arc<Seen>, reply: Reply) {
        let token = seen.header("authorization").unwrap_or_default();
        let token = token.strip_prefix("Bearer ").unwrap_or_default();
        if self.guard.as_ref().is_some_and(|takes| !takes(token)) {
            return reply.with("WWW-Authenticate", "Bearer error=\"invalid_token\"").empty(401).await;
        }
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
