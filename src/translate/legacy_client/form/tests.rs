//! Vectors of forms for 2025-06-18 and of the answers to them, by rule or vector id; expected values are written from the rules
//! and hold against the official schema.
#![allow(clippy::unwrap_used)]

use super::super::reply::{Refusal, Restore};
use super::super::round::tests::{LIMITS, client, one, result, text};

fn schema(properties: &str, more: &str) -> String {
    format!(r#"{{"type":"object","properties":{properties}{more}}}"#)
}

/// What a client of `revision` is asked, and how its answer is read.
fn form(revision: &str, schema: &str) -> Result<(String, Restore), String> {
    let entry =
        one("elicitation/create", &format!(r#"{{"message":"m","requestedSchema":{schema}}}"#)).unwrap();
    let question = entry.ask(1, &client(revision), None).map_err(|fault| fault.to_string())?;
    let text = text(&question.message);
    let head =
        r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":"#;
    let schema = text.strip_prefix(head).unwrap().strip_suffix("}}").unwrap();
    Ok((schema.to_owned(), question.restore))
}

/// One field of a form for 2025-06-18.
fn field(property: &str) -> String {
    let asked = form("2025-06-18", &schema(&format!(r#"{{"f":{property}}}"#), "")).unwrap().0;
    asked
        .strip_prefix(r#"{"type":"object","properties":{"f":"#)
        .unwrap()
        .strip_suffix("}}")
        .unwrap()
        .to_owned()
}

/// The answer to a form for `revision` with `content`.
fn answered(revision: &str, schema: &str, content: &str) -> Result<String, String> {
    let (_, restore) = form(revision, schema).unwrap();
    let answer = restore.answer(&result(&format!(r#"{{"action":"accept","content":{content}}}"#)), LIMITS);
    let answer = answer.map_err(|refusal| match refusal {
        Refusal::Unfit { what, .. } => what.into_owned(),
        other => panic!("{other:?}"),
    })?;
    let answer = String::from_utf8(answer.to_vec()).unwrap();
    Ok(answer.strip_prefix(r#"{"action":"accept","content":"#).unwrap().strip_suffix('}').unwrap().to_owned())
}

/// D91, B10.1, B10.2, A8.1, A8.3-A8.5.
#[test]
fn d91_fields_as_2025_06_18_has_them() {
    for (given, expected) in [
        (
            r#"{"type":"string","title":"T","oneOf":[{"const":"a","title":"A"},{"const":"\u00e9","title":"\u00c9"}],"default":"a"}"#,
            r#"{"enum":["a","\u00e9"],"enumNames":["A","\u00c9"],"type":"string","title":"T"}"#,
        ),
        (
            r#"{"type":"string","oneOf":[{"const":"a"}]}"#,
            r#"{"enum":["a"],"enumNames":["a"],"type":"string"}"#,
        ),
        (
            r#"{"type":"string","enum":["a","b"],"enumNames":["A","B"],"default":"b"}"#,
            r#"{"type":"string","enum":["a","b"],"enumNames":["A","B"]}"#,
        ),
        (r#"{"type":"string","enum":["a"]}"#, r#"{"type":"string","enum":["a"]}"#),
        (
            r#"{"type":"string","minLength":1,"maxLength":2,"format":"email","default":"a","x":1.50}"#,
            r#"{"type":"string","minLength":1,"maxLength":2,"format":"email","x":1.50}"#,
        ),
        (r#"{"type":"number","minimum":0.10,"default":2}"#, r#"{"type":"number","minimum":0.10}"#),
        (r#"{"default":2,"type":"integer"}"#, r#"{"type":"integer"}"#),
        (r#"{"type":"boolean","default":true}"#, r#"{"type":"boolean","default":true}"#),
        (r#"{"type":"boolean","default":null,"title":null}"#, r#"{"type":"boolean"}"#),
        (r#"{"type":["integer","null"],"default":null}"#, r#"{"type":"integer"}"#),
    ] {
        assert_eq!(field(given), expected, "{given}");
    }
    let entry = one(
        "elicitation/create",
        r#"{"mode":"form","message":"m","requestedSchema":{"$schema":"s","type":"object","properties":{},"required":[]}}"#,
    );
    let question = entry.unwrap().ask(1, &client("2025-06-18"), None).unwrap();
    assert_eq!(
        text(&question.message),
        r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{},"required":[]}}}"#
    );
}

/// A8.4, A8.5: what 2025-11-25 has passes; what it has not is written as it has it.
#[test]
fn a8_5_fields_as_2025_11_25_has_them() {
    let ask = |property: &str| form("2025-11-25", &schema(&format!(r#"{{"f":{property}}}"#), "")).unwrap().0;
    for same in [
        r#"{"type":"string","oneOf":[{"const":"a","title":"A"}],"default":"a"}"#,
        r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]},"minItems":1,"default":["a"]}"#,
        r#"{"type":"string","enum":["a"],"enumNames":["A"]}"#,
    ] {
        assert_eq!(ask(same), schema(&format!(r#"{{"f":{same}}}"#), ""));
    }
    for (given, expected) in [
        (r#"{"type":"string","format":"ipv4","minLength":null}"#, r#"{"type":"string"}"#),
        (r#"{"enum":["a"]}"#, r#"{"type":"string","enum":["a"]}"#),
        (r#"{"items":{"enum":["a"]}}"#, r#"{"type":"array","items":{"type":"string","enum":["a"]}}"#),
        (
            r#"{"type":"array","items":{"oneOf":[{"const":"a"},{"const":"b","title":"B"}]}}"#,
            r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"a"},{"const":"b","title":"B"}]}}"#,
        ),
        (r#"{"anyOf":[{"type":"string","default":1},{"type":"null"}]}"#, r#"{"type":"string"}"#),
    ] {
        assert_eq!(ask(given), schema(&format!(r#"{{"f":{expected}}}"#), ""), "{given}");
    }
}

const MANY: &str = r#"{"type":"array","title":"Colours","description":"Pick.","minItems":1,"maxItems":2,"items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"},{"const":"b","title":"Blue"}]},"default":["g"]}"#;

/// D91, B10.3.
#[test]
fn d91_several_choices_are_one_field_each() {
    let given = schema(
        &format!(r#"{{"a":{{"type":"string"}},"c":{MANY},"z":{{"type":"integer"}}}}"#),
        r#","required":["a","c"]"#,
    );
    let (asked, restore) = form("2025-06-18", &given).unwrap();
    let part = |value: &str, title: &str, more: &str| {
        format!(
            r#""c.{value}":{{"type":"boolean","title":"Colours: {title}","description":"Pick. (choose at least 1 and at most 2)"{more}}}"#
        )
    };
    let parts =
        [part("r", "Red", ""), part("g", "Green", r#","default":true"#), part("b", "Blue", "")].join(",");
    assert_eq!(
        asked,
        schema(
            &format!(r#"{{"a":{{"type":"string"}},{parts},"z":{{"type":"integer"}}}}"#),
            r#","required":["a"]"#
        )
    );
    let answer = restore.answer(
        &result(r#"{"action":"accept","content":{"c.b":true,"a":"x","c.r":true,"c.g":false}}"#),
        LIMITS,
    );
    assert_eq!(answer.unwrap(), r#"{"action":"accept","content":{"a":"x","c":["r","b"]}}"#);
    for (content, what) in [
        (r#"{"a":"x"}"#, "field \"c\" must have at least 1 of the choices"),
        (r#"{"a":"x","c.r":false}"#, "field \"c\" must have at least 1 of the choices"),
        (r#"{"a":"x","c.r":true,"c.g":true,"c.b":true}"#, "field \"c\" must have at most 2 of the choices"),
        (r#"{"a":"x","c.r":"yes"}"#, "field \"c.r\" must be true or false"),
        (r#"{"c.r":true}"#, "field \"a\" must be filled in"),
    ] {
        assert_eq!(answered("2025-06-18", &given, content).unwrap_err(), what);
    }
}

/// B10.3.
#[test]
fn b10_3_what_was_not_chosen_is_left_out_where_it_may_be() {
    let many = |more: &str| {
        schema(
            &format!(r#"{{"c":{{"type":"array","items":{{"type":"string","enum":["r","g"]}}{more}}}}}"#),
            "",
        )
    };
    for (schema, content, expected) in [
        (many(""), "{}", "{}"),
        (many(""), r#"{"c.r":false,"c.g":false}"#, r#"{"c":[]}"#),
        (many(""), r#"{"c.r":null}"#, "{}"),
        (many(r#","minItems":1"#), r#"{"c.r":false,"c.g":false}"#, "{}"),
        (many(r#","minItems":1"#), r#"{"c.g":true}"#, r#"{"c":["g"]}"#),
    ] {
        assert_eq!(answered("2025-06-18", &schema, content).unwrap(), expected, "{schema} {content}");
    }
}

/// D91, B10.3.
#[test]
fn d91_too_many_choices_and_names_that_clash_are_not_asked() {
    let many = |count: usize, more: &str| {
        let all = (0..count).map(|at| format!("\"{at}\"")).collect::<Vec<_>>().join(",");
        schema(&format!(r#"{{"c":{{"type":"array","items":{{"type":"string","enum":[{all}]}}}}{more}}}"#), "")
    };
    form("2025-06-18", &many(10, "")).unwrap();
    assert_eq!(
        form("2025-06-18", &many(11, "")).unwrap_err(),
        "the server's question \"k\" cannot be put to a client of 2025-06-18: of its field \"c\", several of 11 choices can be chosen, and it has fields for 10 at most"
    );
    assert!(form("2025-06-18", &many(2, r#","c.1":{"type":"string"}"#)).is_err());
    let twice = r#"{"c":{"type":"array","items":{"type":"string","enum":["a","\u0061"]}}}"#;
    assert!(form("2025-06-18", &schema(twice, "")).is_err());
    form("2025-11-25", &many(11, "")).unwrap();
    assert!(form("2025-03-26", &many(1, "")).is_err());
}

/// D91, B10.5, X5.
#[test]
fn d91_numbers_survive() {
    let given = schema(r#"{"x":{"type":"number"},"y":{"type":"integer"}}"#, "");
    for content in
        [r#"{"x":2.5}"#, r#"{"x":-0.50e1,"y":2.0}"#, r#"{"more":"\u00e9","y":12345678901234567890}"#]
    {
        for revision in ["2025-06-18", "2025-11-25"] {
            assert_eq!(answered(revision, &given, content).unwrap(), content);
        }
    }
}

/// B10.4.
#[test]
fn b10_4_answers_are_held_against_the_servers_own_form() {
    let given = schema(
        r#"{"s":{"type":"string","minLength":2,"maxLength":3},"n":{"type":"number","minimum":1,"maximum":2.5},"i":{"type":"integer","enum":[1,2]},"b":{"type":"boolean"},"o":{"type":"string","oneOf":[{"const":"a","title":"A"}]},"d":{"type":"string","format":"date"},"k":{"type":"string","const":"k"}}"#,
        r#","additionalProperties":false"#,
    );
    for content in [
        r#"{"s":"\u00e9\u00e9\u00e9"}"#,
        r#"{"s":"ab","n":2.5,"i":2.0,"b":false,"o":"\u0061","d":"2026-07-28","k":"k"}"#,
        "{}",
    ] {
        assert_eq!(answered("2025-06-18", &given, content).unwrap(), content);
    }
    for (content, what) in [
        (r#"{"s":"a"}"#, r#"field "s" must have at least 2 characters"#),
        (r#"{"s":"abcd"}"#, r#"field "s" must have at most 3 characters"#),
        (r#"{"s":1}"#, r#"field "s" must be a string"#),
        (r#"{"n":0.5}"#, r#"field "n" must be at least 1"#),
        (r#"{"n":3}"#, r#"field "n" must be at most 2.5"#),
        (r#"{"n":"1"}"#, r#"field "n" must be a number"#),
        (r#"{"i":1.5}"#, r#"field "i" must be an integer"#),
        (r#"{"i":3}"#, r#"field "i" must be one of the choices"#),
        (r#"{"b":"true"}"#, r#"field "b" must be true or false"#),
        (r#"{"o":"A"}"#, r#"field "o" must be one of the choices"#),
        (r#"{"o":["a"]}"#, r#"field "o" must be one of the choices"#),
        (r#"{"d":"today"}"#, r#"field "d" must be of the format date"#),
        (r#"{"k":"c"}"#, r#"field "k" must be what the form says"#),
        (r#"{"x":1}"#, r#"the form has no field "x""#),
        (r#"{"s":"ab","s":"ac"}"#, r#"member "s" occurs more than once"#),
    ] {
        assert_eq!(answered("2025-06-18", &given, content).unwrap_err(), what, "{content}");
    }
}
