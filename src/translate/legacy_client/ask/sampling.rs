//! The params of `sampling/createMessage` as a legacy client's revision has them.
//!
//! Owns what of them can be read, whether they need a client that knows tools, and lists of blocks for clients that have one block
//! a message. The blocks themselves stand in `block`. Rules: A4.17, A6.7, A8.9, A8.10; vector D92.

use super::super::super::question::{is, is_integer, items, present};
use super::super::initialize::Client;
use super::super::output::{self, Output};
use super::super::round::Wrong;
use super::block::{Reader, array, block, list, options, push, whole, written};
use crate::wire::json::object;
use crate::wire::json::{Kind, Limits, Object, Span, Splice};
use crate::wire::jsonrpc::string;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

/// What is written otherwise.
#[derive(Debug, Default)]
pub(in super::super) struct Changes {
    pub(super) edits: Vec<(Span, Bytes)>,
    /// Members that are taken out.
    pub(super) gone: Vec<&'static str>,
    /// It has tools, so that the client must know them.
    tools: bool,
}

/// Whether the question needs a client that knows tools.
pub(in super::super) fn read(text: &Bytes, params: &Object, limits: Limits) -> Result<bool, Wrong> {
    Ok(changes(text, params, LegacyRevision::LATEST, true, limits)?.tools)
}

pub(super) fn ask(text: &Bytes, params: &Object, client: &Client, limits: Limits) -> Result<Changes, Wrong> {
    let changes = changes(text, params, client.revision, client.can.context, limits)?;
    if changes.tools && client.revision < LegacyRevision::V2025_11_25 {
        return Err("it has no tools in sampling".into());
    }
    Ok(changes)
}

/// Optional members, and what each must be where it is there.
const OPTIONS: [(&str, Kind); 6] = [
    ("systemPrompt", Kind::String),
    ("temperature", Kind::Number),
    ("stopSequences", Kind::Array),
    ("modelPreferences", Kind::Object),
    ("tools", Kind::Array),
    ("toolChoice", Kind::Object),
];

fn changes(
    text: &Bytes,
    params: &Object,
    revision: LegacyRevision,
    context: bool,
    limits: Limits,
) -> Result<Changes, Wrong> {
    if !params.get(text, "maxTokens")?.is_some_and(|span| is_integer(span.of(text))) {
        return Err("`maxTokens` must be an integer".into());
    }
    let mut changes = Changes { gone: options(text, params, &OPTIONS)?, ..Changes::default() };
    // A4.17.
    if params.get(text, "metadata")?.is_some_and(|span| !is(text, Some(span), Kind::Object)) {
        changes.gone.push("metadata");
    }
    let wanted = present(text, params.get(text, "includeContext")?);
    match wanted.map(|span| string(text, span)).as_ref().map(|wanted| wanted.as_deref()) {
        Some(Some("none")) => {}
        Some(Some("thisServer" | "allServers")) if context => {}
        // It is what its absence means (A8.10).
        None | Some(Some("thisServer" | "allServers")) => changes.gone.push("includeContext"),
        Some(_) => return Err("`includeContext` must be none, thisServer or allServers".into()),
    }
    if let Some(span) = present(text, params.get(text, "stopSequences")?) {
        let all = items(text, span, usize::MAX).unwrap_or_default();
        if !all.iter().all(|item| is(text, Some(*item), Kind::String)) {
            return Err("`stopSequences` must be a list of strings".into());
        }
    }
    if let Some(span) = present(text, params.get(text, "modelPreferences")?) {
        changes.edits.extend(preferences(&text.slice(span.range()), limits)?.map(|with| (span, with)));
    }
    if let Some(span) = present(text, params.get(text, "toolChoice")?) {
        changes.tools = true;
        changes.edits.extend(choice(&text.slice(span.range()), limits)?.map(|with| (span, with)));
    }
    if let Some(span) = present(text, params.get(text, "tools")?) {
        changes.tools = true;
        if let Some(with) = list(&text.slice(span.range()), |part, out| tool(part, out, limits))? {
            changes.edits.push((span, with));
        }
    }
    let span = params.get(text, "messages")?.filter(|span| is(text, Some(*span), Kind::Array));
    let span = span.ok_or("`messages` must be a list")?;
    let mut tools = false;
    let each = |part: Bytes, out: &mut Vec<Bytes>| message(&part, out, revision, &mut tools, limits);
    if let Some(with) = list(&text.slice(span.range()), each)? {
        changes.edits.push((span, with));
    }
    changes.tools |= tools;
    Ok(changes)
}

/// Says whether what it puts out is anything but `part`.
fn message(
    part: &Bytes,
    out: &mut Vec<Bytes>,
    revision: LegacyRevision,
    tools: &mut bool,
    limits: Limits,
) -> Result<bool, Wrong> {
    const MESSAGE: &str = "`messages` must be a list of messages, each with a role and content";
    let object = object(part, whole(part), limits).ok_or(MESSAGE)?;
    let role = object.get(part, "role")?.and_then(|span| string(part, span));
    if !matches!(role.as_deref(), Some("user" | "assistant")) {
        return Err("`role` must be user or assistant".into());
    }
    let gone = options(part, &object, &[("_meta", Kind::Object)])?;
    let content = object.get(part, "content")?.ok_or(MESSAGE)?;
    let inner = part.slice(content.range());
    let reader = Reader { sound: revision >= LegacyRevision::V2025_03_26, values: false };
    let single = !is(part, Some(content), Kind::Array);
    let all =
        if single { vec![whole(&inner)] } else { items(&inner, whole(&inner), usize::MAX).ok_or(MESSAGE)? };
    let mut changed = false;
    let mut blocks = Vec::with_capacity(all.len());
    for item in all {
        let item = inner.slice(item.range());
        let instead = block(&item, reader, tools, limits)?;
        changed |= instead.is_some();
        blocks.push(instead.unwrap_or(item));
    }
    if !single && revision < LegacyRevision::V2025_11_25 {
        // One block a message (A6.7).
        out.extend(
            blocks.into_iter().filter_map(|block| written(part, &object, &gone, Some((content, block)))),
        );
        return Ok(true);
    }
    let blocks = changed.then(|| (content, if single { blocks.concat().into() } else { array(&blocks) }));
    let instead = written(part, &object, &gone, blocks);
    Ok(push(part.clone(), instead, out))
}

/// A tool for the model. Its schema of results becomes an object's, as the results in messages do (A6.6).
fn tool(part: Bytes, out: &mut Vec<Bytes>, limits: Limits) -> Result<bool, Wrong> {
    const TOOL: &str = "`tools` must be a list of tools, each with a name and an object as `inputSchema`";
    let tool = object(&part, whole(&part), limits).ok_or(TOOL)?;
    let root = |span: Span| {
        let schema = object(&part, span, limits)?;
        schema.get(&part, "type").ok()?.and_then(|span| string(&part, span)).map(|root| root == "object")
    };
    let input = tool.get(&part, "inputSchema")?.and_then(root);
    if !is(&part, tool.get(&part, "name")?, Kind::String) || input != Some(true) {
        return Err(TOOL.into());
    }
    let mut gone = options(
        &part,
        &tool,
        &[
            ("title", Kind::String),
            ("description", Kind::String),
            ("annotations", Kind::Object),
            ("icons", Kind::Array),
            ("_meta", Kind::Object),
        ],
    )?;
    gone.push("execution");
    let span = tool.get(&part, "outputSchema")?;
    let output = span.and_then(|span| output::of(&part, span));
    if output.unwrap_or_default() == Output::Unstated {
        gone.push("outputSchema");
    }
    gone.retain(|name| tool.first(&part, name).is_some());
    if gone.is_empty() && output != Some(Output::Wrapped) {
        out.push(part);
        return Ok(false);
    }
    let mut splice = Splice::new(&part);
    if let Some(span) = span.filter(|_| output == Some(Output::Wrapped)) {
        output::wrap(&mut splice, &part, span);
    }
    splice.rewrite(&tool, |member| !gone.iter().any(|name| member.is(&part, name)), "");
    out.push(splice.finish().to_bytes());
    Ok(true)
}

fn preferences(part: &Bytes, limits: Limits) -> Result<Option<Bytes>, Wrong> {
    let preferences = object(part, whole(part), limits).ok_or("`modelPreferences` must be an object")?;
    let priorities = ["costPriority", "speedPriority", "intelligencePriority"];
    let mut gone = options(part, &preferences, &priorities.map(|name| (name, Kind::Number)))?;
    gone.extend(options(part, &preferences, &[("hints", Kind::Array)])?);
    for name in priorities {
        let value = present(part, preferences.get(part, name)?).map(|span| number(span.of(part)));
        if value.is_some_and(|value| !value.is_some_and(|value| (0.0..=1.0).contains(&value))) {
            return Err(format!("`{name}` must be a number from 0 to 1").into());
        }
    }
    let hints = match present(part, preferences.get(part, "hints")?) {
        Some(span) => {
            list(&part.slice(span.range()), |part, out| hint(part, out, limits))?.map(|with| (span, with))
        }
        None => None,
    };
    Ok(written(part, &preferences, &gone, hints))
}

fn hint(part: Bytes, out: &mut Vec<Bytes>, limits: Limits) -> Result<bool, Wrong> {
    let hint = object(&part, whole(&part), limits).ok_or("`hints` must be a list of objects")?;
    let instead = written(&part, &hint, &options(&part, &hint, &[("name", Kind::String)])?, None);
    Ok(push(part, instead, out))
}

fn choice(part: &Bytes, limits: Limits) -> Result<Option<Bytes>, Wrong> {
    let choice = object(part, whole(part), limits).ok_or("`toolChoice` must be an object")?;
    let gone = options(part, &choice, &[("mode", Kind::String)])?;
    match present(part, choice.get(part, "mode")?).map(|span| string(part, span)) {
        None => {}
        Some(Some(mode)) if matches!(&*mode, "auto" | "none" | "required") => {}
        Some(_) => return Err("`mode` of `toolChoice` must be auto, none or required".into()),
    }
    Ok(written(part, &choice, &gone, None))
}

/// The value of a number for a comparison; it is written as it was.
pub(in super::super) fn number(raw: &[u8]) -> Option<f64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}
