//! B6.1, C60, C67, A13.3, invariant 5: what the proxy knows of tools for the calls of legacy clients: found out by itself, each
//! caller's own, and bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::stage::{LATEST, Stage};
use crate::support::{ModernServer, Reply, Seen, json, modern, pass};

fn tool(output: &str, annotation: &str) -> String {
    format!(
        r#""tools":[{{"name":"t","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string"{annotation}}}}}}},"outputSchema":{output}}}]"#
    )
}

async fn list(seen: &Seen, reply: Reply, members: &str) {
    reply.result(seen, &modern::complete("tools/list", members)).await;
}

fn calls() -> ModernServer {
    ModernServer::full().completes("tools/call", r#""content":[],"structuredContent":{"a":1}"#)
}

/// Many first calls at once ask once.
#[tokio::test(start_paused = true)]
async fn b6_1_one_look_for_many_calls() {
    let server = calls().on("tools/list", |seen, reply: Reply| async move {
        pass(500).await;
        list(&seen, reply, &tool(r#"{"type":"array"}"#, "")).await;
    });
    let stage = Stage::before(server).await;
    let (one, two) = (stage.latest().await, stage.latest().await);
    let running: Vec<_> = (0..20)
        .map(|n| {
            let user = if n % 2 == 0 { one.clone() } else { two.clone() };
            tokio::spawn(async move { user.call("t", "{}").await.result().await })
        })
        .collect();
    for one in running {
        assert_eq!(one.await.unwrap()["structuredContent"], json!({"result": {"a": 1}}));
    }
    let lists = stage.up.posts("tools/list").len();
    assert!(lists <= 2, "{lists} lists");
}

/// C60: schemas may differ by caller.
#[tokio::test(start_paused = true)]
async fn c60_schemas_are_each_callers_own() {
    let server = calls().on("tools/list", |seen, reply: Reply| async move {
        let alice = seen.header("authorization").as_deref() == Some("Bearer alice");
        let (output, annotation) = if alice {
            (r#"{"type":"array"}"#, r#","x-mcp-header":"A""#)
        } else {
            (r#"{"type":"object"}"#, "")
        };
        list(&seen, reply, &tool(output, annotation)).await;
    });
    let stage = Stage::before(server).await;
    let (alice, bob, nobody) =
        (stage.user_as("alice").await, stage.user_as("bob").await, stage.latest().await);
    for _ in 0..2 {
        for (user, wrapped) in [(&alice, true), (&bob, false), (&nobody, false)] {
            let result = user.call("t", r#"{"a":"v"}"#).await.result().await;
            let expected = if wrapped { json!({"result": {"a": 1}}) } else { json!({"a": 1}) };
            assert_eq!(result["structuredContent"], expected);
            let seen = stage.up.posts("tools/call").pop().unwrap();
            assert_eq!(seen.headers.has("mcp-param-a"), wrapped);
        }
    }
}

/// A change of the tools is the end of what was known of them.
#[tokio::test(start_paused = true)]
async fn a2_5_changes_are_looked_at() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let server = calls().on("tools/list", move |seen, reply: Reply| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let annotation = if n == 0 { "" } else { r#","x-mcp-header":"A""# };
            list(&seen, reply, &tool(r#"{"type":"object"}"#, annotation)).await;
        }
    });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    user.call("t", r#"{"a":"v"}"#).await.result().await;
    stage.listens.wait(1).await;
    pass(1000).await;
    stage.listens.tell("tools");
    pass(1000).await;
    user.call("t", r#"{"a":"v"}"#).await.result().await;
    let seen = stage.up.posts("tools/call").pop().unwrap();
    assert!(seen.headers.has("mcp-param-a"), "{:?}", stage.up.briefs());
}

/// A list that cannot be had is no reason to lose the call, nor to run it twice.
#[tokio::test(start_paused = true)]
async fn c67_no_list_to_be_had() {
    let bodies: [(u16, &'static str); 4] = [
        (500, "<html>x</html>"),
        (404, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"m"}}"#),
        (200, r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":5}}"#),
        (200, "{"),
    ];
    for (status, body) in bodies {
        let server = calls().on("tools/list", move |seen, reply: Reply| async move {
            reply.json(status, &body.replace("ID", &seen.id())).await;
        });
        let stage = Stage::before(server).await;
        let user = stage.latest().await;
        for n in 1..=2 {
            let answer = user.call("t", "{}").await.answer().await;
            let ran = stage.up.posts("tools/call").len();
            let failed = answer["error"]["code"] == -32603 && ran == 0;
            let served = answer.get("result").is_some() && ran == n;
            assert!(failed || served, "{status} {body}: {answer} after {ran}");
        }
        assert!(user.lives().await);
    }
}

/// One that never comes, or never ends, has a bound.
#[tokio::test(start_paused = true)]
async fn inv5_a_list_without_an_end() {
    let hangs = calls().on("tools/list", |_, reply: Reply| reply.never());
    let endless = calls().on("tools/list", |seen, reply: Reply| async move {
        let n = seen.json()["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<u64>().unwrap());
        let page = format!(
            r#""tools":[{{"name":"other{n}","inputSchema":{{"type":"object"}}}}],"nextCursor":"{}""#,
            n + 1
        );
        list(&seen, reply, &page).await;
    });
    let circle = calls().on("tools/list", |seen, reply: Reply| async move {
        list(&seen, reply, r#""tools":[],"nextCursor":"again""#).await;
    });
    for (what, server) in [("hangs", hangs), ("endless", endless), ("circle", circle)] {
        let lines = "timeouts.request = \"30s\"\nlimits.catalog_tools = 500";
        let stage = Stage::before_with(server, lines).await;
        let user = stage.user(LATEST).await;
        let began = tokio::time::Instant::now();
        let answer = user.call("t", "{}").await.answer().await;
        assert!(began.elapsed().as_secs() <= 61, "{what}: {:?}", began.elapsed());
        let ran = stage.up.posts("tools/call").len();
        assert!(ran <= 1 && (answer.get("result").is_some() == (ran == 1)), "{what}: {answer}");
        let lists = stage.up.posts("tools/list").len();
        assert!(lists <= 10_000, "{what}: {lists} lists");
    }
}

/// A challenge on the way to a list is the client's, like any other.
#[tokio::test(start_paused = true)]
async fn a12_17_a_challenge_to_the_list() {
    let server = calls().on("tools/list", |_, reply: Reply| async move {
        reply.with("WWW-Authenticate", "Bearer x=\"y\"").empty(401).await;
    });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    let done = stage.proxy.send(&user.old.call("t", "{}")).await;
    let passed = done.status == 401 && done.headers.has("www-authenticate");
    assert!(passed || done.status == 200, "{} {}", done.status, done.raw);
    assert!(user.lives().await);
}

/// A cancelled call does not go on to run when its list comes.
#[tokio::test(start_paused = true)]
async fn d89_cancelled_while_its_tool_is_looked_up() {
    let server = calls().on("tools/list", |seen, reply: Reply| async move {
        pass(5000).await;
        list(&seen, reply, &tool(r#"{"type":"object"}"#, "")).await;
    });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    let stream = user.call("t", "{}").await;
    user.cancel("1").await;
    stream.end().await;
    pass(20_000).await;
    assert_eq!(stage.up.posts("tools/call").len(), 0);
    assert!(!stream.briefs().contains(&"answer".to_owned()));
}

/// Another call that waits for the same list is not cancelled with it.
#[tokio::test(start_paused = true)]
async fn d89_the_look_is_shared() {
    let server = calls().on("tools/list", |seen, reply: Reply| async move {
        pass(5000).await;
        list(&seen, reply, &tool(r#"{"type":"object"}"#, "")).await;
    });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    let first = user.open(&user.old.call("t", "{}").id("1")).await;
    let second = user.open(&user.old.call("t", "{}").id("2")).await;
    user.cancel("1").await;
    first.end().await;
    second.result().await;
    assert_eq!(stage.up.posts("tools/call").len(), 1);
}
