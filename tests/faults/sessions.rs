//! C02, C03, A12.13, A12.15: sessions that begin badly, end, or are one too many.

use crate::support::{Ask, LegacyServer, Net, Proxy, Reply, call, list, pass};

#[tokio::test(start_paused = true)]
async fn c02_the_one_session_of_a_single_request_is_lost() {
    let base = LegacyServer::new();
    let counts = base.clone();
    let server = base.on("tools/call", move |seen, reply: Reply| {
        let counts = counts.clone();
        async move {
            if counts.count("call").is_multiple_of(2) {
                counts.forget_sessions();
                return reply.empty(404).await;
            }
            reply.result(&seen, r#"{"content":[]}"#).await;
        }
    });
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "[upstream.up.session]\nmax = 1\nscope = \"request\"\n").await;
    // Not the first call ever: the next test is about that one.
    proxy.send(&list("tools/list")).await;
    pass(1000).await;
    for n in 1..=3 {
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.status, 200, "call {n}: {} after {:?}", done.raw, up.briefs());
        assert_eq!(up.posts("tools/call").len(), 2 * n, "{:?}", up.briefs());
        assert!(server.live_sessions() <= 1, "{} sessions", server.live_sessions());
        pass(1000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_the_first_call_ever_where_one_session_may_be_open() {
    for scope in ["principal", "request"] {
        let net = Net::new();
        let up = LegacyServer::new().start(&net);
        let lines = format!("[upstream.up.session]\nmax = 1\nscope = \"{scope}\"\n");
        let proxy = Proxy::with(&net, &lines).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.status, 200, "{scope}: {} after {:?}", done.raw, up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn c02_the_one_session_of_a_principal_is_lost() {
    let server = LegacyServer::new();
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "[upstream.up.session]\nmax = 1\n").await;
    proxy.send(&call("echo", "{}")).await.result();
    server.forget_sessions();
    let running: Vec<_> = (0..4).map(|n| proxy.spawn(&call("echo", "{}").id(&n.to_string()))).collect();
    for one in running {
        one.await.unwrap().result();
    }
    assert_eq!(up.posts("initialize").len(), 2, "one for all: {:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn a12_15_a_session_whose_handshake_fails_is_ended_at_the_server() {
    for status in [500, 400, 403] {
        let server = LegacyServer::new()
            .on("notifications/initialized", move |_, reply: Reply| reply.body(status, "text/plain", "no"));
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.message["id"], 7, "{}", done.raw);
        assert_eq!(done.code(), -32603, "{}", done.raw);
        let ended = up.wait("DELETE", 1).await;
        assert_eq!(ended[0].session().as_deref(), Some("S1"), "{status}");
        pass(1000).await;
        let minted = up.posts("initialize").len();
        assert_eq!(server.deleted().len(), minted, "{status}: each that was opened: {:?}", up.briefs());
        assert_eq!(server.live_sessions(), 0, "{status}");
        assert_eq!(up.posts("tools/call").len(), 0, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a12_13_a_custom_notification_on_a_lost_session_is_delivered_once_more() {
    let server = LegacyServer::new();
    let (proxy, up) = Proxy::before(&server).await;
    proxy.send(&list("tools/list")).await.result();
    server.forget_sessions();
    let ask = Ask::new("notifications/custom").notification().params(r#""n":1"#);
    let done = proxy.send(&ask).await;
    assert_eq!(done.status, 202, "{}", done.raw);
    let sent = up.wait("notifications/custom", 2).await;
    let sessions: Vec<_> = sent.iter().filter_map(|s| s.session()).collect();
    assert_eq!(sessions, ["S1", "S2"]);
    assert!(sent.iter().all(|s| s.json()["params"]["n"] == 1));
    pass(1000).await;
    assert_eq!(up.posts("notifications/custom").len(), 2, "no third time");
    assert_eq!(up.posts("initialize").len(), 2);
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.posts("initialize").len(), 2, "the new session is kept");
}

#[tokio::test(start_paused = true)]
async fn a12_13_a_custom_notification_that_is_lost_again_is_given_up() {
    let server =
        LegacyServer::new().on("notifications/custom", |_, reply: Reply| reply.body(404, "text/plain", "no"));
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&Ask::new("notifications/custom").notification()).await;
    assert!(done.status == 202 || done.status == 502, "{} {}", done.status, done.raw);
    pass(1000).await;
    assert_eq!(up.posts("notifications/custom").len(), 2, "{:?}", up.briefs());
    assert_eq!(up.posts("initialize").len(), 2);
}
