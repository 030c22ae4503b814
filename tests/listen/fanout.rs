//! D96-D98, B9.2, B9.4, A2.5, A2.6, A4.9: which change reaches whom, and how it is written.

use crate::stage::{A, PROMPTS, SOME, Stage, TOOLS, TOOLS_ONLY, updated, uris};
use crate::support::{Gets, LegacyServer, Listener, Reply, call, get_prompt, json, listen, pass, read};

#[tokio::test(start_paused = true)]
async fn d96_each_listener_gets_its_own_copy() {
    let stage = Stage::new().await;
    let ids = ["1", r#""1""#, r#""\u0041\"\\\/\u00e9\ud83d\ude00""#, "-9007199254740993", r#""""#];
    let mut listeners = Vec::new();
    for id in ids {
        listeners.push(stage.listens(id, SOME).await);
    }
    let without = stage.listens("2", r#"{"promptsListChanged":true,"toolsListChanged":false}"#).await;
    stage.gets.tell(TOOLS);
    stage.gets.tell(&updated(A));
    pass(1000).await;
    for (id, listener) in ids.iter().zip(&listeners) {
        // `changes` checks that each is tagged with the id in its own type.
        assert_eq!(listener.changes(), ["tools", A], "{id}");
    }
    assert_eq!(without.changes(), Vec::<String>::new());
    assert_eq!(stage.asked("resources/subscribe"), [A], "once for all");
    while let Some(listener) = listeners.pop() {
        assert_eq!(stage.asked("resources/unsubscribe"), Vec::<String>::new());
        listener.close();
        pass(1000).await;
    }
    assert_eq!(stage.asked("resources/unsubscribe"), [A]);
    assert_eq!(stage.gets.now(), 1, "one listener is left");
    without.close();
    stage.nothing_is_left().await;
}

#[tokio::test(start_paused = true)]
async fn d96_from_cold_all_at_once() {
    let stage = Stage::new().await;
    let ids: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let opening = ids.iter().map(|id| stage.listens(id, SOME));
    let listeners = futures_util::future::join_all(opening).await;
    stage.gets.tell(&updated(A));
    pass(1000).await;
    for listener in &listeners {
        assert_eq!(listener.changes(), [A]);
    }
    assert_eq!(stage.up.posts("initialize").len(), 1);
    assert_eq!(stage.gets.all().len(), 1, "one GET");
    assert_eq!(stage.asked("resources/subscribe"), [A]);
    assert_eq!(stage.proxy.feeds(), 1);
    drop(listeners);
    stage.nothing_is_left().await;
    assert_eq!(stage.asked("resources/unsubscribe"), [A]);
}

#[tokio::test(start_paused = true)]
async fn d97_a_list_change_on_a_calls_stream_moves_to_the_listeners() {
    let told = |method: &'static str, result: &'static str| {
        move |server: LegacyServer| {
            server.on(method, move |seen, mut reply: Reply| async move {
                reply.stream().await;
                reply.event(TOOLS).await;
                reply.event(&updated(A)).await;
                reply.event(PROMPTS).await;
                reply.result_event(&seen, result).await;
                reply.end().await;
            })
        }
    };
    let server = told("tools/call", r#"{"content":[]}"#)(LegacyServer::telling());
    let server = told("prompts/get", r#"{"messages":[]}"#)(server);
    let server = told("resources/read", r#"{"contents":[]}"#)(server);
    for with_stream in [true, false] {
        let gets =
            if with_stream { Gets::open() } else { Gets::script(|_| crate::support::Begin::Empty(405)) };
        let stage = Stage::of(server.clone(), gets).await;
        let listener = stage.listens(r#""l""#, SOME).await;
        for ask in [call("echo", "{}"), get_prompt("p"), read("file:///x")] {
            let done = stage.proxy.send(&ask.meta("progressToken", "1").id("5")).await;
            done.result();
            assert_eq!(done.before, Vec::<crate::support::Value>::new(), "never in the call");
        }
        pass(1000).await;
        let wanted = if with_stream { vec!["tools", A, "tools", A, "tools", A] } else { vec![] };
        assert_eq!(listener.changes(), wanted);
    }
    // Nobody listens: dropped, and the call is none the worse.
    let stage = Stage::of(server, Gets::open()).await;
    assert!(stage.proxy.send(&call("echo", "{}")).await.before.is_empty());
}

#[tokio::test(start_paused = true)]
async fn d98_sub_resources() {
    let stage = Stage::new().await;
    let plain = stage.listens("1", &uris(&["file:///d"])).await;
    let slash = stage.listens("2", &uris(&["file:///d/"])).await;
    let both = stage.listens("3", &uris(&["file:///d", "file:///d/a"])).await;
    let told =
        ["file:///d", "file:///d/", "file:///d/a", "file:///d/a/b", "file:///dx", "file:///", "FILE:///d"];
    for uri in told {
        stage.gets.tell(&updated(uri));
    }
    pass(1000).await;
    assert_eq!(plain.changes(), ["file:///d", "file:///d/", "file:///d/a", "file:///d/a/b"]);
    assert_eq!(slash.changes(), ["file:///d/", "file:///d/a", "file:///d/a/b"]);
    assert_eq!(both.changes(), plain.changes(), "one copy, though two of its URIs cover it");
}

/// A4.9, A4.8: the tag is the listener's, what a server says beside it is kept, and no reserved key of its own passes.
#[tokio::test(start_paused = true)]
async fn a4_9_the_servers_own_members() {
    let stage = Stage::new().await;
    let listener = stage.listens(r#""l""#, SOME).await;
    let sub = "io.modelcontextprotocol/subscriptionId";
    let told = [
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"{sub}":99,"acme/x":1e400}}}}}}"#),
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}"#.to_owned(),
        r#"{"method":"notifications/tools/list_changed","jsonrpc":"2.0"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"title":"t","uri":"file:\/\/\/\u0061","_meta":{}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#.to_owned(),
    ];
    for message in &told {
        stage.gets.tell(message);
    }
    let messages = listener.wait(1 + told.len()).await;
    assert_eq!(messages[1]["params"]["_meta"]["acme/x"], json!(1e40), "the test reads 1e400 so");
    assert_eq!(messages[5]["params"]["title"], "t");
    assert_eq!(listener.changes()[4], A);
}

/// A2.6: what names no resource, or not as text, tells nothing.
#[tokio::test(start_paused = true)]
async fn a2_6_updates_without_a_resource() {
    let stage = Stage::new().await;
    let listener = stage.listens("1", SOME).await;
    for params in
        ["{}", r#"{"uri":1}"#, r#"{"uri":null}"#, r#"{"uri":["file:///a"]}"#, r#"{"URI":"file:///a"}"#]
    {
        stage.gets.tell(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{params}}}"#
        ));
    }
    stage.gets.tell(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated"}"#);
    stage.gets.tell(r#"{"jsonrpc":"2.0","id":5,"method":"notifications/tools/list_changed"}"#);
    stage.gets.tell(r#"{"jsonrpc":"2.0","method":"notifications/acme","params":{"uri":"file:///a"}}"#);
    stage.gets.tell(TOOLS);
    listener.wait(2).await;
    pass(1000).await;
    assert_eq!(listener.changes(), ["tools"]);
}

/// B9.2: what one wants late is asked for once, and those who were there hear nothing of it.
#[tokio::test(start_paused = true)]
async fn b9_2_who_comes_and_goes_changes_nothing_for_the_others() {
    let stage = Stage::new().await;
    let stays = stage.listens("1", TOOLS_ONLY).await;
    for round in 1..=3 {
        let guest = stage.listens("2", &uris(&[A])).await;
        stage.gets.tell(&updated(A));
        guest.wait(2).await;
        guest.close();
        pass(1000).await;
        assert_eq!(stage.asked("resources/subscribe").len(), round);
        assert_eq!(stage.asked("resources/unsubscribe").len(), round);
    }
    assert_eq!(stays.changes(), Vec::<String>::new());
    assert_eq!(stage.gets.all().len(), 1);
}

/// C16: a quiet subscription is kept open, and no intermediary is to hold anything back.
#[tokio::test(start_paused = true)]
async fn c16_a_quiet_subscription() {
    let stage = Stage::new().await;
    for filter in [TOOLS_ONLY, "{}"] {
        let listener = Listener::open(&stage.proxy, &listen("1", filter)).await;
        listener.wait(1).await;
        assert_eq!(listener.headers.get("x-accel-buffering").as_deref(), Some("no"));
        let control = listener.headers.get("cache-control").expect("Cache-Control");
        assert!(control.contains("no-cache") && control.contains("no-store"), "{control}");
        assert_eq!(listener.headers.media_type().as_deref(), Some("text/event-stream"));
        assert!(!listener.headers.has("content-encoding"));
        pass(300_000).await;
        assert!((10..=40).contains(&listener.comments()), "{} comments in 5 min", listener.comments());
        assert!(!listener.is_over());
        assert_eq!(listener.messages().len(), 1);
    }
}
