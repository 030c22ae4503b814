//! C42, C36: when the old transport is tried, and what the caller hears where it is not, or in vain.

use crate::support::log::Log;
use crate::support::net::{Receiver, handler};
use crate::support::{LegacyServer, ModernServer, Net, OldSseServer, Proxy, Reply, Upstream, list, pass};

const HANDSHAKE: [&str; 4] = ["GET", "initialize", "notifications/initialized", "tools/list"];

/// A server of the old transport that answers a POST to its stream's place so.
fn refusing(status: u16, media_type: &'static str, body: &'static str) -> OldSseServer {
    OldSseServer::new(&LegacyServer::new())
        .on("POST", move |_, reply: Reply| reply.body(status, media_type, body))
}

/// How often `initialize` was posted to where streams are.
fn tried(up: &Upstream) -> usize {
    up.posts("initialize").iter().filter(|seen| seen.target == "/sse").count()
}

fn gets(up: &Upstream) -> usize {
    up.requests().iter().filter(|seen| seen.verb == "GET").count()
}

#[tokio::test(start_paused = true)]
async fn c42_a_refused_initialize_leads_to_the_event_stream() {
    let bodies = [
        ("text/plain", ""),
        ("text/html", "<h1>Cannot POST /sse</h1>"),
        ("application/json", r#"{"detail":"Method Not Allowed"}"#),
        ("application/json", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}"#),
        ("application/json", r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"m"}}"#),
    ];
    for status in [400, 404, 405] {
        for (media_type, body) in bodies {
            let net = Net::new();
            let up = refusing(status, media_type, body).start(&net);
            let proxy = Proxy::of_old_sse(&net, "").await;
            let done = proxy.send(&list("tools/list").id("7")).await;
            assert_eq!(done.result()["tools"][0]["name"], "echo", "{status} {body}");
            let expected = [&["server/discover", "initialize"], &HANDSHAKE[..]].concat();
            assert_eq!(up.briefs(), expected, "{status} {body}");
            assert_eq!((tried(&up), gets(&up)), (1, 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c42_other_refusals_are_surfaced_as_they_are() {
    // What `initialize` is answered, and what the client hears.
    for (status, expected) in
        [(401, 401), (403, 403), (406, 502), (415, 502), (422, 502), (429, 429), (500, 502), (503, 502)]
    {
        let server =
            OldSseServer::new(&LegacyServer::new()).on("POST", move |seen, reply: Reply| async move {
                match seen.brief().as_str() {
                    "initialize" => {
                        let reply =
                            reply.with("WWW-Authenticate", "Bearer scope=\"x\"").with("Retry-After", "7");
                        reply.json(status, "{}").await;
                    }
                    _ => reply.empty(404).await,
                }
            });
        let net = Net::new();
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "").await;
        let done = proxy.send(&list("tools/list").id("7")).await;
        assert_eq!(done.status, expected, "{status}: {}", done.raw);
        if expected == 401 || expected == 403 {
            let challenge = done.headers.get("www-authenticate");
            assert_eq!(challenge.as_deref(), Some("Bearer scope=\"x\""), "{status}");
        }
        if expected == 429 {
            assert_eq!(done.headers.get("retry-after").as_deref(), Some("7"));
        }
        if expected == 502 {
            assert!(done.raw.contains(&status.to_string()), "{}", done.raw);
        }
        assert_eq!(gets(&up), 0, "{status}: {:?}", up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn c36_a_modern_refusal_leads_nowhere_else() {
    for (status, code) in [(404, -32601), (400, -32022), (400, -32021), (400, -32020)] {
        let server =
            OldSseServer::new(&LegacyServer::new()).on("POST", move |seen, reply: Reply| async move {
                match seen.brief().as_str() {
                    "initialize" => {
                        let error = format!(r#"{{"code":{code},"message":"modern words"}}"#);
                        reply.error(status, &seen, &error).await;
                    }
                    _ => reply.empty(400).await,
                }
            });
        let net = Net::new();
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "").await;
        let done = proxy.send(&list("tools/list").id("7")).await;
        assert_eq!(done.status, 502, "{code}: {}", done.raw);
        assert!(done.raw.contains("modern words"), "{code}: {}", done.raw);
        assert_eq!(gets(&up), 0, "{code}: {:?}", up.briefs());
    }
}

#[tokio::test(start_paused = true)]
async fn c42_where_there_is_no_event_stream_the_first_refusal_is_the_answer() {
    let get: [(&str, OldSseServer); 6] = [
        ("404", refusing(405, "text/plain", "").on("GET", |_, reply: Reply| reply.empty(404))),
        ("500", refusing(405, "text/plain", "").on("GET", |_, reply: Reply| reply.empty(500))),
        (
            "application/json",
            refusing(405, "text/plain", "").on("GET", |_, reply: Reply| reply.json(200, "{}")),
        ),
        ("ended", refusing(405, "text/plain", "").on("GET", |_, reply: Reply| reply.streamed_nothing())),
        ("did not come", refusing(405, "text/plain", "").on("GET", |_, reply: Reply| reply.never())),
        ("did not come", refusing(405, "text/plain", "").without_endpoint()),
    ];
    for (cause, server) in get {
        let net = Net::new();
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "").await;
        let log = Log::open();
        let done = proxy.send(&list("tools/list").id("7")).await;
        done.is_error(502, -32603);
        assert!(done.raw.contains("`initialize` with HTTP status 405"), "{cause}: {}", done.raw);
        assert_eq!(up.briefs(), ["server/discover", "initialize", "GET"], "{cause}");
        assert_eq!(log.with(&["405", cause]).len(), 1, "both causes: {:?}", log.with(&["405"]));
        assert_eq!(server.open_streams(), 0, "{cause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_challenge_of_the_event_stream_reaches_the_client() {
    let server = refusing(405, "text/plain", "").on("GET", |seen, reply: Reply| async move {
        let reply = reply.with("WWW-Authenticate", "Bearer scope=\"y\"");
        assert!(seen.header("authorization").is_none());
        reply.empty(401).await;
    });
    let net = Net::new();
    server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    let done = proxy.send(&list("tools/list")).await;
    let challenge = done.headers.get("www-authenticate");
    assert_eq!((done.status, challenge.as_deref()), (401, Some("Bearer scope=\"y\"")), "{}", done.raw);
}

#[tokio::test(start_paused = true)]
async fn what_was_found_is_kept_and_looked_at_again() {
    let net = Net::new();
    let server = refusing(404, "text/html", "<p>");
    let up = server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "era_ttl = \"1h\"").await;
    proxy.send(&list("tools/list").bearer("a")).await.result();
    proxy.send(&list("tools/list").bearer("b")).await.result();
    assert_eq!((tried(&up), gets(&up)), (1, 2), "{:?}", up.briefs());
    pass(3_700_000).await;
    proxy.send(&list("tools/list").bearer("c")).await.result();
    assert_eq!((tried(&up), gets(&up)), (2, 3), "{:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_changes_its_transport_is_followed() {
    let net = Net::new();
    let server = refusing(405, "text/plain", "");
    let old = server.start(&net);
    let proxy = Proxy::of_old_sse(&net, "").await;
    proxy.send(&list("tools/list").bearer("a")).await.result();
    assert_eq!(gets(&old), 1);
    // The new one has Streamable HTTP there; nobody's call fails of it.
    let new = LegacyServer::new().start(&net);
    proxy.send(&list("tools/list").bearer("b")).await.result();
    proxy.send(&list("tools/list").bearer("c")).await.result();
    assert_eq!(new.posts("initialize").len(), 2, "{:?}", new.briefs());
    // And back.
    let old = server.start(&net);
    proxy.send(&list("tools/list").bearer("d")).await.result();
    assert_eq!((tried(&old), gets(&old)), (1, 1), "{:?}", old.briefs());
}

#[tokio::test(start_paused = true)]
async fn credentials_and_load_are_no_change_of_transport() {
    for status in [401, 403, 429, 500, 503] {
        let net = Net::new();
        let server = OldSseServer::new(&LegacyServer::new());
        server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "").await;
        proxy.send(&list("tools/list").bearer("a")).await.result();
        let refused = server.clone().on("GET", move |_, reply: Reply| reply.empty(status)).start(&net);
        let done = proxy.send(&list("tools/list").bearer("b")).await;
        let expected = if status >= 500 { 502 } else { status };
        assert_eq!(
            (done.status, refused.briefs()),
            (expected, vec!["GET".to_owned()]),
            "{status}: {}",
            done.raw
        );
        let up = server.start(&net);
        proxy.send(&list("tools/list").bearer("c")).await.result();
        assert_eq!(tried(&up), 0, "{status}: still known");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_said_to_have_the_old_transport_is_sent_nothing_else() {
    let net = Net::new();
    let up = OldSseServer::new(&LegacyServer::new()).start(&net);
    let proxy = Proxy::of_old_sse(&net, "transport = \"sse\"").await;
    proxy.send(&list("tools/list").id("7")).await.result();
    assert_eq!(up.briefs(), HANDSHAKE);
    assert_eq!(tried(&up), 0);
    pass(25 * 3_600_000).await;
    proxy.send(&list("tools/list")).await.result();
    pass(60_000).await;
    assert_eq!(up.posts("server/discover").len(), 0, "no probe, ever: {:?}", up.briefs());
}

#[tokio::test(start_paused = true)]
async fn what_opening_is_refused_with_is_the_answer_where_there_is_one_transport() {
    for (status, expected) in [(401, 401), (403, 403), (404, 502), (405, 502), (429, 429), (500, 502)] {
        let net = Net::new();
        let server = OldSseServer::new(&LegacyServer::new()).on("GET", move |_, reply: Reply| {
            reply.with("WWW-Authenticate", "Bearer x").with("Retry-After", "3").empty(status)
        });
        let up = server.start(&net);
        let proxy = Proxy::of_old_sse(&net, "transport = \"sse\"").await;
        let done = proxy.send(&list("tools/list").id("7")).await;
        assert_eq!(done.status, expected, "{status}: {}", done.raw);
        if expected == 401 {
            assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x"));
        }
        assert_eq!(up.briefs(), ["GET"], "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_said_to_have_streamable_http_is_never_looked_at_for_another() {
    let net = Net::new();
    let up = OldSseServer::new(&LegacyServer::new()).start(&net);
    let proxy = Proxy::of_old_sse(&net, "transport = \"streamable-http\"").await;
    let done = proxy.send(&list("tools/list").id("7")).await;
    done.is_error(502, -32603);
    assert!(done.raw.contains("405"), "{}", done.raw);
    assert_eq!(up.briefs(), ["server/discover", "initialize"]);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_never_looked_at_for_another() {
    let net = Net::new();
    let up = ModernServer::new().start(&net);
    let proxy = Proxy::start(&net).await;
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(gets(&up), 0);
}

/// Both transports at one place, as bridges of 2025 had it.
#[tokio::test(start_paused = true)]
async fn streamable_http_goes_first_where_both_are() {
    let net = Net::new();
    let (new, old) = (LegacyServer::new(), OldSseServer::new(&LegacyServer::new()).at("/mcp"));
    let both = handler(move |seen, reply: Reply| {
        let (new, old) = (new.clone(), old.clone());
        async move {
            match (seen.verb.as_str(), seen.session()) {
                ("GET", None) => old.answer(seen, reply).await,
                _ => new.answer(seen, reply).await,
            }
        }
    });
    let up = net.serve("up.test", Receiver::Legacy, both);
    let proxy = Proxy::start(&net).await;
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(gets(&up), 0, "{:?}", up.briefs());
}
