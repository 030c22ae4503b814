//! A proxy before one legacy server whose calls and GET streams are in the test's hands, and what that server has seen.
#![allow(unreachable_pub)]

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::support::leftovers::standing;
use crate::support::{
    Ask, Call, Calls, Done, Gets, LegacyServer, Net, Proxy, Round, Upstream, Value, call, json, pass, rpc,
    shape_answers, within,
};

/// The metric of parked calls.
pub const PARKED: &str = "mcp_janus_parked_calls";
pub const QUESTIONS_REFUSED: &str = "mcp_janus_questions_refused_total";
pub const STATES_REFUSED: &str = "mcp_janus_states_refused_total";

pub struct Stage {
    pub net: Net,
    pub proxy: Proxy,
    pub up: Upstream,
    pub calls: Calls,
    pub gets: Gets,
    pub server: LegacyServer,
    toml: String,
}

/// A call of a client that waits, and the same call at the server.
pub struct Begun {
    pub ask: Ask,
    pub client: JoinHandle<Done>,
    pub call: Arc<Call>,
}

/// A call of a tool that asks, with a mark by which it is known and the capabilities for a form.
pub fn asking(n: usize) -> Ask {
    call("ask", &format!(r#"{{"n":{n}}}"#)).caps(crate::support::questions::ALL)
}

impl Stage {
    pub async fn new() -> Self {
        Self::with("").await
    }

    /// With more lines for the upstream's section of the configuration.
    pub async fn with(lines: &str) -> Self {
        Self::of(LegacyServer::telling(), Gets::open(), "", lines).await
    }

    /// With lines before the upstream's section.
    pub async fn bounded(front: &str, lines: &str) -> Self {
        Self::of(LegacyServer::telling(), Gets::open(), front, lines).await
    }

    pub async fn of(server: LegacyServer, gets: Gets, front: &str, lines: &str) -> Self {
        let (net, calls) = (Net::new(), Calls::new());
        let server = calls.of(gets.of(server));
        let up = server.start(&net);
        let toml = format!("{front}\n[upstream.up]\nurl = \"http://up.test/mcp\"\n{lines}");
        Self { proxy: Proxy::configured(&net, &toml).await, net, up, calls, gets, server, toml }
    }

    /// Another process of the same configuration in the place of the first.
    pub async fn restart(&mut self) {
        self.proxy.cut();
        pass(1000).await;
        self.proxy = Proxy::configured(&self.net, &self.toml).await;
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

    /// The round that the client gets when the server asks this on the call's own stream, all at once.
    pub async fn asked(&self, ask: &Ask, questions: &[&str]) -> (Round, Arc<Call>) {
        let begun = self.begin(ask).await;
        questions.iter().for_each(|question| begun.call.event(question));
        let call = Arc::clone(&begun.call);
        (begun.round().await, call)
    }

    /// Everything that the server was answered, in order.
    pub fn answers(&self) -> Vec<Value> {
        let responses = self.up.requests().into_iter().filter(|seen| seen.brief() == "response");
        responses.map(|seen| seen.json()).collect()
    }

    /// What the question of this id (raw JSON) was answered so far.
    pub fn answers_to(&self, id: &str) -> Vec<Value> {
        let requests = self.up.requests().into_iter().filter(|seen| seen.brief() == "response");
        requests.filter(|seen| rpc::id(&seen.body).as_deref() == Some(id)).map(|seen| seen.json()).collect()
    }

    /// Waits until the question of this id is answered, and looks at the answer with the eyes of a server that asked by
    /// this method.
    pub async fn answer(&self, id: &str, method: &str) -> Value {
        let found = within(&format!("an answer to {id}"), async {
            let mut n = self.answers().len();
            loop {
                if let Some(answer) = self.answers_to(id).pop() {
                    return answer;
                }
                n += 1;
                self.up.wait("response", n).await;
            }
        })
        .await;
        assert_eq!(self.answers_to(id).len(), 1, "answered once: {:?}", self.answers());
        shape_answers::check(method, &found);
        found
    }

    /// The answer to a form or URL.
    pub async fn elicited(&self, id: &str) -> Value {
        self.answer(id, "elicitation/create").await["result"].clone()
    }

    /// Waits for the refusal of a question, which is the code of its error.
    pub async fn refused(&self, id: &str, method: &str) -> i64 {
        let answer = self.answer(id, method).await;
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error, not {answer}"))
    }

    /// The calls that were cancelled at the server, by their ids there.
    pub fn cancelled(&self) -> Vec<Value> {
        let posts = self.up.posts("notifications/cancelled");
        posts.iter().map(|seen| seen.json()["params"]["requestId"].clone()).collect()
    }

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

    /// Runs something that must have no effect at the server at all.
    pub async fn unmoved<T>(&self, future: impl Future<Output = T>) -> T {
        let before = self.up.briefs();
        let value = future.await;
        pass(1000).await;
        assert_eq!(self.up.briefs(), before, "the server is not bothered");
        value
    }

    /// A state that must be refused, in band and without any effect (B1.2).
    #[track_caller]
    pub fn is_state_refused(done: &Done) {
        done.is_error(200, -32602);
    }

    pub async fn refuses(&self, ask: &Ask) {
        let done = self.unmoved(self.proxy.send(ask)).await;
        Self::is_state_refused(&done);
    }

    /// A state that was used before: refused, or answered as the first time, and nothing runs.
    pub async fn refuses_or_repeats(&self, round: &Round) {
        let again =
            self.unmoved(self.proxy.send(&round.answer_all("77", crate::support::questions::ACCEPT))).await;
        assert!(
            again.message.get("error").is_some() || again.result()["resultType"] == "complete",
            "{}",
            again.raw
        );
    }

    /// The sum of all samples of a metric whose labels contain all of these.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let metrics = self.proxy.metrics();
        let of_it = |line: &&str| line.split(['{', ' ']).next() == Some(name);
        let fits = |line: &&str| labels.iter().all(|label| line.contains(label));
        let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
        metrics.lines().filter(of_it).filter(fits).filter_map(value).sum()
    }

    pub fn parked(&self) -> usize {
        self.metric(PARKED, &[]) as usize
    }

    /// The server has run `n` calls, and the proxy waits for none of them any more.
    pub async fn is_over(&self, n: usize) {
        pass(1000).await;
        assert_eq!(self.calls.all().len(), n, "calls at the server: {:?}", self.up.briefs());
        assert_eq!(self.calls.running(), 0, "no call is waited for");
        assert_eq!(self.parked(), 0, "no call is parked");
    }

    /// After a while without any caller nothing is left: no session, no stream, no gauge above zero.
    pub async fn nothing_is_left(&self) {
        pass(3_600_000).await;
        assert_eq!((self.proxy.sessions(), self.proxy.feeds(), self.gets.now()), (0, 0, 0));
        assert_eq!(standing(&self.proxy.metrics()), [] as [String; 0]);
    }
}

impl Begun {
    pub async fn done(self) -> Done {
        within("an answer", self.client).await.expect("a client that is not aborted")
    }

    pub async fn round(self) -> Round {
        let ask = self.ask.clone();
        Round::of(&ask, self.done().await)
    }

    /// The client goes away; the call goes on at the server until somebody tells it.
    pub async fn leave(self) -> Arc<Call> {
        self.client.abort();
        pass(1000).await;
        self.call
    }
}

pub async fn done(client: JoinHandle<Done>) -> Done {
    within("an answer", client).await.expect("a client that is not aborted")
}

/// A retry that is asked again.
pub async fn next_round(retry: &Ask, client: JoinHandle<Done>) -> Round {
    Round::of(retry, done(client).await)
}

/// Fails the test where a call did not end with this text.
#[track_caller]
pub fn ends_with(done: &Done, text: &str) {
    let result = done.result();
    assert_eq!(result["resultType"], "complete", "{}", done.raw);
    assert!(done.raw.contains(&format!("\"{text}\"")), "{text}: {}", done.raw);
}

/// A tool's own failure.
#[track_caller]
pub fn is_tool_error(done: &Done) {
    let result = done.result();
    assert_eq!(
        (&result["resultType"], &result["isError"]),
        (&json!("complete"), &json!(true)),
        "{}",
        done.raw
    );
    assert_eq!(result["content"][0]["type"], "text", "{}", done.raw);
    assert!(result["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()), "{}", done.raw);
}
