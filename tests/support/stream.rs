//! The answer to a raw legacy client's request, read as it comes by a task of its own, so that a test may look at any moment:
//! an event stream with its ids, or one message.
//!
//! Owns what was heard and when, and the check of all of it (`shape_down`) on every look. Does not own requests (`user`).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::http1::Headers;
use super::shape_down::{self, Heard, Of, View};
use super::{Answer, End, rpc, within};

pub struct Stream {
    pub status: u16,
    pub headers: Headers,
    view: View,
    of: Of,
    heard: Arc<Noted>,
    /// Questions that the test has taken.
    taken: AtomicUsize,
    reading: JoinHandle<()>,
}

#[derive(Default)]
struct Noted {
    events: Mutex<Vec<(Instant, Heard)>>,
    retry: Mutex<Option<u64>>,
    /// A body that is no event stream and no message either.
    body: Mutex<String>,
    end: Mutex<Option<(Instant, End)>>,
    comments: AtomicUsize,
    more: Notify,
}

impl Stream {
    pub fn of(answer: Answer, view: View, of: Of) -> Self {
        let heard = Arc::new(Noted::default());
        let (status, headers) = (answer.status, answer.headers.clone());
        let reading = tokio::spawn(read(answer, Arc::clone(&heard)));
        Self { status, headers, view, of, heard, taken: AtomicUsize::new(0), reading }
    }

    pub fn is_stream(&self) -> bool {
        self.headers.media_type().as_deref() == Some("text/event-stream")
    }

    /// Everything heard so far, checked; events without a message among them.
    pub fn events(&self) -> Vec<Heard> {
        let events: Vec<_> = self.heard.events.lock().unwrap().iter().map(|(_, one)| one.clone()).collect();
        if self.status == 200 {
            shape_down::stream(&self.view, &self.of, &events);
        }
        events
    }

    /// The messages heard so far, checked.
    pub fn messages(&self) -> Vec<Value> {
        self.events().into_iter().filter(|one| !one.raw.is_empty()).map(|one| one.message).collect()
    }

    /// The methods of what was heard; an answer by `answer`.
    pub fn briefs(&self) -> Vec<String> {
        let brief = |message: Value| message["method"].as_str().unwrap_or("answer").to_owned();
        self.messages().into_iter().map(brief).collect()
    }

    async fn until<T>(&self, what: &str, find: impl Fn(&Self) -> Option<T>) -> T {
        let wait = async {
            loop {
                let more = self.heard.more.notified();
                if let Some(found) = find(self) {
                    return found;
                }
                assert!(!self.is_over(), "{what}: it is over; heard {:?} {}", self.events(), self.text());
                more.await;
            }
        };
        match tokio::time::timeout(super::PATIENCE, wait).await {
            Ok(found) => found,
            Err(_) => panic!("{what}: nothing came; heard {:?}", self.events()),
        }
    }

    /// Waits for `n` messages.
    pub async fn wait(&self, n: usize) -> Vec<Value> {
        self.until(&format!("{n} messages"), |it| Some(it.messages()).filter(|all| all.len() >= n)).await
    }

    /// Waits for `n` events, empty ones among them.
    pub async fn wait_events(&self, n: usize) -> Vec<Heard> {
        self.until(&format!("{n} events"), |it| Some(it.events()).filter(|all| all.len() >= n)).await
    }

    fn questions_so_far(&self) -> Vec<Value> {
        let asks = |message: &Value| message.get("method").is_some() && message.get("id").is_some();
        self.messages().into_iter().filter(asks).collect()
    }

    /// The next `n` questions that were not taken yet.
    pub async fn questions(&self, n: usize) -> Vec<Value> {
        let from = self.taken.fetch_add(n, Ordering::SeqCst);
        let found = |it: &Self| it.questions_so_far().get(from..from + n).map(<[Value]>::to_vec);
        self.until(&format!("{n} questions after {from}"), found).await
    }

    pub async fn question(&self) -> Value {
        self.questions(1).await.remove(0)
    }

    /// How many questions there were in all.
    pub fn asked(&self) -> usize {
        self.questions_so_far().len()
    }

    /// The notifications of a method so far.
    pub fn notes(&self, method: &str) -> Vec<Value> {
        self.messages().into_iter().filter(|message| message["method"] == method).collect()
    }

    /// The changes heard so far: `tools`, `prompts`, `resources`, or the URI that was updated.
    pub fn changes(&self) -> Vec<String> {
        let changed = |message: &Value| {
            let method = message["method"].as_str()?.strip_prefix("notifications/")?;
            match method {
                "resources/updated" => Some(message["params"]["uri"].as_str()?.to_owned()),
                _ => Some(method.strip_suffix("/list_changed")?.to_owned()),
            }
        };
        self.messages().iter().filter_map(changed).collect()
    }

    /// Waits for the answer, which is the last of all.
    pub async fn answer(&self) -> Value {
        let answers = |message: &Value| message.get("method").is_none();
        self.until("the answer", |it| it.messages().into_iter().find(answers)).await
    }

    /// All answers of a stream that answers so many requests, by id.
    pub async fn answers(&self, n: usize) -> Vec<Value> {
        let answers = |message: &Value| message.get("method").is_none();
        let all = |it: &Self| it.messages().into_iter().filter(answers).collect::<Vec<_>>();
        self.until(&format!("{n} answers"), |it| Some(all(it)).filter(|all| all.len() >= n)).await
    }

    pub async fn result(&self) -> Value {
        let answer = self.answer().await;
        answer.get("result").cloned().unwrap_or_else(|| panic!("a result, not {answer}"))
    }

    /// The code of the error that is the answer.
    pub async fn code(&self) -> i64 {
        let answer = self.answer().await;
        assert_eq!(self.status, 200, "A12.21: {answer}");
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error, not {answer}"))
    }

    /// A tool's own failure, in words.
    pub async fn tool_error(&self) -> String {
        let result = self.result().await;
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        assert!(!text.is_empty(), "it says why: {result}");
        text
    }

    /// The id of the last event.
    pub fn last_id(&self) -> String {
        self.events().last().map(|event| event.id.clone()).unwrap_or_default()
    }

    /// When the n-th event came.
    pub fn at(&self, n: usize) -> Instant {
        self.heard.events.lock().unwrap()[n].0
    }

    pub fn retry(&self) -> Option<u64> {
        *self.heard.retry.lock().unwrap()
    }

    pub fn comments(&self) -> usize {
        self.heard.comments.load(Ordering::SeqCst)
    }

    /// A body that is no event stream.
    pub fn text(&self) -> String {
        self.heard.body.lock().unwrap().clone()
    }

    pub fn is_over(&self) -> bool {
        self.heard.end.lock().unwrap().is_some()
    }

    pub fn ended_at(&self) -> Option<Instant> {
        self.heard.end.lock().unwrap().map(|(at, _)| at)
    }

    /// Waits for the end.
    pub async fn end(&self) -> End {
        within("the end of a stream", async {
            loop {
                let more = self.heard.more.notified();
                if let Some((_, end)) = *self.heard.end.lock().unwrap() {
                    return end;
                }
                more.await;
            }
        })
        .await
    }

    /// The client's connection goes; what was heard can still be looked at.
    pub async fn drop_connection(&self) {
        self.reading.abort();
        super::pass(1).await;
    }
}

async fn read(mut answer: Answer, heard: Arc<Noted>) {
    let streams = answer.is_stream();
    let mut body = Vec::new();
    let end = loop {
        let read = if streams {
            answer.read_on().await
        } else {
            answer.body_on().await.map(|piece| {
                body.extend_from_slice(piece.as_deref().unwrap_or_default());
                piece.is_some()
            })
        };
        heard.comments.store(answer.events.comments(), Ordering::SeqCst);
        *heard.retry.lock().unwrap() = answer.events.retry;
        while let Some(event) = answer.events.next() {
            let message = rpc::value(event.data.as_bytes()).unwrap_or(Value::Null);
            assert!(event.data.is_empty() || !message.is_null(), "an event holds JSON: {}", event.data);
            let one = Heard { id: event.id, raw: event.data, message };
            heard.events.lock().unwrap().push((Instant::now(), one));
        }
        heard.more.notify_waiters();
        match read {
            Ok(true) => {}
            Ok(false) => break End::Clean,
            Err(_) => break End::Broken,
        }
    };
    if !streams {
        let text = String::from_utf8(body).expect("a body is UTF-8");
        // An array is the answer to an array.
        let all = match rpc::value(text.as_bytes()) {
            Ok(Value::Array(all)) => all.into_iter().map(|one| (one.to_string(), one)).collect(),
            Ok(message @ Value::Object(_)) => vec![(text.clone(), message)],
            _ => Vec::new(),
        };
        let mut events = heard.events.lock().unwrap();
        for (raw, message) in all {
            events.push((Instant::now(), Heard { id: String::new(), raw, message }));
        }
        *heard.body.lock().unwrap() = text;
    }
    *heard.end.lock().unwrap() = Some((Instant::now(), end));
    heard.more.notify_waiters();
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
