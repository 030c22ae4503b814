//! The `subscriptions/listen` requests that a modern server gets, each in the hands of the test: acknowledged, refused or
//! held back by a script, then told of changes, ended or broken off.
//!
//! Owns the record of every listen with its time, and the messages of a subscription. Does not own what they lead to.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::held::Held;
use super::modern::complete;
use super::{ModernServer, Reply, Seen, within};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// How a listen is answered.
#[derive(Debug, Clone)]
pub enum Take {
    /// Everything that it asks for is promised.
    All,
    /// The same without these resources.
    Without(&'static [&'static str]),
    /// The same after so many milliseconds.
    Late(u64),
    /// The head of a stream, and no acknowledgement.
    Silent,
    /// Not even a head.
    Hang,
    /// A JSON-RPC error with this status.
    Error(u16, &'static str),
    Empty(u16),
    /// Acknowledged, and ended at once as HTTP has it, with or without the result.
    Ended,
    Result,
    /// The connection is closed without an answer.
    Cut,
}

/// One listen.
pub struct Listen {
    pub seen: Arc<Seen>,
    pub at: Instant,
    held: Held,
}

impl Deref for Listen {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

type Script = dyn Fn(usize, &Seen) -> Take + Send + Sync;

#[derive(Clone)]
pub struct Listens {
    script: Arc<Script>,
    all: Arc<Mutex<Vec<Arc<Listen>>>>,
    more: Arc<Notify>,
}

impl Listens {
    /// Everything is promised.
    pub fn open() -> Self {
        Self::script(|_, _| Take::All)
    }

    /// The n-th, from 0, is answered as the script says.
    pub fn script(script: impl Fn(usize, &Seen) -> Take + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), all: Arc::default(), more: Arc::default() }
    }

    /// The server with these subscriptions.
    pub fn of(&self, server: ModernServer) -> ModernServer {
        let listens = self.clone();
        server.on("subscriptions/listen", move |seen, reply| listens.clone().answer(seen, reply))
    }

    pub fn all(&self) -> Vec<Arc<Listen>> {
        self.all.lock().unwrap().clone()
    }

    /// Those that are open now.
    pub fn standing(&self) -> Vec<Arc<Listen>> {
        self.all().into_iter().filter(|listen| listen.is_open()).collect()
    }

    pub fn now(&self) -> usize {
        self.standing().len()
    }

    /// Waits for the n-th, from 1.
    pub async fn wait(&self, n: usize) -> Arc<Listen> {
        self.find(&format!("listen number {n}"), |all| all.get(n - 1).cloned()).await
    }

    /// Waits for an open one that asks for this resource.
    pub async fn of_uri(&self, uri: &str) -> Arc<Listen> {
        let asks = |all: &[Arc<Listen>]| all.iter().rfind(|one| one.is_open() && one.has(uri)).cloned();
        self.find(&format!("a listen for {uri}"), asks).await
    }

    /// Waits for an open one that asks for this flag.
    pub async fn of_flag(&self, flag: &str) -> Arc<Listen> {
        let asks = |all: &[Arc<Listen>]| {
            all.iter().rfind(|one| one.is_open() && one.filter()[flag] == true).cloned()
        };
        self.find(&format!("a listen for {flag}"), asks).await
    }

    async fn find(&self, what: &str, find: impl Fn(&[Arc<Listen>]) -> Option<Arc<Listen>>) -> Arc<Listen> {
        within(what, async {
            loop {
                let more = self.more.notified();
                if let Some(listen) = find(&self.all()) {
                    return listen;
                }
                more.await;
            }
        })
        .await
    }

    /// Tells of a change on every open one that asks for it: `tools`, `prompts`, `resources`, or the URI that is updated.
    pub fn tell(&self, change: &str) {
        let open = self.standing();
        let asking: Vec<_> = open.iter().filter(|listen| listen.wants(change)).collect();
        assert!(!asking.is_empty(), "a subscription to tell of {change}");
        asking.iter().for_each(|listen| listen.tell(change));
    }

    async fn answer(self, seen: Arc<Seen>, reply: Reply) {
        let (held, ordered) = Held::new(true);
        let listen = Arc::new(Listen { seen, at: Instant::now(), held });
        let n = {
            let mut all = self.all.lock().unwrap();
            all.push(Arc::clone(&listen));
            all.len() - 1
        };
        let take = (self.script)(n, &listen.seen);
        self.more.notify_waiters();
        match take {
            Take::All => listen.acknowledge(&listen.filter()),
            Take::Without(uris) => listen.acknowledge(&listen.without(uris)),
            Take::Late(millis) => {
                let listen = Arc::clone(&listen);
                tokio::spawn(async move {
                    super::pass(millis).await;
                    listen.acknowledge(&listen.filter());
                });
            }
            Take::Silent => listen.head(),
            Take::Hang => {
                reply.never().await;
                return listen.set_open(false);
            }
            Take::Error(status, error) => {
                listen.set_open(false);
                return reply.error(status, &listen.seen, error).await;
            }
            Take::Empty(status) => {
                listen.set_open(false);
                return reply.empty(status).await;
            }
            Take::Ended => {
                listen.acknowledge(&listen.filter());
                listen.end();
            }
            Take::Result => {
                listen.acknowledge(&listen.filter());
                listen.graceful();
            }
            Take::Cut => return listen.set_open(false),
        }
        listen.follow(reply, ordered, false).await;
    }
}

impl Listen {
    /// The filter that it asks for.
    pub fn filter(&self) -> Value {
        self.seen.json()["params"]["notifications"].clone()
    }

    pub fn uris(&self) -> Vec<String> {
        let filter = self.filter();
        let uris = filter["resourceSubscriptions"].as_array().into_iter().flatten();
        uris.filter_map(|uri| Some(uri.as_str()?.to_owned())).collect()
    }

    /// The list types that it asks for.
    pub fn flags(&self) -> Vec<String> {
        let filter = self.filter();
        let set = filter.as_object().into_iter().flatten().filter(|(_, value)| **value == true);
        set.map(|(name, _)| name.clone()).collect()
    }

    pub fn has(&self, uri: &str) -> bool {
        self.uris().iter().any(|one| one == uri)
    }

    fn wants(&self, change: &str) -> bool {
        match change {
            "tools" | "prompts" | "resources" => self.filter()[format!("{change}ListChanged")] == true,
            // B9.4: it may be a part of the resource.
            uri => self.uris().iter().any(|own| uri == own || uri.starts_with(&format!("{own}/"))),
        }
    }

    fn without(&self, uris: &[&str]) -> Value {
        let mut filter = self.filter();
        if let Some(all) = filter["resourceSubscriptions"].as_array_mut() {
            all.retain(|uri| !uris.contains(&uri.as_str().unwrap_or_default()));
            if all.is_empty() {
                filter.as_object_mut().unwrap().remove("resourceSubscriptions");
            }
        }
        filter
    }

    pub fn acknowledge(&self, honoured: &Value) {
        self.notify("notifications/subscriptions/acknowledged", json!({"notifications": honoured}));
    }

    /// A change, named as in `Listens::tell`.
    pub fn tell(&self, change: &str) {
        match change {
            "tools" | "prompts" | "resources" => {
                self.notify(&format!("notifications/{change}/list_changed"), json!({}));
            }
            uri => self.notify("notifications/resources/updated", json!({"uri": uri})),
        }
    }

    /// Any notification, tagged as one of this subscription.
    pub fn notify(&self, method: &str, mut params: Value) {
        params["_meta"][SUBSCRIPTION] = self.seen.json()["id"].clone();
        self.event(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// The result, and the end.
    pub fn graceful(&self) {
        let id = self.seen.id();
        let result = complete("subscriptions/listen", "")
            .replace(r#""_meta":{"#, &format!(r#""_meta":{{"{SUBSCRIPTION}":{id},"#));
        self.event(&super::rpc::result_message(&id, &result));
        self.end();
    }

    pub fn token(&self) -> Option<String> {
        self.seen.header("authorization")
    }
}
