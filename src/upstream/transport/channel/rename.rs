//! Ids, progress tokens and subscription ids of ours in the place of the callers' on a channel that several share, and back.
//!
//! Owns where in a message they stand and the text with others in their place; every other byte stays as it was. PURE: holds
//! no table of who has which. Does not own which messages are renamed (`connection` does), nor any other rewriting
//! (`translate`).
//!
//! A name that stands twice where parsing allows it (`progressToken`, `subscriptionId`) is replaced at each place, so that no
//! reader of the text can find the one that belongs to the other side; to tell whom a message is for, such a name is none.
//! Rules: A14.2, A14.3, A14.4, B17; case C20.

use crate::wire::json::{self, Kind, Object, Splice};
use crate::wire::jsonrpc::{Id, Notification, Params, Reply, Request, Response};
use crate::wire::meta;
use crate::wire::payload::Payload;
use bytes::Bytes;

/// A progress token exactly as its sender wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token(Bytes);

impl Token {
    /// The JSON text.
    pub(super) fn raw(&self) -> &Bytes {
        &self.0
    }
}

/// What stands in a notification for whoever asked, and is put back.
#[derive(Debug, Clone, Copy)]
pub(super) enum Renamed<'a> {
    /// `progressToken`: the token of the caller.
    Progress(&'a Token),
    /// The subscription id: the id of the caller's listen.
    Subscription(&'a Id),
}

/// Whom a server's notification is for, by the raw text of what we named him.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addressee<'a> {
    /// Progress of the request with this token.
    Progress(&'a [u8]),
    /// Something told to the listen with this id.
    Subscription(&'a [u8]),
    /// The request with this id is over, and gets no answer: a modern server ends a listen so.
    Cancelled(&'a [u8]),
    /// It does not say.
    None,
}

/// `request` under `id`, which becomes its progress token too if it has one; and the caller's own token.
pub(super) fn request(request: &Request, id: &Id) -> (Payload, Option<Token>) {
    let text = &request.text;
    let mut splice = Splice::new(text);
    splice.replace(request.id_span, id.raw().clone());
    let mut token = None;
    if let Some(meta) = request.params.meta() {
        replace(&mut splice, text, meta, meta::PROGRESS_TOKEN, id.raw(), |old| {
            // A copy, so that a short token does not keep a long request alive. Of two the latter counts for most readers.
            token = Some(Token(Bytes::copy_from_slice(old)));
        });
    }
    (splice.finish(), token)
}

/// `response` under the id of the caller, wherever its own is or is missing. With `listen`, the answer is to a listen, whose
/// id stands in the result once more.
pub(super) fn response(response: &Response, caller: &Id, listen: bool) -> Payload {
    let text = &response.text;
    let mut splice = Splice::new(text);
    match response.top.first(text, "id") {
        Some(span) => splice.replace(span, caller.raw().clone()),
        None => {
            let add = [&b"\"id\":"[..], caller.raw()].concat();
            splice.rewrite(&response.top, |_| true, add);
        }
    }
    match &response.reply {
        Reply::Result(body) if listen => {
            if let Some(meta) = &body.meta {
                replace(&mut splice, text, meta, meta::SUBSCRIPTION_ID, caller.raw(), |_| ());
            }
        }
        Reply::Result(_) | Reply::Error(_) => {}
    }
    splice.finish()
}

/// `notification` with what is the caller's own in the place of ours.
pub(super) fn notification(notification: &Notification, what: Renamed<'_>) -> Payload {
    let text = &notification.text;
    let mut splice = Splice::new(text);
    match (what, &notification.params) {
        (Renamed::Progress(token), Params::Object(params)) => {
            replace(&mut splice, text, &params.object, meta::PROGRESS_TOKEN, token.raw(), |_| ());
        }
        (Renamed::Subscription(id), Params::Object(params)) => {
            if let Some(meta) = &params.meta {
                replace(&mut splice, text, meta, meta::SUBSCRIPTION_ID, id.raw(), |_| ());
            }
        }
        (Renamed::Progress(_) | Renamed::Subscription(_), Params::Absent | Params::Null(_)) => {}
    }
    splice.finish()
}

/// Whom `notification`, which a server sent, is for.
pub(super) fn addressee(notification: &Notification) -> Addressee<'_> {
    let text = &notification.text;
    let Some(params) = notification.params.body() else { return Addressee::None };
    match notification.method.as_str() {
        "notifications/progress" => {
            only(text, &params.object, meta::PROGRESS_TOKEN).map_or(Addressee::None, Addressee::Progress)
        }
        "notifications/cancelled" => {
            only(text, &params.object, "requestId").map_or(Addressee::None, Addressee::Cancelled)
        }
        _ => params
            .meta
            .as_ref()
            .and_then(|meta| only(text, meta, meta::SUBSCRIPTION_ID))
            .map_or(Addressee::None, Addressee::Subscription),
    }
}

/// Our word that the request with `id` is given up.
pub(super) fn cancelled(id: &Id, reason: Option<&str>) -> Payload {
    const HEAD: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#;
    let reason = reason.map(|reason| format!(r#","reason":{}"#, json::quote(reason))).unwrap_or_default();
    Payload::from([HEAD, id.raw(), reason.as_bytes(), b"}}"].concat())
}

/// Puts `with` in the place of each `name` in `object` that is a string or a number, and shows what was there.
fn replace(
    splice: &mut Splice<'_>,
    text: &Bytes,
    object: &Object,
    name: &str,
    with: &Bytes,
    mut old: impl FnMut(&[u8]),
) {
    for member in object.members.iter().filter(|member| member.is(text, name)) {
        let raw = member.value.of(text);
        if is_name(raw) {
            old(raw);
            splice.replace(member.value, with.clone());
        }
    }
}

/// The raw value of `name`, if it stands there once and is a string or a number.
fn only<'a>(text: &'a Bytes, object: &Object, name: &str) -> Option<&'a [u8]> {
    let raw = object.get(text, name).ok()??.of(text);
    is_name(raw).then_some(raw)
}

fn is_name(raw: &[u8]) -> bool {
    match Kind::of(raw) {
        Some(Kind::String | Kind::Number) => true,
        Some(Kind::Object | Kind::Array | Kind::Bool | Kind::Null) | None => false,
    }
}

#[cfg(test)]
mod tests;
