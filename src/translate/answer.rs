//! What goes back to a legacy server that has asked: the client's answer, or one in its place.
//!
//! Owns taking `inputResponses` apart, judging each answer by the kind of its question (B1.10), its legacy form, and the
//! refusals. A number of any kind counts as one, whatever the schemas say (X5). Which question a key stands for is known to
//! those who keep the parked calls. Rules: A1.2, A4.15, A6.2, A6.7, A8.6, A8.7, A8.12-A8.15, A10.16, B1.5, B1.7, B1.10-B1.12;
//! vectors D33, D40-D44.

use super::question::{Kind, Need, Question, is, items, present};
use crate::wire::json::{self, Duplicate, Limits, Member, Object, Span, Splice, object};
use crate::wire::jsonrpc::{self, Id, Request, code, string};
use crate::wire::meta;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::HashSet;

/// Why a question is not answered by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The client did not answer, and will not (B1.7, B1.8).
    Cancelled,
    /// There is nobody to ask at this moment (B1.12).
    NotPossible,
    /// The capability was not declared (B1.11).
    Undeclared,
}

/// The answer in the client's place.
pub fn refused(question: &Question, why: Why) -> Payload {
    let error = |code, message| error(&question.id, code, message);
    match (question.kind, why) {
        (Kind::Elicitation | Kind::UrlElicitation, Why::Cancelled | Why::NotPossible) => {
            result(&question.id, r#"{"action":"cancel"}"#)
        }
        (Kind::Elicitation | Kind::UrlElicitation, Why::Undeclared) => {
            error(code::INVALID_PARAMS, "the client did not declare this mode of elicitation")
        }
        (Kind::Sampling, Why::Cancelled) => error(REJECTED, "the client did not answer"),
        (Kind::Sampling, Why::NotPossible) => error(REJECTED, "sampling is not possible at this moment"),
        (Kind::Sampling, Why::Undeclared) if question.need == Need::SamplingTools => {
            error(code::INVALID_PARAMS, "the client did not declare sampling.tools")
        }
        (Kind::Roots, Why::Cancelled) => error(code::INTERNAL_ERROR, "the client did not answer"),
        (Kind::Roots, Why::NotPossible) => {
            error(code::METHOD_NOT_FOUND, "roots are not available at this moment")
        }
        (Kind::Sampling | Kind::Roots, Why::Undeclared) => {
            error(code::METHOD_NOT_FOUND, "the client did not declare this capability")
        }
    }
}

/// The code of a sampling request that the user has rejected (A11.13).
const REJECTED: i64 = -1;

/// Roots that the client named before, as the answer to a question that cannot reach it (B1.12).
pub fn roots(question: &Question, roots: &Bytes) -> Payload {
    result(&question.id, &String::from_utf8_lossy(roots))
}

/// The answer to `ping` (A1.2).
pub fn pong(asked: &Request) -> Payload {
    result(&asked.id, "{}")
}

/// The answer to a request that no client knows (A10.16).
pub fn unknown(asked: &Request) -> Payload {
    error(&asked.id, code::METHOD_NOT_FOUND, "method not found")
}

/// The answer to a question that cannot be read.
pub fn malformed(asked: &Request, what: &str) -> Payload {
    error(&asked.id, code::INVALID_PARAMS, what)
}

/// `inputResponses`, taken apart.
#[derive(Debug, Clone)]
pub struct Responses {
    text: Bytes,
    object: Option<Object>,
}

/// Something in `inputResponses` that cannot be worked with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    #[error("`inputResponses` must be an object with at most {0} members (limits.members)")]
    NoObject(usize),
    #[error("`inputResponses`: {0}")]
    Duplicate(#[from] Duplicate),
    #[error("`inputResponses`: {0}")]
    Shape(&'static str),
}

impl Responses {
    /// An absent member and `null` are no answers (C32). A key that stands twice would answer two ways.
    pub fn read(request: &Request, limits: Limits) -> Result<Self, AnswerFault> {
        let text = request.text.clone();
        let found = request.params.body().map(|body| body.object.get(&text, "inputResponses")).transpose()?;
        let Some(span) = present(&text, found.flatten()) else { return Ok(Self { text, object: None }) };
        let object = object(&text, span, limits).ok_or(AnswerFault::NoObject(limits.members))?;
        let mut seen = HashSet::new();
        for name in object.members.iter().filter_map(|member| member.name(&text)) {
            if let Some(name) = seen.replace(name) {
                return Err(Duplicate(name.chars().take(64).collect()).into());
            }
        }
        drop(seen);
        Ok(Self { text, object: Some(object) })
    }

    /// Where the answer under `key` stands in the request's text.
    pub fn get(&self, key: &str) -> Option<Span> {
        self.object.as_ref()?.first(&self.text, key)
    }
}

/// A client's answer on its way to the server.
#[derive(Debug, Clone)]
pub struct Answer {
    pub message: Payload,
    /// Of an elicitation: whether the action is `accept`.
    pub accepted: Option<bool>,
    /// Of `roots/list`: the result as the server gets it, for questions that cannot reach the client later.
    pub roots: Option<Bytes>,
}

/// The answer at `value` of `text` as the server's own question wants it.
pub fn to_legacy(
    question: &Question,
    value: Span,
    text: &Bytes,
    revision: LegacyRevision,
    limits: Limits,
) -> Result<Answer, AnswerFault> {
    // A part of its own, so that edits need not know what surrounds it.
    let part = text.slice(value.range());
    let object = object(&part, Span::new(0, part.len()), limits)
        .ok_or(AnswerFault::Shape("an answer must be an object"))?;
    let mut edit = Edit { splice: Splice::new(&part), gone: VOCABULARY.to_vec() };
    let mut accepted = None;
    match question.kind {
        Kind::Elicitation | Kind::UrlElicitation => {
            accepted = Some(elicitation(&part, &object, &mut edit, revision, limits)?);
        }
        Kind::Sampling => sampling(&part, &object, &mut edit, revision, limits)?,
        Kind::Roots => list(&part, &object, &mut edit, revision, limits)?,
    }
    let Edit { mut splice, gone } = edit;
    splice.rewrite(&object, |member| !named(&part, member, &gone), "");
    let body = splice.finish();
    let roots = (question.kind == Kind::Roots).then(|| Bytes::copy_from_slice(&body.to_bytes()));
    Ok(Answer { message: around(&question.id, &body), accepted, roots })
}

/// Modern vocabulary that no answer to a legacy server has (A4.15).
const VOCABULARY: [&str; 6] =
    ["resultType", "ttlMs", "cacheScope", "inputRequests", "inputResponses", "requestState"];

/// The changes to one answer.
struct Edit<'a> {
    splice: Splice<'a>,
    /// Members of the answer itself that are taken out.
    gone: Vec<&'static str>,
}

fn named(text: &[u8], member: &Member, names: &[&str]) -> bool {
    names.iter().any(|name| member.is(text, name))
}

fn text_of<'a>(text: &'a [u8], object: &Object, name: &str) -> Result<Option<Cow<'a, str>>, Duplicate> {
    Ok(object.get(text, name)?.and_then(|span| string(text, span)))
}

fn elicitation(
    text: &Bytes,
    object: &Object,
    edit: &mut Edit<'_>,
    revision: LegacyRevision,
    limits: Limits,
) -> Result<bool, AnswerFault> {
    let accepted = match text_of(text, object, "action")?.as_deref() {
        Some("accept") => true,
        Some("decline" | "cancel") => false,
        _ => return Err(AnswerFault::Shape("`action` must be accept, decline or cancel")),
    };
    edit.gone.push("_meta");
    match object.get(text, "content")? {
        None => {}
        Some(span) if span.of(text) == b"null" => edit.gone.push("content"),
        Some(span) => content(text, span, revision, limits)?,
    }
    Ok(accepted)
}

/// Strings, numbers, booleans, and from 2025-11-25 on lists of strings (A8.6).
fn content(text: &[u8], span: Span, revision: LegacyRevision, limits: Limits) -> Result<(), AnswerFault> {
    const VALUES: AnswerFault =
        AnswerFault::Shape("`content` must be an object of strings, numbers, booleans and lists of strings");
    let content = object(text, span, limits).ok_or(VALUES)?;
    for member in &content.members {
        let fits = match json::Kind::of(member.value.of(text)) {
            Some(json::Kind::String | json::Kind::Number | json::Kind::Bool) => true,
            Some(json::Kind::Array) if revision >= LegacyRevision::V2025_11_25 => {
                let items = items(text, member.value, usize::MAX).ok_or(VALUES)?;
                items.into_iter().all(|item| is(text, Some(item), json::Kind::String))
            }
            Some(json::Kind::Array) => {
                return Err(AnswerFault::Shape("the server's revision has no lists in `content`"));
            }
            Some(json::Kind::Object | json::Kind::Null) | None => false,
        };
        if !fits {
            return Err(VALUES);
        }
    }
    Ok(())
}

fn list(
    text: &Bytes,
    answer: &Object,
    edit: &mut Edit<'_>,
    revision: LegacyRevision,
    limits: Limits,
) -> Result<(), AnswerFault> {
    const ROOTS: AnswerFault = AnswerFault::Shape("`roots` must be a list of objects with a string `uri`");
    let list = answer.get(text, "roots")?.and_then(|span| items(text, span, usize::MAX)).ok_or(ROOTS)?;
    edit.gone.push("_meta");
    for item in list {
        let root = object(text, item, limits).ok_or(ROOTS)?;
        let name = root.get(text, "name")?;
        if !is(text, root.get(text, "uri")?, json::Kind::String)
            || name.is_some() && !is(text, name, json::Kind::String)
        {
            return Err(ROOTS);
        }
        // A8.13.
        if revision < LegacyRevision::V2025_06_18 {
            edit.splice.rewrite(&root, |member| !member.is(text, "_meta"), "");
        }
    }
    Ok(())
}

fn sampling(
    text: &Bytes,
    answer: &Object,
    edit: &mut Edit<'_>,
    revision: LegacyRevision,
    limits: Limits,
) -> Result<(), AnswerFault> {
    if !matches!(text_of(text, answer, "role")?.as_deref(), Some("user" | "assistant")) {
        return Err(AnswerFault::Shape("`role` must be user or assistant"));
    }
    if !is(text, answer.get(text, "model")?, json::Kind::String) {
        return Err(AnswerFault::Shape("`model` must be a string"));
    }
    match answer.get(text, "stopReason")? {
        Some(span) if span.of(text) == b"null" => edit.gone.push("stopReason"),
        Some(span) if !is(text, Some(span), json::Kind::String) => {
            return Err(AnswerFault::Shape("`stopReason` must be a string"));
        }
        Some(_) | None => {}
    }
    meta(text, answer, edit, limits)?;
    let span = answer.get(text, "content")?.ok_or(BLOCKS)?;
    if is(text, Some(span), json::Kind::Object) {
        if let Some(with) = block(text, span, revision, limits)?.instead {
            edit.splice.replace(span, with);
        }
        return Ok(());
    }
    let blocks = items(text, span, usize::MAX).ok_or(BLOCKS)?;
    let blocks =
        blocks.into_iter().map(|span| block(text, span, revision, limits)).collect::<Result<Vec<_>, _>>()?;
    if revision < LegacyRevision::V2025_11_25 {
        edit.splice.replace(span, single(text, &blocks));
    }
    Ok(())
}

/// The result's own `_meta` stays (A4.15), but for what is modern in it.
fn meta(text: &Bytes, answer: &Object, edit: &mut Edit<'_>, limits: Limits) -> Result<(), AnswerFault> {
    let Some(span) = answer.get(text, "_meta")? else { return Ok(()) };
    if span.of(text) == b"null" {
        edit.gone.push("_meta");
        return Ok(());
    }
    let meta = object(text, span, limits).ok_or(AnswerFault::Shape("`_meta` must be an object"))?;
    let modern = |member: &Member| named(text, member, &meta::MODERN_ONLY);
    if !meta.is_empty() && meta.members.iter().all(modern) {
        edit.gone.push("_meta");
    } else {
        edit.splice.rewrite(&meta, |member| !modern(member), "");
    }
    Ok(())
}

const BLOCKS: AnswerFault = AnswerFault::Shape("`content` must be a content block or a list of them");

/// One content block of an answer to a sampling request.
struct Block {
    span: Span,
    /// Raw contents of its text, between the quotes.
    text: Option<Span>,
    /// What the server gets in its place.
    instead: Option<String>,
}

fn block(text: &[u8], span: Span, revision: LegacyRevision, limits: Limits) -> Result<Block, AnswerFault> {
    let block = object(text, span, limits).ok_or(BLOCKS)?;
    let has = |name: &str, kind| Ok::<_, Duplicate>(is(text, block.get(text, name)?, kind));
    let tools = revision >= LegacyRevision::V2025_11_25;
    let mut found = Block { span, text: None, instead: None };
    let fits = match text_of(text, &block, "type")?.as_deref() {
        Some("text") => {
            let found_text =
                block.get(text, "text")?.filter(|span| is(text, Some(*span), json::Kind::String));
            found.text = found_text.map(|span| Span { start: span.start + 1, end: span.end - 1 });
            found.text.is_some()
        }
        Some("image") => has("data", json::Kind::String)? && has("mimeType", json::Kind::String)?,
        Some("audio") => {
            if revision < LegacyRevision::V2025_03_26 {
                let kind = text_of(text, &block, "mimeType")?.unwrap_or_default();
                let note = json::quote(&format!("[audio {kind} omitted]"));
                found.instead = Some(format!("{{\"type\":\"text\",\"text\":{note}}}"));
            }
            has("data", json::Kind::String)? && has("mimeType", json::Kind::String)?
        }
        Some("tool_use") if tools => {
            has("id", json::Kind::String)?
                && has("name", json::Kind::String)?
                && has("input", json::Kind::Object)?
        }
        Some("tool_result") if tools => {
            let structured = block.get(text, "structuredContent")?;
            has("toolUseId", json::Kind::String)?
                && has("content", json::Kind::Array)?
                && (structured.is_none() || is(text, structured, json::Kind::Object))
        }
        _ => false,
    };
    if fits { Ok(found) } else { Err(BLOCKS) }
}

/// The one block that older revisions have: all text joined, else the first block (A6.7).
fn single(text: &[u8], blocks: &[Block]) -> Bytes {
    if let [one] = blocks {
        return one.instead.clone().map_or_else(|| Bytes::copy_from_slice(one.span.of(text)), Bytes::from);
    }
    let texts: Vec<&[u8]> = blocks.iter().filter_map(|block| Some(block.text?.of(text))).collect();
    match blocks.first() {
        Some(first) if texts.is_empty() => {
            first.instead.clone().map_or_else(|| Bytes::copy_from_slice(first.span.of(text)), Bytes::from)
        }
        _ => {
            let mut out = b"{\"type\":\"text\",\"text\":\"".to_vec();
            out.extend_from_slice(&texts.join(&b"\\n"[..]));
            out.extend_from_slice(b"\"}");
            Bytes::from(out)
        }
    }
}

fn around(id: &Id, body: &Payload) -> Payload {
    let mut out = Payload::from(head(id));
    body.parts().iter().for_each(|part| out.push(part.clone()));
    out.push("}");
    out
}

fn head(id: &Id) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", String::from_utf8_lossy(id.raw()))
}

fn result(id: &Id, result: &str) -> Payload {
    Payload::from(format!("{}{result}}}", head(id)))
}

fn error(id: &Id, code: i64, message: &str) -> Payload {
    Payload::from(jsonrpc::error(Some(id), code, message, None))
}
