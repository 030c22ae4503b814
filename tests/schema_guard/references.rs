//! C62, D67: references to the network and to files, wherever they stand; what merely looks like one; references within.

use crate::canary::Canary;
use crate::case::Verdict::{Bad, Good, Note};
use crate::case::{Case, judged, judged_in};
use crate::stage::{Cell, PAIRS, Stage, bad, good, tool};
use crate::support::{Era, Transport};

const AT_A: &str = "/inputSchema/properties/a/$ref";
const OUT: &str = "external_ref";

/// A reference to this, as raw JSON.
fn to(target: &str) -> String {
    format!(r#"{{"$ref":"{target}"}}"#)
}

/// Every way to write that something is elsewhere.
#[tokio::test(start_paused = true)]
async fn c62_d67_what_leads_out_is_left_out_and_never_followed() {
    let canary = Canary::new();
    let targets = [
        ("http", canary.url()),
        ("http and a pointer", format!("{}#/$defs/a", canary.url())),
        ("https", format!("https://{}/x.json", canary.authority())),
        ("a host name", "https://canary.test/x.json".to_owned()),
        ("upper case", format!("HTTP://{}/x.json", canary.authority())),
        ("an escaped solidus", canary.url().replace('/', r"\/")),
        ("a file", canary.file_url()),
        ("the file of passwords", "file:///etc/passwd".to_owned()),
        ("a host without a scheme", format!("//{}/x.json", canary.authority())),
        ("a file beside", "other.json".to_owned()),
        ("a file beside, and a pointer", "other.json#/a".to_owned()),
        ("a file above", "../x.json".to_owned()),
        ("an absolute path", "/etc/passwd".to_owned()),
        ("data", "data:application/json,true".to_owned()),
        ("a URN", "urn:acme:schema".to_owned()),
        ("another scheme", "ftp://canary.test/x".to_owned()),
        ("a query", "?x=1".to_owned()),
    ];
    let cases: Vec<_> =
        targets.iter().map(|(what, target)| Case::property(what, to(target), Bad(OUT, AT_A))).collect();
    judged(&canary, &cases).await;
}

/// Every place at which a schema may stand, in both schemas of a tool.
#[tokio::test(start_paused = true)]
async fn c62_wherever_it_stands() {
    let canary = Canary::new();
    let out = to(&canary.url());
    let places = [
        ("never used", "$defs/d", format!(r#""$defs":{{"d":{out}}}"#)),
        (
            "deep down",
            "properties/a/properties/b/items",
            format!(r#""properties":{{"a":{{"properties":{{"b":{{"items":{out}}}}}}}}}"#),
        ),
        ("additionalProperties", "additionalProperties", format!(r#""additionalProperties":{out}"#)),
        (
            "patternProperties",
            "patternProperties/^a~1b~0$",
            format!(r#""patternProperties":{{"^a/b~$":{out}}}"#),
        ),
        ("propertyNames", "propertyNames", format!(r#""propertyNames":{out}"#)),
        ("unevaluatedProperties", "unevaluatedProperties", format!(r#""unevaluatedProperties":{out}"#)),
        ("dependentSchemas", "dependentSchemas/x", format!(r#""dependentSchemas":{{"x":{out}}}"#)),
        ("allOf", "allOf/1", format!(r#""allOf":[true,{out}]"#)),
        ("anyOf", "anyOf/0", format!(r#""anyOf":[{out}]"#)),
        ("oneOf", "oneOf/0", format!(r#""oneOf":[{out}]"#)),
        ("not", "not", format!(r#""not":{out}"#)),
        ("if", "if", format!(r#""if":{out}"#)),
        ("then", "then", format!(r#""if":true,"then":{out}"#)),
        ("else", "else", format!(r#""if":true,"else":{out}"#)),
        (
            "prefixItems",
            "properties/a/prefixItems/0",
            format!(r#""properties":{{"a":{{"prefixItems":[{out}]}}}}"#),
        ),
        ("contains", "properties/a/contains", format!(r#""properties":{{"a":{{"contains":{out}}}}}"#)),
        (
            "unevaluatedItems",
            "properties/a/unevaluatedItems",
            format!(r#""properties":{{"a":{{"unevaluatedItems":{out}}}}}"#),
        ),
        (
            "contentSchema",
            "properties/a/contentSchema",
            format!(r#""properties":{{"a":{{"contentSchema":{out}}}}}"#),
        ),
        ("a name with a solidus", "properties/x~1y", format!(r#""properties":{{"x/y":{out}}}"#)),
        ("a name like a keyword of data", "properties/const", format!(r#""properties":{{"const":{out}}}"#)),
        (
            "beside others",
            "properties/a",
            format!(r#""properties":{{"a":{{"type":"string","$ref":"{}","x":1}}}}"#, canary.url()),
        ),
    ];
    let mut cases = Vec::new();
    for (what, at, members) in &places {
        for schema in ["inputSchema", "outputSchema"] {
            let at: &'static str = format!("/{schema}/{at}/$ref").leak();
            let schema_text = format!(r#"{{"type":"object",{members}}}"#);
            cases.push(match schema {
                "inputSchema" => Case::input(what, &schema_text, Bad(OUT, at)),
                _ => Case::output(what, &schema_text, Bad(OUT, at)),
            });
        }
    }
    let root = |out: &str| format!(r#"{{"type":"object","$ref":"{out}"}}"#);
    cases.push(Case::input("the root", root(&canary.url()), Bad(OUT, "/inputSchema/$ref")));
    cases.push(Case::output("the root of the output", root(&canary.url()), Bad(OUT, "/outputSchema/$ref")));
    judged(&canary, &cases).await;
}

/// Other keywords that refer, names that are written with escapes, and members that stand there twice.
#[tokio::test(start_paused = true)]
async fn c62_in_whatever_keyword_it_is() {
    let canary = Canary::new();
    let url = canary.url();
    let cases = [
        Case::property(
            "$dynamicRef",
            format!(r#"{{"$dynamicRef":"{url}#x"}}"#),
            Bad(OUT, "/inputSchema/properties/a/$dynamicRef"),
        ),
        Case::input(
            "$recursiveRef",
            format!(
                r#"{{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{{"a":{{"$recursiveRef":"{url}"}}}}}}"#
            ),
            Bad(OUT, "/inputSchema/properties/a/$recursiveRef"),
        ),
        Case::property("an escaped name", format!(r#"{{"\u0024r\u0065f":"{url}"}}"#), Bad(OUT, AT_A)),
        Case::property("an escaped target", r#"{"$ref":"\u0068ttps://canary.test/x"}"#, Bad(OUT, AT_A)),
        Case::property(
            "twice, the last leads out",
            format!(r##"{{"$ref":"#","$ref":"{url}"}}"##),
            Bad("", "/inputSchema/properties/a"),
        ),
        Case::property(
            "twice, the first leads out",
            format!(r##"{{"\u0024ref":"{url}","$ref":"#"}}"##),
            Bad("", "/inputSchema/properties/a"),
        ),
        Case::input(
            "properties twice",
            format!(r#"{{"type":"object","properties":{{}},"properties":{{"a":{{"$ref":"{url}"}}}}}}"#),
            Bad("", "/inputSchema"),
        ),
    ];
    judged(&canary, &cases).await;
}

/// A base that is said to be elsewhere is no reason to go there; what is within it is within.
#[tokio::test(start_paused = true)]
async fn c62_ids_and_dialects_elsewhere() {
    let canary = Canary::new();
    let (url, authority) = (canary.url(), canary.authority());
    let cases = [
        Case::input(
            "$schema elsewhere",
            format!(r#"{{"$schema":"{url}","type":"object"}}"#),
            Note("unknown_dialect"),
        ),
        Case::output(
            "$schema of the output elsewhere",
            format!(r#"{{"$schema":"{url}","type":"object"}}"#),
            Note("unknown_dialect"),
        ),
        Case::input(
            "$schema elsewhere, and a reference",
            format!(
                r#"{{"$schema":"https://schemas.acme.test/dialect","type":"object","properties":{{"a":{{"$ref":"{url}"}}}}}}"#
            ),
            Bad("", AT_A),
        ),
        Case::input("$id elsewhere", format!(r#"{{"$id":"{url}","type":"object"}}"#), Good),
        Case::input(
            "$id elsewhere, and a reference to it",
            format!(
                r##"{{"$id":"{url}","type":"object","properties":{{"a":{{"$ref":"{url}#/$defs/s"}},"b":{{"$ref":"x.json#/$defs/s"}},"c":{{"$ref":"#/$defs/s"}}}},"$defs":{{"s":{{"type":"string"}}}}}}"##
            ),
            Good,
        ),
        Case::input(
            "$id elsewhere, and a reference beside it",
            format!(r#"{{"$id":"{url}","type":"object","properties":{{"a":{{"$ref":"y.json"}}}}}}"#),
            Bad(OUT, AT_A),
        ),
        Case::input(
            "what is elsewhere by its name is embedded",
            format!(
                r#"{{"type":"object","properties":{{"a":{{"$ref":"{url}"}},"b":{{"$ref":"http://{authority}/x.json#/$defs/i"}}}},"$defs":{{"e":{{"$id":"{url}","type":"string","$defs":{{"i":{{"type":"integer"}}}}}}}}}}"#
            ),
            Good,
        ),
        Case::property("a meta-schema", to("https://json-schema.org/draft/2020-12/schema"), Good),
        Case::property("an older one", to("http://json-schema.org/draft-07/schema#"), Good),
    ];
    judged(&canary, &cases).await;
}

/// Data is no schema, and a property may have any name.
#[tokio::test(start_paused = true)]
async fn c62_what_is_no_reference() {
    let canary = Canary::new();
    let out = to(&canary.url());
    let url = canary.url();
    let cases = [
        Case::property("const", format!(r#"{{"const":{out}}}"#), Good),
        Case::property("enum", format!(r#"{{"enum":[{out},1]}}"#), Good),
        Case::property("default", format!(r#"{{"default":{out}}}"#), Good),
        Case::property("examples", format!(r#"{{"examples":[{out}]}}"#), Good),
        Case::property(
            "within const",
            format!(r#"{{"const":{{"allOf":[{out}],"properties":{{"b":{out}}}}}}}"#),
            Good,
        ),
        Case::input(
            "a property of that name",
            r#"{"type":"object","properties":{"$ref":{"type":"string"},"$id":{"type":"string"},"$schema":{"const":1}}}"#,
            Good,
        ),
        Case::input(
            "a definition of that name",
            r##"{"type":"object","$defs":{"$ref":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/$ref"}}}"##,
            Good,
        ),
        Case::input(
            "a required one",
            r#"{"type":"object","required":["$ref"],"properties":{"$ref":true}}"#,
            Good,
        ),
        Case::property(
            "in words",
            format!(r#"{{"description":"see {url}","title":"$ref: {url}","$comment":"{url}"}}"#),
            Good,
        ),
        Case::property("a keyword that nobody knows", format!(r#"{{"x-acme":{out}}}"#), Good),
        Case::property("dependentRequired", r#"{"dependentRequired":{"$ref":["b"]}}"#, Good),
    ];
    judged(&canary, &cases).await;
}

/// A reference within has a target, or the tool is bad.
#[tokio::test(start_paused = true)]
async fn c62_references_within() {
    let canary = Canary::new();
    let with = |reference: &str, more: &str| {
        format!(r#"{{"type":"object","properties":{{"a":{{"$ref":"{reference}"}}}}{more}}}"#)
    };
    let defs = r##","$defs":{"s":{"type":"string"},"a/b":{},"m~n":{},"p q":{},"é":{},"list":{"prefixItems":[{},{"$anchor":"second"}]},"named":{"$anchor":"here"},"dyn":{"$dynamicAnchor":"node"}}"##;
    let good = [
        ("a definition", "#/$defs/s"),
        ("a solidus", "#/$defs/a~1b"),
        ("a tilde", "#/$defs/m~0n"),
        ("a space", "#/$defs/p%20q"),
        ("a letter of another alphabet", "#/$defs/%C3%A9"),
        ("an index", "#/$defs/list/prefixItems/1"),
        ("an anchor", "#here"),
        ("an anchor deep down", "#second"),
        ("a dynamic anchor", "#node"),
        ("the root", "#"),
        ("a property", "#/properties/a"),
    ];
    let bad = [
        ("no such definition", "#/$defs/none"),
        ("no such index", "#/$defs/list/prefixItems/2"),
        ("no index", "#/$defs/list/prefixItems/x"),
        ("an index with a nought before it", "#/$defs/list/prefixItems/01"),
        ("no such anchor", "#nowhere"),
        ("another case", "#/$defs/S"),
    ];
    let mut cases: Vec<_> = good
        .iter()
        .filter(|(_, target)| *target != "#/properties/a")
        .map(|(what, target)| Case::input(what, with(target, defs), Good))
        .collect();
    cases.extend(
        bad.iter().map(|(what, target)| Case::input(what, with(target, defs), Bad("dangling_ref", AT_A))),
    );
    // It is its own target.
    cases.push(Case::input(
        "itself",
        with("#/properties/a", defs),
        Bad("ref_loop", "/inputSchema/properties/a"),
    ));
    cases.push(Case::output(
        "of the output",
        with("#/$defs/none", ""),
        Bad("dangling_ref", "/outputSchema/properties/a/$ref"),
    ));
    judged(&canary, &cases).await;
}

/// The same over every transport: where there is no HTTP there is no network either.
#[tokio::test(start_paused = true)]
async fn c62_d67_over_every_transport() {
    let canary = Canary::new();
    for (client, server) in PAIRS {
        for from in [Transport::Http, Transport::HttpSse, Transport::Stdio] {
            for to in [Transport::Http, Transport::HttpSse, Transport::Stdio] {
                let old = |era: Era, way| era == Era::Modern && way == Transport::HttpSse;
                if old(client, from) || old(server, to) {
                    continue;
                }
                let cell = Cell { client, from, server, to };
                let cases = [
                    Case::property("http", self::to(&canary.url()), Bad(OUT, AT_A)),
                    Case::output("a file", self::to(&canary.file_url()), Bad(OUT, "/outputSchema/$ref"))
                        .of_a_legacy_server(Bad("", "/outputSchema")),
                    Case::property("data", format!(r#"{{"const":{{"$ref":"{}"}}}}"#, canary.url()), Good),
                ];
                judged_in(&canary, cell, &cases).await;
            }
        }
    }
}

/// One that leads out and is to pass does so as it is: it is not made a schema that takes anything.
#[tokio::test(start_paused = true)]
async fn c62_what_is_let_pass_is_not_rewritten() {
    let canary = Canary::new();
    for pair in PAIRS {
        let own = tool("out", &format!(r#"{{"type":"object","properties":{{"a":{}}}}}"#, to(&canary.url())));
        let list = format!("{},{own},{}", good("g0"), good("g1"));
        let stage = Stage::set(Cell::http(pair), &list, "policy = \"warn\"").await;
        let shown = stage.listed().await;
        assert_eq!(shown.names(), ["g0", "out", "g1"], "{pair:?}");
        assert_eq!(shown.raw_tool("out"), own, "{pair:?}");
        stage.passes("out", r#"{"a":"x"}"#).await;
        canary.is_untouched(&stage.net);
    }
}

/// Old revisions' lists are read with the same eyes.
#[tokio::test(start_paused = true)]
async fn c62_of_servers_of_every_revision() {
    let canary = Canary::new();
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        for client in [Era::Modern, Era::Legacy(revision)] {
            let list = format!("{},{}", bad("out"), good("g0"));
            let cell = Cell::http((client, Era::Legacy(revision)));
            let stage = Stage::set(cell, &list, "").await;
            assert_eq!(stage.listed().await.names(), ["g0"], "{cell:?}");
            stage.refused("out").await;
            canary.is_untouched(&stage.net);
        }
    }
    for revision in ["2025-06-18", "2025-03-26", "2024-11-05"] {
        let list = format!("{},{}", bad("out"), good("g0"));
        let stage = Stage::set(Cell::http((Era::Legacy(revision), Era::Modern)), &list, "").await;
        assert_eq!(stage.listed().await.names(), ["g0"], "{revision}");
        stage.refused("out").await;
    }
}
