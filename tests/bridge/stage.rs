//! A proxy before one modern server whose calls and subscriptions are in the test's hands, and legacy clients before it.
#![allow(unreachable_pub)]

use std::collections::HashSet;
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::support::leftovers::standing;
use crate::support::{
    Ask, Call, Calls, Listens, ModernServer, Net, Old, Proxy, Seen, Stream, Upstream, User, Value, json,
    pass, rpc, shape_envelope, within,
};

pub const META: &str = "io.modelcontextprotocol/";
/// The revisions whose clients come by Streamable HTTP; that of 2024-11-05 may speak it too.
pub const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
pub const LATEST: &str = "2025-11-25";

/// A question of each kind as an entry of `inputRequests`, and an answer to it.
pub const FORM: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}}}"#;
pub const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}}"#;
pub const ROOTS: &str = r#"{"method":"roots/list"}"#;
pub const ACCEPT: &str = r#"{"action":"accept","content":{"n":"x"}}"#;
pub const SAMPLED: &str =
    r#"{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m-1","stopReason":"endTurn"}"#;
pub const ROOTED: &str = r#"{"roots":[{"uri":"file:///home","name":"home"}]}"#;

/// An entry that asks to visit this page.
pub fn visit(url: &str) -> String {
    format!(
        r#"{{"method":"elicitation/create","params":{{"mode":"url","message":"go there","url":"{url}"}}}}"#
    )
}

/// An entry with a form of these fields, as raw JSON.
pub fn form(fields: &str) -> String {
    format!(
        r#"{{"method":"elicitation/create","params":{{"message":"m","requestedSchema":{{"type":"object","properties":{fields}}}}}}}"#
    )
}

pub struct Stage {
    pub net: Net,
    pub proxy: Arc<Proxy>,
    pub up: Upstream,
    pub calls: Calls,
    pub listens: Listens,
    toml: String,
    /// More than one process has sent requests; each has ids of its own.
    pub several: bool,
}

impl Stage {
    pub async fn new() -> Self {
        Self::with("").await
    }

    /// With more lines for the upstream's section of the configuration.
    pub async fn with(lines: &str) -> Self {
        Self::bounded("", lines).await
    }

    /// With lines before the upstream's section.
    pub async fn bounded(front: &str, lines: &str) -> Self {
        let calls = Calls::new();
        let server = calls.of_modern(ModernServer::full());
        Self::build(server, calls, Listens::open(), front, lines).await
    }

    /// Before this server, whose calls are not in the test's hands.
    pub async fn before(server: ModernServer) -> Self {
        Self::before_with(server, "").await
    }

    pub async fn before_with(server: ModernServer, lines: &str) -> Self {
        Self::build(server, Calls::new(), Listens::open(), "", lines).await
    }

    /// With these subscriptions.
    pub async fn listening(listens: Listens, lines: &str) -> Self {
        let calls = Calls::new();
        let server = calls.of_modern(ModernServer::full());
        Self::build(server, calls, listens, "", lines).await
    }

    pub async fn build(
        server: ModernServer,
        calls: Calls,
        listens: Listens,
        front: &str,
        lines: &str,
    ) -> Self {
        let net = Net::new();
        let up = listens.of(server).start_bridged(&net);
        let toml = format!("{front}\n[upstream.up]\nurl = \"http://up.test/mcp\"\n{lines}");
        let proxy = Arc::new(Proxy::configured(&net, &toml).await);
        Self { net, proxy, up, calls, listens, toml, several: false }
    }

    /// Another process of the same configuration in the place of the first.
    pub async fn restart(&mut self) {
        self.proxy.cut();
        pass(1000).await;
        self.several = true;
        self.proxy = Arc::new(Proxy::configured(&self.net, &self.toml).await);
    }

    /// A client of this revision that can do everything that it may declare.
    pub async fn user(&self, revision: &str) -> User {
        User::begin(&self.proxy, revision).await
    }

    /// One of the latest legacy revision.
    pub async fn latest(&self) -> User {
        self.user(LATEST).await
    }

    pub async fn user_with(&self, revision: &str, capabilities: &str) -> User {
        User::begin_with(&self.proxy, revision, capabilities, None).await
    }

    pub async fn user_as(&self, token: &str) -> User {
        User::begin_with(&self.proxy, LATEST, crate::support::user::everything(LATEST), Some(token)).await
    }

    /// A request that has reached the server, whatever comes of it; the head of its answer may be held back until there
    /// is something to say.
    pub async fn start(&self, user: &User, ask: &Ask) -> (JoinHandle<Stream>, Arc<Call>) {
        let before = self.calls.all().len();
        let (user, ask) = (user.clone(), ask.clone());
        let opening = tokio::spawn(async move { user.open(&ask).await });
        (opening, self.calls.wait(before + 1).await)
    }

    /// A call of the tool `ask` that has reached the server, and whose client has the head of the answer.
    pub async fn begin(&self, user: &User) -> (Stream, Arc<Call>) {
        self.begin_at(user, &user.old.call("ask", "{}")).await
    }

    pub async fn begin_at(&self, user: &User, ask: &Ask) -> (Stream, Arc<Call>) {
        let (opening, call) = self.start(user, ask).await;
        (opened(opening).await, call)
    }

    /// The client's answer to a call of the tool `ask` that the server answers so.
    pub async fn asked(&self, user: &User, entries: &[(&str, &str)], state: Option<&str>) -> Stream {
        self.asked_at(user, &user.old.call("ask", "{}"), entries, state).await
    }

    pub async fn asked_at(
        &self,
        user: &User,
        ask: &Ask,
        entries: &[(&str, &str)],
        state: Option<&str>,
    ) -> Stream {
        let (opening, call) = self.start(user, ask).await;
        call.asks(entries, state);
        opened(opening).await
    }

    /// The n-th request of the only call after the first, which brings answers.
    pub async fn retried(&self, n: usize) -> Arc<Call> {
        self.calls.wait(n + 1).await
    }

    /// The requests of clients that reached the server: without probes, subscriptions and what the proxy asks for itself.
    pub fn briefs(&self) -> Vec<String> {
        let own = ["server/discover", "initialize", "subscriptions/listen"];
        self.up.briefs().into_iter().filter(|method| !own.contains(&method.as_str())).collect()
    }

    /// Runs something that must have no effect at the server at all.
    pub async fn unmoved<T>(&self, future: impl Future<Output = T>) -> T {
        let before = self.briefs();
        let value = future.await;
        pass(1000).await;
        assert_eq!(self.briefs(), before, "the server is not bothered");
        value
    }

    /// The sum of all samples of a metric whose labels contain all of these.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let metrics = self.proxy.metrics();
        let of_it = |line: &&str| line.split(['{', ' ']).next() == Some(name);
        let fits = |line: &&str| labels.iter().all(|label| line.contains(label));
        let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
        metrics.lines().filter(of_it).filter(fits).filter_map(value).sum()
    }

    /// The call has had `n` requests at the server, none of which is waited for any more.
    pub async fn is_over(&self, n: usize) {
        pass(1000).await;
        assert_eq!(self.calls.all().len(), n, "requests of calls: {:?}", self.briefs());
        assert_eq!(self.calls.running(), 0, "no call is waited for");
    }

    /// After a while without any caller nothing is left: no session, no stream, no gauge above zero.
    pub async fn nothing_is_left(&self) {
        pass(7_200_000).await;
        assert_eq!((self.calls.running(), self.listens.now()), (0, 0), "calls and subscriptions");
        assert_eq!(standing(&self.proxy.metrics()), [] as [String; 0]);
    }
}

pub async fn opened(opening: JoinHandle<Stream>) -> Stream {
    within("the head of an answer", opening).await.expect("a client that is not aborted")
}

/// Every request has an id of its own (B2.3), and nothing was sent that its receiver's specification forbids.
impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let mut ids = HashSet::new();
        // `initialize` is the client's own, and the probe is alone.
        let apart = |seen: &Arc<Seen>| ["initialize", "server/discover"].contains(&seen.brief().as_str());
        for seen in self.up.requests().into_iter().filter(|seen| !self.several && !apart(seen)) {
            if let Some(id) = rpc::id(&seen.body) {
                assert!(ids.insert(id.clone()), "the id {id} twice: {:?}", self.up.briefs());
            }
        }
        assert_eq!(self.net.faults(), [] as [String; 0]);
    }
}

/// What a request brings for the server's questions.
pub fn brings(call: &Call) -> Value {
    call.params().get("inputResponses").cloned().unwrap_or(Value::Null)
}

/// The capabilities that a request declares.
pub fn declares(seen: &Seen) -> Value {
    seen.json()["params"]["_meta"][format!("{META}clientCapabilities")].clone()
}

/// The value of a header, decoded; `None` where there is none.
pub fn mirrored(seen: &Seen, name: &str) -> Option<String> {
    seen.header(name).map(|value| shape_envelope::decoded(&value))
}

/// A legacy client that has no session.
pub fn stranger(version: Option<&str>) -> Old {
    Old { session: None, version: version.map(str::to_owned), token: None }
}

pub fn parse(raw: &str) -> Value {
    serde_json::from_str(raw).expect("JSON")
}

/// The only text of a result's content.
#[track_caller]
pub fn text_of(result: &Value) -> String {
    let content = result["content"].as_array().unwrap_or_else(|| panic!("content: {result}"));
    let texts: Vec<_> = content.iter().filter(|block| block["type"] == "text").collect();
    assert_eq!(texts.len(), 1, "one text: {result}");
    assert_ne!(texts[0]["text"], json!(null));
    texts[0]["text"].as_str().unwrap_or_default().to_owned()
}
