//! A legacy server's notifications on the stream of a call, as the modern caller is to see them.
//!
//! Rules: A2.3-A2.11, A4.5, B8.2; vector D18. Which listener gets a change notification is `relay`'s business.

use super::declared::LogLevel;
use crate::wire::json::Splice;
use crate::wire::jsonrpc::{Id, Notification, is_number, string};
use crate::wire::meta;
use crate::wire::payload::Payload;

/// What a notification from a server is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Progress,
    Log,
    /// List changes and resource updates: never on a call's stream (A2.5).
    Changed,
    /// Of the legacy era alone: ends here.
    LegacyOnly,
    /// In neither registry.
    Custom,
}

impl Kind {
    pub fn of(method: &str) -> Self {
        match method {
            "notifications/progress" => Kind::Progress,
            "notifications/message" => Kind::Log,
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => Kind::Changed,
            "notifications/cancelled"
            | "notifications/initialized"
            | "notifications/roots/list_changed"
            | "notifications/elicitation/complete"
            | "notifications/tasks/status"
            | "notifications/tasks"
            | "notifications/subscriptions/acknowledged" => Kind::LegacyOnly,
            _ => Kind::Custom,
        }
    }
}

/// The id of the server's own request that it cancels.
pub fn cancelled_request(notification: &Notification) -> Option<Id> {
    if notification.method != "notifications/cancelled" {
        return None;
    }
    let text = &notification.text;
    Id::accept(text, notification.params.body()?.object.get(text, "requestId").ok()??)
}

/// The id of the elicitation of which the server says that its user is done.
pub fn completed_elicitation(notification: &Notification) -> Option<String> {
    if notification.method != "notifications/elicitation/complete" {
        return None;
    }
    let text = &notification.text;
    let id = notification.params.body()?.object.get(text, "elicitationId").ok()??;
    Some(string(text, id)?.into_owned())
}

/// Progress of one call: it must increase, and what does not is left out (A2.3).
#[derive(Debug, Default)]
pub struct Progress {
    last: Option<f64>,
}

impl Progress {
    /// The notification under the caller's token, if it is this call's (its token is `number`) and goes forward.
    pub fn to_modern(&mut self, notification: &Notification, number: u64, token: &[u8]) -> Option<Payload> {
        let text = &notification.text;
        let body = notification.params.body()?;
        let theirs = body.object.get(text, meta::PROGRESS_TOKEN).ok()??;
        if !is_number(theirs.of(text), number) {
            return None;
        }
        let value =
            std::str::from_utf8(body.object.first(text, "progress")?.of(text)).ok()?.parse::<f64>().ok()?;
        if self.last.is_some_and(|last| value <= last) {
            return None;
        }
        self.last = Some(value);
        let mut splice = Splice::new(text);
        splice.replace(theirs, token.to_vec());
        strip_meta(&mut splice, notification);
        Some(splice.finish())
    }
}

/// The log message, if it is as grave as the request asked for (B8.2).
pub fn log_to_modern(notification: &Notification, wanted: Option<LogLevel>) -> Option<Payload> {
    let span = notification.params.body()?.object.first(&notification.text, "level")?;
    let level = LogLevel::parse(&string(&notification.text, span)?)?;
    (level >= wanted?).then(|| custom_to_modern(notification))
}

/// As it is, without vocabulary that the modern era gives a meaning of its own.
pub fn custom_to_modern(notification: &Notification) -> Payload {
    let mut splice = Splice::new(&notification.text);
    strip_meta(&mut splice, notification);
    splice.finish()
}

fn strip_meta(splice: &mut Splice<'_>, notification: &Notification) {
    let Some(meta) = notification.params.meta() else { return };
    let text = &notification.text;
    let foreign = [meta::RELATED_TASK, meta::SUBSCRIPTION_ID];
    splice.rewrite(meta, |member| member.name(text).is_none_or(|name| !foreign.contains(&name.as_ref())), "");
}
