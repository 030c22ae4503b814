//! The checks that every request of a legacy client passes before anything is done for it.
//!
//! Owns what is refused here rather than by the server: arrays that are none of 2025-03-26, requests without an id, GET
//! and DELETE of no session. Also the one change that is made to a body, `params: null` (C32). What a method needs is the
//! server's to check. Rules: A12.4, A12.14, A14.1, B16; cases C21, C25, C31, C32; spec 2025-11-25 basic/transports.

use crate::downstream::modern::check::{Header, Refusal, header, unsupported};
use crate::telemetry::metrics::{Limit, What};
use crate::upstream::legacy::Carries;
use crate::wire::headers::{Accepts, MCP_SESSION_ID};
use crate::wire::json::{Cursor, Limits, Span, Splice};
use crate::wire::jsonrpc::{self, Id, Malformed, Message, Params, code};
use crate::wire::meta;
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use crate::wire::version::{LegacyRevision, MODERN};
use bytes::Bytes;
use hyper::header::ACCEPT;
use hyper::{HeaderMap, Method as HttpMethod, StatusCode};

/// A body that goes on.
pub(super) struct Checked {
    pub(super) carries: Carries,
    pub(super) body: Payload,
    /// For the log.
    pub(super) what: What,
}

pub(super) fn body(
    message: &Result<Message, Malformed>,
    text: &Bytes,
    limits: Limits,
) -> Result<Checked, Refusal> {
    match message {
        Ok(Message::Request(request)) => {
            let method = Method::of(&request.method);
            let carries = match request.method.as_str() {
                "initialize" => Carries::Initialize(request.id.clone()),
                _ => Carries::Request(request.id.clone()),
            };
            Ok(Checked { carries, body: without_null(text, &request.params), what: What::Method(method) })
        }
        Ok(Message::Notification(notification)) => {
            needs_no_id(&notification.method)?;
            let body = without_null(text, &notification.params);
            Ok(Checked { carries: Carries::Unanswered, body, what: What::Notification })
        }
        Ok(Message::Response(_)) => Ok(Checked {
            carries: Carries::Unanswered,
            body: Payload::from(text.clone()),
            what: What::Response,
        }),
        Err(_) => array(text, limits),
    }
}

/// A request that lacks its id has nobody to answer, and a server may run it all the same (C21).
fn needs_no_id(method: &str) -> Result<(), Refusal> {
    match Method::of(method) {
        Method::Custom => Ok(()),
        known => {
            let text = format!("{} is a request and needs an \"id\"", known.label());
            Err(refuse("no-id", text))
        }
    }
}

fn without_null(text: &Bytes, params: &Params) -> Payload {
    match params {
        Params::Absent | Params::Object(_) => Payload::from(text.clone()),
        Params::Null(span) => {
            let mut splice = Splice::new(text);
            splice.replace(*span, "{}");
            splice.finish()
        }
    }
}

/// An array of messages as 2025-03-26 has it: requests and notifications, or answers only, and no `initialize`.
fn array(text: &Bytes, limits: Limits) -> Result<Checked, Refusal> {
    let items = items(text, limits)?;
    let mut splice = Splice::new(text);
    let mut ids = Vec::new();
    let mut answers = 0;
    for item in &items {
        let message =
            jsonrpc::parse(text.slice(item.range()), limits).map_err(|Malformed { fault, .. }| {
                refuse("batch", format!("in the array: {fault}")).bounded_by(&fault)
            })?;
        let params = match &message {
            Message::Request(request) => {
                if request.method == "initialize" {
                    return Err(refuse("batch", "`initialize` must not be in an array"));
                }
                ids.push(request.id.clone());
                &request.params
            }
            Message::Notification(notification) => {
                needs_no_id(&notification.method)?;
                &notification.params
            }
            Message::Response(_) => {
                answers += 1;
                &Params::Absent
            }
        };
        let text = text.slice(item.range());
        if params.meta().is_some_and(|meta| meta.first(&text, meta::PROTOCOL_VERSION).is_some()) {
            return Err(refuse("batch", format!("requests of {MODERN} are sent one by one")));
        }
        if let Params::Null(span) = params {
            splice.replace(Span { start: item.start + span.start, end: item.start + span.end }, "{}");
        }
    }
    if items.is_empty() {
        return Err(refuse("batch", "the array is empty"));
    }
    if answers != 0 && answers != items.len() {
        return Err(refuse("batch", "an array cannot hold both responses and other messages"));
    }
    let carries = if ids.is_empty() { Carries::Unanswered } else { Carries::Batch(ids) };
    Ok(Checked { carries, body: splice.finish(), what: What::Batch })
}

pub(super) fn items(text: &Bytes, limits: Limits) -> Result<Vec<Span>, Refusal> {
    let unreadable = |fault| {
        let fault = jsonrpc::Fault::Scan(fault);
        Refusal::new(StatusCode::BAD_REQUEST, fault.code(), "envelope", fault.to_string()).bounded_by(&fault)
    };
    let mut items = Vec::new();
    let mut more = 0usize;
    let mut cursor = Cursor::new(text, limits).map_err(unreadable)?;
    let whole = cursor.array(|cursor| {
        let item = cursor.skip()?;
        if items.len() < limits.members {
            items.push(item);
        } else {
            more += 1;
        }
        Ok(())
    });
    whole.and_then(|_| cursor.end()).map_err(unreadable)?;
    if more > 0 {
        let text = format!("the array has more than {} messages", limits.members);
        return Err(refuse("batch", text).at(Limit::Members));
    }
    Ok(items)
}

/// GET and DELETE, which only a legacy client has a use for. `None`: this one comes from no legacy client.
pub(super) fn verb(verb: &HttpMethod, headers: &HeaderMap) -> Result<Option<Carries>, Refusal> {
    let in_session = headers.contains_key(MCP_SESSION_ID);
    let legacy = match header(headers) {
        Header::One(MODERN) => false,
        Header::One(version) if LegacyRevision::parse(version).is_some() => true,
        Header::One(version) if in_session => return Err(unsupported(version)),
        Header::Unusable if in_session => return Err(unsupported("")),
        Header::One(_) | Header::Unusable | Header::Absent => in_session,
    };
    if !legacy {
        return Ok(None);
    }
    match *verb {
        HttpMethod::GET if !accepts(headers).event_stream => Err(Refusal::new(
            StatusCode::NOT_ACCEPTABLE,
            code::INVALID_REQUEST,
            "accept",
            "GET is answered by an event stream; the Accept header must admit text/event-stream",
        )),
        HttpMethod::GET => Ok(Some(Carries::Stream)),
        HttpMethod::DELETE => Ok(Some(Carries::End)),
        _ => Ok(None),
    }
}

pub(super) fn accepts(headers: &HeaderMap) -> Accepts {
    Accepts::parse(headers.get_all(ACCEPT).iter().map(|line| line.as_bytes()))
}

/// What a request is not answered under.
pub(super) fn no_form(id: Option<&Id>) -> Refusal {
    let text = "the Accept header admits neither application/json nor text/event-stream";
    Refusal::new(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, "accept", text).with_id(id.cloned())
}

fn refuse(reason: &'static str, text: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, reason, text)
}
