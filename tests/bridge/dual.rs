//! A15, C39, issue "like pairs": servers of both eras, and servers that change theirs under a session.

use std::sync::Arc;

use crate::stage::{LATEST, REVISIONS, ROOTED, ROOTS, Stage};
use crate::support::net::{Receiver, handler};
use crate::support::{
    Calls, LegacyServer, ModernServer, Net, Old, Proxy, Reply, Seen, Upstream, User, list, pass,
};

/// A server that is of one era or the other by what a request says.
fn dual(legacy: &LegacyServer, modern: &ModernServer, net: &Net) -> Upstream {
    let (legacy, modern) = (legacy.clone(), modern.clone());
    net.serve(
        "up.test",
        Receiver::Dual,
        handler(move |seen: Arc<Seen>, reply: Reply| {
            let (legacy, modern) = (legacy.clone(), modern.clone());
            async move {
                if seen.header("mcp-protocol-version").as_deref() == Some("2026-07-28") {
                    modern.answer(seen, reply).await;
                } else {
                    legacy.answer(seen, reply).await;
                }
            }
        }),
    )
}

fn discovering(versions: &str) -> ModernServer {
    let members = format!(r#""supportedVersions":{versions},"capabilities":{{"tools":{{}}}}"#);
    ModernServer::full().completes("server/discover", &members)
}

/// The pair of like eras is preferred: each client talks to the half of its own era.
#[tokio::test(start_paused = true)]
async fn like_pairs_are_preferred() {
    for versions in [r#"["2026-07-28"]"#, r#"["2026-07-28","2025-11-25"]"#] {
        for revision in REVISIONS {
            let net = Net::new();
            let up = dual(&LegacyServer::new().version(revision), &discovering(versions), &net);
            let proxy = Proxy::start(&net).await;
            for _ in 0..2 {
                let old = Old::open(&proxy, revision).await;
                assert!(old.session.as_deref().is_some_and(|id| id.starts_with('S')), "the server's own");
                let done = proxy.send(&old.call("echo", "{}")).await;
                assert_eq!(done.result()["content"][0]["text"], "done", "{revision}: of the legacy half");
            }
            let modern = proxy.send(&list("tools/list").id("\"m\"")).await;
            assert_eq!(modern.result()["resultType"], "complete", "{revision}");
            assert_eq!(up.posts("tools/list")[0].session(), None, "{revision}: of the modern half");
            let old = Old::open(&proxy, revision).await;
            proxy.send(&old.ask("tools/list")).await.result();
            assert_eq!(proxy.send(&old.delete()).await.status, 200, "{revision}");
        }
    }
}

/// A legacy half without sessions cannot ask anything: then only clients that cannot be asked are of its pair.
#[tokio::test(start_paused = true)]
async fn a_legacy_half_without_sessions() {
    let net = Net::new();
    let calls = Calls::new();
    let modern = calls.of_modern(discovering(r#"["2026-07-28"]"#));
    let up = dual(&LegacyServer::new().sessionless(), &modern, &net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let done = proxy.send(&Old::initialize_with(LATEST, "{}")).await;
    let silent = Old::initialized(&proxy, &done, None).await;
    assert_eq!(silent.session, None);
    proxy.send(&silent.call("echo", "{}")).await.result();
    // One that can be asked is served by the modern half, with a session of the proxy's.
    let user = User::begin(&proxy, LATEST).await;
    let opening = tokio::spawn({
        let user = user.clone();
        async move { user.call("ask", "{}").await }
    });
    calls.wait(1).await.asks(&[("k", ROOTS)], None);
    let stream = opening.await.unwrap();
    user.answer(&stream.question().await, ROOTED).await;
    calls.wait(2).await.completes("asked");
    stream.result().await;
    // And they do not get in each other's way.
    proxy.send(&silent.call("echo", "{}")).await.result();
    assert_eq!(up.posts("tools/call").len(), 4);
}

/// A setting says what the server is: nothing is tried.
#[tokio::test(start_paused = true)]
async fn a_fixed_era_is_not_questioned() {
    let net = Net::new();
    let up = dual(&LegacyServer::new(), &ModernServer::full(), &net);
    let proxy = Arc::new(Proxy::with(&net, "era = \"modern\"").await);
    let user = User::begin(&proxy, LATEST).await;
    user.list("tools/list").await;
    assert_eq!(up.posts("initialize").len(), 0, "{:?}", up.briefs());
    let net = Net::new();
    let up = dual(&LegacyServer::new(), &ModernServer::full(), &net);
    let proxy = Proxy::with(&net, "era = \"legacy\"").await;
    let old = Old::latest(&proxy).await;
    assert_eq!(old.session.as_deref(), Some("S1"));
    assert_eq!(up.posts("server/discover").len(), 0, "{:?}", up.briefs());
}

/// A server that is modern only is not tried with every handshake.
#[tokio::test(start_paused = true)]
async fn a_modern_server_is_not_tried_again_and_again() {
    let stage = Stage::new().await;
    for _ in 0..20 {
        let user = stage.latest().await;
        user.list("tools/list").await;
        pass(100).await;
    }
    let tries = stage.up.posts("initialize").len();
    assert!(tries <= 1, "{tries} tries in two seconds");
}

/// C39a: a legacy server becomes modern: its sessions are over (404), and the client begins another.
#[tokio::test(start_paused = true)]
async fn c39_legacy_becomes_modern_under_a_session() {
    for warm in [true, false] {
        let net = Net::new();
        LegacyServer::new().start(&net);
        let proxy = Arc::new(Proxy::start(&net).await);
        if warm {
            proxy.send(&list("tools/list").id("\"m\"")).await.result();
        }
        let old = Old::latest(&proxy).await;
        proxy.send(&old.ask("tools/list")).await.result();
        pass(5000).await;
        let up = ModernServer::full().start_unchecked(&net);
        let mut status = 0;
        for _ in 0..3 {
            status = proxy.send(&old.ask("tools/list").id("7")).await.status;
            if status == 404 {
                break;
            }
        }
        assert_eq!(status, 404, "it is told to begin again: {:?}", up.briefs());
        let user = User::begin(&proxy, LATEST).await;
        user.list("tools/list").await;
        assert!(user.lives().await);
    }
}

/// C39b: a modern server becomes legacy.
#[tokio::test(start_paused = true)]
async fn c39_modern_becomes_legacy_under_a_session() {
    let net = Net::new();
    ModernServer::full().start_bridged(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let user = User::begin(&proxy, LATEST).await;
    user.list("tools/list").await;
    pass(5000).await;
    // Unchecked: what it gets first is still meant for a modern one.
    let legacy = LegacyServer::new();
    let answer = handler(move |seen, reply| legacy.clone().answer(seen, reply));
    let up = net.serve("up.test", Receiver::Unchecked, answer);
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let done = proxy.send(&user.old.ask("tools/list").id("7")).await;
        statuses.push(done.status);
        if done.status == 404 {
            break;
        }
        assert_eq!(done.status, 200, "{}", done.raw);
        assert!(done.message.get("result").is_none() || statuses.len() < 5, "{}", done.raw);
        pass(61_000).await;
    }
    assert_eq!(statuses.last(), Some(&404), "{statuses:?} {:?}", up.briefs());
    let old = Old::latest(&proxy).await;
    assert!(old.session.as_deref().is_some_and(|id| id.starts_with('S')), "the pair of like eras");
    proxy.send(&old.ask("tools/list")).await.result();
}

/// C40: whatever is found out on the way, a call runs once or not at all.
#[tokio::test(start_paused = true)]
async fn c40_a_change_of_era_runs_nothing_twice() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = Arc::new(Proxy::start(&net).await);
    let old = Old::latest(&proxy).await;
    pass(5000).await;
    let up = ModernServer::full().start_unchecked(&net);
    for _ in 0..3 {
        proxy.send(&old.call("pay", "{}").id("7")).await;
    }
    let ran = up
        .posts("tools/call")
        .into_iter()
        .filter(|seen| seen.header("mcp-protocol-version").as_deref() == Some("2026-07-28"));
    assert_eq!(ran.count(), 0, "no session, no call: {:?}", up.briefs());
}

/// Two servers behind one proxy, one of each era.
#[tokio::test(start_paused = true)]
async fn each_server_is_what_it_is() {
    let net = Net::new();
    LegacyServer::new().start_at(&net, "old.test");
    ModernServer::full().start_at(&net, "new.test");
    let toml = "[upstream.old]\nurl = \"http://old.test/mcp\"\npath = \"/old\"\n[upstream.new]\nurl = \"http://new.test/mcp\"\npath = \"/new\"\n";
    let proxy = Proxy::configured(&net, toml).await;
    let mut sessions = Vec::new();
    for (path, text) in [("/old", "done"), ("/new", "modern")] {
        let done = proxy.send(&Old::initialize(LATEST).path(path)).await;
        let old = Old::answered(&done, None);
        proxy.send(&old.note("notifications/initialized").path(path)).await;
        let done = proxy.send(&old.call("echo", "{}").path(path)).await;
        assert_eq!(done.result()["content"][0]["text"], text);
        sessions.push(old);
    }
    for (old, path) in [(&sessions[0], "/new"), (&sessions[1], "/old")] {
        assert_eq!(proxy.send(&old.ask("tools/list").path(path)).await.status, 404);
    }
}
