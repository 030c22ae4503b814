//! A modern server's notifications as a legacy client is to see them, and those that the proxy writes itself.
//!
//! Owns their content. Which stream one goes out on is the session's business (B9.8).
//! Rules: A2.2-A2.10, A4.5, A4.9, B2.5, B4.4, B9.7; vectors D93, D99.

use crate::translate::request::notification_to_legacy;
use crate::wire::json::{Limits, Splice, items, object, once, quote_into};
use crate::wire::jsonrpc::{Notification, is_number, string};
use crate::wire::meta;
use crate::wire::payload::Payload;

/// Progress of one call, over all its rounds: the client has one token for them, and on it progress must increase. What a
/// later round says below that is left out (B2.5).
#[derive(Debug, Default)]
pub struct Progress {
    last: Option<f64>,
}

impl Progress {
    /// The notification under the client's token, if it is this round's (its token is `number`) and goes forward.
    pub fn to_legacy(&mut self, notification: &Notification, number: u64, token: &[u8]) -> Option<Payload> {
        let text = &notification.text;
        let body = notification.params.body()?;
        let theirs = once(&body.object, text, meta::PROGRESS_TOKEN)?;
        if !is_number(theirs.of(text), number) {
            return None;
        }
        let value = once(&body.object, text, "progress")?;
        let value = std::str::from_utf8(value.of(text)).ok()?.parse::<f64>().ok()?;
        if !value.is_finite() || self.last.is_some_and(|last| value <= last) {
            return None;
        }
        self.last = Some(value);
        let mut splice = Splice::new(text);
        splice.replace(theirs, token.to_vec());
        if let Some(meta) = &body.meta {
            let keep = |name: &str| !meta::MODERN_ONLY.contains(&name) && name != meta::RELATED_TASK;
            splice.rewrite(meta, |member| member.name(text).is_none_or(|name| keep(&name)), "");
        }
        Some(splice.finish())
    }
}

/// A log message, or one that neither era defines, without modern vocabulary.
pub fn stripped(notification: &Notification) -> Payload {
    notification_to_legacy(notification)
}

/// What has changed at a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    Tools,
    Prompts,
    Resources,
    /// The resource of this URI, unescaped.
    Updated(Box<str>),
}

/// The change that the notification tells of, and the notification as the client is to see it.
pub fn change(notification: &Notification) -> Option<(Change, Payload)> {
    let change = match notification.method.as_str() {
        TOOLS => Change::Tools,
        PROMPTS => Change::Prompts,
        RESOURCES => Change::Resources,
        UPDATED => {
            let text = &notification.text;
            let uri = string(text, once(&notification.params.body()?.object, text, "uri")?)?;
            Change::Updated(uri.into())
        }
        _ => return None,
    };
    Some((change, stripped(notification)))
}

/// The raw id of the listen that the notification was sent on.
pub fn subscription_id(notification: &Notification) -> Option<&[u8]> {
    let text = &notification.text;
    Some(once(notification.params.meta()?, text, meta::SUBSCRIPTION_ID)?.of(text))
}

/// What a server has agreed to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acknowledged {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    /// Unescaped.
    pub uris: Vec<Box<str>>,
}

/// `None` for a notification that is no acknowledgement, or says nothing that can be read.
pub fn acknowledged(notification: &Notification, limits: Limits) -> Option<Acknowledged> {
    if notification.method != "notifications/subscriptions/acknowledged" {
        return None;
    }
    let text = &notification.text;
    let told = object(text, once(&notification.params.body()?.object, text, "notifications")?, limits)?;
    let flag = |name| once(&told, text, name).is_some_and(|span| span.of(text) == b"true");
    let uris = once(&told, text, "resourceSubscriptions").map(|span| items(text, span)).unwrap_or_default();
    Some(Acknowledged {
        tools: flag("toolsListChanged"),
        prompts: flag("promptsListChanged"),
        resources: flag("resourcesListChanged"),
        uris: uris.into_iter().filter_map(|span| Some(string(text, span)?.into())).collect(),
    })
}

/// The notification of a change of which the server's own is not at hand.
pub fn announce(change: &Change) -> Payload {
    match change {
        Change::Tools => written(TOOLS, ""),
        Change::Prompts => written(PROMPTS, ""),
        Change::Resources => written(RESOURCES, ""),
        Change::Updated(uri) => {
            let mut params = String::from("\"uri\":");
            quote_into(&mut params, uri);
            written(UPDATED, &params)
        }
    }
}

/// Takes the question `id` back that was put to the client.
pub fn cancelled(id: u64, reason: &str) -> Payload {
    let mut params = format!("\"requestId\":{id},\"reason\":");
    quote_into(&mut params, reason);
    written("notifications/cancelled", &params)
}

/// The user is done with what an address was shown for (B4.4).
pub fn elicitation_complete(elicitation_id: &str) -> Payload {
    let mut params = String::from("\"elicitationId\":");
    quote_into(&mut params, elicitation_id);
    written("notifications/elicitation/complete", &params)
}

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";

fn written(method: &str, params: &str) -> Payload {
    let params = if params.is_empty() { String::new() } else { format!(",\"params\":{{{params}}}") };
    Payload::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"{params}}}"))
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
