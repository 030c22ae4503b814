//! A legacy client's request in its modern envelope.
//!
//! Owns what every request to a modern server carries in `_meta`, the answers and the state of a later round, and what a
//! legacy client may have said that has no meaning there. Does not own headers (`mirror`, `upstream`).
//! Rules: A1.4-A1.7, A1.16, A2.11, A4.1-A4.8, A14.2-A14.4, B2.3; vectors D71, D85, D102, D111; case C32.

use super::initialize::Client;
use crate::translate::declared::{LogLevel, progress_token};
use crate::translate::request::notification_to_legacy;
use crate::wire::json::{Kind, Member, Splice, quote_into};
use crate::wire::jsonrpc::{Notification, Params, Request};
use crate::wire::meta;
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use crate::wire::version::MODERN;
use bytes::Bytes;

/// What a later round of a call brings; nothing in the first one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Round {
    /// A JSON object.
    pub responses: Option<Bytes>,
    /// A JSON string, as the server wrote it.
    pub state: Option<Bytes>,
}

/// The request under `number`, which also becomes its progress token if it has one: each round has its own (A4.5).
pub fn request(
    request: &Request,
    method: Method,
    client: &Client,
    level: Option<LogLevel>,
    number: u64,
    round: &Round,
) -> Payload {
    let text = &request.text;
    let token = progress_token(request).filter(|raw| is_token(raw)).map(|_| number);
    let mut splice = Splice::new(text);
    splice.replace(request.id_span, number.to_string());
    let mut add = round.members();
    let body = match &request.params {
        Params::Object(body) => body,
        Params::Absent => {
            let params = params(&add, &envelope(client, level, token));
            splice.rewrite(&request.top, |_| true, format!("\"params\":{params}"));
            return splice.finish();
        }
        Params::Null(span) => {
            splice.replace(*span, params(&add, &envelope(client, level, token)));
            return splice.finish();
        }
    };
    match &body.meta {
        Some(own) => {
            let keep = |member: &Member| member.name(text).is_none_or(|name| !is_ours(&name));
            splice.rewrite(own, keep, envelope(client, level, token));
        }
        None => {
            if !add.is_empty() {
                add.push(',');
            }
            add.reserve_exact(room(client) + 16);
            add.push_str("\"_meta\":{");
            write_envelope(&mut add, client, level, token);
            add.push('}');
        }
    }
    let foreign = |member: &Member| {
        let Some(name) = member.name(text) else { return false };
        match &*name {
            // Tasks are not bridged (A1.5, A10), and answers are the proxy's to give. A method that no revision defines may mean
            // something else by the names.
            "task" | "inputResponses" | "requestState" => method != Method::Custom,
            // No revision has `null` there; a client that writes it means "none" (C32).
            "arguments" => method.can_ask() && member.value.of(text) == b"null",
            _ => false,
        }
    };
    splice.rewrite(&body.object, |member| !foreign(member), add);
    splice.finish()
}

/// A request of the proxy's own. `members` are those of `params` besides `_meta`, or nothing.
pub fn own(method: &str, members: &str, client: &Client, number: u64) -> Payload {
    let mut out = format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":");
    quote_into(&mut out, method);
    out.push_str(",\"params\":");
    out.push_str(&params(members, &envelope(client, None, None)));
    out.push('}');
    Payload::from(out)
}

/// A notification that neither era defines, without what could be taken for the proxy's own words (A2.11). The envelope is
/// for requests alone: on a notification the revision defines none of it.
pub fn notification(notification: &Notification) -> Payload {
    notification_to_legacy(notification)
}

impl Round {
    fn members(&self) -> String {
        let mut out = String::new();
        if let Some(responses) = &self.responses {
            out.push_str("\"inputResponses\":");
            // Raw JSON out of messages that were checked for UTF-8, as all that follows here.
            out.push_str(&String::from_utf8_lossy(responses));
        }
        if let Some(state) = &self.state {
            if !out.is_empty() {
                out.push(',');
            }
            out.push_str("\"requestState\":");
            out.push_str(&String::from_utf8_lossy(state));
        }
        out
    }
}

fn params(members: &str, reserved: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    format!("{{{members}{comma}\"_meta\":{{{reserved}}}}}")
}

/// The members of `_meta` that the proxy writes.
fn envelope(client: &Client, level: Option<LogLevel>, token: Option<u64>) -> String {
    let mut out = String::with_capacity(room(client));
    write_envelope(&mut out, client, level, token);
    out
}

/// What [`write_envelope`] takes at most.
fn room(client: &Client) -> usize {
    const NAMES: usize = meta::PROTOCOL_VERSION.len()
        + meta::CLIENT_INFO.len()
        + meta::CLIENT_CAPABILITIES.len()
        + meta::LOG_LEVEL.len()
        + meta::PROGRESS_TOKEN.len();
    // Quotes, colons and commas, the version, a level and a number.
    NAMES + client.info.len() + client.capabilities.len() + 72
}

fn write_envelope(out: &mut String, client: &Client, level: Option<LogLevel>, token: Option<u64>) {
    let mut member = |name: &str, value: [&str; 3]| {
        let comma = if out.ends_with(['"', '}']) { "," } else { "" };
        for part in [comma, "\"", name, "\":"].into_iter().chain(value) {
            out.push_str(part);
        }
    };
    member(meta::PROTOCOL_VERSION, ["\"", MODERN, "\""]);
    member(meta::CLIENT_INFO, [&String::from_utf8_lossy(&client.info), "", ""]);
    member(meta::CLIENT_CAPABILITIES, [&String::from_utf8_lossy(&client.capabilities), "", ""]);
    if let Some(level) = level {
        member(meta::LOG_LEVEL, ["\"", level.as_str(), "\""]);
    }
    if let Some(token) = token {
        member(meta::PROGRESS_TOKEN, [&token.to_string(), "", ""]);
    }
}

/// Whether a key of `_meta` is the proxy's to write, or has no meaning in this era.
fn is_ours(name: &str) -> bool {
    meta::MODERN_ONLY.contains(&name) || name == meta::RELATED_TASK || name == meta::PROGRESS_TOKEN
}

fn is_token(raw: &[u8]) -> bool {
    matches!(Kind::of(raw), Some(Kind::String | Kind::Number))
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
