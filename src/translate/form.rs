//! Properties of a form that no revision's schema has, as what they stand for.
//!
//! Owns one case: a property that may be left out, which servers made from typed models write as a choice between a type and
//! `null` (`"anyOf":[{"type":"integer"},{"type":"null"}],"default":null`, or `"type":["integer","null"]`). A client that checks what it is asked would refuse
//! the whole question. It becomes the type alone, as a form's field may always be left out unless `required` names it. All
//! other properties pass as they were written. Rules: A8.5; invariant 6; schema 2026-07-28, PrimitiveSchemaDefinition.

use super::question::items;
use crate::wire::json::{Limits, Member, Object, Span, object};
use crate::wire::jsonrpc::string;

/// What to put in the place of which properties.
pub(super) fn edits(text: &[u8], properties: &Object, limits: Limits) -> Vec<(Span, String)> {
    let reduced = |value: Span| Some((value, reduced(text, &object(text, value, limits)?, limits)?));
    properties.members.iter().filter_map(|member| reduced(member.value)).collect()
}

/// `None` for what is no such choice, or one of several types.
pub(super) fn reduced(text: &[u8], property: &Object, limits: Limits) -> Option<String> {
    let inner = match property.first(text, "anyOf") {
        Some(choices) => of_choices(text, property, choices, limits)?,
        None => of_types(text, property.first(text, "type")?, limits)?,
    };
    let gone = |member: &&Member| {
        let null = member.is(text, "default") && member.value.of(text) == b"null";
        null || member.is(text, "anyOf") || member.is(text, "type")
    };
    let kept = property.members.iter().filter(|member| !gone(member)).map(|member| written(text, member));
    Some(format!("{{{}}}", kept.chain(inner).collect::<Vec<_>>().join(",")))
}

/// The members of the one choice that is not `null`, but for what the property says itself.
fn of_choices(text: &[u8], property: &Object, choices: Span, limits: Limits) -> Option<Vec<String>> {
    let choices = items(text, choices, limits.members)?;
    let choices: Vec<Object> =
        choices.into_iter().map(|choice| object(text, choice, limits)).collect::<Option<_>>()?;
    let is_null = |choice: &&Object| {
        let kind = choice.first(text, "type").and_then(|span| string(text, span));
        kind.as_deref() == Some("null")
    };
    let (nulls, types): (Vec<&Object>, Vec<&Object>) = choices.iter().partition(is_null);
    let ([_, ..], [one]) = (nulls.as_slice(), types.as_slice()) else { return None };
    let own = |name: &str| name != "type" && property.first(text, name).is_some();
    let inner = one.members.iter().filter(|member| member.name(text).is_none_or(|name| !own(&name)));
    Some(inner.map(|member| written(text, member)).collect())
}

/// The one type that is not `null`.
fn of_types(text: &[u8], types: Span, limits: Limits) -> Option<Vec<String>> {
    let types = items(text, types, limits.members)?;
    let (nulls, types): (Vec<Span>, Vec<Span>) =
        types.into_iter().partition(|span| string(text, *span).as_deref() == Some("null"));
    let ([_, ..], [one]) = (nulls.as_slice(), types.as_slice()) else { return None };
    string(text, *one)?;
    Some(vec![format!("\"type\":{}", String::from_utf8_lossy(one.of(text)))])
}

/// Parts of a text that was checked for UTF-8.
fn written(text: &[u8], member: &Member) -> String {
    let (key, value) = (member.key.of(text), member.value.of(text));
    format!("\"{}\":{}", String::from_utf8_lossy(key), String::from_utf8_lossy(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { nesting: 32, members: 32 };

    fn edited(property: &str) -> Option<String> {
        let text = format!(r#"{{"p":{property}}}"#);
        let properties = object(text.as_bytes(), Span::new(0, text.len()), LIMITS).unwrap();
        edits(text.as_bytes(), &properties, LIMITS).pop().map(|(span, with)| {
            assert_eq!(span.of(text.as_bytes()), property.as_bytes());
            with
        })
    }

    /// A8.5, invariant 6.
    #[test]
    fn a8_5_a_type_or_null_is_the_type() {
        let table = [
            (
                r#"{"anyOf": [{"minimum": 1.0, "type": "integer"}, {"type": "null"}], "default": null, "title": "A"}"#,
                r#"{"title":"A","minimum":1.0,"type":"integer"}"#,
            ),
            (
                r#"{"anyOf":[{"type":"null"},{"type":"string","title":"inner"}],"default":"z","title":"C"}"#,
                r#"{"default":"z","title":"C","type":"string"}"#,
            ),
            (
                r#"{"anyOf":[{"enum":["a","b"],"type":"string"},{"type":"null"}]}"#,
                r#"{"enum":["a","b"],"type":"string"}"#,
            ),
            (
                r#"{"type":["null","integer"],"default":null,"title":"A"}"#,
                r#"{"title":"A","type":"integer"}"#,
            ),
        ];
        for (property, expected) in table {
            assert_eq!(edited(property).as_deref(), Some(expected), "{property}");
        }
    }

    #[test]
    fn a8_5_everything_else_stays() {
        for property in [
            r#"{"type":"string","default":null}"#,
            r#"{"anyOf":[{"type":"integer"},{"type":"string"},{"type":"null"}]}"#,
            r#"{"anyOf":[{"type":"integer"}]}"#,
            r#"{"type":["integer","string","null"]}"#,
            r#"{"type":["null"]}"#,
            r#"{"type":[3,"null"]}"#,
            r#"{"anyOf":[{"type":"null"}]}"#,
            r#"{"anyOf":[{"type":"integer"},{"type":["null"]}]}"#,
            r#"{"anyOf":{"type":"null"}}"#,
            r#"{"anyOf":[1,{"type":"null"}]}"#,
            r#"{"items":{"anyOf":[{"const":"a","title":"A"}]},"type":"array"}"#,
            r#"{"oneOf":[{"const":"a","title":"A"}],"type":"string"}"#,
            r#"3"#,
        ] {
            assert_eq!(edited(property), None, "{property}");
        }
    }
}
