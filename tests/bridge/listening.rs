//! D99, A2.5, A2.10, A3.10, A12.14, A13.5, B9.7, B9.8, C16: changes at a modern server, on the one stream that a
//! client opens by GET.

use tokio::time::Duration;

use crate::stage::{LATEST, REVISIONS, Stage, stranger};
use crate::support::{Calls, End, Listens, ModernServer, Old, Stream, Take, json, pass};

pub(crate) const A: &str = "file:///a";
pub(crate) const B: &str = "file:///b";

pub(crate) async fn offering(capabilities: &str, listens: Listens) -> Stage {
    let calls = Calls::new();
    let server =
        calls.of_modern(ModernServer::full().discovers(&format!(r#""capabilities":{capabilities}"#)));
    Stage::build(server, calls, listens, "", "").await
}

/// Waits until the changes are these, and a while longer.
pub(crate) async fn hears(stream: &Stream, changes: &[&str]) {
    for _ in 0..50 {
        if stream.changes().len() >= changes.len() {
            break;
        }
        pass(100).await;
    }
    pass(2000).await;
    assert_eq!(stream.changes(), changes);
}

#[tokio::test(start_paused = true)]
async fn d99_listen_down() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let listen = stage.listens.wait(1).await;
        assert_eq!(
            listen.filter(),
            json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true}),
            "{revision}: the declared types, and no resource yet"
        );
        let get = user.get().await;
        let (call, at_server) = stage.begin(&user).await;
        for change in ["tools", "prompts", "resources"] {
            stage.listens.tell(change);
        }
        hears(&get, &["tools", "prompts", "resources"]).await;
        at_server.completes("done");
        call.result().await;
        assert_eq!(call.changes(), [] as [&str; 0], "{revision}: on the GET stream only");
        // It breaks off: opened again after a pause, and what may have been missed is told once.
        listen.cut();
        let again = stage.listens.wait(2).await;
        assert!(again.at - listen.at >= Duration::from_secs(1), "{revision}: not in a hurry");
        hears(&get, &["tools", "prompts", "resources", "tools", "prompts", "resources"]).await;
        stage.listens.tell("tools");
        hears(&get, &["tools", "prompts", "resources", "tools", "prompts", "resources", "tools"]).await;
        assert_eq!(stage.listens.all().len(), 2, "{revision}");
        user.delete().await;
        assert_eq!(get.end().await, End::Clean);
        stage.nothing_is_left().await;
    }
}

/// A3.10: only what the server declares is listened for.
#[tokio::test(start_paused = true)]
async fn d99_declared_types_only() {
    let table = [
        (
            r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"listChanged":false}}"#,
            "toolsListChanged",
        ),
        (r#"{"prompts":{"listChanged":true}}"#, "promptsListChanged"),
        (r#"{"tools":{},"resources":{"listChanged":true,"subscribe":true}}"#, "resourcesListChanged"),
    ];
    for (capabilities, flag) in table {
        let stage = offering(capabilities, Listens::open()).await;
        let _user = stage.latest().await;
        let listen = stage.listens.wait(1).await;
        assert_eq!(listen.filter(), json!({flag: true}), "{capabilities}");
        pass(10_000).await;
        assert_eq!(stage.listens.all().len(), 1);
    }
    let stage = offering(r#"{"tools":{},"resources":{"subscribe":true}}"#, Listens::open()).await;
    let user = stage.latest().await;
    let get = user.get().await;
    pass(60_000).await;
    assert_eq!(stage.listens.all().len(), 0, "nothing is declared");
    assert!(!get.is_over(), "the client's stream is open all the same");
}

/// D99: not before the client has said `initialized`.
#[tokio::test(start_paused = true)]
async fn d99_after_initialized() {
    let stage = Stage::new().await;
    let done = stage.proxy.send(&Old::initialize(LATEST)).await;
    pass(5000).await;
    assert_eq!(stage.listens.all().len(), 0);
    Old::initialized(&stage.proxy, &done, None).await;
    stage.listens.wait(1).await;
}

/// B9.6: a server that ends it gracefully is listened to again, too.
#[tokio::test(start_paused = true)]
async fn d99_a_graceful_end() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let get = user.get().await;
    stage.listens.wait(1).await.graceful();
    stage.listens.wait(2).await;
    pass(5000).await;
    let heard = get.changes();
    assert!(
        heard.iter().all(|change| heard.iter().filter(|other| *other == change).count() == 1),
        "{heard:?}"
    );
    stage.listens.tell("prompts");
    pass(2000).await;
    assert_eq!(get.changes().last().unwrap(), "prompts");
}

/// `timeouts.reconnect`, `reconnect_max`: longer pauses while the server cannot be listened to.
#[tokio::test(start_paused = true)]
async fn d99_backoff() {
    for begin in [Take::Empty(503), Take::Cut, Take::Ended] {
        let what = format!("{begin:?}");
        let listens = Listens::script(move |_, _| begin.clone());
        let stage = Stage::listening(listens, "timeouts.reconnect_max = \"20s\"").await;
        let user = stage.latest().await;
        stage.listens.wait(8).await;
        let times: Vec<_> = stage.listens.all().iter().map(|listen| listen.at).collect();
        let pauses: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        assert!(pauses[0] >= 1.0 && pauses[0] < 3.0, "{what}: {pauses:?}");
        assert!(pauses.iter().all(|pause| *pause < 30.0), "{what}: {pauses:?}");
        if what != "Ended" {
            assert!(pauses[6] > 10.0, "{what}: {pauses:?}");
        }
        user.list("tools/list").await;
        user.delete().await;
        pass(60_000).await;
        let n = stage.listens.all().len();
        pass(600_000).await;
        assert_eq!(stage.listens.all().len(), n, "{what}: nobody is there to listen for");
    }
}

/// A credential that the server does not take is not tried for ever.
#[tokio::test(start_paused = true)]
async fn d99_a_credential_that_is_refused() {
    for status in [401, 403] {
        let taken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let takes = taken.clone();
        let listens = Listens::script(move |_, _| {
            let takes = takes.load(std::sync::atomic::Ordering::SeqCst);
            if takes { Take::All } else { Take::Empty(status) }
        });
        let stage = Stage::listening(listens, "").await;
        let user = stage.user_as("alice").await;
        stage.listens.wait(1).await;
        pass(500_000).await;
        assert_eq!(stage.listens.all().len(), 1, "{status}: not again by itself");
        let get = user.get().await;
        for _ in 0..20 {
            user.list("tools/list").await;
            pass(30_000).await;
        }
        assert!(stage.listens.all().len() <= 3, "{status}: {} times", stage.listens.all().len());
        assert!(!get.is_over(), "{status}: no business of the client's stream");
        // The server has changed its mind, and somebody comes.
        taken.store(true, std::sync::atomic::Ordering::SeqCst);
        let _second = stage.user_as("alice").await;
        stage.listens.of_flag("toolsListChanged").await;
        stage.listens.tell("tools");
        pass(2000).await;
        assert_eq!(get.changes().last().map(String::as_str), Some("tools"), "{status}");
    }
}

/// A server that declares changes and has no way to tell of them.
#[tokio::test(start_paused = true)]
async fn d99_a_server_without_listen() {
    for take in [
        Take::Error(404, r#"{"code":-32601,"message":"Method not found"}"#),
        Take::Error(200, r#"{"code":-32601,"message":"Method not found"}"#),
    ] {
        let what = format!("{take:?}");
        let listens = Listens::script(move |_, _| take.clone());
        let stage = Stage::listening(listens, "").await;
        let user = stage.latest().await;
        let get = user.get().await;
        pass(600_000).await;
        let tries = stage.listens.all().len();
        assert!(tries <= 2, "{what}: {tries} times");
        assert!(!get.is_over());
        let done = user.subscribe(A).await;
        assert_eq!(done.status, 200, "{what}");
        assert!([-32602, -32601].contains(&done.code()), "{what}: {}", done.raw);
        user.list("tools/list").await;
    }
}

/// One principal's sessions share what is listened for; each hears everything once.
#[tokio::test(start_paused = true)]
async fn b9_7_sessions_of_one_principal_share() {
    let stage = Stage::new().await;
    let (one, two) = (stage.user_as("alice").await, stage.user_as("alice").await);
    let (first, second) = (one.get().await, two.get().await);
    pass(5000).await;
    assert_eq!(stage.listens.all().len(), 1);
    stage.listens.tell("tools");
    hears(&first, &["tools"]).await;
    hears(&second, &["tools"]).await;
    one.delete().await;
    pass(10_000).await;
    assert_eq!(stage.listens.now(), 1, "another is still there");
    stage.listens.tell("prompts");
    hears(&second, &["tools", "prompts"]).await;
    assert_eq!(first.changes(), ["tools"]);
}

/// Invariant 2: each principal has its own, in its own credential.
#[tokio::test(start_paused = true)]
async fn inv2_principals_listen_apart() {
    let stage = Stage::new().await;
    let (alice, bob, nobody) =
        (stage.user_as("alice").await, stage.user_as("bob").await, stage.latest().await);
    let streams = [alice.get().await, bob.get().await, nobody.get().await];
    stage.listens.wait(3).await;
    let tokens: Vec<_> = stage.listens.all().iter().map(|listen| listen.token()).collect();
    let token = |token: &str| Some(format!("Bearer {token}"));
    assert_eq!(tokens, [token("alice"), token("bob"), None]);
    stage.listens.all()[1].tell("tools");
    hears(&streams[1], &["tools"]).await;
    assert_eq!((streams[0].changes().len(), streams[2].changes().len()), (0, 0));
}

/// B9.8: what nobody was there to hear is told when the stream opens, each thing once.
#[tokio::test(start_paused = true)]
async fn b9_8_kept_until_a_stream_opens() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        user.subscribe(A).await.result();
        user.subscribe(B).await.result();
        pass(5000).await;
        for _ in 0..3 {
            stage.listens.tell("tools");
            stage.listens.tell(A);
            pass(1000).await;
        }
        stage.listens.tell("prompts");
        pass(1000).await;
        let get = user.get().await;
        pass(2000).await;
        let mut heard = get.changes();
        heard.sort();
        assert_eq!(heard, [A, "prompts", "tools"], "{revision}");
        // The stream goes a while later; the same again, and what was heard is not told again.
        pass(15_000).await;
        get.drop_connection().await;
        stage.listens.tell("resources");
        pass(1000).await;
        let get = user.get().await;
        hears(&get, &["resources"]).await;
    }
}

/// A client that comes back without an event id is told again what may have gone into a connection that was dead.
#[tokio::test(start_paused = true)]
async fn b9_8_what_may_not_have_arrived_is_told_again() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let dead = user.get().await;
        stage.listens.wait(1).await;
        pass(1000).await;
        stage.listens.tell("tools");
        hears(&dead, &["tools"]).await;
        let get = user.get().await;
        stage.listens.tell("prompts");
        hears(&get, &["tools", "prompts"]).await;
    }
}

/// Spec "Multiple Connections": one stream only; a newer one ends the older.
#[tokio::test(start_paused = true)]
async fn b9_8_one_stream_only() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let first = user.get().await;
        stage.listens.wait(1).await;
        pass(1000).await;
        stage.listens.tell("tools");
        hears(&first, &["tools"]).await;
        pass(15_000).await;
        let second = user.get().await;
        assert_eq!(first.end().await, End::Clean, "{revision}");
        stage.listens.tell("prompts");
        hears(&second, &["prompts"]).await;
        assert_eq!(first.changes(), ["tools"], "{revision}");
        pass(15_000).await;
        second.drop_connection().await;
        let third = user.get().await;
        stage.listens.tell("resources");
        hears(&third, &["resources"]).await;
    }
}

/// A13.5: the latest revision gets a priming event; each event has an id; no other revision is sent an empty one.
#[tokio::test(start_paused = true)]
async fn a13_5_the_stream_is_primed() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let get = user.get().await;
        pass(2000).await;
        let events = get.events();
        if revision == LATEST {
            assert_eq!((events.len(), events[0].raw.as_str()), (1, ""), "{events:?}");
            assert!(!events[0].id.is_empty());
            assert_eq!(get.retry(), Some(1000));
        } else {
            assert_eq!(events.len(), 0, "{revision}: {events:?}");
        }
        stage.listens.tell("tools");
        get.wait(1).await;
        assert!(!get.last_id().is_empty(), "{revision}: an id");
    }
}

/// C16: comments while it is quiet, and no intermediary may hold it back.
#[tokio::test(start_paused = true)]
async fn c16_quiet_streams_get_comments() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let get = user.get().await;
    let (call, at_server) = stage.begin(&user).await;
    let asked = stage.asked(&user, &[("k", crate::stage::ROOTS)], None).await;
    pass(90_000).await;
    for stream in [&get, &call, &asked] {
        assert!(stream.comments() >= 4, "{} comments in 90 s", stream.comments());
        assert_eq!(stream.headers.get("x-accel-buffering").as_deref(), Some("no"));
        let control = stream.headers.get("cache-control").unwrap();
        assert!(control.contains("no-cache") && control.contains("no-store"), "{control}");
    }
    at_server.completes("done");
    call.result().await;
    pass(3_000_000).await;
    assert!(!get.is_over(), "it is open as long as its client");
    assert!(user.lives().await);
}

/// `limits.streams` bounds them; `limits.subscriptions` bounds what one session may name.
#[tokio::test(start_paused = true)]
async fn inv5_streams_and_subscriptions_are_bounded() {
    let stage = Stage::bounded("limits = { streams = 1, subscriptions = 2 }", "").await;
    let (one, two) = (stage.latest().await, stage.latest().await);
    let first = one.get().await;
    let second = stage.proxy.open(&two.old.get()).await;
    assert_eq!((second.status, second.headers.has("retry-after")), (503, true));
    one.subscribe(A).await.result();
    one.subscribe(B).await.result();
    one.subscribe("file:///c").await.is_answered_error(-32602);
    one.unsubscribe(A).await.result();
    one.subscribe("file:///c").await.result();
    // Another stream of the same session takes its own place.
    drop(second);
    drop(first);
    pass(1000).await;
    assert!(two.get().await.is_stream());
}

/// A GET of no session is nobody's stream.
#[tokio::test(start_paused = true)]
async fn a12_14_a_get_of_no_session() {
    let stage = Stage::new().await;
    for version in [None, Some("2025-11-25"), Some("2025-03-26")] {
        let done = stage.proxy.send(&stranger(version).get()).await;
        assert_eq!((done.status, done.headers.get("allow").as_deref()), (405, Some("POST")), "{version:?}");
    }
    pass(5000).await;
    assert_eq!(stage.listens.all().len(), 0);
}
