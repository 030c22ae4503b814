//! C23, C45, B1, B5: questions and cancellations over the one stream of the old transport.

use std::sync::Arc;

use crate::support::questions::{ACCEPT, ALL, FORM, ROOTS, SAMPLED, elicit, roots, sample};
use crate::support::{
    Calls, LegacyServer, Net, OldSseServer, Proxy, Reply, Round, Upstream, call, json, list, pass, rpc,
    within,
};

/// Waits for the server's next answer to a question of this raw id.
async fn answered(up: &Upstream, id: &str) -> crate::support::Value {
    within(&format!("an answer to {id}"), async {
        let mut n = 1;
        loop {
            let all = up.wait("response", n).await;
            if let Some(seen) = all.iter().find(|seen| rpc::id(&seen.body).as_deref() == Some(id)) {
                return seen.json();
            }
            n = all.len() + 1;
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_question_is_asked_and_answered() {
    for (question, answer, member) in [
        (elicit("7", "m"), ACCEPT, "action"),
        (sample("7", "p"), SAMPLED, "model"),
        (roots("7"), ROOTS, "roots"),
    ] {
        let (net, calls) = (Net::new(), Calls::new());
        let server = OldSseServer::new(&calls.of(LegacyServer::new()));
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "transport = \"sse\"").await;
        let ask = call("ask", "{}").caps(ALL).id("1");
        let first = proxy.spawn(&ask);
        let running = calls.wait(1).await;
        running.event(&question);
        let round = Round::of(&ask, first.await.unwrap());
        let second = proxy.spawn(&round.answer("2", answer));
        let told = answered(&up, "7").await;
        assert!(told["result"].get(member).is_some(), "{told}");
        running.finish("so be it");
        let done = second.await.unwrap();
        assert_eq!(
            (&done.message["id"], &done.result()["content"][0]["text"]),
            (&json!(2), &json!("so be it"))
        );
        assert_eq!((calls.all().len(), server.streams().len()), (1, 1), "never run again");
    }
}

#[tokio::test(start_paused = true)]
async fn c45_two_clients_are_asked_twice_each_at_once() {
    let (net, calls) = (Net::new(), Calls::new());
    let server = OldSseServer::new(&calls.of(LegacyServer::new()));
    let up = server.start(&net);
    let proxy = Arc::new(Proxy::of_old_sse(&net, "").await);
    // Each call is asked by its own mark, under a question id that both sessions use.
    let asking = {
        let calls = calls.clone();
        tokio::spawn(async move {
            for n in 1..=4 {
                let running = calls.wait(n).await;
                let who = running.argument("who");
                running.event(&elicit(&format!("{n}"), who.as_str().unwrap()));
            }
        })
    };
    let client = |token: &'static str| {
        let (proxy, up, calls) = (Arc::clone(&proxy), up.clone(), calls.clone());
        tokio::spawn(async move {
            for turn in 0..2 {
                let who = format!("{token}{turn}");
                let ask = call("ask_name", &format!(r#"{{"who":"{who}"}}"#)).caps(FORM).bearer(token);
                let round = Round::of(&ask, proxy.send(&ask).await);
                let key = round.key_of(&who);
                let name = format!(r#"{{"action":"accept","content":{{"n":"{who}"}}}}"#);
                let second = proxy.spawn(&round.retry("2", &[(&key, &name)]).bearer(token));
                let running =
                    calls.all().into_iter().find(|call| call.argument("who") == who.as_str()).unwrap();
                within("the answer at its own session", async {
                    let mut n = 1;
                    loop {
                        let all = up.wait("response", n).await;
                        let ours = |text: &str| text.contains(&format!("\"n\":\"{who}\""));
                        if let Some(seen) = all.iter().find(|seen| ours(seen.text())) {
                            assert_eq!(seen.header("authorization"), running.seen.header("authorization"));
                            break;
                        }
                        n = all.len() + 1;
                    }
                })
                .await;
                running.finish(&who);
                assert_eq!(second.await.unwrap().result()["content"][0]["text"], who.as_str());
            }
        })
    };
    let (one, two) = (client("a"), client("b"));
    one.await.unwrap();
    two.await.unwrap();
    asking.await.unwrap();
    assert_eq!(server.streams().len(), 2, "no session is shared");
}

#[tokio::test(start_paused = true)]
async fn c23_a_client_that_goes_cancels_under_the_servers_id() {
    let (net, calls) = (Net::new(), Calls::new());
    let server = OldSseServer::new(&calls.of(LegacyServer::new()));
    let up = server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    let slow = call("slow", r#"{"n":1}"#).id("1");
    let given_up = proxy.spawn(&slow);
    let other = proxy.spawn(&call("slow", r#"{"n":2}"#).id("1"));
    let (first, second) = (calls.marked(1).await, calls.marked(2).await);
    pass(1000).await;
    given_up.abort();
    let cancelled = up.wait("notifications/cancelled", 1).await;
    assert_eq!(cancelled[0].json()["params"]["requestId"], first.id());
    assert!(!first.is_open(), "the server has heard of it");
    second.finish("on");
    assert_eq!(other.await.unwrap().result()["content"][0]["text"], "on");
    assert_eq!(up.posts("notifications/cancelled").len(), 1);
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(server.streams().len(), 1, "the shared session is untouched");
}

/// The cancellation finds the request there, though its POST is answered only at its end.
#[tokio::test(start_paused = true)]
async fn c23_a_cancellation_does_not_wait_behind_its_own_call() {
    let (net, calls) = (Net::new(), Calls::new());
    let up = OldSseServer::new(&calls.of(LegacyServer::new())).late().start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    let given_up = proxy.spawn(&call("slow", "{}").id("1"));
    let running = calls.wait(1).await;
    given_up.abort();
    let since = tokio::time::Instant::now();
    let cancelled = up.wait("notifications/cancelled", 1).await;
    assert_eq!(cancelled[0].json()["params"]["requestId"], running.id());
    assert!(since.elapsed().as_millis() <= 1500, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_servers_ping_is_answered() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
        pass(100).await;
        reply.result(&seen, r#"{"content":[]}"#).await;
    }));
    let up = server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    let calling = proxy.spawn(&call("slow", "{}"));
    up.wait("tools/call", 1).await;
    server.stream(1).await.say(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert_eq!(answered(&up, "\"p\"").await["result"], json!({}));
    calling.await.unwrap().result();
    // Between calls too.
    server.stream(1).await.say(r#"{"jsonrpc":"2.0","id":"q","method":"ping"}"#);
    assert_eq!(answered(&up, "\"q\"").await["result"], json!({}));
}
