//! Content blocks for clients whose revision does not know them.
//!
//! Owns putting a block of a later revision into one that the client knows, so that a strict one does not refuse the whole
//! result. Does not own when that is done (the setting `convert_content`), nor blocks of sampling (`ask`).
//! Rule: A6; vectors D63, D64.

use crate::wire::json::{Kind, Object, Span, Splice, UNBOUNDED, items, object, once, quote_into};
use crate::wire::jsonrpc::string;
use crate::wire::version::LegacyRevision;
use bytes::Bytes;

/// Converts the blocks of the array at `span`.
pub(super) fn blocks(splice: &mut Splice<'_>, text: &Bytes, span: Span, revision: LegacyRevision) {
    if revision >= LegacyRevision::V2025_06_18 {
        return;
    }
    for (index, item) in items(text, span).into_iter().enumerate() {
        one(splice, text, item, index, revision);
    }
}

/// Converts the content of each of a prompt's `messages`.
pub(super) fn messages(splice: &mut Splice<'_>, text: &Bytes, result: &Object, revision: LegacyRevision) {
    let messages = result.first(text, "messages").filter(|_| revision < LegacyRevision::V2025_06_18);
    let messages = messages.map(|span| items(text, span)).unwrap_or_default();
    for (index, message) in messages.into_iter().enumerate() {
        let content = object(text, message, UNBOUNDED).and_then(|message| once(&message, text, "content"));
        if let Some(content) = content {
            one(splice, text, content, index, revision);
        }
    }
}

fn one(splice: &mut Splice<'_>, text: &Bytes, span: Span, index: usize, revision: LegacyRevision) {
    let Some(block) = object(text, span, UNBOUNDED) else { return };
    let kind = once(&block, text, "type").and_then(|span| string(text, span));
    match kind.as_deref() {
        Some("audio") if revision < LegacyRevision::V2025_03_26 => audio(splice, text, &block, index),
        Some("resource_link") => link(splice, text, &block),
        _ => {}
    }
}

/// An embedded resource that holds the same bytes (A6.2). The data stays where it stands: it may be large.
fn audio(splice: &mut Splice<'_>, text: &Bytes, block: &Object, index: usize) {
    let is_string = |span: &Span| Kind::of(span.of(text)) == Some(Kind::String);
    let part = |name| once(block, text, name).filter(is_string);
    let (Some(kind), Some(data)) = (once(block, text, "type"), part("data")) else { return };
    let Some(member) = block.members.iter().find(|member| member.value == data) else { return };
    let mime = part("mimeType")
        .map(|span| format!("\"mimeType\":{},", String::from_utf8_lossy(span.of(text))))
        .unwrap_or_default();
    splice.replace(kind, "\"resource\"");
    // From the quote before the name to the value.
    let name = Span { start: member.key.start - 1, end: data.start };
    let uri = format!("urn:mcp-janus:audio:{index}");
    splice.replace(name, format!("\"resource\":{{\"uri\":\"{uri}\",{mime}\"blob\":"));
    splice.replace(Span { start: data.end, end: data.end }, "}");
    splice.rewrite(block, |member| !member.is(text, "mimeType") && !member.is(text, "resource"), "");
}

/// Words that hold the address (A6.3). The link is not followed.
fn link(splice: &mut Splice<'_>, text: &Bytes, block: &Object) {
    let part = |name| once(block, text, name).and_then(|span| string(text, span));
    let mut words = String::new();
    if let Some(name) = part("name") {
        words.push_str(&name);
        words.push_str(": ");
    }
    words.push_str(&part("uri").unwrap_or_default());
    if let Some(mime) = part("mimeType") {
        words.push_str(&format!(" ({mime})"));
    }
    let mut add = String::from("\"type\":\"text\",\"text\":");
    quote_into(&mut add, &words);
    let keep = ["annotations", "_meta"];
    splice.rewrite(block, |member| keep.iter().any(|name| member.is(text, name)), add);
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
