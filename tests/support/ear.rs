//! Everything that a client hears on one channel, or on all of its streams, in the order in which it came.
//!
//! Owns the record and waiting for something in it. Does not own where it comes from (`stdio_host`, `old_sse_client`, or a test's
//! own), nor what it may look like.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::Notify;

use super::{rpc, within};

/// One message.
#[derive(Debug, Clone)]
pub struct Said {
    /// As it was written.
    pub raw: String,
    pub message: Value,
    /// Raw id of the request on whose own stream it came, where there are such streams.
    pub on: Option<String>,
    /// It came in an array, as 2025-03-26 has it.
    pub in_array: bool,
}

impl Said {
    /// The method; an answer is `answer`.
    pub fn brief(&self) -> &str {
        self.message["method"].as_str().unwrap_or("answer")
    }

    pub fn is_answer(&self) -> bool {
        self.message.get("method").is_none()
    }

    pub fn is_question(&self) -> bool {
        self.message.get("method").is_some() && self.message.get("id").is_some()
    }

    /// The raw id.
    pub fn id(&self) -> String {
        rpc::id(self.raw.as_bytes()).unwrap_or_default()
    }
}

#[derive(Clone, Default)]
pub struct Ear(Arc<Heard>);

#[derive(Default)]
struct Heard {
    said: Mutex<Vec<Said>>,
    end: Mutex<bool>,
    /// Raw ids of requests on whose own stream nothing more comes.
    over_on: Mutex<Vec<String>>,
    more: Notify,
}

impl Ear {
    pub fn hear(&self, raw: &str, on: Option<&str>) {
        let message = rpc::value(raw.as_bytes()).unwrap_or_else(|e| panic!("{e}: no message: {raw:?}"));
        let on = on.map(str::to_owned);
        let said = |raw: String, message: Value, in_array| {
            assert!(message.is_object(), "a message is an object: {raw}");
            Said { raw, message, on: on.clone(), in_array }
        };
        let all: Vec<_> = match message {
            Value::Array(all) => all.into_iter().map(|one| said(one.to_string(), one, true)).collect(),
            one => vec![said(raw.to_owned(), one, false)],
        };
        self.0.said.lock().unwrap().extend(all);
        self.0.more.notify_waiters();
    }

    /// Nothing more comes.
    pub fn over(&self) {
        *self.0.end.lock().unwrap() = true;
        self.0.more.notify_waiters();
    }

    /// Nothing more comes on the stream of this request.
    pub fn over_on(&self, id: &str) {
        self.0.over_on.lock().unwrap().push(id.to_owned());
        self.0.more.notify_waiters();
    }

    /// Whether an answer to this request can still come.
    pub fn may_answer(&self, id: &str) -> bool {
        !self.is_over() && !self.0.over_on.lock().unwrap().iter().any(|over| over == id)
    }

    /// Waits until something that fits is there, or no answer to this request can come any more.
    pub async fn first_or_over(&self, id: &str, fits: impl Fn(&Said) -> bool) -> Option<Said> {
        within(&format!("an answer to {id}, or the end"), async {
            loop {
                let more = self.0.more.notified();
                let may_come = self.may_answer(id);
                if let Some(found) = self.0.said.lock().unwrap().iter().find(|said| fits(said)) {
                    return Some(found.clone());
                }
                if !may_come {
                    return None;
                }
                more.await;
            }
        })
        .await
    }

    pub fn is_over(&self) -> bool {
        *self.0.end.lock().unwrap()
    }

    pub fn all(&self) -> Vec<Said> {
        self.0.said.lock().unwrap().clone()
    }

    pub fn briefs(&self) -> Vec<String> {
        self.all().iter().map(|said| said.brief().to_owned()).collect()
    }

    /// Waits for the first that fits.
    pub async fn first(&self, what: &str, fits: impl Fn(&Said) -> bool) -> Said {
        self.nth(what, 1, fits).await
    }

    /// Waits for the n-th that fits, from 1.
    pub async fn nth(&self, what: &str, n: usize, fits: impl Fn(&Said) -> bool) -> Said {
        let found = || self.0.said.lock().unwrap().iter().filter(|said| fits(said)).nth(n - 1).cloned();
        let wait = async {
            loop {
                let more = self.0.more.notified();
                if let Some(found) = found() {
                    return found;
                }
                assert!(!self.is_over(), "{what}: it is over; heard {:?}", self.raws());
                more.await;
            }
        };
        match tokio::time::timeout(super::PATIENCE, wait).await {
            Ok(found) => found,
            Err(_) => panic!("{what}: it never came; heard {:?}", self.raws()),
        }
    }

    /// Waits for the answer to the request with this raw id.
    pub async fn answer(&self, id: &str) -> Said {
        self.first(&format!("the answer to {id}"), |said| said.is_answer() && said.id() == id).await
    }

    /// Waits until nothing more comes.
    pub async fn ended(&self) {
        within("the end of a channel", async {
            loop {
                let more = self.0.more.notified();
                if self.is_over() {
                    return;
                }
                more.await;
            }
        })
        .await;
    }

    pub fn raws(&self) -> Vec<String> {
        self.all().into_iter().map(|said| said.raw).collect()
    }
}
