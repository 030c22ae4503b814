//! What a modern server says of itself, as `initialize` is to tell it.
//!
//! Owns reading a `server/discover` result: who the server is, its capabilities as a legacy client is to see them, and what
//! of them the proxy itself goes by. It is asked for each session and kept for no other. Rules: A3.8-A3.14, A4.13,
//! A9.1; vectors D69, D99; case C50.

use super::identity;
use super::result::unsupported;
use crate::translate::capabilities::{compacted, objects, sorted};
use crate::translate::discover::{NEUTRAL_EXTENSIONS, listed_versions};
use crate::wire::json::{Kind, Limits, Object, Span, object, once, quote_into};
use crate::wire::jsonrpc::{Body, Response};
use crate::wire::meta;
use crate::wire::version::MODERN;
use bytes::Bytes;

/// A server as it described itself; the bytes are raw JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// A compact JSON object with a name and a version.
    pub info: Bytes,
    /// As the legacy client sees them.
    pub capabilities: Bytes,
    /// A JSON string.
    pub instructions: Option<Bytes>,
    pub offers: Offers,
}

/// What a server offers, as far as the proxy goes by it in the life of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    pub logging: bool,
    pub tools_changed: bool,
    pub prompts_changed: bool,
    pub resources_changed: bool,
    pub subscribe: bool,
}

/// A discover result that no session can be begun with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("{0} in its answer to server/discover")]
    Kind(String),
    #[error("its answer to server/discover has no list `supportedVersions`")]
    NoVersions,
    #[error("it does not speak {MODERN}, only {0}")]
    Versions(String),
}

impl Offers {
    /// One bit each, in the order of the members: this is written into sealed session ids.
    pub fn bits(self) -> u16 {
        let flags =
            [self.logging, self.tools_changed, self.prompts_changed, self.resources_changed, self.subscribe];
        flags.iter().enumerate().fold(0, |bits, (at, &flag)| bits | u16::from(flag) << at)
    }

    pub fn from_bits(bits: u16) -> Self {
        let flag = |at: u16| bits >> at & 1 == 1;
        Self {
            logging: flag(0),
            tools_changed: flag(1),
            prompts_changed: flag(2),
            resources_changed: flag(3),
            subscribe: flag(4),
        }
    }
}

/// Reads the result of `server/discover`.
pub fn read(response: &Response, body: &Body, limits: Limits) -> Result<Discovered, Unusable> {
    let text = &response.text;
    if let Some(kind) = unsupported(text, body) {
        return Err(Unusable::Kind(kind));
    }
    let versions = listed_versions(response, body).ok_or(Unusable::NoVersions)?;
    if !versions.iter().any(|version| version == MODERN) {
        let named: Vec<String> = versions.iter().map(|version| version.chars().take(40).collect()).collect();
        return Err(Unusable::Versions(named.get(..8).unwrap_or(&named).join(", ")));
    }
    let member = |name: &str| once(&body.object, text, name);
    let declared = member("capabilities").and_then(|span| object(text, span, limits));
    let (capabilities, offers) = match declared {
        Some(declared) => capabilities(text, &declared, limits),
        None => (Bytes::from_static(b"{}"), Offers::default()),
    };
    let is_string = |span: &Span| Kind::of(span.of(text)) == Some(Kind::String);
    let info = body.meta.as_ref().and_then(|meta| once(meta, text, meta::SERVER_INFO));
    Ok(Discovered {
        info: identity::read(text, info, identity::MOST_OF_SERVER, limits),
        capabilities,
        // A copy: a slice would keep the whole answer alive.
        instructions: member("instructions")
            .filter(is_string)
            .map(|span| Bytes::copy_from_slice(span.of(text))),
        offers,
    })
}

/// The capabilities in legacy words, in normal form, and what of them counts here. What is no object is no capability.
fn capabilities(text: &[u8], declared: &Object, limits: Limits) -> (Bytes, Offers) {
    let mut offers = Offers::default();
    let mut out = String::from("{");
    for (name, span) in sorted(text, declared) {
        let Some(inner) = object(text, span, limits) else { continue };
        let Some(value) = capability(text, &name, &inner) else { continue };
        offers.note(text, &name, &inner);
        if out.len() > 1 {
            out.push(',');
        }
        quote_into(&mut out, &name);
        out.push(':');
        out.push_str(&value);
    }
    out.push('}');
    (Bytes::from(out), offers)
}

/// One capability; `None` for one that the client is not told of.
fn capability(text: &[u8], name: &str, inner: &Object) -> Option<String> {
    let not_empty = |value: String| (value != "{}").then_some(value);
    match name {
        // Tasks are not bridged (A3.12, A10.1).
        "tasks" => None,
        "extensions" => not_empty(objects(text, inner, |name| NEUTRAL_EXTENSIONS.contains(&name))),
        "experimental" => not_empty(objects(text, inner, |_| true)),
        "tools" | "prompts" | "resources" => Some(with_flags(text, inner)),
        _ => Some(compacted(text, inner.span)),
    }
}

/// The object without flags that are neither true nor false, which a strict client would refuse the whole result for.
fn with_flags(text: &[u8], inner: &Object) -> String {
    let mut out = String::from("{");
    for member in &inner.members {
        let Some(name) = member.name(text) else { continue };
        let is_flag = matches!(&*name, "listChanged" | "subscribe");
        if is_flag && once(inner, text, &name).is_none_or(|span| Kind::of(span.of(text)) != Some(Kind::Bool))
        {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        quote_into(&mut out, &name);
        out.push(':');
        out.push_str(&compacted(text, member.value));
    }
    out.push('}');
    out
}

impl Offers {
    fn note(&mut self, text: &[u8], name: &str, inner: &Object) {
        let says = |name| once(inner, text, name).is_some_and(|span| span.of(text) == b"true");
        match name {
            "tools" => self.tools_changed = says("listChanged"),
            "prompts" => self.prompts_changed = says("listChanged"),
            "resources" => {
                (self.resources_changed, self.subscribe) = (says("listChanged"), says("subscribe"))
            }
            "logging" => self.logging = true,
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "discovered_tests.rs"]
mod tests;
