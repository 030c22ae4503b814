//! D69, D70, D83, A1.1, A3, A9, C06, C27e, C50, C60: the handshake that the proxy answers from what the server says of
//! itself.

use crate::stage::{LATEST, META, REVISIONS, Stage, stranger};
use crate::support::modern::{EVERYTHING, SI, UNCACHED};
use crate::support::user::everything;
use crate::support::{Ask, Calls, Done, Listens, ModernServer, Net, Old, Proxy, Reply, User, json, pass};

#[tokio::test(start_paused = true)]
async fn d69_legacy_init() {
    let asked = REVISIONS.map(|revision| (revision, revision));
    for (version, agreed) in asked.into_iter().chain([("2026-07-28", LATEST), ("x", LATEST), ("", LATEST)]) {
        let server = ModernServer::full()
            .discovers(&format!(r#""capabilities":{EVERYTHING},"instructions":"be \u006bind","x-own":1"#));
        let stage = Stage::before(server).await;
        let done = stage.proxy.send(&Old::initialize(version)).await;
        let result = done.result();
        assert_eq!(result["protocolVersion"], agreed, "{version}");
        assert_eq!(result["serverInfo"], json!({"name": "new", "version": "8"}), "{version}");
        assert_eq!(result["capabilities"], crate::stage::parse(EVERYTHING), "{version}");
        assert_eq!(result["instructions"], "be kind", "{version}");
        for word in ["resultType", "ttlMs", "cacheScope", "supportedVersions"] {
            assert!(result.get(word).is_none(), "{word} to {version}: {}", done.raw);
        }
        assert!(!done.raw.contains(META), "{}", done.raw);
        let session = done.headers.get("mcp-session-id").expect("a session");
        assert!(session.bytes().all(|byte| (0x21..0x7f).contains(&byte)), "visible ASCII: {session}");
        let old = Old::initialized(&stage.proxy, &done, None).await;
        stage.proxy.send(&old.ask("tools/list")).await.result();
        assert_eq!(stage.briefs(), ["tools/list"], "nothing of the handshake reaches the server");
    }
}

/// A9.1: nothing is invented for a server that does not say who it is.
#[tokio::test(start_paused = true)]
async fn d69_a_server_that_does_not_say_who_it_is() {
    let bare = format!(
        r#"{{"resultType":"complete",{UNCACHED}"supportedVersions":["2026-07-28"],"capabilities":{{}}}}"#
    );
    let stage = Stage::before(ModernServer::full().result("server/discover", &bare)).await;
    let done = stage.proxy.send(&Old::initialize(LATEST)).await;
    assert_eq!(done.result()["serverInfo"], json!({"name": "unknown", "version": "0"}));
    assert_eq!(done.result()["capabilities"], json!({}));
    assert!(done.result().get("instructions").is_none());
}

/// A3.7, A3.12, A3.13, C50: capabilities are the server's own, without what cannot be bridged.
#[tokio::test(start_paused = true)]
async fn c50_no_capability_is_invented() {
    let offers = [
        (r#"{"tools":{}}"#, json!({"tools": {}})),
        (r#"{"resources":{"subscribe":true}}"#, json!({"resources": {"subscribe": true}})),
        (
            r#"{"tools":{},"experimental":{"x":{"a":1}},"extensions":{"io.modelcontextprotocol/ui":{"b":2},"io.modelcontextprotocol/tasks":{}}}"#,
            json!({"tools": {}, "experimental": {"x": {"a": 1}}, "extensions": {"io.modelcontextprotocol/ui": {"b": 2}}}),
        ),
        (r#"{"logging":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#, json!({"logging": {}})),
    ];
    for (offered, expected) in offers {
        let server = ModernServer::full().discovers(&format!(r#""capabilities":{offered}"#));
        let stage = Stage::before(server).await;
        let done = stage.proxy.send(&Old::initialize(LATEST)).await;
        let mut shown = done.result()["capabilities"].clone();
        // Nothing left in it: shown empty or not at all.
        if shown["extensions"] == json!({}) {
            shown.as_object_mut().unwrap().remove("extensions");
        }
        assert_eq!(shown, expected, "{offered}");
    }
}

/// C50: what a server lacks is an error in band, never an empty success.
#[tokio::test(start_paused = true)]
async fn c50_a_missing_method_is_an_error_in_band() {
    let stage = Stage::before(ModernServer::new()).await;
    let user = stage.latest().await;
    for method in ["resources/list", "prompts/list", "resources/templates/list"] {
        user.send(&user.old.ask(method)).await.is_answered_error(-32601);
    }
    assert!(user.lives().await);
}

/// A1.2: answered by the proxy, before the handshake and after it, by clients that name a version and that do not.
#[tokio::test(start_paused = true)]
async fn d70_legacy_ping_local() {
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let version = (revision >= "2025-06-18").then_some(revision);
        let before = stage.proxy.send(&stranger(version).ask("ping").id(r#""p""#)).await;
        assert_eq!(*before.result(), json!({}), "{revision} before initialize");
        let user = stage.user(revision).await;
        let after = stage.unmoved(user.send(&user.old.ask("ping").id("0"))).await;
        assert_eq!(after.raw, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#, "{revision}");
        assert_eq!(stage.briefs(), [] as [&str; 0], "{revision}");
    }
}

/// Between `initialize` and `initialized` a ping is answered too.
#[tokio::test(start_paused = true)]
async fn d70_ping_in_the_middle_of_the_handshake() {
    let stage = Stage::new().await;
    let done = stage.proxy.send(&Old::initialize(LATEST)).await;
    let old = Old::answered(&done, None);
    let ping = stage.proxy.send(&old.ask("ping")).await;
    assert_eq!(*ping.result(), json!({}));
}

#[tokio::test(start_paused = true)]
async fn d83_legacy_initialize_on_modern_only() {
    let stage = Stage::before_with(ModernServer::full(), "legacy_clients = false").await;
    for version in REVISIONS {
        let done = stage.proxy.send(&Old::initialize(version)).await;
        assert_eq!((done.status, done.code()), (400, -32022), "{}", done.raw);
        assert_eq!(*done.data(), json!({"supported": ["2026-07-28"], "requested": version}));
        assert_eq!(done.headers.get("mcp-session-id"), None);
    }
    let old = Old { session: Some("S1".into()), ..stranger(Some("2025-06-18")) };
    let done = stage.proxy.send(&old.ask("tools/list")).await;
    assert_eq!((done.status, done.code()), (400, -32022), "{}", done.raw);
    for ask in [old.get(), old.delete()] {
        let done = stage.proxy.send(&ask).await;
        assert_eq!((done.status, done.headers.get("allow").as_deref()), (405, Some("POST")));
    }
    assert_eq!(stage.briefs(), [] as [&str; 0]);
}

/// C06: an id that the client still has from elsewhere does no harm, and a second handshake is a second session.
#[tokio::test(start_paused = true)]
async fn c06_initialize_with_a_stale_session_and_once_more() {
    let stage = Stage::new().await;
    let stale = stage.proxy.send(&Old::initialize(LATEST).header("Mcp-Session-Id", "stale")).await;
    let first = Old::initialized(&stage.proxy, &stale, None).await;
    let again = Old::initialize(LATEST).header("Mcp-Session-Id", first.session.as_deref().unwrap());
    let again = stage.proxy.send(&again).await;
    let second = Old::initialized(&stage.proxy, &again, None).await;
    assert_ne!(first.session, second.session);
    for old in [first, second] {
        stage.proxy.send(&old.ask("tools/list")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn a1_1_an_initialize_that_says_too_little() {
    let stage = Stage::new().await;
    let bodies = [
        r#""capabilities":{},"clientInfo":{"name":"a","version":"1"}"#,
        r#""protocolVersion":5,"capabilities":{},"clientInfo":{"name":"a","version":"1"}"#,
        r#""protocolVersion":null,"capabilities":{},"clientInfo":{"name":"a","version":"1"}"#,
    ];
    for body in bodies {
        let done = stage.proxy.send(&Ask::old("initialize").params(body).id("7")).await;
        assert_eq!(done.code(), -32602, "{body}: {} {}", done.status, done.raw);
        assert_eq!(done.headers.get("mcp-session-id"), None, "{body}");
    }
}

/// A9.1: what a client does not say of itself properly is not worth refusing it for.
#[tokio::test(start_paused = true)]
async fn a9_1_a_client_that_does_not_say_who_it_is() {
    let bodies = [
        r#""protocolVersion":"2025-06-18","capabilities":{}"#,
        r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":5"#,
        r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a"}"#,
        r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"","version":7}"#,
        r#""protocolVersion":"2025-06-18","clientInfo":{"name":"a","version":"1"}"#,
        r#""protocolVersion":"2025-06-18","capabilities":[],"clientInfo":{"name":"a","version":"1"}"#,
    ];
    for body in bodies {
        let stage = Stage::before(ModernServer::full()).await;
        let done = stage.proxy.send(&Ask::old("initialize").params(body)).await;
        let old = Old::initialized(&stage.proxy, &done, None).await;
        stage.proxy.send(&old.ask("tools/list")).await.result();
        // What it says is looked at by `shape_envelope`.
        let seen = stage.up.only("tools/list").json();
        assert_eq!(seen["params"]["_meta"][format!("{META}clientCapabilities")], json!({}), "{body}");
    }
}

/// Whatever of its own a client says, a request's envelope stays small.
#[tokio::test(start_paused = true)]
async fn inv5_a_client_that_says_too_much_of_itself() {
    let stage = Stage::before(ModernServer::full()).await;
    let long = "x".repeat(20_000);
    let body = format!(
        r#""protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{{"name":"a","version":"1","description":"{long}"}}"#
    );
    let done = stage.proxy.send(&Ask::old("initialize").params(&body)).await;
    let old = Old::initialized(&stage.proxy, &done, None).await;
    assert!(old.session.as_ref().unwrap().len() < 8192, "{} bytes of session id", old.session.unwrap().len());
    stage.proxy.send(&old.ask("tools/list")).await.result();
    let seen = stage.up.only("tools/list");
    assert!(seen.body.len() < 8192, "{} bytes", seen.body.len());
    assert_eq!(seen.json()["params"]["_meta"][format!("{META}clientInfo")]["name"], "a");
}

/// A12.17, C58: the challenge of a server reaches the client, and nothing is remembered of it.
#[tokio::test(start_paused = true)]
async fn a12_17_a_challenge_in_the_hidden_discover() {
    for status in [401, 403] {
        let base = ModernServer::full();
        let good = base.clone();
        let server = base.on("server/discover", move |seen, reply: Reply| {
            let good = good.clone();
            async move {
                if seen.header("authorization").as_deref() == Some("Bearer good") {
                    return good.answer(seen, reply).await;
                }
                reply.with("WWW-Authenticate", "Bearer x=\"y\"").empty(status).await;
            }
        });
        let stage = Stage::before(server).await;
        let done = stage.proxy.send(&Old::initialize(LATEST)).await;
        assert_eq!(done.status, status);
        assert_eq!(done.headers.get("www-authenticate").as_deref(), Some("Bearer x=\"y\""));
        let user = stage.user_as("good").await;
        assert!(user.lives().await);
    }
}

/// A12.21: to a legacy client what goes wrong upstream is an answer.
#[tokio::test(start_paused = true)]
async fn a12_21_a_server_that_cannot_be_asked_now() {
    let net = Net::new();
    let up = ModernServer::full().start_bridged(&net);
    let proxy = std::sync::Arc::new(Proxy::start(&net).await);
    up.refuse();
    let done = proxy.send(&Old::initialize(LATEST).id("7")).await;
    done.is_answered_error(-32603);
    assert_eq!(done.headers.get("mcp-session-id"), None);
    up.restore();
    User::begin(&proxy, LATEST).await.list("tools/list").await;
}

/// C60: what a server offers is told to whom it offers it.
#[tokio::test(start_paused = true)]
async fn c60_the_offer_is_each_callers_own() {
    let server = ModernServer::full().on("server/discover", |seen, reply: Reply| async move {
        let logging = if seen.header("authorization").as_deref() == Some("Bearer alice") {
            r#","logging":{}"#
        } else {
            ""
        };
        reply
            .result(
                &seen,
                &format!(
                    r#"{{"resultType":"complete","ttlMs":60000,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}{logging}}},{SI}}}"#
                ),
            )
            .await;
    });
    let stage = Stage::before(server).await;
    for _ in 0..2 {
        for (token, has) in [("alice", true), ("bob", false)] {
            let done = stage.proxy.send(&Old::initialize(LATEST).bearer(token)).await;
            let logs = done.result()["capabilities"].get("logging").is_some();
            assert_eq!(logs, has, "{token}: {}", done.raw);
        }
        pass(1000).await;
    }
    // What is declared to it decides, too (A1.11).
    let (alice, bob) = (stage.user_as("alice").await, stage.user_as("bob").await);
    alice.level("error").await.result();
    bob.level("error").await.is_answered_error(-32601);
}

/// A modern client at the same endpoint is served as before.
#[tokio::test(start_paused = true)]
async fn both_eras_at_one_endpoint() {
    let net = Net::new();
    let up = ModernServer::full().start(&net);
    let proxy = std::sync::Arc::new(Proxy::start(&net).await);
    let user = User::begin(&proxy, LATEST).await;
    user.list("tools/list").await;
    let modern: Done = proxy.send(&crate::support::list("tools/list")).await;
    assert_eq!(modern.result()["resultType"], "complete");
    assert_eq!(up.posts("tools/list").len(), 2);
    assert!(up.requests().iter().all(|seen| seen.session().is_none()));
}

/// `interactive = false`: the server is told that its clients can be asked nothing.
#[tokio::test(start_paused = true)]
async fn b2_interactive_off_declares_nothing() {
    let calls = Calls::new();
    let server = calls.of_modern(ModernServer::full());
    let stage = Stage::build(server, calls, Listens::open(), "", "interactive = false").await;
    let user = stage.user_with(LATEST, everything(LATEST)).await;
    let stream = stage.asked(&user, &[("k", crate::stage::FORM)], Some(r#""s""#)).await;
    stream.tool_error().await;
    assert_eq!(stream.asked(), 0);
    assert_eq!(crate::stage::declares(&stage.calls.wait(1).await.seen), json!({}));
    stage.is_over(1).await;
}
