//! D95, C48, B9.1: what is promised, and that the promise comes first; filters that cannot be read.

use std::time::Duration;

use tokio::time::Instant;

use crate::stage::{A, PROMPTS, RESOURCES, SOME, Stage, TOOLS, updated, uris};
use crate::support::{Ask, Begin, Gets, LegacyServer, Listener, Reply, call, json, list, listen, pass};

const ALL: &str = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///a"]}"#;

fn events(messages: &[&str]) -> String {
    messages.iter().map(|message| format!("data: {message}\n\n")).collect()
}

#[tokio::test(start_paused = true)]
async fn d95_the_acknowledgement_comes_first_and_names_what_was_taken() {
    for (id, on_get) in [("7", true), ("7", false), (r#""7""#, true), (r#""7""#, false)] {
        let gets = Gets::open();
        let streams = gets.clone();
        let server = LegacyServer::telling().on("resources/subscribe", move |seen, mut reply: Reply| {
            let streams = streams.clone();
            async move {
                if seen.text().contains("file:///v") {
                    return reply.error(200, &seen, r#"{"code":-32602,"message":"no such resource"}"#).await;
                }
                if on_get {
                    streams.wait(1).await.event(&updated("file:///u"));
                    pass(100).await;
                    return reply.result(&seen, "{}").await;
                }
                reply.stream().await;
                reply.event(&updated("file:///u")).await;
                pass(100).await;
                reply.result_event(&seen, "{}").await;
                reply.end().await;
            }
        });
        let stage = Stage::of(server, gets).await;
        let filter = r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///u","file:///v"]}"#;
        let listener = stage.listens(id, filter).await;
        let promised = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///u"]});
        assert_eq!(listener.promised().await, promised, "on the GET stream: {on_get}");
        pass(1000).await;
        assert_eq!(listener.changes(), ["file:///u"], "on the GET stream: {on_get}");
        stage.gets.tell(&updated("file:///v"));
        pass(1000).await;
        assert_eq!(listener.changes(), ["file:///u"], "v was not promised");
        listener.close();
        stage.nothing_is_left().await;
        assert_eq!(stage.asked("resources/unsubscribe"), ["file:///u"], "what was refused is not given back");
    }
}

#[tokio::test(start_paused = true)]
async fn c48_a_server_without_subscribe() {
    let told = events(&[TOOLS, PROMPTS, &updated(A), &updated("file:///b")]);
    let gets = Gets::script(move |_| Begin::With(told.clone()));
    let server = LegacyServer::telling()
        .capabilities(r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{}}"#);
    let stage = Stage::of(server, gets).await;
    let first = stage.listens(r#""s1""#, SOME).await;
    let second = stage.listens(r#""s2""#, &uris(&[A])).await;
    pass(1000).await;
    assert_eq!(first.promised().await, json!({"toolsListChanged": true}));
    assert_eq!(second.promised().await, json!({}));
    assert_eq!((first.changes(), second.changes()), (vec!["tools".to_owned()], vec![]));
    assert_eq!(stage.asked("resources/subscribe"), Vec::<String>::new());
    assert_eq!(stage.gets.all().len(), 1, "one stream a session");
    assert!(!second.is_over(), "an empty promise stays open (B9.1)");
}

#[tokio::test(start_paused = true)]
async fn c48_subscribed_once_and_unsubscribed_with_the_last() {
    let stage = Stage::new().await;
    let first = stage.listens(r#""s1""#, SOME).await;
    let second = stage.listens(r#""s2""#, &uris(&[A, "file:///b"])).await;
    for message in [PROMPTS, RESOURCES, &updated("file:///b"), &updated(A), TOOLS] {
        stage.gets.tell(message);
    }
    pass(1000).await;
    assert_eq!(first.changes(), [A, "tools"]);
    assert_eq!(second.changes(), ["file:///b", A]);
    assert_eq!(stage.asked("resources/subscribe"), [A, "file:///b"]);
    first.close();
    pass(1000).await;
    assert_eq!(stage.asked("resources/unsubscribe"), Vec::<String>::new(), "somebody wants it");
    stage.gets.tell(&updated(A));
    pass(1000).await;
    assert_eq!(second.changes(), ["file:///b", A, A]);
    second.close();
    stage.nothing_is_left().await;
    let mut left = stage.asked("resources/unsubscribe");
    left.sort();
    assert_eq!(left, [A, "file:///b"]);
    assert_eq!(stage.asked("resources/subscribe").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn c48_removed_methods() {
    for warm in [false, true] {
        let stage = Stage::new().await;
        if warm {
            stage.proxy.send(&list("tools/list")).await.result();
        }
        let before = stage.up.requests().len();
        for (method, params) in [
            ("ping", ""),
            ("logging/setLevel", r#""level":"debug""#),
            ("resources/subscribe", r#""uri":"file:///a""#),
            ("resources/unsubscribe", r#""uri":"file:///a""#),
        ] {
            let done = stage.proxy.send(&Ask::new(method).id(r#""m""#).params(params)).await;
            done.is_error(404, -32601);
            assert_eq!(stage.up.posts(method).len(), 0, "{method}");
        }
        if warm {
            assert_eq!(stage.up.briefs()[before..], Vec::<String>::new()[..]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c48_what_is_not_declared_is_not_promised_and_not_asked_for() {
    for capabilities in [
        "{}",
        r#"{"tools":{},"prompts":{},"resources":{}}"#,
        r#"{"tools":{"listChanged":false},"prompts":{"listChanged":null},"resources":{"listChanged":false,"subscribe":false}}"#,
    ] {
        let stage = Stage::of(LegacyServer::telling().capabilities(capabilities), Gets::open()).await;
        let listener = stage.listens("1", ALL).await;
        assert_eq!(listener.promised().await, json!({}), "{capabilities}");
        pass(5000).await;
        assert_eq!(stage.gets.all().len(), 0, "{capabilities}");
        assert_eq!(stage.asked("resources/subscribe"), Vec::<String>::new());
        assert_eq!((stage.proxy.feeds(), listener.is_over()), (0, false), "{capabilities}");
    }
}

#[tokio::test(start_paused = true)]
async fn c48_each_capability_by_itself() {
    for (capabilities, promised) in [
        (r#"{"tools":{"listChanged":true}}"#, json!({"toolsListChanged": true})),
        (r#"{"prompts":{"listChanged":true}}"#, json!({"promptsListChanged": true})),
        (r#"{"resources":{"listChanged":true}}"#, json!({"resourcesListChanged": true})),
        (r#"{"resources":{"subscribe":true}}"#, json!({"resourceSubscriptions": [A]})),
    ] {
        let stage = Stage::of(LegacyServer::telling().capabilities(capabilities), Gets::open()).await;
        let listener = stage.listens("1", ALL).await;
        assert_eq!(listener.promised().await, promised);
        for message in [TOOLS, PROMPTS, RESOURCES, &updated(A)] {
            stage.gets.tell(message);
        }
        pass(1000).await;
        assert_eq!(listener.changes().len(), 1, "{capabilities}: {:?}", listener.changes());
    }
}

#[tokio::test(start_paused = true)]
async fn b9_1_filters_that_ask_for_nothing() {
    for filter in [
        "{}",
        r#"{"resourceSubscriptions":[]}"#,
        r#"{"toolsListChanged":false,"promptsListChanged":false}"#,
        r#"{"taskIds":["t"],"acme/x":{"y":[]}}"#,
    ] {
        let stage = Stage::new().await;
        let listener = stage.listens("1", filter).await;
        assert_eq!(listener.promised().await, json!({}), "{filter}");
        pass(5000).await;
        assert_eq!((stage.gets.all().len(), listener.is_over()), (0, false), "{filter}");
    }
    let stage = Stage::new().await;
    let filter =
        r#"{"taskIds":["t"],"toolsListChanged":true,"resourceSubscriptions":["file:///a","file:\/\/\/a"]}"#;
    let listener = stage.listens("1", filter).await;
    let promised = json!({"toolsListChanged": true, "resourceSubscriptions": [A]});
    assert_eq!(listener.promised().await, promised, "a URI once, however it is written");
    assert_eq!(stage.asked("resources/subscribe"), [A]);
}

#[tokio::test(start_paused = true)]
async fn c48_malformed_filters() {
    let many: Vec<String> = (0..257).map(|n| format!("\"file:///{n}\"")).collect();
    let bad = [
        r#""x":1"#.to_owned(),
        r#""notifications":null"#.to_owned(),
        r#""notifications":[]"#.to_owned(),
        r#""notifications":"tools""#.to_owned(),
        r#""notifications":{"toolsListChanged":1}"#.to_owned(),
        r#""notifications":{"promptsListChanged":"true"}"#.to_owned(),
        r#""notifications":{"resourcesListChanged":null}"#.to_owned(),
        r#""notifications":{"resourceSubscriptions":"file:///a"}"#.to_owned(),
        r#""notifications":{"resourceSubscriptions":{"0":"file:///a"}}"#.to_owned(),
        r#""notifications":{"resourceSubscriptions":[1]}"#.to_owned(),
        r#""notifications":{"resourceSubscriptions":["file:///a",null]}"#.to_owned(),
        r#""notifications":{"toolsListChanged":true,"toolsListChanged":true}"#.to_owned(),
        r#""notifications":{},"notifications":{"toolsListChanged":true}"#.to_owned(),
        format!(r#""notifications":{{"resourceSubscriptions":[{}]}}"#, many.join(",")),
    ];
    for warm in [false, true] {
        let stage = Stage::new().await;
        if warm {
            stage.proxy.send(&list("tools/list")).await.result();
        }
        let before = stage.up.after_probe().len();
        for params in &bad {
            let done = stage.proxy.send(&Ask::new("subscriptions/listen").id(r#""f""#).params(params)).await;
            let shown: String = params.chars().take(80).collect();
            assert_eq!(done.code(), -32602, "{shown}: {} {}", done.status, done.raw);
            assert_eq!(done.message["id"], "f", "{shown}");
            // The very first one finds out what the server is.
            let seen = stage.up.after_probe();
            let handshake = !warm && seen[before..] == ["initialize", "notifications/initialized"];
            assert!(handshake || seen.len() == before, "{shown}: {seen:?}");
        }
        pass(5000).await;
        assert_eq!(stage.proxy.feeds(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_as_many_resources_as_the_setting_says() {
    let stage =
        Stage::configured(LegacyServer::telling(), Gets::open(), "[limits]\nsubscriptions = 2", "").await;
    let three = listen("9", &uris(&[A, "file:///b", "file:///c"]));
    assert_eq!(stage.proxy.send(&three).await.code(), -32602);
    assert_eq!(stage.asked("resources/subscribe"), Vec::<String>::new());
    let listener = stage.listens("9", &uris(&[A, "file:///b"])).await;
    assert_eq!(listener.promised().await, json!({"resourceSubscriptions": [A, "file:///b"]}));
}

/// B9.1: the acknowledgement waits for the answers to the subscriptions, and calls do not wait for it.
#[tokio::test(start_paused = true)]
async fn b9_1_a_slow_subscription_holds_up_only_its_own_acknowledgement() {
    let server = LegacyServer::telling().on("resources/subscribe", |seen, reply: Reply| async move {
        if seen.text().contains("slow") {
            pass(5000).await;
        }
        reply.result(&seen, "{}").await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    let start = Instant::now();
    let slow = Listener::open(&stage.proxy, &listen("1", &uris(&["file:///slow"]))).await;
    let quick = stage.listens("2", &uris(&[A])).await;
    stage.proxy.send(&call("echo", "{}")).await.result();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(slow.messages().len(), 0);
    assert_eq!(slow.promised().await, json!({"resourceSubscriptions": ["file:///slow"]}));
    assert!(slow.at(0) - start >= Duration::from_secs(5));
    assert_eq!(quick.changes(), Vec::<String>::new());
}

/// Invariant 5: the wait for a server that does not answer `subscribe` has an end, also where there are many of them.
#[tokio::test(start_paused = true)]
async fn inv5_subscriptions_that_are_never_answered() {
    let server = LegacyServer::telling().on("resources/subscribe", |seen, reply: Reply| async move {
        if seen.text().contains("hangs") {
            return reply.never().await;
        }
        reply.result(&seen, "{}").await;
    });
    let stage = Stage::of(server, Gets::open()).await;
    let names: Vec<String> = (0..40).map(|n| format!("file:///hangs/{n}")).collect();
    let mut all: Vec<&str> = names.iter().map(String::as_str).collect();
    all.insert(0, A);
    let start = Instant::now();
    let listener = stage.listens("1", &uris(&all)).await;
    // The setting `timeouts.initialize`.
    assert!(start.elapsed() <= Duration::from_secs(31), "{:?}", start.elapsed());
    assert_eq!(listener.promised().await, json!({"resourceSubscriptions": [A]}));
    listener.close();
    pass(300_000).await;
    stage.nothing_is_left().await;
}

/// As many as one may ask for, and taken back to the last.
#[tokio::test(start_paused = true)]
async fn b9_2_as_many_resources_as_there_may_be() {
    let stage = Stage::new().await;
    let names: Vec<String> = (0..256).map(|n| format!("file:///{n}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let listener = stage.listens("1", &uris(&all)).await;
    assert_eq!(listener.promised().await, json!({"resourceSubscriptions": all}));
    listener.close();
    stage.nothing_is_left().await;
    let mut left = stage.asked("resources/unsubscribe");
    left.sort();
    let mut names = names.clone();
    names.sort();
    assert_eq!(left, names);
}

/// basic/patterns/subscriptions, "Acknowledgment": nothing that carries the subscription's id comes before it.
#[tokio::test(start_paused = true)]
async fn b9_6_a_drain_before_the_acknowledgement() {
    let server = LegacyServer::telling()
        .on("resources/subscribe", |_, reply: Reply| async move { reply.never().await });
    let stage = Stage::of(server, Gets::script(|_| Begin::Hang)).await;
    let listener = Listener::open(&stage.proxy, &listen("1", &uris(&[A]))).await;
    pass(1000).await;
    assert_eq!(listener.messages().len(), 0);
    stage.proxy.drain();
    listener.ended_gracefully().await;
    assert_eq!(listener.promised().await, json!({}));
}
