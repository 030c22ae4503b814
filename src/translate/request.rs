//! A modern request as a legacy server is to see it.
//!
//! Rules: A1.4-A1.7, A1.10, A1.16, A2.11, A4.1-A4.7, A7.8, A14.2-A14.4; vectors D11, D17, D18, D21.

use crate::wire::json::{Member, Object, Span, Splice};
use crate::wire::jsonrpc::{Notification, Params, Request};
use crate::wire::meta;
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

/// Members of `params` that are modern vocabulary whatever the method.
const MODERN_ONLY: [&str; 2] = ["inputResponses", "requestState"];

/// The request under `number`, which also becomes its progress token if it has one: unique among all that the
/// session carries, so two clients that both chose `"t"` are never confused (A4.5).
pub fn to_legacy(request: &Request, method: Method, revision: LegacyRevision, number: u64) -> Payload {
    let mut splice = Splice::new(&request.text);
    splice.replace(request.id_span, number.to_string());
    let drop_context = method == Method::Complete && revision < LegacyRevision::V2025_06_18;
    let null = |value: Span| value.of(&request.text) == b"null";
    let drop = |name: &str, value: Span| {
        MODERN_ONLY.contains(&name)
            // Tasks are not bridged, so no call asks for one (A1.5, A10).
            || name == "task" && method.can_ask()
            || drop_context && name == "context"
            // No revision has `null` there; a client that writes it means "none" (C32).
            || name == "arguments" && method.can_ask() && null(value)
    };
    params(&mut splice, &request.text, &request.top, &request.params, drop, Some(number));
    splice.finish()
}

/// A notification that neither era defines, without its modern `_meta` (A2.11).
pub fn notification_to_legacy(notification: &Notification) -> Payload {
    let mut splice = Splice::new(&notification.text);
    params(&mut splice, &notification.text, &notification.top, &notification.params, |_, _| false, None);
    splice.finish()
}

/// Takes the reserved keys out of `_meta`, an emptied `_meta` out of `params` and emptied `params` out of the
/// message (A4.7).
fn params(
    splice: &mut Splice<'_>,
    text: &Bytes,
    top: &Object,
    params: &Params,
    drop: impl Fn(&str, Span) -> bool,
    token: Option<u64>,
) {
    let body = match params {
        Params::Absent => return,
        Params::Null(_) => {
            splice.rewrite(top, |member| !member.is(text, "params"), "");
            return;
        }
        Params::Object(body) => body,
    };
    let reserved = |name: &str| meta::MODERN_ONLY.contains(&name) || name == meta::RELATED_TASK;
    let meta_empty = body.meta.as_ref().is_some_and(|object| {
        object.members.iter().all(|member| member.name(text).is_some_and(|name| reserved(&name)))
    });
    let gone = |member: &Member| {
        member.name(text).is_some_and(|name| drop(&name, member.value) || name == "_meta" && meta_empty)
    };
    let empty = body.object.members.iter().all(gone);
    if empty && !body.object.is_empty() {
        splice.rewrite(top, |member| !member.is(text, "params"), "");
        return;
    }
    splice.rewrite(&body.object, |member| !gone(member), "");
    let Some(meta) = body.meta.as_ref().filter(|_| !meta_empty) else { return };
    splice.rewrite(meta, |member| !member.name(text).is_some_and(|name| reserved(&name)), "");
    if let (Some(number), Some(span)) = (token, meta.first(text, meta::PROGRESS_TOKEN)) {
        splice.replace(span, number.to_string());
    }
}
