//! The verdict on the `requestedSchema` of an elicitation form.
//!
//! Owns what makes a form's schema unsafe to hand on. Does not own whether it is a form at all, nor what each revision takes
//! for one (`translate`). Rules: A8.3; cases C62, C64.

use super::judge::judge as judge_schema;
use super::pointer::within;
use super::{Finding, Kind, Rules};
use crate::wire::json::{self, Span};

const FORM: &str = "/requestedSchema";

/// Judges the schema at `span` of `text`, which was scanned before. Whether it is a form at all is for `translate` to say.
pub fn judge(text: &[u8], span: Span, rules: &Rules<'_>) -> Vec<Finding> {
    match json::Kind::of(span.of(text)) {
        Some(json::Kind::Object | json::Kind::Bool) => {}
        Some(json::Kind::Array | json::Kind::String | json::Kind::Number | json::Kind::Null) | None => {
            return Vec::new();
        }
    }
    let findings = judge_schema(text, span, rules).findings;
    // Nothing is written into a form, and who fills it in reads it without a dialect.
    let findings = findings.into_iter().filter(|finding| finding.kind != Kind::DialectAdded);
    findings.map(|finding| Finding { at: within(FORM, &finding.at), ..finding }).collect()
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
