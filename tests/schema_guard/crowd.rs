//! Many lists and callers at once, lists read for a call, and tools in numbers: what is known stays its own, and bounded.

use std::sync::Arc;

use crate::canary::Canary;
use crate::case::Verdict::{Good, Note};
use crate::case::{Case, judged};
use crate::stage::{Cell, LATEST, PAIRS, Stage, bad, good, metric, tool};
use crate::support::{Era, Party, Transport};

/// Every caller has its own list, in which one tool is bad; all of them at once.
#[tokio::test(start_paused = true)]
async fn inv2_many_principals_at_once() {
    for pair in PAIRS {
        let stage = Arc::new(Stage::set(Cell::http(pair), &good("g0"), "").await);
        for n in 0..8 {
            let tools: Vec<_> =
                (0..8).map(|m| if m == n { bad(&format!("t{m}")) } else { good(&format!("t{m}")) }).collect();
            stage.tools.of_token(&format!("token{n}"), &tools.join(","));
        }
        let mut running = Vec::new();
        for n in 0..8 {
            let stage = Arc::clone(&stage);
            running.push(tokio::spawn(async move {
                let token = format!("token{n}");
                let party = Party::try_join(&stage.proxy, pair.0, Transport::Http, Some(&token)).await;
                let party = party.expect("a session");
                for round in 0..3 {
                    let id = |m: usize| (round * 100 + m + 10).to_string();
                    let shown = party.result(&party.ask("tools/list").id(&id(50))).await;
                    assert_eq!(shown["tools"].as_array().unwrap().len(), 7, "{pair:?}");
                    for m in 0..8 {
                        let said = party.answered(&party.call(&format!("t{m}"), "{}").id(&id(m))).await;
                        let refused = said.message["error"]["code"] == -32602;
                        assert_eq!(refused, m == n, "{pair:?} {n} {m}: {}", said.raw);
                    }
                }
            }));
        }
        for one in running {
            one.await.expect("no panic");
        }
        assert_eq!(stage.calls(), 8 * 3 * 7, "{pair:?}");
    }
}

/// A call of a tool that nobody has listed: a list that the proxy reads for it is judged like any other.
#[tokio::test(start_paused = true)]
async fn c67_a_list_that_is_read_for_a_call() {
    let list = format!("{},{}", bad("out"), good("g0"));
    let stage = Stage::set(Cell::http((LATEST, Era::Modern)), &list, "").await;
    stage.refused("out").await;
    stage.passes("g0", "{}").await;
}

/// As many tools as one likes: each bad one is refused.
#[tokio::test(start_paused = true)]
async fn inv5_a_list_of_thousands() {
    let tools: Vec<_> =
        (0..3000)
            .map(|n| {
                if n % 3 == 0 {
                    bad(&format!("t{n}"))
                } else {
                    tool(&format!("t{n}"), r#"{"type":"object"}"#)
                }
            })
            .collect();
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &tools.join(","), "").await;
        assert_eq!(stage.listed().await.tools.len(), 2000, "{pair:?}");
        for n in [0, 3, 1500, 2997] {
            stage.refused(&format!("t{n}")).await;
        }
        stage.passes("t2999", "{}").await;
        assert_eq!(stage.found("external_ref"), 1000.0, "{pair:?}");
    }
}

/// Inv. 5: what is kept of lists is bounded, and what was used last is what is kept.
#[tokio::test(start_paused = true)]
async fn inv5_lists_without_end() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &good("g0"), "cache_bytes = \"64KiB\"").await;
        for n in 0..60 {
            let padding = "x".repeat(5000);
            let own = tool(
                "t",
                &format!(
                    r#"{{"type":"object","description":"{n} {padding}","properties":{{"a":{{"$ref":"https://canary.test/{n}"}}}}}}"#
                ),
            );
            stage.tools.set(&format!("{own},{}", good("g0")));
            assert_eq!(stage.listed().await.names(), ["g0"], "{pair:?}");
            assert!(
                stage.refused("t").await.contains(&format!("canary.test/{n}")),
                "{pair:?}: the list of now"
            );
            let kept = metric(&stage.proxy, "mcp_janus_schema_cache_bytes", &[]);
            assert!(kept <= 128.0 * 1024.0, "{pair:?}: {kept}");
        }
    }
}

/// Numbers and texts that no validator can read are not checked, and pass.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_noted() {
    let canary = Canary::new();
    let cases = [
        Case::property("a number beyond", r#"{"type":"number","maximum":1e400}"#, Note("unreadable")),
        Case::property("half a character", r#"{"type":"string","description":"\ud800"}"#, Note("unreadable")),
        Case::property(
            "many digits",
            r#"{"type":"number","maximum":123456789012345678901234567890.5}"#,
            Good,
        ),
        Case::property(
            "a whole character by halves",
            r#"{"type":"string","description":"\ud83d\ude00"}"#,
            Good,
        ),
    ];
    judged(&canary, &cases).await;
}
