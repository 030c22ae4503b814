//! What the tests of this module share: messages from text, and answers as text or as values.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::initialize::{self, Client};
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Body, Id, Message, Notification, Reply, Request, Response, RpcError};
use crate::wire::payload::Payload;
use bytes::Bytes;
use serde_json::Value;

pub(super) const LIMITS: Limits = Limits { nesting: 64, members: 64 };

fn message(text: &str) -> Message {
    jsonrpc::parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap()
}

pub(super) fn request(text: &str) -> Request {
    match message(text) {
        Message::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

/// A request of these `params` (raw JSON).
pub(super) fn asked(method: &str, params: &str) -> Request {
    request(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#))
}

pub(super) fn notification(text: &str) -> Notification {
    match message(text) {
        Message::Notification(notification) => notification,
        other => panic!("{other:?}"),
    }
}

pub(super) fn response(text: &str) -> Response {
    match message(text) {
        Message::Response(response) => response,
        other => panic!("{other:?}"),
    }
}

/// An answer under the proxy's number with this result (raw JSON).
pub(super) fn answer(result: &str) -> Response {
    response(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#))
}

pub(super) fn body(response: &Response) -> &Body {
    match &response.reply {
        Reply::Result(body) => body,
        Reply::Error(error) => panic!("{error:?}"),
    }
}

pub(super) fn rpc_error(response: &Response) -> &RpcError {
    match &response.reply {
        Reply::Error(error) => error,
        Reply::Result(body) => panic!("{body:?}"),
    }
}

/// The id that the client of the tests chose.
pub(super) fn id() -> Id {
    request(r#"{"jsonrpc":"2.0","id":"c","method":"m"}"#).id
}

pub(super) fn text(payload: &Payload) -> String {
    String::from_utf8(payload.to_bytes().to_vec()).unwrap()
}

pub(super) fn value(payload: &Payload) -> Value {
    serde_json::from_slice(&payload.to_bytes()).unwrap()
}

/// The client that says this of itself (raw JSON of `params`).
pub(super) fn client(params: &str) -> Client {
    initialize::read(&asked("initialize", params), LIMITS).unwrap()
}

/// One that can be asked everything.
pub(super) fn able() -> Client {
    client(
        r#"{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":{"elicitation":{"form":{},"url":{}}}}"#,
    )
}
