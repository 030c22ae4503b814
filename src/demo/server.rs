//! The demo server's Streamable HTTP side, after specification 2025-11-25, basic/transports.
//!
//! Owns connections, the checks of a request, and where a message goes. Does not own what the methods answer (`features`),
//! calls that take time (`calls`), nor the form of answers (`respond`). A request of a newer generation gets what a legacy
//! SDK answers to it: 400 with -32000 and no id, because it has no session. Every call of `count` and every question of
//! `book` is answered as an event stream, everything else as JSON.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

use super::booking;
use super::features::{self, VERSIONS};
use super::respond::{
    Body, Rejection, answer, empty, error, invalid_request, refuse, result, session_not_found,
};
use super::session::Sessions;

const PATH: &str = "/mcp";
const SESSION_ID: &str = "mcp-session-id";
const MOST_BODY_BYTES: usize = 1 << 20;
const MOST_CONNECTIONS: usize = 256;
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a question waits for its answer. People answer, and the proxy's own patience is half of it.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// How long answers under way may take once the server stops.
const GRACE: Duration = Duration::from_secs(2);
/// Pause after a failed accept, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves on the listener, at `/mcp`, until `stop` is ready; then ends what runs and returns within seconds.
pub async fn serve(listener: TcpListener, stop: impl Future) {
    serve_with(listener, stop, PATIENCE).await;
}

/// As [`serve`], with another patience for questions.
pub(super) async fn serve_with(listener: TcpListener, stop: impl Future, patience: Duration) {
    let server = Arc::new(Server { sessions: Sessions::default(), calls: TaskTracker::new(), patience });
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

pub(super) struct Server {
    pub(super) sessions: Sessions,
    pub(super) calls: TaskTracker,
    /// How long a question waits for its answer.
    pub(super) patience: Duration,
}

/// A request in a session.
pub(super) struct Context {
    pub(super) session: String,
    pub(super) version: &'static str,
    /// By what the client said at `initialize`.
    pub(super) can_be_asked: bool,
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
                let asks = booking::can_be_asked(version, &message["params"]["capabilities"]);
                if let Ok(session) = self.sessions.mint(version, asks).parse() {
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
        let known = session.to_str().ok().and_then(|id| Some((id, self.sessions.agreed(id)?)));
        let Some((session, (version, can_be_asked))) = known else {
            return Err(session_not_found());
        };
        if let Some(named) = headers.get("mcp-protocol-version")
            && !VERSIONS.iter().any(|version| named == version)
        {
            let message =
                format!("Bad Request: Unsupported protocol version, not in {}", VERSIONS.join(", "));
            return Err(refuse(StatusCode::BAD_REQUEST, -32000, &message));
        }
        Ok(Context { session: session.to_owned(), version, can_be_asked })
    }

    fn message(self: &Arc<Self>, context: &Context, message: &Value) -> Result<Response<Body>, Rejection> {
        if !is_request(message) {
            self.one_way(context, message)?;
            return Ok(empty(StatusCode::ACCEPTED));
        }
        let id = request_id(message).ok_or_else(invalid_request)?;
        let params = &message["params"];
        Ok(match params["name"].as_str().filter(|_| message["method"] == "tools/call") {
            Some("count") => self.count(context, id, params),
            Some("book") => self.book(context, id, params),
            _ => answer(&reply(context, message, id)),
        })
    }

    /// Only 2025-03-26 has batches. `count` and `book` are not run in one: they answer with a stream of their own.
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

    /// A notification, or a response. One to a question that is no longer open may have crossed its end, so it is no error.
    fn one_way(&self, context: &Context, message: &Value) -> Result<(), Rejection> {
        if message["jsonrpc"] != "2.0" {
            return Err(invalid_request());
        }
        if message["method"] == "notifications/cancelled" {
            self.sessions.cancel(&context.session, &message["params"]["requestId"].to_string());
        } else if message.get("method").is_none()
            && let Some(number) = message["id"].as_u64()
        {
            self.sessions.answered(&context.session, number, message);
        }
        Ok(())
    }
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
