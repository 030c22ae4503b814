//! The forms in which the demo server answers: JSON, an event stream, an HTTP error, nothing.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::features::Refusal;

pub(super) type Body = BoxBody<Bytes, Infallible>;

/// A request that gets an HTTP error instead of an answer of its own.
pub(super) struct Rejection {
    status: StatusCode,
    refusal: Refusal,
}

impl Rejection {
    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = answer(&error(Value::Null, self.refusal));
        *response.status_mut() = self.status;
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
        }
        response
    }
}

pub(super) fn refuse(status: StatusCode, code: i64, message: &str) -> Rejection {
    Rejection { status, refusal: Refusal::new(code, message) }
}

pub(super) fn invalid_request() -> Rejection {
    refuse(StatusCode::BAD_REQUEST, -32600, "Invalid Request")
}

pub(super) fn session_not_found() -> Rejection {
    refuse(StatusCode::NOT_FOUND, -32001, "Session not found")
}

pub(super) fn answer(message: &Value) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(message.to_string())).boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed());
    *response.status_mut() = status;
    response
}

pub(super) fn event_stream(mut events: mpsc::Receiver<Bytes>) -> Response<Body> {
    let frames = stream::poll_fn(move |context| {
        events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

pub(super) fn event(message: &Value) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

pub(super) fn result(id: Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(super) fn error(id: Value, refusal: Refusal) -> Value {
    let mut error = json!({ "code": refusal.code, "message": refusal.message });
    if let Some(data) = refusal.data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
