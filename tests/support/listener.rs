//! A raw client's subscription, read as it comes by a task of its own, so that a test may look at any moment.
//!
//! Owns what was heard and when, and the check of all of it (`shape_listen`) on every look. Does not own requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::http1::Headers;
use super::{Ask, Proxy, rpc, shape_listen, within};

/// How a stream was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As HTTP wants it.
    Clean,
    Broken,
}

pub struct Listener {
    pub headers: Headers,
    id: Value,
    asked: Value,
    heard: Arc<Heard>,
    reading: JoinHandle<()>,
}

#[derive(Default)]
struct Heard {
    messages: Mutex<Vec<(Instant, Value)>>,
    end: Mutex<Option<End>>,
    comments: AtomicUsize,
    more: Notify,
}

/// A subscription of this id (raw JSON) to these notifications (raw JSON).
pub fn listen(id: &str, notifications: &str) -> Ask {
    Ask::new("subscriptions/listen").id(id).params(&format!(r#""notifications":{notifications}"#))
}

impl Listener {
    /// Opens it, up to the head of the stream.
    pub async fn open(proxy: &Proxy, ask: &Ask) -> Self {
        let mut answer = proxy.open(ask).await;
        assert!(answer.is_stream(), "an event stream, not {} {:?}", answer.status, answer.headers);
        let body = rpc::value(&ask.body()).expect("a request");
        let heard = Arc::new(Heard::default());
        let (headers, noted) = (answer.headers.clone(), Arc::clone(&heard));
        let reading = tokio::spawn(async move {
            let end = loop {
                let read = answer.read_on().await;
                noted.comments.store(answer.events.comments(), Ordering::SeqCst);
                while let Some(event) = answer.events.next() {
                    let message = rpc::value(event.data.as_bytes()).expect("an event holds JSON");
                    noted.messages.lock().unwrap().push((Instant::now(), message));
                }
                noted.more.notify_waiters();
                match read {
                    Ok(true) => {}
                    Ok(false) => break End::Clean,
                    Err(_) => break End::Broken,
                }
            };
            *noted.end.lock().unwrap() = Some(end);
            noted.more.notify_waiters();
        });
        let asked = body["params"]["notifications"].clone();
        Self { headers, id: body["id"].clone(), asked, heard, reading }
    }

    /// Everything heard so far, checked.
    pub fn messages(&self) -> Vec<Value> {
        let messages: Vec<_> = self.heard.messages.lock().unwrap().iter().map(|(_, m)| m.clone()).collect();
        shape_listen::check(&self.id, &self.asked, &messages);
        messages
    }

    /// Waits for `n` messages, the acknowledgement among them.
    pub async fn wait(&self, n: usize) -> Vec<Value> {
        let what = format!("{n} messages on subscription {}", self.id);
        let wait = async {
            loop {
                let more = self.heard.more.notified();
                if self.messages().len() >= n {
                    return self.messages();
                }
                more.await;
            }
        };
        match tokio::time::timeout(super::PATIENCE, wait).await {
            Ok(messages) => messages,
            Err(_) => panic!("{what}; heard {:?}", self.messages()),
        }
    }

    /// What was promised.
    pub async fn promised(&self) -> Value {
        self.wait(1).await[0]["params"]["notifications"].clone()
    }

    /// The changes heard so far: `tools`, `prompts`, `resources`, or the URI that was updated.
    pub fn changes(&self) -> Vec<String> {
        let changed = |message: &Value| {
            let method = message["method"].as_str()?.strip_prefix("notifications/")?;
            match method {
                "resources/updated" => Some(message["params"]["uri"].as_str()?.to_owned()),
                "subscriptions/acknowledged" => None,
                _ => Some(method.strip_suffix("/list_changed")?.to_owned()),
            }
        };
        self.messages().iter().filter_map(changed).collect()
    }

    /// When the n-th message came.
    pub fn at(&self, n: usize) -> Instant {
        self.heard.messages.lock().unwrap()[n].0
    }

    pub fn comments(&self) -> usize {
        self.heard.comments.load(Ordering::SeqCst)
    }

    pub fn is_over(&self) -> bool {
        self.heard.end.lock().unwrap().is_some()
    }

    /// Waits for the end of the stream.
    pub async fn end(&self) -> End {
        within("the end of a subscription", async {
            loop {
                let more = self.heard.more.notified();
                if let Some(end) = *self.heard.end.lock().unwrap() {
                    return end;
                }
                more.await;
            }
        })
        .await
    }

    /// Waits for the end, which is to be the graceful one: the result, last of all.
    pub async fn ended_gracefully(&self) {
        assert_eq!(self.end().await, End::Clean, "heard {:?}", self.messages());
        let messages = self.messages();
        let last = messages.last().and_then(|last| last.get("result")).expect("a result, last of all");
        super::shape::assert_modern_result("subscriptions/listen", last);
    }

    /// The client goes away.
    pub fn close(self) {}
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
