//! The demo server's Streamable HTTP side, after specification 2025-11-25, basic/transports.
//!
//! Owns connections, the checks of a request and the call of `count`. Does not own what the methods answer
//! (`features`), nor the form of answers (`respond`). A request of a newer generation gets what a legacy SDK answers to it: 400 with -32000 and no
//! id, because it has no session. Every call of `count` answers as an event stream, everything else as JSON.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::features::{self, MOST_STEPS, Refusal, VERSIONS};
use super::respond::{
    Body, Rejection, answer, empty, error, event, event_stream, invalid_request, refuse, result,
    session_not_found,
};
use super::session::{Sessions, Unstarted};

const PATH: &str = "/mcp";
const SESSION_ID: &str = "mcp-session-id";
const MOST_BODY_BYTES: usize = 1 << 20;
const MOST_CONNECTIONS: usize = 256;
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);
/// How long answers under way may take once the server stops.
const GRACE: Duration = Duration::from_secs(2);
/// Pause after a failed accept, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves on the listener, at `/mcp`, until `stop` is ready; then ends what runs and returns within seconds.
pub async fn serve(listener: TcpListener, stop: impl Future) {
    let server = Arc::new(Server::default());
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            biased;
            _ = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&server)));
                }
                Err(error) => {
                    tracing::warn!(%error, "the demo server could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    server.sessions.stopping.cancel();
    server.calls.close();
    let ended = async {
        server.calls.wait().await;
        while connections.join_next().await.is_some() {}
    };
    // What is left after the grace period is aborted with its set.
    let _ = tokio::time::timeout(GRACE, ended).await;
}

/// One client's connection. Owned by `serve`; ends by itself, or soon after the server is told to stop.
async fn connection(stream: TcpStream, server: Arc<Server>) {
    let stopping = server.sessions.stopping.clone();
    let service = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(server.handle(request).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stopping.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the demo server broke");
    }
}

#[derive(Default)]
struct Server {
    sessions: Sessions,
    calls: TaskTracker,
}

/// A request in a session.
struct Context {
    session: String,
    version: &'static str,
}

impl Server {
    async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let answer = if request.uri().path() != PATH {
            Err(refuse(StatusCode::NOT_FOUND, -32000, "Not Found"))
        } else if !is_local(request.headers()) {
            Err(refuse(StatusCode::FORBIDDEN, -32000, "Forbidden: Origin is not allowed"))
        } else {
            match *request.method() {
                Method::POST => self.post(request).await,
                Method::DELETE => self.delete(request.headers()),
                _ => Err(refuse(StatusCode::METHOD_NOT_ALLOWED, -32000, "Method not allowed")),
            }
        };
        answer.unwrap_or_else(Rejection::into_response)
    }

    async fn post(self: &Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Rejection> {
        let (head, body) = request.into_parts();
        check_media(&head.headers)?;
        let body = Limited::new(body, MOST_BODY_BYTES).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                refuse(StatusCode::PAYLOAD_TOO_LARGE, -32000, "Payload Too Large")
            } else {
                refuse(StatusCode::BAD_REQUEST, -32000, "Bad Request: the body broke off")
            }
        })?;
        let message: Value = serde_json::from_slice(&body.to_bytes())
            .map_err(|_| refuse(StatusCode::BAD_REQUEST, -32700, "Parse error"))?;
        if message["method"] == "initialize" && !message["id"].is_null() {
            return self.initialize(&head.headers, &message);
        }
        let context = self.context(&head.headers)?;
        match message {
            Value::Array(batch) => self.batch(&context, &batch),
            message => self.message(&context, &message),
        }
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Response<Body>, Rejection> {
        let context = self.context(headers)?;
        self.sessions.end(&context.session);
        Ok(empty(StatusCode::OK))
    }

    fn initialize(&self, headers: &HeaderMap, message: &Value) -> Result<Response<Body>, Rejection> {
        if headers.contains_key(SESSION_ID) {
            return Err(refuse(StatusCode::BAD_REQUEST, -32600, "Invalid Request: already initialized"));
        }
        let id = request_id(message).ok_or_else(invalid_request)?;
        Ok(match features::negotiate(&message["params"]) {
            Ok(version) => {
                let mut response = answer(&result(id, features::introduction(version)));
                if let Ok(session) = self.sessions.mint(version).parse() {
                    response.headers_mut().insert(SESSION_ID, session);
                }
                response
            }
            Err(refusal) => answer(&error(id, refusal)),
        })
    }

    /// Checks the session first and the version header then, in the order of legacy servers.
    fn context(&self, headers: &HeaderMap) -> Result<Context, Rejection> {
        let Some(session) = headers.get(SESSION_ID) else {
            return Err(refuse(StatusCode::BAD_REQUEST, -32000, "Bad Request: no valid session ID provided"));
        };
        let known = session.to_str().ok().and_then(|id| Some((id, self.sessions.version(id)?)));
        let Some((session, version)) = known else {
            return Err(session_not_found());
        };
        if let Some(named) = headers.get("mcp-protocol-version")
            && !VERSIONS.iter().any(|version| named == version)
        {
            let message =
                format!("Bad Request: Unsupported protocol version, not in {}", VERSIONS.join(", "));
            return Err(refuse(StatusCode::BAD_REQUEST, -32000, &message));
        }
        Ok(Context { session: session.to_owned(), version })
    }

    fn message(self: &Arc<Self>, context: &Context, message: &Value) -> Result<Response<Body>, Rejection> {
        if !is_request(message) {
            self.one_way(context, message)?;
            return Ok(empty(StatusCode::ACCEPTED));
        }
        let id = request_id(message).ok_or_else(invalid_request)?;
        let params = &message["params"];
        if message["method"] == "tools/call" && params["name"] == "count" {
            return Ok(self.count(context, id, params));
        }
        Ok(answer(&reply(context, message, id)))
    }

    /// Only 2025-03-26 has batches. `count` is not run in one: its progress could not be told apart.
    fn batch(&self, context: &Context, batch: &[Value]) -> Result<Response<Body>, Rejection> {
        if context.version != "2025-03-26" || batch.is_empty() {
            return Err(invalid_request());
        }
        let mut replies = Vec::new();
        for message in batch {
            if !is_request(message) {
                self.one_way(context, message)?;
            } else {
                let id = request_id(message).ok_or_else(invalid_request)?;
                replies.push(reply(context, message, id));
            }
        }
        Ok(if replies.is_empty() { empty(StatusCode::ACCEPTED) } else { answer(&Value::Array(replies)) })
    }

    /// A notification, or a response to a request that this server never sends.
    fn one_way(&self, context: &Context, message: &Value) -> Result<(), Rejection> {
        if message["jsonrpc"] != "2.0" {
            return Err(invalid_request());
        }
        if message["method"] == "notifications/cancelled" {
            self.sessions.cancel(&context.session, &message["params"]["requestId"].to_string());
        }
        Ok(())
    }

    /// Answers with an event stream: a progress notification a step if the client wants them, then the result.
    fn count(self: &Arc<Self>, context: &Context, id: Value, params: &Value) -> Response<Body> {
        let Some(steps) = params["arguments"]["n"].as_u64().filter(|steps| (1..=MOST_STEPS).contains(steps))
        else {
            let text = format!("count needs n, an integer from 1 to {MOST_STEPS}");
            return answer(&result(id, features::tool_error(&text)));
        };
        let key = id.to_string();
        let stop = match self.sessions.start(&context.session, &key) {
            Ok(stop) => stop,
            Err(Unstarted::SessionGone) => return session_not_found().into_response(),
            Err(Unstarted::IdInUse) => {
                return answer(&error(id, Refusal::new(-32600, "a call with this id is under way")));
            }
            Err(Unstarted::TooMany) => {
                return answer(&error(id, Refusal::new(-32000, "too many calls are under way")));
            }
        };
        let token = params["_meta"]["progressToken"].clone();
        let (events, stream) = mpsc::channel(16);
        let server = Arc::clone(self);
        let session = context.session.clone();
        // Owned by the server's tracker. A client that goes away does not end it (in this generation only
        // `notifications/cancelled` does); the end of its session or of the server does. Last, it frees its id.
        self.calls.spawn(async move {
            count_steps(steps, token, id, stop, events).await;
            server.sessions.finish(&session, &key);
        });
        event_stream(stream)
    }
}

/// A call that is told to stop ends without a response.
async fn count_steps(
    steps: u64,
    token: Value,
    id: Value,
    stop: CancellationToken,
    events: mpsc::Sender<Bytes>,
) {
    let counting = async {
        for step in 1..=steps {
            tokio::time::sleep(STEP).await;
            if !token.is_null() {
                let progress = json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {
                        "progressToken": token, "progress": step, "total": steps,
                        "message": format!("{step} of {steps}"),
                    },
                });
                let _ = events.send(event(&progress)).await;
            }
        }
        let done = features::text_result(&format!("Counted to {steps}."));
        let _ = events.send(event(&result(id, done))).await;
    };
    let _ = stop.run_until_cancelled(counting).await;
}

fn reply(context: &Context, message: &Value, id: Value) -> Value {
    let method = message["method"].as_str().unwrap_or_default();
    match features::answer(context.version, method, &message["params"]) {
        Ok(value) => result(id, value),
        Err(refusal) => error(id, refusal),
    }
}

fn is_request(message: &Value) -> bool {
    message.get("id").is_some() && message.get("method").is_some()
}

/// The id of a well-formed request.
fn request_id(message: &Value) -> Option<Value> {
    let id = message.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64())?;
    (message["jsonrpc"] == "2.0" && message["method"].is_string()).then(|| id.clone())
}

/// Legacy servers insist on both forms, by name.
fn check_media(headers: &HeaderMap) -> Result<(), Rejection> {
    let has = |name, wanted: &str| {
        headers.get_all(name).iter().any(|value| value.to_str().is_ok_and(|value| value.contains(wanted)))
    };
    if !has(ACCEPT, "application/json") || !has(ACCEPT, "text/event-stream") {
        let message = "Not Acceptable: a client must accept application/json and text/event-stream";
        return Err(refuse(StatusCode::NOT_ACCEPTABLE, -32000, message));
    }
    if !has(CONTENT_TYPE, "application/json") {
        let message = "Unsupported Media Type: a request is application/json";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32000, message));
    }
    Ok(())
}

/// A page from elsewhere must not talk to a server on this machine through its visitor's browser.
fn is_local(headers: &HeaderMap) -> bool {
    headers.get(ORIGIN).is_none_or(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| url::Url::parse(origin).ok());
        matches!(origin.as_ref().and_then(url::Url::host_str), Some("localhost" | "127.0.0.1" | "[::1]"))
    })
}
