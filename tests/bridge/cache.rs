//! A4.11, A4.14, B6.6, B9.5, C60: lists of a modern server that may be kept (`cache_lists`), and for whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::stage::{LATEST, Stage};
use crate::support::{Listens, ModernServer, Reply, User, Value, modern, pass};

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

fn item(name: &str, n: &str) -> String {
    match name {
        "tools" => format!(r#"{{"name":"{n}","inputSchema":{{"type":"object"}}}}"#),
        "prompts" => format!(r#"{{"name":"{n}"}}"#),
        "resources" => format!(r#"{{"uri":"file:///{n}","name":"{n}"}}"#),
        _ => format!(r#"{{"uriTemplate":"file:///{n}/{{x}}","name":"{n}"}}"#),
    }
}

/// A server whose lists name who asked, in which order, and with which cursor.
fn server(ttl: &'static str, scope: &'static str) -> ModernServer {
    let count = Arc::new(AtomicUsize::new(0));
    LISTS.into_iter().fold(ModernServer::full(), |server, (method, name)| {
        let count = count.clone();
        server.on(method, move |seen, reply: Reply| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            let who = seen.header("authorization").unwrap_or_default().replace("Bearer ", "");
            let cursor = seen.json()["params"]["cursor"].as_str().unwrap_or("-").to_owned();
            let item = item(name, &format!("{who}.{cursor}.{n}"));
            let keep = [ttl, scope].into_iter().filter(|part| !part.is_empty());
            let keep: String = keep.map(|part| format!("{part},")).collect();
            let result = format!(r#"{{"resultType":"complete",{keep}"{name}":[{item}],{}}}"#, modern::SI);
            async move { reply.result(&seen, &result).await }
        })
    })
}

async fn stage(ttl: &'static str, scope: &'static str) -> Stage {
    Stage::before_with(server(ttl, scope), "cache_lists = true").await
}

const MINUTE: &str = r#""ttlMs":60000"#;
const PRIVATE: &str = r#""cacheScope":"private""#;
const PUBLIC: &str = r#""cacheScope":"public""#;

fn hits(stage: &Stage) -> f64 {
    stage.metric("mcp_janus_list_cache_total", &["hit"])
}

async fn twice(user: &User, method: &str) -> (Value, Value) {
    let first = user.list(method).await;
    pass(1000).await;
    (first, user.list(method).await)
}

#[tokio::test(start_paused = true)]
async fn a_list_is_kept_for_as_long_as_it_says() {
    for (method, _) in LISTS {
        let stage = stage(MINUTE, PRIVATE).await;
        let user = stage.latest().await;
        let (first, second) = twice(&user, method).await;
        assert_eq!(first, second, "{method}");
        assert_eq!((stage.up.posts(method).len(), hits(&stage)), (1, 1.0), "{method}");
        // Under its own id, in every session of the caller.
        let other = stage.latest().await;
        let done = other.send(&other.old.ask(method).id("\"x\"")).await;
        assert_eq!((done.result(), &done.message["id"]), (&first, &Value::from("x")), "{method}");
        pass(61_000).await;
        assert_ne!(user.list(method).await, first, "{method}");
        assert_eq!(stage.up.posts(method).len(), 2, "{method}");
    }
}

/// Off unless it is asked for.
#[tokio::test(start_paused = true)]
async fn nothing_is_kept_by_default() {
    for (method, _) in LISTS {
        let stage = Stage::before(server(MINUTE, PUBLIC)).await;
        let user = stage.latest().await;
        let (first, second) = twice(&user, method).await;
        assert_ne!(first, second, "{method}");
    }
}

/// A4.11: without a time to live, or with one that is none, nothing is kept.
#[tokio::test(start_paused = true)]
async fn a4_11_what_must_not_be_kept() {
    for ttl in ["", r#""ttlMs":0"#, r#""ttlMs":-5"#, r#""ttlMs":"60000""#, r#""ttlMs":null"#] {
        let stage = stage(ttl, PUBLIC).await;
        let user = stage.latest().await;
        let (first, second) = twice(&user, "tools/list").await;
        assert_ne!(first, second, "{ttl}");
        assert_eq!(hits(&stage), 0.0);
    }
}

/// C60: what is one caller's is nobody else's; an absent scope is private.
#[tokio::test(start_paused = true)]
async fn c60_private_lists_are_each_callers_own() {
    for scope in [PRIVATE, "", r#""cacheScope":"shared""#] {
        let stage = stage(MINUTE, scope).await;
        let (alice, bob, nobody) =
            (stage.user_as("alice").await, stage.user_as("bob").await, stage.latest().await);
        for _ in 0..3 {
            for (user, name) in [(&alice, "alice."), (&bob, "bob."), (&nobody, ".-")] {
                let list = user.list("tools/list").await;
                let shown = list["tools"][0]["name"].as_str().unwrap();
                assert!(shown.starts_with(name), "{scope}: {shown} to {name}");
            }
        }
        assert_eq!(stage.up.posts("tools/list").len(), 3, "{scope}");
    }
}

/// A public list may be anybody's who is let in; whoever is not is not shown it.
#[tokio::test(start_paused = true)]
async fn c60_public_lists_are_for_those_who_are_let_in() {
    let server = server(MINUTE, PUBLIC).guarded(|token| token != "bad");
    let stage = Stage::before_with(server, "cache_lists = true").await;
    let (alice, bob) = (stage.user_as("alice").await, stage.user_as("bob").await);
    alice.list("tools/list").await;
    bob.list("tools/list").await;
    alice.list("tools/list").await;
    assert!(stage.up.posts("tools/list").len() <= 2);
    let done = stage.proxy.send(&alice.with_token("bad").old.ask("tools/list")).await;
    assert!([401, 404].contains(&done.status), "{} {}", done.status, done.raw);
    assert!(!done.raw.contains("tools"), "{}", done.raw);
}

/// The parameters are part of what is asked for.
#[tokio::test(start_paused = true)]
async fn cursors_are_kept_apart() {
    let stage = stage(MINUTE, PRIVATE).await;
    let user = stage.latest().await;
    let page = async |cursor: &str| {
        let ask = user.old.ask("tools/list").params(&format!(r#""cursor":"{cursor}""#));
        user.send(&ask).await.result()["tools"][0]["name"].as_str().unwrap().to_owned()
    };
    let plain = user.list("tools/list").await["tools"][0]["name"].as_str().unwrap().to_owned();
    let (a, b, empty) = (page("a").await, page("b").await, page("").await);
    assert!(a.contains(".a.") && b.contains(".b.") && empty.contains("..") && plain.contains(".-."));
    assert_eq!((page("a").await, page("b").await, page("").await), (a, b, empty));
    // Members that nobody knows may be meant for the server.
    let odd = user.old.ask("tools/list").params(r#""x-own":1"#);
    let other = user.send(&odd).await.result()["tools"][0]["name"].as_str().unwrap().to_owned();
    assert_ne!(other, plain);
}

/// B9.5: a change of a list is the end of what was kept of it, with or without a client that listens.
#[tokio::test(start_paused = true)]
async fn b9_5_changes_end_it() {
    let calls = crate::support::Calls::new();
    let stage = Stage::build(server(MINUTE, PRIVATE), calls, Listens::open(), "", "cache_lists = true").await;
    let user = stage.latest().await;
    stage.listens.wait(1).await;
    pass(1000).await;
    let tools = user.list("tools/list").await;
    let prompts = user.list("prompts/list").await;
    stage.listens.tell("tools");
    pass(1000).await;
    assert_ne!(user.list("tools/list").await, tools);
    assert_eq!(user.list("prompts/list").await, prompts, "another list");
    // After a gap nobody knows what has changed.
    let tools = user.list("tools/list").await;
    stage.listens.standing()[0].cut();
    stage.listens.wait(2).await;
    pass(2000).await;
    assert_ne!(user.list("tools/list").await, tools);
}

/// What a client gets of a kept list is in the words of its revision.
#[tokio::test(start_paused = true)]
async fn each_revision_gets_its_own_words() {
    let tool = r#"{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}"#;
    let server = ModernServer::full()
        .result("tools/list", &modern::kept(&format!(r#""tools":[{tool}]"#), 60_000, "public"));
    let stage = Stage::before_with(server, "cache_lists = true").await;
    for _ in 0..2 {
        for revision in crate::stage::REVISIONS {
            let user = stage.user(revision).await;
            let shown = user.list("tools/list").await["tools"][0].get("outputSchema").cloned();
            assert_eq!(shown.is_some(), revision >= "2025-06-18", "{revision}");
        }
    }
    assert!(hits(&stage) >= 4.0, "{}", hits(&stage));
}

/// `limits.cache_bytes` bounds it; what does not fit is asked for.
#[tokio::test(start_paused = true)]
async fn inv5_what_is_kept_is_bounded() {
    let long = "x".repeat(3000);
    let server = ModernServer::full().on("tools/list", move |seen, reply: Reply| {
        let cursor = seen.json()["params"]["cursor"].as_str().unwrap_or("-").to_owned();
        let tool =
            format!(r#"{{"name":"{cursor}","description":"{long}","inputSchema":{{"type":"object"}}}}"#);
        let result = modern::kept(&format!(r#""tools":[{tool}]"#), 600_000, "private");
        async move { reply.result(&seen, &result).await }
    });
    let stage = Stage::before_with(server, "cache_lists = true\nlimits.cache_bytes = \"10KiB\"").await;
    let user = stage.latest().await;
    for n in 0..50 {
        let ask = user.old.ask("tools/list").params(&format!(r#""cursor":"{n}""#));
        user.send(&ask).await.result();
        assert!(stage.metric("mcp_janus_list_cache_bytes", &[]) <= 10_240.0);
    }
    assert_eq!(stage.up.posts("tools/list").len(), 50);
}

/// Errors, and what is no list, are never kept.
#[tokio::test(start_paused = true)]
async fn errors_are_not_kept() {
    let count = Arc::new(AtomicUsize::new(0));
    let server = ModernServer::full()
        .result("resources/read", &modern::kept(r#""contents":[]"#, 60_000, "public"))
        .on("tools/list", move |seen, reply: Reply| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            async move {
                if n == 0 {
                    return reply.error(200, &seen, r#"{"code":-32000,"message":"not now"}"#).await;
                }
                reply.result(&seen, &modern::kept(r#""tools":[]"#, 60_000, "private")).await;
            }
        });
    let stage = Stage::before_with(server, "cache_lists = true").await;
    let user = stage.user(LATEST).await;
    user.send(&user.old.ask("tools/list")).await.is_answered_error(-32000);
    user.list("tools/list").await;
    for _ in 0..2 {
        user.send(&user.old.ask("resources/read").params(r#""uri":"file:///x""#)).await.result();
    }
    assert_eq!(stage.up.posts("resources/read").len(), 2, "a resource is no list");
}
