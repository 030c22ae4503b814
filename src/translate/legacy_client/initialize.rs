//! What a legacy client says of itself, and the answer to it.
//!
//! Owns reading `initialize` (the revision that will be spoken, who the client is, and its capabilities as they go up with
//! every request) and writing its result. Does not own what the server offers (`discovered`), nor sessions.
//! Rules: A1.1, A3.1-A3.7, A4.3, A9; vectors D69, D72.

use super::discovered::Discovered;
use super::identity;
use crate::exchange::{Fault, FaultKind};
use crate::translate::capabilities::{is_object, modes, objects, sorted};
use crate::translate::discover::NEUTRAL_EXTENSIONS;
use crate::wire::json::{Limits, Object, Span, UNBOUNDED, object, once, quote_into};
use crate::wire::jsonrpc::{Id, Request, string};
use crate::wire::meta;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

/// What is declared may be this long in all: a session keeps it, and it goes out with every request.
const MOST_CAPABILITIES: usize = 4 * 1024;

/// A client as its requests describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub revision: LegacyRevision,
    /// A compact JSON object with a name and a version.
    pub info: Bytes,
    /// A compact JSON object: what the client declared, in modern words.
    pub capabilities: Bytes,
    pub can: Can,
}

/// What a server may ask the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Can {
    pub form: bool,
    pub url: bool,
    pub sampling: bool,
    pub tools: bool,
    pub context: bool,
    pub roots: bool,
}

impl Can {
    /// What is declared in [`Client::capabilities`].
    pub fn of(capabilities: &Bytes) -> Self {
        let text = capabilities;
        let Some(all) = object(text, Span::new(0, text.len()), UNBOUNDED) else { return Self::default() };
        let inner = |name| once(&all, text, name).and_then(|span| object(text, span, UNBOUNDED));
        let has =
            |inner: &Option<Object>, name| inner.as_ref().is_some_and(|inner| is_object(text, inner, name));
        let (elicitation, sampling) = (inner("elicitation"), inner("sampling"));
        Self {
            form: has(&elicitation, "form"),
            url: has(&elicitation, "url"),
            sampling: sampling.is_some(),
            tools: has(&sampling, "tools"),
            context: has(&sampling, "context"),
            roots: inner("roots").is_some(),
        }
    }

    pub fn anything(self) -> bool {
        self != Self::default()
    }
}

impl Client {
    /// The sender of a modern request, for what the proxy asks by its name: nothing may be asked of it then.
    pub fn of_modern(request: &Request, limits: Limits) -> Self {
        let info = request.params.meta().and_then(|meta| once(meta, &request.text, meta::CLIENT_INFO));
        let info = identity::read(&request.text, info, identity::MOST_OF_CLIENT, limits);
        let capabilities = Bytes::from_static(b"{}");
        Self { revision: LegacyRevision::LATEST, info, capabilities, can: Can::default() }
    }

    /// The same client, of which nothing may be asked.
    pub fn silent(self) -> Self {
        Self { capabilities: Bytes::from_static(b"{}"), can: Can::default(), ..self }
    }
}

/// Reads an `initialize` request. Any version that is not a legacy one is answered with the latest that is: a modern one is
/// never the outcome of a handshake.
pub fn read(request: &Request, limits: Limits) -> Result<Client, Fault> {
    let text = &request.text;
    let body = request.params.body().ok_or_else(|| invalid("`initialize` needs `params`".into()))?;
    let member = |name: &str| {
        let found = body.object.get(text, name);
        found.map_err(|_| invalid(format!("`params.{name}` of `initialize` occurs more than once")))
    };
    let version = member("protocolVersion")?.and_then(|span| string(text, span));
    let version =
        version.ok_or_else(|| invalid("`initialize` needs `params.protocolVersion`, a string".into()))?;
    let revision = LegacyRevision::parse(&version).unwrap_or(LegacyRevision::LATEST);
    let info = identity::read(text, member("clientInfo")?, identity::MOST_OF_CLIENT, limits);
    let declared = member("capabilities")?.and_then(|span| object(text, span, limits));
    let capabilities = match declared {
        Some(declared) => modern(text, &declared, revision, limits),
        None => Bytes::from_static(b"{}"),
    };
    let can = Can::of(&capabilities);
    Ok(Client { revision, info, capabilities, can })
}

/// The answer to `initialize`.
pub fn result(id: &Id, revision: LegacyRevision, server: &Discovered) -> Payload {
    let mut out = Vec::with_capacity(160 + server.capabilities.len() + server.info.len());
    let mut push = |part: &[u8]| out.extend_from_slice(part);
    push(b"{\"jsonrpc\":\"2.0\",\"id\":");
    push(id.raw());
    push(b",\"result\":{\"protocolVersion\":\"");
    push(revision.as_str().as_bytes());
    push(b"\",\"capabilities\":");
    push(&server.capabilities);
    push(b",\"serverInfo\":");
    push(&server.info);
    if let Some(instructions) = &server.instructions {
        push(b",\"instructions\":");
        push(instructions);
    }
    push(b"}}");
    Payload::from(out)
}

fn invalid(text: String) -> Fault {
    Fault::new(FaultKind::InvalidParams, text)
}

/// The capabilities in modern words. What cannot be read is not declared, so nothing of the kind is asked.
fn modern(text: &[u8], declared: &Object, revision: LegacyRevision, limits: Limits) -> Bytes {
    let mut members = sorted(text, declared);
    // What a server may ask comes before what might take all the room.
    members.sort_by_key(|(name, _)| !matches!(name.as_str(), "elicitation" | "sampling" | "roots"));
    let mut out = String::from("{");
    for (name, span) in members {
        let Some(inner) = object(text, span, limits) else { continue };
        let Some(value) = capability(text, &name, &inner, revision) else { continue };
        let mut member = String::new();
        quote_into(&mut member, &name);
        if out.len() + member.len() + value.len() + 3 > MOST_CAPABILITIES {
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&member);
        out.push(':');
        out.push_str(&value);
    }
    out.push('}');
    Bytes::from(out)
}

/// One capability; `None` for one that is not declared.
fn capability(text: &[u8], name: &str, inner: &Object, revision: LegacyRevision) -> Option<String> {
    let latest = revision >= LegacyRevision::V2025_11_25;
    let not_empty = |value: String| (value != "{}").then_some(value);
    match name {
        "elicitation" if revision < LegacyRevision::V2025_06_18 => None,
        // 2025-06-18 knows forms alone, and nothing inside (A3.5).
        "elicitation" if !latest => Some("{\"form\":{}}".to_owned()),
        "elicitation" => {
            let named = |name: &str| inner.first(text, name).is_some();
            match modes(text, inner) {
                (false, false) if named("form") || named("url") => None,
                (false, false) => Some("{\"form\":{}}".to_owned()),
                (true, _) | (_, true) => Some(objects(text, inner, |_| true)),
            }
        }
        "sampling" if !latest => Some("{}".to_owned()),
        "sampling" => Some(objects(text, inner, |_| true)),
        // A modern server has no way to hear of changes (A3.3).
        "roots" => Some("{}".to_owned()),
        // Tasks are not bridged (A3.6).
        "tasks" => None,
        "extensions" => not_empty(objects(text, inner, |name| NEUTRAL_EXTENSIONS.contains(&name))),
        "experimental" => not_empty(objects(text, inner, |_| true)),
        // Of a capability that no revision defines, no member is known to be wrong.
        _ => Some(crate::translate::capabilities::compacted(text, inner.span)),
    }
}

#[cfg(test)]
#[path = "initialize_tests.rs"]
mod tests;
