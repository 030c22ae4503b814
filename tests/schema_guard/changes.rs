//! Lists that change: what was bad and is mended, what gets bad, and what is said of it, once for each change.

use crate::stage::{BAD_AT, Cell, PAIRS, REFUSED, Stage, bad, good, tool};
use crate::support::Era;
use crate::support::log::Log;

fn dangling(name: &str) -> String {
    tool(name, r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}"##)
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_mended_can_be_called_again() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &format!("{},{}", bad("t"), good("g0")), "").await;
        assert_eq!(stage.listed().await.names(), ["g0"], "{pair:?}");
        stage.refused("t").await;
        stage.tools.set(&format!("{},{}", good("t"), good("g0")));
        assert_eq!(stage.listed().await.names(), ["t", "g0"], "{pair:?}");
        stage.passes("t", "{}").await;
        stage.tools.set(&format!("{},{}", bad("t"), good("g0")));
        assert_eq!(stage.listed().await.names(), ["g0"], "{pair:?}: bad again");
        stage.refused("t").await;
        assert_eq!(stage.metric(REFUSED, &[]), 2.0, "{pair:?}");
    }
}

/// What is no list, or two, says nothing of the tools: a tool that was left out stays so.
#[tokio::test(start_paused = true)]
async fn what_is_no_list_makes_nothing_forgotten() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &format!("{},{}", bad("t"), good("g0")), "").await;
        stage.listed().await;
        stage.refused("t").await;
        stage.tools.set(r#"],"tools":["#);
        let said = stage.party.answered(&stage.ask("tools/list")).await;
        assert!(said.message["result"].is_null(), "{pair:?}: {}", said.raw);
        stage.refused("t").await;
    }
}

/// C65: of two tools of one name a bad one costs the good one nothing, wherever it stands.
#[tokio::test(start_paused = true)]
async fn a_bad_tool_costs_a_good_one_of_its_name_nothing() {
    for pair in PAIRS {
        for list in [[bad("t"), good("t")], [good("t"), bad("t")]] {
            let stage = Stage::set(Cell::http(pair), &list.join(","), "").await;
            assert_eq!(stage.listed().await.names(), ["t"], "{pair:?}");
            stage.passes("t", "{}").await;
        }
    }
}

/// What the server does not list any more is not what it was.
#[tokio::test(start_paused = true)]
async fn a_tool_that_is_gone_is_the_servers_affair() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &format!("{},{}", bad("t"), good("g0")), "").await;
        stage.listed().await;
        stage.refused("t").await;
        stage.tools.set(&good("g0"));
        stage.listed().await;
        stage.passes("t", "{}").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_finding_is_told_once_for_each_change() {
    let log = Log::open();
    for (n, pair) in PAIRS.into_iter().enumerate() {
        // A name that no other pair's lines have.
        let name = format!("told{n}");
        let told = || log.with(&["WARN", &name]).len();
        let stage = Stage::set(Cell::http(pair), &format!("{},{}", bad(&name), good("g0")), "").await;
        assert_eq!(told(), 0);
        for _ in 0..4 {
            stage.listed().await;
        }
        assert_eq!(told(), 1, "{pair:?}: once: {:?}", log.with(&[&name]));
        let line = log.with(&["WARN", &name]).remove(0);
        assert!(line.contains(BAD_AT) && line.contains("up"), "tool, place and upstream: {line}");
        assert_eq!(stage.found("external_ref"), 1.0, "{pair:?}");
        // Another tool comes in front of it: nothing is new of this one.
        stage.tools.set(&format!("{},{}", good("g1"), bad(&name)));
        stage.listed().await;
        assert_eq!((told(), stage.found("external_ref")), (1, 1.0), "{pair:?}: {:?}", log.with(&[&name]));
        // Something else is wrong with it.
        stage.tools.set(&format!("{},{}", good("g1"), dangling(&name)));
        for _ in 0..3 {
            stage.listed().await;
        }
        assert_eq!((told(), stage.found("dangling_ref")), (2, 1.0), "{pair:?}: {:?}", log.with(&[&name]));
        // The first again, which is a change.
        stage.tools.set(&format!("{},{}", good("g1"), bad(&name)));
        for _ in 0..3 {
            stage.listed().await;
        }
        assert_eq!((told(), stage.found("external_ref")), (3, 2.0), "{pair:?}: {:?}", log.with(&[&name]));
    }
}

/// The line says what to do.
#[tokio::test(start_paused = true)]
async fn a_finding_says_what_to_do() {
    let log = Log::open();
    let stage = Stage::set(Cell::http(PAIRS[0]), &bad("lonely"), "").await;
    stage.listed().await;
    let lines = log.with(&["WARN", "lonely"]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("schema.documents"), "what to do: {}", lines[0]);
}

/// Nothing that a peer writes breaks the line.
#[tokio::test(start_paused = true)]
async fn a_line_of_the_log_is_one_line() {
    let log = Log::open();
    for pair in PAIRS {
        let name = r"evil\nWARN mcp_janus: forged\u001b[31m";
        let own = tool(
            name,
            r#"{"type":"object","properties":{"x\ny":{"$ref":"https:\/\/canary.test\/\u000aforged"}}}"#,
        );
        let stage = Stage::set(Cell::http(pair), &format!("{own},{}", good("g0")), "").await;
        assert_eq!(stage.listed().await.names(), ["g0"], "{pair:?}");
        let lines = log.lines();
        assert!(lines.iter().all(|line| !line.starts_with("WARN mcp_janus: forged")), "{lines:?}");
        assert!(
            lines.iter().all(|line| !line.starts_with("forged") && !line.contains('\u{1b}')),
            "{lines:?}"
        );
    }
}

/// A list that did not change is not judged anew, in whatever session it is read.
#[tokio::test(start_paused = true)]
async fn the_same_list_is_not_news_to_another_client() {
    let log = Log::open();
    for (n, pair) in PAIRS.into_iter().enumerate() {
        let name = format!("same{n}");
        let stage = Stage::set(Cell::http(pair), &format!("{},{}", bad(&name), good("g0")), "").await;
        stage.listed().await;
        let other = crate::support::Party::join(&stage.proxy, pair.0, crate::support::Transport::Http).await;
        let shown = other.result(&other.ask("tools/list").id("5")).await;
        assert_eq!(shown["tools"][0]["name"], "g0", "{pair:?}");
        let called = other.answered(&other.call(&name, "{}").id("6")).await;
        assert_eq!(called.message["error"]["code"], -32602, "{pair:?}: {}", called.raw);
        if pair.0 == Era::Modern {
            assert_eq!(log.with(&["WARN", &name]).len(), 1, "{pair:?}: {:?}", log.with(&[&name]));
        }
    }
}
