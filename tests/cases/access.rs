//! C58, C60, C61: challenges, lists that differ by user, and who may talk to whom.

use crate::support::net::{Receiver, handler};
use crate::support::{Ask, LegacyServer, Net, Proxy, Reply, call, json, list};

const CHALLENGE: &str =
    r#"Bearer resource_metadata="https://u.example/.well-known/oauth-protected-resource/mcp", scope="x""#;

/// A server that answers `method` with 401 and a challenge.
fn challenges(method: &'static str) -> Net {
    let net = Net::new();
    let inner = LegacyServer::new();
    let peer = handler(move |seen, reply: Reply| {
        let inner = inner.clone();
        async move {
            if seen.brief() == method {
                return reply.with("WWW-Authenticate", CHALLENGE).empty(401).await;
            }
            inner.answer(seen, reply).await;
        }
    });
    net.serve("up.test", Receiver::Legacy, peer);
    net
}

#[tokio::test(start_paused = true)]
async fn c58_a_challenge_reaches_the_client_wherever_it_arose() {
    for method in ["server/discover", "initialize", "notifications/initialized", "tools/call"] {
        let proxy = Proxy::start(&challenges(method)).await;
        let done = proxy.send(&call("echo", "{}").id("6")).await;
        assert_eq!(done.status, 401, "{method}: {}", done.raw);
        assert_eq!(done.headers.get("www-authenticate").as_deref(), Some(CHALLENGE), "{method}");
        assert_eq!(done.message["id"], 6, "{method}: {}", done.raw);
    }
}

#[tokio::test(start_paused = true)]
async fn c58_unknown_well_known_paths_are_not_found() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for path in [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/",
        "/mcpx",
        "/mcp/x",
    ] {
        let done = proxy.send(&Ask::verb("GET").path(path)).await;
        assert_eq!(done.status, 404, "{path}");
        assert_ne!(done.headers.media_type().as_deref(), Some("text/html"), "{path}");
    }
    assert_eq!(up.briefs(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c58_the_endpoint_with_and_without_a_slash() {
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    for path in ["/mcp", "/mcp/", "/mcp?x=1"] {
        proxy.send(&list("tools/list").path(path)).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn c58_credentials_go_with_their_own_request_only() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    proxy.send(&call("echo", r#"{"n":1}"#).bearer("a")).await.result();
    proxy.send(&call("echo", r#"{"n":2}"#)).await.result();
    proxy.send(&call("echo", r#"{"n":3}"#).bearer("b")).await.result();
    let sent: Vec<_> = up.posts("tools/call").iter().map(|s| s.header("authorization")).collect();
    assert_eq!(sent, [Some("Bearer a".to_owned()), None, Some("Bearer b".to_owned())]);
    for initialize in up.posts("initialize") {
        let session = initialize.header("authorization");
        assert!([Some("Bearer a".to_owned()), None, Some("Bearer b".to_owned())].contains(&session));
    }
    assert_eq!(up.posts("initialize").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn c60_lists_are_not_shared_between_users() {
    let server = LegacyServer::new().on("tools/list", |seen, reply: Reply| async move {
        match seen.header("authorization").as_deref() {
            Some("Bearer alice") => {
                reply.result(&seen, r#"{"tools":[{"name":"admin","inputSchema":{"type":"object"}}]}"#).await;
            }
            Some("Bearer bob") => reply.result(&seen, r#"{"tools":[]}"#).await,
            _ => reply.with("WWW-Authenticate", "Bearer").empty(401).await,
        }
    });
    let (proxy, _up) = Proxy::before(&server).await;
    for _ in 0..3 {
        let alice = proxy.send(&list("tools/list").bearer("alice")).await;
        assert_eq!(alice.result()["tools"][0]["name"], "admin");
        assert_eq!(alice.result()["cacheScope"], "private");
        assert_eq!(alice.headers.get("cache-control").map(|c| c.contains("no-store")), Some(true));
        let bob = proxy.send(&list("tools/list").bearer("bob")).await;
        assert_eq!(bob.result()["tools"], json!([]));
        assert_eq!(proxy.send(&list("tools/list").bearer("expired")).await.status, 401, "never from a cache");
        assert_eq!(proxy.send(&list("tools/list")).await.status, 401);
    }
}

#[tokio::test(start_paused = true)]
async fn c60_discovery_differs_by_user() {
    let net = Net::new();
    let (rich, poor) = (LegacyServer::new(), LegacyServer::new().capabilities(r#"{"tools":{}}"#));
    let peer = handler(move |seen, reply: Reply| {
        let alice = seen.header("authorization").as_deref() == Some("Bearer alice");
        let server = if alice { rich.clone() } else { poor.clone() };
        server.answer(seen, reply)
    });
    let up = net.serve("up.test", Receiver::Legacy, peer);
    let proxy = Proxy::start(&net).await;
    for (user, prompts) in [("alice", true), ("bob", false), ("alice", true)] {
        let done = proxy.send(&Ask::new("server/discover").bearer(user)).await;
        assert_eq!(done.result()["capabilities"].get("prompts").is_some(), prompts, "{user}");
    }
    assert_eq!(up.posts("server/discover").len(), 1, "the era verdict is shared");
}

#[tokio::test(start_paused = true)]
async fn c61_origin() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for good in ["http://localhost:3000", "http://127.0.0.1:3000", "https://localhost", "http://[::1]:1"] {
        proxy.send(&list("tools/list").header("Origin", good)).await.result();
    }
    let before = up.requests().len();
    let bad = [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "http://evil.example:80",
        "",
    ];
    for origin in bad {
        for ask in [list("tools/list"), Ask::verb("GET"), Ask::verb("DELETE"), Ask::verb("OPTIONS")] {
            let done = proxy.send(&ask.header("Origin", origin)).await;
            assert_eq!(done.status, 403, "{origin:?}: {}", done.raw);
        }
    }
    assert_eq!(up.requests().len(), before, "nothing reaches the server");
}

#[tokio::test(start_paused = true)]
async fn c61_host_on_a_loopback_bind() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    for good in [
        "127.0.0.1:8808",
        "localhost:8808",
        "LOCALHOST:8808",
        "localhost",
        "127.0.0.1",
        "[::1]:8808",
        "localhost.:8808",
    ] {
        let done = proxy.send(&list("tools/list").header("Host", good)).await;
        assert_eq!(done.status, 200, "{good}: {}", done.raw);
    }
    let before = up.requests().len();
    for bad in [
        "evil.example",
        "evil.example:8808",
        "localhost.evil.example",
        "127.0.0.1.evil.example:8808",
        "user@localhost",
    ] {
        let done = proxy.send(&list("tools/list").header("Host", bad)).await;
        assert!((400..500).contains(&done.status), "{bad}: {}", done.raw);
        assert_eq!(done.message.get("result"), None);
    }
    assert_eq!(up.requests().len(), before);
}

#[tokio::test(start_paused = true)]
async fn c61_the_server_sees_its_own_authority() {
    let net = Net::new();
    let up = LegacyServer::new().start_at(&net, "up.test:8443");
    let proxy = Proxy::configured(&net, "[upstream.up]\nurl = \"http://up.test:8443/mcp\"\n").await;
    proxy.send(&list("tools/list").header("Origin", "http://localhost:3000")).await.result();
    for seen in up.requests() {
        assert_eq!(seen.header("host").as_deref(), Some("up.test:8443"));
        assert_eq!(seen.header("origin"), None);
    }
    assert_eq!(net.dialled(), vec!["up.test:8443"; net.dialled().len()]);
}

#[tokio::test(start_paused = true)]
async fn c61_a_refusal_of_the_host_is_surfaced() {
    for status in [403, 421] {
        let server = LegacyServer::new().on("server/discover", move |_, reply: Reply| reply.empty(status));
        let (proxy, up) = Proxy::before(&server).await;
        let done = proxy.send(&list("tools/list").id("1")).await;
        if status == 403 {
            assert_eq!((done.status, up.briefs().len()), (403, 1), "{}", done.raw);
        } else {
            // Not a verdict either way: an error, or a handshake that then succeeded.
            assert!(done.status == 200 || done.code() == -32603, "{}", done.raw);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c61_redirects_stay_on_the_origin() {
    for (location, followed) in [
        ("/mcp2", true),
        ("http://evil.test/mcp", false),
        ("https://up.test/mcp", false),
        ("//evil.test/", false),
    ] {
        let inner = LegacyServer::new();
        let net = Net::new();
        let peer = handler(move |seen, reply: Reply| {
            let inner = inner.clone();
            async move {
                match seen.target.as_str() {
                    "/mcp" => reply.with("Location", location).empty(307).await,
                    _ => inner.answer(seen, reply).await,
                }
            }
        });
        let _up = net.serve("up.test", Receiver::Legacy, peer);
        let evil = LegacyServer::new().start_at(&net, "evil.test");
        let proxy = Proxy::start(&net).await;
        let done = proxy.send(&call("echo", "{}").bearer("t")).await;
        assert_eq!(done.status == 200, followed, "{location}: {}", done.raw);
        assert_eq!(evil.briefs(), Vec::<String>::new(), "{location}: invariant 4");
    }
}

#[tokio::test(start_paused = true)]
async fn c58_what_becomes_of_the_callers_credential_is_a_setting() {
    let table = [
        ("", Some("Bearer t")),
        ("authorization = \"forward\"\n", Some("Bearer t")),
        ("authorization = \"strip\"\n", None),
        ("authorization = { value = \"Bearer fixed\" }\n", Some("Bearer fixed")),
    ];
    for (setting, expected) in table {
        let net = Net::new();
        let up = LegacyServer::new().start(&net);
        let proxy = Proxy::with(&net, setting).await;
        proxy.send(&call("echo", "{}").bearer("t")).await.result();
        for seen in up.requests() {
            assert_eq!(seen.header("authorization").as_deref(), expected, "{setting}: {}", seen.brief());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c58_headers_from_settings_and_from_the_client() {
    let net = Net::new();
    let up = LegacyServer::new().start(&net);
    let lines = "forward_headers = [\"x-tenant\"]\nheaders = { X-Api-Key = \"k\" }\n";
    let proxy = Proxy::with(&net, lines).await;
    proxy.send(&call("echo", "{}").header("X-Tenant", "t1").header("X-Other", "o")).await.result();
    let seen = up.only("tools/call");
    assert_eq!(seen.header("x-tenant").as_deref(), Some("t1"));
    assert_eq!(seen.header("x-api-key").as_deref(), Some("k"));
    assert_eq!(seen.header("x-other"), None);
}
