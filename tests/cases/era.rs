//! C34-C36, C39-C41: eras found wrongly, remembered too long, or found at the price of a second run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::net::{Receiver, handler};
use crate::support::{LegacyServer, ModernServer, Net, Proxy, Reply, call, json, list, pass};

#[tokio::test(start_paused = true)]
async fn c34_the_challenge_of_the_probe_reaches_the_client() {
    let net = Net::new();
    let inner = LegacyServer::new();
    let gate = handler(move |seen, reply: Reply| {
        let inner = inner.clone();
        async move {
            if seen.header("authorization").is_none() {
                return reply.with("WWW-Authenticate", "Bearer scope=\"x\"").empty(401).await;
            }
            inner.answer(seen, reply).await;
        }
    });
    let up = net.serve("up.test", Receiver::Legacy, gate);
    let proxy = Proxy::start(&net).await;
    let done = proxy.send(&list("tools/list")).await;
    assert_eq!(
        (done.status, done.headers.get("www-authenticate").as_deref()),
        (401, Some("Bearer scope=\"x\""))
    );
    assert_eq!(up.briefs(), ["server/discover"], "no initialize without a credential");
    proxy.send(&list("tools/list").bearer("t")).await.result();
    assert_eq!(up.posts("server/discover").len(), 2, "no verdict was stored");
}

#[tokio::test(start_paused = true)]
async fn c34_a_probe_refused_in_spite_of_a_credential() {
    let server = LegacyServer::new().on("server/discover", |_, reply: Reply| reply.empty(401));
    let (proxy, up) = Proxy::before(&server).await;
    let done = proxy.send(&list("tools/list").bearer("t")).await;
    // One try of initialize is justified, no more; a plain 401 is right as well.
    assert!(done.status == 200 || done.status == 401, "{}", done.raw);
    assert!(up.posts("initialize").len() <= 1);
}

#[tokio::test(start_paused = true)]
async fn c34_a_403_with_a_body_is_relayed_as_403() {
    let server = LegacyServer::new().on("server/discover", |seen, reply: Reply| async move {
        reply.error(403, &seen, r#"{"code":-32601,"message":"m"}"#).await;
    });
    let (proxy, up) = Proxy::before(&server).await;
    for _ in 0..2 {
        assert_eq!(proxy.send(&list("tools/list")).await.status, 403);
    }
    assert_eq!(up.posts("server/discover").len(), 2, "not stored");
}

#[tokio::test(start_paused = true)]
async fn c35_failures_of_the_probe_are_no_verdict() {
    for what in ["500", "502", "503", "reset", "closed", "silence"] {
        let bad = LegacyServer::new().on("server/discover", move |seen, reply: Reply| async move {
            match what {
                "500" => reply.body(500, "text/html", "<p>").await,
                "502" => reply.json(502, r#"{"error":"x"}"#).await,
                "503" => reply.error(503, &seen, r#"{"code":-32601,"message":"m"}"#).await,
                "reset" => reply.reset(),
                "closed" => drop(reply),
                _ => reply.never().await,
            }
        });
        let net = Net::new();
        let up = bad.start(&net);
        let proxy = Proxy::start(&net).await;
        let done = proxy.send(&list("tools/list").id("1")).await;
        assert!(done.status == 502 || done.status == 504, "{what}: {} {}", done.status, done.raw);
        assert_eq!(done.code(), -32603, "{what}");
        assert_eq!(up.posts("initialize").len(), 0, "{what}");
        let up = ModernServer::new().start(&net);
        proxy.send(&list("tools/list")).await.result();
        assert_eq!(up.posts("initialize").len(), 0, "{what}: then modern");
    }
}

#[tokio::test(start_paused = true)]
async fn c36_too_many_requests_is_passed_on_and_forgotten() {
    let server = LegacyServer::new()
        .on("server/discover", |_, reply: Reply| reply.with("Retry-After", "7").empty(429));
    let net = Net::new();
    let up = server.start(&net);
    let proxy = Proxy::start(&net).await;
    let done = proxy.send(&list("tools/list").id("1")).await;
    assert_eq!(done.headers.get("retry-after").as_deref(), Some("7"), "{} {}", done.status, done.raw);
    assert!(done.status == 429 || done.status == 503, "{} {}", done.status, done.raw);
    assert_eq!(up.briefs(), ["server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn c36_html_everywhere_is_named() {
    let net = Net::new();
    let page = handler(|_, reply: Reply| reply.body(200, "text/html", "<html>welcome</html>"));
    let up = net.serve("up.test", Receiver::Legacy, page);
    let proxy = Proxy::start(&net).await;
    let done = proxy.send(&list("tools/list").id("1")).await;
    done.is_error(502, -32603);
    let message = done.message["error"]["message"].as_str().unwrap().to_lowercase();
    assert!(message.contains("html"), "says what came: {message}");
    assert_eq!(up.briefs(), ["server/discover", "initialize"]);
}

/// A server that is `first` until the switch is thrown, then `then`.
struct Switched {
    net: Net,
    flag: Arc<AtomicUsize>,
}

impl Switched {
    fn new(first: &LegacyServer, then: &ModernServer, start: usize) -> (Self, crate::support::Upstream) {
        let (net, flag) = (Net::new(), Arc::new(AtomicUsize::new(start)));
        let (legacy, modern, now) = (first.clone(), then.clone(), Arc::clone(&flag));
        let peer = handler(move |seen, reply| {
            let (legacy, modern) = (legacy.clone(), modern.clone());
            let era = now.load(Ordering::SeqCst);
            async move {
                if era == 0 { legacy.answer(seen, reply).await } else { modern.answer(seen, reply).await }
            }
        });
        let up = net.serve("up.test", Receiver::Unchecked, peer);
        (Self { net, flag }, up)
    }

    fn to(&self, era: usize) {
        self.flag.store(era, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn c39_a_legacy_server_becomes_modern() {
    let (switch, up) = Switched::new(&LegacyServer::new(), &ModernServer::new(), 0);
    let proxy = Proxy::start(&switch.net).await;
    proxy.send(&list("tools/list")).await.result();
    switch.to(1);
    let first = proxy.send(&list("tools/list")).await;
    assert!(first.status == 200 || first.code() == -32603, "{}", first.raw);
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.posts("server/discover").len(), 2, "one re-probe: {:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn c39_a_legacy_server_becomes_modern_between_sessions() {
    let (switch, up) = Switched::new(&LegacyServer::new(), &ModernServer::new(), 0);
    let proxy = Proxy::start(&switch.net).await;
    proxy.send(&list("tools/list").bearer("a")).await.result();
    switch.to(1);
    // Another user needs a session; initialize is answered 400 -32022, and nothing ran.
    proxy.send(&list("tools/list").bearer("b")).await.result();
    assert_eq!(up.posts("server/discover").len(), 2, "{:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn c39_a_modern_server_becomes_legacy() {
    let (switch, up) = Switched::new(&LegacyServer::new(), &ModernServer::new(), 1);
    let proxy = Proxy::start(&switch.net).await;
    proxy.send(&list("tools/list")).await.result();
    switch.to(0);
    // The gate's 400 proves that nothing ran, so the same exchange is answered.
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.posts("server/discover").len(), 2, "{:?}", up.briefs());
    assert_eq!(up.posts("initialize").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c39_a_server_that_became_dual_is_found_in_time() {
    let legacy = LegacyServer::new();
    let (switch, up) = Switched::new(&legacy, &ModernServer::new(), 0);
    let proxy = Proxy::start(&switch.net).await;
    proxy.send(&list("tools/list")).await.result();
    switch.to(1);
    pass(25 * 3_600_000).await;
    let _ = proxy.send(&list("tools/list")).await;
    pass(60_000).await;
    proxy.send(&list("tools/list")).await.result();
    assert!(up.posts("server/discover").len() >= 2, "looked at again after era_ttl");
}

#[tokio::test(start_paused = true)]
async fn c39_two_paths_of_one_origin() {
    let net = Net::new();
    let (legacy, modern) = (LegacyServer::new(), ModernServer::new());
    let peer = handler(move |seen, reply| {
        let (legacy, modern) = (legacy.clone(), modern.clone());
        async move {
            match seen.target.as_str() {
                "/old" => legacy.answer(seen, reply).await,
                _ => modern.answer(seen, reply).await,
            }
        }
    });
    let up = net.serve("up.test", Receiver::Unchecked, peer);
    let toml = "[upstream.old]\nurl = \"http://up.test/old\"\npath = \"/old\"\n[upstream.new]\nurl = \"http://up.test/new\"\npath = \"/new\"\n";
    let proxy = Proxy::configured(&net, toml).await;
    for _ in 0..2 {
        for path in ["/old", "/new"] {
            proxy.send(&list("tools/list").path(path)).await.result();
        }
    }
    assert_eq!(up.posts("server/discover").len(), 2, "one verdict an endpoint");
    assert_eq!(up.posts("initialize").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c39_alternating_replicas_cause_no_storm() {
    let net = Net::new();
    let (legacy, modern) = (LegacyServer::new(), ModernServer::new());
    let turn = AtomicUsize::new(0);
    let peer = handler(move |seen, reply| {
        let (legacy, modern) = (legacy.clone(), modern.clone());
        let odd = turn.fetch_add(1, Ordering::SeqCst) % 2 == 1;
        async move { if odd { modern.answer(seen, reply).await } else { legacy.answer(seen, reply).await } }
    });
    let up = net.serve("up.test", Receiver::Unchecked, peer);
    let proxy = Proxy::start(&net).await;
    for id in 0..10 {
        let done = proxy.send(&list("tools/list").id(&id.to_string())).await;
        assert_eq!(done.message["id"], id, "answered or failed cleanly: {}", done.raw);
    }
    assert!(up.requests().len() <= 80, "{} requests for ten calls", up.requests().len());
}

#[tokio::test(start_paused = true)]
async fn c40_the_first_call_ever_runs_at_most_once() {
    for what in ["reset", "closed", "500", "-32603", "silence", "200"] {
        let runs = Arc::new(AtomicUsize::new(0));
        let ledger = Arc::clone(&runs);
        let net = Net::new();
        // A server that executes calls without initialize, which a careful one would not.
        let legacy = LegacyServer::new();
        let peer = handler(move |seen, reply: Reply| {
            let (legacy, ledger) = (legacy.clone(), Arc::clone(&ledger));
            async move {
                if seen.brief() != "tools/call" {
                    return legacy.answer(seen, reply).await;
                }
                ledger.fetch_add(1, Ordering::SeqCst);
                match what {
                    "reset" => reply.reset(),
                    "closed" => drop(reply),
                    "500" => reply.empty(500).await,
                    "-32603" => reply.error(200, &seen, r#"{"code":-32603,"message":"m"}"#).await,
                    "silence" => reply.never().await,
                    _ => reply.result(&seen, r#"{"content":[]}"#).await,
                }
            }
        });
        let up = net.serve("up.test", Receiver::Legacy, peer);
        let proxy = Proxy::start(&net).await;
        let done = proxy.send(&call("charge_card", "{}").id("1")).await;
        assert_eq!(done.message.get("result").is_some(), what == "200", "{what}: {}", done.raw);
        pass(600_000).await;
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{what}");
        assert_eq!(up.briefs()[0], "server/discover", "the call is never the probe");
    }
}

#[tokio::test(start_paused = true)]
async fn c40_a_refusal_that_proves_nothing_ran_is_repeated_once() {
    let server = ModernServer::new().on("tools/call", |seen, reply: Reply| async move {
        let error =
            r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}"#;
        reply.error(400, &seen, error).await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    let done = proxy.send(&call("charge_card", "{}")).await;
    assert!(done.message.get("error").is_some());
    assert!(up.posts("tools/call").len() <= 2);
}

#[tokio::test(start_paused = true)]
async fn c41_a_legacy_server_that_runs_modern_requests() {
    let net = Net::new();
    // No session gate at all: it answers everything, as it stands.
    let legacy = LegacyServer::new().sessionless();
    let peer = handler(move |seen, reply: Reply| {
        let legacy = legacy.clone();
        async move {
            match seen.brief().as_str() {
                "server/discover" => reply.error(200, &seen, r#"{"code":-32601,"message":"m"}"#).await,
                "tools/list" => reply.result(&seen, r#"{"tools":[]}"#).await,
                _ => legacy.answer(seen, reply).await,
            }
        }
    });
    let up = net.serve("up.test", Receiver::Legacy, peer);
    let proxy = Proxy::start(&net).await;
    let done = proxy.send(&list("tools/list")).await;
    assert_eq!(done.result()["resultType"], "complete");
    assert_eq!(done.result()["tools"], json!([]));
    assert_eq!(up.briefs(), ["server/discover", "initialize", "notifications/initialized", "tools/list"]);
}
