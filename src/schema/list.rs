//! The verdict on a list of tools.
//!
//! Owns judging each tool by itself, so that none affects another or their order. Does not own keeping verdicts
//! (`upstream::guard`), nor writing the list anew (`edit`).

use super::Rules;
use super::tool::Judged;
use crate::wire::json::Span;

/// See the module. Spans are of the text that was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// In the order of the list.
    pub tools: Vec<Judged>,
}

/// Judges the array at `tools` of `text`, which was scanned before; anything but an array has no tools.
pub fn judge(_text: &[u8], _tools: Span, _rules: &Rules<'_>) -> Verdict {
    Verdict::default()
}
