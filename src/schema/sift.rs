//! A verdict on a list, where the list stands in a message, and what becomes of bad tools.
//!
//! Verdicts are kept by the bytes of the array alone, so their spans count from its first byte; owns the way from there to the
//! message that is written anew. Rules: A5.3, A5.10.

use super::list::Verdict;
use super::tool::{Judged, Shape};
use crate::wire::json::Span;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Sift {
    pub verdict: Arc<Verdict>,
    /// Where the array begins in the message.
    pub base: u32,
    /// Whether bad tools are left out.
    pub drop: bool,
}

impl Sift {
    pub fn tools(&self) -> &[Judged] {
        &self.verdict.tools
    }

    /// A span of the verdict in the message.
    pub fn at(&self, span: Span) -> Span {
        Span { start: span.start + self.base, end: span.end + self.base }
    }

    /// Whether a peer of the other era is shown the tool: what no revision takes for a tool is not.
    pub fn stays(&self, judged: &Judged) -> bool {
        judged.shape != Shape::Unfit && !(self.drop && judged.is_bad())
    }
}

#[cfg(test)]
impl Sift {
    /// As the guard has it, by the bounds that hold where nothing is said.
    pub fn of_result(text: &[u8], result: &crate::wire::json::Object, speaker: super::Speaker) -> Self {
        let tools = crate::wire::json::once(result, text, "tools").unwrap_or_default();
        let array = tools.of(text);
        let (bounds, documents) = (super::Bounds::default(), super::Documents::default());
        let rules = super::Rules { speaker, bounds: &bounds, documents: &documents };
        let verdict = super::list::judge(array, Span::new(0, array.len()), &rules);
        Self { verdict: Arc::new(verdict), base: tools.start, drop: true }
    }
}
