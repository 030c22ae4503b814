//! The verdict on the `requestedSchema` of an elicitation form.

use super::{Finding, Rules};
use crate::wire::json::Span;

/// Judges the schema at `span` of `text`, which was scanned before. Whether it is a form at all is for `translate` to say.
pub fn judge(_text: &[u8], _span: Span, _rules: &Rules<'_>) -> Vec<Finding> {
    Vec::new()
}
