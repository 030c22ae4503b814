//! A proxy before one program, whose calls and subscriptions are in the test's hands, and what its processes have read.
#![allow(unreachable_pub)]

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::support::stdio_server::Script;
use crate::support::{
    Ask, Call, Calls, Child, Done, Gets, LegacyServer, Listens, ModernServer, Net, Proxy, Round, Running,
    Stream, Upstream, User, Value, call, lines, net, pass, rpc, shape_answers, within,
};

/// What a legacy program answers to the probe.
pub const UNKNOWN: &str = r#"{"code":-32601,"message":"Method not found"}"#;
pub const HANDSHAKE: [&str; 3] = ["server/discover", "initialize", "notifications/initialized"];

pub struct Stage {
    pub net: Net,
    pub proxy: Arc<Proxy>,
    pub up: Upstream,
    pub calls: Calls,
    pub listens: Listens,
}

/// A call of a client that waits, and the same call at the server.
pub struct Begun {
    pub ask: Ask,
    pub client: JoinHandle<Done>,
    pub call: Arc<Call>,
}

/// A call with a mark by which it is known, of a client that can be asked nothing.
pub fn plain(n: usize) -> Ask {
    call("plain", &format!(r#"{{"n":{n}}}"#))
}

/// The same of a client that can be asked everything.
pub fn asking(n: usize) -> Ask {
    call("ask", &format!(r#"{{"n":{n}}}"#)).caps(crate::support::questions::ALL)
}

pub fn legacy_server() -> LegacyServer {
    LegacyServer::telling().error("server/discover", UNKNOWN)
}

impl Stage {
    /// Before a legacy program, with more lines for the upstream's section of the configuration.
    pub async fn legacy(lines: &str) -> Self {
        Self::legacy_of(legacy_server(), lines).await
    }

    pub async fn legacy_of(server: LegacyServer, lines: &str) -> Self {
        let (net, calls, gets) = (Net::new(), Calls::new(), Gets::open());
        let up = calls.of(gets.of(server)).start_program(&net, "server");
        Self::before(net, up, calls, lines).await
    }

    /// Before a legacy program of which nothing is in the test's hands.
    pub async fn canned(server: LegacyServer, lines: &str) -> Self {
        let net = Net::new();
        let up = server.start_program(&net, "server");
        Self::before(net, up, Calls::new(), lines).await
    }

    /// Before a modern program, whose clients are modern.
    pub async fn modern(lines: &str) -> Self {
        let (net, calls, listens) = (Net::new(), Calls::new(), Listens::open());
        let up = calls.of_modern(listens.of(ModernServer::full())).start_program(&net, "server");
        Self { listens, ..Self::before(net, up, calls, lines).await }
    }

    /// Before a modern program, whose clients are legacy ones.
    pub async fn bridged(lines: &str) -> Self {
        let (net, calls, listens) = (Net::new(), Calls::new(), Listens::open());
        let up = calls.of_modern(listens.of(ModernServer::full())).start_bridged_program(&net, "server");
        Self { listens, ..Self::before(net, up, calls, lines).await }
    }

    pub async fn before(net: Net, up: Upstream, calls: Calls, lines: &str) -> Self {
        let proxy = Arc::new(Proxy::of_command(&net, lines).await);
        Self { net, proxy, up, calls, listens: Listens::open() }
    }

    /// From the whole text of a configuration file, where there is more than one upstream.
    pub async fn configured(server: LegacyServer, toml: &str) -> Self {
        let (net, calls, gets) = (Net::new(), Calls::new(), Gets::open());
        let up = calls.of(gets.of(server)).start_program(&net, "server");
        let proxy = Arc::new(Proxy::configured(&net, toml).await);
        Self { net, proxy, up, calls, listens: Listens::open() }
    }

    /// What the program does as a well-behaved server, for scripts that add to it.
    pub fn behind(&self) -> Script {
        lines::behind(self.up.clone())
    }

    /// From now on a process does `before` first, and serves then unless that says an exit code.
    pub fn first<F, T>(&self, before: F)
    where
        F: Fn(Arc<Running>) -> T + Send + Sync + 'static,
        T: Future<Output = Option<u8>> + Send + 'static,
    {
        let serve = self.behind();
        self.net.programs().put("server", move |child: Child| {
            let (before, serve) = (before(child.running()), serve.clone());
            async move {
                match before.await {
                    Some(code) => code,
                    None => serve(child).await,
                }
            }
        });
    }

    /// The n-th process of the test, from 1.
    pub async fn child(&self, n: usize) -> Arc<Running> {
        self.net.programs().wait(n).await
    }

    pub fn children(&self) -> Vec<Arc<Running>> {
        self.net.programs().all()
    }

    /// How many processes run.
    pub fn alive(&self) -> usize {
        self.net.programs().alive().len()
    }

    pub async fn send(&self, ask: &Ask) -> Done {
        self.proxy.send(ask).await
    }

    /// Starts a request.
    pub fn run(&self, ask: &Ask) -> JoinHandle<Done> {
        self.proxy.spawn(ask)
    }

    /// A call that has reached the server; nothing else may be on its way there.
    pub async fn begin(&self, ask: &Ask) -> Begun {
        let before = self.calls.all().len();
        let client = self.run(ask);
        let call = self.calls.wait(before + 1).await;
        Begun { ask: ask.clone(), client, call }
    }

    /// A call of this text from its beginning to its end.
    pub async fn finished(&self, ask: &Ask, text: &str) {
        let begun = self.begin(ask).await;
        begun.call.finish(text);
        ends_with(&begun.done().await, text);
    }

    /// A client of the latest legacy revision.
    pub async fn user(&self) -> User {
        User::begin(&self.proxy, "2025-11-25").await
    }

    pub async fn user_as(&self, token: &str) -> User {
        let all = crate::support::user::everything("2025-11-25");
        User::begin_with(&self.proxy, "2025-11-25", all, Some(token)).await
    }

    /// A call of a legacy client that has reached the server, whatever comes of it.
    pub async fn start(&self, user: &User, ask: &Ask) -> (JoinHandle<Stream>, Arc<Call>) {
        let before = self.calls.all().len();
        let (user, ask) = (user.clone(), ask.clone());
        let opening = tokio::spawn(async move { user.open(&ask).await });
        (opening, self.calls.wait(before + 1).await)
    }

    /// Everything that the server was answered to this question (raw id), in order.
    pub fn answers_to(&self, id: &str) -> Vec<Value> {
        let requests = self.up.requests().into_iter().filter(|seen| seen.brief() == "response");
        requests.filter(|seen| rpc::id(&seen.body).as_deref() == Some(id)).map(|seen| seen.json()).collect()
    }

    /// Waits until the question of this raw id is answered, and looks at the answer with the eyes of a server that asked so.
    pub async fn answer(&self, id: &str, method: &str) -> Value {
        let found = within(&format!("an answer to {id}"), async {
            loop {
                let n = self.responses();
                if let Some(answer) = self.answers_to(id).pop() {
                    return answer;
                }
                self.up.wait("response", n + 1).await;
            }
        })
        .await;
        assert_eq!(self.answers_to(id).len(), 1, "answered once");
        shape_answers::check(method, &found);
        found
    }

    fn responses(&self) -> usize {
        self.up.requests().iter().filter(|seen| seen.brief() == "response").count()
    }

    /// The calls that were cancelled at the server, by their ids there.
    pub fn cancelled(&self) -> Vec<Value> {
        let posts = self.up.posts("notifications/cancelled");
        posts.iter().map(|seen| seen.json()["params"]["requestId"].clone()).collect()
    }

    /// Waits until this call is cancelled at the server, which it is once.
    pub async fn is_cancelled_once(&self, call: &Call) {
        within("the cancellation of a call", async {
            let mut n = self.cancelled().len();
            while !self.cancelled().contains(&call.id()) {
                n += 1;
                self.up.wait("notifications/cancelled", n).await;
            }
        })
        .await;
        pass(1000).await;
        let times = self.cancelled().iter().filter(|id| **id == call.id()).count();
        assert_eq!(times, 1, "cancelled once: {:?}", self.cancelled());
    }

    /// The sum of all samples of a metric whose labels contain all of these.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let metrics = self.proxy.metrics();
        let of_it = |line: &&str| line.split(['{', ' ']).next() == Some(name);
        let fits = |line: &&str| labels.iter().all(|label| line.contains(label));
        let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
        metrics.lines().filter(of_it).filter(fits).filter_map(value).sum()
    }

    /// After a while without any caller no process is left, and every one was reaped.
    pub async fn nothing_is_left(&self) {
        pass(7_200_000).await;
        self.net.programs().over().await;
        assert_eq!(self.metric("mcp_janus_upstream_processes", &[]), 0.0);
    }
}

impl Begun {
    pub async fn done(self) -> Done {
        done(self.client).await
    }

    pub async fn round(self) -> Round {
        let ask = self.ask.clone();
        Round::of(&ask, self.done().await)
    }

    /// The client goes away.
    pub async fn leave(self) -> Arc<Call> {
        self.client.abort();
        pass(100).await;
        self.call
    }
}

pub async fn done(client: JoinHandle<Done>) -> Done {
    within("an answer", client).await.expect("a client that is not aborted")
}

pub async fn opened(opening: JoinHandle<Stream>) -> Stream {
    within("the head of an answer", opening).await.expect("a client that is not aborted")
}

/// Fails the test where a call did not end with this text.
#[track_caller]
pub fn ends_with(done: &Done, text: &str) {
    let result = done.result();
    assert_eq!(result["resultType"], "complete", "{}", done.raw);
    assert!(done.raw.contains(&format!("\"{text}\"")), "{text}: {}", done.raw);
}

/// The message of an error.
#[track_caller]
pub fn words(done: &Done) -> String {
    done.message["error"]["message"].as_str().unwrap_or_else(|| panic!("an error: {}", done.raw)).to_owned()
}

/// A peer whose requests are not looked at, for programs that are scripts alone.
pub async fn scripted<F, T>(lines: &str, f: F) -> Stage
where
    F: Fn(Child) -> T + Send + Sync + 'static,
    T: Future<Output = u8> + Send + 'static,
{
    let net = Net::new();
    let up = net.serve("server", net::Receiver::Unchecked, net::handler(|_, _| async {}));
    net.programs().put("server", f);
    Stage::before(net, up, Calls::new(), lines).await
}
