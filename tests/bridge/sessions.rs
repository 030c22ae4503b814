//! D82, C03, A12.12 to A12.15, B14: a session's id, who may use it, and how it ends.

use std::sync::Arc;

use crate::stage::{LATEST, REVISIONS, ROOTS, Stage, stranger};
use crate::support::{Done, End, ModernServer, Net, Old, Proxy, User, pass};

#[tokio::test(start_paused = true)]
async fn d82_c03_legacy_unknown_session() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let version = user.old.version.clone();
        let mut altered = user.session().to_owned();
        let last = if altered.pop() == Some('A') { 'B' } else { 'A' };
        altered.push(last);
        for wrong in ["nope", "", &altered, &user.session()[1..], &format!("{}A", user.session())] {
            let old = Old { session: Some(wrong.to_owned()), version: version.clone(), token: None };
            for ask in [old.ask("tools/list"), old.note("notifications/x"), old.answer("5", "{}")] {
                let done = stage.proxy.send(&ask).await;
                let fits = done.status == 404 || wrong.is_empty() && done.status == 400;
                assert!(fits, "{revision} {wrong:?} {}: {} {}", ask.method, done.status, done.raw);
            }
            if !wrong.is_empty() {
                for ask in [old.get(), old.delete()] {
                    assert_eq!(stage.proxy.send(&ask).await.status, 404, "{revision} {wrong:?} {}", ask.verb);
                }
            }
        }
        // None at all: another answer than for a wrong one.
        let none = stranger(Some(version.as_deref().unwrap_or(revision)));
        for ask in [none.ask("tools/list"), none.call("t", "{}"), none.note("notifications/initialized")] {
            let done = stage.proxy.send(&ask).await;
            assert_eq!(done.status, 400, "{revision} {}: {}", ask.method, done.raw);
        }
        for ask in [none.get(), none.delete()] {
            let done = stage.proxy.send(&ask).await;
            assert_eq!(
                (done.status, done.headers.get("allow").as_deref()),
                (405, Some("POST")),
                "{revision}"
            );
        }
        assert_eq!(stage.briefs(), [] as [&str; 0], "{revision}: nothing of these reaches the server");
        assert!(user.lives().await);
    }
}

#[tokio::test(start_paused = true)]
async fn d82_delete_ends_it() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let other = stage.user(revision).await;
        let done = user.delete().await;
        assert!((200..300).contains(&done.status), "{revision}: {}", done.status);
        for ask in [user.old.ask("tools/list"), user.old.ask("ping"), user.old.get(), user.old.delete()] {
            let done = stage.proxy.send(&ask).await;
            assert_eq!(done.status, 404, "{revision} {} {}: {}", ask.verb, ask.method, done.raw);
        }
        assert!(other.lives().await, "{revision}: another session of the same caller");
    }
}

/// A12.15: with it go its calls at the server, its subscriptions and its streams.
#[tokio::test(start_paused = true)]
async fn d82_delete_takes_everything_along() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let get = user.get().await;
    stage.listens.wait(1).await;
    let (running, call) = stage.begin(&user).await;
    let asked = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
    asked.question().await;
    user.delete().await;
    for stream in [&get, &running, &asked] {
        assert_eq!(stream.end().await, End::Clean);
    }
    pass(1000).await;
    assert!(!call.is_open(), "the server's call is cancelled");
    pass(10_000).await;
    assert_eq!(stage.listens.now(), 0, "nothing is listened for");
    stage.is_over(2).await;
    stage.nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn d82_versions_and_sessions() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let ask = user.old.ask("tools/list");
    let unheard = stage.proxy.send(&ask.clone().header("MCP-Protocol-Version", "2026-13-01")).await;
    assert_eq!(unheard.status, 400, "{}", unheard.raw);
    user.send(&ask.without("MCP-Protocol-Version")).await.result();
    let get = user.old.get().without("MCP-Protocol-Version");
    assert!(stage.proxy.open(&get).await.is_stream());
    let unheard = user.old.get().header("MCP-Protocol-Version", "2026-13-01");
    assert_eq!(stage.proxy.send(&unheard).await.status, 400);
}

/// B14: a session that nobody uses ends; one that is used does not.
#[tokio::test(start_paused = true)]
async fn b14_idle_sessions_end() {
    let stage = Stage::with("session.idle = \"20s\"").await;
    let (idle, used, listening, calling) =
        (stage.latest().await, stage.latest().await, stage.latest().await, stage.latest().await);
    let get = listening.get().await;
    let (stream, call) = stage.begin(&calling).await;
    for _ in 0..6 {
        pass(10_000).await;
        assert!(used.lives().await, "a request now and then");
    }
    assert!(!idle.lives().await, "nothing for a minute");
    assert_eq!(stage.proxy.send(&idle.old.get()).await.status, 404);
    assert!(listening.lives().await, "an open stream");
    assert!(!get.is_over());
    assert!(!stream.is_over(), "a call in the middle");
    call.completes("done");
    stream.result().await;
    assert!(calling.lives().await);
    drop((get, stream));
    pass(60_000).await;
    for user in [used, listening, calling] {
        assert!(!user.lives().await);
    }
    pass(1000).await;
    assert_eq!((stage.listens.now(), stage.metric("mcp_janus_client_sessions", &[])), (0, 0.0));
}

/// A call goes on without a connection; the session is not idle while it does.
#[tokio::test(start_paused = true)]
async fn b14_a_call_without_its_client_keeps_the_session() {
    let stage = Stage::with("session.idle = \"20s\"").await;
    let user = stage.latest().await;
    let (stream, call) = stage.begin(&user).await;
    let last = stream.last_id();
    stream.drop_connection().await;
    pass(120_000).await;
    assert!(call.is_open(), "not cancelled");
    call.completes("done");
    pass(1000).await;
    let resumed = user.resume(&last).await;
    assert_eq!(resumed.result().await["content"][0]["text"], "done");
}

/// Architecture, "Principal": no byte of one caller's traffic reaches another.
#[tokio::test(start_paused = true)]
async fn inv2_another_principal_does_not_know_the_session() {
    let stage = Stage::new().await;
    let alice = stage.user_as("alice").await;
    let (stream, _call) = stage.begin(&alice).await;
    let last = stream.last_id();
    let nobody = User::clone(&alice);
    let nobody = {
        let mut user = nobody;
        user.old.token = None;
        user
    };
    for thief in [alice.with_token("bob"), nobody] {
        for ask in [
            thief.old.ask("tools/list"),
            thief.old.ask("ping"),
            thief.old.note("notifications/cancelled").params(r#""requestId":1"#),
            thief.old.answer("1", "{}"),
            thief.old.get(),
            thief.old.get().header("Last-Event-ID", &last),
            thief.old.delete(),
        ] {
            let done = stage.proxy.send(&ask).await;
            let refused = [401, 403, 404].contains(&done.status);
            assert!(refused, "{} {}: {} {}", ask.verb, ask.method, done.status, done.raw);
        }
    }
    assert!(alice.lives().await, "the session is as it was");
    assert!(!stream.is_over());
}

/// The same towards a caller without credentials.
#[tokio::test(start_paused = true)]
async fn inv2_an_anonymous_session_is_not_everybodys() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let done = stage.proxy.send(&user.with_token("bob").old.ask("tools/list")).await;
    assert_eq!(done.status, 404, "{}", done.raw);
    user.list("tools/list").await;
}

/// A session of one server means nothing at another.
#[tokio::test(start_paused = true)]
async fn inv2_a_session_belongs_to_its_server() {
    let net = Net::new();
    ModernServer::full().start_at(&net, "a.test");
    ModernServer::full().start_at(&net, "b.test");
    let key = "session.key = \"".to_owned() + &"ab".repeat(32) + "\"";
    let toml = format!(
        "[upstream.a]\nurl = \"http://a.test/mcp\"\npath = \"/a\"\n{key}\n[upstream.b]\nurl = \"http://b.test/mcp\"\npath = \"/b\"\n{key}\n"
    );
    let proxy = Proxy::configured(&net, &toml).await;
    let done = proxy.send(&Old::initialize(LATEST).path("/a")).await;
    let old = Old::answered(&done, None);
    assert_eq!(proxy.send(&old.ask("tools/list").path("/a")).await.status, 200);
    assert_eq!(proxy.send(&old.ask("tools/list").path("/b")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn inv5_sessions_are_bounded() {
    let stage = Stage::with("session.max = 2").await;
    let (first, second) = (stage.latest().await, stage.latest().await);
    pass(1000).await;
    assert!(second.lives().await);
    let third = stage.proxy.open(&Old::initialize(LATEST)).await;
    if third.status == 200 {
        // The one unused for longest has made room.
        assert!(!first.lives().await);
    } else {
        assert_eq!((third.status, third.headers.has("retry-after")), (503, true));
        first.delete().await;
        stage.latest().await;
    }
    assert!(second.lives().await);
    assert!(stage.metric("mcp_janus_client_sessions", &[]) <= 2.0);
}

/// One that has a call in the middle makes no room.
#[tokio::test(start_paused = true)]
async fn inv5_a_session_in_use_makes_no_room() {
    let stage = Stage::with("session.max = 1").await;
    let first = stage.latest().await;
    let (stream, call) = stage.begin(&first).await;
    let second = stage.proxy.open(&Old::initialize(LATEST)).await;
    assert_eq!((second.status, second.headers.has("retry-after")), (503, true));
    call.completes("done");
    stream.result().await;
    assert!(first.lives().await);
}

/// Architecture, "Sessions for legacy clients": with a key the id is all that is needed.
#[tokio::test(start_paused = true)]
async fn a_session_outlives_the_process_with_its_key() {
    let key = "0123456789abcdef".repeat(4);
    let base64 = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
    for key in [key.as_str(), base64] {
        for revision in REVISIONS {
            let mut stage = Stage::with(&format!("session.key = \"{key}\"")).await;
            let user = stage.user(revision).await;
            stage.restart().await;
            let user = user.at(&stage.proxy);
            let result = user.list("tools/list").await;
            assert_eq!(result["tools"][0]["name"], "echo", "{revision}");
            // It is what it was: what the client can do, and who it is.
            let seen = stage.up.posts("tools/list").pop().unwrap();
            let meta = &seen.json()["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "an old client", "{revision}");
            let stream = stage.asked(&user, &[("k", ROOTS)], Some(r#""S""#)).await;
            user.answer(&stream.question().await, crate::stage::ROOTED).await;
            stage.retried(1).await.completes("done");
            stream.result().await;
            // Its stream and its subscriptions can be had again.
            let get = user.get().await;
            user.subscribe("file:///a").await.result();
            stage.listens.of_uri("file:///a").await;
            stage.listens.tell("tools");
            get.wait(1).await;
            assert!((200..300).contains(&user.delete().await.status));
            assert!(!user.lives().await, "{revision}: ended is ended");
        }
    }
}

/// Of a principal, after a restart as before it.
#[tokio::test(start_paused = true)]
async fn inv2_after_a_restart_too() {
    let mut stage = Stage::with(&format!("session.key = \"{}\"", "cd".repeat(32))).await;
    let alice = stage.user_as("alice").await;
    stage.restart().await;
    let alice = alice.at(&stage.proxy);
    let done: Done = stage.proxy.send(&alice.with_token("bob").old.ask("tools/list")).await;
    assert_eq!(done.status, 404, "{}", done.raw);
    alice.list("tools/list").await;
}

#[tokio::test(start_paused = true)]
async fn without_its_key_a_session_ends_with_the_process() {
    let mut stage = Stage::new().await;
    let user = stage.latest().await;
    stage.restart().await;
    assert!(!user.at(&stage.proxy).lives().await, "404: the client begins again");
    stage.latest().await.list("tools/list").await;
    // Another key is no key.
    let one = Stage::with(&format!("session.key = \"{}\"", "ab".repeat(32))).await;
    let other = Stage::with(&format!("session.key = \"{}\"", "ba".repeat(32))).await;
    let user = one.latest().await;
    assert!(!user.at(&other.proxy).lives().await);
}

/// With a key, what has ended stays so in this process.
#[tokio::test(start_paused = true)]
async fn ended_sessions_are_not_rebuilt() {
    let stage = Stage::with(&format!("session.key = \"{}\"\nsession.idle = \"20s\"", "ab".repeat(32))).await;
    let (deleted, idle) = (stage.latest().await, stage.latest().await);
    deleted.delete().await;
    pass(60_000).await;
    for user in [deleted, idle] {
        assert!(!user.lives().await);
        assert_eq!(stage.proxy.send(&user.old.get()).await.status, 404);
    }
}

/// Two replicas with one key.
#[tokio::test(start_paused = true)]
async fn a_sibling_serves_the_session_too() {
    let key = format!("session.key = \"{}\"", "ab".repeat(32));
    let mut stage = Stage::with(&key).await;
    stage.several = true;
    let user = stage.latest().await;
    let toml = format!("[upstream.up]\nurl = \"http://up.test/mcp\"\n{key}");
    let sibling = Arc::new(Proxy::configured(&stage.net, &toml).await);
    let there = user.at(&sibling);
    there.list("tools/list").await;
    user.list("tools/list").await;
    there.list("prompts/list").await;
}

/// The id is as long as it must be, and short enough for every server's and client's headers.
#[tokio::test(start_paused = true)]
async fn session_ids_differ_and_are_not_long() {
    let stage = Stage::new().await;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..20 {
        let user = stage.latest().await;
        assert!(seen.insert(user.session().to_owned()));
        assert!(user.session().len() < 2048, "{} bytes", user.session().len());
    }
}
