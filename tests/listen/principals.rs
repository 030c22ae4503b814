//! Invariant 2, B9.3: whose changes reach whom, over several callers and over several sessions of one.

use crate::stage::{A, SOME, Stage, TOOLS, TOOLS_ONLY, updated, uris};
use crate::support::{Ask, Get, Gets, LegacyServer, Listener, Reply, call, listen, pass};
use std::sync::Arc;

async fn open(stage: &Stage, ask: &Ask) -> Listener {
    let listener = Listener::open(&stage.proxy, ask).await;
    listener.wait(1).await;
    listener
}

fn of(stage: &Stage, authorization: &str) -> Arc<Get> {
    let all = stage.gets.all();
    let mut mine =
        all.iter().filter(|get| get.seen.header("authorization").as_deref() == Some(authorization));
    let get = mine.next().expect("a GET under this credential");
    assert!(mine.next().is_none(), "one GET under {authorization}");
    Arc::clone(get)
}

#[tokio::test(start_paused = true)]
async fn inv2_each_caller_hears_only_its_own_session() {
    let server = LegacyServer::telling().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(&updated(A)).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    let alice = open(&stage, &listen("1", SOME).bearer("alice")).await;
    let bob = open(&stage, &listen("1", SOME).bearer("bob")).await;
    let nobody = open(&stage, &listen("1", SOME)).await;
    let (of_alice, of_bob) = (of(&stage, "Bearer alice"), of(&stage, "Bearer bob"));
    assert_eq!(stage.gets.all().len(), 3);
    assert_ne!(of_alice.session(), of_bob.session(), "a session each");
    assert_eq!(stage.asked("resources/subscribe"), [A, A, A], "in each session");
    for (get, token) in [(&of_alice, "Bearer alice"), (&of_bob, "Bearer bob")] {
        let in_it: Vec<_> = stage
            .up
            .requests()
            .into_iter()
            .filter(|s| s.session().as_deref() == Some(&get.session()))
            .collect();
        assert!(in_it.iter().all(|s| s.header("authorization").as_deref() == Some(token)));
    }
    of_alice.event(TOOLS);
    pass(1000).await;
    assert_eq!((alice.changes(), bob.changes()), (vec!["tools".to_owned()], vec![]));
    stage.proxy.send(&call("echo", "{}").bearer("bob")).await.result();
    pass(1000).await;
    assert_eq!((alice.changes().len(), bob.changes()), (1, vec![A.to_owned()]));
    assert_eq!(nobody.changes(), Vec::<String>::new());
    // One leaves: the other's subscription is untouched.
    alice.close();
    pass(1000).await;
    let off = stage.up.only("resources/unsubscribe");
    assert_eq!(off.header("authorization").as_deref(), Some("Bearer alice"));
    assert!(!of_alice.is_open() && of_bob.is_open());
    of_bob.event(&updated(A));
    pass(1000).await;
    assert_eq!(bob.changes(), [A, A]);
    drop((bob, nobody));
    stage.nothing_is_left().await;
}

const AFFINITY: &str = "[upstream.up.session]\naffinity = \"header:x-conversation\"\n";

#[tokio::test(start_paused = true)]
async fn b9_3_several_sessions_of_one_caller() {
    let stage = Stage::with(LegacyServer::telling(), Gets::open(), AFFINITY).await;
    let one = open(&stage, &listen("1", TOOLS_ONLY).header("X-Conversation", "a")).await;
    let two = open(&stage, &listen("2", SOME).header("X-Conversation", "b")).await;
    let (first, second) = (stage.gets.wait(1).await, stage.gets.wait(2).await);
    assert_ne!(first.session(), second.session());
    // Both tell the same within 50 ms.
    first.event(TOOLS);
    pass(20).await;
    second.event(TOOLS);
    second.event(&updated(A));
    pass(1000).await;
    assert_eq!(
        (one.changes(), two.changes()),
        (vec!["tools".to_owned()], vec!["tools".to_owned(), A.to_owned()])
    );
    // Later it is news again, and one session is enough for both to hear.
    second.event(TOOLS);
    pass(1000).await;
    first.event(&updated(A));
    pass(1000).await;
    assert_eq!((one.changes(), two.changes().len()), (vec!["tools".to_owned(), "tools".to_owned()], 4));
    // One session is left.
    drop(two);
    pass(1000).await;
    first.event(TOOLS);
    pass(1000).await;
    assert_eq!(one.changes().len(), 3);
}

/// Invariant 5: what is collected over several sessions is bounded, and all of it is told.
#[tokio::test(start_paused = true)]
async fn inv5_a_flood_over_several_sessions() {
    let stage = Stage::with(LegacyServer::telling(), Gets::open(), AFFINITY).await;
    let one = open(&stage, &listen("1", &uris(&["file:///d"])).header("X-Conversation", "a")).await;
    let _two = open(&stage, &listen("2", TOOLS_ONLY).header("X-Conversation", "b")).await;
    let first = stage.gets.wait(1).await;
    for n in 0..500 {
        first.event(&updated(&format!("file:///d/{n}")));
        if n % 20 == 0 {
            pass(1).await;
        }
    }
    pass(1000).await;
    let changes = one.changes();
    let all = (0..500).all(|n| changes.contains(&format!("file:///d/{n}")));
    assert!(all || changes.contains(&"file:///d".to_owned()), "{} changes", changes.len());
}

const SINGLE: &str = "[upstream.up.session]\nscope = \"request\"\n";

#[tokio::test(start_paused = true)]
async fn b9_3_a_session_for_each_request() {
    let server = LegacyServer::telling().on("tools/call", |seen, mut reply: Reply| async move {
        reply.stream().await;
        reply.event(TOOLS).await;
        reply.result_event(&seen, r#"{"content":[]}"#).await;
        reply.end().await;
    });
    let stage = Stage::with(server, Gets::open(), SINGLE).await;
    let one = open(&stage, &listen("1", SOME)).await;
    let two = open(&stage, &listen("2", &uris(&[A]))).await;
    let (first, second) = (stage.gets.wait(1).await, stage.gets.wait(2).await);
    assert_ne!(first.session(), second.session(), "a session of its own");
    // The very first one was for finding out what the server is.
    let ended = stage.server.deleted().len();
    stage.proxy.send(&call("echo", "{}")).await.result();
    pass(1000).await;
    assert_eq!((one.changes(), two.changes()), (vec!["tools".to_owned()], vec![]));
    assert_eq!(stage.server.deleted().len(), ended + 1, "the call's");
    first.event(&updated(A));
    second.event(&updated(A));
    pass(1000).await;
    assert_eq!(
        (one.changes().len(), two.changes()),
        (2, vec![A.to_owned()]),
        "once, though two sessions tell it"
    );
    one.close();
    pass(10_000).await;
    assert!(stage.server.deleted().contains(&first.session()), "ended with its listener");
    assert!(!stage.server.deleted().contains(&second.session()));
    assert!(!first.is_open() && second.is_open());
    two.close();
    stage.nothing_is_left().await;
    assert_eq!((stage.server.live_sessions(), stage.proxy.sessions()), (0, 0));
}

/// D31 for a session of one request.
#[tokio::test(start_paused = true)]
async fn d31_the_session_of_one_listener_is_lost() {
    let stage = Stage::with(LegacyServer::telling(), Gets::open(), SINGLE).await;
    let one = open(&stage, &listen("1", SOME)).await;
    let opened = stage.up.posts("initialize").len();
    stage.server.forget_sessions();
    stage.gets.wait(1).await.cut();
    one.wait(3).await;
    pass(60_000).await;
    assert_eq!(one.changes(), ["tools", A]);
    assert_eq!((stage.up.posts("initialize").len(), stage.proxy.sessions()), (opened + 1, 1));
    one.close();
    stage.nothing_is_left().await;
    assert_eq!((stage.server.live_sessions(), stage.proxy.sessions()), (0, 0));
}
