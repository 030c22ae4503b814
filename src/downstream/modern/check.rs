//! The checks that every request of a modern client passes before anything is done for it.
//!
//! Owns their order and their errors: version (header against body), `Mcp-Method`, `Mcp-Name`, the other required
//! `_meta` members, methods that the revision does not have. A legacy client's request comes here only where the server is
//! modern; such a client is told which version is served.
//! Rules: A1.1, A4.1-A4.4, A11-A13; vectors D5-D10, D15, D22, D23; cases C01c, C27, C32; spec 2026-07-28
//! basic/transports/streamable-http, Server Validation.

use crate::exchange::Binding;
use crate::telemetry::metrics::Limit;
use crate::translate::declared::LogLevel;
use crate::wire::headers::{self, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION};
use crate::wire::json::{Kind, Object, ScanFault, Span};
use crate::wire::jsonrpc::{self, Id, Params, Request, code, string};
use crate::wire::meta;
use crate::wire::method::Method;
use crate::wire::version::{Era, LegacyRevision, MODERN};
use hyper::{HeaderMap, StatusCode};
use std::borrow::Cow;

/// A request that is not served, and how that is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::downstream) struct Refusal {
    pub(in crate::downstream) status: StatusCode,
    pub(in crate::downstream) code: i64,
    pub(in crate::downstream) text: Cow<'static, str>,
    /// JSON text.
    pub(in crate::downstream) data: Option<String>,
    pub(in crate::downstream) id: Option<Id>,
    /// For the log and the metrics.
    pub(in crate::downstream) reason: &'static str,
    /// The limit that the request has reached.
    pub(in crate::downstream) limit: Option<Limit>,
}

impl Refusal {
    pub(in crate::downstream) fn new(
        status: StatusCode,
        code: i64,
        reason: &'static str,
        text: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, code, text: text.into(), data: None, id: None, reason, limit: None }
    }

    /// Of which era the refused client is.
    pub(in crate::downstream) fn era(&self) -> Era {
        if self.reason == LEGACY { Era::Legacy } else { Era::Modern }
    }

    pub(in crate::downstream) fn at(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Names the limit that a text has reached, if that is its fault.
    pub(in crate::downstream) fn bounded_by(mut self, fault: &jsonrpc::Fault) -> Self {
        self.limit = match fault {
            jsonrpc::Fault::Scan(scan) => match scan.fault {
                ScanFault::Nesting(_) => Some(Limit::Nesting),
                ScanFault::Members(_) => Some(Limit::Members),
                ScanFault::Syntax | ScanFault::Truncated | ScanFault::Utf8 | ScanFault::Length => None,
            },
            jsonrpc::Fault::Duplicate(_) | jsonrpc::Fault::Batch | jsonrpc::Fault::Shape(_) => None,
        };
        self
    }

    pub(in crate::downstream) fn with_id(mut self, id: Option<Id>) -> Self {
        self.id = id;
        self
    }
}

/// The reason of refusing a client because it is a legacy one.
const LEGACY: &str = "legacy-client";

/// What the checks have found out.
pub(in crate::downstream) struct Checked {
    pub(in crate::downstream) method: Method,
}

/// Members of `params` that may occur once because something is decided by them (architecture, "Raw JSON").
const ONCE: [&str; 5] = ["name", "uri", "taskId", "requestState", "inputResponses"];

/// Where there is no header layer (`Binding::Channel`) nothing is compared with one.
pub(in crate::downstream) fn request(
    headers: &HeaderMap,
    request: &Request,
    binding: Binding,
) -> Result<Checked, Refusal> {
    checks(headers, request, binding).map_err(|refusal| refusal.with_id(Some(request.id.clone())))
}

fn checks(headers: &HeaderMap, request: &Request, binding: Binding) -> Result<Checked, Refusal> {
    let meta = request.params.meta();
    let asked = (request.method == "initialize").then(|| initialize_version(request));
    match binding {
        Binding::Http => version(headers, meta, &request.text, asked.as_deref())?,
        Binding::Channel => claimed(meta, &request.text, asked.as_deref())?,
    }
    let Params::Object(body) = &request.params else {
        return Err(invalid("params", "`params` with `_meta` is required"));
    };
    for name in ONCE {
        body.object.get(&request.text, name).map_err(|duplicate| {
            Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "duplicate", duplicate.to_string())
        })?;
    }
    let method = Method::of(&request.method);
    if binding == Binding::Http {
        mirrored(headers, MCP_METHOD, Some(&request.method), true)?;
    }
    let named = match method.name_member() {
        None => None,
        Some(member) => {
            let name = body.object.first(&request.text, member.as_str());
            let name = name.and_then(|span| string(&request.text, span));
            if binding == Binding::Http {
                // A task id is mirrored by the extension's rule alone (A10.18).
                mirrored(headers, MCP_NAME, name.as_deref(), method != Method::Task)?;
            }
            Some((member, name.is_some()))
        }
    };
    if let Some(meta) = meta {
        declared(&request.text, meta)?;
    }
    if let Some((member, false)) = named {
        return Err(invalid("name", format!("`params.{}` must be a string", member.as_str())));
    }
    match method {
        Method::LegacyOnly(_) | Method::ServerToClient => {
            let text = format!("method not found: {MODERN} has no such method");
            Err(Refusal::new(StatusCode::NOT_FOUND, code::METHOD_NOT_FOUND, "method", text))
        }
        Method::Discover
        | Method::ToolsList
        | Method::ToolsCall
        | Method::PromptsList
        | Method::PromptsGet
        | Method::ResourcesList
        | Method::ResourcesTemplatesList
        | Method::ResourcesRead
        | Method::Complete
        | Method::Listen
        | Method::Task
        | Method::Custom => Ok(Checked { method }),
    }
}

/// Whether a notification comes from a legacy client, which is not served; modern ones need no headers (A2.11).
pub(in crate::downstream) fn notification(headers: &HeaderMap, params: &Params) -> Result<(), Refusal> {
    match (header(headers), params.meta()) {
        (Header::One(version), None) if version != MODERN => Err(unsupported(version)),
        _ => Ok(()),
    }
}

/// The `MCP-Protocol-Version` header.
pub(in crate::downstream) enum Header<'a> {
    Absent,
    One(&'a str),
    /// Lines that differ, or bytes that no version has.
    Unusable,
}

pub(in crate::downstream) fn header(headers: &HeaderMap) -> Header<'_> {
    let mut lines = headers.get_all(MCP_PROTOCOL_VERSION).iter();
    let Some(first) = lines.next() else { return Header::Absent };
    if lines.any(|line| line != first) {
        return Header::Unusable;
    }
    match first.to_str() {
        Ok(text) => Header::One(text.trim()),
        Err(_) => Header::Unusable,
    }
}

/// `asked` is the version that an `initialize` names.
fn version(
    headers: &HeaderMap,
    meta: Option<&Object>,
    text: &[u8],
    asked: Option<&str>,
) -> Result<(), Refusal> {
    let claim = match meta {
        None => None,
        Some(meta) => once(meta, text, meta::PROTOCOL_VERSION)?,
    };
    let Some(claim) = claim else {
        return match header(headers) {
            Header::One(MODERN) => {
                Err(invalid("version", format!("`_meta` must hold \"{}\"", meta::PROTOCOL_VERSION)))
            }
            Header::One(other) => Err(unsupported(other)),
            Header::Unusable => Err(unsupported("")),
            // Only a legacy client initializes (A1.1).
            Header::Absent => Err(match asked {
                Some(version) => unsupported(version),
                None => mismatch(format!(
                    "the MCP-Protocol-Version header is required; this endpoint serves {MODERN}"
                )),
            }),
        };
    };
    let Some(claim) = string(text, claim) else {
        return Err(invalid(
            "version",
            format!("\"{}\" in `_meta` must be a string", meta::PROTOCOL_VERSION),
        ));
    };
    match header(headers) {
        Header::Absent => {
            Err(mismatch(format!("the MCP-Protocol-Version header is required; the body says {claim:?}")))
        }
        Header::Unusable => Err(mismatch(
            "the MCP-Protocol-Version header has lines that differ or invalid characters".into(),
        )),
        Header::One(version) if version != claim => {
            Err(mismatch(format!("the MCP-Protocol-Version header says {version:?}, the body {claim:?}")))
        }
        Header::One(MODERN) => Ok(()),
        Header::One(other) => Err(unsupported(other)),
    }
}

/// The version where the body alone names it.
fn claimed(meta: Option<&Object>, text: &[u8], asked: Option<&str>) -> Result<(), Refusal> {
    let claim = match meta {
        None => None,
        Some(meta) => once(meta, text, meta::PROTOCOL_VERSION)?,
    };
    match (claim.map(|span| string(text, span)), asked) {
        (Some(Some(version)), _) if version == MODERN => Ok(()),
        (Some(Some(version)), _) => Err(unsupported(&version)),
        (Some(None), _) => {
            Err(invalid("version", format!("\"{}\" in `_meta` must be a string", meta::PROTOCOL_VERSION)))
        }
        (None, Some(asked)) => Err(unsupported(asked)),
        (None, None) => Err(invalid("version", format!("`_meta` must hold \"{}\"", meta::PROTOCOL_VERSION))),
    }
}

/// The version that a legacy client asks for.
fn initialize_version(request: &Request) -> String {
    let span = request.params.body().and_then(|body| body.object.first(&request.text, "protocolVersion"));
    span.and_then(|span| string(&request.text, span)).unwrap_or_default().into_owned()
}

/// A header that repeats a value of the body.
fn mirrored(
    headers: &HeaderMap,
    name: &'static str,
    body: Option<&str>,
    required: bool,
) -> Result<(), Refusal> {
    let shown = if name == MCP_METHOD { "Mcp-Method" } else { "Mcp-Name" };
    let mut lines = headers.get_all(name).iter();
    let Some(line) = lines.next() else {
        return if required { Err(mismatch(format!("the {shown} header is required"))) } else { Ok(()) };
    };
    if lines.next().is_some() {
        return Err(mismatch(format!("the {shown} header occurs more than once")));
    }
    let value = if name == MCP_METHOD {
        line.to_str().map(Cow::Borrowed).map_err(|_| "it has invalid characters".to_owned())
    } else {
        headers::decode_value(line.as_bytes()).map_err(|fault| fault.to_string())
    };
    let value = value.map_err(|why| mismatch(format!("the {shown} header cannot be read: {why}")))?;
    match body {
        Some(body) if value == body => Ok(()),
        Some(_) => Err(mismatch(format!("the {shown} header does not match the body"))),
        None => Err(mismatch(format!("the {shown} header has no counterpart in the body"))),
    }
}

/// Capabilities, client info and log level (A4.2-A4.4).
fn declared(text: &[u8], meta: &Object) -> Result<(), Refusal> {
    let kind = |span: Span| Kind::of(span.of(text));
    match once(meta, text, meta::CLIENT_CAPABILITIES)? {
        Some(span) if kind(span) == Some(Kind::Object) => {}
        Some(_) | None => {
            return Err(invalid(
                "capabilities",
                format!("`_meta` must hold an object \"{}\"", meta::CLIENT_CAPABILITIES),
            ));
        }
    }
    if let Some(span) = once(meta, text, meta::CLIENT_INFO)?
        && !is_implementation(text, span)
    {
        let text = format!("\"{}\" must be an object with strings `name` and `version`", meta::CLIENT_INFO);
        return Err(invalid("client-info", text));
    }
    if let Some(span) = once(meta, text, meta::LOG_LEVEL)?
        && string(text, span).and_then(|level| LogLevel::parse(&level)).is_none()
    {
        let text = format!(
            "\"{}\" must be one of debug, info, notice, warning, error, critical, alert, emergency",
            meta::LOG_LEVEL
        );
        return Err(invalid("log-level", text));
    }
    if let Some(span) = once(meta, text, meta::PROGRESS_TOKEN)?
        && !matches!(kind(span), Some(Kind::String | Kind::Number))
    {
        return Err(invalid("progress-token", "`progressToken` must be a string or a number"));
    }
    for name in [meta::SUBSCRIPTION_ID, meta::SERVER_INFO] {
        once(meta, text, name)?;
    }
    Ok(())
}

fn is_implementation(text: &[u8], span: Span) -> bool {
    let limits = crate::wire::json::Limits { nesting: usize::MAX, members: usize::MAX };
    let Some(object) = crate::wire::json::object(text, span, limits) else { return false };
    ["name", "version"]
        .iter()
        .all(|name| object.first(text, name).is_some_and(|span| string(text, span).is_some()))
}

fn once(object: &Object, text: &[u8], name: &str) -> Result<Option<Span>, Refusal> {
    object.get(text, name).map_err(|duplicate| {
        Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, "duplicate", duplicate.to_string())
    })
}

fn invalid(reason: &'static str, text: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, code::INVALID_PARAMS, reason, text)
}

fn mismatch(text: String) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, code::HEADER_MISMATCH, "header", format!("header mismatch: {text}"))
}

pub(in crate::downstream) fn unsupported(requested: &str) -> Refusal {
    let requested: String = requested.chars().take(64).collect();
    let legacy = LegacyRevision::parse(&requested).is_some();
    let text = if legacy {
        format!("unsupported protocol version: this endpoint serves {MODERN} alone")
    } else {
        format!("unsupported protocol version: this endpoint serves {MODERN}")
    };
    let data =
        format!("{{\"supported\":[\"{MODERN}\"],\"requested\":{}}}", crate::wire::json::quote(&requested));
    let reason = if legacy { LEGACY } else { "version" };
    let mut refusal = Refusal::new(StatusCode::BAD_REQUEST, code::UNSUPPORTED_PROTOCOL_VERSION, reason, text);
    refusal.data = Some(data);
    refusal
}
