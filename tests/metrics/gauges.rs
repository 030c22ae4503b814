//! Gauges: what they say while something lasts, and that nothing is left of it.

use crate::scrape::scrape;
use crate::support::{Ask, LegacyServer, Net, Proxy, Reply, call, list, pass};

const SESSIONS: &str = "mcp_janus_upstream_sessions";
const STREAMS: &str = "mcp_janus_open_streams";

fn listen() -> Ask {
    Ask::new("subscriptions/listen").params(r#""notifications":{}"#)
}

#[tokio::test(start_paused = true)]
async fn a_session_goes_through_its_states() {
    let server = LegacyServer::new();
    let own = server.clone();
    let server = server
        .on("initialize", move |seen, reply: Reply| {
            let own = own.clone();
            async move {
                pass(1_000).await;
                own.initialize_as_usual(&seen, reply).await;
            }
        })
        .on("tools/call", |seen, reply: Reply| async move {
            pass(1_000).await;
            reply.result(&seen, r#"{"content":[]}"#).await;
        })
        .on("DELETE", |_, reply: Reply| async move {
            pass(1_000).await;
            reply.empty(200).await;
        });
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::with(&net, "era = \"legacy\"\nsession.idle = \"10s\"\n").await;
    let calls: Vec<_> = (0..3).map(|_| proxy.spawn(&call("echo", "{}"))).collect();
    up.wait("initialize", 1).await;
    let state = |state: &str| [format!("state={state},upstream=up 1")];
    assert_eq!(scrape(&proxy).await.listed(SESSIONS), state("opening"));
    up.wait("tools/call", 3).await;
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(SESSIONS), state("busy"));
    assert_eq!(seen.count("mcp_janus_requests_in_progress", &[("upstream", "up")]), 3);
    for call in calls {
        call.await.unwrap().result();
    }
    assert_eq!(scrape(&proxy).await.listed(SESSIONS), state("idle"));
    up.wait("DELETE", 1).await;
    assert_eq!(scrape(&proxy).await.listed(SESSIONS), state("ending"));
    pass(1_500).await;
    assert_eq!(scrape(&proxy).await.listed(SESSIONS), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn streams_are_counted_by_kind_while_open() {
    let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(5_000).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let mut subscribed = proxy.open(&listen()).await;
    subscribed.message().await;
    let called = proxy.open(&call("echo", "{}")).await;
    assert!(called.is_stream(), "after `timeouts.hold`");
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(STREAMS), ["kind=answer,upstream=up 1", "kind=listen,upstream=up 1"]);
    assert_eq!(seen.count("mcp_janus_stream_duration_seconds_count", &[]), 0);
    assert_eq!(seen.count("mcp_janus_client_connections", &[]), 2);
    called.done().await.result();
    pass(60_000).await;
    subscribed.close();
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(STREAMS), Vec::<String>::new());
    let lasted = |kind: &str, le: &str| {
        seen.count("mcp_janus_stream_duration_seconds_bucket", &[("kind", kind), ("le", le)])
    };
    assert_eq!((lasted("answer", "1"), lasted("answer", "10")), (0, 1));
    assert_eq!((lasted("listen", "60"), lasted("listen", "300")), (0, 1));
    // A subscription has no latency.
    let timed = [("method", "subscriptions/listen")];
    assert_eq!(seen.count("mcp_janus_request_duration_seconds_count", &timed), 0);
    assert_eq!(seen.count(crate::requests::REQUESTS, &timed), 1);
}

/// B9.1: the proxy's own stream at the server lasts as long as somebody listens.
#[tokio::test(start_paused = true)]
async fn b9_1_the_stream_at_the_server_is_counted_while_open() {
    let server = LegacyServer::new().capabilities(r#"{"tools":{"listChanged":true}}"#).on(
        "GET",
        |_, mut reply: Reply| async move {
            reply.stream().await;
            reply.never().await;
        },
    );
    let (proxy, up) = Proxy::before(&server).await;
    let ask = Ask::new("subscriptions/listen").params(r#""notifications":{"toolsListChanged":true}"#);
    let mut first = proxy.open(&ask).await;
    first.message().await;
    up.wait("GET", 1).await;
    let mut second = proxy.open(&ask).await;
    second.message().await;
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(STREAMS), ["kind=listen,upstream=up 2", "kind=upstream-get,upstream=up 1"]);
    first.close();
    second.close();
    pass(5_000).await;
    assert_eq!(scrape(&proxy).await.listed(STREAMS), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_when_everything_is_over() {
    let server = LegacyServer::new()
        .on("tools/call", |_, reply: Reply| reply.never())
        .on("prompts/get", |_, reply: Reply| async move { reply.reset() });
    let net = Net::new();
    let up = server.start(&net);
    let proxy =
        Proxy::with(&net, "session.idle = \"20s\"\ntimeouts = { request = \"5s\", pool_idle = \"30s\" }\n")
            .await;
    proxy.send(&list("tools/list")).await.result();
    proxy.send(&call("echo", "{}")).await.code();
    proxy.send(&crate::support::get_prompt("p")).await.code();
    let gone = proxy.open(&call("echo", "{}")).await;
    let mut subscribed = proxy.open(&listen()).await;
    subscribed.message().await;
    let aborted = proxy.spawn(&call("echo", "{}").bearer("other"));
    up.wait("tools/call", 3).await;
    proxy.send(&list("tools/list").bearer("a third")).await.result();
    proxy.send(&list("tools/list").header("Accept", "no/thing")).await.code();
    server.forget_sessions();
    proxy.send(&list("tools/list").bearer("a third")).await.result();
    let seen = scrape(&proxy).await;
    for gauge in [
        "mcp_janus_requests_in_progress",
        STREAMS,
        SESSIONS,
        "mcp_janus_client_connections",
        "mcp_janus_upstream_connections",
    ] {
        assert!(seen.count(gauge, &[]) > 0, "{gauge} is not used here: {:?}", seen.raised());
    }
    gone.close();
    subscribed.close();
    aborted.abort();
    pass(120_000).await;
    let seen = scrape(&proxy).await;
    assert_eq!(seen.raised(), Vec::<String>::new());
}
