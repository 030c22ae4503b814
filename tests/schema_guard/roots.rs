//! C65, A5.3: odd tools beside good ones.

use crate::canary::Canary;
use crate::case::Verdict::{Bad, Good, Mended, Taken};
use crate::case::{Case, judged};
use crate::stage::{BAD_AT, Cell, List, PAIRS, Stage, bad, good, tool};
use crate::support::json;

const NO_SCHEMA: &str = "no_input_schema";
const AT: &str = "/inputSchema";

#[tokio::test(start_paused = true)]
async fn c65_one_odd_tool_hides_no_other() {
    let canary = Canary::new();
    let root = Bad("input_root", AT);
    let object = r#"{"type":"object"}"#;
    let cases = [
        Case::raw("missing", r#"{"name":"NAME"}"#, Bad(NO_SCHEMA, "")),
        Case::input("null", "null", Bad(NO_SCHEMA, AT)),
        Case::input("true", "true", Bad(NO_SCHEMA, AT)),
        Case::input("false", "false", Bad(NO_SCHEMA, AT)),
        Case::input("a list", "[]", Bad(NO_SCHEMA, AT)),
        Case::input("text", r#""object""#, Bad(NO_SCHEMA, AT)),
        Case::input("a number", "5", Bad(NO_SCHEMA, AT)),
        Case::input("another root", r#"{"type":"string"}"#, root),
        Case::input("a list of types", r#"{"type":["object"]}"#, root),
        Case::input("a list of types with null", r#"{"type":["object","null"]}"#, root),
        Case::input("a choice", format!(r#"{{"anyOf":[{object},{object}]}}"#), root),
        Case::input("an enum", r#"{"enum":[{}]}"#, root),
        Case::input("a reference", r##"{"$ref":"#/$defs/o","$defs":{"o":{"type":"object"}}}"##, root),
        Case::raw("no name", r#"{"inputSchema":{"type":"object"}}"#, Bad("no_name", "")),
        Case::raw(
            "a name that is null",
            r#"{"name":null,"inputSchema":{"type":"object"}}"#,
            Bad("no_name", ""),
        ),
        Case::raw(
            "a name that is a number",
            r#"{"name":7,"inputSchema":{"type":"object"}}"#,
            Bad("no_name", ""),
        ),
        Case::raw("no object", "5", Bad("no_name", "")),
        Case::raw("nothing", "null", Bad("no_name", "")),
        Case::raw("a list", "[]", Bad("no_name", "")),
    ];
    judged(&canary, &cases).await;
}

/// A5.3: a root that says nothing of its instance is mended.
#[tokio::test(start_paused = true)]
async fn a5_3_c65_a_root_that_says_nothing_gets_its_type() {
    let canary = Canary::new();
    let cases = [
        Case::input("empty", "{}", Mended("type_added")),
        Case::input("only spaces", "{ \t }", Mended("type_added")),
        Case::input(
            "only a dialect",
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"#,
            Mended("type_added"),
        ),
        Case::input("only words", r#"{"title":"t","description":"d","$comment":"c"}"#, Mended("type_added")),
    ];
    judged(&canary, &cases).await;
}

/// What is legal in a schema is no reason for anything.
#[tokio::test(start_paused = true)]
async fn c65_what_is_legal_is_untouched() {
    let canary = Canary::new();
    let cases = [
        Case::property("true", "true", Good),
        Case::property("false", "false", Good),
        Case::property("anything", "{}", Good),
        Case::input("additionalProperties", r#"{"type":"object","additionalProperties":{}}"#, Good),
        Case::input("additionalProperties: false", r#"{"type":"object","additionalProperties":false}"#, Good),
        Case::property("items: true", r#"{"type":"array","items":true}"#, Good),
        Case::property("a list of types", r#"{"type":["string","null"]}"#, Good),
        Case::input(
            "a choice beside the type",
            r#"{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
            Good,
        ),
        Case::input("the type written with escapes", r#"{"t\u0079pe":"\u006fbject"}"#, Good),
        Case::property(
            "nested objects",
            r#"{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"integer"}}}}}"#,
            Good,
        ),
        Case::input(
            "recursion by a property",
            r##"{"type":"object","properties":{"child":{"$ref":"#"},"children":{"type":"array","items":{"$ref":"#"}}}}"##,
            Good,
        ),
        Case::property("a format", r#"{"type":"string","format":"date-time","pattern":"^[0-9]+$"}"#, Good),
        Case::property(
            "a pattern that only some engines have",
            r#"{"type":"string","pattern":"^(?!\\.)(?!.*\\.\\.)[a-z]+$"}"#,
            Good,
        ),
        Case::property("an empty enum of names", r#"{"enum":["a",null,1,{"b":[]}]}"#, Good),
    ];
    judged(&canary, &cases).await;
}

#[tokio::test(start_paused = true)]
async fn b6_1_c65_roots_of_outputs() {
    let canary = Canary::new();
    let root = Bad("output_root", "/outputSchema");
    let none = Bad("not_a_schema", "/outputSchema");
    let cases = [
        Case::output("an object", r#"{"type":"object"}"#, Good),
        Case::output("a list", r#"{"type":"array","items":{"type":"integer"}}"#, Good)
            .of_a_legacy_server(root),
        Case::output("a choice", r#"{"anyOf":[{"type":"object"},{"type":"null"}]}"#, Good)
            .of_a_legacy_server(root),
        Case::output("anything", "{}", Good).of_a_legacy_server(root),
        Case::output("true", "true", Good).of_a_legacy_server(Bad("", "/outputSchema")),
        // Some servers write so that there is none.
        Case::output("null", "null", Taken("null_output")),
        Case::output("text", r#""object""#, none),
        Case::output("a number", "5", none),
        Case::output("a list of schemas", "[]", none),
    ];
    judged(&canary, &cases).await;
}

/// The good tool is there, whoever else has its name.
#[tokio::test(start_paused = true)]
async fn c65_tools_of_one_name() {
    for pair in PAIRS {
        let twin = tool("twin", r#"{"type":"object"}"#);
        let list = format!("{},{twin},{twin},{}", good("g0"), good("g1"));
        let stage = Stage::set(Cell::http(pair), &list, "").await;
        let names = stage.listed().await.names();
        let twins = names.iter().filter(|name| *name == "twin").count();
        assert!(twins >= 1, "{pair:?}: {names:?}");
        assert!(names[0] == "g0" && names.last().unwrap() == "g1", "{pair:?}: {names:?}");
        assert_eq!(stage.found("name_twice"), 1.0, "{pair:?}");
        stage.passes("twin", "{}").await;
    }
}

/// One of two of a name is bad: whichever a caller means, the bad one is not to be had by it.
#[tokio::test(start_paused = true)]
async fn c65_c62_a_bad_twin() {
    for pair in PAIRS {
        for bad_first in [true, false] {
            let twin = tool("twin", r#"{"type":"object"}"#);
            let twins = if bad_first { [bad("twin"), twin] } else { [twin, bad("twin")] };
            let stage =
                Stage::set(Cell::http(pair), &format!("{},{}", twins.join(","), good("g0")), "").await;
            let shown = stage.listed().await;
            assert!(!shown.raw.contains("canary.test"), "{pair:?}: {}", shown.raw);
            assert!(shown.names().contains(&"g0".to_owned()), "{pair:?}");
        }
    }
}

/// A list of bad tools alone is an empty list.
#[tokio::test(start_paused = true)]
async fn c65_nothing_but_bad_ones() {
    for pair in PAIRS {
        for list in [bad("a"), format!("{} , {}\n", bad("a"), bad("b")), "null".to_owned()] {
            let stage = Stage::set(Cell::http(pair), &list, "").await;
            let shown = stage.listed().await;
            assert_eq!(shown.result()["tools"], json!([]), "{pair:?} {list}");
        }
    }
}

/// First, last, beside each other: what is left out leaves a list.
#[tokio::test(start_paused = true)]
async fn c65_wherever_it_stands() {
    for pair in PAIRS {
        for places in
            [vec![0], vec![3], vec![0, 1], vec![1, 2], vec![2, 3], vec![0, 3], vec![0, 1, 2], vec![0, 2]]
        {
            let text = |n: usize| {
                let name = format!("t{n}");
                if places.contains(&n) { bad(&name) } else { good(&name) }
            };
            let list: Vec<_> = (0..4).map(text).collect();
            let stage = Stage::set(Cell::http(pair), &list.join(" ,\t"), "").await;
            let shown = stage.listed().await;
            let wanted: Vec<_> = (0..4).filter(|n| !places.contains(n)).map(text).collect();
            assert_eq!(shown.tools, wanted, "{pair:?} {places:?}");
            for n in places {
                assert!(stage.refused(&format!("t{n}")).await.contains(BAD_AT));
            }
        }
    }
}

/// Where policy is to warn, like pairs see everything; between unlike eras no revision has such tools.
#[tokio::test(start_paused = true)]
async fn a5_3_under_warn() {
    let list = [
        good("g0"),
        tool("root", r#"{"type":"string"}"#),
        tool("none", "null"),
        tool("untyped", "{}"),
        good("g1"),
    ];
    for pair in PAIRS {
        let cell = Cell::http(pair);
        let stage = Stage::set(cell, &list.join(","), "policy = \"warn\"").await;
        // As a client that takes what it gets.
        let mut answer = stage.proxy.open(&stage.ask("tools/list")).await;
        let shown = List::of(&String::from_utf8(answer.pieces().await.0).unwrap());
        match cell.is_like() {
            true => assert_eq!(shown.tools, list, "{pair:?}: nothing is changed"),
            false => assert_eq!(shown.names(), ["g0", "untyped", "g1"], "{pair:?}"),
        }
        assert_eq!((stage.found("input_root"), stage.found("no_input_schema")), (1.0, 1.0), "{pair:?}");
    }
}
