//! A list as its readers of the same era are to see it.
//!
//! Owns the edits that the guard makes in a list which is passed on as it is otherwise: bad tools are left out, a root of
//! `inputSchema` that says nothing of itself gets its type, an `outputSchema` of `null` is taken out. Where bad tools are passed
//! on (`warn`) nothing is changed. Does not own what else another era needs of a list (`translate`).
//! Rules: A5.3; vectors D56, D65; case C65.

use super::finding::Kind;
use super::sift::Sift;
use super::tool::{Judged, Shape};
use crate::wire::json::{Span, Splice, UNBOUNDED, object};
use bytes::Bytes;

/// What a root that says nothing of its instance gets (A5.3).
pub(crate) const OBJECT_ROOT: &str = "\"type\":\"object\"";

/// Edits the list in `text` that the sift is of.
pub fn list(splice: &mut Splice<'_>, text: &[u8], sift: &Sift) {
    if !sift.drop {
        return;
    }
    let tools = sift.tools();
    let stays = |judged: &Judged| !judged.is_bad();
    let spans: Vec<Span> = tools.iter().map(|judged| sift.at(judged.span)).collect();
    splice.retain(&spans, |index| tools.get(index).is_none_or(stays));
    for judged in tools.iter().filter(|judged| stays(judged)) {
        mend(splice, text, sift, judged);
    }
}

fn mend(splice: &mut Splice<'_>, text: &[u8], sift: &Sift, judged: &Judged) {
    if let (Shape::Untyped, Some(input)) = (judged.shape, judged.input) {
        let input = sift.at(input);
        let inside = input.start + 1;
        let says =
            input.of(text).get(1..).and_then(|rest| rest.iter().find(|byte| !byte.is_ascii_whitespace()));
        let comma = if says == Some(&b'}') { "" } else { "," };
        splice.replace(Span { start: inside, end: inside }, Bytes::from(format!("{OBJECT_ROOT}{comma}")));
    }
    let null = |kind| matches!(kind, Kind::NullOutput);
    if judged.findings.iter().any(|finding| null(finding.kind))
        && let Some(tool) = object(text, sift.at(judged.span), UNBOUNDED)
    {
        let stays = |name: bool, value: Span| !(name && value.of(text) == b"null");
        splice.rewrite(&tool, |member| stays(member.is(text, "outputSchema"), member.value), "");
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
