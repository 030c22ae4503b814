//! Who shares what, how long, and within which bounds.

use super::*;

/// A2.5: a change that came on the stream of a call is told to the sessions of that call's principal.
#[tokio::test(start_paused = true)]
async fn what_is_told_elsewhere_is_told_here() {
    let mut stage = Stage::new();
    let (_one, session) = stage.join_as("Bearer a", TOOLS);
    let _first = stage.listen().await.acknowledge().await;
    let (_two, other) = stage.join_as("Bearer b", TOOLS);
    let _second = stage.listen().await.acknowledge().await;
    let of = |credential| Principal::of(headers(credential).get(AUTHORIZATION));
    stage.feed.tell(of("Bearer a"), &Change::Tools, &announce(&Change::Tools));
    stage.feed.tell(of("Bearer a"), &Change::Prompts, &announce(&Change::Prompts));
    stage.feed.tell(of("Bearer c"), &Change::Resources, &announce(&Change::Resources));
    assert_eq!((session.told().await, other.told().await), (vec![Change::Tools], vec![]));
    assert_eq!(stage.changed.lock().unwrap()[..], [Change::Tools, Change::Prompts, Change::Resources]);
}

/// Invariant 5: a long URI that a server makes up is told as the subscription that it belongs to.
#[tokio::test(start_paused = true)]
async fn inv5_a_long_uri_is_told_in_short() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(NONE);
    let mut stream = subscribed(&mut stage, &following, "file:///d").await;
    stream.updated("file:///d/short").await;
    stream.updated(&format!("file:///d/{}", "x".repeat(10_000))).await;
    stream.updated(&format!("file:///e/{}", "x".repeat(10_000))).await;
    assert_eq!(session.told().await, [updated("file:///d/short"), updated("file:///d")]);
}

/// Invariant 2, and the life of a hub.
#[tokio::test(start_paused = true)]
async fn each_principal_has_its_own_hub_until_its_last_session_has_left() {
    let mut stage = Stage::new();
    let (one, session) = stage.join_as("Bearer a", TOOLS);
    let mut first = stage.listen().await.acknowledge().await;
    let (_two, other) = stage.join_as("Bearer b", TOOLS);
    let asked = stage.listen().await;
    assert!(asked.request.contains("Bearer b"));
    let mut second = asked.acknowledge().await;
    first.changed("tools").await;
    assert_eq!((session.told().await, other.told().await), (vec![Change::Tools], vec![]));
    assert_eq!(stage.feed.len(), 2);
    drop(one);
    sleep(Duration::from_secs(1)).await;
    // One that comes back in time finds everything as it was.
    let (one, _session) = stage.join_as("Bearer a", TOOLS);
    stage.no_listen_for(Duration::from_secs(60)).await;
    drop(one);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.feed.len(), 1);
    assert!(first.is_closed().await && !second.is_closed().await);
    let (_one, _session) = stage.join_as("Bearer a", TOOLS);
    let _again = stage.listen().await.acknowledge().await;
}

/// Invariant 5: what is listened for and nobody is there to hear is bounded, however fast sessions come and go.
#[tokio::test(start_paused = true)]
async fn inv5_few_hubs_outlive_their_sessions() {
    let mut stage = Stage::new();
    let mut all = Vec::new();
    for n in 0..50 {
        let credential = format!("Bearer {n}");
        let (following, _session) = stage.join_as(Box::leak(credential.into_boxed_str()), TOOLS);
        all.push((following, stage.listen().await.acknowledge().await));
    }
    let (parts, mut streams): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.feed.len(), 50);
    drop(parts);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(stage.feed.len(), LINGERING);
    let mut open = 0;
    for stream in &mut streams {
        open += usize::from(!stream.is_closed().await);
    }
    assert_eq!(open, LINGERING);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.feed.len(), 0);
    assert_eq!(stage.feed.lingering.load(Ordering::Acquire), 0);
}

#[tokio::test(start_paused = true)]
async fn the_drain_ends_it() {
    let mut stage = Stage::new();
    let (following, _session) = stage.join(TOOLS);
    let mut stream = stage.listen().await.acknowledge().await;
    let drain = async {
        let _asked = stage.listen().await;
        stage.shutdown.drain();
    };
    let (drained, ()) = tokio::join!(following.subscribe("a", 100, soon()), drain);
    let Err(NotSubscribed::Fault(fault)) = drained else { panic!("{drained:?}") };
    assert_eq!(fault.kind, FaultKind::Draining);
    assert_eq!(stage.shutdown.finished().await, crate::shutdown::Ending::Drained);
    assert!(stream.is_closed().await);
    drop(following);
}

/// Invariant 5: a server that tells without end is told on in a measure, and the last word is never left out.
#[tokio::test(start_paused = true)]
async fn a_flood_of_changes_is_told_in_a_measure() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(TOOLS);
    let mut lists = stage.listen().await.acknowledge().await;
    let mut uris = subscribed(&mut stage, &following, "d").await;
    let before = Instant::now();
    for _ in 0..5000 {
        lists.changed("tools").await;
    }
    let took = before.elapsed().as_millis() as usize;
    sleep(Duration::from_millis(60)).await;
    let told = session.told().await;
    assert!(told.len() >= 2 && told.len() <= 3 + took / 50, "{} in {took} ms", told.len());
    assert_eq!(stage.changed.lock().unwrap().len(), told.len());
    let mut all = std::collections::HashSet::new();
    for n in 0..2000 {
        uris.updated(&format!("d/{n}")).await;
    }
    sleep(Duration::from_secs(5)).await;
    all.extend(session.told().await);
    assert_eq!(all.len(), 2000, "each of them");
    assert!(before.elapsed() >= Duration::from_millis(350), "the server had to wait");
}

/// A server that ends each listen at once, while clients come and go: neither waits for the other.
#[tokio::test(start_paused = true)]
async fn sessions_that_come_and_go_at_a_server_that_does_not_keep_still() {
    let mut stage = Stage::new();
    let feed = stage.feed.clone();
    let coming = async {
        for n in 0..300u64 {
            let session = Arc::new(Session::default());
            let follower: Arc<dyn Follower> = session.clone();
            let headers = headers("Bearer a");
            let principal = Principal::of(headers.get(AUTHORIZATION));
            let following = feed.join(principal, &headers, TOOLS, Arc::downgrade(&follower));
            drop(follower);
            let uri = format!("u:{}", n % 7);
            let waited =
                following.subscribe(&uri, 100, Instant::now() + Duration::from_millis(50 * (n % 5))).await;
            if n % 3 == 0 && waited.is_ok() {
                following.unsubscribe(&uri);
            }
            if n % 2 == 0 {
                drop(session);
            }
            sleep(Duration::from_millis(n * 37 % 500)).await;
        }
    };
    let mut listens = 0;
    let serving = async {
        loop {
            let asked = stage.listen().await;
            listens += 1;
            match listens % 4 {
                0 => drop(asked),
                1 => drop(asked.acknowledge().await),
                2 => asked.refuse(-32602).await,
                _ => {
                    let mut stream = asked.acknowledge().await;
                    stream.changed("tools").await;
                    stream.updated("u:1").await;
                }
            }
        }
    };
    tokio::select! {
        () = coming => {}
        () = serving => {}
    }
    assert!(listens > 10 && listens < 600, "{listens}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(feed.len(), 0);
}
