//! The calls of a legacy server, each in the hands of the test: what comes on its stream, in between and at its end.
//!
//! Owns the record of every call that passed the session gate, and the messages that belong to a call. Does not own
//! questions as such (`questions`), or what comes on GET streams (`gets`).

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::held::Held;
use super::{LegacyServer, ModernServer, Reply, Seen, Value, json, modern, rpc, within};

/// The methods that may be answered `input_required`.
pub const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// One call; what is written first decides whether its answer is an event stream.
pub struct Call {
    pub seen: Arc<Seen>,
    pub at: Instant,
    held: Held,
}

impl Deref for Call {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

#[derive(Clone, Default)]
pub struct Calls {
    all: Arc<Mutex<Vec<Arc<Call>>>>,
    more: Arc<Notify>,
}

impl Calls {
    pub fn new() -> Self {
        Self::default()
    }

    /// The server with the three methods that may ask in the test's hands.
    pub fn of(&self, server: LegacyServer) -> LegacyServer {
        MAY_ASK.into_iter().fold(server, |server, method| self.on(server, method))
    }

    /// The server with one more method in the test's hands.
    pub fn on(&self, server: LegacyServer, method: &str) -> LegacyServer {
        let calls = self.clone();
        server.on(method, move |seen, reply| calls.clone().answer(seen, reply))
    }

    /// The modern server with the three methods that may ask in the test's hands.
    pub fn of_modern(&self, server: ModernServer) -> ModernServer {
        MAY_ASK.into_iter().fold(server, |server, method| self.on_modern(server, method))
    }

    /// The modern server with one more method in the test's hands.
    pub fn on_modern(&self, server: ModernServer, method: &str) -> ModernServer {
        let calls = self.clone();
        server.on(method, move |seen, reply| calls.clone().answer(seen, reply))
    }

    pub fn all(&self) -> Vec<Arc<Call>> {
        self.all.lock().unwrap().clone()
    }

    /// Waits for the n-th call, from 1.
    pub async fn wait(&self, n: usize) -> Arc<Call> {
        self.find(&format!("call number {n}"), |all| all.get(n - 1).cloned()).await
    }

    /// Waits for the first call with this value of the argument `n`.
    pub async fn marked(&self, n: i64) -> Arc<Call> {
        let of_it = |all: &[Arc<Call>]| all.iter().find(|call| call.argument("n") == json!(n)).cloned();
        self.find(&format!("the call with n = {n}"), of_it).await
    }

    /// Calls that the proxy still waits for.
    pub fn running(&self) -> usize {
        self.all().iter().filter(|call| call.is_open()).count()
    }

    async fn find(&self, what: &str, find: impl Fn(&[Arc<Call>]) -> Option<Arc<Call>>) -> Arc<Call> {
        within(what, async {
            loop {
                let more = self.more.notified();
                if let Some(call) = find(&self.all()) {
                    return call;
                }
                more.await;
            }
        })
        .await
    }

    async fn answer(self, seen: Arc<Seen>, reply: Reply) {
        let (held, ordered) = Held::new(true);
        let call = Arc::new(Call { seen, at: Instant::now(), held });
        self.all.lock().unwrap().push(Arc::clone(&call));
        self.more.notify_waiters();
        call.follow(reply, ordered, false).await;
    }
}

impl Call {
    /// The id that the proxy gave it.
    pub fn id(&self) -> Value {
        self.seen.json()["id"].clone()
    }

    pub fn session(&self) -> String {
        self.seen.session().unwrap_or_default()
    }

    pub fn argument(&self, name: &str) -> Value {
        self.seen.json()["params"]["arguments"][name].clone()
    }

    pub fn progress(&self, progress: u32) {
        let token = &self.seen.json()["params"]["_meta"]["progressToken"];
        assert!(!token.is_null(), "a call whose progress nobody asked for: {}", self.seen.text());
        self.event(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}}}}}"#
        ));
    }

    pub fn log(&self, level: &str, data: &str) {
        self.event(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"{data}"}}}}"#
        ));
    }

    /// The server takes back a request of its own.
    pub fn withdraw(&self, id: &str) {
        self.event(&withdrawal(id));
    }

    /// The result on its stream, and the end.
    pub fn result(&self, raw: &str) {
        self.event(&rpc::result_message(&self.seen.id(), raw));
        self.end();
    }

    /// A result of its method with this text somewhere in it.
    pub fn finish(&self, text: &str) {
        self.result(&result_of(&self.seen.rpc_method(), text));
    }

    /// The parameters as the server got them.
    pub fn params(&self) -> Value {
        self.seen.json()["params"].clone()
    }

    pub fn meta(&self, key: &str) -> Value {
        self.params()["_meta"][key].clone()
    }

    /// A modern server's result of these members, as a JSON body.
    pub fn completes_with(&self, members: &str) {
        self.whole_result(&modern::complete(&self.seen.rpc_method(), members));
    }

    /// A modern server's result of its method with this text somewhere in it, on its stream if it has begun.
    pub fn completes(&self, text: &str) {
        let result = result_of(&self.seen.rpc_method(), text);
        let members = &result[1..result.len() - 1];
        self.result(&modern::complete(&self.seen.rpc_method(), members));
    }

    /// A modern server asks for these, each a key and a raw request, with this state as raw JSON.
    pub fn asks(&self, entries: &[(&str, &str)], state: Option<&str>) {
        self.result(&modern::asks(entries, state));
    }

    /// A JSON-RPC error on its stream, and the end.
    pub fn error(&self, raw: &str) {
        self.event(&rpc::error_message(&self.seen.id(), raw));
        self.end();
    }

    /// A JSON-RPC error as a JSON body with status 200.
    pub fn whole_error(&self, raw: &str) {
        self.whole(200, &rpc::error_message(&self.seen.id(), raw));
    }

    pub fn whole_result(&self, raw: &str) {
        self.whole(200, &rpc::result_message(&self.seen.id(), raw));
    }
}

pub fn withdrawal(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no more"}}}}"#
    )
}

pub fn result_of(method: &str, text: &str) -> String {
    let block = format!(r#"{{"type":"text","text":"{text}"}}"#);
    match method {
        "prompts/get" => format!(r#"{{"messages":[{{"role":"user","content":{block}}}]}}"#),
        "resources/read" => format!(r#"{{"contents":[{{"uri":"file:///x","text":"{text}"}}]}}"#),
        _ => format!(r#"{{"content":[{block}]}}"#),
    }
}
