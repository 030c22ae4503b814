//! `initialize` upstream and the `server/discover` answer made from it.
//!
//! Rules: A1.1, A1.3, A3.8-A3.14, A9.1; vectors D1, D4, D6, D21; case C50.

use crate::wire::json::{Cursor, Kind, Limits, Object, Span, Splice, object};
use crate::wire::jsonrpc::{Body, Id, Response, string};
use crate::wire::meta;
use crate::wire::payload::Payload;
use crate::wire::version::{LegacyRevision, MODERN};
use bytes::Bytes;

/// Who we say we are where the client does not say who it is (A9.1), and when probing.
pub const OWN_INFO: &str = concat!(r#"{"name":"mcp-janus","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// Extensions that mean the same in both eras (A3.7).
pub(super) const NEUTRAL_EXTENSIONS: [&str; 1] = ["io.modelcontextprotocol/ui"];

/// The `initialize` request. `client_info` is the caller's raw object, if it gave one.
pub fn initialize_request(number: u64, capabilities: &Bytes, client_info: Option<&[u8]>) -> Payload {
    let capabilities = String::from_utf8_lossy(capabilities);
    let info = client_info.map_or(OWN_INFO.into(), String::from_utf8_lossy);
    Payload::from(format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"initialize","params":{{"protocolVersion":"{}","capabilities":{capabilities},"clientInfo":{info}}}}}"#,
        LegacyRevision::LATEST.as_str(),
    ))
}

/// The modern probe (A15.1).
pub fn discover_request(number: u64) -> Payload {
    own_request(number, "server/discover", "")
}

/// A modern request of our own, in nobody's name. `members` are those of `params` besides `_meta`, or nothing.
pub fn own_request(number: u64, method: &str, members: &str) -> Payload {
    let comma = if members.is_empty() { "" } else { "," };
    Payload::from(format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"{method}","params":{{{members}{comma}"_meta":{{"{}":"{MODERN}","{}":{OWN_INFO},"{}":{{}}}}}}}}"#,
        meta::PROTOCOL_VERSION,
        meta::CLIENT_INFO,
        meta::CLIENT_CAPABILITIES,
    ))
}

/// What a legacy server said of itself at `initialize`; pieces are raw JSON.
#[derive(Debug, Clone)]
pub struct Initialized {
    pub revision: LegacyRevision,
    pub server_info: Bytes,
    capabilities: Bytes,
    instructions: Option<Bytes>,
}

/// An `InitializeResult` that cannot be worked with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InitializeFault {
    #[error("its result has no protocolVersion")]
    NoVersion,
    #[error("it answered with protocol version {0:?}, which is not supported")]
    Version(String),
}

impl Initialized {
    pub fn read(response: &Response, body: &Body) -> Result<Self, InitializeFault> {
        let text = &response.text;
        // Copies: a slice would keep the whole buffer alive that the answer came in, as long as the session lives.
        let piece = |name: &str, kind: Kind| {
            let span = body.object.first(text, name)?;
            (Kind::of(span.of(text)) == Some(kind)).then(|| Bytes::copy_from_slice(span.of(text)))
        };
        let version = body.object.first(text, "protocolVersion").and_then(|span| string(text, span));
        let version = version.ok_or(InitializeFault::NoVersion)?;
        let revision = LegacyRevision::parse(&version)
            .ok_or_else(|| InitializeFault::Version(version.chars().take(40).collect()))?;
        Ok(Self {
            revision,
            server_info: piece("serverInfo", Kind::Object)
                .filter(is_implementation)
                .unwrap_or_else(|| Bytes::from_static(br#"{"name":"unknown","version":"0"}"#)),
            capabilities: piece("capabilities", Kind::Object).unwrap_or_else(|| Bytes::from_static(b"{}")),
            instructions: piece("instructions", Kind::String),
        })
    }

    /// The answer to `server/discover`.
    pub fn discover(&self, id: &Id, limits: Limits) -> Payload {
        let lossy = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let mut out = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","supportedVersions":["{MODERN}"],"capabilities":{}"#,
            lossy(id.raw()),
            lossy(&self.modern_capabilities(limits).to_bytes()),
        );
        if let Some(instructions) = &self.instructions {
            out.push_str(",\"instructions\":");
            out.push_str(&lossy(instructions));
        }
        out.push_str(",\"ttlMs\":0,\"cacheScope\":\"private\",\"_meta\":{\"");
        out.push_str(meta::SERVER_INFO);
        out.push_str("\":");
        out.push_str(&lossy(&self.server_info));
        out.push_str("}}}");
        Payload::from(out)
    }

    /// Whether the server declares the capability, such as `logging`.
    pub fn has(&self, capability: &str, limits: Limits) -> bool {
        whole(&self.capabilities, limits)
            .is_some_and(|object| object.first(&self.capabilities, capability).is_some())
    }

    /// Whether a capability's own member is `true`, such as `listChanged` of `tools`.
    pub fn offers(&self, capability: &str, member: &str, limits: Limits) -> bool {
        let text = &self.capabilities;
        let inner = whole(text, limits)
            .and_then(|all| all.first(text, capability))
            .and_then(|span| object(text, span, limits));
        inner.and_then(|inner| inner.first(text, member)).is_some_and(|span| span.of(text) == b"true")
    }

    /// What is no object is no capability. Tasks are not bridged (A3.12), extensions by allow-list (A3.7); a 2024-11-05 server has completion without a
    /// capability for it (A3.9).
    fn modern_capabilities(&self, limits: Limits) -> Payload {
        let text = &self.capabilities;
        let Some(all) = whole(text, limits) else { return Payload::from(Bytes::from_static(b"{}")) };
        let mut splice = Splice::new(text);
        let completes = self.revision == LegacyRevision::V2024_11_05
            && all.first(text, "completions").is_none()
            && (all.first(text, "prompts").is_some() || all.first(text, "resources").is_some());
        let add = if completes { "\"completions\":{}" } else { "" };
        let extensions = all.first(text, "extensions").and_then(|span| object(text, span, limits));
        let neutral = |object: &Object| {
            object.members.iter().any(|member| NEUTRAL_EXTENSIONS.iter().any(|name| member.is(text, name)))
        };
        let keep_extensions = extensions.as_ref().is_some_and(neutral);
        if let Some(extensions) = extensions.filter(|_| keep_extensions) {
            splice.rewrite(
                &extensions,
                |member| NEUTRAL_EXTENSIONS.iter().any(|name| member.is(text, name)),
                "",
            );
        }
        splice.rewrite(
            &all,
            |member| {
                Kind::of(member.value.of(text)) == Some(Kind::Object)
                    && !member.is(text, "tasks")
                    && (keep_extensions || !member.is(text, "extensions"))
            },
            add,
        );
        splice.finish()
    }
}

/// What a `server/discover` result says of versions: whether ours is among them (A15.4).
pub fn offers_modern(response: &Response, body: &Body) -> Option<bool> {
    listed_versions(response, body).map(|versions| versions.iter().any(|version| version == MODERN))
}

/// The `supportedVersions` of a discover result; `None` if it is none.
pub fn listed_versions(response: &Response, body: &Body) -> Option<Vec<String>> {
    strings(&response.text, body.object.first(&response.text, "supportedVersions")?)
}

/// The `supported` list of a -32022 error's `data` (A15.3); `None` unless it is an array of strings.
pub fn supported_versions(text: &Bytes, data: Option<Span>, limits: Limits) -> Option<Vec<String>> {
    let data = object(text, data?, limits)?;
    strings(text, data.first(text, "supported")?)
}

fn strings(text: &Bytes, span: Span) -> Option<Vec<String>> {
    let part = text.slice(span.range());
    let mut cursor = Cursor::on_prefix(&part, Limits { nesting: 2, members: 1 });
    let mut all = Some(Vec::new());
    cursor
        .array(|cursor| {
            let item = string(&part, cursor.skip()?).map(|item| item.into_owned());
            match (item, &mut all) {
                (Some(item), Some(list)) if list.len() < 64 => list.push(item),
                _ => all = None,
            }
            Ok(())
        })
        .ok()?;
    all
}

/// Whether the raw object has what an `Implementation` must have.
fn is_implementation(info: &Bytes) -> bool {
    let bounds = Limits { nesting: usize::MAX, members: usize::MAX };
    let Some(object) = whole(info, bounds) else { return false };
    ["name", "version"]
        .iter()
        .all(|name| object.first(info, name).is_some_and(|span| string(info, span).is_some()))
}

fn whole(text: &Bytes, limits: Limits) -> Option<Object> {
    object(text, Span::new(0, text.len()), limits)
}
