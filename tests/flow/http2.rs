//! The same over HTTP/2, where one connection carries many answers: a result that breaks off is a reset stream, and a
//! client that takes none of it stops its own server alone. Frames are read with the `h2` crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;

use super::{Style, Writing, halves};
use crate::support::{Ask, LegacyServer, Proxy, Reply, call, list, pass, within};

/// A connection of its own, driven in the background.
async fn connect(proxy: &Proxy) -> SendRequest<Bytes> {
    let (client, connection) = h2::client::handshake(proxy.connect()).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The body of the answer, its head read.
async fn open(client: &mut SendRequest<Bytes>, ask: &Ask) -> h2::RecvStream {
    let mut request = Request::post("http://127.0.0.1:8808/mcp");
    for (name, value) in ask.headers.0.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        request = request.header(name, &value[..]);
    }
    std::future::poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
    let (response, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    body.send_data(Bytes::from(ask.body()), true).unwrap();
    let response = within("head of the answer", response).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

/// All bytes of the body, and how it was reset instead of ended.
async fn whole(mut body: h2::RecvStream) -> (Vec<u8>, Option<h2::Reason>) {
    let mut all = Vec::new();
    while let Some(data) = within("more of the body", body.data()).await {
        match data {
            Ok(data) => {
                let _ = body.flow_control().release_capacity(data.len());
                all.extend_from_slice(&data);
            }
            Err(error) => return (all, error.reason()),
        }
    }
    (all, None)
}

#[tokio::test(start_paused = true)]
async fn inv1_what_goes_wrong_in_the_middle_resets_the_stream() {
    for accept in ["application/json", "text/event-stream"] {
        let server = LegacyServer::new().on("tools/call", |seen, reply: Reply| async move {
            let mut writing = Writing::begin(reply, Style::Json).await;
            writing.write(&halves(&seen, 400_000).0).await;
            writing.write("\"}]}}}").await;
            writing.end().await;
        });
        let (proxy, up) = Proxy::before(&server).await;
        let mut client = connect(&proxy).await;
        let body = open(&mut client, &call("echo", "{}").header("Accept", accept)).await;
        let (body, reason) = whole(body).await;
        assert!(body.len() > 100_000 && reason == Some(h2::Reason::INTERNAL_ERROR), "{accept}: {reason:?}");
        pass(5_000).await;
        assert_eq!(up.posts("notifications/cancelled").len(), 1);
        let (list, reason) = whole(open(&mut client, &list("tools/list")).await).await;
        assert!(reason.is_none() && list.ends_with(b"}"), "the connection serves on");
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_a_client_that_takes_nothing_stops_its_own_server() {
    let written = Arc::new(AtomicUsize::new(0));
    let of_server = Arc::clone(&written);
    let server = LegacyServer::new().on("tools/call", move |seen, reply: Reply| {
        let written = Arc::clone(&of_server);
        async move {
            let mut writing = Writing::begin(reply, Style::Json).await;
            let (head, tail) = halves(&seen, 100_000);
            writing.write(&head).await;
            let more = "x".repeat(32_000);
            while written.load(Ordering::SeqCst) < 6 << 20 {
                writing.write(&more).await;
                written.fetch_add(more.len(), Ordering::SeqCst);
            }
            writing.write(&tail).await;
            writing.end().await;
        }
    });
    let (proxy, _up) = Proxy::before(&server).await;
    let mut client = connect(&proxy).await;
    let unread = open(&mut client, &call("echo", "{}")).await;
    pass(30_000).await;
    let stopped = written.load(Ordering::SeqCst);
    // `limits.event_bytes`, the test's connections and the HTTP library's own buffers.
    assert!((100_000..(1 << 20) + (1 << 20) + (512 << 10)).contains(&stopped), "{stopped} bytes");
    let (body, reason) = whole(unread).await;
    assert!(reason.is_none() && body.len() > 6 << 20);
}
