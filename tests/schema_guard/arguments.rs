//! `schema.arguments`: a call's arguments against the tool's `inputSchema`, in all pairs.

use crate::stage::{CHECKS, Cell, PAIRS, Stage, good, tool, tool_with_output};
use crate::support::log::Log;
use crate::support::{Era, Said, Transport, Value};

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1},"s":{"type":"string"},"deep":{"type":"object","properties":{"list":{"type":"array","items":{"type":"boolean"}}}}},"required":["n"]}"#;

async fn stage(pair: (Era, Era), mode: &str) -> Stage {
    let schema = if mode.is_empty() { String::new() } else { format!("arguments = \"{mode}\"") };
    let stage = Stage::set(Cell::http(pair), &format!("{},{}", tool("t", SCHEMA), good("g0")), &schema).await;
    stage.listed().await;
    stage
}

fn checks(stage: &Stage, outcome: &str) -> f64 {
    stage.metric(CHECKS, &["what=\"arguments\"", &format!("outcome=\"{outcome}\"")])
}

/// The result of a call that the proxy has answered itself, and its words.
#[track_caller]
fn words(said: &Said) -> String {
    let result = &said.message["result"];
    assert_eq!(result["isError"], true, "an input error is the tool's own: {}", said.raw);
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Arguments that do not fit, and what is to be said of them.
const WRONG: [(&str, &[&str]); 6] = [
    (r#"{"n":"1"}"#, &["/n"]),
    (r#"{"n":0}"#, &["/n"]),
    (r#"{}"#, &["n"]),
    (r#"{"n":1,"s":5}"#, &["/s"]),
    (r#"{"n":1.5,"s":null}"#, &["/n", "/s"]),
    (r#"{"n":1,"deep":{"list":[true,"x",false,0]}}"#, &["/deep/list/1", "/deep/list/3"]),
];

#[tokio::test(start_paused = true)]
async fn off_is_what_comes_without_a_word() {
    for mode in ["", "off"] {
        for pair in PAIRS {
            let stage = stage(pair, mode).await;
            for (arguments, _) in WRONG {
                stage.passes("t", arguments).await;
            }
            assert_eq!(stage.metric(CHECKS, &["arguments"]), 0.0, "{pair:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn warn_passes_it_logged_and_counted() {
    let log = Log::open();
    for pair in PAIRS {
        let stage = stage(pair, "warn").await;
        for (n, (arguments, _)) in WRONG.into_iter().enumerate() {
            stage.passes("t", arguments).await;
            assert_eq!(checks(&stage, "warned"), (n + 1) as f64, "{pair:?} {arguments}");
        }
        stage.passes("t", r#"{"n":1}"#).await;
        assert_eq!((checks(&stage, "fits"), checks(&stage, "refused")), (1.0, 0.0), "{pair:?}");
    }
    assert!(!log.with(&["WARN", "/deep/list/1"]).is_empty(), "{:?}", log.with(&["WARN"]));
}

#[tokio::test(start_paused = true)]
async fn enforce_answers_in_the_tools_place() {
    for pair in PAIRS {
        let stage = stage(pair, "enforce").await;
        for (n, (arguments, at)) in WRONG.into_iter().enumerate() {
            let said = stage.call("t", arguments).await;
            let words = words(&said);
            for at in at {
                assert!(words.contains(at), "{pair:?} {arguments}: {words}");
            }
            assert_eq!((stage.calls(), checks(&stage, "refused")), (0, (n + 1) as f64), "{pair:?}");
        }
        for arguments in [r#"{"n":1}"#, r#"{"n":1.0,"s":"x","other":[]}"#, r#"{"n":7,"deep":{"list":[]}}"#] {
            stage.passes("t", arguments).await;
        }
        assert_eq!(checks(&stage, "fits"), 3.0, "{pair:?}");
        stage.passes("g0", "{}").await;
    }
}

/// A call without arguments is one with none.
#[tokio::test(start_paused = true)]
async fn absent_arguments_are_none() {
    for pair in PAIRS {
        let stage = stage(pair, "enforce").await;
        let call = |name: &str| {
            let ask = stage.ask("tools/call").params(&format!(r#""name":"{name}""#));
            if pair.0 == Era::Modern { ask.header("Mcp-Name", name) } else { ask }
        };
        let said = stage.party.answered(&call("t")).await;
        assert!(words(&said).contains('n'), "{pair:?}: n is required: {}", said.raw);
        assert_eq!(stage.calls(), 0, "{pair:?}");
        stage.party.result(&call("g0")).await;
        assert_eq!(stage.calls(), 1, "{pair:?}");
    }
}

/// As many paths as are worth reading.
#[tokio::test(start_paused = true)]
async fn inv5_words_are_bounded() {
    for pair in PAIRS {
        let stage = stage(pair, "enforce").await;
        let list: Vec<_> = (0..5000).map(|n| n.to_string()).collect();
        let said = stage.call("t", &format!(r#"{{"n":1,"deep":{{"list":[{}]}}}}"#, list.join(","))).await;
        let words = words(&said);
        assert!(words.matches("/deep/list/").count() <= 12, "{pair:?}: {words}");
        assert!(words.len() < 8000, "{pair:?}: {} bytes", words.len());
    }
}

/// What the validator cannot read is not refused.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_passes() {
    for pair in PAIRS {
        let stage = stage(pair, "enforce").await;
        for arguments in [r#"{"n":1,"s":"\ud800"}"#, r#"{"n":1,"other":1e400}"#] {
            let before = stage.calls();
            stage.call("t", arguments).await;
            assert_eq!(stage.calls(), before + 1, "{pair:?} {arguments}");
        }
        assert_eq!((checks(&stage, "unchecked"), checks(&stage, "refused")), (2.0, 0.0), "{pair:?}");
    }
}

/// A tool that is mended, or gets stricter, is checked by what it says now.
#[tokio::test(start_paused = true)]
async fn what_is_checked_by_is_the_list_of_now() {
    for pair in PAIRS {
        let stage = stage(pair, "enforce").await;
        assert_eq!(stage.call("t", r#"{"n":0}"#).await.message["result"]["isError"], true);
        stage.tools.set(&tool("t", r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#));
        stage.listed().await;
        stage.passes("t", r#"{"n":0}"#).await;
        stage.tools.set(&tool("t", r#"{"type":"object","properties":{"n":{"type":"integer","minimum":9}}}"#));
        stage.listed().await;
        assert_eq!(stage.call("t", r#"{"n":1}"#).await.message["result"]["isError"], true, "{pair:?}");
    }
}

/// Each dialect in its own sense, declared or not (A5.4).
#[tokio::test(start_paused = true)]
async fn c64_by_the_rules_of_its_dialect() {
    let tuple = r#""type":"object","properties":{"t":{"items":[{"type":"string"}]}}"#;
    let draft_07 = format!(r#"{{"$schema":"http://json-schema.org/draft-07/schema#",{tuple}}}"#);
    let draft_04 = r#"{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"minimum":1,"exclusiveMinimum":true}}}"#;
    let unknown = r#"{"$schema":"https://acme.test/dialect","type":"object","required":["n"]}"#;
    for pair in PAIRS {
        let list = [tool("seven", &draft_07), tool("four", draft_04), tool("unknown", unknown)].join(",");
        let stage = Stage::set(Cell::http(pair), &list, "arguments = \"enforce\"").await;
        stage.listed().await;
        for (name, fits, fails) in
            [("seven", r#"{"t":["x",1]}"#, r#"{"t":[1]}"#), ("four", r#"{"n":2}"#, r#"{"n":1}"#)]
        {
            stage.passes(name, fits).await;
            assert_eq!(stage.call(name, fails).await.message["result"]["isError"], true, "{pair:?} {name}");
        }
        // Nobody can say whether it fits.
        stage.passes("unknown", "{}").await;
        assert_eq!(checks(&stage, "unchecked"), 1.0, "{pair:?}");
    }
    let cell = Cell::http((Era::Modern, Era::Legacy("2025-06-18")));
    let stage = Stage::set(cell, &tool("old", &format!("{{{tuple}}}")), "arguments = \"enforce\"").await;
    stage.listed().await;
    stage.passes("old", r#"{"t":["x",1]}"#).await;
    assert_eq!(stage.call("old", r#"{"t":[1]}"#).await.message["result"]["isError"], true);
}

/// Under `warn`, what is bad is passed and cannot be checked.
#[tokio::test(start_paused = true)]
async fn bad_tools_are_not_checked() {
    for pair in PAIRS {
        let own = tool(
            "out",
            r#"{"type":"object","properties":{"a":{"$ref":"https://canary.test/x"}},"required":["a"]}"#,
        );
        let stage = Stage::set(Cell::http(pair), &own, "policy = \"warn\"\narguments = \"enforce\"").await;
        stage.listed().await;
        stage.passes("out", "{}").await;
        assert_eq!((checks(&stage, "unchecked"), checks(&stage, "refused")), (1.0, 0.0), "{pair:?}");
    }
}

/// D68: a check ends, whatever schema and value do to each other.
#[tokio::test(start_paused = true)]
async fn d68_a_check_is_bounded() {
    let branch = r##"{"type":"array","anyOf":[{"items":{"$ref":"#/$defs/x"},"maxItems":1},{"items":{"$ref":"#/$defs/x"},"maxItems":1},{"maxItems":0}]}"##;
    let own = tool(
        "t",
        &format!(
            r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/x"}}}},"$defs":{{"x":{branch}}}}}"##
        ),
    );
    let value = format!("{}{}", "[".repeat(60), "]".repeat(60)).replacen("[]", "[1]", 1);
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &own, "arguments = \"enforce\"\ntime = \"100ms\"").await;
        stage.listed().await;
        let began = std::time::Instant::now();
        stage.call("t", &format!(r#"{{"a":{value}}}"#)).await;
        assert!(began.elapsed().as_secs() < 10, "{pair:?}: {:?}", began.elapsed());
        // That it does not fit is soon known, unless the machine is busy; where it does not would take ages to tell.
        let (refused, unchecked) = (checks(&stage, "refused"), checks(&stage, "unchecked"));
        assert_eq!(refused + unchecked, 1.0, "{pair:?}");
        assert_eq!(stage.calls() as f64, unchecked, "{pair:?}");
    }
}

/// Over the other transports.
#[tokio::test(start_paused = true)]
async fn enforce_over_every_transport() {
    for (client, server) in PAIRS {
        for (from, to) in [
            (Transport::Stdio, Transport::Stdio),
            (Transport::HttpSse, Transport::HttpSse),
            (Transport::Http, Transport::Stdio),
        ] {
            let modern = |era: Era, way| era == Era::Modern && way == Transport::HttpSse;
            let from = if modern(client, from) { Transport::Stdio } else { from };
            let to = if modern(server, to) { Transport::Stdio } else { to };
            let cell = Cell { client, from, server, to };
            let stage = Stage::set(
                cell,
                &tool_with_output("t", SCHEMA, r#"{"type":"object"}"#),
                "arguments = \"enforce\"",
            )
            .await;
            stage.listed().await;
            let said = stage.call("t", r#"{"n":"x"}"#).await;
            assert!(words(&said).contains("/n"), "{cell:?}: {}", said.raw);
            assert_eq!(stage.calls(), 0, "{cell:?}");
            let result: Value = stage.passes("t", r#"{"n":1}"#).await;
            assert_eq!(result["content"][0]["text"], "done", "{cell:?}");
        }
    }
}

/// One that has never read the list: a modern server's is read for it.
#[tokio::test(start_paused = true)]
async fn enforce_without_a_list_that_was_read() {
    for client in [Era::Modern, crate::stage::LATEST] {
        let stage =
            Stage::set(Cell::http((client, Era::Modern)), &tool("t", SCHEMA), "arguments = \"enforce\"")
                .await;
        let said = stage.call("t", r#"{"n":"x"}"#).await;
        assert!(words(&said).contains("/n"), "{client:?}: {}", said.raw);
        assert_eq!(stage.calls(), 0);
        stage.passes("t", r#"{"n":1}"#).await;
        assert_eq!(stage.up.posts("tools/list").len(), 1, "{client:?}: once");
    }
}

/// A legacy server's list is read in the call's own session, all of its pages, and once for all who wait.
#[tokio::test(start_paused = true)]
async fn enforce_reads_a_legacy_servers_list_first() {
    let cell = Cell::http((Era::Modern, crate::stage::LATEST));
    let stage = Stage::set(cell, &good("g0"), "arguments = \"enforce\"").await;
    stage.tools.pages(&[&good("g0"), &tool("t", SCHEMA)]);
    let (one, other, fits) =
        tokio::join!(stage.call("t", r#"{"n":"x"}"#), stage.call("t", "{}"), stage.call("t", r#"{"n":1}"#));
    assert!(words(&one).contains("/n"), "{}", one.raw);
    assert!(words(&other).contains("\"n\""), "{}", other.raw);
    assert_eq!(fits.message["result"]["content"][0]["text"], "done", "{}", fits.raw);
    assert_eq!((stage.calls(), stage.up.posts("tools/list").len()), (1, 2), "two pages");
    assert_eq!((checks(&stage, "refused"), checks(&stage, "fits")), (2.0, 1.0));
    // What is on no list may be called, and the list is not read again for each call.
    for _ in 0..3 {
        stage.passes("none", "{}").await;
    }
    assert_eq!(stage.up.posts("tools/list").len(), 2);
    assert_eq!(checks(&stage, "unknown_tool"), 3.0);
}

/// A list that cannot be had is no reason to refuse a call; a bad tool is refused as if its list had been seen.
#[tokio::test(start_paused = true)]
async fn enforce_before_a_list_that_is_bad() {
    let out = tool("out", r#"{"type":"object","properties":{"a":{"$ref":"https://canary.test/x"}}}"#);
    for pair in PAIRS.into_iter().filter(|pair| *pair != (crate::stage::LATEST, crate::stage::LATEST)) {
        let stage = Stage::set(Cell::http(pair), &out, "arguments = \"enforce\"").await;
        stage.refused("out").await;
        let stage = Stage::set(Cell::http(pair), "7,nonsense", "arguments = \"enforce\"").await;
        stage.passes("t", "{}").await;
        assert_eq!(checks(&stage, "unknown_tool"), 1.0, "{pair:?}");
    }
    // A legacy client's own session is its own: nothing is asked in it that it has not asked.
    let stage = Stage::set(
        Cell::http((crate::stage::LATEST, crate::stage::LATEST)),
        &tool("t", SCHEMA),
        "arguments = \"enforce\"",
    )
    .await;
    stage.passes("t", "{}").await;
    assert_eq!((stage.up.posts("tools/list").len(), checks(&stage, "unknown_tool")), (0, 1.0));
}
