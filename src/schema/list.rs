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

/// Judges the array at `tools` of `text`, which was scanned before; anything but an array has no tools.
pub fn judge(text: &[u8], tools: Span, rules: &Rules<'_>) -> Verdict {
    let mut judged: Vec<Judged> = Vec::new();
    let mut cursor = Cursor::on_prefix(tools.of(text), UNBOUNDED);
    let read = cursor.array(|cursor| {
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
    mark_again(&mut judged);
    Verdict { tools: judged }
}

/// Of tools of one name the first is meant.
fn mark_again(tools: &mut [Judged]) {
    let mut names = HashSet::with_capacity(tools.len());
    let again: Vec<usize> = tools
        .iter()
        .enumerate()
        .filter_map(|(index, tool)| (!names.insert(tool.name.as_deref()?)).then_some(index))
        .collect();
    for index in again {
        let tool = &mut tools[index];
        tool.again = true;
        let name = tool.name.clone().unwrap_or_default();
        tool.findings.push(Finding::new(&name, "/name", Kind::NameTwice, ""));
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
