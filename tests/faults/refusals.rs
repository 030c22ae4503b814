//! A11.3, A12.16, A12.17, B11: refusals that reach the client with the right status and all that belongs to them.

use crate::support::net::{Receiver, handler};
use crate::support::{Ask, LegacyServer, ModernServer, Net, Proxy, Reply, call, get_prompt, list, read};

#[tokio::test(start_paused = true)]
async fn a12_16_a_subscription_for_a_client_of_json_only() {
    let ask = || {
        let listen = Ask::new("subscriptions/listen").params(r#""notifications":{"toolsListChanged":true}"#);
        listen.header("Accept", "application/json")
    };
    let net = Net::new();
    for modern in [false, true] {
        let up = if modern { ModernServer::new().start(&net) } else { LegacyServer::new().start(&net) };
        let proxy = Proxy::start(&net).await;
        for id in ["7", r#""s1""#] {
            let done = proxy.send(&ask().id(id)).await;
            assert_eq!(done.status, 406, "{}", done.raw);
            done.code();
            assert_eq!(crate::support::rpc::id(done.raw.as_bytes()).as_deref(), Some(id), "{}", done.raw);
        }
        assert_eq!(up.posts("subscriptions/listen").len(), 0);
    }
}

const CHALLENGES: [&str; 2] = [r#"Bearer scope="x""#, r#"DPoP algs="ES256""#];

async fn challenges(reply: Reply) {
    let reply = reply.with("WWW-Authenticate", CHALLENGES[0]).with("WWW-Authenticate", CHALLENGES[1]);
    reply.body(401, "text/html", "<p>sign in</p>").await;
}

#[tokio::test(start_paused = true)]
async fn a12_17_two_challenges_of_a_legacy_server_both_reach_the_client() {
    for method in ["server/discover", "initialize", "notifications/initialized", "tools/call"] {
        let server = LegacyServer::new().on(method, |_, reply: Reply| challenges(reply));
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&call("echo", "{}").id("7")).await;
        assert_eq!(done.status, 401, "{method}: {}", done.raw);
        assert_eq!(done.headers.all("www-authenticate"), CHALLENGES, "{method}");
        assert!(up.posts("tools/call").len() <= 1, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a12_17_two_challenges_of_a_modern_server_both_reach_the_client() {
    let server = ModernServer::new().on("tools/call", |_, reply: Reply| challenges(reply));
    let (proxy, up) = Proxy::before_modern(&server).await;
    proxy.send(&list("tools/list")).await.result();
    let done = proxy.send(&call("echo", "{}").id("7")).await;
    assert_eq!(done.status, 401, "{}", done.raw);
    assert_eq!(done.headers.all("www-authenticate"), CHALLENGES);
    assert_eq!(up.posts("tools/call").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn c34_two_challenges_to_everything() {
    let net = Net::new();
    let up = net.serve("up.test", Receiver::Unchecked, handler(|_, reply: Reply| challenges(reply)));
    let proxy = Proxy::start(&net).await;
    let done = proxy.send(&list("tools/list")).await;
    assert_eq!(done.status, 401, "{}", done.raw);
    assert_eq!(done.headers.all("www-authenticate"), CHALLENGES);
    assert_eq!(up.briefs(), ["server/discover"]);
}

const MISSING: &str = r#"{"code":-32601,"message":"unknown tool","data":{"why":1}}"#;

#[tokio::test(start_paused = true)]
async fn b11_a_tools_32601_of_a_server_with_tools_stays_in_band() {
    let server = LegacyServer::new()
        .capabilities(r#"{"tools":{},"prompts":{},"resources":{}}"#)
        .error("tools/call", MISSING)
        .error("prompts/get", MISSING)
        .error("resources/read", MISSING);
    let (proxy, up) = Proxy::before(&server).await;
    for ask in [call("nope", "{}"), get_prompt("nope"), read("file:///nope")] {
        let done = proxy.send(&ask).await;
        done.is_error(200, -32601);
        assert_eq!(done.data()["why"], 1, "{}", ask.method);
    }
    assert_eq!(up.posts("initialize").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn b11_a_32601_of_a_server_without_the_capability_is_404() {
    let server = LegacyServer::new()
        .capabilities(r#"{"tools":{}}"#)
        .error("prompts/get", MISSING)
        .error("resources/read", MISSING)
        .error("resources/list", MISSING)
        .error("acme/none", MISSING);
    let (proxy, _up) = Proxy::before(&server).await;
    for ask in [get_prompt("p"), read("file:///x"), list("resources/list"), Ask::new("acme/none")] {
        let done = proxy.send(&ask).await;
        assert_eq!((done.status, done.code()), (404, -32601), "{}: {}", ask.method, done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn b11_tools_call_of_a_server_without_tools_is_404() {
    let server = LegacyServer::new().capabilities(r#"{"prompts":{}}"#).error("tools/call", MISSING);
    let (proxy, _up) = Proxy::before(&server).await;
    proxy.send(&call("echo", "{}").id("7")).await.is_error(404, -32601);
}
