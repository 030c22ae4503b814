//! The transport against peers that read and write bytes by hand (case C30, `Host`, settings), in memory and with a
//! paused clock.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderValue, header};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::peer::{
    CONNECT, OK, POOL_IDLE, Pipes, REQUEST, metrics, post, read_request, stage, text, upstream,
};
use super::{HttpTransport, Phase, SendError, TransportBuildError};
use crate::config::{Target, Upstream};
use crate::net::{BoxIo, Dial, Origin};
use crate::wire::payload::Payload;

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
    let transport = HttpTransport::new(&upstream("http://u.example/"), Arc::new(Nowhere), metrics()).unwrap();
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

#[test]
fn settings_that_cannot_work_are_named() {
    let build = |upstream: &Upstream| {
        let (ends, _peer) = mpsc::unbounded_channel();
        HttpTransport::new(upstream, Arc::new(Pipes { size: 1, ends }), metrics())
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    let error = build(&upstream("http://user:secret@u.example/mcp"));
    assert!(error.contains("upstream.u") && !error.contains("secret"), "{error}");
    assert!(build(&upstream("ftp://u.example/")).contains("`ftp`"));
    let mut missing = upstream("https://u.example/");
    missing.ca_files = vec!["/nonexistent/ca.pem".into()];
    assert!(build(&missing).contains("/nonexistent/ca.pem"));
    let demo = Upstream { target: Target::Demo, ..upstream("http://u.example/") };
    let (ends, _peer) = mpsc::unbounded_channel();
    let built = HttpTransport::new(&demo, Arc::new(Pipes { size: 1, ends }), metrics()).map(|_| ());
    assert!(matches!(built, Err(TransportBuildError::NotHttp { .. })));
}
