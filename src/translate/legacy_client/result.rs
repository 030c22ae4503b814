//! A modern server's result as a legacy client is to see it.
//!
//! Owns what kind of result it is, taking out what the legacy era has no words for, and the forms that each revision has for
//! structured results. Content blocks are in `content`, lists of tools in `tools`; a result that passes in pieces is in
//! `flow`. Rules: A4.10-A4.13, A4.18, A5.6, A5.14, B6, B12; vectors D58, D60-D62, D66, D73, D74; case C51.

use super::content;
use super::output::Output;
use crate::translate::result::{Unreadable, readable};
use crate::wire::json::{
    Kind as Json, Member, Object, Span, Splice, UNBOUNDED, compact, items, object, once, quote_into,
};
use crate::wire::jsonrpc::{Body, Id, Response, string};
use crate::wire::meta;
use crate::wire::method::Method;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

/// Members of a modern result that are words of its protocol.
pub(in crate::translate) const VOCABULARY: [&str; 5] =
    ["resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"];

/// What a result says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Complete,
    /// The server asks.
    InputRequired,
    /// Something that must not be taken for a success; what it is, in words that can follow "the server answered with".
    Unsupported(String),
}

/// Reads `resultType`. None at all means that the result is complete (B12).
pub fn kind(response: &Response, body: &Body, method: Method) -> Kind {
    let text = &response.text;
    let said = body.object.get(text, "resultType").ok().flatten().and_then(|span| string(text, span));
    match said.as_deref() {
        Some("input_required") if method.can_ask() => Kind::InputRequired,
        Some("input_required") => {
            Kind::Unsupported(format!("resultType \"input_required\" to {}", method.label()))
        }
        _ => unsupported(text, body).map_or(Kind::Complete, Kind::Unsupported),
    }
}

/// What makes the result none that is complete.
pub(super) fn unsupported(text: &Bytes, body: &Body) -> Option<String> {
    let Ok(said) = body.object.get(text, "resultType") else {
        return Some("a result that has `resultType` more than once".to_owned());
    };
    match string(text, said?) {
        Some(said) if said == "complete" => None,
        Some(said) => {
            let said: String = said.chars().filter(|char| !char.is_control()).take(64).collect();
            Some(format!("resultType \"{said}\""))
        }
        None => Some("a `resultType` that is no string".to_owned()),
    }
}

/// The whole message under the client's id, for every method but `tools/list`. `convert`: content that the revision does not
/// know is put into what it knows (A6).
pub fn to_legacy(
    response: &Response,
    body: &Body,
    method: Method,
    id: &Id,
    revision: LegacyRevision,
    output: Output,
    convert: bool,
) -> Result<Payload, Unreadable> {
    let text = &response.text;
    readable(text, body, method)?;
    let mut add = String::new();
    let mut call = None;
    if method == Method::ToolsCall {
        call = Some(Called::read(text, body, revision, output)?);
    }
    if let Some(call) = &call {
        add = call.members();
    }
    let is_page =
        matches!(method, Method::PromptsList | Method::ResourcesList | Method::ResourcesTemplatesList);
    let last = is_page && ends_in_null(text, body);
    let gone =
        |name: &str| last && name == "nextCursor" || call.as_ref().is_some_and(|call| call.drops(name));
    let mut splice = under_id(response, body, id, gone, add);
    if let Some(call) = &call {
        call.edit(&mut splice);
    }
    if convert {
        match method {
            Method::ToolsCall => {
                if let Some(blocks) = call.as_ref().and_then(|call| call.content) {
                    content::blocks(&mut splice, text, blocks, revision);
                }
            }
            Method::PromptsGet => content::messages(&mut splice, text, &body.object, revision),
            Method::Discover
            | Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::ResourcesRead
            | Method::Complete
            | Method::Listen
            | Method::LegacyOnly(_)
            | Method::Task
            | Method::ServerToClient
            | Method::Custom => {}
        }
    }
    Ok(splice.finish())
}

/// A result of `tools/call` that says that the tool failed, in words of the proxy.
pub fn tool_error(id: &Id, words: &str) -> Payload {
    let mut out = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"#,
        String::from_utf8_lossy(id.raw())
    );
    quote_into(&mut out, words);
    out.push_str("}],\"isError\":true}}");
    Payload::from(out)
}

/// Whether a page says by `null` that it is the last one, which a strict client takes for no cursor at all (A4.18).
pub(super) fn ends_in_null(text: &[u8], body: &Body) -> bool {
    once(&body.object, text, "nextCursor").is_some_and(|span| span.of(text) == b"null")
}

/// Begins the message under the client's id, without modern vocabulary. Members that `gone` names are taken out too, and
/// `add` is written first.
pub(super) fn under_id<'a>(
    response: &'a Response,
    body: &Body,
    id: &Id,
    gone: impl Fn(&str) -> bool,
    add: String,
) -> Splice<'a> {
    let text = &response.text;
    let mut splice = Splice::new(text);
    if let Some(span) = response.id {
        splice.replace(span, id.raw().clone());
    }
    // What some serialisers write for "none".
    splice.rewrite(&response.top, |member| !member.is(text, "error"), "");
    let reserved = |member: &Member| is_reserved(text, member);
    let meta = body.meta.as_ref().filter(|meta| !meta.members.iter().all(reserved));
    let keep = |member: &Member| {
        let Some(name) = member.name(text) else { return true };
        match &*name {
            // An empty one says nothing, unless the server wrote it so.
            "_meta" => meta.is_some() || body.meta.as_ref().is_some_and(Object::is_empty),
            name => !VOCABULARY.contains(&name) && !gone(name),
        }
    };
    splice.rewrite(&body.object, keep, add);
    if let Some(meta) = meta {
        splice.rewrite(meta, |member| !reserved(member), "");
    }
    splice
}

/// Whether a member of `_meta` is one of the protocol's own words, which no legacy peer may see.
pub(in crate::translate) fn is_reserved(text: &[u8], member: &Member) -> bool {
    member.name(text).is_some_and(|name| meta::MODERN_ONLY.contains(&&*name) || name == meta::RELATED_TASK)
}

/// A result of `tools/call`.
struct Called {
    /// The list of blocks, if it is one.
    content: Option<Span>,
    blocks: bool,
    value: Option<Span>,
    fate: Fate,
    /// The value as a text block, where there would be no text at all.
    text: Option<String>,
}

/// What becomes of `structuredContent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Wrap,
    Drop,
}

impl Called {
    fn read(text: &Bytes, body: &Body, revision: LegacyRevision, output: Output) -> Result<Self, Unreadable> {
        let single = |member: &'static str| {
            body.object.get(text, member).map_err(|_| Unreadable::new(member, "single"))
        };
        let value = single("structuredContent")?;
        let content = single("content")?.filter(|span| Json::of(span.of(text)) == Some(Json::Array));
        let is_object = value.is_some_and(|span| Json::of(span.of(text)) == Some(Json::Object));
        let older = revision < LegacyRevision::V2025_06_18;
        let fate = match output {
            _ if older => Fate::Drop,
            Output::Wrapped => Fate::Wrap,
            Output::Unstated | Output::Object if is_object => Fate::Keep,
            Output::Unstated => Fate::Wrap,
            Output::Object => Fate::Drop,
        };
        let blocks = content.map(|span| items(text, span)).unwrap_or_default();
        let is_text = |&block: &Span| {
            let block = object(text, block, UNBOUNDED);
            let kind = block.and_then(|block| string(text, once(&block, text, "type")?));
            kind.is_some_and(|kind| kind == "text")
        };
        let lacks_text = (older || !is_object) && !blocks.iter().any(is_text);
        let block = value.filter(|_| lacks_text || content.is_none()).map(|span| {
            let mut out = String::from("{\"type\":\"text\",\"text\":");
            // Part of a text that was checked for UTF-8.
            quote_into(&mut out, &String::from_utf8_lossy(&compact(span.of(text))));
            out.push('}');
            out
        });
        Ok(Self { content, blocks: !blocks.is_empty(), value, fate, text: block })
    }

    /// What is written first in the result.
    fn members(&self) -> String {
        match (self.content, &self.text) {
            (Some(_), _) => String::new(),
            // `content` is required of every revision (A5.14).
            (None, block) => format!("\"content\":[{}]", block.as_deref().unwrap_or_default()),
        }
    }

    fn drops(&self, name: &str) -> bool {
        name == "structuredContent" && self.fate == Fate::Drop || name == "content" && self.content.is_none()
    }

    fn edit(&self, splice: &mut Splice<'_>) {
        let at = |at: u32| Span { start: at, end: at };
        if let (Some(value), Fate::Wrap) = (self.value, self.fate) {
            splice.replace(at(value.start), "{\"result\":");
            splice.replace(at(value.end), "}");
        }
        if let (Some(content), Some(block)) = (self.content, &self.text) {
            let comma = if self.blocks { "," } else { "" };
            splice.replace(at(content.end - 1), format!("{comma}{block}"));
        }
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
