//! A7, A9.2, A9.3, A11.1, A11.12, A12.11, A12.16: members that one revision has and another has not, and requests that HTTP or
//! JSON-RPC refuse.

use crate::stage::{LATEST, REVISIONS, Stage, parse};
use crate::support::{ModernServer, Old};

/// A7.1 to A7.5, A7.7: whatever is said of prompts, resources and templates is an open object: it stays.
#[tokio::test(start_paused = true)]
async fn a7_members_of_later_revisions_are_kept() {
    let table = [
        (
            "prompts/list",
            r#""prompts":[{"name":"p","title":"P","description":"\u0041","arguments":[{"name":"a","title":"A","required":true}],"_meta":{"k":1}}]"#,
        ),
        (
            "resources/list",
            r#""resources":[{"uri":"file:///x","name":"x","title":"X","size":150,"annotations":{"lastModified":"2026-01-01T00:00:00Z","priority":0.50},"_meta":{"k":1}}]"#,
        ),
        (
            "resources/templates/list",
            r#""resourceTemplates":[{"uriTemplate":"file:///{p}","name":"t","title":"T","mimeType":"text/plain"}]"#,
        ),
        (
            "resources/read",
            r#""contents":[{"uri":"file:///x","text":"\u0041","mimeType":"text/plain","_meta":{"k":1.50}}]"#,
        ),
        ("completion/complete", r#""completion":{"values":["a"],"total":150,"hasMore":true}"#),
    ];
    for (method, members) in table {
        let stage = Stage::before(ModernServer::full().completes(method, members)).await;
        for revision in REVISIONS {
            let user = stage.user(revision).await;
            let params = match method {
                "resources/read" => r#""uri":"file:///x""#,
                "completion/complete" => {
                    r#""ref":{"type":"ref/resource","uri":"file:///{p}"},"argument":{"name":"p","value":""}"#
                }
                _ => "",
            };
            let done = user.send(&user.old.ask(method).params(params)).await;
            assert_eq!(*done.result(), parse(&format!("{{{members}}}")), "{revision} {method}");
            assert!(done.raw.contains(members), "{revision} {method}: to the byte: {}", done.raw);
        }
    }
}

/// A9.2, A9.3: who the server is, in all that it says.
#[tokio::test(start_paused = true)]
async fn a9_2_everything_that_a_server_says_of_itself() {
    let info = r#"{"name":"n","version":"1.50","title":"T","description":"d","websiteUrl":"https://x.test","icons":[{"src":"https://x.test/i.png"}]}"#;
    let discover = format!(
        r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{{}},"_meta":{{"io.modelcontextprotocol/serverInfo":{info},"k":1}}}}"#
    );
    let stage = Stage::before(ModernServer::full().result("server/discover", &discover)).await;
    let done = stage.proxy.send(&Old::initialize(LATEST)).await;
    assert_eq!(done.result()["serverInfo"], parse(info));
    for revision in &REVISIONS[1..] {
        let done = stage.proxy.send(&Old::initialize(revision)).await;
        let shown = &done.result()["serverInfo"];
        assert_eq!((&shown["name"], &shown["title"]), (&parse("\"n\""), &parse("\"T\"")), "{revision}");
    }
}

/// A11.12: codes that a modern server makes of the reserved range are its own affair: they pass.
#[tokio::test(start_paused = true)]
async fn a11_12_reserved_codes_pass() {
    for code in [-32050, -32099, -32023] {
        let error = format!(r#"{{"code":{code},"message":"m","data":[1.50]}}"#);
        let stage = Stage::before(ModernServer::full().fails("prompts/list", 200, &error)).await;
        let user = stage.latest().await;
        let done = user.send(&user.old.ask("prompts/list")).await;
        done.is_answered_error(code);
        assert!(done.raw.contains(&error), "{}", done.raw);
    }
}

/// A11.1, A12.11, A12.16, C61: what is refused before anything is done for it, with every verb.
#[tokio::test(start_paused = true)]
async fn a12_11_what_is_no_request_here() {
    let stage = Stage::before(ModernServer::full()).await;
    let user = stage.latest().await;
    let evil = |ask: crate::support::Ask| ask.header("Origin", "https://evil.example");
    for ask in [user.old.ask("tools/list"), user.old.get(), user.old.delete(), user.old.answer("1", "{}")] {
        let done = stage.unmoved(stage.proxy.send(&evil(ask))).await;
        assert_eq!(done.status, 403, "{}", done.raw);
    }
    assert_eq!(stage.proxy.send(&evil(Old::initialize(LATEST))).await.status, 403);
    let text = user.old.ask("tools/list").header("Content-Type", "text/plain");
    assert_eq!(stage.unmoved(stage.proxy.send(&text)).await.status, 415);
    for body in ["{", "", "nonsense", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list""#] {
        let done = stage.unmoved(stage.proxy.send(&user.old.raw(body))).await;
        assert_eq!((done.status, done.code()), (400, -32700), "{body}: {}", done.raw);
    }
    for body in [
        r#"{"id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
    ] {
        let done = stage.proxy.send(&user.old.raw(body)).await;
        assert_eq!(stage.briefs(), [] as [&str; 0], "{body}: {}", done.raw);
        let refused = (done.status, done.message["error"]["code"].as_i64());
        assert!(
            [(400, Some(-32600)), (200, Some(-32602)), (200, Some(-32600))].contains(&refused),
            "{body}: {} {}",
            done.status,
            done.raw
        );
    }
    let other = stage.latest().await;
    let two = user.old.ask("tools/list").add_header("Mcp-Session-Id", other.session().as_bytes());
    let done = stage.unmoved(stage.proxy.send(&two)).await;
    assert!([400, 404].contains(&done.status), "two sessions: {}", done.status);
    assert!(user.lives().await);
}
