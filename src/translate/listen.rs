//! `subscriptions/listen` between a modern client and a legacy server: what the client asks to hear, what it is
//! promised, and each change notification as its listener is to see it.
//!
//! Owns the filter of a listen, the rule that says which notification it covers, and the messages that begin, carry and
//! end a subscription. Does not own who listens, nor where notifications come from (`upstream::legacy`).
//! Rules: A2.5, A2.6, A4.9, B9.1, B9.4, B9.6; vectors D95-D98; spec 2026-07-28 basic/patterns/subscriptions.

use super::discover::Initialized;
use crate::wire::json::{self, Cursor, Kind, Limits, Span, Splice, object};
use crate::wire::jsonrpc::{Id, Notification, Params, Request, string};
use crate::wire::meta;
use crate::wire::payload::Payload;
use bytes::Bytes;
use std::sync::Arc;

/// The notifications that a client opts in to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    /// Unescaped, each once, in the client's order.
    pub uris: Vec<Arc<str>>,
}

/// Why `params.notifications` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterFault {
    #[error("`params.notifications` must be an object")]
    Missing,
    #[error("`params.notifications.{0}` must be true or false")]
    Flag(&'static str),
    #[error("`params.notifications.resourceSubscriptions` must be an array of strings")]
    Uris,
    #[error("more than {0} resourceSubscriptions in one subscription (limits.subscriptions)")]
    TooMany(usize),
    #[error("`params.notifications`: {0} occurs twice")]
    Twice(&'static str),
}

impl Filter {
    /// What a request asks for; `most` bounds its URIs.
    pub fn read(request: &Request, limits: Limits, most: usize) -> Result<Self, FilterFault> {
        let text = &request.text;
        let body = request.params.body().ok_or(FilterFault::Missing)?;
        let asked = body.object.get(text, "notifications").map_err(|_| FilterFault::Twice("it"))?;
        let asked = asked.and_then(|span| object(text, span, limits)).ok_or(FilterFault::Missing)?;
        let member = |name| asked.get(text, name).map_err(|_| FilterFault::Twice(name));
        let flag = |name| match member(name)?.map(|span| span.of(text)) {
            None | Some(b"false") => Ok(false),
            Some(b"true") => Ok(true),
            Some(_) => Err(FilterFault::Flag(name)),
        };
        let uris = match member("resourceSubscriptions")? {
            None => Vec::new(),
            Some(span) => uris(text, span, limits, most)?,
        };
        Ok(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris,
        })
    }

    /// As much of it as the server says that it can tell (C48).
    pub fn offered_by(&self, server: &Initialized, limits: Limits) -> Self {
        let subscribes = server.offers("resources", "subscribe", limits);
        Self {
            tools: self.tools && server.offers("tools", "listChanged", limits),
            prompts: self.prompts && server.offers("prompts", "listChanged", limits),
            resources: self.resources && server.offers("resources", "listChanged", limits),
            uris: if subscribes { self.uris.clone() } else { Vec::new() },
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn covers(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Updated(uri) => self.uris.iter().any(|subscribed| is_within(uri, subscribed)),
        }
    }

    /// Everything it covers, as changes.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        let lists = [
            (self.tools, Change::Tools),
            (self.prompts, Change::Prompts),
            (self.resources, Change::Resources),
        ];
        let lists = lists.into_iter().filter_map(|(wanted, change)| wanted.then_some(change));
        lists.chain(self.uris.iter().cloned().map(Change::Updated))
    }

    fn write(&self) -> String {
        let flags = [
            (self.tools, "\"toolsListChanged\":true"),
            (self.prompts, "\"promptsListChanged\":true"),
            (self.resources, "\"resourcesListChanged\":true"),
        ];
        let mut members: Vec<String> =
            flags.iter().filter(|(on, _)| *on).map(|(_, text)| (*text).to_owned()).collect();
        if !self.uris.is_empty() {
            let uris: Vec<String> = self.uris.iter().map(|uri| json::quote(uri)).collect();
            members.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }
}

fn uris(text: &Bytes, span: Span, limits: Limits, most: usize) -> Result<Vec<Arc<str>>, FilterFault> {
    let part = span.of(text);
    if Kind::of(part) != Some(Kind::Array) {
        return Err(FilterFault::Uris);
    }
    let mut items = Vec::new();
    let mut over = false;
    let mut cursor = Cursor::on_prefix(part, limits);
    let read = cursor.array(|cursor| {
        let item = cursor.skip()?;
        over |= items.len() == most;
        if !over {
            items.push(item);
        }
        Ok(())
    });
    read.map_err(|_| FilterFault::Uris)?;
    if over {
        return Err(FilterFault::TooMany(most));
    }
    let mut uris: Vec<Arc<str>> = Vec::with_capacity(items.len());
    for item in items {
        let uri = string(part, item).ok_or(FilterFault::Uris)?;
        if !uris.iter().any(|known| **known == *uri) {
            uris.push(Arc::from(uri));
        }
    }
    Ok(uris)
}

/// Whether `uri` is what was subscribed to, or a sub-resource of it (B9.4).
pub fn is_within(uri: &str, subscribed: &str) -> bool {
    let Some(rest) = uri.strip_prefix(subscribed) else { return false };
    rest.is_empty() || rest.starts_with('/') || subscribed.ends_with('/')
}

/// What has changed at a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    Tools,
    Prompts,
    Resources,
    /// The resource of this URI, unescaped.
    Updated(Arc<str>),
}

/// A notification above this size is passed on without what it has beyond its change: it may have to wait.
const LARGE: usize = 16 * 1024;

/// A change, and the server's notification of it, if there is one.
#[derive(Debug)]
pub struct Notice {
    pub change: Change,
    message: Option<Notification>,
}

impl Notice {
    /// `None` for a notification of anything else, and for an update without a URI.
    pub fn of(mut message: Notification) -> Option<Self> {
        let change = match message.method.as_str() {
            "notifications/tools/list_changed" => Change::Tools,
            "notifications/prompts/list_changed" => Change::Prompts,
            "notifications/resources/list_changed" => Change::Resources,
            "notifications/resources/updated" => {
                let uri = message.params.body()?.object.first(&message.text, "uri")?;
                Change::Updated(Arc::from(string(&message.text, uri)?))
            }
            _ => return None,
        };
        if message.text.len() > LARGE {
            return Some(Self::plain(change));
        }
        // A copy, so that a short notice that waits does not keep a long piece of the stream.
        message.text = Bytes::copy_from_slice(&message.text);
        Some(Self { change, message: Some(message) })
    }

    /// Whether it is too large to wait as it is.
    pub fn is_large(&self) -> bool {
        matches!(&self.change, Change::Updated(uri) if uri.len() > LARGE)
    }

    /// A change that no message of the server tells.
    pub fn plain(change: Change) -> Self {
        Self { change, message: None }
    }

    /// The notification for the listener whose request had this id; the tag keeps the id's JSON type (A4.9).
    pub fn tagged(&self, id: &Id) -> Payload {
        let tag = tag(id);
        let Some(message) = &self.message else { return self.written(&tag) };
        let text = &message.text;
        let mut splice = Splice::new(text);
        match &message.params {
            Params::Absent => {
                splice.rewrite(&message.top, |_| true, format!("\"params\":{{\"_meta\":{{{tag}}}}}"));
            }
            Params::Null(span) => splice.replace(*span, format!("{{\"_meta\":{{{tag}}}}}")),
            Params::Object(body) => match &body.meta {
                Some(meta) => {
                    let foreign = [meta::SUBSCRIPTION_ID, meta::RELATED_TASK];
                    let keep = |name: &str| !foreign.contains(&name);
                    splice.rewrite(meta, |member| member.name(text).is_none_or(|name| keep(&name)), tag);
                }
                None => {
                    let add = format!("\"_meta\":{{{tag}}}");
                    splice.rewrite(&body.object, |member| !member.is(text, "_meta"), add);
                }
            },
        }
        splice.finish()
    }

    fn written(&self, tag: &str) -> Payload {
        let (method, uri) = match &self.change {
            Change::Tools => ("tools/list_changed", None),
            Change::Prompts => ("prompts/list_changed", None),
            Change::Resources => ("resources/list_changed", None),
            Change::Updated(uri) => ("resources/updated", Some(uri)),
        };
        let uri = uri.map(|uri| format!(",\"uri\":{}", json::quote(uri))).unwrap_or_default();
        Payload::from(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{{"_meta":{{{tag}}}{uri}}}}}"#
        ))
    }
}

/// The first message of a subscription (B9.1).
pub fn acknowledged(id: &Id, honoured: &Filter) -> Payload {
    Payload::from(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{{}}},"notifications":{}}}}}"#,
        tag(id),
        honoured.write(),
    ))
}

/// The graceful end of a subscription (B9.6).
pub fn ended(id: &Id, server_info: &Bytes) -> Payload {
    Payload::from(format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","_meta":{{{},"{}":{}}}}}}}"#,
        String::from_utf8_lossy(id.raw()),
        tag(id),
        meta::SERVER_INFO,
        String::from_utf8_lossy(server_info),
    ))
}

/// The request that has a legacy server tell of a resource's updates, or not any more.
pub fn subscribe(number: u64, method: &str, uri: &str) -> Payload {
    Payload::from(format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{"uri":{}}}}}"#,
        json::quote(uri)
    ))
}

fn tag(id: &Id) -> String {
    format!("\"{}\":{}", meta::SUBSCRIPTION_ID, String::from_utf8_lossy(id.raw()))
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
