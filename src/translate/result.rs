//! A legacy server's result as a modern client is to see it.
//!
//! Owns results that are held whole; `flow` does the same to one that passes.
//! Rules: A4.10, A4.11, A4.13, A5.14, A7.9, B12; vectors D12-D14, D19, D20, D66; tools of a list in `tools`.

use super::discover::OWN_INFO;
use super::tools;
use crate::schema::Finding;
use crate::schema::sift::Sift;
use crate::wire::json::{Cursor, Kind, Limits, Object, Splice};
use crate::wire::jsonrpc::{Body, Id, Response};
use crate::wire::meta;
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use bytes::Bytes;

/// What a legacy result cannot say in its own right: a modern meaning of these names was not intended (A4.10, A4.11).
pub(super) const OVERWRITTEN: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Members that completion values may have at most (A7.9).
const COMPLETION_VALUES: usize = 100;

/// A result on its way up, and what was found in it that the operator should know.
#[derive(Debug)]
pub struct Translated {
    pub message: Payload,
    pub findings: Vec<Finding>,
}

/// A result that lacks what every revision requires of it, and that no client could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the upstream server's result has no {kind} `{member}`")]
pub struct Unreadable {
    member: &'static str,
    kind: &'static str,
}

impl Unreadable {
    pub(super) fn new(member: &'static str, kind: &'static str) -> Self {
        Self { member, kind }
    }
}

/// Whether the result has the member that it is all about.
pub fn readable(text: &Bytes, body: &Body, method: Method) -> Result<(), Unreadable> {
    let member = match method {
        Method::ToolsList => "tools",
        Method::PromptsList => "prompts",
        Method::ResourcesList => "resources",
        Method::ResourcesTemplatesList => "resourceTemplates",
        Method::ResourcesRead => "contents",
        Method::PromptsGet => "messages",
        Method::Complete => "completion",
        Method::ToolsCall
        | Method::Discover
        | Method::Listen
        | Method::Task
        | Method::LegacyOnly(_)
        | Method::ServerToClient
        | Method::Custom => return Ok(()),
    };
    let (wanted, kind) =
        if member == "completion" { (Kind::Object, "object") } else { (Kind::Array, "list") };
    // A second one would let two readers see two lists.
    let found = body.object.get(text, member).ok().flatten();
    match found.and_then(|span| Kind::of(span.of(text))) {
        Some(found) if found == wanted => Ok(()),
        Some(_) | None => Err(Unreadable { member, kind }),
    }
}

/// A result of `tools/call` that says that the tool failed, in words of the proxy. `server_info` is the server's if it is known;
/// else the proxy is who says so.
pub fn tool_error(id: &Id, what: &str, server_info: Option<&Bytes>) -> Payload {
    let mut out = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete","content":[{{"type":"text","text":"#,
        String::from_utf8_lossy(id.raw())
    );
    crate::wire::json::quote_into(&mut out, what);
    out.push_str("}],\"isError\":true,\"_meta\":{");
    let own = Bytes::from_static(OWN_INFO.as_bytes());
    push_server_info(&mut out, server_info.unwrap_or(&own));
    out.push_str("}}}");
    Payload::from(out)
}

/// Whether the result of `tools/call` says that the tool failed.
pub fn is_error(text: &Bytes, body: &Body) -> bool {
    body.object.first(text, "isError").is_some_and(|span| span.of(text) == b"true")
}

/// The whole message under the client's id. `server_info` is the raw JSON that the server gave at `initialize`; `sift` is the
/// guard's verdict where it is a list of tools.
#[allow(clippy::too_many_arguments, reason = "one caller")]
pub fn to_modern(
    response: &Response,
    body: &Body,
    method: Method,
    id: &Id,
    server_info: &Bytes,
    sift: Option<&Sift>,
    limits: Limits,
) -> Translated {
    let text = &response.text;
    let mut findings = Vec::new();
    let mut splice = Splice::new(text);
    if let Some(span) = response.id {
        splice.replace(span, id.raw().clone());
    }
    let mut add = String::with_capacity(160 + server_info.len());
    add.push_str(stamp(method));
    match &body.meta {
        Some(object) => meta_of(&mut splice, text, object, server_info),
        None => {
            add.push_str(",\"_meta\":{");
            push_server_info(&mut add, server_info);
            add.push('}');
        }
    }
    match method {
        Method::ToolsCall => content(&mut add, text, &body.object),
        Method::ToolsList => {
            findings = sift.map(|sift| tools::rewrite(&mut splice, text, sift)).unwrap_or_default();
        }
        Method::Complete => completion(&mut splice, text, &body.object, limits),
        Method::Discover
        | Method::PromptsList
        | Method::PromptsGet
        | Method::ResourcesList
        | Method::ResourcesTemplatesList
        | Method::ResourcesRead
        | Method::Listen
        | Method::Task
        | Method::LegacyOnly(_)
        | Method::ServerToClient
        | Method::Custom => {}
    }
    // `null` where an object belongs, and where an error would stand, is what some serialisers write for "none".
    let keep = |name: &str| !OVERWRITTEN.contains(&name) && (name != "_meta" || body.meta.is_some());
    splice.rewrite(&response.top, |member| !member.is(text, "error"), "");
    splice.rewrite(&body.object, |member| member.name(text).is_none_or(|name| keep(&name)), add);
    Translated { message: splice.finish(), findings }
}

/// The members that every modern result of this method has (A4.10, A4.11).
pub(super) fn stamp(method: Method) -> &'static str {
    if method.cacheable() {
        "\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\""
    } else {
        "\"resultType\":\"complete\""
    }
}

/// A server's own value under the reserved name stays (A4.13).
pub(super) fn meta_of(splice: &mut Splice<'_>, text: &Bytes, object: &Object, server_info: &Bytes) {
    let mut add = String::new();
    if object.first(text, meta::SERVER_INFO).is_none() {
        push_server_info(&mut add, server_info);
    }
    let foreign = [meta::RELATED_TASK, meta::SUBSCRIPTION_ID];
    splice.rewrite(
        object,
        |member| member.name(text).is_none_or(|name| !foreign.contains(&name.as_ref())),
        add,
    );
}

pub(super) fn push_server_info(out: &mut String, server_info: &Bytes) {
    out.push('"');
    out.push_str(meta::SERVER_INFO);
    out.push_str("\":");
    // Raw JSON out of a message that was checked for UTF-8.
    out.push_str(&String::from_utf8_lossy(server_info));
}

/// `content` is required of every revision; a server that sends only `structuredContent` gets it as text (A5.14).
fn content(add: &mut String, text: &Bytes, object: &Object) {
    if object.first(text, "content").is_some() {
        return;
    }
    match object.first(text, "structuredContent") {
        Some(span) => {
            add.push_str(",\"content\":[{\"type\":\"text\",\"text\":");
            crate::wire::json::quote_into(add, &String::from_utf8_lossy(span.of(text)));
            add.push_str("}]");
        }
        None => add.push_str(",\"content\":[]"),
    }
}

/// No more than 100 values; what was cut off is announced by `hasMore` (A7.9).
fn completion(splice: &mut Splice<'_>, text: &Bytes, object: &Object, limits: Limits) {
    let Some(completion) =
        object.first(text, "completion").and_then(|span| crate::wire::json::object(text, span, limits))
    else {
        return;
    };
    let Some(values) = completion.first(text, "values") else { return };
    let mut cut = None;
    let mut count = 0;
    let mut cursor = Cursor::on_prefix(values.of(text), limits);
    let read = cursor.array(|cursor| {
        let item = cursor.skip()?;
        count += 1;
        if count == COMPLETION_VALUES {
            cut = Some(item.end + values.start);
        }
        Ok(())
    });
    let (Ok(_), Some(cut)) = (read, cut) else { return };
    if count <= COMPLETION_VALUES {
        return;
    }
    splice.replace(crate::wire::json::Span { start: cut, end: values.end - 1 }, Bytes::new());
    match completion.first(text, "hasMore") {
        Some(span) => splice.replace(span, "true"),
        None => {
            splice.rewrite(&completion, |_| true, "\"hasMore\":true");
        }
    }
}
