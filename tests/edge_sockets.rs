//! Both edges over real sockets: TLS with a private authority, HTTP/2 in both ways of agreeing on it, and the races of
//! case C30 that only a kernel can have. Peers write bytes by hand or through another library than the crate's.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use mcp_janus::config::{
    FrontTimeouts, Limits, Listen, Target, Tls, Upstream, UpstreamLimits, UpstreamTimeouts,
};
use mcp_janus::listen::{BindError, Handler, Server};
use mcp_janus::net::TcpDialer;
use mcp_janus::shutdown::{Ending, Shutdown};
use mcp_janus::telemetry::metrics::Metrics;
use mcp_janus::upstream::transport::{HttpTransport, RequestHead, SendError, TransportBuildError};
use mcp_janus::wire::payload::Payload;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LONG: Duration = Duration::from_secs(30);

fn upstream(url: &str, ca_files: &[&Path]) -> Upstream {
    Upstream {
        name: "u".to_owned(),
        era_ttl: LONG,
        ca_files: ca_files.iter().map(|path| path.to_path_buf()).collect(),
        timeouts: UpstreamTimeouts {
            connect: LONG,
            probe: LONG,
            initialize: LONG,
            request: LONG,
            pool_idle: LONG,
            ..UpstreamTimeouts::default()
        },
        limits: UpstreamLimits { message_bytes: 1 << 20, pool_connections: 4, ..UpstreamLimits::default() },
        ..Upstream::for_target(Target::Http(url.parse().unwrap()))
    }
}

fn transport(url: &str, ca_files: &[&Path]) -> Result<HttpTransport, TransportBuildError> {
    let metrics = Metrics::new().unwrap().upstream("u");
    HttpTransport::new(&upstream(url, ca_files), Arc::new(TcpDialer::new(LONG)), metrics)
}

async fn post(transport: &HttpTransport, body: &'static str) -> Result<Response<Bytes>, SendError> {
    let head = RequestHead {
        speaker: mcp_janus::upstream::transport::Speaker::Driver,
        method: Method::POST,
        headers: HeaderMap::new(),
    };
    let response = transport.send(head, Payload::from(Bytes::from_static(body.as_bytes()))).await?;
    let (parts, body) = response.into_parts();
    Ok(Response::from_parts(parts, body.collect().await.unwrap().to_bytes()))
}

/// Answers with the version, the authority and the body it saw.
#[derive(Clone)]
struct Mirror;

impl Handler for Mirror {
    type Body = Full<Bytes>;

    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let host = parts.headers.get("host").map(|host| host.to_str().unwrap().to_owned());
        let authority = parts.uri.authority().map(ToString::to_string).or(host);
        let body = body.collect().await.unwrap().to_bytes();
        let text = format!("{:?} {} {body:?}", parts.version, authority.unwrap_or_default());
        Response::new(Full::from(text))
    }
}

fn limits() -> Limits {
    Limits { body_bytes: 1 << 20, header_bytes: 4096, connections: 100, requests: 100, ..Limits::default() }
}

fn timeouts() -> FrontTimeouts {
    FrontTimeouts { header: LONG, body: LONG, idle: LONG, handshake: LONG, hold: LONG, keep_alive: LONG }
}

/// Starts a listener and returns where it is.
async fn serve(address: &str, tls: Option<Tls>, shutdown: &Shutdown) -> SocketAddr {
    let address = address.parse().unwrap();
    let settings = Listen { address, tls, allowed_hosts: vec![], allowed_origins: vec![] };
    let bound = Server::bind(&settings).await.unwrap();
    let address = bound.local_addr();
    let running = shutdown.clone();
    tokio::spawn(async move { bound.run(Mirror, &limits(), &timeouts(), running).await });
    address
}

/// An authority of our own, and a server certificate from it.
fn certificates(dir: &Path, stem: &str) -> Tls {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(vec![]).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let file = |kind: &str| dir.join(format!("{stem}.{kind}.pem"));
    std::fs::write(file("ca"), ca_certificate.pem()).unwrap();
    std::fs::write(file("cert"), certificate.pem()).unwrap();
    std::fs::write(file("key"), key.serialize_pem()).unwrap();
    Tls { certificate: file("cert"), key: file("key") }
}

#[tokio::test]
async fn https_with_a_private_authority_on_both_families() {
    let dir = tempfile::tempdir().unwrap();
    let tls = certificates(dir.path(), "a");
    certificates(dir.path(), "b");
    let (ca, other_ca) = (dir.path().join("a.ca.pem"), dir.path().join("b.ca.pem"));
    let shutdown = Shutdown::new(LONG);
    for bind in ["127.0.0.1:0", "[::1]:0"] {
        if bind.starts_with('[') && std::net::TcpListener::bind(bind).is_err() {
            continue;
        }
        let address = serve(bind, Some(tls.clone()), &shutdown).await;
        for host in ["localhost".to_owned(), address.to_string().rsplit_once(':').unwrap().0.to_owned()] {
            let url = format!("https://{host}:{}/mcp", address.port());
            let trusting = transport(&url, &[&ca]).unwrap();
            for _ in 0..2 {
                let response = post(&trusting, "hi").await.unwrap();
                assert_eq!(response.version(), Version::HTTP_2);
                let seen = format!("HTTP/2.0 {host}:{} b\"hi\"", address.port());
                assert_eq!(String::from_utf8_lossy(response.body()), seen);
            }
            let error = post(&transport(&url, &[&other_ca]).unwrap(), "hi").await.unwrap_err();
            assert!(matches!(error, SendError::Tls { .. }), "{error:?}");
        }
        // Plain HTTP on a TLS port: an error, not a hang.
        let plain = transport(&format!("http://{address}/"), &[]).unwrap();
        assert!(post(&plain, "hi").await.is_err());
    }
    shutdown.drain();
    assert_eq!(shutdown.finished().await, Ending::Drained);
}

#[tokio::test]
async fn certificate_files_that_cannot_work_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (certificates(dir.path(), "a"), certificates(dir.path(), "b"));
    let empty = dir.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for (certificate, key, expected) in [
        (dir.path().join("none.pem"), a.key.clone(), "none.pem"),
        (empty.clone(), a.key.clone(), "no certificate"),
        (a.certificate.clone(), empty.clone(), "listen.tls.key"),
        (a.certificate.clone(), b.key, "together"),
    ] {
        let tls = Some(Tls { certificate, key });
        let address = "127.0.0.1:0".parse().unwrap();
        let settings = Listen { address, tls, allowed_hosts: vec![], allowed_origins: vec![] };
        let error = Server::bind(&settings).await.map(|_| ()).unwrap_err();
        assert!(matches!(error, BindError::Tls(_)) && error.to_string().contains(expected), "{error}");
    }
    let error = transport("https://localhost/", &[&empty]).map(|_| ()).unwrap_err();
    assert!(matches!(error, TransportBuildError::CaFile { .. }), "{error}");
}

#[tokio::test]
async fn a_taken_address_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let settings = Listen { address, tls: None, allowed_hosts: vec![], allowed_origins: vec![] };
    let error = Server::bind(&settings).await.map(|_| ()).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_served_and_guarded() {
    let shutdown = Shutdown::new(LONG);
    let address = serve("127.0.0.1:0", None, &shutdown).await;
    let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(tcp).await.unwrap();
    let connection = tokio::spawn(connection);
    let port = address.port();
    let ask = |uri: String, origin: Option<&str>| {
        let mut request = Request::get(uri);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        request.body(()).unwrap()
    };
    for (uri, origin, expected) in [
        (format!("http://localhost:{port}/mcp"), None, StatusCode::OK),
        (format!("http://evil.example:{port}/mcp"), None, StatusCode::FORBIDDEN),
        (format!("http://localhost:{port}/mcp"), Some("https://evil.example"), StatusCode::FORBIDDEN),
        (format!("http://127.0.0.1:{port}/readyz"), None, StatusCode::OK),
    ] {
        let (response, _) = client.send_request(ask(uri, origin), true).unwrap();
        assert_eq!(response.await.unwrap().status(), expected);
    }
    // A drain says goodbye (GOAWAY) and the connection comes to its end.
    shutdown.drain();
    connection.await.unwrap().unwrap();
    assert_eq!(shutdown.finished().await, Ending::Drained);
}

/// Reads one request from a blocking socket; `None` if the connection ended before.
fn read_request(tcp: &mut std::net::TcpStream) -> Option<()> {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\nhi") {
        if tcp.read(&mut byte).ok()? == 0 {
            return None;
        }
        seen.push(byte[0]);
    }
    Some(())
}

/// The peer closes a connection while the runtime is not looking, and the next request is already under way.
#[tokio::test(flavor = "current_thread")]
async fn c30a_a_close_that_races_with_the_next_request() {
    const ROUNDS: usize = 50;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (close, closing) = std::sync::mpsc::channel::<()>();
    let (closed, is_closed) = std::sync::mpsc::channel::<()>();
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let mut tcp = tcp.unwrap();
            if read_request(&mut tcp).is_some() {
                count.fetch_add(1, Ordering::SeqCst);
                tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            }
            if closing.recv().is_err() {
                return;
            }
            drop(tcp);
            closed.send(()).unwrap();
        }
    });
    let transport = transport(&url, &[]).unwrap();
    for _ in 0..ROUNDS {
        assert_eq!(post(&transport, "hi").await.unwrap().body(), "ok");
        // Lets the connection go back to the pool; then blocks the thread, so that nobody sees the close coming.
        tokio::task::yield_now().await;
        close.send(()).unwrap();
        is_closed.recv().unwrap();
    }
    assert_eq!(served.load(Ordering::SeqCst), ROUNDS);
}

#[tokio::test]
async fn c30b_a_reset_after_the_whole_request_is_not_followed_by_another() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let mut tcp = tcp.unwrap();
            // The first request of a connection is answered; the second is run and then reset.
            for run in 0..2 {
                if read_request(&mut tcp).is_none() {
                    break;
                }
                count.fetch_add(1, Ordering::SeqCst);
                match run {
                    0 => tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap(),
                    _ => socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap(),
                }
            }
        }
    });
    let transport = transport(&url, &[]).unwrap();
    assert_eq!(post(&transport, "hi").await.unwrap().body(), "ok");
    let error = post(&transport, "hi").await.unwrap_err();
    assert!(matches!(error, SendError::Broken { .. }), "{error:?}");
    assert_eq!(served.load(Ordering::SeqCst), 2);
    assert_eq!(post(&transport, "hi").await.unwrap().body(), "ok");
}

/// How the first request to an HTTP/2 server fails.
#[derive(Clone, Copy)]
enum Failing {
    /// RST_STREAM with this reason.
    Reset(h2::Reason),
    /// GOAWAY that counts the stream among those begun, then the end.
    Gone,
    /// GOAWAY that names stream 0 as the last one begun, then the end.
    GoneBefore,
    /// An answer without end.
    Floods,
}

/// An HTTP/2 server that fails the first request as told and answers all others.
async fn failing_server(tls: &Tls, failing: Failing) -> SocketAddr {
    use rustls_pki_types::pem::PemObject;
    let chain = vec![rustls_pki_types::CertificateDer::from_pem_file(&tls.certificate).unwrap()];
    let key = rustls_pki_types::PrivateKeyDer::from_pem_file(&tls.key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut first = true;
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(mut tls) = acceptor.accept(tcp).await else { continue };
            let failing = std::mem::take(&mut first).then_some(failing);
            if let Some(Failing::GoneBefore) = failing {
                // SETTINGS, then, once the request's first bytes are here, GOAWAY.
                tls.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
                let mut seen = Vec::new();
                while !seen.ends_with(b"hi") {
                    seen.push(tls.read_u8().await.unwrap());
                }
                tls.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await.unwrap();
                tls.shutdown().await.unwrap();
                continue;
            }
            let mut connection = h2::server::handshake(tls).await.unwrap();
            let mut failing = failing;
            while let Some(Ok((_request, mut respond))) = connection.accept().await {
                match failing.take() {
                    Some(Failing::Reset(reason)) => respond.send_reset(reason),
                    Some(Failing::Gone | Failing::GoneBefore) => {
                        connection.abrupt_shutdown(h2::Reason::INTERNAL_ERROR);
                    }
                    Some(Failing::Floods) => {
                        let mut body = respond.send_response(Response::new(()), false).unwrap();
                        tokio::spawn(async move {
                            while FLOOD.load(Ordering::SeqCst) < 16 << 20 {
                                body.reserve_capacity(1 << 14);
                                let room = std::future::poll_fn(|cx| body.poll_capacity(cx)).await;
                                let Some(Ok(room)) = room else { return };
                                FLOOD.fetch_add(room, Ordering::SeqCst);
                                body.send_data(Bytes::from(vec![b'x'; room]), false).unwrap();
                            }
                        });
                    }
                    None => {
                        let mut body = respond.send_response(Response::new(()), false).unwrap();
                        body.send_data(Bytes::from_static(b"ok"), true).unwrap();
                    }
                }
            }
        }
    });
    address
}

/// Bytes that `Failing::Floods` could write.
static FLOOD: AtomicUsize = AtomicUsize::new(0);

/// Invariant 5: the client of one stream is slow; its server stops, and the connection's other streams do not.
#[tokio::test]
async fn http2_a_body_that_is_not_read_stops_its_own_stream_alone() {
    let dir = tempfile::tempdir().unwrap();
    let tls = certificates(dir.path(), "a");
    let ca = dir.path().join("a.ca.pem");
    let address = failing_server(&tls, Failing::Floods).await;
    let transport = transport(&format!("https://{address}/mcp"), &[&ca]).unwrap();
    let head = RequestHead {
        speaker: mcp_janus::upstream::transport::Speaker::Driver,
        method: Method::POST,
        headers: HeaderMap::new(),
    };
    let unread = transport.send(head, Payload::from("hi")).await.unwrap();
    for _ in 0..100 {
        let other = tokio::time::timeout(LONG, post(&transport, "hi")).await;
        assert_eq!(other.expect("another stream on the connection").unwrap().body(), "ok");
    }
    let written = FLOOD.load(Ordering::SeqCst);
    assert!((1..=(1 << 20) + (1 << 14)).contains(&written), "{written} bytes were written and not read");
    drop(unread);
}

#[tokio::test]
async fn http2_streams_are_sent_again_only_on_the_peers_word() {
    let dir = tempfile::tempdir().unwrap();
    let tls = certificates(dir.path(), "a");
    let ca = dir.path().join("a.ca.pem");
    for (failing, runs_again) in [
        (Failing::Reset(h2::Reason::REFUSED_STREAM), true),
        (Failing::Reset(h2::Reason::INTERNAL_ERROR), false),
        (Failing::Gone, false),
        (Failing::GoneBefore, true),
    ] {
        let address = failing_server(&tls, failing).await;
        let result = post(&transport(&format!("https://{address}/mcp"), &[&ca]).unwrap(), "hi").await;
        match result {
            Ok(response) => assert!(runs_again && response.body() == "ok"),
            Err(error) => assert!(!runs_again && matches!(error, SendError::Broken { .. }), "{error:?}"),
        }
    }
}
