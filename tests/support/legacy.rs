//! A legacy Streamable HTTP server that keeps the rules of its revision and insists that its client does.
//!
//! Owns handshake, sessions and canned answers; a test replaces the answer to any method. Does not own faults: a
//! test that needs a misbehaving server says so in its own handler.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use super::net::{Handler, Receiver, handler};
use super::{Net, Reply, Seen, Upstream, rpc};

pub const SERVER_INFO: &str = r#"{"name":"old","version":"7"}"#;

#[derive(Clone)]
pub struct LegacyServer {
    version: String,
    capabilities: String,
    instructions: Option<String>,
    sessions: bool,
    results: HashMap<String, String>,
    handlers: HashMap<String, Handler>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    minted: usize,
    live: HashSet<String>,
    initialized: HashSet<String>,
    deleted: Vec<String>,
    /// Arrival counts by method, for tests that answer the first one differently.
    counts: BTreeMap<String, usize>,
}

impl Default for LegacyServer {
    fn default() -> Self {
        Self::new()
    }
}

impl LegacyServer {
    /// Revision 2025-11-25, sessions, every capability, and a small answer for every method.
    pub fn new() -> Self {
        let results = [
            ("ping", "{}"),
            ("tools/list", r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#),
            ("tools/call", r#"{"content":[{"type":"text","text":"done"}]}"#),
            ("prompts/list", r#"{"prompts":[{"name":"p"}]}"#),
            ("prompts/get", r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#),
            ("resources/list", r#"{"resources":[{"uri":"file:///x","name":"x"}]}"#),
            (
                "resources/templates/list",
                r#"{"resourceTemplates":[{"uriTemplate":"file:///{p}","name":"t"}]}"#,
            ),
            ("resources/read", r#"{"contents":[{"uri":"file:///x","text":"body"}]}"#),
            ("completion/complete", r#"{"completion":{"values":["a"]}}"#),
            ("logging/setLevel", "{}"),
        ];
        Self {
            version: "2025-11-25".to_owned(),
            capabilities: r#"{"tools":{},"prompts":{},"resources":{},"completions":{},"logging":{}}"#
                .to_owned(),
            instructions: None,
            sessions: true,
            results: results.iter().map(|(m, r)| ((*m).to_owned(), (*r).to_owned())).collect(),
            handlers: HashMap::new(),
            state: Arc::default(),
        }
    }

    /// As `new`, with every change notification declared and subscriptions taken.
    pub fn telling() -> Self {
        let lists = r#""tools":{"listChanged":true},"prompts":{"listChanged":true}"#;
        let resources = r#""resources":{"listChanged":true,"subscribe":true}"#;
        Self::new()
            .capabilities(&format!(r#"{{{lists},{resources},"completions":{{}},"logging":{{}}}}"#))
            .result("resources/subscribe", "{}")
            .result("resources/unsubscribe", "{}")
    }

    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    #[must_use]
    pub fn capabilities(mut self, raw: &str) -> Self {
        raw.clone_into(&mut self.capabilities);
        self
    }

    #[must_use]
    pub fn instructions(mut self, text: &str) -> Self {
        self.instructions = Some(text.to_owned());
        self
    }

    /// No session ids are issued and none is wanted (C04).
    #[must_use]
    pub fn sessionless(mut self) -> Self {
        self.sessions = false;
        self
    }

    /// The raw result of a method.
    #[must_use]
    pub fn result(mut self, method: &str, raw: &str) -> Self {
        self.results.insert(method.to_owned(), raw.to_owned());
        self
    }

    /// A raw JSON-RPC error, in band (200), for a method.
    #[must_use]
    pub fn error(self, method: &str, raw: &str) -> Self {
        let raw = raw.to_owned();
        self.on(method, move |seen, reply| {
            let raw = raw.clone();
            async move { reply.error(200, &seen, &raw).await }
        })
    }

    /// Full control over a method (or the verb `GET`, or `response`); the session gate stands in front of it
    /// for everything but `initialize` and `server/discover`.
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
        net.serve(authority, Receiver::Legacy, handler(move |seen, reply| server.clone().answer(seen, reply)))
    }

    /// As after a restart: every session id is unknown.
    pub fn forget_sessions(&self) {
        let mut state = self.state.lock().unwrap();
        state.live.clear();
        state.initialized.clear();
    }

    pub fn live_sessions(&self) -> usize {
        self.state.lock().unwrap().live.len()
    }

    pub fn deleted(&self) -> Vec<String> {
        self.state.lock().unwrap().deleted.clone()
    }

    /// Adds one to the arrivals of `what` and says how many there were before.
    pub fn count(&self, what: &str) -> usize {
        let mut state = self.state.lock().unwrap();
        let n = state.counts.entry(what.to_owned()).or_default();
        *n += 1;
        *n - 1
    }

    /// The raw result of `initialize`.
    pub fn initialize_result(&self) -> String {
        let instructions =
            self.instructions.as_ref().map(|i| format!(r#","instructions":"{i}""#)).unwrap_or_default();
        let (version, capabilities) = (&self.version, &self.capabilities);
        format!(
            r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"serverInfo":{SERVER_INFO}{instructions}}}"#
        )
    }

    pub async fn answer(self, seen: Arc<Seen>, reply: Reply) {
        let brief = seen.brief();
        match brief.as_str() {
            "initialize" => self.initialize(seen, reply).await,
            "server/discover" => match self.handlers.get("server/discover") {
                Some(own) => own(seen, reply).await,
                None => reply.json(400, &gate("Bad Request: Server not initialized")).await,
            },
            _ => match self.gate(&seen) {
                Err((status, message)) => reply.json(status, &gate(message)).await,
                Ok(()) => self.serve(&brief, seen, reply).await,
            },
        }
    }

    async fn initialize(&self, seen: Arc<Seen>, reply: Reply) {
        if let Some(own) = self.handlers.get("initialize") {
            return own(seen, reply).await;
        }
        self.initialize_as_usual(&seen, reply).await;
    }

    /// What `initialize` is answered unless a test replaced it; for tests that only add to it.
    pub async fn initialize_as_usual(&self, seen: &Seen, reply: Reply) {
        let result = self.initialize_result();
        if !self.sessions {
            return reply.result(seen, &result).await;
        }
        reply.with("Mcp-Session-Id", &self.mint()).result(seen, &result).await;
    }

    /// The id of another session.
    pub fn mint(&self) -> String {
        let mut state = self.state.lock().unwrap();
        state.minted += 1;
        let session = format!("S{}", state.minted);
        state.live.insert(session.clone());
        session
    }

    async fn serve(&self, brief: &str, seen: Arc<Seen>, reply: Reply) {
        if brief == "notifications/initialized" {
            let session = seen.session().unwrap_or_default();
            self.state.lock().unwrap().initialized.insert(session);
        }
        if let Some(own) = self.handlers.get(brief) {
            return own(seen, reply).await;
        }
        match (brief, self.results.get(brief)) {
            ("GET", _) => reply.empty(405).await,
            ("DELETE", _) => {
                let session = seen.session().unwrap_or_default();
                {
                    let mut state = self.state.lock().unwrap();
                    state.live.remove(&session);
                    state.deleted.push(session);
                }
                reply.empty(200).await;
            }
            ("response", _) => reply.empty(202).await,
            _ if rpc::id(&seen.body).is_none() => reply.empty(202).await,
            (_, Some(result)) => reply.result(&seen, result).await,
            (_, None) => reply.error(200, &seen, r#"{"code":-32601,"message":"Method not found"}"#).await,
        }
    }

    fn gate(&self, seen: &Seen) -> Result<(), (u16, &'static str)> {
        let state = self.state.lock().unwrap();
        let session = match (self.sessions, seen.session()) {
            (false, None) => String::new(),
            (false, Some(_)) => return Err((400, "Bad Request: this server issued no session")),
            (true, None) => return Err((400, "Bad Request: Mcp-Session-Id header is required")),
            (true, Some(id)) if !state.live.contains(&id) => return Err((404, "Session not found")),
            (true, Some(id)) => id,
        };
        let at_any_time = matches!(seen.brief().as_str(), "notifications/initialized" | "response");
        let early = !at_any_time && !state.initialized.contains(&session);
        if early && seen.verb == "POST" {
            return Err((400, "Bad Request: notifications/initialized has not come"));
        }
        if seen.header("mcp-protocol-version").is_some_and(|v| v != self.version) {
            return Err((400, "Bad Request: Unsupported protocol version"));
        }
        Ok(())
    }
}

fn gate(message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","error":{{"code":-32000,"message":"{message}"}},"id":null}}"#)
}
