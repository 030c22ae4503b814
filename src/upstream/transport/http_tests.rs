//! The transport against peers that read and write bytes by hand (case C30, redirects, `Host`), in memory and with a
//! paused clock.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, header};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{HttpTransport, Phase, RedirectRefusal, RequestHead, SendError, TransportBuildError};
use crate::config::{
    Authorization, EraSetting, Session, SessionScope, Target, Upstream, UpstreamLimits, UpstreamTimeouts,
};
use crate::net::{BoxIo, Dial, Origin};
use crate::wire::payload::Payload;

const CONNECT: Duration = Duration::from_secs(3);
const REQUEST: Duration = Duration::from_secs(30);
const POOL_IDLE: Duration = Duration::from_secs(90);
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn upstream(url: &str) -> Upstream {
    Upstream {
        name: "u".to_owned(),
        path: "/mcp".to_owned(),
        target: Target::Http(url.parse().unwrap()),
        era: EraSetting::Auto,
        era_ttl: REQUEST,
        authorization: Authorization::Forward,
        headers: vec![],
        forward_headers: vec![],
        ca_files: vec![],
        timeouts: UpstreamTimeouts {
            connect: CONNECT,
            probe: REQUEST,
            initialize: REQUEST,
            request: REQUEST,
            pool_idle: POOL_IDLE,
        },
        limits: UpstreamLimits { message_bytes: 1 << 20, pool_connections: 4, redirects: 2, resumptions: 1 },
        session: Session { scope: SessionScope::Principal, affinity: None, max: 1, idle: REQUEST },
    }
}

/// Every dial hands the other end of a pipe to the test.
struct Pipes {
    size: usize,
    ends: mpsc::UnboundedSender<DuplexStream>,
}

impl Dial for Pipes {
    fn dial<'a>(&'a self, _origin: &'a Origin) -> BoxFuture<'a, io::Result<BoxIo>> {
        async {
            let (client, server) = duplex(self.size);
            match self.ends.send(server) {
                Ok(()) => Ok(Box::new(client) as BoxIo),
                Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        }
        .boxed()
    }
}

struct Peer(mpsc::UnboundedReceiver<DuplexStream>);

impl Peer {
    async fn accept(&mut self) -> DuplexStream {
        self.0.recv().await.expect("the transport is gone")
    }

    fn connections_waiting(&mut self) -> usize {
        std::iter::from_fn(|| self.0.try_recv().ok()).count()
    }
}

fn stage(url: &str, size: usize) -> (HttpTransport, Peer) {
    let (ends, peer) = mpsc::unbounded_channel();
    let transport = HttpTransport::new(&upstream(url), Arc::new(Pipes { size, ends })).unwrap();
    (transport, Peer(peer))
}

fn post() -> RequestHead {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer t"));
    RequestHead { method: Method::POST, headers }
}

/// Reads one request with a `Content-Length`.
async fn read_request(io: &mut DuplexStream) -> String {
    let mut seen = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&seen).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if length.map_or(0, |length| length.parse().unwrap()) <= body.len() {
                return String::from_utf8(seen).unwrap();
            }
        }
        seen.push(io.read_u8().await.expect("the request broke off"));
    }
}

async fn text(transport: &HttpTransport, body: impl Into<Bytes>) -> Result<String, SendError> {
    let response = transport.send(post(), Payload::from(body.into())).await?;
    Ok(String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn one_connection_serves_many_requests_with_the_upstreams_host() {
    let (transport, mut peer) = stage("http://[::1]:3000/mcp?x=1#f", 1 << 16);
    let serving = async {
        let mut io = peer.accept().await;
        for _ in 0..3 {
            let request = read_request(&mut io).await;
            assert!(request.starts_with("POST /mcp?x=1 HTTP/1.1\r\n"), "{request}");
            assert!(request.contains("host: [::1]:3000\r\n"), "{request}");
            assert_eq!(request.matches("host:").count(), 1);
            assert!(request.contains("content-length: 6\r\n") && request.ends_with("abcdef"), "{request}");
            io.write_all(OK).await.unwrap();
        }
        io
    };
    let calling = async {
        for _ in 0..3 {
            let mut body = Payload::from(Bytes::from_static(b"abc"));
            body.push(Bytes::from_static(b"def"));
            let mut head = post();
            head.headers.insert(header::HOST, HeaderValue::from_static("evil.example"));
            let response = transport.send(head, body).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
        }
    };
    let (_io, ()) = tokio::join!(serving, calling);
    assert_eq!(peer.connections_waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn c30a_an_idle_connection_closed_by_the_peer_costs_nothing() {
    let (transport, mut peer) = stage("http://u.example/mcp", 1 << 16);
    let serving = async {
        for _ in 0..3 {
            let mut io = peer.accept().await;
            read_request(&mut io).await;
            io.write_all(OK).await.unwrap();
        }
    };
    let calling = async {
        for _ in 0..3 {
            assert_eq!(text(&transport, "x").await.unwrap(), "ok");
        }
    };
    tokio::join!(serving, calling);
}

#[tokio::test(start_paused = true)]
async fn c30b_a_request_read_in_full_is_never_sent_again() {
    for earlier in [false, true] {
        let (transport, mut peer) = stage("http://u.example/mcp", 1 << 16);
        let serving = async {
            let mut io = peer.accept().await;
            if earlier {
                read_request(&mut io).await;
                io.write_all(OK).await.unwrap();
            }
            read_request(&mut io).await;
        };
        let calling = async {
            if earlier {
                assert_eq!(text(&transport, "x").await.unwrap(), "ok");
            }
            text(&transport, "run").await.unwrap_err()
        };
        let ((), error) = tokio::join!(serving, calling);
        assert!(matches!(error, SendError::Broken { .. }), "{error:?}");
        assert!(!error.did_not_run());
        assert_eq!(peer.connections_waiting(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn c30b_an_answer_that_is_not_http_counts_as_having_run() {
    let (transport, mut peer) = stage("http://u.example/mcp", 1 << 16);
    let serving = async {
        let mut io = peer.accept().await;
        read_request(&mut io).await;
        io.write_all(b"\x00\x01 garbage\r\n\r\n").await.unwrap();
    };
    let ((), result) = tokio::join!(serving, text(&transport, "run"));
    assert!(matches!(result, Err(SendError::Broken { .. })), "{result:?}");
    assert_eq!(peer.connections_waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn c30c_a_response_that_breaks_off_is_the_callers_to_see() {
    let (transport, mut peer) = stage("http://u.example/mcp", 1 << 16);
    let serving = async {
        let mut io = peer.accept().await;
        read_request(&mut io).await;
        io.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf").await.unwrap();
    };
    let calling = async {
        transport
            .send(post(), Payload::from(Bytes::from_static(b"run")))
            .await
            .unwrap()
            .into_body()
            .collect()
            .await
    };
    let ((), body) = tokio::join!(serving, calling);
    assert!(body.is_err());
    assert_eq!(peer.connections_waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn c30d_a_silent_peer_is_bounded_by_time() {
    let (transport, mut peer) = stage("http://u.example/mcp", 1 << 16);
    let start = Instant::now();
    let error = text(&transport, "x").await.unwrap_err();
    assert!(matches!(error, SendError::Timeout { phase: Phase::Response, after: REQUEST }), "{error:?}");
    assert_eq!(start.elapsed(), REQUEST);
    // Giving up is what the peer sees as a cancellation.
    let mut io = peer.accept().await;
    let mut rest = String::new();
    io.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("\r\n\r\nx"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_not_written_in_full_is_sent_once_more() {
    let big = Bytes::from(vec![b'x'; 4096]);
    // The peer takes the head and a little of the body, then hangs up; the second time it behaves, or does it again.
    for behaves in [true, false] {
        let (transport, mut peer) = stage("http://u.example/mcp", 512);
        let serving = async {
            let mut io = peer.accept().await;
            io.read_exact(&mut [0; 600]).await.unwrap();
            drop(io);
            let mut io = peer.accept().await;
            if behaves {
                read_request(&mut io).await;
                io.write_all(OK).await.unwrap();
            } else {
                io.read_exact(&mut [0; 600]).await.unwrap();
            }
        };
        let ((), result) = tokio::join!(serving, text(&transport, big.clone()));
        match result {
            Ok(answer) => assert!(behaves && answer == "ok"),
            Err(error) => {
                assert!(!behaves && matches!(error, SendError::Unsent { .. }), "{error:?}");
                assert!(error.did_not_run());
            }
        }
        assert_eq!(peer.connections_waiting(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_early_answer_to_a_half_sent_request_arrives() {
    let (transport, mut peer) = stage("http://u.example/mcp", 512);
    let serving = async {
        let mut io = peer.accept().await;
        io.read_exact(&mut [0; 600]).await.unwrap();
        io.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await.unwrap();
        io
    };
    let (_io, result) = tokio::join!(serving, text(&transport, vec![b'x'; 4096]));
    assert_eq!(result.unwrap(), "no");
}

#[tokio::test(start_paused = true)]
async fn connecting_fails_in_its_own_ways() {
    let (transport, peer) = stage("http://u.example/mcp", 512);
    drop(peer);
    let error = text(&transport, "x").await.unwrap_err();
    let refused = matches!(&error, SendError::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused);
    assert!(refused && error.did_not_run(), "{error:?}");

    struct Nowhere;
    impl Dial for Nowhere {
        fn dial<'a>(&'a self, _origin: &'a Origin) -> BoxFuture<'a, io::Result<BoxIo>> {
            std::future::pending().boxed()
        }
    }
    let transport = HttpTransport::new(&upstream("http://u.example/"), Arc::new(Nowhere)).unwrap();
    let start = Instant::now();
    let error = text(&transport, "x").await.unwrap_err();
    assert!(matches!(error, SendError::Timeout { phase: Phase::Connect, after: CONNECT }), "{error:?}");
    assert_eq!(start.elapsed(), CONNECT);
}

#[tokio::test(start_paused = true)]
async fn a_pooled_connection_is_closed_when_it_has_idled_too_long() {
    let (transport, mut peer) = stage("http://u.example/mcp", 512);
    let serving = async {
        let mut io = peer.accept().await;
        read_request(&mut io).await;
        io.write_all(OK).await.unwrap();
        io
    };
    let (mut io, answer) = tokio::join!(serving, text(&transport, "x"));
    answer.unwrap();
    let start = Instant::now();
    assert_eq!(io.read(&mut [0; 8]).await.unwrap(), 0);
    assert!(start.elapsed() <= POOL_IDLE * 2 && start.elapsed() >= POOL_IDLE);
}

/// Answers each request with the next of `responses` on one connection; returns the requests.
async fn answer_all(peer: &mut Peer, responses: &[&str]) -> Vec<String> {
    let mut requests = Vec::new();
    let mut connection: Option<DuplexStream> = None;
    for response in responses {
        let mut io = match connection.take() {
            Some(io) => io,
            None => peer.accept().await,
        };
        requests.push(read_request(&mut io).await);
        io.write_all(response.as_bytes()).await.unwrap();
        if !response.contains("Connection: close") {
            connection = Some(io);
        }
    }
    requests
}

fn moved(status: u16, location: &str) -> String {
    format!(
        "HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[tokio::test(start_paused = true)]
async fn redirects_repeat_the_same_request_on_the_same_origin() {
    for status in [301, 302, 307, 308] {
        for location in ["/v2/mcp", "../v2/mcp", "http://U.example:80/v2/mcp#here", "//u.example/v2/mcp"] {
            let (transport, mut peer) = stage("http://u.example/v1/mcp", 1 << 16);
            let responses = [moved(status, location), String::from_utf8(OK.to_vec()).unwrap()];
            let responses = [responses[0].as_str(), responses[1].as_str()];
            let (requests, result) =
                tokio::join!(answer_all(&mut peer, &responses), text(&transport, "body"));
            assert_eq!(result.unwrap(), "ok");
            let same = requests[0].replace("/v1/mcp", "/v2/mcp");
            assert_eq!(requests[1], same);
            assert!(same.starts_with("POST /v2/mcp ") && same.contains("authorization: Bearer t"), "{same}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_elsewhere_are_refused() {
    let cross =
        ["https://u.example/v1/mcp", "http://u.example:81/", "http://evil.example/", "//evil.example/x"];
    let odd =
        ["http://a:b@u.example/", "ftp://u.example/", "file:///etc/passwd", "http://u.example.evil.example/"];
    for location in cross.into_iter().chain(odd) {
        let (transport, mut peer) = stage("http://u.example/v1/mcp", 1 << 16);
        let response = moved(307, location);
        let responses = [response.as_str()];
        let (_, result) = tokio::join!(answer_all(&mut peer, &responses), text(&transport, "x"));
        let error = result.unwrap_err();
        assert!(matches!(error, SendError::Redirect(RedirectRefusal::CrossOrigin { .. })), "{error:?}");
        assert_eq!(peer.connections_waiting(), 0, "{location}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_redirects_are_refused_with_their_reason() {
    let hop = moved(308, "/again");
    let three = [hop.as_str(); 3];
    let see_other = moved(303, "/status/1");
    let nowhere = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_owned();
    let table: [(&[&str], RedirectRefusal); 3] = [
        (&three, RedirectRefusal::TooMany { limit: 2 }),
        (&[&see_other], RedirectRefusal::SeeOther { location: "/status/1".to_owned() }),
        (&[&nowhere], RedirectRefusal::NoLocation { status: 302 }),
    ];
    for (responses, expected) in table {
        let (transport, mut peer) = stage("http://u.example/", 1 << 16);
        let (_, result) = tokio::join!(answer_all(&mut peer, responses), text(&transport, "x"));
        assert!(matches!(&result, Err(SendError::Redirect(refusal)) if *refusal == expected), "{result:?}");
        assert_eq!(peer.connections_waiting(), 0);
    }
    // Not a redirect of the request: passed on.
    let (transport, mut peer) = stage("http://u.example/", 1 << 16);
    let responses = ["HTTP/1.1 300 Choices\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"];
    let (_, result) = tokio::join!(answer_all(&mut peer, &responses), text(&transport, Bytes::new()));
    assert_eq!(result.unwrap(), "");
}

#[test]
fn settings_that_cannot_work_are_named() {
    let build = |upstream: &Upstream| {
        let (ends, _peer) = mpsc::unbounded_channel();
        HttpTransport::new(upstream, Arc::new(Pipes { size: 1, ends })).map(|_| ()).unwrap_err().to_string()
    };
    let error = build(&upstream("http://user:secret@u.example/mcp"));
    assert!(error.contains("upstream.u") && !error.contains("secret"), "{error}");
    assert!(build(&upstream("ftp://u.example/")).contains("`ftp`"));
    let mut missing = upstream("https://u.example/");
    missing.ca_files = vec!["/nonexistent/ca.pem".into()];
    assert!(build(&missing).contains("/nonexistent/ca.pem"));
    let demo = Upstream { target: Target::Demo, ..upstream("http://u.example/") };
    let (ends, _peer) = mpsc::unbounded_channel();
    let built = HttpTransport::new(&demo, Arc::new(Pipes { size: 1, ends })).map(|_| ());
    assert!(matches!(built, Err(TransportBuildError::NotHttp { .. })));
}
