//! Content blocks of sampling, in the messages that go to a client and in its answer.
//!
//! Owns which blocks there are, what each must have, and the few that are written otherwise for who reads them. Rules: A6.1-A6.8,
//! A8.13, C32; vector D92.

use super::super::super::question::{is, items, present};
use super::super::round::{Wrong, plain, quoted};
use crate::wire::json::object;
use crate::wire::json::{Kind, Limits, Object, Span, Splice};
use crate::wire::jsonrpc::string;
use bytes::{BufMut, Bytes, BytesMut};

/// Who reads a block.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Reader {
    /// It knows sound (A6.2).
    pub(in super::super) sound: bool,
    /// It knows values of tools that are no object (A6.6).
    pub(in super::super) values: bool,
}

/// Where a block stands.
#[derive(Clone, Copy)]
enum Place {
    Message,
    ToolResult,
}

/// What stands in the block's place, if it cannot stay. Sets `tools` if only who knows tools knows the block.
pub(in super::super) fn block(
    part: &Bytes,
    reader: Reader,
    tools: &mut bool,
    limits: Limits,
) -> Result<Option<Bytes>, Wrong> {
    at(Place::Message, part, reader, tools, limits)
}

fn at(
    place: Place,
    part: &Bytes,
    reader: Reader,
    tools: &mut bool,
    limits: Limits,
) -> Result<Option<Bytes>, Wrong> {
    const BLOCK: &str = "`content` must be a content block or a list of them";
    let object = object(part, whole(part), limits).ok_or(BLOCK)?;
    let kind = object.get(part, "type")?.and_then(|span| string(part, span)).ok_or(BLOCK)?;
    let members: &[(&str, Kind)] = match (&*kind, place) {
        ("text", _) => &[("text", Kind::String)],
        ("image" | "audio", _) => &[("data", Kind::String), ("mimeType", Kind::String)],
        ("tool_use", Place::Message) => {
            &[("id", Kind::String), ("name", Kind::String), ("input", Kind::Object)]
        }
        ("tool_result", Place::Message) => &[("toolUseId", Kind::String), ("content", Kind::Array)],
        ("resource_link", Place::ToolResult) => &[("name", Kind::String), ("uri", Kind::String)],
        ("resource", Place::ToolResult) => &[("resource", Kind::Object)],
        (kind, _) => {
            return Err(format!("a content block of type {:?} has no place there", plain(kind)).into());
        }
    };
    for (name, is_to_be) in members {
        if !is(part, object.get(part, name)?, *is_to_be) {
            return Err(format!("`{name}` of a {kind} block must be {}", word(*is_to_be)).into());
        }
    }
    if kind == "audio" && !reader.sound {
        let mime = object.get(part, "mimeType")?.and_then(|span| string(part, span));
        return Ok(Some(silent(&mime.unwrap_or_default())));
    }
    let mut gone = options(part, &object, &[("_meta", Kind::Object), ("annotations", Kind::Object)])?;
    let mut edits = Vec::new();
    *tools |= kind == "tool_use" || kind == "tool_result";
    if kind == "tool_result" {
        gone.extend(options(part, &object, &[("isError", Kind::Bool)])?);
        let content = object.get(part, "content")?.unwrap_or_default();
        let each = |inner: Bytes, out: &mut Vec<Bytes>| {
            let instead = at(Place::ToolResult, &inner, reader, tools, limits)?;
            Ok(push(inner, instead, out))
        };
        edits.extend(list(&part.slice(content.range()), each)?.map(|with| (content, with)));
        // `null` is a value here (B6.3).
        let value = object.get(part, "structuredContent")?.filter(|_| !reader.values);
        let value = value.filter(|span| !is(part, Some(*span), Kind::Object));
        edits.extend(
            value.map(|span| (span, [b"{\"result\":".as_slice(), span.of(part), b"}"].concat().into())),
        );
    }
    Ok(written(part, &object, &gone, edits))
}

/// What stands for sound where there is none (A6.2).
fn silent(mime: &str) -> Bytes {
    let note = quoted(&format!("[audio {mime} omitted]"));
    [b"{\"type\":\"text\",\"text\":".as_slice(), &note, b"}"].concat().into()
}

/// Which of the named members are `null`, as some serialisers write what is not there (C32); the others must fit.
pub(super) fn options(
    text: &[u8],
    object: &Object,
    table: &[(&'static str, Kind)],
) -> Result<Vec<&'static str>, Wrong> {
    let mut none = Vec::new();
    for (name, kind) in table {
        let Some(span) = object.get(text, name)? else { continue };
        if present(text, Some(span)).is_none() {
            none.push(*name);
        } else if !is(text, Some(span), *kind) {
            return Err(format!("`{name}` must be {}", word(*kind)).into());
        }
    }
    Ok(none)
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "an object",
        Kind::Array => "a list",
        Kind::String => "a string",
        Kind::Number => "a number",
        Kind::Bool => "true or false",
        Kind::Null => "null",
    }
}

/// The array `part` with what `each` makes of its items; `None` if all stay as they are.
pub(in super::super) fn list(
    part: &Bytes,
    mut each: impl FnMut(Bytes, &mut Vec<Bytes>) -> Result<bool, Wrong>,
) -> Result<Option<Bytes>, Wrong> {
    let mut out = Vec::new();
    let mut changed = false;
    for item in items(part, whole(part), usize::MAX).unwrap_or_default() {
        changed |= each(part.slice(item.range()), &mut out)?;
    }
    Ok(changed.then(|| array(&out)))
}

/// Puts out what there is instead, else the part itself; says whether it is another.
pub(in super::super) fn push(part: Bytes, instead: Option<Bytes>, out: &mut Vec<Bytes>) -> bool {
    let is_other = instead.is_some();
    out.push(instead.unwrap_or(part));
    is_other
}

pub(super) fn array(items: &[Bytes]) -> Bytes {
    let mut out = BytesMut::with_capacity(items.iter().map(|item| item.len() + 1).sum::<usize>() + 2);
    out.put_u8(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        out.put_slice(item);
    }
    out.put_u8(b']');
    out.freeze()
}

pub(super) fn whole(part: &Bytes) -> Span {
    Span::new(0, part.len())
}

/// `part` without the members in `gone` and with `edits`; `None` if that is no change.
pub(super) fn written(
    part: &Bytes,
    object: &Object,
    gone: &[&str],
    edits: impl IntoIterator<Item = (Span, Bytes)>,
) -> Option<Bytes> {
    let mut edits = edits.into_iter().peekable();
    if gone.is_empty() && edits.peek().is_none() {
        return None;
    }
    let mut splice = Splice::new(part);
    edits.for_each(|(span, with)| splice.replace(span, with));
    splice.rewrite(object, |member| !gone.iter().any(|name| member.is(part, name)), "");
    Some(splice.finish().to_bytes())
}
