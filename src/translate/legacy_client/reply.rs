//! A legacy client's answer as an entry of `inputResponses`.
//!
//! Owns what kind of answer each question takes, and what of it goes up: members of other revisions are taken out, everything
//! else passes as it was written. An answer that does not fit, and an error, have no place in `inputResponses`: they end the call,
//! and the words say why. Rules: A4.15, A6.6, A8.6, A8.7, A8.11-A8.15, B2.6, B2.7, B10.4, X5; vectors D84, D88, D91.

use super::super::question::{is, items, present};
use super::ask::block::{Reader, block, list, push};
use super::form::Fields;
use super::round::{Kind, Wrong, plain};
use crate::wire::json::{self, Limits, Member, Object, Span, Splice, UNBOUNDED, compact, object};
use crate::wire::jsonrpc::{Reply, Response, string};
use crate::wire::meta;
use bytes::Bytes;
use std::borrow::Cow;

/// How the answer to one question is read.
#[derive(Debug, Clone)]
pub struct Restore(To);

#[derive(Debug, Clone)]
enum To {
    /// With the way back for a form that was changed.
    Form(Option<Fields>),
    Url,
    Sampling,
    Roots,
}

/// Why there is no answer for the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `message` is the client's.
    #[error("the client answered the server's {method} request with error {code}{}", colon(message))]
    Error { method: &'static str, code: i64, message: String },
    #[error("the client's answer to the server's {method} request does not fit: {what}")]
    Unfit { method: &'static str, what: Cow<'static, str> },
}

impl Restore {
    pub(super) fn form(fields: Option<Fields>) -> Self {
        Restore(To::Form(fields))
    }

    pub(super) fn url() -> Self {
        Restore(To::Url)
    }

    pub(super) fn sampling() -> Self {
        Restore(To::Sampling)
    }

    pub(super) fn roots() -> Self {
        Restore(To::Roots)
    }

    /// The raw JSON value for `inputResponses`.
    pub fn answer(&self, response: &Response, limits: Limits) -> Result<Bytes, Refusal> {
        let method = self.kind().method();
        let text = &response.text;
        let span = match &response.reply {
            Reply::Result(body) => body.object.span,
            Reply::Error(error) => {
                return Err(Refusal::Error { method, code: error.code, message: error.brief(text) });
            }
        };
        // A part of its own, which does not keep the text alive that it came in.
        let part = Bytes::from(compact(span.of(text)).into_owned());
        self.value(&part, limits).map_err(|Wrong(what)| Refusal::Unfit { method, what })
    }

    fn kind(&self) -> Kind {
        match self.0 {
            To::Form(_) => Kind::Form,
            To::Url => Kind::Url,
            To::Sampling => Kind::Sampling,
            To::Roots => Kind::Roots,
        }
    }

    fn value(&self, part: &Bytes, limits: Limits) -> Result<Bytes, Wrong> {
        let object = object(part, whole(part), limits).ok_or("it must be an object")?;
        let mut edit = Edit { text: part, splice: Splice::new(part), gone: VOCABULARY.to_vec(), add: None };
        match &self.0 {
            To::Form(fields) => form(&object, &mut edit, fields.as_ref(), limits)?,
            To::Url => {
                action(&object, &edit)?;
                edit.gone.extend(["_meta", "content"]);
            }
            To::Sampling => sampling(&object, &mut edit, limits)?,
            To::Roots => roots(&object, &mut edit, limits)?,
        }
        Ok(edit.finish(&object))
    }
}

/// Whether the user accepted, by the value that [`Restore::answer`] gave for an elicitation.
pub fn accepts(value: &Bytes) -> bool {
    let action = object(value, whole(value), UNBOUNDED).and_then(|answer| answer.first(value, "action"));
    action.and_then(|span| string(value, span)).is_some_and(|action| action == "accept")
}

/// What only other messages or revisions have (B2.7).
const VOCABULARY: [&str; 7] =
    ["resultType", "ttlMs", "cacheScope", "inputRequests", "inputResponses", "requestState", "task"];

fn colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

fn whole(part: &Bytes) -> Span {
    Span::new(0, part.len())
}

/// The changes to one answer.
struct Edit<'a> {
    text: &'a Bytes,
    splice: Splice<'a>,
    /// Members of the answer itself that are taken out.
    gone: Vec<&'static str>,
    add: Option<&'static str>,
}

impl Edit<'_> {
    fn finish(mut self, object: &Object) -> Bytes {
        let keep = |member: &Member| !self.gone.iter().any(|name| member.is(self.text, name));
        self.splice.rewrite(object, keep, self.add.unwrap_or_default());
        self.splice.finish().to_bytes()
    }
}

/// Whether the user accepted.
fn action(answer: &Object, edit: &Edit<'_>) -> Result<bool, Wrong> {
    let text = edit.text;
    match answer.get(text, "action")?.and_then(|span| string(text, span)).as_deref() {
        Some("accept") => Ok(true),
        Some("decline" | "cancel") => Ok(false),
        _ => Err("`action` must be accept, decline or cancel".into()),
    }
}

fn form(answer: &Object, edit: &mut Edit<'_>, fields: Option<&Fields>, limits: Limits) -> Result<(), Wrong> {
    let accepted = action(answer, edit)?;
    edit.gone.push("_meta");
    if !accepted {
        edit.gone.push("content");
        return Ok(());
    }
    let text = edit.text;
    let given = answer.get(text, "content")?;
    let content = match present(text, given) {
        Some(span) => values(&text.slice(span.range()), limits)?,
        None => Bytes::from_static(b"{}"),
    };
    let content = match fields {
        Some(fields) => fields.answer(&content, limits)?,
        None => content,
    };
    match given {
        Some(span) => edit.splice.replace(span, content),
        // Whoever accepts a form without a field to fill in may leave it out; servers read it all the same.
        None => edit.add = Some("\"content\":{}"),
    }
    Ok(())
}

/// Strings, numbers, booleans and lists of strings (A8.6); `null` is what is not there (C32).
fn values(part: &Bytes, limits: Limits) -> Result<Bytes, Wrong> {
    let content = object(part, whole(part), limits);
    let most = limits.members;
    let content = content.ok_or_else(|| format!("`content` must be an object of at most {most} fields"))?;
    let mut none = false;
    for member in &content.members {
        let fits = match json::Kind::of(member.value.of(part)) {
            Some(json::Kind::String | json::Kind::Number | json::Kind::Bool) => true,
            Some(json::Kind::Array) => items(part, member.value, usize::MAX)
                .is_some_and(|all| all.iter().all(|item| is(part, Some(*item), json::Kind::String))),
            Some(json::Kind::Null) => {
                none = true;
                true
            }
            Some(json::Kind::Object) | None => false,
        };
        if !fits {
            let name = plain(&member.name(part).unwrap_or_default());
            return Err(format!("field {name:?} must be a string, number, boolean or list of strings").into());
        }
    }
    if !none {
        return Ok(part.clone());
    }
    let mut splice = Splice::new(part);
    splice.rewrite(&content, |member| member.value.of(part) != b"null", "");
    Ok(splice.finish().to_bytes())
}

fn roots(answer: &Object, edit: &mut Edit<'_>, limits: Limits) -> Result<(), Wrong> {
    const ROOTS: &str = "`roots` must be a list of objects, each with a string `uri`";
    let text = edit.text;
    edit.gone.push("_meta");
    let list = answer.get(text, "roots")?.and_then(|span| items(text, span, usize::MAX)).ok_or(ROOTS)?;
    for item in list {
        let root = object(text, item, limits).ok_or(ROOTS)?;
        let (name, meta) = (root.get(text, "name")?, root.get(text, "_meta")?);
        if !is(text, root.get(text, "uri")?, json::Kind::String) {
            return Err(ROOTS.into());
        }
        let fits =
            |span: Option<Span>, kind| present(text, span).is_none_or(|span| is(text, Some(span), kind));
        if !fits(name, json::Kind::String) || !fits(meta, json::Kind::Object) {
            return Err("`name` of a root must be a string, and `_meta` an object".into());
        }
        let null = |member: &Member| {
            member.value.of(text) == b"null" && (member.is(text, "name") || member.is(text, "_meta"))
        };
        edit.splice.rewrite(&root, |member| !null(member), "");
    }
    Ok(())
}

fn sampling(answer: &Object, edit: &mut Edit<'_>, limits: Limits) -> Result<(), Wrong> {
    let text = edit.text;
    let role = answer.get(text, "role")?.and_then(|span| string(text, span));
    if !matches!(role.as_deref(), Some("user" | "assistant")) {
        return Err("`role` must be user or assistant".into());
    }
    if !is(text, answer.get(text, "model")?, json::Kind::String) {
        return Err("`model` must be a string".into());
    }
    match answer.get(text, "stopReason")? {
        Some(span) if span.of(text) == b"null" => edit.gone.push("stopReason"),
        Some(span) if !is(text, Some(span), json::Kind::String) => {
            return Err("`stopReason` must be a string".into());
        }
        Some(_) | None => {}
    }
    own_meta(answer, edit, limits)?;
    let content = answer.get(text, "content")?.ok_or("`content` is missing")?;
    let inner = text.slice(content.range());
    // The server is the reader.
    let reader = Reader { sound: true, values: true };
    let instead = if is(text, Some(content), json::Kind::Array) {
        list(&inner, |part, out| {
            let instead = block(&part, reader, &mut false, limits)?;
            Ok(push(part, instead, out))
        })?
    } else {
        block(&inner, reader, &mut false, limits)?
    };
    instead.into_iter().for_each(|with| edit.splice.replace(content, with));
    Ok(())
}

/// The message's own `_meta` stays (A4.15), but for what other messages have in it.
fn own_meta(answer: &Object, edit: &mut Edit<'_>, limits: Limits) -> Result<(), Wrong> {
    let text = edit.text;
    let Some(span) = answer.get(text, "_meta")? else { return Ok(()) };
    if present(text, Some(span)).is_none() {
        edit.gone.push("_meta");
        return Ok(());
    }
    let meta = object(text, span, limits).ok_or("`_meta` must be an object")?;
    let other = |member: &Member| {
        meta::MODERN_ONLY.iter().chain(&[meta::RELATED_TASK]).any(|name| member.is(text, name))
    };
    if !meta.is_empty() && meta.members.iter().all(other) {
        edit.gone.push("_meta");
    } else {
        edit.splice.rewrite(&meta, |member| !other(member), "");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
