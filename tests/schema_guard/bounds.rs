//! D68, invariant 5: schemas that are deep, wide, long, or that grow when they are read, each beside a good one.

use std::time::{Duration, Instant};

use crate::canary::Canary;
use crate::case::Verdict::{Bad, Good};
use crate::case::{Case, judged};
use crate::stage::{Cell, PAIRS, Stage, good, tool};

/// So many times one in the other.
fn nested(n: usize) -> String {
    format!(r#"{{"type":"object","properties":{{"a":{}{{}}{}}}}}"#, r#"{"allOf":["#.repeat(n), "]}".repeat(n))
}

/// So many properties, each with this schema.
fn wide(n: usize, each: &str) -> String {
    let properties: Vec<_> = (0..n).map(|n| format!(r#""{n}":{each}"#)).collect();
    format!(r##"{{"type":"object","properties":{{{}}},"$defs":{{"a":{{}}}}}}"##, properties.join(","))
}

/// Each level applies the next one twice.
fn laughs(levels: usize, keyword: &str) -> String {
    let level = |n: usize| {
        let next = format!(r##"{{"$ref":"#/$defs/l{}"}}"##, n + 1);
        format!(r#""l{n}":{{"{keyword}":[{next},{next}]}}"#)
    };
    let levels: Vec<_> = (0..levels).map(level).chain([format!(r#""l{levels}":{{}}"#)]).collect();
    format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/l0"}}}},"$defs":{{{}}}}}"##,
        levels.join(",")
    )
}

/// A chain of references of this length.
fn chain(n: usize) -> String {
    let link = |n: usize| format!(r##""c{n}":{{"$ref":"#/$defs/c{}"}}"##, n + 1);
    let links: Vec<_> = (0..n).map(link).chain([format!(r#""c{n}":{{}}"#)]).collect();
    format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/c0"}}}},"$defs":{{{}}}}}"##,
        links.join(",")
    )
}

#[tokio::test(start_paused = true)]
async fn d68_deep_wide_and_long() {
    let canary = Canary::new();
    let long = "x".repeat(300 * 1024);
    let at = "/inputSchema";
    let cases = [
        Case::input("deep enough", nested(40), Good),
        Case::input("too deep", nested(200), Bad("depth", at)),
        Case::input("ten thousand deep", nested(10_000), Bad("", at)),
        Case::input("wide enough", wide(1000, "{}"), Good),
        Case::input("too wide", wide(12_000, "{}"), Bad("subschemas", at)),
        Case::property("long enough", format!(r#"{{"description":"{}"}}"#, &long[..100 * 1024]), Good),
        Case::property("too long", format!(r#"{{"description":"{long}"}}"#), Bad("bytes", at)),
        Case::input("references enough", wide(500, r##"{"$ref":"#/$defs/a"}"##), Good),
        Case::input("too many references", wide(1100, r##"{"$ref":"#/$defs/a"}"##), Bad("references", at)),
        Case::output("too deep an output", nested(200), Bad("depth", "/outputSchema")),
        Case::output("too wide an output", wide(12_000, "{}"), Bad("subschemas", "/outputSchema")),
    ];
    judged(&canary, &cases).await;
}

#[tokio::test(start_paused = true)]
async fn d68_what_grows_when_it_is_read() {
    let canary = Canary::new();
    let at = "/inputSchema";
    let cases = [
        Case::input("eight laughs", laughs(8, "allOf"), Good),
        Case::input("a billion laughs by allOf", laughs(30, "allOf"), Bad("subschemas", at)),
        Case::input("by anyOf", laughs(30, "anyOf"), Bad("subschemas", at)),
        Case::input("by oneOf", laughs(100, "oneOf"), Bad("subschemas", at)),
        Case::input("a chain", chain(50), Good),
        // Whoever checks a value follows it step by step.
        Case::input("a chain without end", chain(500), Bad("depth", at)),
    ];
    judged(&canary, &cases).await;
}

/// Circles that take nothing of the value have no end; those that take something end with the value.
#[tokio::test(start_paused = true)]
async fn d68_circles() {
    let canary = Canary::new();
    let at = "/inputSchema";
    let defs = |reference: &str, defs: &str| {
        format!(r#"{{"type":"object","properties":{{"a":{{"$ref":"{reference}"}}}},"$defs":{{{defs}}}}}"#)
    };
    let circle = Bad("ref_loop", at);
    let cases = [
        Case::input("the root itself", r##"{"type":"object","$ref":"#"}"##, circle),
        Case::input(
            "two",
            defs("#/$defs/a", r##""a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}"##),
            circle,
        ),
        Case::input("by allOf", defs("#/$defs/a", r##""a":{"allOf":[true,{"$ref":"#/$defs/a"}]}"##), circle),
        Case::input("by not", defs("#/$defs/a", r##""a":{"not":{"$ref":"#/$defs/a"}}"##), circle),
        Case::input("by if", defs("#/$defs/a", r##""a":{"if":{"$ref":"#/$defs/a"}}"##), circle),
        Case::input(
            "by dependentSchemas",
            defs("#/$defs/a", r##""a":{"dependentSchemas":{"x":{"$ref":"#/$defs/a"}}}"##),
            circle,
        ),
        Case::input(
            "by $dynamicRef",
            defs("#/$defs/a", r##""a":{"$dynamicAnchor":"n","$dynamicRef":"#n"}"##),
            circle,
        ),
        Case::input("by an anchor", defs("#x", r##""a":{"$anchor":"x","anyOf":[{"$ref":"#x"}]}"##), circle),
        Case::output(
            "of the output",
            r##"{"type":"object","allOf":[{"$ref":"#"}]}"##,
            Bad("ref_loop", "/outputSchema"),
        ),
        Case::input("a list of lists", defs("#/$defs/a", r##""a":{"items":{"$ref":"#/$defs/a"}}"##), Good),
        Case::input(
            "a tree",
            defs(
                "#/$defs/a",
                r##""a":{"allOf":[{"properties":{"l":{"$ref":"#/$defs/a"},"r":{"$ref":"#/$defs/a"}}}]}"##,
            ),
            Good,
        ),
        Case::input(
            "by additionalProperties",
            defs("#/$defs/a", r##""a":{"additionalProperties":{"$ref":"#/$defs/a"}}"##),
            Good,
        ),
        Case::input(
            "by propertyNames",
            defs("#/$defs/a", r##""a":{"propertyNames":{"minLength":1},"contains":{"$ref":"#/$defs/a"}}"##),
            Good,
        ),
    ];
    judged(&canary, &cases).await;
}

/// D68: bounded time and memory, and a proxy that goes on.
#[tokio::test(start_paused = true)]
async fn d68_a_million_deep() {
    for pair in PAIRS {
        let list = format!("{},{},{}", good("g0"), tool("deep", &nested(1_000_000)), good("g1"));
        // In the words of its text, where a message may be so large.
        let stage = Stage::with(
            Cell::http(pair),
            &list,
            "[limits]\nevent_bytes = \"64MiB\"",
            "limits = { message_bytes = \"64MiB\" }",
            "",
        )
        .await;
        let began = Instant::now();
        let shown = stage.listed().await;
        assert_eq!(shown.names(), ["g0", "g1"], "{pair:?}");
        assert!(began.elapsed() < Duration::from_secs(30), "{pair:?}: {:?}", began.elapsed());
        stage.refused("deep").await;
        stage.passes("g0", "{}").await;
    }
}

/// Each bound is the operator's to set.
#[tokio::test(start_paused = true)]
async fn inv5_each_bound_is_a_setting() {
    // What is just within is good; `lines` bound it otherwise.
    let table = [
        ("depth", nested(20), "depth = 50", "depth = 10"),
        ("subschemas", wide(200, "{}"), "subschemas = 300", "subschemas = 100"),
        ("bytes", wide(200, "{}"), "bytes = \"10KiB\"", "bytes = \"1KiB\""),
        ("references", wide(50, r##"{"$ref":"#/$defs/a"}"##), "references = 60", "references = 40"),
    ];
    for (kind, schema, wider, narrower) in table {
        for (lines, fits) in [(wider, true), (narrower, false)] {
            let list = format!("{},{}", tool("t", &schema), tool("g0", r#"{"type":"object"}"#));
            let stage = Stage::set(Cell::http(PAIRS[0]), &list, lines).await;
            let wanted: &[&str] = if fits { &["t", "g0"] } else { &["g0"] };
            assert_eq!(stage.listed().await.names(), wanted, "{kind}: {lines}");
            assert_eq!(stage.found(kind) > 0.0, !fits, "{kind}: {lines}");
        }
    }
}

/// The time that one tool may take, where nothing else bounds it.
#[tokio::test(start_paused = true)]
async fn inv5_time_is_bounded() {
    let list = format!("{},{}", tool("long", &wide(200_000, "{}")), good("g0"));
    let lines = "time = \"1ms\"\nsubschemas = 1000000\nbytes = \"16MiB\"";
    for pair in PAIRS {
        let front = "[limits]\nevent_bytes = \"64MiB\"";
        let stage = Stage::with(Cell::http(pair), &list, front, "", lines).await;
        let names = stage.listed().await.names();
        assert!(!names.contains(&"long".to_owned()), "{pair:?}");
        assert!(stage.found("time") >= 1.0, "{pair:?}");
        stage.refused("long").await;
    }
}

/// What is too much is passed on where policy is to warn, as it is.
#[tokio::test(start_paused = true)]
async fn d68_under_warn() {
    for pair in PAIRS {
        let own = tool("deep", &nested(10_000));
        let stage = Stage::set(Cell::http(pair), &format!("{own},{}", good("g0")), "policy = \"warn\"").await;
        // A tree of a test's own would be too deep for its reader.
        let mut answer = stage.proxy.open(&stage.ask("tools/list")).await;
        let text = String::from_utf8(answer.pieces().await.0).unwrap();
        assert!(text.contains(&own), "{pair:?}: it passes to the byte");
        stage.passes("g0", "{}").await;
    }
}
