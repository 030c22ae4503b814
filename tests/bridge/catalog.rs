//! B6.1, C60, C67, A13.3, invariant 5: what the proxy knows of tools for the calls of legacy clients: found out by itself, each
//! caller's own, and bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::stage::{LATEST, Stage};
use crate::support::{Listens, ModernServer, Reply, Seen, json, modern, pass};

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

/// Tools that each need a header of their own, and whose results are wrapped.
fn many(n: usize) -> String {
    let tool = |n| {
        format!(
            r#"{{"name":"t{n}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"A{n}"}}}}}},"outputSchema":{{"type":"array"}}}}"#
        )
    };
    format!(r#""tools":[{}]"#, (0..n).map(tool).collect::<Vec<_>>().join(","))
}

async fn mismatch(reply: Reply, seen: Arc<Seen>) {
    reply.error(400, &seen, r#"{"code":-32020,"message":"Header mismatch"}"#).await;
}

/// B6.1: calls of other tools that wait for the same list find theirs, though not all are kept.
#[tokio::test(start_paused = true)]
async fn b6_1_one_list_for_calls_of_different_tools() {
    let server = ModernServer::full()
        .on("tools/list", |seen, reply: Reply| async move {
            pass(500).await;
            list(&seen, reply, &many(8)).await;
        })
        .on("tools/call", |seen, reply: Reply| async move {
            let name = seen.json()["params"]["name"].as_str().unwrap().replace('t', "mcp-param-a");
            if !seen.headers.has(&name) {
                return mismatch(reply, seen).await;
            }
            list_call(&seen, reply).await;
        });
    let stage = Stage::before_with(server, "limits.catalog_tools = 2").await;
    let user = stage.latest().await;
    let mut running = Vec::new();
    for n in 0..8 {
        let user = user.clone();
        running.push(tokio::spawn(async move {
            let ask = user.old.call(&format!("t{n}"), r#"{"a":"v"}"#).id(&n.to_string());
            user.send(&ask).await.result()["structuredContent"].clone()
        }));
        pass(50).await;
    }
    for one in running {
        assert_eq!(one.await.unwrap(), json!({"result": [1]}));
    }
    assert_eq!(stage.up.posts("tools/call").len(), 8, "none was refused");
    assert!(stage.up.posts("tools/list").len() <= 2, "{:?}", stage.up.briefs());
}

async fn list_call(seen: &Seen, reply: Reply) {
    let members = r#""content":[],"structuredContent":[1]"#;
    reply.result(seen, &modern::complete("tools/call", members)).await;
}

/// A server whose tools need another header from some time on; it answers a call after as many milliseconds as its
/// argument says, and a list after half a second as it was when it was asked.
fn turning(turned: &Arc<AtomicBool>) -> ModernServer {
    let (at_list, at_call) = (turned.clone(), turned.clone());
    ModernServer::full()
        .on("tools/list", move |seen, reply: Reply| {
            let annotation = if at_list.load(Ordering::SeqCst) { "New" } else { "Old" };
            let tool = |name: &str| {
                format!(
                    r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"{annotation}"}}}}}},"outputSchema":{{"type":"array"}}}}"#
                )
            };
            let tools = format!(r#""tools":[{},{}]"#, tool("t"), tool("u"));
            async move {
                pass(500).await;
                list(&seen, reply, &tools).await;
            }
        })
        .on("tools/call", move |seen, reply: Reply| {
            let turned = at_call.clone();
            async move {
                let wait = seen.json()["params"]["arguments"]["a"].as_str().unwrap().parse().unwrap();
                pass(wait).await;
                let header = if turned.load(Ordering::SeqCst) { "mcp-param-new" } else { "mcp-param-old" };
                if !seen.headers.has(header) {
                    return mismatch(reply, seen).await;
                }
                list_call(&seen, reply).await;
            }
        })
}

/// A11.8, D77: many calls that are refused are one look or two, and none takes from another what that has found.
#[tokio::test(start_paused = true)]
async fn a11_8_many_mismatches_at_once() {
    let turned = Arc::new(AtomicBool::new(false));
    let stage = Stage::before(turning(&turned)).await;
    let user = stage.latest().await;
    user.call("t", r#"{"a":"0"}"#).await.result().await;
    turned.store(true, Ordering::SeqCst);
    let before = stage.up.posts("tools/list").len();
    let running: Vec<_> = (0..20)
        .map(|n| {
            let user = user.clone();
            let ask = user.old.call("t", &format!(r#"{{"a":"{}"}}"#, n * 100)).id(&format!("\"m{n}\""));
            tokio::spawn(async move { user.send(&ask).await.result()["structuredContent"].clone() })
        })
        .collect();
    for one in running {
        assert_eq!(one.await.unwrap(), json!({"result": [1]}));
    }
    let lists = stage.up.posts("tools/list").len() - before;
    assert!(lists <= 2, "{lists} lists");
    assert_eq!(stage.up.posts("tools/call").len(), 41);
}

/// A11.8: a list that had been asked for before the tools changed does not say what the refused call needs.
#[tokio::test(start_paused = true)]
async fn a11_8_a_list_from_before_the_mismatch() {
    let turned = Arc::new(AtomicBool::new(false));
    let stage = Stage::before_with(turning(&turned), "limits.catalog_tools = 1").await;
    let user = stage.latest().await;
    user.call("t", r#"{"a":"0"}"#).await.result().await;
    // The other tool is not kept, so that it is looked for: in the list as it still is.
    let other = user.clone();
    let other = tokio::spawn(async move { other.call("u", r#"{"a":"0"}"#).await.result().await });
    pass(100).await;
    turned.store(true, Ordering::SeqCst);
    let ask = user.old.call("t", r#"{"a":"0"}"#).id("\"again\"");
    assert_eq!(user.send(&ask).await.result()["structuredContent"], json!({"result": [1]}));
    assert_eq!(other.await.unwrap()["structuredContent"], json!({"result": [1]}));
}

/// B9.5: a change that is told while the list is read makes that list one of the past.
#[tokio::test(start_paused = true)]
async fn b9_5_a_change_while_the_list_is_read() {
    let turned = Arc::new(AtomicBool::new(false));
    let stage = Stage::build(turning(&turned), crate::support::Calls::new(), Listens::open(), "", "").await;
    let user = stage.latest().await;
    stage.listens.wait(1).await;
    pass(1000).await;
    let calling = user.clone();
    let calling = tokio::spawn(async move { calling.call("t", r#"{"a":"0"}"#).await.result().await });
    pass(100).await;
    turned.store(true, Ordering::SeqCst);
    stage.listens.tell("tools");
    assert_eq!(calling.await.unwrap()["structuredContent"], json!({"result": [1]}));
    assert_eq!(stage.up.posts("tools/call").len(), 1, "it was sent as the new list says");
}

/// Invariant 5: calls of tools that do not exist do not make the proxy read a long list each time, nor one that cannot be had.
#[tokio::test(start_paused = true)]
async fn inv5_made_up_names_are_no_lists() {
    let long =
        calls().on("tools/list", |seen, reply: Reply| async move { list(&seen, reply, &many(6)).await });
    let none = calls().on("tools/list", |_, reply: Reply| async move { reply.empty(500).await });
    for (what, server) in [("long", long), ("none", none)] {
        let stage = Stage::before_with(server, "limits.catalog_tools = 2").await;
        let user = stage.latest().await;
        for n in 0..20 {
            user.call(&format!("made-up-{n}"), "{}").await.answer().await;
        }
        let lists = stage.up.posts("tools/list").len();
        assert!(lists <= 2, "{what}: {lists} lists");
        pass(31_000).await;
        user.call("made-up-1", "{}").await.answer().await;
        assert!(stage.up.posts("tools/list").len() > lists, "{what}: for a while only");
    }
}

/// B6.1, A11.8: the list that is kept for clients is the one that calls go by.
#[tokio::test(start_paused = true)]
async fn a11_8_a_kept_list_goes_with_what_was_wrong() {
    let turned = Arc::new(AtomicBool::new(false));
    let (at_list, at_call) = (turned.clone(), turned.clone());
    let server = ModernServer::full()
        .on("tools/list", move |seen, reply: Reply| {
            let (annotation, output) =
                if at_list.load(Ordering::SeqCst) { ("New", "array") } else { ("Old", "object") };
            let tool = format!(
                r#""tools":[{{"name":"t","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","x-mcp-header":"{annotation}"}}}}}},"outputSchema":{{"type":"{output}"}}}}]"#
            );
            async move { reply.result(&seen, &modern::kept(&tool, 600_000, "private")).await }
        })
        .on("tools/call", move |seen, reply: Reply| {
            let header = if at_call.load(Ordering::SeqCst) { "mcp-param-new" } else { "mcp-param-old" };
            async move {
                if !seen.headers.has(header) {
                    return mismatch(reply, seen).await;
                }
                list_call(&seen, reply).await;
            }
        });
    let stage = Stage::before_with(server, "cache_lists = true").await;
    let user = stage.latest().await;
    user.list("tools/list").await;
    turned.store(true, Ordering::SeqCst);
    for n in 0..3 {
        let result = user.call("t", r#"{"a":"v"}"#).await.result().await;
        assert_eq!(result["structuredContent"], json!({"result": [1]}));
        let shown = user.list("tools/list").await;
        let schema = &shown["tools"][0]["outputSchema"];
        assert!(schema["properties"].get("result").is_some(), "{n}: as its results are: {schema}");
    }
    assert_eq!(stage.up.posts("tools/call").len(), 4, "one was refused");
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
