//! Circles, and schemas that are large in one way or another: bounded in time and memory, and told.
#![allow(clippy::unwrap_used)]

use super::tests::{findings, walked};
use super::*;
use crate::schema::{Bounds, Documents};
use std::time::Duration;

fn bounds() -> Bounds {
    // Time is looked at where a test means to.
    Bounds { time: Duration::from_secs(60), ..Bounds::default() }
}

fn found(schema: &str, bounds: &Bounds) -> Vec<String> {
    findings(&walked(schema, Dialect::Draft2020, bounds, &Documents::default()))
}

/// `inner` in `count` times `before` and `after`.
fn nested(count: usize, before: &str, inner: &str, after: &str) -> String {
    format!("{}{inner}{}", before.repeat(count), after.repeat(count))
}

#[test]
fn d68_ten_thousand_nested_are_refused_and_bounded() {
    let deep = nested(10_000, r#"{"allOf":["#, "{}", "]}");
    let found_here = found(&deep, &bounds());
    assert_eq!(found_here.len(), 1);
    assert!(
        found_here[0].starts_with("/allOf/0/allOf/0/") && found_here[0].ends_with(" depth"),
        "{found_here:?}"
    );
    let million = nested(1_000_000, r#"{"allOf":["#, "{}", "]}");
    assert_eq!(found(&million, &bounds()), [format!("bytes {} bytes", million.len())]);
    // With bounds that let it in it is walked, without recursion.
    let wide = Bounds { depth: usize::MAX, subschemas: usize::MAX, bytes: usize::MAX, ..bounds() };
    assert_eq!(found(&million, &wide), Vec::<String>::new());
}

#[test]
fn d68_each_bound_is_told_at_its_edge() {
    let three = nested(3, r#"{"not":"#, "{}", "}");
    assert_eq!(found(&three, &Bounds { depth: 4, ..bounds() }), Vec::<String>::new());
    assert_eq!(found(&three, &Bounds { depth: 3, ..bounds() }), ["/not/not/not depth"]);
    assert_eq!(found(&three, &Bounds { subschemas: 4, ..bounds() }), Vec::<String>::new());
    assert_eq!(found(&three, &Bounds { subschemas: 3, ..bounds() }), ["subschemas"]);
    assert_eq!(found(&three, &Bounds { bytes: three.len(), ..bounds() }), Vec::<String>::new());
    assert_eq!(
        found(&three, &Bounds { bytes: three.len() - 1, ..bounds() }),
        [format!("bytes {} bytes", three.len())]
    );
    let two = r##"{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}"##;
    assert_eq!(found(two, &Bounds { references: 2, ..bounds() }), Vec::<String>::new());
    assert_eq!(found(two, &Bounds { references: 1, ..bounds() }), ["references"]);
    let many = format!("{{\"allOf\":[{}true]}}", "true,".repeat(1000));
    assert_eq!(found(&many, &Bounds { time: Duration::ZERO, ..bounds() }), ["time"]);
    // Data is no schema, but it is deep all the same.
    assert_eq!(found(&nested(200, "[", "", "]").replace("[[", "{\"default\":[["), &bounds()).len(), 1);
}

#[test]
fn d68_circles_that_take_nothing_are_told_and_recursion_is_not() {
    for (schema, expected) in [
        (r##"{"$ref":"#"}"##, "/$ref ref_loop #"),
        (r##"{"allOf":[{"$ref":"#"}]}"##, "/allOf/0/$ref ref_loop #"),
        (
            r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[true,{"$ref":"#/$defs/a"}]}}}"##,
            "/$defs/a/$ref ref_loop #/$defs/b",
        ),
        (r##"{"if":{"not":{"$ref":"#"}}}"##, "/if/not/$ref ref_loop #"),
        (
            r##"{"dependentSchemas":{"x":{"oneOf":[{"$ref":"#"}]}}}"##,
            "/dependentSchemas/x/oneOf/0/$ref ref_loop #",
        ),
        (r##"{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}"##, "/allOf/0/$dynamicRef ref_loop #a"),
        (
            r##"{"$id":"http://a.example/","then":{"$ref":"http://a.example/"}}"##,
            "/then/$ref ref_loop http://a.example/",
        ),
    ] {
        assert_eq!(found(schema, &bounds()), [expected], "{schema}");
    }
    // One finding for each circle.
    let schema = r##"{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]},"b":{"$ref":"#/$defs/b"},"c":{"$ref":"#/$defs/b"}}}"##;
    assert_eq!(
        found(schema, &bounds()),
        ["/$defs/a/allOf/0/$ref ref_loop #/$defs/a", "/$defs/b/$ref ref_loop #/$defs/b"]
    );
    for schema in [
        r##"{"properties":{"children":{"items":{"$ref":"#"}}}}"##,
        r##"{"$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"prefixItems":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}"##,
        r##"{"propertyNames":{"$ref":"#"},"contains":{"$ref":"#"},"unevaluatedItems":{"$ref":"#"}}"##,
        r##"{"$defs":{"a":{"$defs":{"b":{"$ref":"#/$defs/a"}}}}}"##,
        r##"{"$dynamicAnchor":"a","items":{"$dynamicRef":"#a"}}"##,
    ] {
        assert_eq!(found(schema, &bounds()), Vec::<String>::new(), "{schema}");
    }
}

/// "Billion laughs": each level applies the next one twice.
#[test]
fn d68_schemas_that_apply_too_often_are_told() {
    let levels = |count: usize| {
        let level = |at: usize| {
            format!(r##""d{at}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##, at + 1)
        };
        let all: Vec<_> = (0..count).map(level).collect();
        format!(r##"{{"$defs":{{{},"d{count}":{{}}}},"$ref":"#/$defs/d0"}}"##, all.join(","))
    };
    assert_eq!(found(&levels(10), &bounds()), Vec::<String>::new());
    assert_eq!(found(&levels(30), &bounds()), ["subschemas references followed"]);
    // So many that no number holds it.
    assert_eq!(found(&levels(200), &bounds())[0], "subschemas references followed");
}

#[test]
fn d68_a_long_chain_of_references_is_as_deep_as_nesting() {
    let chain = |count: usize| {
        let all: Vec<_> =
            (0..count).map(|at| format!(r##""d{at}":{{"$ref":"#/$defs/d{}"}}"##, at + 1)).collect();
        format!(r##"{{"$defs":{{{},"d{count}":{{}}}}}}"##, all.join(","))
    };
    assert_eq!(found(&chain(99), &bounds()), Vec::<String>::new());
    assert_eq!(found(&chain(100), &bounds()), ["/$defs/d0 depth references followed"]);
}

/// The time does not grow with the square of the size, for any of the ways to be large; nor do findings.
#[test]
fn d68_large_schemas_take_linear_time() {
    let list =
        |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(",");
    let count = 20_000;
    let all = Bounds {
        depth: usize::MAX,
        subschemas: usize::MAX,
        bytes: usize::MAX,
        references: usize::MAX,
        ..bounds()
    };
    let wide = format!(
        r##"{{"$defs":{{{}}},"anyOf":[{}]}}"##,
        list(count, &|at| format!(r##""d{at}":{{"$anchor":"a{at}","$dynamicAnchor":"d"}}"##)),
        list(count, &|at| format!(r##"{{"$ref":"#/$defs/d{at}","items":{{"$dynamicRef":"#d"}}}}"##))
    );
    let ids = format!(
        r##"{{"$id":"http://a.example/{}/","anyOf":[{}]}}"##,
        "x".repeat(3000),
        list(count, &|at| format!(r##"{{"$id":"i{at}","not":{{"$ref":"i{at}"}}}}"##))
    );
    let inner = nested(5000, r#"{"x":"#, "{}", "}");
    let pointers = format!(
        r##"{{"items":{inner},"anyOf":[{}]}}"##,
        list(200, &|at| format!(r##"{{"$ref":"#/items{}"}}"##, "/x".repeat(1000 - at)))
    );
    for schema in [wide, ids, pointers] {
        let before = Instant::now();
        let walked = walked(&schema, Dialect::Draft2020, &all, &Documents::default());
        assert!(walked.findings.len() <= FINDINGS);
        assert!(
            before.elapsed() < Duration::from_secs(20),
            "{:?} for {} bytes",
            before.elapsed(),
            schema.len()
        );
    }
}
