//! D77, D78, A13.3, C67: the headers that a modern HTTP server wants and a host on a channel cannot send.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::stage::{Host, echo, is_error, modern, text};
use super::support::{Ask, Calls, ModernServer, Proxy, Reply, Seen, Upstream, call};

const TOOLS: &str = r#"{"name":"t","inputSchema":{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "n":{"type":"integer","x-mcp-header":"N"},
    "deep":{"type":"object","properties":{"x":{"type":"boolean","x-mcp-header":"Deep"}}},
    "plain":{"type":"string"}}}},
    {"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A B"}}}}"#;

fn ask(id: &str, name: &str, arguments: &str) -> String {
    modern(id, "tools/call", &format!(r#""name":"{name}","arguments":{arguments}"#))
}

fn params(seen: &Seen) -> Vec<(String, String)> {
    let own = |name: &str| Some(name.to_ascii_lowercase().strip_prefix("mcp-param-")?.to_owned());
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let mut all: Vec<_> =
        seen.headers.0.iter().filter_map(|(name, value)| Some((own(name)?, text(value)))).collect();
    all.sort();
    all
}

async fn last(up: &Upstream) -> Vec<(String, String)> {
    params(up.posts("tools/call").last().unwrap())
}

#[tokio::test(start_paused = true)]
async fn d78_the_headers_are_made_of_the_arguments() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::new().tools(TOOLS)).await;
    let mut host = Host::launch(&proxy);
    let table: [(&str, &[(&str, &str)]); 5] = [
        (r#"{"region":"us-west1","n":42,"plain":"x"}"#, &[("n", "42"), ("region", "us-west1")]),
        (
            r#"{"region":"Hello, 世界","deep":{"x":true}}"#,
            &[("deep", "true"), ("region", "=?base64?SGVsbG8sIOS4lueVjA==?=")],
        ),
        (r#"{"region":"a\r\nEvil: 1"}"#, &[("region", "=?base64?YQ0KRXZpbDogMQ==?=")]),
        (r#"{"region":null}"#, &[]),
        ("{}", &[]),
    ];
    for (arguments, expected) in table {
        host.say(&ask("1", "t", arguments)).await;
        text(&host.answer("1").await);
        let found = last(&up).await;
        let found: Vec<_> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, expected, "{arguments}");
    }
    assert_eq!(up.posts("tools/list").len(), 1, "read once, as nobody had asked for it");
    // C67: an invalid annotation makes no header, and the tool is not called.
    host.say(&ask("2", "bad", r#"{"a":"x"}"#)).await;
    assert_eq!(host.answer("2").await["error"]["code"], -32602);
    assert_eq!(up.posts("tools/call").len(), 5);
    // What the host sent is what the server got.
    assert!(up.posts("tools/call")[0].text().contains(r#"{"region":"us-west1","n":42,"plain":"x"}"#));
}

/// A list that the host has asked for is not read a second time.
#[tokio::test(start_paused = true)]
async fn a_list_that_passes_by_is_learned_from() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::new().tools(TOOLS)).await;
    let mut host = Host::launch(&proxy);
    host.say(&modern("1", "tools/list", "")).await;
    let listed = host.answer("1").await;
    assert_eq!(
        listed["result"]["tools"][0]["inputSchema"]["properties"]["n"]["x-mcp-header"], "N",
        "as it was"
    );
    host.say(&ask("2", "t", r#"{"n":1}"#)).await;
    text(&host.answer("2").await);
    assert_eq!(last(&up).await, [("n".to_owned(), "1".to_owned())]);
    assert_eq!(up.posts("tools/list").len(), 1);
}

/// A client over HTTP says what it says.
#[tokio::test(start_paused = true)]
async fn over_http_nothing_is_added() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::new().tools(TOOLS)).await;
    proxy.send(&Ask::new("tools/list")).await.result();
    proxy.send(&call("t", r#"{"n":1}"#)).await.result();
    assert!(last(&up).await.is_empty());
    proxy.send(&call("t", r#"{"n":1}"#).header("Mcp-Param-N", "2")).await.result();
    assert_eq!(last(&up).await, [("n".to_owned(), "2".to_owned())]);
    assert_eq!(up.posts("tools/list").len(), 1);
}

/// D77: a server that does not agree is asked for its list, and gets the call once more; a second time it is an error.
#[tokio::test(start_paused = true)]
async fn d77_a_list_that_is_not_what_it_was() {
    const MISMATCH: &str = r#"{"code":-32020,"message":"Header mismatch"}"#;
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let list = |seen: std::sync::Arc<Seen>, reply: Reply| async move {
        let tools = match TURN.load(Ordering::SeqCst) {
            0 => r#"{"name":"t","inputSchema":{"type":"object"}}"#,
            _ => {
                r#"{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"New"}}}}"#
            }
        };
        reply
            .result(&seen, &super::support::modern::complete("tools/list", &format!(r#""tools":[{tools}]"#)))
            .await;
    };
    let run = |seen: std::sync::Arc<Seen>, reply: Reply| async move {
        match (TURN.load(Ordering::SeqCst), seen.header("mcp-param-new")) {
            (0, None) | (1, Some(_)) => {
                let content = r#""content":[{"type":"text","text":"ok"}]"#;
                reply.result(&seen, &super::support::modern::complete("tools/call", content)).await;
            }
            _ => reply.error(400, &seen, MISMATCH).await,
        }
    };
    let server = ModernServer::new().on("tools/list", list).on("tools/call", run);
    let (proxy, up) = Proxy::before_modern(&server).await;
    let mut host = Host::launch(&proxy);
    host.say(&ask("1", "t", r#"{"n":1}"#)).await;
    text(&host.answer("1").await);
    TURN.store(1, Ordering::SeqCst);
    host.say(&ask("2", "t", r#"{"n":1}"#)).await;
    text(&host.answer("2").await);
    assert_eq!(up.posts("tools/call").len(), 3);
    assert_eq!(up.posts("tools/list").len(), 2);
    TURN.store(2, Ordering::SeqCst);
    host.say(&ask("3", "t", r#"{"n":1}"#)).await;
    is_error(&host.answer("3").await, -32603);
    assert_eq!(up.posts("tools/call").len(), 5);
    host.quiet(1000).await;
}

/// A legacy host's call goes as it does over HTTP.
#[tokio::test(start_paused = true)]
async fn d78_of_a_legacy_host() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before_modern(&calls.of_modern(ModernServer::new().tools(TOOLS))).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("1", r#"{"n":1}"#).replace("echo", "t")).await;
    let call = calls.wait(1).await;
    assert_eq!(params(&call.seen), [("n".to_owned(), "1".to_owned())]);
    call.completes("done");
    text(&host.answer("1").await);
}

/// What no header can hold is refused here, under the id; the server sees none of it.
#[tokio::test(start_paused = true)]
async fn a13_2_what_no_header_can_hold() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::full().tools(TOOLS)).await;
    let mut host = Host::launch(&proxy);
    let long = "x".repeat(9000);
    let asks = [
        ask("1", "t", &format!(r#"{{"region":"{long}"}}"#)),
        ask("1", &long, "{}"),
        modern("1", "resources/read", &format!(r#""uri":"file:///{long}""#)),
        modern("1", "acme/a\\nb", ""),
    ];
    for ask in asks {
        host.say(&ask).await;
        is_error(&host.answer("1").await, -32602);
    }
    assert!(up.after_probe().iter().all(|brief| brief == "tools/list"), "{:?}", up.briefs());
}
