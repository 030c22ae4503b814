//! The verdict on a list of tools.
//!
//! Owns judging each tool by itself, so that none affects another or their order. Does not own keeping verdicts
//! (`upstream::guard`), nor writing the list anew (`edit`).

use super::tool::{self, Judged};
use super::{Finding, Kind, Rules};
use crate::wire::json::{Cursor, Span, UNBOUNDED};
use std::collections::HashSet;

/// See the module. Spans are of the text that was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// In the order of the list.
    pub tools: Vec<Judged>,
}

/// Entries of one list that are looked at.
const MOST: usize = 65_536;

/// Judges the array at `tools` of `text`, which was scanned before; anything but an array has no tools.
pub fn judge(text: &[u8], tools: Span, rules: &Rules<'_>) -> Verdict {
    let mut judged: Vec<Judged> = Vec::new();
    let mut rest: Option<Span> = None;
    let mut cursor = Cursor::on_prefix(tools.of(text), UNBOUNDED);
    let read = cursor.array(|cursor| {
        if judged.len() == MOST {
            let span = cursor.skip()?;
            rest = Some(Span { start: rest.map_or(span.start, |rest| rest.start), end: span.end });
            return Ok(());
        }
        let (mut span, object) = if cursor.peek() == Some(b'{') {
            let mut object = cursor.object(|cursor, _| cursor.skip())?;
            object.shift(tools.start);
            (object.span, Some(object))
        } else {
            (cursor.skip()?, None)
        };
        if object.is_none() {
            span = Span { start: span.start + tools.start, end: span.end + tools.start };
        }
        judged.push(tool::judge(text, span, object.as_ref(), rules));
        Ok(())
    });
    debug_assert!(read.is_ok() || judged.is_empty(), "the text was scanned before");
    names(&mut judged);
    // All of them as one, which is left out as one.
    judged.extend(
        rest.map(|rest| tool::beyond(Span { start: rest.start + tools.start, end: rest.end + tools.start })),
    );
    Verdict { tools: judged }
}

/// Says of each tool whether an earlier one of the list has its name.
fn names(tools: &mut [Judged]) {
    let mut names = HashSet::with_capacity(tools.len());
    for tool in tools {
        let Some(name) = tool.name.clone() else { continue };
        if let Some(name) = names.replace(name) {
            tool.findings.push(Finding::new(&name, "/name", Kind::NameTwice, ""));
        }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
