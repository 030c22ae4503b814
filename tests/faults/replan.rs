//! Invariant 3, C39, C40: a call is planned anew only where the server's era really is the other one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::net::{Receiver, handler};
use crate::support::{LegacyServer, ModernServer, Net, Proxy, Reply, Upstream, call, json, list};

const HTML: &str = "<html>no</html>";

#[tokio::test(start_paused = true)]
async fn inv3_a_modern_servers_own_400_is_relayed_and_the_call_not_sent_again() {
    let server = ModernServer::new().on("tools/call", |seen, reply: Reply| async move {
        reply.error(400, &seen, r#"{"code":-32000,"message":"charged, then failed","data":{"n":1}}"#).await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    for id in ["7", r#""x""#] {
        let before = up.posts("tools/call").len();
        let done = proxy.send(&call("charge", "{}").id(id)).await;
        done.is_error(400, -32000);
        let expected = json!({"code": -32000, "message": "charged, then failed", "data": {"n": 1}});
        assert_eq!(done.message["error"], expected);
        assert_eq!(up.posts("tools/call").len(), before + 1, "id {id}: {:?}", up.briefs());
    }
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.posts("initialize").len(), 0, "{:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn inv3_a_modern_servers_page_with_a_4xx_is_no_reason_to_send_a_call_again() {
    for status in [400, 404, 422] {
        for ask in [call("charge", "{}").id("7"), call("charge", "{}").id(r#""x""#)] {
            let server = ModernServer::new()
                .on("tools/call", move |_, reply: Reply| reply.body(status, "text/html", HTML));
            let (proxy, up) = Proxy::before_modern(&server).await;
            proxy.send(&list("tools/list")).await.result();
            proxy.send(&ask).await.is_error(502, -32603);
            assert_eq!(up.posts("tools/call").len(), 1, "{status}: {:?}", up.briefs());
            proxy.send(&list("tools/list")).await.result();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv3_the_same_as_the_first_call_ever() {
    for status in [400, 404, 422] {
        let server = ModernServer::new()
            .on("tools/call", move |_, reply: Reply| reply.body(status, "text/html", HTML));
        let (proxy, up) = Proxy::before_modern(&server).await;
        proxy.send(&call("charge", "{}").id("7")).await.is_error(502, -32603);
        assert_eq!(up.posts("tools/call").len(), 1, "{status}: {:?}", up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn a11_12_a_legacy_servers_own_32020_is_its_answer() {
    for code in [-32020, -32022] {
        let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| async move {
            let error = format!(r#"{{"code":{code},"message":"mine","data":{{"why":[1]}}}}"#);
            reply.error(400, &seen, &error).await;
        });
        let (proxy, up) = Proxy::before(&server).await;
        proxy.send(&list("tools/list")).await.result();
        let done = proxy.send(&call("charge", "{}").id("7")).await;
        assert_eq!(done.code(), -32603, "{}", done.raw);
        assert_eq!(done.data()["originalCode"], code, "{}", done.raw);
        assert_eq!(done.data()["originalData"], json!({"why": [1]}), "{}", done.raw);
        assert_eq!(up.posts("tools/call").len(), 1, "{code}: {:?}", up.briefs());
        proxy.send(&list("tools/list")).await.result();
    }
}

/// A server of one era until the switch is thrown, then of the other.
fn switched(
    legacy: &LegacyServer,
    modern: &ModernServer,
    is_modern: bool,
) -> (Net, Upstream, Arc<AtomicBool>) {
    let (net, now) = (Net::new(), Arc::new(AtomicBool::new(is_modern)));
    let (legacy, modern, then) = (legacy.clone(), modern.clone(), Arc::clone(&now));
    let peer = handler(move |seen, reply| {
        let (legacy, modern, is_modern) = (legacy.clone(), modern.clone(), then.load(Ordering::SeqCst));
        async move { if is_modern { modern.answer(seen, reply).await } else { legacy.answer(seen, reply).await } }
    });
    let up = net.serve("up.test", Receiver::Unchecked, peer);
    (net, up, now)
}

#[tokio::test(start_paused = true)]
async fn c39_a_call_to_a_server_that_became_modern_is_answered_in_the_same_exchange() {
    let (net, up, is_modern) = switched(&LegacyServer::new(), &ModernServer::new(), false);
    let proxy = Proxy::start(&net).await;
    proxy.send(&list("tools/list")).await.result();
    is_modern.store(true, Ordering::SeqCst);
    let done = proxy.send(&call("echo", "{}").id("7")).await;
    assert_eq!(done.result()["content"][0]["text"], "modern");
    let sent = up.posts("tools/call");
    let headers: Vec<_> = sent.iter().filter_map(|s| s.header("mcp-protocol-version")).collect();
    assert_eq!(headers, ["2025-11-25", "2026-07-28"], "refused by its era, then run");
    assert_eq!(up.posts("server/discover").len(), 2, "{:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn c39_many_at_once_when_a_server_becomes_modern_are_all_answered() {
    let (net, up, is_modern) = switched(&LegacyServer::new(), &ModernServer::new(), false);
    all_answered_at_the_change(&net, &up, &is_modern, true).await;
}

#[tokio::test(start_paused = true)]
async fn c39_many_at_once_when_a_server_becomes_legacy_are_all_answered() {
    let (net, up, is_modern) = switched(&LegacyServer::new(), &ModernServer::new(), true);
    all_answered_at_the_change(&net, &up, &is_modern, false).await;
}

async fn all_answered_at_the_change(net: &Net, up: &Upstream, era: &AtomicBool, to_modern: bool) {
    let proxy = Proxy::start(net).await;
    proxy.send(&list("tools/list")).await.result();
    era.store(to_modern, Ordering::SeqCst);
    let asks = (0..8).map(|n| match n % 2 {
        0 => call("echo", "{}").id(&n.to_string()),
        _ => list("tools/list").id(&n.to_string()),
    });
    let running: Vec<_> = asks.map(|ask| proxy.spawn(&ask)).collect();
    for (n, one) in running.into_iter().enumerate() {
        let done = one.await.unwrap();
        assert_eq!(done.message["id"], n);
        done.result();
    }
    assert!(up.posts("tools/call").len() <= 8, "each twice at most: {:?}", up.briefs());
    let probes = up.posts("server/discover").len();
    assert!((2..=9).contains(&probes), "no storm: {probes}");
}

#[tokio::test(start_paused = true)]
async fn c39_two_principals_at_the_change_are_both_answered() {
    let (net, up, is_modern) = switched(&LegacyServer::new(), &ModernServer::new(), false);
    let proxy = Proxy::start(&net).await;
    for user in ["a", "b"] {
        proxy.send(&list("tools/list").bearer(user)).await.result();
    }
    is_modern.store(true, Ordering::SeqCst);
    let running = ["a", "b"].map(|user| proxy.spawn(&call("echo", "{}").bearer(user)));
    for one in running {
        one.await.unwrap().result();
    }
    assert!(up.posts("tools/call").len() <= 4, "{:?}", up.briefs());
}
