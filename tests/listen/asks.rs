//! B9.1, C17, A12: every way in which a server may answer `resources/subscribe`, and the settings of the waits.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{A, SOME, Stage, TOOLS, TOOLS_ONLY, updated, uris};
use crate::support::{Begin, Gets, LegacyServer, Listener, Reply, Seen, call, json, listen, pass, rpc};

/// Answers in one of many ways; says nothing of which of them are a yes.
async fn answer(what: &'static str, seen: &Seen, mut reply: Reply) {
    let id = seen.id();
    match what {
        "json" => reply.result(seen, "{}").await,
        "more" => reply.result(seen, r#"{"_meta":{"x":1},"subscribed":true}"#).await,
        "stream" => reply.streamed_result(seen, "{}").await,
        "string id" => reply.json(200, &rpc::result_message(&format!("\"{id}\""), "{}")).await,
        "after others" => {
            reply.stream().await;
            reply.chunk(b": hello\n\nid: 1\ndata: \n\n").await;
            reply.event(r#"{"jsonrpc":"2.0","id":"x","result":{"not":"ours"}}"#).await;
            reply.event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
            reply.event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}"#).await;
            reply.result_event(seen, "{}").await;
            reply.end().await;
        }
        "error" => reply.error(200, seen, r#"{"code":-32602,"message":"no"}"#).await,
        "error without id" => {
            reply.json(200, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}"#).await;
        }
        "error event" => {
            reply.stream().await;
            reply.error_event(seen, r#"{"code":-32002,"message":"no"}"#).await;
            reply.end().await;
        }
        "unknown method" => reply.error(404, seen, r#"{"code":-32601,"message":"no"}"#).await,
        "400" => reply.error(400, seen, r#"{"code":-32602,"message":"no"}"#).await,
        "202" => reply.empty(202).await,
        "204" => reply.empty(204).await,
        "html" => reply.body(200, "text/html", "<html>").await,
        "nothing" => reply.streamed_nothing().await,
        "another's" => reply.json(200, r#"{"jsonrpc":"2.0","id":"x","result":{}}"#).await,
        "half" => reply.half(&rpc::result_message(&id, "{}"), 20).await,
        "cut" => drop(reply),
        status => reply.empty(status.parse().expect("a status")).await,
    }
}

#[tokio::test(start_paused = true)]
async fn b9_1_every_answer_to_a_subscription() {
    let yes = ["json", "more", "stream", "string id", "after others"];
    let no = [
        "error",
        "error without id",
        "error event",
        "unknown method",
        "400",
        "202",
        "204",
        "html",
        "nothing",
        "another's",
        "half",
        "cut",
        "401",
        "403",
        "404",
        "405",
        "409",
        "429",
        "500",
        "503",
    ];
    for what in yes.into_iter().chain(no) {
        let server =
            LegacyServer::telling().on("resources/subscribe", move |seen, reply: Reply| async move {
                answer(what, &seen, reply).await
            });
        let stage = Stage::of(server, Gets::open()).await;
        let start = Instant::now();
        let listener = stage.listens("1", SOME).await;
        assert!(start.elapsed() < Duration::from_secs(1), "{what}: {:?}", start.elapsed());
        let promised = match yes.contains(&what) {
            true => json!({"toolsListChanged": true, "resourceSubscriptions": [A]}),
            false => json!({"toolsListChanged": true}),
        };
        assert_eq!(listener.promised().await, promised, "{what}");
        assert_eq!(stage.asked("resources/subscribe"), [A], "{what}: asked once");
        stage.proxy.send(&call("echo", "{}")).await.result();
        assert_eq!(stage.up.posts("initialize").len(), 1, "{what}");
        stage.gets.tell(TOOLS);
        listener.wait(2).await;
        listener.close();
        stage.nothing_is_left().await;
    }
}

/// What was refused to one is asked for again when another wants it.
#[tokio::test(start_paused = true)]
async fn b9_1_a_refusal_holds_for_one_listener() {
    let base = LegacyServer::telling();
    let counts = base.clone();
    let server = base.on("resources/subscribe", move |seen, reply: Reply| {
        let first = counts.count("subscribe") == 0;
        async move {
            if first {
                return reply.error(200, &seen, r#"{"code":-32002,"message":"not yet"}"#).await;
            }
            reply.result(&seen, "{}").await;
        }
    });
    let stage = Stage::of(server, Gets::open()).await;
    let one = stage.listens("1", SOME).await;
    let two = stage.listens("2", SOME).await;
    assert_eq!(one.promised().await, json!({"toolsListChanged": true}));
    assert_eq!(two.promised().await["resourceSubscriptions"], json!([A]));
    stage.gets.tell(&updated(A));
    two.wait(2).await;
    pass(1000).await;
    assert_eq!(one.changes(), Vec::<String>::new());
    // The one that was refused gives nothing back.
    one.close();
    pass(1000).await;
    assert_eq!(stage.asked("resources/unsubscribe"), Vec::<String>::new());
    two.close();
    stage.nothing_is_left().await;
    assert_eq!(stage.asked("resources/unsubscribe"), [A]);
}

/// Whatever a server says to `unsubscribe`, it is done with, and another may subscribe.
#[tokio::test(start_paused = true)]
async fn b9_2_every_answer_to_giving_it_up() {
    for what in ["json", "stream", "error", "unknown method", "202", "html", "cut", "404", "500"] {
        let server = LegacyServer::telling()
            .on("resources/unsubscribe", move |seen, reply: Reply| async move {
                answer(what, &seen, reply).await
            });
        let stage = Stage::of(server, Gets::open()).await;
        let stays = stage.listens("1", TOOLS_ONLY).await;
        for n in 1..=2 {
            let listener = stage.listens("2", &uris(&[A])).await;
            assert_eq!(listener.promised().await, json!({"resourceSubscriptions": [A]}), "{what}");
            listener.close();
            pass(1000).await;
            assert_eq!(stage.asked("resources/subscribe").len(), n, "{what}");
            assert_eq!(stage.asked("resources/unsubscribe").len(), n, "{what}");
        }
        assert_eq!(stays.changes(), Vec::<String>::new(), "{what}");
        assert_eq!((stage.up.posts("initialize").len(), stage.gets.all().len()), (1, 1), "{what}");
        stays.close();
        stage.nothing_is_left().await;
    }
}

/// A stream whose head comes late is promised before, and is as good as any from then on.
#[tokio::test(start_paused = true)]
async fn c08_a_stream_whose_head_comes_late() {
    let stage = Stage::of(LegacyServer::telling(), Gets::script(|_| Begin::Late(5000))).await;
    let start = Instant::now();
    let listener = stage.listens("1", SOME).await;
    assert!(start.elapsed() <= Duration::from_millis(600));
    assert_eq!(listener.promised().await["toolsListChanged"], true);
    pass(10_000).await;
    stage.gets.tell(TOOLS);
    pass(1000).await;
    assert_eq!(listener.changes(), ["tools"], "and nothing besides");
    assert_eq!(stage.gets.all().len(), 1);
}

/// The settings `timeouts.stream`, `timeouts.reconnect` and `timeouts.reconnect_max`.
#[tokio::test(start_paused = true)]
async fn a13_5_the_waits_are_settings() {
    let lines = "[upstream.up.timeouts]\nstream = \"3s\"\nreconnect = \"200ms\"\nreconnect_max = \"500ms\"\n";
    let gets = Gets::script(|n| if n == 0 { Begin::Hang } else { Begin::Cut });
    let stage = Stage::with(LegacyServer::telling(), gets, lines).await;
    let start = Instant::now();
    let listener = Listener::open(&stage.proxy, &listen("1", SOME)).await;
    listener.wait(1).await;
    let took = listener.at(0) - start;
    assert!(took >= Duration::from_secs(3) && took <= Duration::from_millis(3100), "{took:?}");
    let stage = Stage::with(LegacyServer::telling(), Gets::script(|_| Begin::Cut), lines).await;
    let _listener = stage.listens("1", SOME).await;
    let all: Vec<_> = {
        stage.gets.wait(8).await;
        stage.gets.all().iter().map(|get| get.at).collect()
    };
    for (n, two) in all.windows(2).enumerate() {
        let pause = two[1] - two[0];
        let base = Duration::from_millis(500.min(200 << n.min(2)));
        assert!(pause >= base && pause <= base.mul_f64(1.26), "pause {n}: {pause:?}");
    }
}
