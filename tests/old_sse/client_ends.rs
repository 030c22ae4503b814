//! The end of a client of HTTP+SSE, which is that of its stream, and of its server: A14.7, B14, C10, C56.

use crate::client::{Client, PATH, bounded, call, proxy, request};
use crate::support::old_sse_server::URL;
use crate::support::{Ask, Calls, LegacyServer, ModernServer, Net, OldSseServer, Reply, json, pass, within};

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_takes_its_calls_and_its_session_with_it() {
    for shield in [false, true] {
        let (net, calls) = (Net::new(), Calls::new());
        let server = calls.of(LegacyServer::new());
        let up = server.start(&net);
        let proxy = proxy(&net, &format!("session = {{ shield = {shield} }}")).await;
        let client = Client::begin(&proxy, "2024-11-05").await;
        let other = Client::begin(&proxy, "2024-11-05").await;
        client.say(&call("1", "slow", "{}")).await;
        let running = calls.wait(1).await;
        let place = client.endpoint.clone();
        client.close();
        let told = up.wait("notifications/cancelled", 1).await;
        assert_eq!(told[0].json()["params"]["requestId"], running.id(), "shield {shield}");
        up.wait("DELETE", 1).await;
        assert_eq!(server.live_sessions(), 1, "shield {shield}: the other's");
        pass(1000).await;
        let answer = proxy.open(&Ask::old("").path(&place).raw_body(call("2", "x", "{}").as_bytes())).await;
        assert_eq!(answer.status, 404, "shield {shield}");
        other.result(&request("3", "tools/list", "")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_lets_go_of_a_modern_server() {
    let (net, calls) = (Net::new(), Calls::new());
    calls.of_modern(ModernServer::new()).start(&net);
    let proxy = proxy(&net, "").await;
    let client = Client::begin(&proxy, "2025-06-18").await;
    client.say(&call("1", "slow", "{}")).await;
    let running = calls.wait(1).await;
    client.close();
    within("the end of the call at the server", async {
        while running.is_open() {
            pass(10).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_ends_a_child_process() {
    let net = Net::new();
    LegacyServer::new().start_program(&net, "server");
    let proxy = proxy(&net, "command = \"server\"").await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    client.result(&request("1", "tools/list", "")).await;
    assert_eq!(net.programs().alive().len(), 1);
    client.close();
    net.programs().over().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_before_a_word_leaves_nothing() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = bounded(&net, "[limits]\nstreams = 1", "").await;
    for _ in 0..20 {
        let old = crate::support::OldSse::open(&proxy, PATH).await;
        old.close();
        pass(100).await;
    }
    assert!(up.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_is_opened_anew_unheard() {
    let net = Net::new();
    let server = LegacyServer::new();
    let up = server.start(&net);
    let proxy = proxy(&net, "").await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    client.result(&request("1", "tools/list", "")).await;
    server.forget_sessions();
    client.result(&request("2", "tools/list", "")).await;
    assert_eq!(up.posts("initialize").len(), 2);
    assert_eq!(
        client.ear.all().iter().filter(|said| said.id() == "0").count(),
        1,
        "one answer to `initialize`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_fails_the_calls_and_not_the_client() {
    let (net, calls) = (Net::new(), Calls::new());
    let server = OldSseServer::new(&calls.of(LegacyServer::new()));
    server.start(&net);
    let proxy = proxy(&net, &format!("url = \"{URL}\"")).await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    for n in 1..=3 {
        client.say(&call(&n.to_string(), "slow", "{}")).await;
    }
    calls.wait(3).await;
    server.stream(1).await.break_off();
    for n in 1..=3 {
        let said = client.ear.answer(&n.to_string()).await;
        assert_eq!(said.message["error"]["code"], json!(-32603), "{}", said.raw);
    }
    client.result(&request("4", "tools/list", "")).await;
    assert_eq!(server.streams().len(), 2);
    assert!(!client.ear.is_over());
}

#[tokio::test(start_paused = true)]
async fn what_a_server_refuses_is_told_in_words() {
    for status in [401, 403, 429, 500, 503] {
        let net = Net::new();
        LegacyServer::new().on("tools/call", move |_, reply: Reply| reply.empty(status)).start(&net);
        let proxy = proxy(&net, "").await;
        let client = Client::begin(&proxy, "2024-11-05").await;
        let said = client.ask(&call("\"x\"", "echo", "{}")).await;
        assert_eq!(said.message["error"]["code"], json!(-32603), "{status}: {}", said.raw);
        assert!(said.raw.contains(&status.to_string()), "{}", said.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_the_streams_cleanly_once_calls_are_answered() {
    let (net, calls) = (Net::new(), Calls::new());
    let server = calls.of(LegacyServer::new());
    server.start(&net);
    let proxy = proxy(&net, "").await;
    let busy = Client::begin(&proxy, "2024-11-05").await;
    let idle = Client::begin(&proxy, "2024-11-05").await;
    busy.say(&call("1", "slow", "{}")).await;
    let running = calls.wait(1).await;
    let since = tokio::time::Instant::now();
    proxy.drain();
    idle.ear.ended().await;
    assert!(since.elapsed().as_secs() < 3, "nothing holds up one that has no call: {:?}", since.elapsed());
    assert!(!busy.ear.is_over());
    // A client that comes now is sent away; a further request is refused, an answer not held up.
    let refused = proxy.open(&Ask::verb("GET").path(PATH).header("Accept", "text/event-stream")).await;
    assert_eq!(refused.status, 503);
    running.finish("in time");
    let said = busy.ear.answer("1").await;
    assert_eq!(said.message["result"]["content"][0]["text"], "in time");
    busy.ear.ended().await;
    proxy.finished().await;
    assert_eq!(server.live_sessions(), 0, "the sessions are ended at the server");
}

#[tokio::test(start_paused = true)]
async fn a_grace_that_is_over_ends_the_streams() {
    let (net, calls) = (Net::new(), Calls::new());
    calls.of(LegacyServer::new()).start(&net);
    let proxy = bounded(&net, "shutdown_grace = \"5s\"", "").await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    client.say(&call("1", "slow", "{}")).await;
    calls.wait(1).await;
    proxy.drain();
    proxy.finished().await;
    client.ear.ended().await;
    let answers: Vec<_> = client.ear.all().into_iter().filter(|said| said.id() == "1").collect();
    assert!(answers.len() <= 1, "{:?}", client.ear.raws());
}

/// Whoever does not read waits for itself, and what it may have waiting is bounded.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_client_that_does_not_read_is_bounded() {
    let text = "x".repeat(100_000);
    let net = Net::new();
    let up = LegacyServer::new()
        .on("tools/call", move |seen, reply: Reply| {
            let text = text.clone();
            async move {
                reply.result(&seen, &format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#)).await;
            }
        })
        .start(&net);
    let proxy = bounded(&net, "[limits]\nrequests = 4", "").await;
    let mut stream = proxy.open(&Ask::verb("GET").path(PATH).header("Accept", "text/event-stream")).await;
    let place = stream.event().await.unwrap().data;
    let post = |text: &str| {
        let ask = Ask::old("").path(&place).raw_body(text.as_bytes());
        let proxy = proxy.clone();
        async move { proxy.open(&ask).await }
    };
    assert_eq!(post(&crate::client::initialize("2024-11-05")).await.status, 202);
    assert_eq!(stream.message().await["id"], 0);
    assert_eq!(post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.status, 202);
    let mut accepted = 0;
    let refused = loop {
        let answer = post(&call(&accepted.to_string(), "print", "{}")).await;
        if answer.status != 202 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 200, "some bound is reached");
    };
    assert_eq!((refused.status, refused.headers.get("retry-after").as_deref()), (503, Some("1")));
    assert!(up.posts("tools/call").len() <= 12, "{} of {accepted} have run", up.posts("tools/call").len());
    // It reads at last: each that was accepted is answered once.
    let mut ids = Vec::new();
    while ids.len() < accepted {
        ids.push(stream.message().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert!((0..).zip(&ids).all(|(n, id)| n == *id), "{ids:?}");
    assert_eq!(post(&call("\"on\"", "print", "{}")).await.status, 202);
}
