//! `schema.results`: a result's `structuredContent` against the tool's `outputSchema`, in all pairs.

use crate::stage::{CHECKS, Cell, PAIRS, Stage, good, tool_with_output};
use crate::support::{Era, Said, Transport};

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"},"list":{"type":"array","items":{"type":"string"}}},"required":["n"]}"#;
const BLOCK: &str = r#""content":[{"type":"text","text":"done"}]"#;

async fn stage(cell: Cell, mode: &str, schema: &str) -> Stage {
    let lines = if mode.is_empty() { String::new() } else { format!("results = \"{mode}\"") };
    let list = format!("{},{}", tool_with_output("t", r#"{"type":"object"}"#, schema), good("g0"));
    let stage = Stage::set(cell, &list, &lines).await;
    stage.listed().await;
    stage
}

fn checks(stage: &Stage, outcome: &str) -> f64 {
    stage.metric(CHECKS, &["what=\"result\"", &format!("outcome=\"{outcome}\"")])
}

fn structured(value: &str) -> String {
    format!(r#"{BLOCK},"structuredContent":{value}"#)
}

#[track_caller]
fn words(said: &Said) -> String {
    let result = &said.message["result"];
    assert_eq!(result["isError"], true, "{}", said.raw);
    assert!(result.get("structuredContent").is_none(), "what does not fit is not passed on: {}", said.raw);
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

const WRONG: [(&str, &str); 4] = [
    (r#"{"n":"x"}"#, "/n"),
    (r#"{}"#, "n"),
    (r#"{"n":1,"list":["a",1]}"#, "/list/1"),
    (r#"{"n":1,"list":null}"#, "/list"),
];

#[tokio::test(start_paused = true)]
async fn off_is_what_comes_without_a_word() {
    for mode in ["", "off"] {
        for pair in PAIRS {
            let stage = stage(Cell::http(pair), mode, SCHEMA).await;
            for (value, _) in WRONG {
                stage.tools.answers(&structured(value));
                let result = stage.passes("t", "{}").await;
                assert!(result.get("isError").is_none(), "{pair:?}: {result}");
            }
            assert_eq!(stage.metric(CHECKS, &["result"]), 0.0, "{pair:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn warn_passes_it_counted() {
    for pair in PAIRS {
        let stage = stage(Cell::http(pair), "warn", SCHEMA).await;
        for (value, _) in WRONG {
            stage.tools.answers(&structured(value));
            let result = stage.passes("t", "{}").await;
            let wanted: crate::support::Value = serde_json::from_str(value).unwrap();
            assert_eq!(result["structuredContent"], wanted, "{pair:?}");
        }
        stage.tools.answers(&structured(r#"{"n":1}"#));
        stage.passes("t", "{}").await;
        assert_eq!((checks(&stage, "warned"), checks(&stage, "fits")), (4.0, 1.0), "{pair:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn enforce_says_that_the_tool_has_run() {
    for pair in PAIRS {
        let stage = stage(Cell::http(pair), "enforce", SCHEMA).await;
        for (n, (value, at)) in WRONG.into_iter().enumerate() {
            stage.tools.answers(&structured(value));
            let said = stage.call("t", "{}").await;
            let words = words(&said);
            assert!(words.contains(at), "{pair:?} {value}: {words}");
            assert_eq!((stage.calls(), checks(&stage, "refused")), (n + 1, (n + 1) as f64), "{pair:?}");
        }
        stage.tools.answers(&structured(r#"{"n":1,"list":[]}"#));
        let result = stage.passes("t", "{}").await;
        assert_eq!(result["structuredContent"]["n"], 1, "{pair:?}");
        // A tool without a schema may say anything.
        stage.tools.answers(&structured(r#"{"n":"x"}"#));
        stage.passes("g0", "{}").await;
        assert_eq!(checks(&stage, "fits"), 1.0, "{pair:?}");
    }
}

/// An error need not fit (B6.5), and what is not there is not wrong.
#[tokio::test(start_paused = true)]
async fn b6_5_what_is_not_checked() {
    for pair in PAIRS {
        let stage = stage(Cell::http(pair), "enforce", SCHEMA).await;
        for members in [
            format!(r#"{},"isError":true"#, structured(r#"{"n":"x"}"#)),
            BLOCK.to_owned(),
            format!(r#"{BLOCK},"isError":false"#),
        ] {
            stage.tools.answers(&members);
            let result = stage.passes("t", "{}").await;
            assert_eq!(result["content"][0]["text"], "done", "{pair:?} {members}: {result}");
        }
        assert_eq!(checks(&stage, "refused"), 0.0, "{pair:?}");
    }
}

/// `null` is a value, and in the modern revision any value may be a result (A5.6).
#[tokio::test(start_paused = true)]
async fn a5_6_values_that_are_no_objects() {
    for client in [Era::Modern, crate::stage::LATEST] {
        let cell = Cell::http((client, Era::Modern));
        for (schema, fits, fails) in [
            (r#"{"type":"array","items":{"type":"integer"}}"#, "[1,2]", r#"[1,"x"]"#),
            (r#"{"type":"null"}"#, "null", "0"),
            (r#"{"type":"integer"}"#, "5", "null"),
            (r#"{"anyOf":[{"type":"object"},{"type":"null"}]}"#, "null", "false"),
        ] {
            let stage = stage(cell, "enforce", schema).await;
            stage.tools.answers(&structured(fits));
            let result = stage.passes("t", "{}").await;
            assert!(result.get("structuredContent").is_some(), "{client:?} {schema}: {result}");
            stage.tools.answers(&structured(fails));
            let said = stage.call("t", "{}").await;
            words(&said);
        }
    }
}

/// Between like pairs what fits passes to the byte, in whatever form the answer comes.
#[tokio::test(start_paused = true)]
async fn what_fits_passes_to_the_byte() {
    let value = r#"{ "n" : 1 ,"x":[1.50,-0,"\u00fc\/"]}"#;
    for (client, server) in PAIRS {
        let cell = Cell::http((client, server));
        if !cell.is_like() {
            continue;
        }
        let stage = stage(cell, "enforce", SCHEMA).await;
        stage.tools.answers(&structured(value));
        let said = stage.call("t", "{}").await;
        assert!(said.raw.contains(value), "{cell:?}: {}", said.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn enforce_over_every_transport() {
    for (client, server) in PAIRS {
        for (from, to) in [
            (Transport::Stdio, Transport::Stdio),
            (Transport::HttpSse, Transport::HttpSse),
            (Transport::Http, Transport::Stdio),
            (Transport::Stdio, Transport::Http),
        ] {
            let modern = |era: Era, way| era == Era::Modern && way == Transport::HttpSse;
            let from = if modern(client, from) { Transport::Stdio } else { from };
            let to = if modern(server, to) { Transport::Stdio } else { to };
            let cell = Cell { client, from, server, to };
            let stage = stage(cell, "enforce", SCHEMA).await;
            stage.tools.answers(&structured(r#"{"n":"x"}"#));
            let said = stage.call("t", "{}").await;
            assert!(words(&said).contains("/n"), "{cell:?}: {}", said.raw);
            stage.tools.answers(&structured(r#"{"n":1}"#));
            assert_eq!(stage.passes("t", "{}").await["structuredContent"]["n"], 1, "{cell:?}");
        }
    }
}
