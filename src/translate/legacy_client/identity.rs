//! An `Implementation` of a peer, in a form that the other era's schema takes.
//!
//! Owns: a name and a version are always there (a peer may leave out the whole, or a part, or write something else in its
//! place), members that would make a strict reader refuse the whole message are left out, and its length is bounded. Rules:
//! A4.3, A9.

use crate::wire::json::{Kind, Limits, Member, Object, Span, compact, object, once, quote_into};
use crate::wire::jsonrpc::string;
use bytes::Bytes;

/// Bytes of a client's, which goes out with every request; a longer one is cut down to what names it.
pub(super) const MOST_OF_CLIENT: usize = 2 * 1024;

/// Bytes of a server's, which is told once a session; icons may be in it as data.
pub(super) const MOST_OF_SERVER: usize = 64 * 1024;

/// Characters of each part of one that was cut down.
const MOST_PART: usize = 100;

/// The object at `span` as compact JSON of at most `most` bytes.
pub(super) fn read(text: &[u8], span: Option<Span>, most: usize, limits: Limits) -> Bytes {
    let Some(object) = span.and_then(|span| object(text, span, limits)) else {
        return written(None, None, None);
    };
    let part = |name| once(&object, text, name).and_then(|span| string(text, span));
    let (name, version) = (part("name"), part("version"));
    if name.is_some() && version.is_some() {
        let whole = whole(text, &object, limits);
        if whole.len() <= most {
            return Bytes::from(whole);
        }
    }
    written(name.as_deref(), version.as_deref(), part("title").as_deref())
}

/// Everything that does no harm, in its order.
fn whole(text: &[u8], object: &Object, limits: Limits) -> Vec<u8> {
    let mut out = b"{".to_vec();
    for member in object.members.iter().filter(|member| fits(text, object, member, limits)) {
        if out.len() > 1 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(member.key.of(text));
        out.extend_from_slice(b"\":");
        out.extend_from_slice(&compact(member.value.of(text)));
    }
    out.push(b'}');
    out
}

fn fits(text: &[u8], object: &Object, member: &Member, limits: Limits) -> bool {
    let Some(name) = member.name(text) else { return false };
    match &*name {
        "name" | "version" => true,
        "title" | "description" | "websiteUrl" => {
            once(object, text, &name).is_some_and(|span| string(text, span).is_some())
        }
        "icons" => once(object, text, &name).is_some_and(|span| are_icons(text, span, limits)),
        // Of a member that no revision defines nothing is known to be wrong.
        _ => true,
    }
}

fn are_icons(text: &[u8], span: Span, limits: Limits) -> bool {
    let is_icon = |item: Span| {
        let icon = object(text, item, limits);
        icon.is_some_and(|icon| once(&icon, text, "src").is_some_and(|src| string(text, src).is_some()))
    };
    Kind::of(span.of(text)) == Some(Kind::Array)
        && crate::wire::json::items(text, span).into_iter().all(is_icon)
}

/// What is not said is not made up: neither an address nor anything else that would name the peer (A9.1).
fn written(name: Option<&str>, version: Option<&str>, title: Option<&str>) -> Bytes {
    let cut = |part: &str| part.chars().take(MOST_PART).collect::<String>();
    let mut out = String::from("{\"name\":");
    quote_into(&mut out, &cut(name.unwrap_or("unknown")));
    out.push_str(",\"version\":");
    quote_into(&mut out, &cut(version.unwrap_or("0")));
    if let Some(title) = title {
        out.push_str(",\"title\":");
        quote_into(&mut out, &cut(title));
    }
    out.push('}');
    Bytes::from(out)
}
