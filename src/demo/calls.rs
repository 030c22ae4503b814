//! The tools that take time, `count` and `book`: calls that answer as an event stream and can be cancelled.
//!
//! Owns their tasks, what they say on their streams, and the question of `book` from its asking to its end. Does not own
//! the words of that question (`booking`) nor the bounds on what is open at once (`session`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::booking;
use super::features::{self, MOST_STEPS, Refusal};
use super::respond::{Body, answer, error, event, event_stream, result, session_not_found};
use super::server::{Context, Server};
use super::session::Unstarted;

const STEP: Duration = Duration::from_millis(50);

/// A call under way: whose it is, and where it speaks.
struct Line {
    server: Arc<Server>,
    session: String,
    id: Value,
    events: mpsc::Sender<Bytes>,
}

impl Server {
    /// A progress notification a step if the client wants them, then the result.
    pub(super) fn count(self: &Arc<Self>, context: &Context, id: Value, params: &Value) -> Response<Body> {
        let Some(steps) = params["arguments"]["n"].as_u64().filter(|steps| (1..=MOST_STEPS).contains(steps))
        else {
            let text = format!("count needs n, an integer from 1 to {MOST_STEPS}");
            return answer(&result(id, features::tool_error(&text)));
        };
        let token = params["_meta"]["progressToken"].clone();
        self.run(context, id, async move |line: Line| {
            for step in 1..=steps {
                tokio::time::sleep(STEP).await;
                if !token.is_null() {
                    line.say(&progress(&token, step, steps)).await;
                }
            }
            line.finish(features::text_result(&format!("Counted to {steps}."))).await;
        })
    }

    /// A question to the client, if it can be asked, then the result.
    pub(super) fn book(self: &Arc<Self>, context: &Context, id: Value, params: &Value) -> Response<Body> {
        let Some(place) = params["arguments"]["place"].as_str().map(str::to_owned) else {
            return answer(&result(id, features::tool_error("book needs a place")));
        };
        if !context.can_be_asked {
            return answer(&result(id, booking::without_asking()));
        }
        self.run(context, id, async move |line: Line| {
            if let Some(outcome) = line.ask(&place).await {
                line.finish(outcome).await;
            }
        })
    }

    /// Runs the call until it is done or told to stop: then it ends without a response.
    fn run<F>(self: &Arc<Self>, context: &Context, id: Value, call: impl FnOnce(Line) -> F) -> Response<Body>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let key = id.to_string();
        let stop: CancellationToken = match self.sessions.start(&context.session, &key) {
            Ok(stop) => stop,
            Err(Unstarted::SessionGone) => return session_not_found().into_response(),
            Err(Unstarted::IdInUse) => {
                return answer(&error(id, Refusal::new(-32600, "a call with this id is under way")));
            }
            Err(Unstarted::TooMany) => {
                return answer(&error(id, Refusal::new(-32000, "too many calls are under way")));
            }
        };
        let (events, stream) = mpsc::channel(16);
        let (server, session) = (Arc::clone(self), context.session.clone());
        let call = call(Line { server: Arc::clone(self), session: session.clone(), id, events });
        // Owned by the server's tracker. A client that goes away does not end it (in this generation only
        // `notifications/cancelled` does); the end of its session or of the server does. Last, it frees its id.
        self.calls.spawn(async move {
            let _ = stop.run_until_cancelled(call).await;
            server.sessions.finish(&session, &key);
        });
        event_stream(stream)
    }
}

impl Line {
    /// Without effect once the client has closed the stream.
    async fn say(&self, message: &Value) {
        let _ = self.events.send(event(message)).await;
    }

    async fn finish(&self, value: Value) {
        self.say(&result(self.id.clone(), value)).await;
    }

    /// What the call comes to by its client's answer; `None` if its session is gone, with everybody who could care.
    async fn ask(&self, place: &str) -> Option<Value> {
        let (number, response) = self.server.sessions.ask(&self.session)?;
        let mut asked = Asked { line: self, number, open: true };
        let params = booking::question(place);
        self.say(&json!({
            "jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params,
        }))
        .await;
        let patience = self.server.patience;
        let Ok(response) = tokio::time::timeout(patience, response).await else {
            return Some(booking::without_answer(patience));
        };
        let response = response.ok()?;
        asked.open = false;
        Some(booking::outcome(place, &response))
    }
}

/// A question that the client has. Dropped while it is open, for whatever reason, it is withdrawn.
struct Asked<'a> {
    line: &'a Line,
    number: u64,
    open: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.open {
            self.line.server.sessions.withdraw(&self.line.session, self.number);
            let cancelled = json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": self.number, "reason": "the question is of no use any more" },
            });
            // A client that does not even read what comes need not know.
            let _ = self.line.events.try_send(event(&cancelled));
        }
    }
}

fn progress(token: &Value, step: u64, steps: u64) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {
            "progressToken": token, "progress": step, "total": steps,
            "message": format!("{step} of {steps}"),
        },
    })
}
