//! Servers that refuse, are silent, or end what stands.

use super::*;

/// B9.7 at a server without the method.
#[tokio::test(start_paused = true)]
async fn a_server_without_listens_is_left_alone() {
    for (status, body) in
        [("404 Not Found", "{}"), ("405 Method Not Allowed", ""), ("202 Accepted", ""), ("", "")]
    {
        let mut stage = Stage::new();
        let (following, session) = stage.join(TOOLS);
        let asked = stage.listen().await;
        match status {
            "" => asked.refuse(-32601).await,
            status => asked.answer(status, "", body).await,
        }
        stage.no_listen_for(Duration::from_secs(3600)).await;
        let serve = async { stage.listen().await.refuse(-32601).await };
        let (refused, ()) = tokio::join!(following.subscribe("a", 100, soon()), serve);
        assert_eq!(refused, Err(NotSubscribed::Refused), "{status}");
        assert_eq!(following.subscribe("a", 100, soon()).await, Err(NotSubscribed::Refused), "{status}");
        assert!(following.uris().is_empty());
        assert_eq!(session.told().await, []);
        stage.no_listen_for(Duration::from_secs(3600)).await;
    }
}

/// A credential that the server refuses goes to it again only when a client comes with one.
#[tokio::test(start_paused = true)]
async fn a_refused_credential_waits_for_a_newer_one() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(TOOLS);
    stage.listen().await.answer("401 Unauthorized", "WWW-Authenticate: Bearer x\r\n", "").await;
    stage.no_listen_for(Duration::from_secs(3600)).await;
    let serve = async { stage.listen().await.answer("403 Forbidden", "", "").await };
    let (denied, ()) = tokio::join!(following.subscribe("a", 100, soon()), serve);
    let Err(NotSubscribed::Fault(fault)) = denied else { panic!("{denied:?}") };
    assert!(matches!(fault.kind, FaultKind::Unauthorized { status: 403, .. }), "{fault:?}");
    stage.no_listen_for(Duration::from_secs(3600)).await;
    // The same again, whatever trace it belongs to.
    let mut newer = headers("Bearer a");
    for n in 0..1000 {
        newer.insert("traceparent", HeaderValue::from(n));
        following.credential(&newer);
    }
    stage.no_listen_for(Duration::from_secs(3600)).await;
    newer.insert("x-key", HeaderValue::from_static("new"));
    following.credential(&newer);
    let asked = stage.listen().await;
    let head = asked.request.to_ascii_lowercase();
    assert!(head.contains("authorization: bearer a") && head.contains("x-key: new"), "{head}");
    assert!(!head.contains("traceparent"), "{head}");
    asked.answer("401 Unauthorized", "", "").await;
    stage.no_listen_for(Duration::from_secs(3600)).await;
    // Whoever comes may bring anything.
    let (_second, _other) = stage.join(TOOLS);
    let _stream = stage.listen().await.acknowledge().await;
    assert_eq!(session.told().await, [Change::Tools], "it may have changed meanwhile");
    following.credential(&newer);
    stage.no_listen_for(Duration::from_secs(3600)).await;
}

/// Invariant 2: what listens for one principal never goes out in the credential of another, as that of a session which has
/// moved and is used with both.
#[tokio::test(start_paused = true)]
async fn inv2_a_credential_of_another_principal_is_not_listened_with() {
    let mut stage = Stage::new();
    let (following, _session) = stage.join(TOOLS);
    stage.listen().await.answer("401 Unauthorized", "", "").await;
    stage.no_listen_for(Duration::from_secs(3600)).await;
    following.credential(&headers("Bearer b"));
    following.credential(&HeaderMap::new());
    stage.no_listen_for(Duration::from_secs(3600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_limits_the_rate_is_left_alone_for_so_long() {
    let mut stage = Stage::new();
    let (following, _session) = stage.join(TOOLS);
    stage.listen().await.answer("429 Too Many Requests", "Retry-After: 90\r\n", "").await;
    let before = Instant::now();
    let _stream = stage.listen().await.acknowledge().await;
    assert!(before.elapsed() >= Duration::from_secs(90), "{:?}", before.elapsed());
    let serve = async { stage.listen().await.answer("503 Busy", "Retry-After: 90\r\n", "").await };
    let (limited, ()) = tokio::join!(following.subscribe("a", 100, soon()), serve);
    assert!(matches!(limited, Err(NotSubscribed::Fault(_))), "{limited:?}");
    let before = Instant::now();
    assert!(following.subscribe("a", 100, soon()).await.is_err());
    assert_eq!(before.elapsed(), Duration::ZERO, "nobody waits for that");
    stage.no_listen_for(Duration::from_secs(3600)).await;
}

/// An acknowledgement that does not come: the client is told so in time, and it may still come.
#[tokio::test(start_paused = true)]
async fn a_silent_server_is_waited_for_but_not_by_the_client() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(NONE);
    let serve = async { stage.listen().await.open().await };
    let before = Instant::now();
    let (late, stream) = tokio::join!(following.subscribe("a", 100, soon()), serve);
    let Err(NotSubscribed::Fault(fault)) = late else { panic!("{late:?}") };
    assert_eq!(fault.kind, FaultKind::Timeout);
    assert_eq!(before.elapsed(), PATIENCE, "timeouts.initialize");
    assert!(following.uris().is_empty());
    // Whoever tries again has it tried again; and the deadline of the caller holds too.
    let serve = async { stage.listen().await };
    let (late, _asked) =
        tokio::join!(following.subscribe("a", 100, Instant::now() + Duration::from_millis(100)), serve);
    assert!(matches!(late, Err(NotSubscribed::Fault(_))), "{late:?}");
    assert_eq!(before.elapsed(), PATIENCE + Duration::from_millis(100));
    drop(stream);
    assert_eq!(session.told().await, []);
}

/// A server that answers a listen at once, with whatever, is not asked over and over.
#[tokio::test(start_paused = true)]
async fn what_ends_at_once_is_asked_for_more_and_more_seldom() {
    let mut stage = Stage::new();
    let (_following, session) = stage.join(TOOLS);
    let mut asked = Vec::new();
    for n in 0..20 {
        let mut listen = stage.listen().await;
        asked.push(Instant::now());
        let result =
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete"}}}}"#, listen.id);
        match n % 4 {
            0 => listen.answer("200 OK", "", &result).await,
            1 => {
                let mut stream = listen.acknowledge().await;
                stream.send(&result).await;
            }
            2 => drop(listen.open().await),
            _ => listen.answer("200 OK", "", "<html>").await,
        }
    }
    let last = asked[19] - asked[18];
    assert!(last >= Duration::from_secs(30) && asked[19] - asked[0] > Duration::from_secs(400), "{last:?}");
    assert!(session.told().await.len() <= 5, "no more than there were listens that stood");
}

/// B9.6: both ways in which a server may end a subscription.
#[tokio::test(start_paused = true)]
async fn a_server_may_end_a_listen_as_it_likes() {
    for end in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"restart"}}"#,
    ] {
        let mut stage = Stage::new();
        let (_following, session) = stage.join(TOOLS);
        let mut stream = stage.listen().await.acknowledge().await;
        // Not ours: no end.
        stream.send(&end.replace("ID", "999")).await;
        stream.send(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#).await;
        stream.send("no JSON at all").await;
        stage.no_listen_for(Duration::from_secs(60)).await;
        let end = end.replace("ID", &stream.id);
        stream.send(&end).await;
        let _stream = stage.listen().await.acknowledge().await;
        assert_eq!(session.told().await, [Change::Tools], "{end}");
    }
}

/// A4.9: a message that says that it belongs to another subscription does. What is too large to be kept is told in short.
#[tokio::test(start_paused = true)]
async fn only_messages_of_the_subscription_count() {
    let mut stage = Stage::new();
    let (_following, session) = stage.join(TOOLS);
    let mut asked = stage.listen().await;
    let mut stream = asked.open().await;
    let own = std::mem::replace(&mut stream.id, "777".to_owned());
    stream = stream.acknowledge(r#"{"toolsListChanged":true}"#).await;
    stream.changed("tools").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(session.told().await, []);
    stream.id = format!("\"{own}\"");
    stream = stream.acknowledge(r#"{"toolsListChanged":true}"#).await;
    assert_eq!(session.told().await, [Change::Tools], "it was acknowledged late");
    let large = "x".repeat(20_000);
    stream
        .send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"x":"{large}"}}}}"#
        ))
        .await;
    sleep(Duration::from_millis(100)).await;
    let told = session.told.lock().unwrap().drain(..).next().unwrap();
    assert_eq!(
        told,
        (Change::Tools, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned())
    );
}

/// One URI that the server refuses does not cost the others their subscriptions.
#[tokio::test(start_paused = true)]
async fn a_refused_uri_is_refused_alone() {
    let mut stage = Stage::new();
    let (following, _session) = stage.join(NONE);
    let _first = subscribed(&mut stage, &following, "a").await;
    let serve = async {
        let mut streams = Vec::new();
        for _ in 0..3 {
            let asked = stage.listen().await;
            if asked.asks().contains("bad") {
                asked.refuse(-32602).await;
            } else {
                streams.push(asked.acknowledge().await);
            }
        }
        streams
    };
    let (bad, good, _streams) = tokio::join!(
        following.subscribe("bad", 100, soon()),
        following.subscribe("good", 100, soon()),
        serve
    );
    assert_eq!((bad, good), (Err(NotSubscribed::Refused), Ok(())));
    stage.no_listen_for(Duration::from_secs(3600)).await;
}
