//! A2.3, A2.4, A12.20, C13, C16, D18, D93, D104: what comes before an answer, and answers that come in their own way.

use super::stage::{Host, echo, is_error, modern_echo, modern_with, text};
use super::support::{Begin, Calls, Gets, LegacyServer, ModernServer, Net, Proxy, Value, json, pass, rpc};

fn progress_of(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","_meta":{{"progressToken":"t{id}"}}}}}}"#
    )
}

/// Progress of two calls, each under the host's own token; keep-alive comments are nothing.
#[tokio::test(start_paused = true)]
async fn a2_3_progress_comes_before_the_answer() {
    for (modern_host, modern_server) in [(true, true), (true, false), (false, true), (false, false)] {
        let calls = Calls::new();
        let proxy = match modern_server {
            true => Proxy::before_modern(&calls.of_modern(ModernServer::new())).await.0,
            false => Proxy::before(&calls.of(LegacyServer::new())).await.0,
        };
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        for id in ["1", "2"] {
            let ask = match modern_host {
                true => modern_with(id, "tools/call", "{}", r#""name":"echo""#)
                    .replace(r#""_meta":{"#, &format!(r#""_meta":{{"progressToken":"t{id}","#)),
                false => progress_of(id),
            };
            host.say(&ask).await;
        }
        let (first, second) = (calls.wait(1).await, calls.wait(2).await);
        for (call, step) in [(&first, 1), (&second, 1), (&first, 2)] {
            call.progress(step);
            host.told("notifications/progress").await;
            pass(100_000).await;
        }
        for call in [&second, &first] {
            match modern_server {
                true => call.completes("done"),
                false => call.finish("done"),
            }
        }
        for id in ["1", "2"] {
            text(&host.answer(id).await);
        }
        let told: Vec<_> =
            host.heard.iter().filter(|told| told["method"] == "notifications/progress").collect();
        let of = |token: &str| told.iter().filter(|told| told["params"]["progressToken"] == token).count();
        let mut both = [of("t1"), of("t2")];
        both.sort_unstable();
        assert_eq!(both, [1, 2], "{told:?}");
        host.quiet(1000).await;
    }
}

/// C13: priming events, pings, comments and events of other names carry no message.
#[tokio::test(start_paused = true)]
async fn c13_events_without_a_message() {
    let calls = Calls::new();
    for modern_host in [true, false] {
        let proxy = match modern_host {
            true => Proxy::before_modern(&calls.of_modern(ModernServer::new())).await.0,
            false => Proxy::before(&calls.of(LegacyServer::new())).await.0,
        };
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        let before = calls.all().len();
        host.say(&if modern_host { modern_echo("1", "{}") } else { echo("1", "{}") }).await;
        let call = calls.wait(before + 1).await;
        call.bytes(
            b"id: s:0\nretry: 1000\ndata: \n\n: keepalive\n\nevent: ping\ndata: 2026\n\ndata: junk\n\n",
        );
        pass(1000).await;
        let error = rpc::error_message("1", r#"{"code":-32001,"message":"in an error event"}"#);
        call.bytes(format!("event: error\ndata: {error}\n\n").as_bytes());
        call.end();
        assert_eq!(host.answer("1").await["error"]["code"], -32001);
        host.quiet(5000).await;
    }
}

/// A large result comes whole, whichever way it came.
#[tokio::test(start_paused = true)]
async fn a_large_result_is_one_line() {
    let large = "y".repeat(3_000_000);
    let result = format!(r#"{{"content":[{{"type":"text","text":"{large}"}}],"resultType":"complete"}}"#);
    for (modern_host, modern_server) in [(true, true), (true, false), (false, true), (false, false)] {
        for streamed in [true, false] {
            let calls = Calls::new();
            let proxy = match modern_server {
                true => Proxy::before_modern(&calls.of_modern(ModernServer::new())).await.0,
                false => Proxy::before(&calls.of(LegacyServer::new())).await.0,
            };
            let mut host = match modern_host {
                true => Host::launch(&proxy),
                false => Host::initialized(&proxy, "2025-11-25", "{}").await,
            };
            host.say(&if modern_host { modern_echo("1", "{}") } else { echo("1", "{}") }).await;
            let call = calls.wait(1).await;
            match streamed {
                true => call.result(&result),
                false => call.whole_result(&result),
            }
            assert_eq!(text(&host.answer("1").await).len(), large.len());
        }
    }
}

/// One that is larger than may be held is an error under its id, and nothing else suffers.
#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large() {
    let large = "y".repeat(300_000);
    let result = format!(r#"{{"content":[{{"type":"text","text":"{large}"}}],"resultType":"complete"}}"#);
    for (modern_host, modern_server) in [(true, true), (true, false), (false, true), (false, false)] {
        for streamed in [true, false] {
            let (net, calls) = (Net::new(), Calls::new());
            match modern_server {
                true => calls.of_modern(ModernServer::new()).start(&net),
                false => calls.of(LegacyServer::new()).start(&net),
            };
            let lines = "[upstream.up.limits]\nmessage_bytes = \"100KiB\"\nflow_bytes = \"10KiB\"\n";
            let proxy = Proxy::with(&net, lines).await;
            let mut host = match modern_host {
                true => Host::launch(&proxy),
                false => Host::initialized(&proxy, "2025-11-25", "{}").await,
            };
            let call = |id: &str, n: u8| {
                let arguments = format!(r#"{{"n":{n}}}"#);
                if modern_host { modern_echo(id, &arguments) } else { echo(id, &arguments) }
            };
            host.say(&call("1", 1)).await;
            host.say(&call("2", 2)).await;
            let (first, second) = (calls.marked(1).await, calls.marked(2).await);
            match streamed {
                true => first.result(&result),
                false => first.whole_result(&result),
            }
            let context = format!("{modern_host} {modern_server} {streamed}");
            let told = host.answer("1").await;
            assert_eq!(told["error"]["code"], -32603, "{context}: {told}");
            match modern_server {
                true => second.completes("second"),
                false => second.finish("second"),
            }
            assert_eq!(text(&host.answer("2").await), "second", "{context}");
        }
    }
}

/// D104: an answer that breaks off is an error under its id, and the call is not sent again.
#[tokio::test(start_paused = true)]
async fn d104_an_answer_that_breaks_off() {
    for (modern_host, modern_server) in [(true, true), (true, false), (false, true), (false, false)] {
        let ways: [fn(&super::support::Call); 4] = [
            |call| call.reset(),
            |call| {
                call.head();
                call.cut();
            },
            |call| call.end(),
            |call| {
                call.json_head();
                call.bytes(br#"{"jsonrpc":"2.0","id":"#);
                call.cut();
            },
        ];
        for (at, way) in ways.into_iter().enumerate() {
            let calls = Calls::new();
            let (proxy, up) = match modern_server {
                true => Proxy::before_modern(&calls.of_modern(ModernServer::new())).await,
                false => Proxy::before(&calls.of(LegacyServer::new())).await,
            };
            let mut host = match modern_host {
                true => Host::launch(&proxy),
                false => Host::initialized(&proxy, "2025-11-25", "{}").await,
            };
            host.say(&if modern_host { modern_echo("1", "{}") } else { echo("1", "{}") }).await;
            way(&*calls.wait(1).await);
            let told = host.answer("1").await;
            assert_eq!(told["error"]["code"], -32603, "{modern_host} {modern_server} {at}: {told}");
            host.quiet(5000).await;
            assert_eq!(up.posts("tools/call").len(), 1);
        }
    }
}

/// D104, A13.5: a legacy server that closes an answer's stream on purpose is come back to, for either host.
#[tokio::test(start_paused = true)]
async fn d104_a_stream_that_is_closed_on_purpose() {
    for modern_host in [true, false] {
        let calls = Calls::new();
        let gets = Gets::script(|_| Begin::Open);
        let (proxy, up) = Proxy::before(&calls.of(gets.of(LegacyServer::new()))).await;
        let mut host = match modern_host {
            true => Host::launch(&proxy),
            false => Host::initialized(&proxy, "2025-11-25", "{}").await,
        };
        host.say(&if modern_host { modern_echo("1", "{}") } else { echo("1", "{}") }).await;
        let call = calls.wait(1).await;
        call.bytes(b"id: p0\nretry: 200\ndata: \n\n");
        call.end();
        let get = gets.after("p0").await;
        get.event(&rpc::result_message(
            &call.id().to_string(),
            r#"{"content":[{"type":"text","text":"back"}]}"#,
        ));
        assert_eq!(text(&host.answer("1").await), "back");
        assert_eq!(up.posts("tools/call").len(), 1);
        host.quiet(1000).await;
    }
}

/// The same where there is nothing to come back to.
#[tokio::test(start_paused = true)]
async fn d104_a_stream_that_cannot_be_taken_up_again() {
    for begin in [Begin::Empty(405), Begin::Empty(503), Begin::Cut] {
        let calls = Calls::new();
        let gets = Gets::script(move |_| begin.clone());
        let (proxy, _up) = Proxy::before(&calls.of(gets.of(LegacyServer::new()))).await;
        let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
        host.say(&echo("1", "{}")).await;
        let call = calls.wait(1).await;
        call.bytes(b"id: p0\ndata: \n\n");
        call.end();
        is_error(&host.answer("1").await, -32603);
    }
}

/// `session.poll` closes streams to clients that come back, which a host on a channel does.
#[tokio::test(start_paused = true)]
async fn streams_that_the_proxy_closes_itself() {
    let (net, calls) = (Net::new(), Calls::new());
    calls.of_modern(ModernServer::new()).start(&net);
    let proxy = Proxy::with(&net, "[upstream.up.session]\npoll = \"5s\"\n").await;
    let mut host = Host::initialized(&proxy, "2025-11-25", r#"{"elicitation":{}}"#).await;
    host.say(&progress_of("1")).await;
    let call = calls.wait(1).await;
    for step in 1..20 {
        pass(3000).await;
        call.progress(step);
        host.told("notifications/progress").await;
    }
    call.completes("after a minute");
    assert_eq!(text(&host.answer("1").await), "after a minute");
    host.quiet(1000).await;
}

/// Where the server cannot be reached at all, each request is told so.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there() {
    let net = Net::new();
    let proxy = Proxy::start(&net).await;
    let mut host = Host::launch(&proxy);
    host.say(&modern_echo("1", "{}")).await;
    is_error(&host.answer("1").await, -32603);
    host.say(&super::stage::initialize("2", "2025-11-25", "{}")).await;
    is_error(&host.answer("2").await, -32603);
    host.say(&echo("3", "{}")).await;
    is_error(&host.answer("3").await, -32600);
    let server = LegacyServer::new();
    server.start(&net);
    host.say(&super::stage::initialize("4", "2025-11-25", "{}")).await;
    assert_eq!(host.answer("4").await["result"]["serverInfo"]["name"], "old");
    host.quiet(1000).await;
}

/// A12.17: a credential that is wanted is an error in words, on the handshake and on a call.
#[tokio::test(start_paused = true)]
async fn a12_17_a_server_that_wants_a_credential() {
    let challenge = |_seen, reply: super::support::Reply| async move {
        reply.with("WWW-Authenticate", "Bearer").empty(401).await;
    };
    let (proxy, _up) = Proxy::before(&LegacyServer::new().on("tools/call", challenge)).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("1", "{}")).await;
    let told = host.answer("1").await;
    is_error(&told, -32603);
    let words = |told: &Value| told["error"]["message"].as_str().unwrap().to_owned();
    assert!(words(&told).contains("401"), "{told}");
    host.say(&modern_echo("2", "{}")).await;
    let told = host.answer("2").await;
    is_error(&told, -32603);
    assert!(words(&told).contains("401"), "{told}");
    assert_eq!(told["id"], json!(2));
}
