//! Eras and sessions: detections, openings, losses.

use crate::scrape::scrape;
use crate::support::net::{Receiver, handler};
use crate::support::{LegacyServer, ModernServer, Net, Proxy, Reply, call, list, pass};

const OPENED: &str = "mcp_janus_initializations_total";
const DETECTED: &str = "mcp_janus_era_detections_total";

#[tokio::test(start_paused = true)]
async fn c03_a_lost_session_is_opened_again_and_its_call_sent_again() {
    let server = LegacyServer::new();
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}")).await.result();
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(OPENED), ["result=ok,upstream=up 1"]);
    assert_eq!(seen.count("mcp_janus_sessions_lost_total", &[]), 0);
    server.forget_sessions();
    proxy.send(&call("echo", "{}")).await.result();
    let seen = scrape(&proxy).await;
    assert_eq!(seen.listed(OPENED), ["result=ok,upstream=up 2"]);
    assert_eq!(seen.listed("mcp_janus_sessions_lost_total"), ["upstream=up 1"]);
    assert_eq!(seen.listed("mcp_janus_calls_resent_total"), ["upstream=up 1"]);
    // To its client it was one call.
    assert_eq!(seen.count(crate::requests::REQUESTS, &[("method", "tools/call"), ("outcome", "result")]), 2);
    assert_eq!(seen.count("mcp_janus_upstream_sessions", &[]), 1, "the lost one is none of them");
}

#[tokio::test(start_paused = true)]
async fn sessions_that_could_not_be_opened() {
    let net = Net::new();
    let error = r#"{"code":-32600,"message":"no"}"#;
    LegacyServer::new().error("initialize", error).start(&net);
    let proxy = Proxy::with(&net, "era = \"legacy\"\n").await;
    proxy.send(&list("tools/list")).await.is_error(502, -32603);
    assert_eq!(scrape(&proxy).await.listed(OPENED), ["result=refused,upstream=up 1"]);

    let net = Net::new();
    LegacyServer::new().on("initialize", |_, reply: Reply| reply.never()).start(&net);
    let proxy = Proxy::with(&net, "era = \"legacy\"\n").await;
    proxy.send(&list("tools/list")).await.is_error(504, -32603);
    assert_eq!(scrape(&proxy).await.listed(OPENED), ["result=failed,upstream=up 1"]);
}

#[tokio::test(start_paused = true)]
async fn b13_looks_at_the_era_by_what_came_out() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    up.refuse();
    let proxy = Proxy::start(&net).await;
    proxy.send(&list("tools/list")).await.is_error(502, -32603);
    assert_eq!(scrape(&proxy).await.listed(DETECTED), ["upstream=up,verdict=none 1"]);
    up.restore();
    proxy.send(&list("tools/list")).await.result();
    let first = ["upstream=up,verdict=legacy 1", "upstream=up,verdict=none 1"];
    assert_eq!(scrape(&proxy).await.listed(DETECTED), first);
    // C39a: a modern one has taken its place.
    pass(2_000).await;
    let peer = handler(|seen, reply| ModernServer::new().answer(seen, reply));
    // Unchecked: what it gets first is still the session's.
    net.serve("up.test", Receiver::Unchecked, peer);
    proxy.send(&list("tools/list")).await.result();
    let seen = scrape(&proxy).await;
    let second =
        ["upstream=up,verdict=legacy 1", "upstream=up,verdict=modern 1", "upstream=up,verdict=none 1"];
    assert_eq!(seen.listed(DETECTED), second);
    assert_eq!(seen.listed("mcp_janus_era_contradictions_total"), ["upstream=up 1"]);
    // The call belongs to the cell that it was answered in.
    let answered = [("method", "tools/list"), ("server", "modern"), ("outcome", "relayed")];
    assert_eq!(seen.count(crate::requests::REQUESTS, &answered), 1);
}
