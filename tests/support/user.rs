//! A legacy client of one revision that knows what it has declared: it sends requests in its session, reads what comes
//! (`stream`) and answers what it is asked. Everything that reaches it is looked at with the eyes of its revision.
//!
//! Owns the client's side of a session. Does not own the raw requests (`old`) or the rules (`shape_down`).

use std::sync::Arc;

use serde_json::Value;

use super::shape_down::{Of, View, answer as is_answer};
use super::{Ask, Done, Old, Proxy, Stream, rpc};

/// What a client of each revision may declare.
pub const ALL_2025_11_25: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true}}"#;
pub const ALL_2025_06_18: &str = r#"{"elicitation":{},"sampling":{},"roots":{"listChanged":true}}"#;
pub const ALL_OLDER: &str = r#"{"sampling":{},"roots":{"listChanged":true}}"#;

/// Everything that a client of this revision can declare.
pub fn everything(revision: &str) -> &'static str {
    match revision {
        "2025-11-25" => ALL_2025_11_25,
        "2025-06-18" => ALL_2025_06_18,
        _ => ALL_OLDER,
    }
}

#[derive(Clone)]
pub struct User {
    proxy: Arc<Proxy>,
    pub old: Old,
    view: View,
}

impl User {
    /// A client of this revision that has done its handshake and can do everything that it may declare.
    pub async fn begin(proxy: &Arc<Proxy>, revision: &str) -> Self {
        Self::begin_with(proxy, revision, everything(revision), None).await
    }

    /// With these capabilities, and this bearer token.
    pub async fn begin_with(
        proxy: &Arc<Proxy>,
        revision: &str,
        capabilities: &str,
        token: Option<&str>,
    ) -> Self {
        let ask = Old::initialize_with(revision, capabilities);
        let done = proxy.send(&token.map_or(ask.clone(), |token| ask.bearer(token))).await;
        let declared = serde_json::from_str(capabilities).expect("capabilities");
        let view = View { revision: revision.to_owned(), declared };
        is_answer(&view, Some("initialize"), &done.message, &done.raw);
        let old = Old::initialized(proxy, &done, token).await;
        assert!(old.session.is_some(), "a session: {:?}", done.headers);
        Self { proxy: Arc::clone(proxy), old, view }
    }

    /// The same client before another proxy.
    pub fn at(&self, proxy: &Arc<Proxy>) -> Self {
        Self { proxy: Arc::clone(proxy), ..self.clone() }
    }

    /// The same client with another token.
    pub fn with_token(&self, token: &str) -> Self {
        let mut other = self.clone();
        other.old.token = Some(token.to_owned());
        other
    }

    pub fn session(&self) -> &str {
        self.old.session.as_deref().expect("a session")
    }

    pub fn revision(&self) -> &str {
        &self.view.revision
    }

    /// One request, answered completely.
    pub async fn send(&self, ask: &Ask) -> Done {
        let done = self.proxy.send(ask).await;
        if done.status == 200 && done.message.is_object() {
            is_answer(&self.view, Some(&method_of(ask)), &done.message, &done.raw);
        }
        done
    }

    /// A request up to the head of its answer; what comes then is read as it comes.
    pub async fn open(&self, ask: &Ask) -> Stream {
        let of = Of::Requests(requests(&ask.body()));
        Stream::of(self.proxy.open(ask).await, self.view.clone(), of)
    }

    /// The result of a request without parameters.
    pub async fn list(&self, method: &str) -> Value {
        self.send(&self.old.ask(method)).await.result().clone()
    }

    /// A call of a tool under id 1.
    pub async fn call(&self, tool: &str, arguments: &str) -> Stream {
        self.open(&self.old.call(tool, arguments)).await
    }

    /// The stream that it opens by GET.
    pub async fn get(&self) -> Stream {
        Stream::of(self.proxy.open(&self.old.get()).await, self.view.clone(), Of::Session)
    }

    /// Takes up a stream after this event.
    pub async fn resume(&self, last: &str) -> Stream {
        let ask = self.old.get().header("Last-Event-ID", last);
        Stream::of(self.proxy.open(&ask).await, self.view.clone(), Of::Taken)
    }

    /// Answers a question with this result, as raw JSON.
    pub async fn answer(&self, question: &Value, result: &str) {
        let done = self.proxy.send(&self.old.answer(&question["id"].to_string(), result)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "C44: an answer is accepted");
    }

    /// Answers a question with an error.
    pub async fn refuse(&self, question: &Value, code: i64) {
        let error = format!(r#"{{"code":{code},"message":"no"}}"#);
        let ask = self.old.raw(&rpc::error_message(&question["id"].to_string(), &error));
        assert_eq!(self.proxy.send(&ask).await.status, 202, "C44: an answer is accepted");
    }

    /// Tells that it waits for this request (raw id) no more.
    pub async fn cancel(&self, id: &str) {
        let params = format!(r#""requestId":{id},"reason":"enough""#);
        let done = self.proxy.send(&self.old.note("notifications/cancelled").params(&params)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "A2.2");
    }

    /// Any notification without parameters.
    pub async fn note(&self, method: &str) {
        let done = self.proxy.send(&self.old.note(method)).await;
        assert_eq!((done.status, done.raw.as_str()), (202, ""), "{method}");
    }

    pub async fn subscribe(&self, uri: &str) -> Done {
        self.send(&self.old.ask("resources/subscribe").params(&format!(r#""uri":"{uri}""#))).await
    }

    pub async fn unsubscribe(&self, uri: &str) -> Done {
        self.send(&self.old.ask("resources/unsubscribe").params(&format!(r#""uri":"{uri}""#))).await
    }

    pub async fn level(&self, level: &str) -> Done {
        self.send(&self.old.ask("logging/setLevel").params(&format!(r#""level":"{level}""#))).await
    }

    /// Ends its session.
    pub async fn delete(&self) -> Done {
        self.proxy.send(&self.old.delete()).await
    }

    /// Whether its session is known.
    pub async fn lives(&self) -> bool {
        let done = self.proxy.send(&self.old.ask("ping").id("\"lives\"")).await;
        assert!([200, 404].contains(&done.status), "{} {}", done.status, done.raw);
        done.status == 200
    }
}

fn method_of(ask: &Ask) -> String {
    rpc::method(&ask.body()).unwrap_or_default()
}

/// What of a body is to be answered.
fn requests(body: &[u8]) -> Vec<(String, String, Option<Value>)> {
    let one = |text: &str| {
        let (id, method) = (rpc::id(text.as_bytes())?, rpc::method(text.as_bytes())?);
        let token = rpc::value(text.as_bytes()).ok()?["params"]["_meta"].get("progressToken").cloned();
        Some((id, method, token))
    };
    let text = String::from_utf8_lossy(body);
    match rpc::value(body) {
        Ok(Value::Array(all)) => all.iter().filter_map(|message| one(&message.to_string())).collect(),
        _ => one(&text).into_iter().collect(),
    }
}
