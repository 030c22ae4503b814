//! A14.5, A1.1, A1.2, A2.1, C06, C21: what comes before what, on the way from a legacy host to its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::stage::{Host, INITIALIZED, cancelled, echo, initialize, is_error, legacy, text};
use super::support::{Gets, LegacyServer, ModernServer, Proxy, Reply, Seen, json, pass};

/// Everything in one write: the server insists that each comes after what it needs.
#[tokio::test(start_paused = true)]
async fn a14_5_all_at_once_arrives_in_order() {
    let all = [
        initialize("0", "2025-11-25", "{}"),
        INITIALIZED.to_owned(),
        legacy("1", "tools/list", ""),
        echo("2", "{}"),
    ]
    .join("\n");
    for modern in [false, true] {
        let (proxy, up) = match modern {
            true => Proxy::before_modern(&ModernServer::new()).await,
            false => Proxy::before(&LegacyServer::new()).await,
        };
        let mut host = Host::launch(&proxy);
        host.write(format!("{all}\n").as_bytes()).await;
        for id in ["0", "1", "2"] {
            assert!(host.answer(id).await["result"].is_object(), "{id}, modern: {modern}");
        }
        if !modern {
            assert_eq!(up.after_probe()[..2], ["initialize", "notifications/initialized"]);
        }
        assert_eq!(host.end().await, "Drained");
    }
}

/// A request that comes while `initialize` is under way is held until the session stands.
#[tokio::test(start_paused = true)]
async fn a14_5_requests_are_held_until_the_session_stands() {
    let begun = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&begun);
    let server = LegacyServer::new();
    let slow = server.clone().on("initialize", {
        let server = server.clone();
        move |seen: Arc<Seen>, reply: Reply| {
            let (server, flag) = (server.clone(), Arc::clone(&flag));
            async move {
                pass(5000).await;
                flag.store(true, Ordering::SeqCst);
                server.initialize_as_usual(&seen, reply).await;
            }
        }
    });
    let (proxy, up) = Proxy::before(&slow).await;
    let mut host = Host::launch(&proxy);
    host.say(&initialize("0", "2025-11-25", "{}")).await;
    host.say(&legacy("1", "ping", "")).await;
    assert_eq!(host.answer("1").await["result"], json!({}), "A1.2: at any time");
    host.say(INITIALIZED).await;
    host.say(&echo("2", "{}")).await;
    host.quiet(4000).await;
    assert!(!begun.load(Ordering::SeqCst) && up.posts("tools/call").is_empty());
    host.answer("0").await;
    text(&host.answer("2").await);
    assert_eq!(up.after_probe(), ["initialize", "notifications/initialized", "GET", "tools/call"]);
}

/// What is held can be cancelled, and has gone nowhere then.
#[tokio::test(start_paused = true)]
async fn what_is_held_can_be_cancelled() {
    let server = LegacyServer::new();
    let slow = server.clone().on("initialize", {
        let server = server.clone();
        move |seen: Arc<Seen>, reply: Reply| {
            let server = server.clone();
            async move {
                pass(5000).await;
                server.initialize_as_usual(&seen, reply).await;
            }
        }
    });
    let (proxy, up) = Proxy::before(&slow).await;
    let mut host = Host::launch(&proxy);
    host.say(&initialize("0", "2025-11-25", "{}")).await;
    host.say(&echo("2", "{}")).await;
    // C23c: `initialize` itself is not to be cancelled.
    host.say(&cancelled("0")).await;
    host.say(&cancelled("2")).await;
    host.answer("0").await;
    host.say(INITIALIZED).await;
    host.quiet(10_000).await;
    assert!(up.posts("tools/call").is_empty() && up.posts("notifications/cancelled").is_empty());
}

/// Without any `initialize` there is nothing to hold a request for.
#[tokio::test(start_paused = true)]
async fn a14_5_a_request_without_a_session_is_refused_under_its_id() {
    for modern in [false, true] {
        let (proxy, up) = match modern {
            true => Proxy::before_modern(&ModernServer::new()).await,
            false => Proxy::before(&LegacyServer::new()).await,
        };
        let mut host = Host::launch(&proxy);
        host.say(&legacy("\"a\"", "tools/list", "")).await;
        is_error(&host.answer("\"a\"").await, -32600);
        host.say(&legacy("1", "ping", "")).await;
        assert_eq!(host.answer("1").await["result"], json!({}));
        // Nobody is there to be told.
        host.say(INITIALIZED).await;
        host.say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
        host.say(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#).await;
        host.quiet(2000).await;
        assert!(up.briefs().is_empty(), "{:?}", up.briefs());
    }
}

/// A refused `initialize` leaves no session, and the next one may begin it.
#[tokio::test(start_paused = true)]
async fn a_refused_initialize_is_told_and_another_may_follow() {
    let server = LegacyServer::new();
    let twice = server.clone().on("initialize", {
        let server = server.clone();
        move |seen: Arc<Seen>, reply: Reply| {
            let server = server.clone();
            async move {
                match server.count("initialize") {
                    0 => reply.error(200, &seen, r#"{"code":-32602,"message":"not like this"}"#).await,
                    _ => server.initialize_as_usual(&seen, reply).await,
                }
            }
        }
    });
    let (proxy, _up) = Proxy::before(&twice).await;
    let mut host = Host::launch(&proxy);
    host.say(&initialize("0", "2025-11-25", "{}")).await;
    host.say(&echo("1", "{}")).await;
    is_error(&host.answer("0").await, -32602);
    is_error(&host.answer("1").await, -32600);
    host.say(&initialize("2", "2025-11-25", "{}")).await;
    host.answer("2").await;
    host.say(INITIALIZED).await;
    host.say(&echo("3", "{}")).await;
    text(&host.answer("3").await);
}

/// C06c: a second `initialize` ends the first session, whose calls are told; the server never sees two on one id.
#[tokio::test(start_paused = true)]
async fn c06_a_second_initialize_ends_the_first_session() {
    let calls = super::support::Calls::new();
    let server = calls.of(LegacyServer::new());
    let (proxy, up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("1", "{}")).await;
    calls.wait(1).await;
    host.say(&initialize("2", "2025-11-25", "{}")).await;
    host.answer("2").await;
    is_error(&host.answer("1").await, -32603);
    host.say(INITIALIZED).await;
    host.say(&echo("3", "{}")).await;
    calls.wait(2).await.finish("second");
    assert_eq!(text(&host.answer("3").await), "second");
    assert_eq!(up.posts("initialize").len(), 2);
    assert!(up.posts("initialize").iter().all(|seen| seen.session().is_none()));
    assert_eq!(server.deleted(), ["S1"]);
    assert_eq!(calls.all()[1].session(), "S2");
    assert_eq!(host.end().await, "Drained");
    assert_eq!(server.deleted(), ["S1", "S2"]);
}

/// C06c: one that is refused leaves the first session as it was.
#[tokio::test(start_paused = true)]
async fn c06_a_refused_second_initialize_leaves_the_first_session() {
    let server = LegacyServer::new();
    let once = server.clone().on("initialize", {
        let server = server.clone();
        move |seen: Arc<Seen>, reply: Reply| {
            let server = server.clone();
            async move {
                match server.count("initialize") {
                    0 => server.initialize_as_usual(&seen, reply).await,
                    _ => reply.error(200, &seen, r#"{"code":-32600,"message":"once is enough"}"#).await,
                }
            }
        }
    });
    let (proxy, _up) = Proxy::before(&once).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&initialize("2", "2025-11-25", "{}")).await;
    is_error(&host.answer("2").await, -32600);
    host.say(&echo("3", "{}")).await;
    text(&host.answer("3").await);
    assert!(server.deleted().is_empty());
}

/// A notification that its server takes its time to accept arrives before the request behind it, and holds up no call that
/// runs, nor anything for ever.
#[tokio::test(start_paused = true)]
async fn a_notification_is_there_before_what_comes_after_it() {
    let slow = |seen: Arc<Seen>, reply: Reply| async move {
        pass(3000).await;
        drop(seen);
        reply.empty(202).await;
    };
    let calls = super::support::Calls::new();
    let server = calls.of(LegacyServer::new().on("notifications/roots/list_changed", slow));
    let (proxy, up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("1", r#"{"n":1}"#)).await;
    calls.wait(1).await;
    host.say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
    host.say(&echo("2", r#"{"n":2}"#)).await;
    up.wait("notifications/roots/list_changed", 1).await;
    pass(1000).await;
    assert_eq!(calls.all().len(), 1, "it is held");
    calls.all()[0].finish("first");
    assert_eq!(text(&host.answer("1").await), "first");
    calls.wait(2).await.finish("second");
    assert_eq!(text(&host.answer("2").await), "second");
}

/// The same of a server that never accepts one.
#[tokio::test(start_paused = true)]
async fn a_notification_that_is_never_accepted_holds_up_nothing_for_ever() {
    let never = |_seen: Arc<Seen>, reply: Reply| async move { reply.never().await };
    let server = LegacyServer::new().on("notifications/roots/list_changed", never);
    let (proxy, _up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
    host.say(&echo("2", "{}")).await;
    text(&host.answer("2").await);
}

/// A2.1, B5: the GET stream is opened once the host is initialized, with the session and the version; 405 is fine.
#[tokio::test(start_paused = true)]
async fn a2_1_the_stream_of_the_session_is_opened_after_initialized() {
    let gets = Gets::open();
    let (proxy, up) = Proxy::before(&gets.of(LegacyServer::telling())).await;
    let mut host = Host::launch(&proxy);
    host.say(&initialize("0", "2025-06-18", "{}")).await;
    // The raw server insists on its own version, so that of the host does not matter here.
    host.answer("0").await;
    pass(5000).await;
    assert!(gets.all().is_empty(), "not before");
    host.say(INITIALIZED).await;
    let get = gets.wait(1).await;
    assert_eq!(get.session(), "S1");
    assert_eq!(get.seen.header("mcp-protocol-version").as_deref(), Some("2025-11-25"));
    gets.tell(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    host.told("notifications/tools/list_changed").await;
    assert_eq!(up.posts("notifications/initialized").len(), 1);
}

/// C21: what lacks its id is no request, and comes to nothing.
#[tokio::test(start_paused = true)]
async fn c21_a_request_without_an_id_is_not_run() {
    for modern in [false, true] {
        let (proxy, up) = match modern {
            true => Proxy::before_modern(&ModernServer::new()).await,
            false => Proxy::before(&LegacyServer::new()).await,
        };
        let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
        host.say(r#"{"jsonrpc":"2.0","method":"tools/list"}"#).await;
        host.say(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#).await;
        let told = host.next().await;
        is_error(&told, -32600);
        assert!(told.get("id").is_none());
        host.quiet(2000).await;
        assert!(up.posts("tools/list").is_empty());
    }
}

/// A2.11: a notification that neither era defines goes on, with what HTTP repeats of it; a host without a session is modern.
#[tokio::test(start_paused = true)]
async fn a2_11_a_custom_notification() {
    let told = r#"{"jsonrpc":"2.0","method":"notifications/acme","params":{"n":1e400}}"#;
    let take = |_seen: Arc<Seen>, reply: Reply| async move { reply.empty(202).await };
    let (proxy, up) = Proxy::before_modern(&ModernServer::new().on("notifications/acme", take)).await;
    let mut host = Host::launch(&proxy);
    host.say(told).await;
    let seen = up.wait("notifications/acme", 1).await.remove(0);
    assert_eq!(seen.text(), told);
    assert_eq!(seen.header("mcp-method").as_deref(), Some("notifications/acme"));
    host.quiet(1000).await;

    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(told).await;
    let seen = up.wait("notifications/acme", 1).await.remove(0);
    assert_eq!((seen.text(), seen.session().as_deref()), (told, Some("S1")));
    host.quiet(1000).await;
}
