//! B7, invariant 2: what is known of tools is known of one principal's list, and of one session's where a client has its own.

use crate::stage::{Cell, LATEST, PAIRS, Stage, bad, good};
use crate::support::{LegacyServer, Net, Party, Proxy, Reply, Transport, json};

async fn joined(stage: &Stage, token: &str) -> Party {
    let client = stage.cell.client;
    Party::try_join(&stage.proxy, client, Transport::Http, Some(token)).await.expect("a session")
}

async fn names(party: &Party, id: &str) -> Vec<String> {
    let shown = party.result(&party.ask("tools/list").id(id)).await;
    let tools = shown["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Whether a call of the tool is refused by the proxy.
async fn is_refused(stage: &Stage, party: &Party, id: &str) -> bool {
    let before = stage.calls();
    let said = party.answered(&party.call("t", "{}").id(id)).await;
    let refused = said.message["error"]["code"] == -32602;
    assert_eq!(stage.calls() - before, usize::from(!refused), "{}", said.raw);
    refused
}

#[tokio::test(start_paused = true)]
async fn b7_what_is_bad_for_one_is_good_for_another() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &good("g0"), "").await;
        stage.tools.of_token("a", &format!("{},{}", bad("t"), good("g0")));
        stage.tools.of_token("b", &format!("{},{}", good("t"), good("g0")));
        let (a, b) = (joined(&stage, "a").await, joined(&stage, "b").await);
        for round in 0..2 {
            let id = |n: usize| (100 + round * 10 + n).to_string();
            assert_eq!(names(&a, &id(0)).await, ["g0"], "{pair:?}");
            assert_eq!(names(&b, &id(1)).await, ["t", "g0"], "{pair:?}");
            assert!(is_refused(&stage, &a, &id(2)).await, "{pair:?}");
            assert!(!is_refused(&stage, &b, &id(3)).await, "{pair:?}");
        }
        // The other order: what the second hears does not mend the first's.
        stage.tools.of_token("a", &format!("{},{}", good("t"), good("g0")));
        stage.tools.of_token("b", &format!("{},{}", bad("t"), good("g0")));
        assert_eq!(names(&b, "201").await, ["g0"], "{pair:?}");
        assert!(is_refused(&stage, &b, "202").await, "{pair:?}");
        assert!(is_refused(&stage, &a, "203").await, "{pair:?}: until it has read its own list");
        assert_eq!(names(&a, "204").await, ["t", "g0"], "{pair:?}");
        assert!(!is_refused(&stage, &a, "205").await, "{pair:?}");
    }
}

/// Servers may unlock tools in one session: those of another are what they were.
#[tokio::test(start_paused = true)]
async fn b7_sessions_of_a_legacy_client_have_lists_of_their_own() {
    for lines in ["", "session = { shield = true }"] {
        let net = Net::new();
        let (worse, better) = (bad("t"), good("t"));
        let server = LegacyServer::new().on("tools/list", move |seen, reply: Reply| {
            let tool = if seen.session().as_deref() == Some("S1") { &worse } else { &better };
            let result = format!(r#"{{"tools":[{tool}]}}"#);
            async move { reply.result(&seen, &result).await }
        });
        let up = server.start(&net);
        let proxy = std::sync::Arc::new(Proxy::with(&net, lines).await);
        let one = Party::join(&proxy, LATEST, Transport::Http).await;
        let two = Party::join(&proxy, LATEST, Transport::Http).await;
        for round in 0..2 {
            let id = |n: usize| (100 + round * 10 + n).to_string();
            assert_eq!(one.result(&one.ask("tools/list").id(&id(0))).await["tools"], json!([]), "{lines}");
            assert_eq!(
                two.result(&two.ask("tools/list").id(&id(1))).await["tools"][0]["name"],
                "t",
                "{lines}"
            );
            let refused = one.answered(&one.call("t", "{}").id(&id(2))).await;
            assert_eq!(refused.message["error"]["code"], -32602, "{lines}: {}", refused.raw);
            two.result(&two.call("t", "{}").id(&id(3))).await;
            assert_eq!(up.posts("tools/call").len(), round + 1, "{lines}");
        }
    }
}

/// Nothing of one's list is in what another is told.
#[tokio::test(start_paused = true)]
async fn inv2_a_refusal_tells_nothing_of_others() {
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &good("g0"), "").await;
        let secret = crate::stage::tool(
            "t",
            r#"{"type":"object","properties":{"secret":{"$ref":"https://canary.test/hush"}}}"#,
        );
        stage.tools.of_token("a", &secret);
        stage.tools.of_token("b", &bad("t"));
        let (a, b) = (joined(&stage, "a").await, joined(&stage, "b").await);
        names(&a, "1").await;
        names(&b, "2").await;
        let said = b.answered(&b.call("t", "{}").id("3")).await;
        assert_eq!(said.message["error"]["code"], -32602, "{}", said.raw);
        assert!(!said.raw.contains("secret") && !said.raw.contains("hush"), "{pair:?}: {}", said.raw);
        let said = a.answered(&a.call("t", "{}").id("4")).await;
        assert!(said.raw.contains("secret"), "{pair:?}: {}", said.raw);
    }
}
