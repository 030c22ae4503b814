//! What references resolve to by the rules of each dialect (C64).
#![allow(clippy::unwrap_used)]

use super::tests::{D2019, D2020, NEW, OLD, findings, found, found_in, references, walk_as};
use super::*;

const ID_AND_OLD: &[Dialect] = &[Dialect::Draft6, Dialect::Draft7];

#[test]
fn c64_pointers_are_read_with_their_escapes() {
    let schema = |target: &str| {
        format!(
            r##"{{"properties":{{"p":{{"$ref":"{target}"}}}},
            "definitions":{{"a/b":{{}},"m~n":true,"c%d":{{}},"":{{"definitions":{{"":{{}}}}}},"é x":{{}},"List<A>":{{}},"n":1,"l":[{{}}]}},
            "items":[{{}},{{}}]}}"##
        )
    };
    for target in [
        "#",
        "",
        "#/definitions/a~1b",
        "#/definitions/m~0n",
        "#/definitions/c%25d",
        "#/definitions/",
        "#/definitions//definitions/",
        "#/definitions/%C3%A9%20x",
        "#/definitions/é x",
        "#/definitions/List<A>",
        "#/definitions/List%3CA%3E",
        "#/items/1",
        "#/properties/p",
        "#/definitions/l/0",
        "#/d\\u0065finitions/a~1b",
    ] {
        // A way round in place is looked at elsewhere.
        if target == "#/properties/p" {
            continue;
        }
        for dialect in Dialect::ALL {
            let walked = walk_as(dialect, &schema(target));
            assert_eq!(findings(&walked), Vec::<String>::new(), "{dialect:?} {target}");
            assert_eq!(
                walked.references.iter().map(|one| one.outcome).collect::<Vec<_>>(),
                [Outcome::Local],
                "{target}"
            );
        }
    }
    for (target, why) in [
        ("#/definitions/x", ""),
        ("#/definitions/a/b", ""),
        ("#/definitions/m~n", ""),
        ("#/items/2", ""),
        ("#/items/01", ""),
        ("#/items/-", ""),
        ("#definitions/x", ""),
        ("#nowhere", ""),
        ("#/definitions/c%d", ": a broken percent escape"),
        ("#/definitions/%ff", ": a broken percent escape"),
        ("#/definitions/n", ": what is there is no schema"),
        ("#/definitions/l", ": what is there is no schema"),
    ] {
        found(&schema(target), &[&format!("/properties/p/$ref dangling_ref {target}{why}")]);
    }
    found(r#"{"not":{"$ref":"\ud800"}}"#, &["/not/$ref dangling_ref \"\\ud800\": half a surrogate pair"]);
}

#[test]
fn c64_ids_change_the_base() {
    let id = |dialect: Dialect| if dialect == Dialect::Draft4 { "id" } else { "$id" };
    for dialect in Dialect::ALL {
        let schema = r##"{"ID":"http://a.example/root.json","properties":{
            "whole":{"$ref":"http://a.example/root.json"},"itself":{"$ref":"root.json#/definitions/local"},
            "item":{"$ref":"item.json"},"inner":{"$ref":"http://a.example/item.json#/definitions/inner"},
            "wrong":{"$ref":"#/definitions/inner"},"urn":{"$ref":"urn:example:u#/definitions/u"},"out":{"$ref":"out.json"}},
            "definitions":{"local":{},"i":{"ID":"item.json","definitions":{"inner":{"$ref":"#/definitions/inner2"},"inner2":{},
            "deep":{"ID":"deep/","items":{"$ref":"../root.json#/definitions/local"},"not":{"$ref":"x.json"}}}},
            "u":{"ID":"urn:example:u","definitions":{"u":{"$ref":"#"}},"items":{"$ref":"relative.json"}}}}"##;
        let walked = walk_as(dialect, &schema.replace("ID", id(dialect)));
        assert_eq!(
            references(&walked),
            [
                "/properties/whole/$ref http://a.example/root.json Local",
                "/properties/itself/$ref root.json#/definitions/local Local",
                "/properties/item/$ref item.json Embedded",
                "/properties/inner/$ref http://a.example/item.json#/definitions/inner Embedded",
                "/properties/wrong/$ref #/definitions/inner Dangling",
                "/properties/urn/$ref urn:example:u#/definitions/u Embedded",
                "/properties/out/$ref out.json External",
                "/definitions/i/definitions/inner/$ref #/definitions/inner2 Local",
                "/definitions/i/definitions/deep/items/$ref ../root.json#/definitions/local Embedded",
                "/definitions/i/definitions/deep/not/$ref x.json External",
                "/definitions/u/definitions/u/$ref # Local",
                "/definitions/u/items/$ref relative.json Dangling",
            ],
            "{dialect:?}"
        );
        assert_eq!(walked.findings.len(), 4);
    }
    // The other one's keyword is none.
    found_in(
        &[Dialect::Draft4],
        r##"{"definitions":{"a":{"$id":"a.json"}},"not":{"$ref":"a.json"}}"##,
        &["/not/$ref external_ref a.json"],
    );
    found_in(
        &Dialect::ALL[1..],
        r##"{"definitions":{"a":{"id":"a.json"}},"not":{"$ref":"a.json"}}"##,
        &["/not/$ref external_ref a.json"],
    );
    // An id in data names nothing.
    found(
        r##"{"enum":[{"$id":"a.json","id":"a.json"}],"not":{"$ref":"a.json"}}"##,
        &["/not/$ref external_ref a.json"],
    );
}

#[test]
fn c64_what_stands_beside_a_ref_counts_from_2019_on() {
    // `$id` beside `$ref`: the reference is resolved by the outer base before 2019-09.
    let schema = r##"{"$id":"http://a.example/","id":"http://a.example/","definitions":{"x":{"$id":"x","id":"x"}},
        "not":{"$id":"b/","id":"b/","$ref":"x"}}"##;
    found_in(OLD, schema, &[]);
    found_in(NEW, schema, &["/not/$ref external_ref x"]);
    // Schemas beside `$ref`, and an anchor.
    let schema = r##"{"items":{"$ref":"#/definitions/a","properties":{"p":{"$ref":"#/nowhere"}}},"definitions":{"a":{}}}"##;
    found_in(OLD, schema, &[]);
    found_in(NEW, schema, &["/items/properties/p/$ref dangling_ref #/nowhere"]);
    let schema = r##"{"items":{"$ref":"#/definitions/a","$id":"#b","id":"#b"},"definitions":{"a":{}},"not":{"$ref":"#b"}}"##;
    found_in(OLD, schema, &["/not/$ref dangling_ref #b"]);
    // What generators write: definitions beside the root's `$ref`. They are looked into in every dialect.
    let schema = r##"{"$ref":"#/definitions/a","definitions":{"a":{"properties":{"p":{"$ref":"#/definitions/b"}}},"b":{},
        "never used":{"$ref":"http://e.example/"}}}"##;
    found(schema, &["/definitions/never used/$ref external_ref http://e.example/"]);
}

#[test]
fn c64_anchors_are_those_of_the_dialect() {
    let schema = r##"{"definitions":{"a":{"$id":"#a"}},"not":{"$ref":"#a"}}"##;
    found_in(ID_AND_OLD, schema, &[]);
    found_in(&[Dialect::Draft4], schema, &["/not/$ref dangling_ref #a"]);
    found_in(NEW, schema, &["/not/$ref dangling_ref #a"]);
    found_in(&[Dialect::Draft4], r##"{"definitions":{"a":{"id":"#a"}},"not":{"$ref":"#a"}}"##, &[]);
    // A URI and an anchor in one id.
    let schema = r##"{"$id":"http://a.example/r","definitions":{"a":{"$id":"http://b.example/x#a","items":{"$ref":"#a"}},"c":{"$id":"r#c"}},
        "allOf":[{"$ref":"http://b.example/x#a"},{"$ref":"#c"},{"$ref":"#a"}]}"##;
    found_in(ID_AND_OLD, schema, &["/allOf/2/$ref dangling_ref #a"]);
    let schema = r##"{"$defs":{"a":{"$anchor":"a"},"b":{"$id":"b","$defs":{"c":{"$anchor":"c"}}}},
        "allOf":[{"$ref":"#a"},{"$ref":"b#c"},{"$ref":"#c"},{"$ref":"b#a"}]}"##;
    found_in(NEW, schema, &["/allOf/2/$ref dangling_ref #c", "/allOf/3/$ref dangling_ref b#a"]);
    found_in(
        OLD,
        r##"{"definitions":{"a":{"$anchor":"a"}},"not":{"$ref":"#a"}}"##,
        &["/not/$ref dangling_ref #a"],
    );
    let schema =
        r##"{"$defs":{"a":{"$dynamicAnchor":"a"}},"allOf":[{"$ref":"#a"},{"items":{"$dynamicRef":"#a"}}]}"##;
    found_in(D2020, schema, &[]);
    found_in(D2019, schema, &["/allOf/0/$ref dangling_ref #a"]);
    found_in(D2020, r##"{"items":{"$dynamicRef":"#a"}}"##, &["/items/$dynamicRef dangling_ref #a"]);
    found_in(D2019, r##"{"$recursiveAnchor":true,"items":{"$recursiveRef":"#"}}"##, &[]);
}

#[test]
fn c64_an_embedded_resource_may_be_of_another_dialect() {
    let schema = r##"{"$defs":{"old":{"$id":"old","$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"$id":"#x"}},
        "allOf":[{"$ref":"#x","properties":{"p":{"$ref":"#nowhere"}}}]},"plain":{"$schema":"http://json-schema.org/draft-07/schema#",
        "$ref":"#/$defs/t","not":{"$ref":"#nowhere"}},"t":{}}}"##;
    // Within a resource `$schema` says nothing.
    found_in(NEW, schema, &["/$defs/plain/not/$ref dangling_ref #nowhere"]);
    let schema = r##"{"$defs":{"odd":{"$id":"http://odd.example/","$schema":"urn:odd","items":{"$ref":"#/nowhere"},
        "not":{"$ref":"http://e.example/"}}},"items":{"$ref":"#/nowhere"}}"##;
    found_in(
        NEW,
        schema,
        &[
            "/$defs/odd/$schema unknown_dialect urn:odd",
            "/$defs/odd/not/$ref external_ref http://e.example/",
            "/items/$ref dangling_ref #/nowhere",
        ],
    );
}

#[test]
fn c64_the_declared_dialect_is_told() {
    for (declared, dialect) in [
        ("http://json-schema.org/draft-04/schema#", Dialect::Draft4),
        ("http://json-schema.org/draft-06/schema", Dialect::Draft6),
        ("https://json-schema.org/draft-07/schema", Dialect::Draft7),
        ("https://json-schema.org/draft/2019-09/schema", Dialect::Draft2019),
        ("https://json-schema.org/draft/2020-12/schema#", Dialect::Draft2020),
    ] {
        let walked = walk_as(Dialect::DEFAULT, &format!(r#"{{"$schema":"{declared}"}}"#));
        assert_eq!((walked.dialect, walked.findings), (Some(dialect), vec![]), "{declared}");
    }
    for (declared, word) in [
        ("\"http://canary.example/schema\"", "http://canary.example/schema"),
        ("7", "7"),
        ("\"\"", ""),
        ("null", "null"),
        ("{\"$ref\":\"#\"}", "{\"$ref\":\"#\"}"),
    ] {
        let walked = walk_as(Dialect::DEFAULT, &format!(r#"{{"$schema":{declared}}}"#));
        let expected = format!("/$schema unknown_dialect {word}");
        assert_eq!(
            (walked.dialect, findings(&walked)),
            (None, vec![expected.trim().to_owned()]),
            "{declared}"
        );
    }
    // What is not known is not judged, but for what a validator would fetch that goes on in 2020-12.
    let walked = walk_as(
        Dialect::DEFAULT,
        r##"{"$schema":"urn:mine","allOf":[{"$ref":"#/nowhere"},{"$ref":"#"},{"$ref":"mine.json"},{"$ref":"http://e.example/"}]}"##,
    );
    assert_eq!(
        findings(&walked),
        [
            "/$schema unknown_dialect urn:mine",
            "/allOf/2/$ref external_ref mine.json",
            "/allOf/3/$ref external_ref http://e.example/"
        ]
    );
}

#[test]
fn c64_what_a_pointer_leads_to_is_a_schema() {
    // Under keywords that no dialect knows, and through several of them.
    let schema = r##"{"components":{"schemas":{"A":{"properties":{"b":{"$ref":"#/components/schemas/B"}}},"B":{"$ref":"http://e.example/"},
        "never led to":{"$ref":"http://f.example/"}}},"items":{"$ref":"#/components/schemas/A"}}"##;
    found(schema, &["/components/schemas/B/$ref external_ref http://e.example/"]);
    // An id there names nothing; but it is the base of what is in it.
    let schema = r##"{"x":{"y":{"$id":"http://a.example/y","id":"http://a.example/y","items":{"$ref":"#/z"},"z":{}}},"items":{"$ref":"#/x/y"},
        "not":{"$ref":"http://a.example/y"}}"##;
    found(schema, &["/not/$ref external_ref http://a.example/y"]);
    // Data that is referred to is a schema from there on.
    found(
        r##"{"enum":[{"items":{"$ref":"#/nowhere"}}],"items":{"$ref":"#/enum/0"}}"##,
        &["/enum/0/items/$ref dangling_ref #/nowhere"],
    );
    // And so is a map of schemas: its names are keywords then.
    found(
        r##"{"$defs":{"not":{"$ref":"#/nowhere"}},"properties":{"p":{"$ref":"#/$defs"}}}"##,
        &["/$defs/not/$ref dangling_ref #/nowhere"],
    );
}
