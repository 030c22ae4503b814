//! D47, D50, D51, D53, D54, A3.2 to A3.7, B5: what a session declares, and whose calls it carries.

use crate::stage::{Stage, asking, done, ends_with};
use crate::support::questions::{ACCEPT, ALL, ROOTS, elicit, roots, sample};
use crate::support::{Ask, Gets, LegacyServer, Round, Value, call, json, list, pass};

/// The capabilities of every `initialize` so far, in order.
fn declared(stage: &Stage) -> Vec<Value> {
    stage.up.posts("initialize").iter().map(|seen| seen.json()["params"]["capabilities"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn d47_three_in_flight_empty_caps() {
    let stage = Stage::new().await;
    let clients: Vec<_> = (1..4).map(|n| stage.run(&call("work", &format!(r#"{{"n":{n}}}"#)))).collect();
    let began = tokio::time::Instant::now();
    for n in 1..4 {
        stage.calls.marked(n).await;
    }
    assert!(began.elapsed().as_millis() < 200, "they do not wait for each other: {:?}", began.elapsed());
    assert_eq!(stage.calls.running(), 3);
    for call in stage.calls.all() {
        call.finish("done");
    }
    for client in clients {
        ends_with(&done(client).await, "done");
    }
    assert_eq!((declared(&stage), stage.gets.all().len()), (vec![json!({})], 0));
}

#[tokio::test(start_paused = true)]
async fn d50_two_principals_never_share() {
    let stage = Stage::new().await;
    let (alice, of_alice) = stage.asked(&asking(1).bearer("alice"), &[&elicit("7", "for alice")]).await;
    let (bob, of_bob) = stage.asked(&asking(2).bearer("bob"), &[&elicit("7", "for bob")]).await;
    assert_ne!(of_alice.session(), of_bob.session());
    assert_eq!(stage.up.posts("initialize").len(), 2);
    // The state is random text, in which anything may occur.
    assert_eq!(alice.entry(&alice.only())["params"]["message"], "for alice");
    assert_eq!(bob.entry(&bob.only())["params"]["message"], "for bob");
    let one = stage.run(&alice.answer("2", ACCEPT));
    pass(1000).await;
    let responses = stage.up.posts("");
    assert_eq!(responses.len(), 1);
    assert_eq!(responses[0].session().unwrap_or_default(), of_alice.session());
    assert_eq!(responses[0].header("authorization").as_deref(), Some("Bearer alice"));
    of_bob.finish("bob's");
    of_alice.finish("alice's");
    ends_with(&done(one).await, "alice's");
    ends_with(&stage.proxy.send(&bob.retry("3", &[])).await, "bob's");
    stage.is_over(2).await;
}

#[tokio::test(start_paused = true)]
async fn d51_caps_partition() {
    let stage = Stage::new().await;
    for caps in ["{}", r#"{"sampling":{}}"#, "{}", r#"{ "sampling" : { } }"#] {
        stage.proxy.send(&list("tools/list").caps(caps)).await.result();
    }
    assert_eq!(declared(&stage), [json!({}), json!({"sampling": {}})]);
    // The order in which a client writes them makes no other session.
    for caps in [r#"{"roots":{},"sampling":{}}"#, r#"{"sampling":{},"roots":{}}"#] {
        stage.proxy.send(&list("tools/list").caps(caps)).await.result();
    }
    assert_eq!(declared(&stage)[2..], [json!({"sampling": {}, "roots": {}})]);
}

#[tokio::test(start_paused = true)]
async fn d53_roots_no_listchanged() {
    for caps in [r#"{"roots":{}}"#, r#"{"roots":{"listChanged":true}}"#] {
        let stage = Stage::new().await;
        stage.proxy.send(&list("tools/list").caps(caps)).await.result();
        assert_eq!(declared(&stage), [json!({"roots": {}})]);
    }
}

/// A3.2 to A3.7 for a server of 2025-11-25.
#[tokio::test(start_paused = true)]
async fn a3_what_is_declared_to_the_latest_legacy_revision() {
    let table = [
        (ALL, serde_json::from_str(ALL).unwrap()),
        (r#"{"elicitation":{}}"#, json!({"elicitation": {}})),
        (r#"{"elicitation":{"url":{}}}"#, json!({"elicitation": {"url": {}}})),
        (r#"{"sampling":{"tools":{}}}"#, json!({"sampling": {"tools": {}}})),
        (r#"{"experimental":{"x":{"y":1}}}"#, json!({"experimental": {"x": {"y": 1}}})),
        (r#"{"tasks":{"list":{}}}"#, json!({})),
        (
            r#"{"extensions":{"io.modelcontextprotocol/ui":{"m":[]},"io.modelcontextprotocol/tasks":{},"com.acme/x":{}}}"#,
            json!({"extensions": {"io.modelcontextprotocol/ui": {"m": []}}}),
        ),
    ];
    for (caps, wanted) in table {
        let stage = Stage::new().await;
        stage.proxy.send(&list("tools/list").caps(caps)).await.result();
        assert_eq!(declared(&stage), [wanted], "{caps}");
    }
}

#[tokio::test(start_paused = true)]
async fn d54_caps_elicit_url_only_to_06() {
    let server = LegacyServer::telling().version("2025-06-18");
    let stage = Stage::of(server, Gets::open(), "", "").await;
    let url_only = list("tools/list").caps(r#"{"elicitation":{"url":{}}}"#);
    stage.proxy.send(&url_only).await.result();
    let all = declared(&stage);
    assert_eq!(all.last(), Some(&json!({})), "the session in use: {all:?}");
    assert!(all.len() <= 2, "at most once more: {all:?}");
    let last = stage.up.posts("tools/list").pop().unwrap();
    assert_eq!(last.session().as_deref(), Some(format!("S{}", all.len()).as_str()));
    // The next session gets it right at once.
    stage.proxy.send(&url_only.clone().bearer("bob")).await.result();
    assert_eq!(declared(&stage)[all.len()..], [json!({})]);
    pass(1000).await;
    assert_eq!(stage.server.live_sessions(), 2, "one that is not used is closed");
}

/// D54: what a form looks like to a 2025-06-18 server once it is known to be one; A3.4 for sampling.
#[tokio::test(start_paused = true)]
async fn d54_a_form_to_06() {
    let table = [
        (r#"{"elicitation":{}}"#, json!({"elicitation": {}})),
        (r#"{"elicitation":{"form":{}}}"#, json!({"elicitation": {}})),
        (r#"{"elicitation":{"form":{},"url":{}}}"#, json!({"elicitation": {}})),
        (r#"{"sampling":{"tools":{},"context":{}}}"#, json!({"sampling": {}})),
    ];
    for (caps, wanted) in table {
        let server = LegacyServer::telling().version("2025-06-18");
        let stage = Stage::of(server, Gets::open(), "", "").await;
        stage.proxy.send(&list("tools/list")).await.result();
        stage.proxy.send(&list("tools/list").caps(caps)).await.result();
        assert_eq!(declared(&stage), [json!({}), wanted], "{caps}");
    }
}

/// A3.5: before 2025-06-18 there is no elicitation.
#[tokio::test(start_paused = true)]
async fn a3_5_no_elicitation_before_06() {
    for version in ["2025-03-26", "2024-11-05"] {
        let stage = Stage::of(LegacyServer::telling().version(version), Gets::open(), "", "").await;
        stage.proxy.send(&list("tools/list")).await.result();
        stage.proxy.send(&list("tools/list").caps(ALL)).await.result();
        assert_eq!(declared(&stage), [json!({}), json!({"sampling": {}, "roots": {}})], "{version}");
    }
}

/// D54: a 2025-06-18 server asks with a form, also when the first session had to be found out.
#[tokio::test(start_paused = true)]
async fn d54_and_it_asks() {
    let stage = Stage::of(LegacyServer::telling().version("2025-06-18"), Gets::open(), "", "").await;
    let (round, at) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    assert!(round.entry(&round.only())["params"].get("mode").is_none(), "A8.1: absent stays absent");
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.up.posts("initialize").len(), 1);
}

/// A server that asks for what its own revision does not have: the client declares it, so declaring it is no advice.
#[tokio::test(start_paused = true)]
async fn b1_11_a_question_that_the_servers_revision_does_not_have() {
    let stage = Stage::of(LegacyServer::telling().version("2025-03-26"), Gets::open(), "", "").await;
    let begun = stage.begin(&asking(1)).await;
    begun.call.event(&elicit("7", "m"));
    assert_eq!(stage.refused("7", "elicitation/create").await, -32602);
    let call = begun.call.clone();
    let done = begun.done().await;
    done.is_error(200, -32603);
    assert!(done.raw.contains("2025-03-26"), "{}", done.raw);
    stage.is_cancelled_once(&call).await;
}

/// `interactive = false` declares nothing, so no stream is opened and nothing waits for its turn.
#[tokio::test(start_paused = true)]
async fn b5_interactive_false() {
    let stage = Stage::with("interactive = false\n").await;
    let clients: Vec<_> = (1..4).map(|n| stage.run(&asking(n))).collect();
    let began = tokio::time::Instant::now();
    for n in 1..4 {
        stage.calls.marked(n).await;
    }
    assert!(began.elapsed().as_millis() < 200, "{:?}", began.elapsed());
    for at in stage.calls.all() {
        at.finish("done");
    }
    for client in clients {
        ends_with(&done(client).await, "done");
    }
    assert_eq!((declared(&stage), stage.gets.all().len()), (vec![json!({})], 0));
}

/// Should it ask all the same, it is told that it may not; the client is asked nothing.
#[tokio::test(start_paused = true)]
async fn b5_interactive_false_and_it_asks() {
    for (question, method, code) in [
        (elicit("7", "m"), "elicitation/create", -32602),
        (sample("7", "p"), "sampling/createMessage", -32601),
        (roots("7"), "roots/list", -32601),
    ] {
        let stage = Stage::with("interactive = false\n").await;
        let begun = stage.begin(&asking(1)).await;
        begun.call.event(&question);
        assert_eq!(stage.refused("7", method).await, code);
        let call = begun.call.clone();
        let done = begun.done().await;
        done.is_error(200, -32603);
        assert!(done.raw.contains("interactive"), "{}", done.raw);
        stage.is_cancelled_once(&call).await;
        assert_eq!(stage.metric(crate::stage::QUESTIONS_REFUSED, &["off"]), 1.0);
        stage.is_over(1).await;
    }
}

/// The same key, the same session (B5, B7.2): rounds and plain calls of one caller go to one session.
#[tokio::test(start_paused = true)]
async fn b5_one_session_for_all_rounds() {
    let stage = Stage::new().await;
    let (round, at) = stage.asked(&asking(1), &[&roots("7")]).await;
    stage.proxy.send(&list("tools/list").caps(ALL)).await.result();
    let client = stage.run(&round.answer("2", ROOTS));
    stage.answer("7", "roots/list").await;
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    assert_eq!(stage.up.posts("initialize").len(), 1, "{:?}", stage.up.briefs());
}

/// `session.scope = "request"`: a session for each call, which lives as long as its rounds.
#[tokio::test(start_paused = true)]
async fn b5_a_session_for_each_call() {
    let stage = Stage::with("[upstream.up.session]\nscope = \"request\"\n").await;
    let ask: Ask = asking(1);
    let (round, at): (Round, _) = stage.asked(&ask, &[&elicit("7", "m")]).await;
    pass(120_000).await;
    assert!(!stage.server.deleted().contains(&at.session()), "it is in use");
    let client = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    let posted = stage.up.posts("").pop().unwrap();
    assert_eq!(posted.session().unwrap_or_default(), at.session());
    at.finish("the end");
    ends_with(&done(client).await, "the end");
    pass(10_000).await;
    assert_eq!((stage.server.live_sessions(), stage.proxy.sessions()), (0, 0), "ended with its call");
    stage.is_over(1).await;
}
