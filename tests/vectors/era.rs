//! D105, HTTP part: what each answer to the probe says about a server, as one table a verdict.
//!
//! Owns detection as seen on the wire. Staleness, storms and twice-run tools are the cases C34-C41.

use std::sync::Arc;

use crate::support::{Ask, LegacyServer, ModernServer, Net, Proxy, Reply, Seen, call, list};

const LEGACY_DISCOVER: &str = r#"{"resultType":"complete","supportedVersions":["2025-11-25","2025-06-18"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}"#;

/// One answer to the probe: status, media type, and a body in which `ID` stands for the probe's id.
type ProbeAnswer = (&'static str, u16, &'static str, &'static str);

const JSON: &str = "application/json";

fn probed(answer: ProbeAnswer) -> LegacyServer {
    let (_, status, media_type, body) = answer;
    LegacyServer::new().on("server/discover", move |seen: Arc<Seen>, reply: Reply| async move {
        let body = body.replace("DISCOVER", LEGACY_DISCOVER).replace("ID", &seen.id());
        match media_type {
            "" => reply.empty(status).await,
            media_type => reply.body(status, media_type, &body).await,
        }
    })
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_legacy() {
    let table: [ProbeAnswer; 27] = [
        ("-32601", 200, JSON, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"m"}}"#),
        (
            "-32600 without id",
            200,
            JSON,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}"#,
        ),
        ("-32602", 200, JSON, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"m"}}"#),
        ("-32000", 200, JSON, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"m"}}"#),
        (
            "-32001",
            200,
            JSON,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        (
            "-32022 without data",
            400,
            JSON,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"m"}}"#,
        ),
        (
            "-32022, odd data",
            400,
            JSON,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"m","data":{"supported":"x"}}}"#,
        ),
        ("only old versions", 200, JSON, r#"{"jsonrpc":"2.0","id":ID,"result":DISCOVER}"#),
        ("empty result", 200, JSON, r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#),
        ("null result", 200, JSON, r#"{"jsonrpc":"2.0","id":ID,"result":null}"#),
        (
            "error in a stream",
            200,
            "text/event-stream",
            "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"error\":{\"code\":-32601,\"message\":\"m\"}}\n\n",
        ),
        ("empty stream", 200, "text/event-stream", ""),
        ("html", 200, "text/html", "<html>"),
        ("no body", 200, JSON, ""),
        ("accepted", 202, "", ""),
        ("no content", 204, "", ""),
        ("400 without body", 400, "", ""),
        (
            "400 session",
            400,
            JSON,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
        ),
        (
            "400 version",
            400,
            JSON,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Unsupported protocol version"},"id":null}"#,
        ),
        ("404 text", 404, "text/plain", "nope"),
        ("404 -32601", 404, JSON, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"m"}}"#),
        (
            "404 session",
            404,
            JSON,
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        ("405", 405, "", ""),
        (
            "406",
            406,
            JSON,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Not Acceptable"},"id":null}"#,
        ),
        ("415", 415, "", ""),
        ("422", 422, "text/plain", "Unexpected message, expect initialize request"),
        ("410", 410, "", ""),
    ];
    for answer in table {
        let (proxy, up) = Proxy::before(&probed(answer)).await;
        let done = proxy.send(&call("echo", "{}")).await;
        assert_eq!(done.status, 200, "{}: {}", answer.0, done.raw);
        proxy.send(&list("tools/list")).await.result();
        let expected =
            ["server/discover", "initialize", "notifications/initialized", "tools/call", "tools/list"];
        assert_eq!(up.briefs(), expected, "{}: probed once", answer.0);
    }
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_no_verdict() {
    let table: [(ProbeAnswer, u16); 8] = [
        (("401", 401, "", ""), 401),
        (("403", 403, JSON, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"m"}}"#), 403),
        (("500", 500, "text/html", "<p>"), 502),
        (("502", 502, JSON, r#"{"error":"x"}"#), 502),
        (("503", 503, JSON, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"m"}}"#), 502),
        (("504", 504, "", ""), 502),
        (("407", 407, "", ""), 502),
        (("429", 429, "", ""), 0),
    ];
    for (answer, status) in table {
        let net = Net::new();
        let up = probed(answer).start(&net);
        let proxy = Proxy::start(&net).await;
        let done = proxy.send(&call("echo", "{}").id("2")).await;
        assert!(
            done.status == status || (status == 0 && done.status >= 429),
            "{}: {} {}",
            answer.0,
            done.status,
            done.raw
        );
        assert_eq!(done.message["id"], 2, "{}: {}", answer.0, done.raw);
        assert!(done.code() != 0);
        assert_eq!(up.briefs(), ["server/discover"], "{}", answer.0);
        // The server recovers: the very next request finds out what it is.
        let up = ModernServer::new().start(&net);
        proxy.send(&call("echo", "{}")).await.result();
        assert_eq!(up.briefs(), ["server/discover", "tools/call"], "{}: nothing was stored", answer.0);
    }
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_silence_on_http_is_no_verdict() {
    let net = Net::new();
    let up = LegacyServer::new().on("server/discover", |_, reply: Reply| reply.never()).start(&net);
    let proxy = Proxy::start(&net).await;
    proxy.send(&call("echo", "{}").id("2")).await.is_error(504, -32603);
    assert_eq!(up.posts("initialize").len(), 0);
    let up = LegacyServer::new().start(&net);
    proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(up.posts("server/discover").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_modern() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::new()).await;
    for _ in 0..2 {
        proxy.send(&call("echo", "{}")).await.result();
    }
    assert_eq!(up.briefs(), ["server/discover", "tools/call", "tools/call"]);
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_modern_in_a_stream() {
    let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}"#;
    let server = ModernServer::new().on("server/discover", move |seen, reply: Reply| async move {
        reply.streamed_result(&seen, result).await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(up.posts("initialize").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_modern_by_a_usable_32022() {
    let server = ModernServer::new().on("server/discover", |seen, reply: Reply| async move {
        let error = r#"{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"x"}}"#;
        reply.error(400, &seen, error).await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    proxy.send(&call("echo", "{}")).await;
    assert_eq!(up.posts("initialize").len(), 0, "a modern server is never sent initialize");
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_modern_without_a_common_version() {
    let server = ModernServer::new().on("server/discover", |seen, reply: Reply| async move {
        let error =
            r#"{"code":-32022,"message":"m","data":{"supported":["2099-01-01"],"requested":"2026-07-28"}}"#;
        reply.error(400, &seen, error).await;
    });
    let (proxy, up) = Proxy::before_modern(&server).await;
    assert_eq!(proxy.send(&call("echo", "{}")).await.code(), -32603);
    assert_eq!((up.posts("initialize").len(), up.posts("tools/call").len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_a_refused_probe_is_no_reason_to_fall_back() {
    for code in [-32020, -32021] {
        let server = ModernServer::new().on("server/discover", move |seen, reply: Reply| async move {
            let data = r#"{"requiredCapabilities":{"x":{}}}"#;
            reply.error(400, &seen, &format!(r#"{{"code":{code},"message":"m","data":{data}}}"#)).await;
        });
        let (proxy, up) = Proxy::before_modern(&server).await;
        proxy.send(&call("echo", "{}").id("7")).await;
        // Modern it is; whether the call is then tried or the refusal handed on, there is no fallback.
        assert_eq!(up.posts("initialize").len(), 0, "{code}: no fallback");
    }
}

#[tokio::test(start_paused = true)]
async fn d105_era_probe_is_made_once_for_many() {
    let base = LegacyServer::new();
    let slow = base.clone().on("server/discover", |_, reply: Reply| async move {
        crate::support::pass(2000).await;
        reply.empty(405).await;
    });
    let (proxy, up) = Proxy::before(&slow).await;
    let calls: Vec<_> = (0..20).map(|n| proxy.spawn(&call("echo", "{}").id(&n.to_string()))).collect();
    for call in calls {
        call.await.unwrap().result();
    }
    assert_eq!(up.posts("server/discover").len(), 1);
    assert_eq!(up.posts("initialize").len(), 1);
    assert_eq!(up.posts("tools/call").len(), 20);
}

#[tokio::test(start_paused = true)]
async fn d105_legacy_is_believed_only_once_initialize_succeeded() {
    let net = Net::new();
    let broken = LegacyServer::new().on("initialize", |_, reply: Reply| reply.body(200, "text/html", "<p>"));
    let up = broken.start(&net);
    let proxy = Proxy::start(&net).await;
    proxy.send(&list("tools/list")).await.is_error(502, -32603);
    assert_eq!(up.posts("tools/list").len(), 0);
    let up = ModernServer::new().start(&net);
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.briefs(), ["server/discover", "tools/list"]);
}

#[tokio::test(start_paused = true)]
async fn d105_the_probe_says_nothing_of_the_client() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let ask = Ask::new("tools/call")
        .params(r#""name":"secret-tool","arguments":{}"#)
        .header("Mcp-Name", "secret-tool");
    proxy.send(&ask.bearer("t")).await.result();
    let probe = up.only("server/discover");
    assert!(!probe.text().contains("secret-tool"));
    assert_eq!(
        probe.header("authorization").as_deref(),
        Some("Bearer t"),
        "C34: the caller's own credential"
    );
    assert_eq!(probe.session(), None);
}

#[tokio::test(start_paused = true)]
async fn d105_a_set_era_needs_no_probe() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let proxy = Proxy::with(&net, "era = \"legacy\"\n").await;
    proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(up.briefs(), ["initialize", "notifications/initialized", "tools/call"]);
    let net = Net::new();
    let up = ModernServer::new().start(&net);
    let proxy = Proxy::with(&net, "era = \"modern\"\n").await;
    proxy.send(&call("echo", "{}")).await.result();
    assert_eq!(up.briefs(), ["tools/call"]);
}
