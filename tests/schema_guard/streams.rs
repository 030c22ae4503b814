//! Lists in event streams and in bodies of every form, between like pairs: what is not the guard's business passes to the byte.

use std::sync::Arc;

use crate::stage::{FINDINGS, List, bad, good, metric};
use crate::support::sse::Reader;
use crate::support::{
    Answer, Ask, LegacyServer, ModernServer, Net, Old, Proxy, Reply, Seen, Upstream, Value, call, json, list,
    modern, pass, rpc,
};

const NOTE: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"tools":[1.50]}}}"#;

/// A legacy server whose answer to `tools/list` is an event stream of these bytes, `{id}` being the request's id.
fn streaming(bytes: &str, at_once: bool) -> LegacyServer {
    let bytes = bytes.to_owned();
    LegacyServer::new().on("tools/list", move |seen, mut reply: Reply| {
        let bytes = bytes.replace("{id}", &seen.id());
        async move {
            reply.stream().await;
            let step = if at_once { bytes.len() } else { 1 };
            for piece in bytes.as_bytes().chunks(step) {
                reply.chunk(piece).await;
            }
            reply.end().await;
        }
    })
}

async fn text_of(mut answer: Answer) -> String {
    let (bytes, broken) = answer.pieces().await;
    assert!(!broken, "a whole answer");
    String::from_utf8(bytes).unwrap()
}

/// An event stream as raw text: a priming event, a message beside, and the answer with these tools over many lines.
fn stream_of(tools: &[String], end: &str) -> String {
    let text = format!(
        ": hello\nretry: 1500\nid: e-1\ndata:\n\nevent: message\nid:e-2\ndata: {NOTE}\n\n: between\nid: e-3\nevent: message\ndata: {{\"jsonrpc\":\"2.0\", \"id\":{{id}},\ndata: \"result\" : {{\"tools\":[{}],\ndata:\"x-own\":1.50}}}}\n\n",
        tools.join(",\ndata: ")
    );
    text.replace('\n', end)
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_anything_bad_passes_to_the_byte() {
    for end in ["\n", "\r\n", "\r"] {
        for at_once in [true, false] {
            let stream = stream_of(&[good("g0"), good("g1")], end);
            let (proxy, _up) = Proxy::before(&streaming(&stream, at_once)).await;
            let old = Old::latest(&proxy).await;
            let shown = text_of(proxy.open(&old.ask("tools/list").id(r#""a\/b""#)).await).await;
            assert_eq!(shown, stream.replace("{id}", r#""a\/b""#), "{end:?} {at_once}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_tool_in_a_stream_takes_nothing_else_with_it() {
    for end in ["\n", "\r\n", "\r"] {
        for at_once in [true, false] {
            let stream = stream_of(&[good("g0"), bad("out"), good("g1")], end);
            let (proxy, up) = Proxy::before(&streaming(&stream, at_once)).await;
            let old = Old::latest(&proxy).await;
            let shown = text_of(proxy.open(&old.ask("tools/list").id("7")).await).await;
            let before = &stream[..stream.find(": between").unwrap()];
            assert!(shown.starts_with(before), "what comes before is not touched: {shown:?}");
            assert!(shown.contains(": between"), "nor are comments: {shown:?}");
            let mut reader = Reader::default();
            reader.push(shown.as_bytes());
            let events: Vec<_> = std::iter::from_fn(|| reader.next()).collect();
            let ids: Vec<_> = events.iter().map(|event| event.id.as_str()).collect();
            assert_eq!(ids, ["e-1", "e-2", "e-3"], "{shown:?}");
            assert_eq!((events[2].kind.as_str(), reader.retry), ("message", Some(1500)), "{shown:?}");
            let answer = List::of(&events[2].data);
            assert_eq!(answer.tools, [good("g0"), good("g1")], "{shown:?}");
            assert_eq!(answer.result()["x-own"], json!(1.5));
            let refused = proxy.send(&old.call("out", "{}")).await;
            assert_eq!((refused.code(), up.posts("tools/call").len()), (-32602, 0));
        }
    }
}

/// A13.5: the answer to a list may come on a stream that is taken up again.
#[tokio::test(start_paused = true)]
async fn a13_5_a_list_on_a_resumed_stream() {
    for lines in ["", "session = { shield = true }"] {
        let answer = format!(r#"{{"tools":[{},{}]}}"#, bad("out"), good("g0"));
        let server = LegacyServer::new()
            .on("tools/list", |_, mut reply: Reply| async move {
                reply.stream().await;
                reply.chunk(b"id: p-0\nretry: 1500\ndata: \n\n").await;
                reply.end().await;
            })
            .on("GET", move |seen, mut reply: Reply| {
                let answer = rpc::result_message("7", &answer);
                async move {
                    if seen.header("last-event-id").as_deref() != Some("p-0") {
                        return reply.empty(405).await;
                    }
                    reply.stream().await;
                    reply.chunk(format!("id: p-1\ndata: {answer}\n\n").as_bytes()).await;
                    reply.end().await;
                }
            });
        let net = Net::new();
        let up = server.start(&net);
        let proxy = Proxy::with(&net, lines).await;
        let old = Old::latest(&proxy).await;
        let mut first = proxy.open(&old.ask("tools/list").id("7")).await;
        let mut primed = first.event().await.expect("a priming event");
        if !primed.data.is_empty() {
            // A shield may have taken the stream up by itself.
            assert_eq!(List::of(&primed.data).tools, [good("g0")], "{lines}");
            continue;
        }
        if let Some(next) = first.event().await {
            primed = next;
            assert_eq!(List::of(&primed.data).tools, [good("g0")], "{lines}");
        } else {
            let mut resumed = proxy.open(&old.get().header("Last-Event-ID", &primed.id)).await;
            let event = resumed.event().await.expect("the answer");
            assert_eq!(List::of(&event.data).tools, [good("g0")], "{lines}");
            assert!(event.id.ends_with("p-1"), "{lines}: {}", event.id);
        }
        let refused = proxy.send(&old.call("out", "{}")).await;
        assert_eq!((refused.code(), up.posts("tools/call").len()), (-32602, 0), "{lines}");
    }
}

/// A client that reads JSON only, before a server that streams.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_read_for_a_client_of_json() {
    let stream = stream_of(&[good("g0"), bad("out")], "\n");
    let (proxy, _up) = Proxy::before(&streaming(&stream, true)).await;
    let old = Old::latest(&proxy).await;
    let done = proxy.send(&old.ask("tools/list").id("7").header("Accept", "application/json")).await;
    assert_eq!(List::of(&done.raw).tools, [good("g0")], "{}", done.raw);
}

/// Between modern peers.
#[tokio::test(start_paused = true)]
async fn a_modern_servers_stream() {
    for tools in [vec![good("g0"), good("g1")], vec![good("g0"), bad("out"), good("g1")]] {
        let result = modern::complete("tools/list", &format!(r#""tools":[{}]"#, tools.join(" ,")));
        let streamed = result.clone();
        let server = ModernServer::full().on("tools/list", move |seen, mut reply: Reply| {
            let result = streamed.clone();
            async move {
                reply.stream().await;
                reply.event(NOTE).await;
                reply.result_event(&seen, &result).await;
                reply.end().await;
            }
        });
        for accept in ["application/json, text/event-stream", "application/json"] {
            let (proxy, _up) = Proxy::before_modern(&server).await;
            let log = r#""info""#;
            let ask = list("tools/list")
                .id("7")
                .header("Accept", accept)
                .meta("io.modelcontextprotocol/logLevel", log);
            let done = proxy.send(&ask).await;
            assert_eq!(List::of(&done.raw).tools, [good("g0"), good("g1")], "{accept}: {}", done.raw);
            if tools.len() == 2 {
                assert_eq!(done.raw, rpc::result_message("7", &result), "to the byte");
            }
        }
    }
}

/// Whatever was asked: an answer with tools is a list.
#[tokio::test(start_paused = true)]
async fn a_list_by_another_name() {
    let result = format!(r#""tools":[{},{}]"#, bad("out"), good("g0"));
    let net = Net::new();
    LegacyServer::new().result("acme/tools", &format!("{{{result}}}")).start(&net);
    let proxy = Proxy::start(&net).await;
    let old = Old::latest(&proxy).await;
    let done = proxy.send(&old.ask("acme/tools").id("7")).await;
    assert_eq!(List::of(&done.raw).tools, [good("g0")], "{}", done.raw);

    let server = ModernServer::full().completes("acme/tools", &result);
    let (proxy, _up) = Proxy::before_modern(&server).await;
    let done = proxy.send(&Ask::new("acme/tools").id("7")).await;
    assert_eq!(List::of(&done.raw).tools, [good("g0")], "{}", done.raw);
}

/// What only has tools somewhere in it is none.
#[tokio::test(start_paused = true)]
async fn what_is_no_list_passes_to_the_byte() {
    let inner = format!(
        r#"{{"tools":[{}],"requestedSchema":{{"$ref":"https://canary.test/x"}},"inputRequests":{{}}}}"#,
        bad("out")
    );
    let members = format!(
        r#""content":[{{"type":"text","text":"{}"}}],"structuredContent":{inner},"x-own" : {inner}"#,
        inner.replace('"', r#"\""#)
    );
    let legacy = LegacyServer::new().result("tools/call", &format!("{{{members}}}"));
    let (proxy, _up) = Proxy::before(&legacy).await;
    let old = Old::latest(&proxy).await;
    let done = proxy.send(&old.call("echo", "{}").id("7")).await;
    assert_eq!(done.raw, rpc::result_message("7", &format!("{{{members}}}")));
    assert_eq!(metric(&proxy, FINDINGS, &[]), 0.0);

    let result = modern::complete("tools/call", &members);
    let (proxy, _up) = Proxy::before_modern(&ModernServer::full().result("tools/call", &result)).await;
    let done = proxy.send(&call("echo", "{}").id("7")).await;
    assert_eq!(done.raw, rpc::result_message("7", &result));
    assert_eq!(metric(&proxy, FINDINGS, &[]), 0.0);
}

const SMALL: &str = "[limits]\nevent_bytes = \"64KiB\"\nbody_bytes = \"64KiB\"\n";

/// Servers of both eras with a list of so many tools, the last of which is bad, and a proxy with these bounds.
async fn large(n: usize, message_bytes: &str, streamed: bool) -> [(Proxy, Ask, Upstream); 2] {
    let mut tools: Vec<_> = (0..n).map(|n| good(&format!("g{n}"))).collect();
    tools.push(bad("out"));
    let members = format!(r#""tools":[{}]"#, tools.join(","));
    let answer = move |result: String| {
        move |seen: Arc<Seen>, reply: Reply| {
            let result = result.clone();
            async move {
                if streamed {
                    reply.streamed_result(&seen, &result).await
                } else {
                    reply.result(&seen, &result).await
                }
            }
        }
    };
    let toml = format!(
        "{SMALL}[upstream.up]\nurl = \"http://up.test/mcp\"\nlimits = {{ message_bytes = \"{message_bytes}\" }}\n"
    );
    let net = Net::new();
    let up = LegacyServer::new().on("tools/list", answer(format!("{{{members}}}"))).start(&net);
    let proxy = Proxy::configured(&net, &toml).await;
    let ask = Old::latest(&proxy).await.ask("tools/list").id("7");
    let legacy = (proxy, ask, up);
    let net = Net::new();
    let up =
        ModernServer::full().on("tools/list", answer(modern::complete("tools/list", &members))).start(&net);
    [legacy, (Proxy::configured(&net, &toml).await, list("tools/list").id("7"), up)]
}

/// A list may be larger than what is held of other messages.
#[tokio::test(start_paused = true)]
async fn a_list_larger_than_an_event() {
    for streamed in [false, true] {
        for (proxy, ask, _up) in large(1000, "1MiB", streamed).await {
            let done = proxy.send(&ask).await;
            let shown = List::of(&done.raw);
            assert_eq!(shown.tools.len(), 1000, "{streamed}");
            assert!(!done.raw.contains("canary"), "{streamed}");
        }
    }
}

/// Inv. 5: what cannot be held is not passed on unseen.
#[tokio::test(start_paused = true)]
async fn inv5_a_list_too_large_to_look_at_is_not_passed_on() {
    for streamed in [false, true] {
        for (proxy, ask, _up) in large(2000, "128KiB", streamed).await {
            let mut answer = proxy.open(&ask).await;
            let (bytes, broken) = answer.pieces().await;
            let text = String::from_utf8_lossy(&bytes);
            let failed = broken || answer.status != 200 || text.contains(r#""error""#);
            assert!(failed, "{streamed}: {} bytes", bytes.len());
            assert!(!text.contains("canary"), "{streamed}");
            pass(1000).await;
            // It goes on.
            let other = if ask.legacy {
                ask.clone().raw_body(br#"{"jsonrpc":"2.0","id":8,"method":"prompts/list"}"#)
            } else {
                list("prompts/list")
            };
            let other: Value = proxy.send(&other).await.result().clone();
            assert_eq!(other["prompts"][0]["name"], "p");
        }
    }
}
