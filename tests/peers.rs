//! The test peers tried on each other, so that a red test elsewhere speaks of the proxy.
//!
//! Owns a handful of exchanges between the raw client and the raw servers, without a proxy in between.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::http1::Buffered;
use support::{Net, Proxy, sse, within};
use tokio::io::AsyncWriteExt;

#[tokio::test(start_paused = true)]
async fn the_event_reader_follows_every_line_end() {
    for end in ["\n", "\r", "\r\n"] {
        let mut reader = sse::Reader::default();
        for byte in format!(": c{end}data: a{end}data: b{end}{end}data: c{end}{end}").bytes() {
            reader.push(&[byte]);
        }
        assert_eq!(reader.next().unwrap().data, "a\nb");
        assert_eq!(reader.next().unwrap().data, "c");
        assert_eq!(reader.next(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_guards_its_sessions() {
    let net = Net::new();
    let server = support::LegacyServer::new();
    let up = server.start(&net);
    let mut io = Buffered::new(net.dial("up.test", 80).await.unwrap());
    let mut post = async |session: &str, body: &str| {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: up.test\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n",
            body.len()
        );
        io.io.write_all(head.as_bytes()).await.unwrap();
        io.io.write_all(body.as_bytes()).await.unwrap();
        let head = within("head", io.head()).await.unwrap().unwrap();
        let status: u16 = head.line.split(' ').nth(1).unwrap().parse().unwrap();
        let body = io.whole(support::http1::Framing::of_response(status, &head.headers)).await.unwrap();
        (status, head.headers.get("mcp-session-id"), String::from_utf8(body).unwrap())
    };
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    assert_eq!(post("", list).await.0, 400);
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"b"}}}"#;
    let (status, session, _) = post("", initialize).await;
    assert_eq!((status, session.as_deref()), (200, Some("S1")));
    let held = "Mcp-Session-Id: S1\r\n";
    assert_eq!(post(held, list).await.0, 400, "before initialized");
    assert_eq!(post(held, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.0, 202);
    let (status, _, body) = post(held, list).await;
    assert_eq!(status, 200);
    assert!(body.contains(r#""id":2,"result":{"tools":"#), "{body}");
    server.forget_sessions();
    assert_eq!(post(held, list).await.0, 404);
    assert_eq!(up.connections(), 1);
    assert_eq!(net.faults(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_breach_in_a_request_is_recorded() {
    let net = Net::new();
    let _up = support::LegacyServer::new().start(&net);
    let mut io = Buffered::new(net.dial("up.test", 80).await.unwrap());
    io.io
        .write_all(b"POST /mcp HTTP/1.1\r\nHost: evil\r\nMcp-Method: x\r\nContent-Length: 2\r\n\r\n[]")
        .await
        .unwrap();
    within("head", io.head()).await.unwrap().unwrap();
    let faults = net.faults().join("\n");
    for rule in ["Host is", "Accept names", "Content-Type is", "never a batch"] {
        assert!(faults.contains(rule), "{rule} in {faults}");
    }
    std::mem::forget(Proxy::start(&net).await);
}
