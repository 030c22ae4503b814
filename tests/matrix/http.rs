//! What only Streamable HTTP on both sides can tell: status codes, headers, the ends of sessions and of streams.
//!
//! Owns the bodies of checks for every pair of eras over this transport. What holds over every transport is in `scenes`.

use crate::ERAS;
use crate::support::{
    self, Ask, Calls, Era, Gets, LegacyServer, Listener, ModernServer, Net, Old, Proxy, Reply, Round,
    Upstream, call, json, list, listen,
};

fn pairs() -> impl Iterator<Item = (Era, Era)> {
    ERAS.into_iter().flat_map(|client| ERAS.map(|server| (client, server)))
}

async fn start(server: Era) -> (Proxy, Upstream) {
    start_with(server, "").await
}

async fn start_with(server: Era, lines: &str) -> (Proxy, Upstream) {
    let net = Net::new();
    let up = match server {
        Era::Modern => ModernServer::new().start(&net),
        Era::Legacy(version) => LegacyServer::new().version(version).start(&net),
    };
    (Proxy::with(&net, lines).await, up)
}

/// The body: what any client may expect of any server.
async fn body(client: Era, server: Era, lines: &str) {
    match client {
        Era::Modern => modern_body(server).await,
        Era::Legacy(version) => legacy_body(version, server, lines).await,
    }
}

async fn legacy_body(client: &'static str, server: Era, lines: &str) {
    let context = format!("{client} to {server:?} {lines}");
    // A server of a later revision agrees on the client's.
    let agreed = match server {
        Era::Modern => Era::Modern,
        Era::Legacy(version) => Era::Legacy(version.min(client)),
    };
    let (proxy, up) = start_with(agreed, lines).await;
    let old = Old::open(&proxy, client).await;
    let tools = proxy.send(&old.ask("tools/list").id("2")).await;
    assert_eq!(tools.result()["tools"][0]["name"], "echo", "{context}");
    let called = proxy.send(&old.call("echo", r#"{"n":1e400}"#).id("\"3\"")).await;
    assert_eq!(called.result()["content"][0]["type"], "text", "{context}");
    assert!(up.only("tools/call").text().contains(r#""arguments":{"n":1e400}"#), "{context}");
    proxy.send(&old.ask("ping").id("4")).await.result();
    proxy.send(&old.ask("acme/unknown").id("5")).await.is_error(200, -32601);
    match server {
        Era::Modern => assert!(proxy.open(&old.get()).await.is_stream(), "{context}: the proxy's own"),
        Era::Legacy(_) => {
            assert_eq!(proxy.send(&old.get()).await.status, 405, "{context}: this server offers no stream");
        }
    }
    assert!((200..300).contains(&proxy.send(&old.delete()).await.status), "{context}");
    assert_eq!(proxy.send(&old.ask("tools/list")).await.status, 404, "{context}");
    assert_eq!(up.posts("initialize").len(), 1, "{context}");
}

async fn modern_body(server: Era) {
    let (proxy, up) = start(server).await;
    let discovered = proxy.send(&Ask::new("server/discover").id(r#""d""#)).await;
    assert!(discovered.result()["capabilities"].get("tools").is_some(), "{server:?}");
    let tools = proxy.send(&list("tools/list").id("2")).await;
    assert_eq!(tools.result()["tools"][0]["name"], "echo", "{server:?}");
    let called = proxy.send(&call("echo", r#"{"n":1e400}"#).id("3")).await;
    assert_eq!(called.result()["content"][0]["type"], "text", "{server:?}");
    assert!(up.only("tools/call").text().contains(r#""arguments":{"n":1e400}"#), "{server:?}");
    proxy.send(&Ask::new("acme/unknown").id("4")).await.is_error(404, -32601);
    proxy.send(&call("echo", "{}").without("Mcp-Name").id("5")).await.is_error(400, -32020);
}

const TOOLS: &str = "notifications/tools/list_changed";

/// A server that tells of a change of its tools to whoever listens, in its own era's way.
async fn telling(server: Era) -> Proxy {
    let net = Net::new();
    match server {
        Era::Modern => {
            let tell = |seen: std::sync::Arc<support::Seen>, mut reply: Reply| async move {
                let meta = json!({"io.modelcontextprotocol/subscriptionId": seen.json()["id"]});
                let promise = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
                let acknowledged = "notifications/subscriptions/acknowledged";
                reply.stream().await;
                for (method, params) in [(acknowledged, promise), (TOOLS, json!({"_meta": meta}))] {
                    reply
                        .event(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string())
                        .await;
                }
                reply.never().await;
            };
            ModernServer::full().on("subscriptions/listen", tell).start(&net);
        }
        Era::Legacy(version) => {
            let told = format!("data: {}\n\n", json!({"jsonrpc": "2.0", "method": TOOLS}));
            let gets = Gets::script(move |_| support::Begin::With(told.clone()));
            gets.of(LegacyServer::telling().version(version)).start(&net);
        }
    }
    Proxy::start(&net).await
}

/// The body for subscriptions: the promise, a change, and the graceful end; `Listener` checks the form of each.
async fn listening(server: Era) {
    let proxy = telling(server).await;
    let first = Listener::open(&proxy, &listen(r#""1""#, r#"{"toolsListChanged":true}"#)).await;
    let second = Listener::open(&proxy, &listen("1", r#"{"toolsListChanged":true}"#)).await;
    for listener in [&first, &second] {
        assert_eq!(listener.promised().await, json!({"toolsListChanged": true}), "{server:?}");
    }
    first.wait(2).await;
    assert_eq!(first.changes(), ["tools"], "{server:?}");
    proxy.drain();
    for listener in [first, second] {
        assert_eq!(listener.end().await, support::End::Clean, "{server:?}");
        let last = listener.messages().pop().unwrap();
        assert_eq!(last["result"]["resultType"], "complete", "{server:?}");
    }
}

/// The same for a legacy client, on the stream that it opens by GET.
async fn hearing(client: &'static str, server: Era) {
    let agreed = match server {
        Era::Modern => Era::Modern,
        Era::Legacy(version) => Era::Legacy(version.min(client)),
    };
    let proxy = telling(agreed).await;
    let old = Old::open(&proxy, client).await;
    let mut stream = proxy.open(&old.get()).await;
    let told = loop {
        let event = stream.event().await.expect("a change");
        // The stream may begin with an event that holds nothing.
        if !event.data.is_empty() {
            break event.data;
        }
    };
    let message = support::rpc::value(told.as_bytes()).unwrap();
    assert_eq!(message["method"], TOOLS, "{client} to {server:?}: {told}");
    assert!(!told.contains("io.modelcontextprotocol/"), "{client} to {server:?}: {told}");
    proxy.drain();
    assert_eq!(stream.event().await, None, "{client} to {server:?}");
}

#[tokio::test(start_paused = true)]
async fn every_pair_carries_subscriptions() {
    for (client, server) in pairs() {
        match client {
            Era::Modern => listening(server).await,
            Era::Legacy(version) => hearing(version, server).await,
        }
    }
}

const SAMPLE: &str = r#"{"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":1}}"#;
const SAMPLED: &str = r#"{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m"}"#;

/// The body for questions in the middle of a call, in the client's own era's way: the server runs the call once.
async fn asking(client: Era, server: Era, lines: &str) {
    match (client, server) {
        (Era::Modern, Era::Modern) => modern_asks_modern().await,
        (Era::Modern, Era::Legacy(version)) => legacy_asks_modern(version).await,
        (Era::Legacy(client), Era::Legacy(server)) => {
            legacy_asks_legacy(client, server.min(client), lines).await
        }
        (Era::Legacy(client), Era::Modern) => modern_asks_legacy(client).await,
    }
}

/// The call is sent again with the answer; to the client it is one.
async fn modern_asks_legacy(client: &'static str) {
    let (net, calls) = (Net::new(), Calls::new());
    let up = calls.of_modern(ModernServer::full()).start_bridged(&net);
    let proxy = Proxy::start(&net).await;
    let old = Old::open(&proxy, client).await;
    let mut stream = proxy.open(&old.call("ask", "{}").id("7")).await;
    let at = calls.wait(1).await;
    let params = support::rpc::params(SAMPLE.as_bytes()).unwrap();
    let entry = format!(r#"{{"method":"sampling/createMessage","params":{params}}}"#);
    at.asks(&[("k", &entry)], Some(r#""\u0041 state""#));
    let question = loop {
        let event = stream.event().await.expect("a question");
        if !event.data.is_empty() {
            break support::rpc::value(event.data.as_bytes()).unwrap();
        }
    };
    assert_eq!(question["method"], "sampling/createMessage", "{client}");
    let answered = proxy.send(&old.answer(&question["id"].to_string(), SAMPLED)).await;
    assert_eq!(answered.status, 202, "{client}: {}", answered.raw);
    let again = calls.wait(2).await;
    assert_eq!(again.params()["inputResponses"]["k"]["model"], "m", "{client}");
    assert!(again.seen.text().contains(r#""requestState":"\u0041 state""#), "{client}: to the byte");
    again.completes("done");
    let done = stream.done().await;
    assert_eq!(done.result()["content"][0]["text"], "done", "{client}");
    assert_eq!((done.message["id"].clone(), up.posts("tools/call").len()), (json!(7), 2), "{client}");
}

async fn modern_asks_modern() {
    let asked = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"\u0041 state","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    let server = ModernServer::new().on("tools/call", move |seen, reply: Reply| async move {
        let params = seen.json()["params"].clone();
        if params.get("requestState").is_none() {
            return reply.result(&seen, asked).await;
        }
        assert_eq!(params["requestState"], "A state");
        assert_eq!(params["inputResponses"], json!({"k": {"roots": []}}));
        reply.result(&seen, r#"{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#).await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    let ask = call("ask", "{}").caps(r#"{"roots":{}}"#);
    let first = proxy.send(&ask.clone().id("1")).await;
    assert!(first.raw.contains(asked), "to the byte: {}", first.raw);
    let state = r#""\u0041 state""#;
    let retry = ask.id("2").member("inputResponses", r#"{"k":{"roots":[]}}"#).member("requestState", state);
    proxy.send(&retry).await.result();
    assert!(up.posts("tools/call")[1].text().contains(state), "to the byte");
}

async fn legacy_asks_modern(version: &'static str) {
    let (net, calls) = (Net::new(), Calls::new());
    let up = calls.of(LegacyServer::new().version(version)).start(&net);
    let proxy = Proxy::start(&net).await;
    let ask = call("ask", "{}").caps(r#"{"sampling":{}}"#);
    let client = proxy.spawn(&ask);
    let at = calls.wait(1).await;
    at.event(SAMPLE);
    let round = Round::of(&ask, client.await.unwrap());
    let client = proxy.spawn(&round.answer("2", SAMPLED));
    let answer = up.wait("response", 1).await[0].json();
    assert_eq!((&answer["id"], &answer["result"]["model"]), (&json!("s-1"), &json!("m")), "{version}");
    at.finish("done");
    assert_eq!(client.await.unwrap().result()["resultType"], "complete", "{version}");
    assert_eq!(up.posts("tools/call").len(), 1, "{version}");
}

async fn legacy_asks_legacy(client: &'static str, server: &'static str, lines: &str) {
    let (net, calls) = (Net::new(), Calls::new());
    let up = calls.of(LegacyServer::new().version(server)).start(&net);
    let proxy = Proxy::with(&net, lines).await;
    let old = Old::open(&proxy, client).await;
    let asking = proxy.spawn(&old.call("ask", "{}").id("7"));
    let at = calls.wait(1).await;
    at.event(SAMPLE);
    let answered = proxy.send(&old.answer(r#""s-1""#, SAMPLED)).await;
    assert_eq!(answered.status, 202, "{client} to {server} {lines}: {}", answered.raw);
    let answer = up.wait("response", 1).await[0].json();
    assert_eq!(answer["result"]["model"], "m", "{client} to {server} {lines}");
    at.finish("done");
    let done = asking.await.unwrap();
    assert_eq!(done.before[0]["method"], "sampling/createMessage", "{client} to {server} {lines}");
    assert_eq!(done.result()["content"][0]["text"], "done", "{client} to {server} {lines}");
}

#[tokio::test(start_paused = true)]
async fn every_pair_carries_questions() {
    for (client, server) in pairs() {
        for lines in ["", "session = { shield = true }"] {
            asking(client, server, lines).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_pair() {
    for (client, server) in pairs() {
        for lines in ["", "session = { shield = true }"] {
            body(client, server, lines).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d83_every_legacy_client_of_a_modern_server_may_be_told_the_version() {
    for (client, server) in pairs() {
        let (Era::Legacy(version), Era::Modern) = (client, server) else {
            continue;
        };
        let (proxy, up) = start_with(server, "legacy_clients = false").await;
        let initialize = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"a","version":"1"}}}}}}"#
        );
        let ask = Ask::new("initialize")
            .raw_body(initialize.as_bytes())
            .without("MCP-Protocol-Version")
            .without("Mcp-Method");
        let done = proxy.send(&ask).await;
        done.is_error(400, -32022);
        assert_eq!(done.data()["requested"], version);
        // The proxy's question, and whether the server serves such clients itself.
        assert_eq!(up.briefs(), ["server/discover", "initialize"], "{client:?} {server:?}");
    }
}
