//! The two places of clients of HTTP+SSE: what is served there, and what is refused.

use crate::client::{Client, PATH, bounded, call, initialize, proxy, request};
use crate::support::{Ask, Done, Gets, LegacyServer, Net, OldSse, Proxy, Reply, pass};

fn get(path: &str) -> Ask {
    let mut ask =
        Ask::verb("GET").path(path).header("Accept", "text/event-stream").without("MCP-Protocol-Version");
    ask.legacy = true;
    ask
}

fn post(path: &str, body: &str) -> Ask {
    Ask::old("").path(path).raw_body(body.as_bytes())
}

/// Status, JSON-RPC code and whole text of an answer, however it is checked otherwise.
async fn sent(proxy: &Proxy, ask: &Ask) -> (u16, i64, String) {
    let mut answer = proxy.open(ask).await;
    let (body, _) = answer.pieces().await;
    let message: crate::support::Value = serde_json::from_slice(&body).unwrap_or_default();
    (answer.status, message["error"]["code"].as_i64().unwrap_or_default(), String::from_utf8(body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn they_are_not_there_unless_they_are_configured() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    for ask in [get(PATH), post("/messages?session_id=x", &call("1", "echo", "{}"))] {
        assert_eq!(sent(&proxy, &ask).await.0, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_event_says_where_messages_go() {
    for (path, messages) in
        [("/sse", "/messages"), ("/a/b/sse", "/a/b/messages"), ("/mcp/sse", "/mcp/messages")]
    {
        let net = Net::new();
        LegacyServer::new().start(&net);
        let toml = format!("[upstream.up]\nurl = \"http://up.test/mcp\"\nsse_path = \"{path}\"");
        let proxy = std::sync::Arc::new(Proxy::configured(&net, &toml).await);
        let (one, two) = (OldSse::open(&proxy, path).await, OldSse::open(&proxy, &format!("{path}/")).await);
        let name = |old: &OldSse| {
            let name =
                old.endpoint.strip_prefix(&format!("{messages}?session_id=")).expect("a place").to_owned();
            assert!(
                name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "128 bits: {name}"
            );
            name
        };
        assert_ne!(name(&one), name(&two));
        let answer = proxy.open(&get(path)).await;
        assert_eq!(answer.headers.get("cache-control").as_deref(), Some("no-cache, no-store, no-transform"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_accepted_and_answered_on_the_stream() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = proxy(&net, "").await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    assert_eq!(client.post(&call("1", "echo", "{}")).await, (202, "Accepted".to_owned()));
    assert_eq!(client.ear.answer("1").await.message["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn other_verbs_are_refused_with_the_one_that_is_served() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = proxy(&net, "").await;
    let old = OldSse::open(&proxy, PATH).await;
    let bare = |verb: &str, path: &str| {
        let mut ask = Ask::verb(verb).path(path);
        ask.legacy = true;
        ask
    };
    let table = [
        (post(PATH, &initialize("2025-06-18")), "GET"),
        (bare("DELETE", PATH), "GET"),
        (get(&old.endpoint), "POST"),
        (bare("DELETE", &old.endpoint), "POST"),
    ];
    for (ask, allowed) in table {
        let answer = proxy.open(&ask).await;
        let allow = answer.headers.get("allow");
        assert_eq!((answer.status, allow.as_deref()), (405, Some(allowed)), "{} {}", ask.verb, ask.path);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_opened_for_those_who_take_one() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = proxy(&net, "").await;
    for (accept, status) in
        [("text/event-stream", 200), ("*/*", 200), ("text/*", 200), ("application/json", 406)]
    {
        let ask = get(PATH).without("Accept").header("Accept", accept);
        assert_eq!(proxy.open(&ask).await.status, status, "{accept}");
    }
    assert_eq!(proxy.open(&get(PATH).without("Accept")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_session_is_not_found() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let toml = "[upstream.a]\nurl = \"http://up.test/mcp\"\nsse_path = \"/a/sse\"\n\
                [upstream.b]\nurl = \"http://up.test/mcp\"\nsse_path = \"/b/sse\"";
    let proxy = std::sync::Arc::new(Proxy::configured(&net, toml).await);
    let old = OldSse::open(&proxy, "/a/sse").await;
    let name = old.endpoint.split('=').nth(1).unwrap().to_owned();
    for path in [
        "/a/messages".to_owned(),
        "/a/messages?session_id=".to_owned(),
        "/a/messages?session_id=0123456789abcdef0123456789abcdef".to_owned(),
        format!("/a/messages?session={name}"),
        format!("/a/messages?session_id={name}&session_id={name}"),
        format!("/b/messages?session_id={name}"),
    ] {
        let (status, code, text) = sent(&proxy, &post(&path, &call("\"x\"", "echo", "{}"))).await;
        assert_eq!((status, code), (404, -32600), "{path}: {text}");
        assert!(text.contains("\"id\":\"x\""), "{path}: under its id: {text}");
    }
    assert_eq!(old.post(&initialize("2024-11-05")).await.0, 202);
}

#[tokio::test(start_paused = true)]
async fn nobody_else_may_speak_in_a_session() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = proxy(&net, "").await;
    let mine = Client::begin_as(&proxy, "2024-11-05", Some("mine")).await;
    let none = Client::begin(&proxy, "2024-11-05").await;
    let before = up.requests().len();
    let body = call("1", "echo", "{}");
    for ask in [
        post(&mine.endpoint, &body).bearer("theirs"),
        post(&mine.endpoint, &body),
        post(&none.endpoint, &body).bearer("theirs"),
    ] {
        let (status, code, text) = sent(&proxy, &ask).await;
        assert_eq!((status, code), (403, -32600), "{text}");
    }
    assert_eq!(up.requests().len(), before, "nothing has gone anywhere");
    mine.result(&body).await;
    assert_eq!(up.posts("tools/call")[0].header("authorization").as_deref(), Some("Bearer mine"));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_message_is_refused() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = bounded(&net, "[limits]\nbody_bytes = 2000\nnesting = 20", "").await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    let before = up.requests().len();
    let place = &client.endpoint;
    let long = call("7", "echo", &format!(r#"{{"x":"{}"}}"#, "x".repeat(3000)));
    let deep = call("7", "echo", &format!(r#"{{"x":{}1{}}}"#, "[".repeat(30), "]".repeat(30)));
    let table = [
        (post(place, "{\"jsonrpc\":"), 400, -32700),
        (post(place, ""), 400, -32700),
        (post(place, "<html>"), 400, -32700),
        (post(place, "null"), 400, -32600),
        (post(place, "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}"), 400, -32600),
        (post(place, "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}"), 400, -32600),
        (post(place, &deep), 400, -32600),
        (post(place, &long), 413, -32600),
        (post(place, &call("7", "echo", "{}")).without("Content-Type"), 415, -32600),
        (post(place, "x").without("Content-Type").header("Content-Type", "text/plain"), 415, -32600),
        (post(place, &call("7", "echo", "{}")).header("Content-Encoding", "gzip"), 415, -32600),
    ];
    for (ask, status, code) in table {
        let (got, told, text) = sent(&proxy, &ask).await;
        assert_eq!((got, told), (status, code), "{text} to {}", String::from_utf8_lossy(&ask.body()));
    }
    assert_eq!(up.requests().len(), before, "nothing has gone anywhere");
    client.result(&call("8", "echo", "{}")).await;
}

#[tokio::test(start_paused = true)]
async fn pages_of_elsewhere_get_nothing() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = proxy(&net, "").await;
    let old = OldSse::open(&proxy, PATH).await;
    for ask in [get(PATH), post(&old.endpoint, &call("1", "echo", "{}"))] {
        assert_eq!(sent(&proxy, &ask.clone().header("Origin", "https://evil.example")).await.0, 403);
        let elsewhere = ask.without("Host").header("Host", "evil.example");
        assert!((400..500).contains(&sent(&proxy, &elsewhere).await.0));
    }
}

#[tokio::test(start_paused = true)]
async fn streams_are_bounded() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = bounded(&net, "[limits]\nstreams = 2", "").await;
    let one = OldSse::open(&proxy, PATH).await;
    let two = OldSse::open(&proxy, PATH).await;
    let mut answer = proxy.open(&get(PATH)).await;
    let (body, _) = answer.pieces().await;
    assert_eq!((answer.status, answer.headers.get("retry-after").as_deref()), (503, Some("1")));
    assert!(String::from_utf8_lossy(&body).contains("streams"));
    let metrics = proxy.metrics();
    let hits = metrics.lines().find(|line| line.contains("limit_hits") && line.contains("limits.streams"));
    assert!(hits.is_some_and(|line| line.ends_with(" 1")), "{hits:?}");
    one.close();
    pass(3000).await;
    drop(OldSse::open(&proxy, PATH).await);
    drop(two);
}

/// A client's session has no stream of its own for the client's place to be counted twice.
#[tokio::test(start_paused = true)]
async fn a_client_takes_one_place_of_a_stream() {
    let (net, gets) = (Net::new(), Gets::open());
    gets.of(LegacyServer::telling()).start(&net);
    let proxy = bounded(&net, "[limits]\nstreams = 1", "").await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    gets.wait(1).await.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    client.ear.first("a change", |said| said.message["method"] == "notifications/tools/list_changed").await;
}

/// What waits behind a notification counts among the requests in work, whoever's it is; it goes on, each in its turn.
#[tokio::test(start_paused = true)]
async fn messages_that_wait_are_bounded_for_all_clients() {
    let net = Net::new();
    let never = |_seen, reply: Reply| async move { reply.never().await };
    let up = LegacyServer::new().on("notifications/roots/list_changed", never).start(&net);
    let proxy = bounded(&net, "[limits]\nrequests = 3", "").await;
    let client = Client::begin(&proxy, "2024-11-05").await;
    let other = Client::begin(&proxy, "2024-11-05").await;
    other.result(&request("0", "ping", "")).await;
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    client.say(changed).await;
    up.wait("notifications/roots/list_changed", 1).await;
    for id in ["1", "2"] {
        assert_eq!(client.post(&call(id, "echo", "{}")).await.0, 202);
    }
    assert_eq!(client.post(&call("3", "echo", "{}")).await.0, 503);
    assert_eq!(other.post(&call("3", "echo", "{}")).await.0, 503);
    assert_eq!(
        client.post(r#"{"jsonrpc":"2.0","id":"q","result":{}}"#).await.0,
        202,
        "what is short has room"
    );
    assert!(up.posts("tools/call").is_empty());
    for id in ["1", "2"] {
        assert!(client.ear.answer(id).await.message["result"].is_object());
    }
    other.result(&call("4", "echo", "{}")).await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_alive() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = bounded(&net, "[timeouts]\nkeep_alive = \"10s\"", "").await;
    let mut answer = proxy.open(&get(PATH)).await;
    assert_eq!(answer.event().await.unwrap().kind, "endpoint");
    let since = tokio::time::Instant::now();
    for _ in 0..3 {
        answer.read_on().await.unwrap();
    }
    assert_eq!(answer.events.comments(), 3);
    assert_eq!(since.elapsed().as_secs(), 30);
}

/// As a client of both transports does it: POST of `initialize` first.
#[tokio::test(start_paused = true)]
async fn a_newer_client_falls_back() {
    let net = Net::new();
    LegacyServer::new().start(&net);
    let proxy = proxy(&net, "").await;
    let done: Done = proxy.send(&post(PATH, &initialize("2025-06-18"))).await;
    assert_eq!(done.status, 405, "{}", done.raw);
    let client = Client::begin(&proxy, "2025-06-18").await;
    client.result(&call("1", "echo", "{}")).await;
}
