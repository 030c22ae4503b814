//! A11.1, A14.9, C14, C31, C53: what is no message on either side, and what goes out as one line.

use super::stage::{Host, INITIALIZED, echo, initialize, is_error, legacy, modern, modern_echo, text};
use super::support::{Calls, LegacyServer, ModernServer, Proxy, json, rpc};

/// Garbage is answered where the era has an answer to it, and what comes after it is served.
#[tokio::test(start_paused = true)]
async fn c53_garbage_on_standard_input() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let mut host = Host::launch(&proxy);
    let table: [(&[u8], i64); 12] = [
        (b"Starting...", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":", -32700),
        (b"\xff\xfe{}", -32700),
        (b"\0", -32700),
        (b"null", -32600),
        (b"42", -32600),
        (b"\"text\"", -32600),
        (b"{}", -32600),
        (b"{\"level\":\"info\"}", -32600),
        (b"[]", -32600),
        (b"[1,2]", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"method\":\"ping\"}", -32600),
    ];
    for (line, code) in table {
        host.write(&[line, b"\n"].concat()).await;
        let told = host.next().await;
        is_error(&told, code);
        assert!(told.get("id").is_none(), "the revision has no `null` there: {told}");
    }
    host.write(b"\n\r\n   \n\t\n").await;
    host.write(format!("  {}  \r\n", modern("1", "tools/list", "")).as_bytes()).await;
    host.answer("1").await["result"].as_object().unwrap();
    host.quiet(1000).await;
    assert_eq!(up.posts("tools/list").len(), 1);
    assert_eq!(host.end().await, "Drained");
}

/// With an id that can be read it is that id's error.
#[tokio::test(start_paused = true)]
async fn a11_2_a_malformed_request_is_refused_under_its_id() {
    let (proxy, up) = Proxy::before(&LegacyServer::new()).await;
    let mut host = Host::launch(&proxy);
    let table = [
        (r#"{"id":1,"method":"tools/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
    ];
    for (line, code) in table {
        host.say(line).await;
        is_error(&host.answer("1").await, code);
    }
    // What is wrong with a modern request is what is wrong with it over HTTP, as far as there is no header in it.
    let version = |version: &str| modern("1", "tools/list", "").replace("\"2026-07-28\"", version);
    let table = [
        (version("\"2027-01-01\""), -32022),
        (version("\"2025-11-25\""), -32022),
        (version("\"2026-07-28\\n\""), -32022),
        (version("7"), -32602),
        (modern("1", "tools/call", ""), -32602),
        (modern("1", "tools/call", r#""name":5"#), -32602),
        (modern("1", "ping", ""), -32601),
        (modern("1", "initialize", ""), -32601),
        (modern("1", "resources/subscribe", r#""uri":"file:///x""#), -32601),
        (modern("1", "tools/call", r#""name":"a","name":"b""#), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#.to_owned(), -32602),
    ];
    for (line, code) in table {
        host.say(&line).await;
        let told = host.answer("1").await;
        is_error(&told, code);
        if code == -32022 {
            assert_eq!(told["error"]["data"]["supported"], json!(["2026-07-28"]));
        }
    }
    assert!(up.posts("tools/call").is_empty() && up.posts("tools/list").is_empty());
}

/// A13.2: names that no header could hold as they are.
#[tokio::test(start_paused = true)]
async fn a13_2_names_of_any_kind() {
    for name in ["世界", " padded ", "a\\nb", "=?base64?x?=", "", "\\u0041"] {
        let (proxy, up) = Proxy::before_modern(&ModernServer::new()).await;
        let mut host = Host::launch(&proxy);
        host.say(&modern("1", "tools/call", &format!(r#""name":"{name}""#))).await;
        text(&host.answer("1").await);
        assert!(up.only("tools/call").text().contains(&format!(r#""name":"{name}""#)));
    }
}

/// A line beyond the bound is refused under its id, and the next one is read.
#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long() {
    let (net, server) = (super::support::Net::new(), LegacyServer::new());
    let up = server.start(&net);
    let toml = "[limits]\nbody_bytes = \"2KiB\"\n[upstream.up]\nurl = \"http://up.test/mcp\"\n";
    let proxy = Proxy::configured(&net, toml).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    let long = "x".repeat(200_000);
    host.say(&echo("1", &format!(r#"{{"x":"{long}"}}"#))).await;
    is_error(&host.answer("1").await, -32600);
    host.say(&format!(
        r#"{{"method":"tools/call","params":{{"name":"{long}"}},"jsonrpc":"2.0","id":"last"}}"#
    ))
    .await;
    is_error(&host.answer("\"last\"").await, -32600);
    // The answer to a question is nobody's request.
    host.say(&format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"x":"{long}"}}}}"#)).await;
    let told = host.next().await;
    assert!(told.get("id").is_none(), "{told}");
    host.say(&echo("3", "{}")).await;
    text(&host.answer("3").await);
    assert_eq!(up.posts("tools/call").len(), 1);
}

/// C14, C53: one line a message, whatever the server wrote between its tokens; U+2028 and its like are text.
#[tokio::test(start_paused = true)]
async fn c53_one_line_a_message() {
    let calls = Calls::new();
    for modern_server in [true, false] {
        let proxy = match modern_server {
            true => Proxy::before_modern(&calls.of_modern(ModernServer::new())).await.0,
            false => Proxy::before(&calls.of(LegacyServer::new())).await.0,
        };
        let mut host = match modern_server {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        let before = calls.all().len();
        let words = "a\u{2028}b\u{2029}c\u{85}d";
        let result = format!(
            "{{\n  \"content\": [\r\n {{\"type\":\"text\",\r\"text\":\"{words}\"}}],\n \"resultType\":\"complete\"}}"
        );
        host.say(&if modern_server { modern_echo("1", "{}") } else { echo("1", "{}") }).await;
        let call = calls.wait(before + 1).await;
        call.whole(200, &rpc::result_message("1", &result));
        assert_eq!(text(&host.answer("1").await), words);
    }
}

/// C31, D81: an array of a 2025-03-26 session is run and answered as one; to others each request in it is refused.
#[tokio::test(start_paused = true)]
async fn c31_arrays() {
    let array = format!(
        "[{},{},{}]",
        legacy("1", "ping", ""),
        legacy("\"1\"", "tools/list", ""),
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#
    );
    for (version, taken) in [("2025-03-26", true), ("2025-06-18", false), ("2025-11-25", false)] {
        let (proxy, up) = Proxy::before_modern(&ModernServer::new()).await;
        let mut host = Host::initialized(&proxy, version, "{}").await;
        host.say(&array).await;
        if taken {
            let answers = host.next_raw().await;
            let answers: Vec<super::support::Value> = serde_json::from_str(&answers).unwrap();
            assert_eq!(answers.len(), 2);
            assert!(answers.iter().all(|answer| answer["result"].is_object()), "{answers:?}");
        } else {
            is_error(&host.answer("1").await, -32600);
            is_error(&host.answer("\"1\"").await, -32600);
            assert!(up.posts("tools/list").is_empty());
        }
        host.say(&legacy("2", "ping", "")).await;
        assert_eq!(host.answer("2").await["result"], json!({}), "{version}");
    }
}

/// C31: without a session, and in the modern era, there are none.
#[tokio::test(start_paused = true)]
async fn c31_arrays_outside_a_session() {
    let (proxy, up) = Proxy::before_modern(&ModernServer::new()).await;
    let mut host = Host::launch(&proxy);
    host.say(&format!("[{}]", modern("1", "tools/list", ""))).await;
    is_error(&host.answer("1").await, -32600);
    host.say(&format!("[{},{INITIALIZED}]", initialize("2", "2025-03-26", "{}"))).await;
    is_error(&host.answer("2").await, -32600);
    host.quiet(1000).await;
    assert!(up.briefs().is_empty(), "{:?}", up.briefs());
}

/// C31: a server's array of one is the answer in it.
#[tokio::test(start_paused = true)]
async fn c31_a_server_that_answers_with_an_array() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before(&calls.of(LegacyServer::new().version("2025-03-26"))).await;
    let mut host = Host::initialized(&proxy, "2025-03-26", "{}").await;
    host.say(&echo("1", "{}")).await;
    let call = calls.wait(1).await;
    let answer = rpc::result_message("1", r#"{"content":[{"type":"text","text":"in it"}]}"#);
    call.whole(200, &format!("[{answer}]"));
    assert_eq!(text(&host.answer("1").await), "in it");
}

/// C20: an id in an array that is under way, or that stands twice in it: nothing of the array runs, and each is told so under an
/// id of its own.
#[tokio::test(start_paused = true)]
async fn c20_an_id_under_way_in_an_array() {
    let calls = Calls::new();
    let (proxy, up) = Proxy::before(&calls.of(LegacyServer::new().version("2025-03-26"))).await;
    let mut host = Host::initialized(&proxy, "2025-03-26", "{}").await;
    host.say(&echo("1", "{}")).await;
    let call = calls.wait(1).await;
    host.say(&format!("[{},{}]", echo("1", "{}"), echo("2", "{}"))).await;
    is_error(&host.answer("2").await, -32600);
    host.say(&format!("[{0},{0}]", echo("3", "{}"))).await;
    is_error(&host.answer("3").await, -32600);
    call.finish("first");
    assert_eq!(text(&host.answer("1").await), "first");
    host.quiet(1000).await;
    assert_eq!(up.requests().iter().filter(|seen| seen.brief() == "response").count(), 0);
}

/// 401 and 403 without a word: the host is told what may help, whoever brings the credential.
#[tokio::test(start_paused = true)]
async fn a_refusal_for_want_of_a_credential_is_told_in_words() {
    for status in [401, 403] {
        let refuse = move |_seen, reply: super::support::Reply| async move { reply.empty(status).await };
        let (proxy, _up) = Proxy::before(&LegacyServer::new().on("tools/call", refuse)).await;
        let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
        host.say(&echo("1", "{}")).await;
        let told = host.answer("1").await;
        is_error(&told, -32603);
        let words = told["error"]["message"].as_str().unwrap();
        let expected = format!(
            "the upstream server wants a credential, or another one than it was given (HTTP status {status}): see `authorization` \
             in the settings"
        );
        assert_eq!(words, expected);
    }
}
