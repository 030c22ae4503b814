//! D100, A1.8, A2.6, A3.11, B9.2, B9.4, B9.7: resources that a legacy client subscribes to.

use tokio::time::Duration;

use crate::listening::{A, B, hears, offering};
use crate::stage::{REVISIONS, Stage};
use crate::support::{Listens, Take, json, pass};

#[tokio::test(start_paused = true)]
async fn d100_subscribe_ack_refused() {
    for revision in REVISIONS {
        let listens = Listens::script(|_, _| Take::Without(&["file:///no"]));
        let stage = Stage::listening(listens, "").await;
        let user = stage.user(revision).await;
        let get = user.get().await;
        user.subscribe(A).await.result();
        user.subscribe("file:///no").await.is_answered_error(-32602);
        user.subscribe(B).await.result();
        pass(5000).await;
        let listen = stage.listens.of_uri(B).await;
        let mut uris = listen.uris();
        uris.sort();
        assert_eq!(uris, [A, B], "{revision}: what was refused is asked for no more");
        stage.listens.tell(A);
        stage.listens.tell(B);
        hears(&get, &[A, B]).await;
    }
}

/// A1.8: the answer comes when the server has promised it.
#[tokio::test(start_paused = true)]
async fn d100_not_before_the_acknowledgement() {
    let listens = Listens::script(|_, seen| {
        let uris = seen.json()["params"]["notifications"].get("resourceSubscriptions").is_some();
        if uris { Take::Late(300) } else { Take::All }
    });
    let stage = Stage::listening(listens, "").await;
    let user = stage.latest().await;
    let began = tokio::time::Instant::now();
    user.subscribe(A).await.result();
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}

/// One that never promises anything: an error in time, and no promise.
#[tokio::test(start_paused = true)]
async fn d100_no_acknowledgement() {
    for take in [Take::Silent, Take::Hang, Take::Empty(503), Take::Cut] {
        let what = format!("{take:?}");
        let listens = Listens::script(move |_, seen| {
            let uris = seen.json()["params"]["notifications"].get("resourceSubscriptions").is_some();
            if uris { take.clone() } else { Take::All }
        });
        let stage = Stage::listening(listens, "timeouts.initialize = \"2s\"").await;
        let user = stage.latest().await;
        let began = tokio::time::Instant::now();
        let done = user.subscribe(A).await;
        assert_eq!(done.status, 200, "{what}: {}", done.raw);
        assert!([-32602, -32603].contains(&done.code()), "{what}: {}", done.raw);
        assert!(began.elapsed() < Duration::from_secs(5), "{what}: {:?}", began.elapsed());
        assert!(user.lives().await);
    }
}

#[tokio::test(start_paused = true)]
async fn a1_8_a_server_without_subscriptions() {
    let stage = offering(r#"{"tools":{"listChanged":true},"resources":{}}"#, Listens::open()).await;
    let user = stage.latest().await;
    user.subscribe(A).await.is_answered_error(-32601);
    for bad in ["", r#""uri":5"#] {
        let stage = Stage::new().await;
        let user = stage.latest().await;
        let done = user.send(&user.old.ask("resources/subscribe").params(bad)).await;
        done.is_answered_error(-32602);
    }
    pass(5000).await;
    assert!(stage.listens.all().iter().all(|listen| listen.uris().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a1_8_unsubscribe() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let get = user.get().await;
    user.unsubscribe("file:///never").await.result();
    user.subscribe(A).await.result();
    user.subscribe(A).await.result();
    user.subscribe(B).await.result();
    assert_eq!(*user.unsubscribe(A).await.result(), json!({}));
    pass(10_000).await;
    let uris: Vec<_> = stage.listens.standing().iter().flat_map(|listen| listen.uris()).collect();
    assert_eq!(uris, [B], "the set is the server's to know");
    stage.listens.tell(B);
    hears(&get, &[B]).await;
    user.unsubscribe(B).await.result();
    pass(10_000).await;
    assert_eq!(stage.listens.now(), 1, "the list types only");
}

/// B9.7: the set of a listen is immutable: another is opened before the first is closed, and what both tell is told once.
#[tokio::test(start_paused = true)]
async fn b9_7_make_before_break() {
    let listens = Listens::script(|_, seen| {
        let uris = seen.json()["params"]["notifications"]["resourceSubscriptions"].clone();
        if uris.as_array().is_some_and(|uris| uris.len() == 2) { Take::Silent } else { Take::All }
    });
    let stage = Stage::listening(listens, "timeouts.initialize = \"30s\"").await;
    let user = stage.latest().await;
    let get = user.get().await;
    user.subscribe(A).await.result();
    let first = stage.listens.of_uri(A).await;
    let subscribing = tokio::spawn({
        let user = user.clone();
        async move { user.subscribe(B).await }
    });
    let second = stage.listens.of_uri(B).await;
    pass(5000).await;
    assert!(first.is_open(), "not closed before the other is acknowledged");
    first.tell(A);
    hears(&get, &[A]).await;
    assert!(!subscribing.is_finished());
    second.acknowledge(&second.filter());
    second.tell(A);
    first.tell(A);
    subscribing.await.unwrap().result();
    hears(&get, &[A, A]).await;
    pass(10_000).await;
    assert!(!first.is_open() && second.is_open());
    second.tell(B);
    hears(&get, &[A, A, B]).await;
}

/// B9.4, and each session hears of its own resources only.
#[tokio::test(start_paused = true)]
async fn b9_4_parts_of_a_resource() {
    let stage = Stage::new().await;
    let (one, two) = (stage.latest().await, stage.latest().await);
    let (first, second) = (one.get().await, two.get().await);
    one.subscribe("file:///d").await.result();
    two.subscribe("file:///dx/").await.result();
    pass(5000).await;
    let listen = stage.listens.of_uri("file:///d").await;
    for uri in ["file:///d/a", "file:///dx/y", "file:///e", "file:///d"] {
        listen.notify("notifications/resources/updated", json!({"uri": uri}));
    }
    hears(&first, &["file:///d/a", "file:///d"]).await;
    hears(&second, &["file:///dx/y"]).await;
}

/// Subscriptions of a session end with it; those of others go on.
#[tokio::test(start_paused = true)]
async fn b9_2_subscriptions_end_with_their_session() {
    let stage = Stage::with("session.idle = \"30s\"").await;
    let (one, two) = (stage.latest().await, stage.latest().await);
    let get = two.get().await;
    one.subscribe(A).await.result();
    two.subscribe(A).await.result();
    two.subscribe(B).await.result();
    one.delete().await;
    pass(10_000).await;
    stage.listens.tell(A);
    stage.listens.tell(B);
    hears(&get, &[A, B]).await;
    get.drop_connection().await;
    pass(90_000).await;
    assert!(!two.lives().await);
    pass(10_000).await;
    assert_eq!(stage.listens.now(), 0);
    stage.nothing_is_left().await;
}

/// Invariant 5, `limits.resources`: of all sessions of one caller together; what another session has already is no more.
#[tokio::test(start_paused = true)]
async fn inv5_resources_of_one_caller() {
    let stage = Stage::with("limits.resources = 2").await;
    let (one, other) = (stage.latest().await, stage.latest().await);
    one.subscribe(A).await.result();
    other.subscribe(B).await.result();
    for user in [&one, &other] {
        user.subscribe("file:///c").await.is_answered_error(-32602);
        assert!(user.lives().await);
    }
    one.subscribe(B).await.result();
    one.unsubscribe(A).await.result();
    pass(30_000).await;
    other.subscribe("file:///c").await.result();
}

/// Invariant 5: the sessions of one client together have as many as the proxy listens for. Said in band: it gets no better by
/// trying again, and a client would take a 503 for the end of its transport.
#[tokio::test(start_paused = true)]
async fn inv5_more_than_the_proxy_listens_for() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let long = |n: usize| format!("file:///{n}/{}", "x".repeat(200_000));
    for n in 0..2 {
        user.subscribe(&long(n)).await.result();
    }
    let done = user.subscribe(&long(2)).await;
    assert_eq!(done.status, 200, "{}", done.raw);
    done.is_answered_error(-32602);
    user.unsubscribe(&long(0)).await.result();
    pass(10_000).await;
    user.subscribe(&long(2)).await.result();
}
