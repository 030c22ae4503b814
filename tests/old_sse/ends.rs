//! C03, C10, C56: the end of a session over the old transport, which is that of its stream. Nothing is resumed: the whole
//! handshake is done again.

use crate::support::{Calls, LegacyServer, Net, OldSseServer, Proxy, Reply, call, json, list, pass};

/// Opens a session, and gives the number of the handshakes so far.
async fn opened(proxy: &Proxy) {
    proxy.send(&list("tools/list")).await.result();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_fails_its_calls_and_costs_no_more() {
    for how in ["ended", "broken off"] {
        let (net, calls) = (Net::new(), Calls::new());
        let server = OldSseServer::new(&calls.of(LegacyServer::new()));
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "").await;
        opened(&proxy).await;
        let running: Vec<_> = (1..=3)
            .map(|n| proxy.spawn(&call("slow", &format!(r#"{{"n":{n}}}"#)).id(&n.to_string())))
            .collect();
        calls.wait(3).await;
        let since = tokio::time::Instant::now();
        match how {
            "ended" => server.stream(1).await.end(),
            _ => server.stream(1).await.break_off(),
        }
        for (n, running) in (1..).zip(running) {
            let done = running.await.unwrap();
            assert_eq!(
                (done.status, done.code(), &done.message["id"]),
                (502, -32603, &json!(n)),
                "{how}: {}",
                done.raw
            );
            assert!(done.raw.contains("may have run"), "{how}: {}", done.raw);
        }
        assert!(since.elapsed().as_secs() < 1, "at once");
        opened(&proxy).await;
        assert_eq!((server.streams().len(), server.open_streams()), (2, 1), "{how}: a new stream");
        let all = up.briefs();
        let handshake = ["GET", "initialize", "notifications/initialized", "tools/list"];
        assert_eq!(all[all.len() - 4..], handshake, "{how}: the whole handshake, once");
        assert_eq!(calls.all().len(), 3, "{how}: nothing was sent again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_between_calls_is_hardly_noticed() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new());
    server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    for n in 1..=5 {
        opened(&proxy).await;
        assert_eq!(server.streams().len(), n);
        server.stream(n).await.end();
        server.stream(n).await.closed().await;
        pass(10).await;
    }
    // Not held against it either.
    opened(&proxy).await;
}

#[tokio::test(start_paused = true)]
async fn c03_a_message_to_an_unknown_session_is_sent_again_in_a_new_one() {
    let net = Net::new();
    let calls = Calls::new();
    let inner = calls.of(LegacyServer::new());
    let server = OldSseServer::new(&inner);
    let lost = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let once = server.clone();
    let server = server.on("tools/call", move |seen, reply: Reply| {
        let (once, lost) = (once.clone(), std::sync::Arc::clone(&lost));
        async move {
            match lost.swap(false, std::sync::atomic::Ordering::SeqCst) {
                true => reply.body(404, "text/plain", "Could not find session").await,
                false => once.answer(seen, reply).await,
            }
        }
    });
    let up = server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    opened(&proxy).await;
    let running = proxy.spawn(&call("echo", "{}").id("9"));
    calls.wait(1).await.finish("ran once");
    let done = running.await.unwrap();
    assert_eq!((&done.result()["content"][0]["text"], &done.message["id"]), (&json!("ran once"), &json!(9)));
    assert_eq!((calls.all().len(), up.posts("tools/call").len()), (1, 2));
    assert_eq!(
        (server.streams().len(), server.open_streams()),
        (2, 1),
        "the stream of the lost one is closed"
    );
}

#[tokio::test(start_paused = true)]
async fn an_initialize_without_an_answer_leaves_nothing_open() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new().on("initialize", |_, reply: Reply| reply.never()));
    let up = server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "transport = \"sse\"\nsession = { max = 1 }").await;
    for n in 1..=3 {
        let done = proxy.send(&list("tools/list").id("7")).await;
        assert_eq!((done.status, done.code()), (504, -32603), "{}", done.raw);
        server.stream(n).await.closed().await;
    }
    assert_eq!(server.open_streams(), 0, "{:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn an_initialize_that_is_refused_leaves_nothing_open() {
    let net = Net::new();
    let server =
        OldSseServer::new(&LegacyServer::new().error("initialize", r#"{"code":-32602,"message":"not so"}"#));
    server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "transport = \"sse\"").await;
    for n in 1..=4 {
        let done = proxy.send(&list("tools/list").id("7")).await;
        done.is_error(502, -32603);
        assert!(done.raw.contains("not so"), "{n}: {}", done.raw);
        server.stream(n).await.closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c10_a_session_that_nobody_uses_is_closed() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new());
    server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "session = { idle = \"60s\" }").await;
    opened(&proxy).await;
    pass(30_000).await;
    opened(&proxy).await;
    assert_eq!((server.streams().len(), server.open_streams()), (1, 1));
    server.stream(1).await.closed().await;
    assert_eq!(proxy.sessions(), 0);
    opened(&proxy).await;
    assert_eq!(server.streams().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn many_short_calls_leave_as_many_streams_as_there_were() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new());
    server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    for n in 0..200 {
        proxy.send(&call("echo", "{}").id(&n.to_string())).await.result();
    }
    assert_eq!(server.streams().len(), 1);
    let proxy = Proxy::of_old_sse(&net, "session = { scope = \"request\" }").await;
    for n in 0..20 {
        proxy.send(&call("echo", "{}").id(&n.to_string())).await.result();
    }
    pass(10_000).await;
    assert_eq!(
        (server.streams().len(), server.open_streams()),
        (22, 1),
        "one of the first proxy, and one to find out the era"
    );
}

#[tokio::test(start_paused = true)]
async fn sessions_are_bounded() {
    let (net, calls) = (Net::new(), Calls::new());
    let server = OldSseServer::new(&calls.of(LegacyServer::new()));
    server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "transport = \"sse\"\nsession = { max = 2 }").await;
    let running: Vec<_> = ["a", "b"].map(|token| proxy.spawn(&call("slow", "{}").bearer(token))).into();
    calls.wait(2).await;
    let done = proxy.send(&call("slow", "{}").bearer("c")).await;
    assert_eq!(done.status, 503, "{}", done.raw);
    assert_eq!(server.open_streams(), 2);
    calls.all().iter().for_each(|call| call.finish("done"));
    for running in running {
        running.await.unwrap().result();
    }
    // One that is idle makes room.
    let last = proxy.spawn(&call("slow", "{}").bearer("c"));
    calls.wait(3).await.finish("done");
    last.await.unwrap().result();
    pass(10_000).await;
    assert_eq!((server.streams().len(), server.open_streams()), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_calls_end_and_then_closes_the_streams() {
    let (net, calls) = (Net::new(), Calls::new());
    let server = OldSseServer::new(&calls.of(LegacyServer::new()));
    server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    let running = proxy.spawn(&call("slow", "{}"));
    let call = calls.wait(1).await;
    proxy.drain();
    pass(1000).await;
    assert_eq!(server.open_streams(), 1, "the call still needs it");
    call.finish("in time");
    assert_eq!(running.await.unwrap().result()["content"][0]["text"], "in time");
    let since = tokio::time::Instant::now();
    proxy.finished().await;
    assert!(since.elapsed().as_secs() < 5, "an open stream holds up nothing: {:?}", since.elapsed());
    proxy.upstream().close().await;
    server.stream(1).await.closed().await;
}
