//! Invariant 5: answers, replies and places that have a bound.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::support::{LegacyServer, Net, Proxy, Reply, call, json, list, pass, within};

#[tokio::test(start_paused = true)]
async fn inv5_an_array_of_thousands_is_refused_quickly() {
    for streamed in [false, true] {
        let server = LegacyServer::new().on("tools/call", move |seen, mut reply: Reply| async move {
            let other = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
            let mut items = vec![other.to_owned(); 4999];
            items.push(crate::support::rpc::result_message(&seen.id(), r#"{"content":[]}"#));
            let body = format!("[{}]", items.join(","));
            if !streamed {
                return reply.json(200, &body).await;
            }
            reply.stream().await;
            reply.event(&body).await;
            reply.never().await;
        });
        let (proxy, up) = Proxy::before(&server).await;
        proxy.send(&list("tools/list")).await.result();
        let (began, real) = (tokio::time::Instant::now(), std::time::Instant::now());
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert!(real.elapsed() < Duration::from_secs(5), "streamed {streamed}: {:?}", real.elapsed());
        assert!(began.elapsed() < Duration::from_secs(1), "streamed {streamed}: {:?}", began.elapsed());
        done.is_error(502, -32603);
        assert_eq!(up.posts("tools/call").len(), 1);
        proxy.send(&list("tools/list")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_answers_to_a_server_that_takes_none() {
    let server = LegacyServer::new()
        .on("tools/call", |seen, mut reply: Reply| async move {
            reply.stream().await;
            for n in 0..100 {
                reply.event(&json!({"jsonrpc": "2.0", "id": n, "method": "ping"}).to_string()).await;
            }
            reply.result_event(&seen, r#"{"content":[]}"#).await;
            reply.end().await;
        })
        .on("response", |_, reply: Reply| reply.never());
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "[upstream.up.timeouts]\ninitialize = \"10s\"\n").await;
    let running = proxy.spawn(&call("echo", "{}").id("7"));
    up.wait("response", 1).await;
    pass(5_000).await;
    let posted = up.briefs().iter().filter(|b| *b == "response").count();
    assert!((1..=8).contains(&posted), "{posted} answers in flight");
    let other = within("another call meanwhile", proxy.send(&list("tools/list"))).await;
    other.result();
    let done = running.await.unwrap();
    assert_eq!(done.message["id"], 7, "answered in the end: {}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn inv5_a_server_that_takes_its_answers_gets_all_of_them() {
    let server = LegacyServer::new().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        for n in 0..100 {
            reply.event(&json!({"jsonrpc": "2.0", "id": n, "method": "ping"}).to_string()).await;
        }
        pass(1000).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}").id("7")).await.result();
    let mut answered: Vec<i64> = Vec::new();
    for seen in up.requests().iter().filter(|s| s.brief() == "response") {
        let answer = seen.json();
        assert_eq!(answer["result"], json!({}), "{answer}");
        answered.push(answer["id"].as_i64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..100).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn inv5_a_request_beyond_the_limit_is_refused_under_its_id() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(10_000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let net = Net::new();
    let up = server.start(&net);
    let toml = "[limits]\nrequests = 1\n[upstream.up]\nurl = \"http://up.test/mcp\"\n";
    let proxy = Proxy::configured(&net, toml).await;
    let first = proxy.spawn(&call("echo", "{}"));
    up.wait("tools/call", 1).await;
    for id in ["2", r#""2""#, r#""a\u0062""#] {
        let done = proxy.send(&call("echo", "{}").id(id)).await;
        assert_eq!(done.status, 503, "{}", done.raw);
        assert_eq!(crate::support::rpc::id(done.raw.as_bytes()).as_deref(), Some(id), "{}", done.raw);
        let after = done.headers.get("retry-after").expect("Retry-After");
        assert!(after.parse::<u32>().is_ok(), "{after}");
    }
    assert_eq!(up.posts("tools/call").len(), 1);
    first.await.unwrap().result();
    proxy.send(&list("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn inv5_a_request_whose_body_is_still_coming_is_in_work() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let toml = "[limits]\nrequests = 1\n[upstream.up]\nurl = \"http://up.test/mcp\"\n";
    let proxy = Proxy::configured(&net, toml).await;
    let (mut slow, ask) = (proxy.connect(), call("echo", "{}"));
    let whole = ask.bytes();
    slow.write_all(&whole[..whole.len() - 20]).await.unwrap();
    pass(1000).await;
    let done = proxy.send(&call("echo", "{}").id(r#""x""#)).await;
    assert_eq!((done.status, &done.message["id"]), (503, &json!("x")), "{}", done.raw);
    assert!(done.headers.has("retry-after"));
    // A body that never comes gives its place back in time.
    pass(40_000).await;
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.posts("tools/call").len(), 0);
    drop(slow);
}
