//! Listens that stand: what is told, subscriptions, one listen in the place of another.

use super::*;

/// D99, A4.2-A4.4, A4.9, A13.2-A13.4, B9.7.
#[tokio::test(start_paused = true)]
async fn one_listen_tells_all_sessions_and_is_opened_again_after_it_broke_off() {
    let mut stage = Stage::new();
    let (_following, session) = stage.join(TOOLS);
    let (_other, other) = stage.join(TOOLS);
    let (_silent, silent) = stage.join(NONE);
    let asked = stage.listen().await;
    let head = asked.request.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
    for line in [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: subscriptions/listen",
        "authorization: bearer a",
        "accept: application/json, text/event-stream",
    ] {
        assert_eq!(head.lines().filter(|seen| *seen == line).count(), 1, "{line}: {head}");
    }
    assert!(!head.contains("mcp-session-id") && !head.contains("not/this"), "{head}");
    assert_eq!(asked.asks(), r#"{"toolsListChanged":true}"#);
    let mut stream = asked.acknowledge().await;
    stream.changed("tools").await;
    stream.changed("prompts").await;
    assert_eq!(session.told().await, [Change::Tools]);
    let told = other.told.lock().unwrap().drain(..).next().unwrap();
    assert!(
        told.1.contains("notifications/tools/list_changed") && !told.1.contains("subscriptionId"),
        "{told:?}"
    );
    assert_eq!(silent.told().await, []);
    // What is kept of the server is told of everything.
    assert_eq!(stage.changed.lock().unwrap().drain(..).collect::<Vec<_>>(), [Change::Tools, Change::Prompts]);
    drop(stream);
    let before = Instant::now();
    let asked = stage.listen().await;
    assert!(before.elapsed() >= Duration::from_secs(1), "{:?}", before.elapsed());
    assert_eq!(session.told().await, []);
    let mut stream = asked.acknowledge().await;
    assert_eq!(session.told().await, [Change::Tools]);
    assert_eq!(other.told().await, [Change::Tools]);
    stream.changed("tools").await;
    assert_eq!(session.told().await, [Change::Tools]);
    stage.no_listen_for(Duration::from_secs(600)).await;
}

/// D100, A1.8.
#[tokio::test(start_paused = true)]
async fn a_subscription_waits_for_its_acknowledgement() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(NONE);
    stage.no_listen_for(Duration::from_secs(5)).await;
    let serve = async {
        let mut asked = stage.listen().await;
        assert_eq!(asked.asks(), r#"{"resourceSubscriptions":["file:///a","file:///b"]}"#);
        asked.open().await.acknowledge(r#"{"resourceSubscriptions":["file:///a"]}"#).await
    };
    let (a, b, mut stream) = tokio::join!(
        following.subscribe("file:///a", 100, soon()),
        following.subscribe("file:///b", 100, soon()),
        serve
    );
    assert_eq!((a, b), (Ok(()), Err(NotSubscribed::Refused)));
    assert_eq!(following.uris(), [Box::from("file:///a")]);
    stream.updated("file:///b").await;
    stream.updated("file:///a/1").await;
    assert_eq!(session.told().await, [updated("file:///a/1")]);
    // Another session of the same principal needs no listen for it.
    let (second, _session) = stage.join(NONE);
    assert_eq!(second.subscribe("file:///a", 100, soon()).await, Ok(()));
    following.unsubscribe("file:///a");
    stream.updated("file:///a").await;
    assert_eq!(session.told().await, []);
    // The refused one is asked for no more once there is time for it; then nothing is left.
    let mut kept = stage.listen().await.acknowledge().await;
    assert!(!stream.is_closed().await, "made before broken");
    sleep(Duration::from_secs(1)).await;
    assert!(stream.is_closed().await);
    second.unsubscribe("file:///a");
    sleep(Duration::from_secs(1)).await;
    assert!(!kept.is_closed().await);
    sleep(Duration::from_secs(5)).await;
    assert!(kept.is_closed().await);
}

/// B9.7: make before break; what both streams tell is told once, and what only the old one still tells is not lost.
#[tokio::test(start_paused = true)]
async fn while_two_listens_overlap_a_change_is_told_once() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(NONE);
    let mut first = subscribed(&mut stage, &following, "a").await;
    let serve = async {
        let mut asked = stage.listen().await;
        assert_eq!(asked.asks(), r#"{"resourceSubscriptions":["a","b"]}"#);
        let all = asked.asks().to_owned();
        first.updated("a").await;
        let mut second = asked.open().await.acknowledge(&all).await;
        second.updated("a").await;
        second.updated("a/2").await;
        first.updated("a/1").await;
        second
    };
    let (granted, mut second) = tokio::join!(following.subscribe("b", 100, soon()), serve);
    assert_eq!(granted, Ok(()));
    let mut told = session.told().await;
    told.sort_by_key(|change| format!("{change:?}"));
    assert_eq!(told, [updated("a"), updated("a/1"), updated("a/2")]);
    sleep(Duration::from_secs(1)).await;
    assert!(first.is_closed().await && !second.is_closed().await);
    // Two of them one after the other are two.
    second.updated("a").await;
    second.updated("a").await;
    assert_eq!(session.told().await, [updated("a"), updated("a")]);
}

/// Invariant 5: sessions of one principal share one hub, one listen, and who comes meanwhile is taken along.
#[tokio::test(start_paused = true)]
async fn thousands_of_sessions_share_their_listens() {
    let mut stage = Stage::new();
    let sessions: Vec<_> = (0..5000).map(|_| stage.join(TOOLS)).collect();
    let mut lists = stage.listen().await.acknowledge().await;
    assert_eq!(stage.feed.len(), 1);
    let first = sessions.iter().map(|(following, _)| following.subscribe("a", 100, soon()));
    let all = futures_util::future::join_all(first);
    let (granted, _uris) = tokio::join!(all, async { stage.listen().await.acknowledge().await });
    assert!(granted.iter().all(Result::is_ok));
    lists.changed("tools").await;
    sleep(Duration::from_millis(100)).await;
    assert!(sessions.iter().all(|(_, session)| session.told.lock().unwrap().len() == 1));
    stage.no_listen_for(Duration::from_secs(60)).await;
}
