//! C64, D65, A5.4: the dialect that a schema declares is the one that it is read by; what declares none.

use crate::canary::Canary;
use crate::case::Verdict::{Bad, Good, Note};
use crate::case::{Case, judged};
use crate::stage::{Cell, LATEST, PAIRS, Stage, good, tool, tool_with_output};
use crate::support::{Era, Value, json};

const DRAFT_07: &str = "http://json-schema.org/draft-07/schema#";
const DRAFT_04: &str = "http://json-schema.org/draft-04/schema#";
const NEW: &str = "https://json-schema.org/draft/2020-12/schema";

/// A schema of this dialect with these further members.
fn of(dialect: &str, members: &str) -> String {
    format!(r#"{{"$schema":"{dialect}","type":"object",{members}}}"#)
}

#[tokio::test(start_paused = true)]
async fn c64_every_known_dialect_in_every_form() {
    let canary = Canary::new();
    let plain = r#""properties":{"a":{"type":"string"}}"#;
    let mut cases = Vec::new();
    for dialect in [
        "draft-04/schema",
        "draft-06/schema",
        "draft-07/schema",
        "draft/2019-09/schema",
        "draft/2020-12/schema",
    ] {
        for scheme in ["http", "https"] {
            for end in ["", "#"] {
                let uri: &'static str = format!("{scheme}://json-schema.org/{dialect}{end}").leak();
                cases.push(Case::input(uri, of(uri, plain), Good));
                cases.push(Case::output(uri, of(uri, plain), Good));
            }
        }
    }
    judged(&canary, &cases).await;
}

#[tokio::test(start_paused = true)]
async fn c64_words_of_older_dialects() {
    let canary = Canary::new();
    let tuple = r#""properties":{"t":{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}}"#;
    let bound = r#""properties":{"n":{"type":"number","minimum":1,"exclusiveMinimum":true}}"#;
    let defined = r##""properties":{"a":{"$ref":"#/definitions/d"}},"definitions":{"d":{"type":"string"}}"##;
    let cases = [
        Case::input("a tuple in draft-07", of(DRAFT_07, tuple), Good),
        Case::input("a tuple in draft-04", of(DRAFT_04, tuple), Good),
        Case::input("a tuple in 2019-09", of("https://json-schema.org/draft/2019-09/schema", tuple), Good),
        Case::input("a tuple in 2020-12", of(NEW, tuple), Bad("meta_schema", "/inputSchema")),
        Case::input("a boolean bound in draft-04", of(DRAFT_04, bound), Good),
        Case::input("a boolean bound in draft-07", of(DRAFT_07, bound), Bad("meta_schema", "/inputSchema")),
        Case::input("definitions in draft-07", of(DRAFT_07, defined), Good),
        Case::input("definitions in draft-04", of(DRAFT_04, defined), Good),
        // A pointer leads wherever it leads.
        Case::input("definitions in 2020-12", of(NEW, defined), Good),
        Case::input(
            "id in draft-04",
            of(DRAFT_04, r#""id":"http://acme.test/s","properties":{"a":{"$ref":"s"}}"#),
            Good,
        ),
        Case::input(
            "$id means nothing to draft-04",
            of(DRAFT_04, r#""$id":"http://acme.test/s","properties":{"a":{"$ref":"http://acme.test/s"}}"#),
            Bad("external_ref", "/inputSchema/properties/a/$ref"),
        ),
        Case::input(
            "$id in draft-07",
            of(DRAFT_07, r#""$id":"http://acme.test/s","properties":{"a":{"$ref":"s"}}"#),
            Good,
        ),
        Case::input(
            "an anchor by $id in draft-07",
            of(
                DRAFT_07,
                r##""properties":{"a":{"$ref":"#here"}},"definitions":{"d":{"$id":"#here","type":"string"}}"##,
            ),
            Good,
        ),
        Case::input(
            "$anchor means nothing to draft-07",
            of(DRAFT_07, r##""properties":{"a":{"$ref":"#here"}},"definitions":{"d":{"$anchor":"here"}}"##),
            Bad("dangling_ref", "/inputSchema/properties/a/$ref"),
        ),
        Case::input(
            "$recursiveRef in 2019-09",
            of(
                "https://json-schema.org/draft/2019-09/schema",
                r##""properties":{"a":{"$recursiveRef":"#"}}"##,
            ),
            Good,
        ),
        Case::input(
            "$dynamicRef in 2020-12",
            of(NEW, r##""$dynamicAnchor":"node","properties":{"a":{"$dynamicRef":"#node"}}"##),
            Good,
        ),
    ];
    judged(&canary, &cases).await;
}

/// Up to draft-07 nothing beside a `$ref` counts; since then it does.
#[tokio::test(start_paused = true)]
async fn c64_what_stands_beside_a_reference() {
    let canary = Canary::new();
    let url = canary.url();
    let out = format!(
        r##""properties":{{"a":{{"$ref":"#/definitions/d","properties":{{"b":{{"$ref":"{url}"}}}}}}}},"definitions":{{"d":{{"type":"object"}}}}"##
    );
    let at = "/inputSchema/properties/a/properties/b/$ref";
    let based = |id: &str| {
        format!(
            r##""properties":{{"a":{{"{id}":"http://acme.test/other","$ref":"#/definitions/d"}}}},"definitions":{{"d":{{"type":"string"}}}}"##
        )
    };
    let cases = [
        Case::input("ignored in draft-07", of(DRAFT_07, &out), Good),
        Case::input("ignored in draft-04", of(DRAFT_04, &out), Good),
        Case::input("ignored in draft-06", of("http://json-schema.org/draft-06/schema", &out), Good),
        Case::input(
            "applied in 2019-09",
            of("https://json-schema.org/draft/2019-09/schema", &out),
            Bad("external_ref", at),
        ),
        Case::input("applied in 2020-12", of(NEW, &out), Bad("external_ref", at)),
        Case::input(
            "applied where nothing is declared",
            format!(r#"{{"type":"object",{out}}}"#),
            Bad("external_ref", at),
        ),
        Case::input("$id in draft-07", of(DRAFT_07, &based("$id")), Good),
        Case::input("id in draft-04", of(DRAFT_04, &based("id")), Good),
        Case::input(
            "$id in 2020-12",
            of(NEW, &based("$id")),
            Bad("dangling_ref", "/inputSchema/properties/a/$ref"),
        ),
    ];
    judged(&canary, &cases).await;
}

/// A dialect that nobody knows is no reason to leave a tool out, and never one to go and ask.
#[tokio::test(start_paused = true)]
async fn c64_unknown_dialects_are_not_checked() {
    let canary = Canary::new();
    let note = Note("unknown_dialect");
    let nowhere = r##""properties":{"a":{"$ref":"#/$defs/none"},"b":{"$ref":"#/properties/b"},"c":{"type":"strange","minimum":"x"}}"##;
    let cases = [
        Case::input("of one's own", of("https://schemas.acme.test/dialect", nowhere), note),
        Case::input("of one's own, at the canary", of(&canary.url(), nowhere), note),
        Case::input("no absolute URI", of("dialect.json", nowhere), note),
        Case::input("no URI", of("draft 7", nowhere), note),
        Case::input("nothing", of("", nowhere), note),
        Case::input("draft-03", of("http://json-schema.org/draft-03/schema#", nowhere), note),
        Case::input("whatever is the latest", of("http://json-schema.org/schema#", nowhere), note),
        Case::input("a fragment", of("https://json-schema.org/draft/2020-12/schema#x", nowhere), note),
        Case::input("a number", format!(r#"{{"$schema":5,"type":"object",{nowhere}}}"#), note),
        Case::output("of the output", of("https://schemas.acme.test/dialect", nowhere), note),
    ];
    judged(&canary, &cases).await;
}

#[tokio::test(start_paused = true)]
async fn c64_what_is_not_valid_in_its_dialect() {
    let canary = Canary::new();
    let bad = Bad("meta_schema", "/inputSchema");
    let cases = [
        Case::property("a type that is none", r#"{"type":"strange"}"#, bad),
        Case::property("a bound that is no number", r#"{"minimum":"1"}"#, bad),
        Case::property("a reference that is no text", r#"{"$ref":5}"#, bad),
        Case::property("no schema", "5", bad),
        Case::input("properties that are a list", r#"{"type":"object","properties":[]}"#, bad),
        Case::input("required that is no list", r#"{"type":"object","required":"a"}"#, bad),
        Case::input("no allOf", r#"{"type":"object","allOf":[]}"#, bad),
        Case::output(
            "in the output",
            r#"{"type":"object","properties":{"a":{"type":"strange"}}}"#,
            Bad("meta_schema", "/outputSchema"),
        ),
    ];
    judged(&canary, &cases).await;
}

/// Who does not say a dialect speaks 2020-12, since that is said to be so.
#[tokio::test(start_paused = true)]
async fn a5_4_the_default_is_2020_12_since_2025_11_25() {
    let canary = Canary::new();
    let cases = [
        Case::property("a tuple", r#"{"items":[{},{}]}"#, Bad("meta_schema", "/inputSchema")),
        Case::property(
            "a boolean bound",
            r#"{"minimum":1,"exclusiveMinimum":true}"#,
            Bad("meta_schema", "/inputSchema"),
        ),
        Case::property("prefixItems", r#"{"prefixItems":[{},{}]}"#, Good),
    ];
    judged(&canary, &cases).await;
}

const TUPLE: &str = r#"{"type":"object","properties":{"t":{"items":[{},{}]}}}"#;
const BOUND: &str = r#"{"type":"object","properties":{"n":{"minimum":1,"exclusiveMinimum":true}}}"#;
const PLAIN: &str = r#"{"type":"object","properties":{"n":{"minimum":1}}}"#;

#[tokio::test(start_paused = true)]
async fn d65_the_dialect_is_added_for_modern_clients() {
    for revision in ["2025-06-18", "2025-03-26", "2024-11-05"] {
        let list = [good("g0"), tool("tuple", TUPLE), tool("bound", BOUND), tool("plain", PLAIN)].join(",");
        let stage = Stage::set(Cell::http((Era::Modern, Era::Legacy(revision))), &list, "").await;
        let shown = stage.listed().await;
        assert_eq!(shown.names(), ["g0", "tuple", "bound", "plain"], "{revision}");
        for (name, schema, dialect) in [("tuple", TUPLE, DRAFT_07), ("bound", BOUND, DRAFT_04)] {
            let mut wanted: Value = serde_json::from_str(schema).unwrap();
            wanted["$schema"] = json!(dialect);
            assert_eq!(shown.tool(name)["inputSchema"], wanted, "{revision} {name}");
            stage.passes(name, "{}").await;
        }
        assert_eq!(shown.raw_tool("plain"), tool("plain", PLAIN), "a plain schema is left as it is");
        assert_eq!(shown.raw_tool("g0"), good("g0"));
        assert_eq!(stage.found("dialect_added"), 2.0, "{revision}");
    }
}

/// The same in an `outputSchema`, and in both schemas of one tool.
#[tokio::test(start_paused = true)]
async fn d65_in_an_output_too() {
    let own = tool_with_output("both", TUPLE, BOUND);
    let stage = Stage::set(Cell::http((Era::Modern, Era::Legacy("2025-06-18"))), &own, "").await;
    let shown = stage.listed().await.tool("both");
    assert_eq!(shown["inputSchema"]["$schema"], DRAFT_07);
    assert_eq!(shown["outputSchema"]["$schema"], DRAFT_04);
}

/// A legacy client has no other default than its server: it gets what the server says.
#[tokio::test(start_paused = true)]
async fn d65_legacy_clients_get_it_as_it_is() {
    for revision in ["2025-06-18", "2025-03-26", "2024-11-05"] {
        let list = [tool("tuple", TUPLE), tool("bound", BOUND), tool("plain", PLAIN)];
        let cell = Cell::http((Era::Legacy(revision), Era::Legacy(revision)));
        let stage = Stage::set(cell, &list.join(","), "").await;
        assert_eq!(stage.listed().await.tools, list, "{revision}");
        stage.passes("tuple", "{}").await;
    }
}

/// What fits no dialect is bad in every one.
#[tokio::test(start_paused = true)]
async fn d65_what_fits_none_is_left_out() {
    for client in [Era::Modern, Era::Legacy("2025-06-18")] {
        let list = format!(
            "{},{}",
            tool("none", r#"{"type":"object","properties":{"a":{"type":"strange"}}}"#),
            good("g0")
        );
        let stage = Stage::set(Cell::http((client, Era::Legacy("2025-06-18"))), &list, "").await;
        assert_eq!(stage.listed().await.names(), ["g0"]);
        stage.refused("none").await;
        assert!(stage.found("meta_schema") >= 1.0);
    }
}

/// Declared dialects are not touched in any pair, written in whatever way.
#[tokio::test(start_paused = true)]
async fn c64_what_is_declared_passes_unchanged() {
    for (client, server) in PAIRS {
        for server in [server, if server == LATEST { Era::Legacy("2025-06-18") } else { server }] {
            let list = [
                tool(
                    "a",
                    r#"{"type":"object","$schema" : "http:\/\/json-schema.org\/draft-07\/schema#", "properties":{"t":{"items":[{},{}]}}}"#,
                ),
                tool("b", r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}"#),
            ];
            let client = if client == LATEST && server != Era::Modern { server } else { client };
            let stage = Stage::set(Cell::http((client, server)), &list.join(","), "").await;
            assert_eq!(stage.listed().await.tools, list, "{client:?} {server:?}");
        }
    }
}
