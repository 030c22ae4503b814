//! D31, C02, C48, A12.13: the server loses the session, or comes back as another, while somebody listens.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{A, SOME, Stage, TOOLS, TOOLS_ONLY, updated, uris};
use crate::support::net::{Receiver, handler};
use crate::support::{
    Ask, Begin, Gets, LegacyServer, Listener, ModernServer, Net, Proxy, Reply, call, json, listen, pass,
};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

fn logging_call() -> Ask {
    call("echo", "{}").id("7").meta(LOG_LEVEL, r#""debug""#)
}

/// What reached the server in the second session, by method.
fn in_second(stage: &Stage) -> Vec<String> {
    let requests = stage.up.requests();
    let second = requests.iter().filter(|seen| seen.session().as_deref() == Some("S2"));
    second.map(|seen| seen.brief()).collect()
}

#[tokio::test(start_paused = true)]
async fn d31_a_call_finds_the_session_lost() {
    let stage = Stage::new().await;
    let one = stage.listens("1", SOME).await;
    let two = stage.listens(r#""2""#, TOOLS_ONLY).await;
    stage.proxy.send(&logging_call()).await.result();
    stage.server.forget_sessions();
    let old = stage.gets.wait(1).await;
    let done = stage.proxy.send(&logging_call()).await;
    done.result();
    pass(10_000).await;
    assert_eq!(stage.up.posts("initialize").len(), 2, "one new session: {:?}", stage.up.briefs());
    assert_eq!(stage.up.posts("tools/call").len(), 3, "the refused one again, once");
    assert_eq!(stage.asked("resources/subscribe"), [A, A]);
    let second = in_second(&stage);
    let at = |what: &str| second.iter().position(|brief| brief == what).expect(what);
    assert!(at("logging/setLevel") < at("tools/call"), "the level first: {second:?}");
    assert_eq!(second.iter().filter(|brief| *brief == "logging/setLevel").count(), 1, "{second:?}");
    assert_eq!(second.iter().filter(|brief| *brief == "GET").count(), 1, "{second:?}");
    assert!(!old.is_open(), "the old session's stream is let go");
    assert_eq!(one.changes(), ["tools", A], "each once");
    assert_eq!(two.changes(), ["tools"]);
    stage.gets.tell(&updated(A));
    pass(1000).await;
    assert_eq!(one.changes(), ["tools", A, A], "and it goes on");
    drop((one, two));
    stage.nothing_is_left().await;
    assert_eq!(stage.asked("resources/unsubscribe"), [A], "in the session that is");
}

#[tokio::test(start_paused = true)]
async fn d31_the_stream_finds_the_session_lost() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    stage.server.forget_sessions();
    stage.gets.wait(1).await.cut();
    listener.wait(3).await;
    pass(10_000).await;
    assert_eq!(listener.changes(), ["tools", A], "each once");
    assert_eq!(stage.up.posts("initialize").len(), 2);
    assert_eq!(stage.asked("resources/subscribe"), [A, A]);
    let in_first: Vec<_> = stage
        .up
        .requests()
        .iter()
        .filter(|s| s.session().as_deref() == Some("S1"))
        .map(|s| s.brief())
        .collect();
    let after = in_first.iter().rposition(|brief| brief == "GET").unwrap();
    assert_eq!(in_first[after..], ["GET", "ping"], "a POST confirms it (C08)");
    stage.proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(stage.up.posts("initialize").len(), 2, "the call uses it");
}

/// C08: 404 to the GET alone does not end a session that POST still accepts.
#[tokio::test(start_paused = true)]
async fn c08_a_404_for_the_stream_alone() {
    let gets = Gets::script(|n| if n == 0 { Begin::Open } else { Begin::Empty(404) });
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    let listener = stage.listens("1", SOME).await;
    stage.gets.wait(1).await.end();
    listener.ended_gracefully().await;
    assert_eq!(stage.up.posts("initialize").len(), 1);
    assert_eq!(stage.up.posts("ping").len(), 1);
    stage.proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(stage.up.only("tools/call").session().as_deref(), Some("S1"));
    stage.nothing_is_left().await;
}

/// C48: restarted, the server takes the subscription no more, so who was promised it is told by the end.
#[tokio::test(start_paused = true)]
async fn c48_a_subscription_that_cannot_be_made_again() {
    let base = LegacyServer::telling();
    let counts = base.clone();
    let server = base.on("resources/subscribe", move |seen, reply: Reply| {
        let counts = counts.clone();
        async move {
            if counts.count("subscribe") > 0 {
                return reply.error(200, &seen, r#"{"code":-32602,"message":"gone"}"#).await;
            }
            reply.result(&seen, "{}").await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    let of_it = stage.listens("1", SOME).await;
    let not_of_it = stage.listens("2", TOOLS_ONLY).await;
    stage.server.forget_sessions();
    stage.proxy.send(&call("echo", "{}")).await.result();
    of_it.ended_gracefully().await;
    pass(5000).await;
    assert_eq!(not_of_it.changes(), ["tools"]);
    assert!(!not_of_it.is_over());
}

/// C48, A3.10: a server that comes back with less than it had cannot keep the promise.
#[tokio::test(start_paused = true)]
async fn c48_a_server_that_offers_less_when_it_comes_back() {
    let base = LegacyServer::telling();
    let less = base.clone().capabilities(r#"{"tools":{},"resources":{"listChanged":true,"subscribe":true}}"#);
    let counts = base.clone();
    let server = base.clone().on("initialize", move |seen, reply| {
        let server = if counts.count("initialize") == 0 { base.clone() } else { less.clone() };
        async move { server.initialize_as_usual(&seen, reply).await }
    });
    let stage = Stage::of(server, Gets::open()).await;
    let tools = stage.listens("1", TOOLS_ONLY).await;
    let resource = stage.listens("2", &uris(&[A])).await;
    stage.server.forget_sessions();
    stage.proxy.send(&call("echo", "{}")).await.result();
    tools.ended_gracefully().await;
    pass(5000).await;
    assert_eq!(resource.changes(), [A]);
    assert!(!resource.is_over());
}

/// B9.6: a server that comes back without a stream ends what it cannot keep; who comes then is promised nothing.
#[tokio::test(start_paused = true)]
async fn b9_6_a_server_that_comes_back_without_a_stream() {
    let gets = Gets::script(|n| if n == 0 { Begin::Open } else { Begin::Empty(405) });
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    let one = stage.listens("1", SOME).await;
    let two = stage.listens(r#""2""#, TOOLS_ONLY).await;
    stage.server.forget_sessions();
    stage.gets.wait(1).await.cut();
    one.ended_gracefully().await;
    two.ended_gracefully().await;
    let later = stage.listens("3", SOME).await;
    assert_eq!(later.promised().await, json!({}));
    drop((one, two));
    pass(5000).await;
    assert!(!later.is_over());
    stage.nothing_is_left().await;
    stage.proxy.drain();
    later.ended_gracefully().await;
}

#[tokio::test(start_paused = true)]
async fn b9_6_a_server_that_becomes_modern() {
    let net = Net::new();
    let gets = Gets::open();
    let server = gets.of(LegacyServer::telling());
    server.start(&net);
    let proxy = Proxy::start(&net).await;
    let one = Listener::open(&proxy, &listen("1", SOME)).await;
    one.wait(1).await;
    let modern = ModernServer::new().on("subscriptions/listen", |seen, mut reply: Reply| async move {
        let id = seen.json()["id"].clone();
        let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {"toolsListChanged": true}});
        reply.stream().await;
        let method = "notifications/subscriptions/acknowledged";
        reply.event(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
        reply.never().await;
    });
    let answer = move |seen, reply| modern.clone().answer(seen, reply);
    // What the proxy says before it knows is for the server that was.
    let up = net.serve("up.test", Receiver::Unchecked, handler(answer));
    gets.wait(1).await.cut();
    one.ended_gracefully().await;
    pass(5000).await;
    let again = Listener::open(&proxy, &listen(r#""2""#, TOOLS_ONLY)).await;
    assert_eq!(again.promised().await, json!({"toolsListChanged": true}));
    assert_eq!(up.posts("subscriptions/listen").len(), 1, "relayed");
    assert_eq!(proxy.feeds(), 0);
}

/// D31: a subscription that hangs after a restart holds up nobody but those who want it.
#[tokio::test(start_paused = true)]
async fn d31_a_slow_subscription_after_a_restart() {
    let base = LegacyServer::telling();
    let counts = base.clone();
    let server = base.on("resources/subscribe", move |seen, reply: Reply| {
        let again = counts.count("subscribe") > 0;
        async move {
            if again {
                pass(20_000).await;
            }
            reply.result(&seen, "{}").await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    let of_it = stage.listens("1", SOME).await;
    let not_of_it = stage.listens("2", TOOLS_ONLY).await;
    stage.server.forget_sessions();
    stage.proxy.send(&call("echo", "{}")).await.result();
    pass(5000).await;
    assert_eq!(not_of_it.changes(), ["tools"]);
    assert_eq!(of_it.changes(), Vec::<String>::new(), "not before it would hear of the next change");
    pass(60_000).await;
    assert_eq!(
        (of_it.changes(), not_of_it.changes()),
        (vec!["tools".to_owned(), A.to_owned()], vec!["tools".to_owned()])
    );
}

/// Invariant 5: who waits for a promise of a server that is away is told that there is none.
#[tokio::test(start_paused = true)]
async fn inv5_the_server_goes_away_while_a_listener_joins() {
    let server = LegacyServer::telling()
        .on("resources/subscribe", |_, reply: Reply| async move { reply.never().await });
    let stage = Stage::of(server, Gets::open()).await;
    let stays = stage.listens("1", TOOLS_ONLY).await;
    let start = Instant::now();
    let joins = Listener::open(&stage.proxy, &listen("2", &uris(&[A]))).await;
    stage.server.forget_sessions();
    stage.up.refuse();
    stage.up.hang_up();
    stage.gets.wait(1).await.cut();
    assert_eq!(joins.promised().await, json!({}));
    assert!(joins.at(0) - start <= Duration::from_secs(31), "{:?}", joins.at(0) - start);
    assert!(!stays.is_over());
    stage.up.restore();
    stays.wait(2).await;
}

/// Who joins in a gap is told at its end too: what it was promised began before.
#[tokio::test(start_paused = true)]
async fn b9_3_a_listener_that_joins_in_a_gap() {
    let gets = Gets::script(|n| if (1..=3).contains(&n) { Begin::Empty(503) } else { Begin::Open });
    let stage = Stage::of(LegacyServer::telling(), gets).await;
    let there = stage.listens("1", TOOLS_ONLY).await;
    stage.gets.wait(1).await.cut();
    // After the last refusal, before the stream that opens.
    stage.gets.wait(4).await;
    let joins = stage.listens("2", SOME).await;
    stage.gets.wait(5).await;
    pass(5000).await;
    assert_eq!(there.changes(), ["tools"]);
    if joins.promised().await != json!({}) {
        assert_eq!(joins.changes(), ["tools", A]);
    }
}

/// C03, C08: 404 to one method in a session that lives loses no session, and never a storm of them.
#[tokio::test(start_paused = true)]
async fn c03_a_server_that_answers_404_to_subscribe() {
    let server = LegacyServer::telling().on("resources/subscribe", |_, reply: Reply| reply.empty(404));
    let stage = Stage::of(server, Gets::open()).await;
    let listener = stage.listens("1", SOME).await;
    assert_eq!(listener.promised().await, json!({"toolsListChanged": true}));
    pass(300_000).await;
    assert_eq!(stage.up.posts("initialize").len(), 1, "{:?}", stage.up.briefs());
    assert_eq!(listener.changes(), Vec::<String>::new());
}

/// The pause that keeps a server from a flood of sessions is not for who comes with a session that is there.
#[tokio::test(start_paused = true)]
async fn c02_a_listener_that_comes_after_many_losses() {
    let stage = Stage::new().await;
    let stays = stage.listens("0", TOOLS_ONLY).await;
    for n in 1..=8 {
        stage.server.forget_sessions();
        stage.proxy.send(&call("echo", "{}")).await.result();
        let start = Instant::now();
        let joins = stage.listens("1", SOME).await;
        assert!(start.elapsed() < Duration::from_secs(1), "after {n} losses: {:?}", start.elapsed());
        assert_eq!(joins.promised().await["resourceSubscriptions"], json!([A]), "after {n} losses");
        assert!(!stays.is_over());
    }
}

/// C02: a server that loses every session at once is not flooded with new ones, and calls still get their answers.
#[tokio::test(start_paused = true)]
async fn c02_a_server_that_loses_every_session() {
    let base = LegacyServer::telling();
    let sessions = base.clone();
    let server = base.on("resources/subscribe", move |_, reply: Reply| {
        sessions.forget_sessions();
        reply.empty(404)
    });
    let stage = Stage::of(server, Gets::open()).await;
    let listener = Listener::open(&stage.proxy, &listen("1", SOME)).await;
    pass(300_000).await;
    let opened = stage.up.posts("initialize").len();
    // As often as a stream that always breaks: 1, 2, 4, 8, 16 and then every 30 seconds.
    assert!((2..=20).contains(&opened), "{opened} sessions in five minutes");
    listener.close();
    stage.nothing_is_left().await;
}

/// C48: a server that is down for a while is waited for; a promise outlives that.
#[tokio::test(start_paused = true)]
async fn c48_a_server_that_is_away_for_a_while() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    stage.server.forget_sessions();
    stage.up.refuse();
    stage.up.hang_up();
    stage.gets.wait(1).await.cut();
    pass(120_000).await;
    assert!(!listener.is_over());
    assert_eq!(listener.changes(), Vec::<String>::new(), "nothing to look at yet");
    stage.up.restore();
    listener.wait(3).await;
    pass(60_000).await;
    assert_eq!(listener.changes(), ["tools", A]);
    assert_eq!(stage.up.posts("initialize").len(), 2);
    listener.close();
    stage.nothing_is_left().await;
}

/// Who goes while the server is away is not waited for.
#[tokio::test(start_paused = true)]
async fn b9_6_everyone_leaves_while_the_server_is_away() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    stage.server.forget_sessions();
    stage.up.refuse();
    stage.up.hang_up();
    stage.gets.wait(1).await.cut();
    pass(20_000).await;
    listener.close();
    pass(1000).await;
    assert_eq!(stage.proxy.feeds(), 0);
    stage.up.restore();
    stage.nothing_is_left().await;
    let later = stage.listens("2", TOOLS_ONLY).await;
    stage.gets.tell(TOOLS);
    later.wait(2).await;
}

/// D31: who waits for an acknowledgement when the session goes gets it from the next one.
#[tokio::test(start_paused = true)]
async fn d31_the_session_goes_while_a_listener_joins() {
    let base = LegacyServer::telling();
    let (counts, sessions) = (base.clone(), base.clone());
    let server = base.on("resources/subscribe", move |seen, reply: Reply| {
        let (counts, sessions) = (counts.clone(), sessions.clone());
        async move {
            if seen.text().contains("file:///b") && counts.count("b") == 0 {
                pass(1000).await;
                sessions.forget_sessions();
                return reply.empty(404).await;
            }
            reply.result(&seen, "{}").await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    let one = stage.listens("1", SOME).await;
    let two = Listener::open(&stage.proxy, &listen("2", &uris(&["file:///b"]))).await;
    assert_eq!(two.promised().await, json!({"resourceSubscriptions": ["file:///b"]}));
    pass(10_000).await;
    assert_eq!(one.changes(), ["tools", A]);
    assert!(two.changes().len() <= 1, "{:?}", two.changes());
    assert_eq!(stage.up.posts("initialize").len(), 2);
    stage.gets.tell(&updated("file:///b"));
    pass(1000).await;
    assert_eq!(two.changes().last().map(String::as_str), Some("file:///b"));
}
