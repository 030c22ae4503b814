//! A14.2, A14.3, B17, C17, C18, C20: ids of requests that run side by side.

use super::stage::{Host, cancelled, echo, is_error, legacy, modern, modern_echo, text};
use super::support::{Calls, LegacyServer, ModernServer, Proxy, rpc};

/// C20, D17: ids `1` and `"1"` at once, answered the other way round.
#[tokio::test(start_paused = true)]
async fn one_as_a_number_and_as_a_text() {
    for (modern_host, modern_server) in [(true, true), (true, false), (false, true), (false, false)] {
        let calls = Calls::new();
        let proxy = match modern_server {
            true => Proxy::before_modern(&calls.of_modern(ModernServer::new())).await.0,
            false => Proxy::before(&calls.of(LegacyServer::new())).await.0,
        };
        let context = format!("host modern: {modern_host}, server modern: {modern_server}");
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        for (id, n) in [("1", 1), ("\"1\"", 2)] {
            let arguments = format!(r#"{{"n":{n}}}"#);
            host.say(&if modern_host { modern_echo(id, &arguments) } else { echo(id, &arguments) }).await;
        }
        for n in [2, 1] {
            let call = calls.marked(n).await;
            match modern_server {
                true => call.completes(&format!("n{n}")),
                false => call.finish(&format!("n{n}")),
            }
        }
        assert_eq!(text(&host.answer("1").await), "n1", "{context}");
        assert_eq!(text(&host.answer("\"1\"").await), "n2", "{context}");
        host.quiet(1000).await;
    }
}

/// C18: every id comes back as it was, on every path.
#[tokio::test(start_paused = true)]
async fn c18_ids_come_back_as_they_were() {
    let long = format!("\"{}\"", "x".repeat(200));
    let ids = ["\"1\"", "\"init-1\"", "\"\"", "\"0\"", "0", "-1", &long];
    let (proxy, _up) = Proxy::before(&LegacyServer::new()).await;
    let mut host = Host::launch(&proxy);
    for id in ids {
        host.say(&modern(id, "tools/list", "")).await;
        host.answer(id).await["result"].as_object().unwrap();
        host.say(&modern(id, "acme/unknown", "")).await;
        is_error(&host.answer(id).await, -32601);
        host.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"server/discover","params":{{}}}}"#)).await;
        is_error(&host.answer(id).await, -32602);
        host.say(&legacy(id, "tools/list", "")).await;
        is_error(&host.answer(id).await, -32600);
        host.say(&format!(r#"{{"id":{id},"method":"tools/list"}}"#)).await;
        is_error(&host.answer(id).await, -32600);
    }
}

/// C20: an id that is under way is refused, and not under that id, which is the first one's. Afterwards it is free.
#[tokio::test(start_paused = true)]
async fn c20_an_id_under_way_is_refused() {
    for modern_host in [true, false] {
        let calls = Calls::new();
        let (proxy, up) = Proxy::before(&calls.of(LegacyServer::new())).await;
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        let ask = |n: u8| {
            let arguments = format!(r#"{{"n":{n}}}"#);
            if modern_host { modern_echo("5", &arguments) } else { echo("5", &arguments) }
        };
        host.say(&ask(1)).await;
        let call = calls.wait(1).await;
        host.say(&ask(2)).await;
        let told = host.next().await;
        is_error(&told, -32600);
        assert!(told.get("id").is_none(), "the host would take it for the answer to the first: {told}");
        call.finish("first");
        assert_eq!(text(&host.answer("5").await), "first");
        host.say(&ask(3)).await;
        calls.wait(2).await.finish("third");
        assert_eq!(text(&host.answer("5").await), "third");
        assert_eq!(up.posts("tools/call").len(), 2);
    }
}

/// The same where the revision has no error without an id; and once the first one was cancelled, when it can be told.
#[tokio::test(start_paused = true)]
async fn c20_an_id_under_way_in_an_older_revision_and_after_a_cancellation() {
    let calls = Calls::new();
    let server = calls.of(LegacyServer::new().version("2025-06-18"));
    let (proxy, up) = Proxy::before(&server).await;
    let mut host = Host::initialized(&proxy, "2025-06-18", "{}").await;
    host.say(&echo("5", "{}")).await;
    let call = calls.wait(1).await;
    host.say(&echo("5", "{}")).await;
    host.quiet(1000).await;
    host.say(&cancelled("5")).await;
    up.wait("notifications/cancelled", 1).await;
    host.say(&echo("5", "{}")).await;
    is_error(&host.answer("5").await, -32600);
    call.finish("too late");
    host.quiet(1000).await;
    assert_eq!(up.posts("tools/call").len(), 1);
}

/// An id that the server spells otherwise is the same id, and the host gets it back as it wrote it.
#[tokio::test(start_paused = true)]
async fn an_id_that_is_spelled_otherwise() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before(&calls.of(LegacyServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    for (at, (ours, theirs)) in
        [(r#""a\/b""#, r#""a/b""#), (r#""\u0061""#, r#""a""#), (r#""é""#, r#""\u00e9""#)]
            .into_iter()
            .enumerate()
    {
        host.say(&echo(ours, "{}")).await;
        let call = calls.wait(at + 1).await;
        call.event(&rpc::result_message(theirs, r#"{"content":[{"type":"text","text":"x"}]}"#));
        call.end();
        let answer = host.next_raw().await;
        assert!(answer.contains(&format!(r#""id":{ours}"#)) && answer.contains("content"), "{answer}");
    }
}

/// What is malformed is not answered under an id that waits for something else.
#[tokio::test(start_paused = true)]
async fn a_malformed_text_does_not_answer_what_runs() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before(&calls.of(LegacyServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("5", "{}")).await;
    let call = calls.wait(1).await;
    host.say(r#"{"jsonrpc":"2.0","id":5,"result":"no object"}"#).await;
    let told = host.next().await;
    is_error(&told, -32600);
    assert!(told.get("id").is_none(), "{told}");
    call.finish("all the same");
    assert_eq!(text(&host.answer("5").await), "all the same");
}

/// C17: a server that writes the id in the other JSON type, or an error without one, has answered the one request of its POST.
/// An answer to another is nobody's.
#[tokio::test(start_paused = true)]
async fn c17_an_answer_is_given_the_id_of_its_request() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before(&calls.of(LegacyServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    let table = [
        ("7", rpc::result_message("\"7\"", r#"{"content":[{"type":"text","text":"x"}]}"#)),
        ("8", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"x"}}"#.to_owned()),
        ("\"9\"", r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"x"}}"#.to_owned()),
    ];
    for (at, (id, answer)) in table.iter().enumerate() {
        host.say(&echo(id, "{}")).await;
        let call = calls.wait(at + 1).await;
        call.event(&rpc::result_message("4711", "{}"));
        call.event(answer);
        call.end();
        let got = host.answer(id).await;
        assert!(got["result"].is_object() || got["error"]["code"] == -32001, "{got}");
    }
    host.quiet(5000).await;
}
