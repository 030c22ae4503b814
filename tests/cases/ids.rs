//! C17, C18, C20, C21, C23: ids of every kind, reused, echoed, missing, and used to cancel.

use std::sync::Arc;

use crate::support::{Ask, LegacyServer, Proxy, Reply, Seen, VERSION, call, json, list, pass, rpc};

#[tokio::test(start_paused = true)]
async fn c17_a_server_echoes_the_id_in_another_json_type() {
    let server = LegacyServer::new().on("tools/call", |seen: Arc<Seen>, reply: Reply| async move {
        let id = seen.id();
        let turned = match id.strip_prefix('"') {
            Some(rest) => rest.trim_end_matches('"').to_owned(),
            None => format!(r#""{id}""#),
        };
        let turned = if turned.parse::<i64>().is_ok() || turned.starts_with('"') { turned } else { id };
        reply.json(200, &rpc::result_message(&turned, r#"{"content":[]}"#)).await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let one = proxy.spawn(&call("echo", "{}").id("1"));
    let text = proxy.spawn(&call("echo", "{}").id(r#""1""#));
    for (call, id) in [(one, json!(1)), (text, json!("1"))] {
        let done = call.await.unwrap();
        done.result();
        assert_eq!(done.message["id"], id);
    }
}

#[tokio::test(start_paused = true)]
async fn c18_ids_are_echoed_exactly_on_every_path() {
    let long = format!(r#""{}""#, "x".repeat(200));
    let ids =
        [r#""1""#, r#""init-1""#, r#""""#, r#""0""#, "0", "-1", &long, "9007199254740993", r#""\u0041""#];
    let server = LegacyServer::new()
        .error("prompts/list", r#"{"code":5,"message":"m"}"#)
        .on("resources/list", |_, reply: Reply| reply.empty(500));
    let (proxy, _up) = Proxy::before(&server).await;
    let paths: [(&str, Ask, u16); 8] = [
        ("success", call("echo", "{}"), 200),
        ("bad header", call("echo", "{}").without("Mcp-Name"), 400),
        (
            "bad version",
            list("tools/list").header("MCP-Protocol-Version", "2027-01-01").meta(VERSION, r#""2027-01-01""#),
            400,
        ),
        ("removed method", Ask::new("ping"), 404),
        ("unknown method", Ask::new("acme/none"), 404),
        ("server error", list("prompts/list"), 200),
        ("server down", list("resources/list"), 502),
        ("bad params", list("tools/list").caps("1"), 400),
    ];
    for id in ids {
        for (what, ask, status) in &paths {
            let done = proxy.send(&ask.clone().id(id)).await;
            assert_eq!(done.status, *status, "{what} {id}: {}", done.raw);
            assert_eq!(rpc::id(done.raw.as_bytes()).as_deref(), Some(id), "{what}: {}", done.raw);
        }
    }
    let (proxy, down) = Proxy::before(&LegacyServer::new()).await;
    down.refuse();
    for id in ids {
        let done = proxy.send(&list("tools/list").id(id)).await;
        done.is_error(502, -32603);
        assert_eq!(rpc::id(done.raw.as_bytes()).as_deref(), Some(id));
    }
}

#[tokio::test(start_paused = true)]
async fn c18_upstream_ids_are_small_and_plain() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for id in [r#""very long and odd \n id""#, "-5", "9007199254740993"] {
        proxy.send(&call("echo", "{}").id(id)).await.result();
    }
    for seen in up.posts("tools/call") {
        let id = seen.json()["id"].clone();
        assert!(
            id.as_i64().is_some_and(|n| (0..1 << 53).contains(&n))
                || id.as_str().is_some_and(|s| s.len() <= 64),
            "{id}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c20_fifty_users_all_call_with_id_1() {
    let server = LegacyServer::new().on("tools/call", |seen: Arc<Seen>, reply: Reply| async move {
        let n = seen.json()["params"]["arguments"]["n"].as_u64().unwrap();
        pass(n * 7919 % 1000).await;
        let token = seen.header("authorization").unwrap();
        reply.result(&seen, &format!(r#"{{"content":[],"n":{n},"token":"{token}"}}"#)).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let ask = |n: u64| call("echo", &format!(r#"{{"n":{n}}}"#)).id("1");
    let calls: Vec<_> = (0..50).map(|n| proxy.spawn(&ask(n).bearer(&format!("u{}", n % 25)))).collect();
    for (call, n) in calls.into_iter().zip(0..50_u64) {
        let done = call.await.unwrap();
        let expected = (json!(n), json!(format!("Bearer u{}", n % 25)));
        assert_eq!((done.result()["n"].clone(), done.result()["token"].clone()), expected);
    }
    let mut pairs: Vec<_> = up.posts("tools/call").iter().map(|s| (s.session(), s.id())).collect();
    pairs.sort();
    pairs.dedup();
    assert_eq!(pairs.len(), 50, "ids are distinct within a session");
    for seen in up.posts("tools/call") {
        let same = up.posts("tools/call").into_iter().filter(|s| s.session() == seen.session());
        assert!(
            same.into_iter().all(|s| s.header("authorization") == seen.header("authorization")),
            "one principal a session"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn c21_no_id_or_a_null_id() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let done = proxy.send(&list("tools/list").notification()).await;
    assert!(done.status == 202 && done.body.is_empty() || (400..500).contains(&done.status), "{}", done.raw);
    assert_eq!(done.message.get("result"), None);
    let done = proxy.send(&list("tools/list").id("null")).await;
    done.is_error(400, -32600);
    assert_eq!(up.posts("tools/list").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn c21_a_notification_is_accepted_without_a_body() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    let done =
        proxy.send(&Ask::new("notifications/cancelled").notification().params(r#""requestId":1"#)).await;
    assert_eq!((done.status, done.body.len()), (202, 0), "{}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn c23_a_client_closes_during_a_long_call() {
    let server = LegacyServer::new().on("tools/call", |_, reply: Reply| reply.never());
    let (proxy, up) = Proxy::before(&server).await;
    let call = proxy.spawn(&call("echo", "{}").id("101"));
    up.wait("tools/call", 1).await;
    pass(1000).await;
    call.abort();
    let began = tokio::time::Instant::now();
    let cancelled = up.wait("notifications/cancelled", 1).await;
    assert!(began.elapsed().as_secs() < 5, "promptly: {:?}", began.elapsed());
    assert_eq!(cancelled[0].json()["params"]["requestId"], up.only("tools/call").json()["id"]);
    pass(60_000).await;
    assert_eq!(up.posts("notifications/cancelled").len(), 1);
    assert_eq!(up.posts("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c23_a_client_that_leaves_during_the_handshake_cancels_nothing() {
    let base = LegacyServer::new();
    let server = base.clone().on("initialize", move |seen, reply: Reply| {
        let base = base.clone();
        async move {
            pass(5000).await;
            base.initialize_as_usual(&seen, reply).await;
        }
    });
    let (proxy, up) = Proxy::before(&server).await;
    let first = proxy.spawn(&call("echo", r#"{"who":"leaves"}"#));
    up.wait("initialize", 1).await;
    let second = proxy.spawn(&call("echo", r#"{"who":"stays"}"#));
    pass(100).await;
    first.abort();
    second.await.unwrap().result();
    assert_eq!(up.posts("notifications/cancelled").len(), 0, "initialize is never cancelled");
    assert!(up.only("tools/call").text().contains("stays"), "what was given up is not sent");
    assert_eq!(up.posts("initialize").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c23_a_cancel_by_message_names_nothing_over_http() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(2000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    let running = proxy.spawn(&call("echo", "{}").id("1"));
    up.wait("tools/call", 1).await;
    // Another client's message must not end this call, whatever id it names.
    for id in ["1", "99", &up.only("tools/call").id()] {
        proxy
            .send(&Ask::new("notifications/cancelled").notification().params(&format!(r#""requestId":{id}"#)))
            .await;
    }
    running.await.unwrap().result();
    assert_eq!(up.posts("notifications/cancelled").len(), 0);
}
