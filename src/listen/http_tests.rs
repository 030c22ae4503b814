//! The listener against clients that write bytes by hand, over in-memory pipes and a paused clock.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

use super::http::{Accept, accept_all};
use super::{Admission, Front, Guard, Handler};
use crate::config::{FrontTimeouts, Limits, Listen};
use crate::net::BoxIo;
use crate::shutdown::{Ending, Shutdown};
use crate::telemetry::metrics::Metrics;

const HEADER: Duration = Duration::from_secs(10);
const HANDSHAKE: Duration = Duration::from_secs(7);
const IDLE: Duration = Duration::from_secs(60);
const GET: &[u8] = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Answers `/slow` when told to, everything else at once.
#[derive(Clone, Default)]
struct Echo {
    calls: Arc<AtomicUsize>,
    go: Arc<Notify>,
    given_up: Arc<Notify>,
}

/// Tells when the future it lives in is dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Handler for Echo {
    type Body = Full<Bytes>;

    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if request.uri().path() == "/slow" {
            let _guard = OnDrop(Arc::clone(&self.given_up));
            self.go.notified().await;
        }
        Response::new(Full::from("hello"))
    }
}

struct Stage {
    handler: Echo,
    front: Arc<Front<Echo>>,
    shutdown: Shutdown,
    metrics: Metrics,
}

impl Stage {
    fn new() -> Self {
        Self::with_tls(None)
    }

    fn with_tls(tls: Option<&crate::config::Tls>) -> Self {
        let (handler, shutdown) = (Echo::default(), Shutdown::new(Duration::from_secs(20)));
        let bound = "127.0.0.1:8808".parse().unwrap();
        let listen = Listen { address: bound, tls: None, allowed_hosts: vec![], allowed_origins: vec![] };
        let limits = Limits {
            body_bytes: 1 << 20,
            header_bytes: 4096,
            connections: 1,
            requests: 16,
            ..Limits::default()
        };
        let timeouts = FrontTimeouts {
            header: HEADER,
            body: HEADER,
            idle: IDLE,
            handshake: HANDSHAKE,
            hold: Duration::ZERO,
            keep_alive: HEADER,
        };
        let guard = Guard::new(&listen, bound);
        let front = Front::new(handler.clone(), guard, &limits, &timeouts, shutdown.clone())
            .with_tls(tls.map(|tls| super::tls::acceptor(tls).unwrap()));
        let metrics = Metrics::new().unwrap();
        let front = Arc::new(front.metered(Some(metrics.front().clone())));
        Self { handler, front, shutdown, metrics }
    }

    fn connect(&self, admission: Admission) -> DuplexStream {
        let (client, server) = duplex(1 << 20);
        drop(self.shutdown.spawn(Arc::clone(&self.front).serve_connection(Box::new(server), admission)));
        client
    }

    /// Whether the metrics have this line.
    fn counted(&self, line: &str) -> bool {
        self.metrics.render().unwrap().lines().any(|counted| counted == line)
    }

    fn calls(&self) -> usize {
        self.handler.calls.load(Ordering::SeqCst)
    }
}

/// Writes `request` and reads to the end of the connection.
async fn exchange(mut client: DuplexStream, request: impl AsRef<[u8]>) -> String {
    client.write_all(request.as_ref()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Reads until `what` was seen.
async fn read_until(client: &mut DuplexStream, what: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(what) {
        let byte = client.read_u8().await.unwrap_or_else(|_| panic!("ended: {seen:?}"));
        seen.push(byte);
    }
    String::from_utf8(seen).unwrap()
}

fn get(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n").into_bytes()
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_in_time() {
    let stage = Stage::new();
    let mut client = stage.connect(Admission::Admitted);
    tokio::time::sleep(Duration::from_secs(7)).await;
    client.write_all(GET).await.unwrap();
    read_until(&mut client, "hello").await;
    let answered = Instant::now();
    assert_eq!(client.read(&mut [0; 64]).await.unwrap(), 0);
    assert_eq!(answered.elapsed().as_secs(), IDLE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_in_time() {
    let start = Instant::now();
    assert_eq!(exchange(Stage::new().connect(Admission::Admitted), b"").await, "");
    assert_eq!(start.elapsed().as_secs(), IDLE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_slow_head_is_cut_off_in_time() {
    let stage = Stage::new();
    for beginning in [&b"P"[..], b"GET /mcp HTTP/1.1\r\nHo"] {
        let mut client = stage.connect(Admission::Admitted);
        tokio::time::sleep(Duration::from_secs(33)).await;
        let start = Instant::now();
        client.write_all(beginning).await.unwrap();
        assert_eq!(client.read(&mut [0; 64]).await.unwrap(), 0);
        assert_eq!(start.elapsed().as_secs(), HEADER.as_secs());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_in_work_is_not_idle() {
    let stage = Stage::new();
    let mut client = stage.connect(Admission::Admitted);
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(timeout(IDLE * 10, client.read_u8()).await.is_err());
    stage.handler.go.notify_one();
    read_until(&mut client, "hello").await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_drops_the_handlers_future() {
    let stage = Stage::new();
    let mut client = stage.connect(Admission::Admitted);
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(stage.calls(), 1);
    drop(client);
    stage.handler.given_up.notified().await;
    // HTTP/2: one stream is reset, the connection lives on.
    let (mut client, connection) = h2::client::handshake(stage.connect(Admission::Admitted)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("http://localhost/slow").body(()).unwrap();
    let (response, mut body) = client.send_request(request, false).unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(stage.calls(), 2);
    body.send_reset(h2::Reason::CANCEL);
    drop(response);
    stage.handler.given_up.notified().await;
    let request = Request::get("http://localhost/mcp").body(()).unwrap();
    assert_eq!(client.send_request(request, true).unwrap().0.await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_idle_http2_connection_is_closed_in_time_pings_or_not() {
    let stage = Stage::new();
    let (client, mut connection) = h2::client::handshake(stage.connect(Admission::Admitted)).await.unwrap();
    let mut ping = connection.ping_pong().unwrap();
    let start = Instant::now();
    let pinging = async {
        while ping.ping(h2::Ping::opaque()).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(4)).await;
        }
    };
    tokio::select! {
        _ = connection => {}
        () = async { pinging.await; pending().await } => {}
    }
    assert_eq!(start.elapsed().as_secs(), IDLE.as_secs());
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn a_tls_handshake_that_stalls_is_cut_off_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let stage = Stage::with_tls(Some(&crate::config::Tls { certificate, key }));
    let start = Instant::now();
    assert_eq!(exchange(stage.connect(Admission::Admitted), b"\x16").await, "");
    assert_eq!(start.elapsed(), HANDSHAKE);
    assert!(stage.counted("mcp_janus_limit_hits_total{limit=\"timeouts.handshake\"} 1"));
    assert!(stage.counted("mcp_janus_client_connections_opened_total 1"));
    assert!(stage.counted("mcp_janus_client_connections 0"));
}

#[tokio::test(start_paused = true)]
async fn c61_foreign_requests_never_reach_the_handler() {
    let stage = Stage::new();
    for method in ["GET", "POST", "DELETE", "OPTIONS", "PUT"] {
        for path in ["/mcp", "/healthz"] {
            for headers in ["Host: evil.example", "Host: localhost\r\nOrigin: https://evil.example"] {
                let request = format!(
                    "{method} {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
                );
                let answer = exchange(stage.connect(Admission::Admitted), request).await;
                assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
                assert!(answer.contains(r#"{"jsonrpc":"2.0","error":{"code":-32600,"#), "{answer}");
            }
        }
    }
    assert_eq!(stage.calls(), 0);
    let fine = get("/mcp", "Origin: http://localhost:3000\r\n");
    assert!(exchange(stage.connect(Admission::Admitted), &fine).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(stage.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_head_over_the_limit_is_431_with_a_reason() {
    let stage = Stage::new();
    let long = |bytes: usize| get("/mcp", &format!("X: {}\r\n", "x".repeat(bytes)));
    assert!(exchange(stage.connect(Admission::Admitted), &long(3000)).await.starts_with("HTTP/1.1 200 "));
    let answer = exchange(stage.connect(Admission::Admitted), &long(5000)).await;
    assert!(answer.starts_with("HTTP/1.1 431 ") && answer.contains("limits.header_bytes"), "{answer}");
    let answer = exchange(stage.connect(Admission::Admitted), &long(100_000)).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(stage.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_body_is_read_so_that_the_connection_lives_on() {
    let stage = Stage::new();
    let mut client = stage.connect(Admission::Admitted);
    let refused = b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 4\r\n\r\nbody";
    for _ in 0..2 {
        client.write_all(refused).await.unwrap();
        read_until(&mut client, "}}").await;
    }
    client.write_all(GET).await.unwrap();
    assert!(read_until(&mut client, "hello").await.contains("200 OK"));
    // A body that is too long, or whose sender waits for leave, is not waited for.
    for rest in ["Content-Length: 9999999\r\n\r\n", "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"] {
        let request = format!("POST /mcp HTTP/1.1\r\nHost: evil.example\r\n{rest}");
        let answer = exchange(stage.connect(Admission::Admitted), request).await;
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn health_is_answered_here() {
    let stage = Stage::new();
    let ask = |path: &str| exchange(stage.connect(Admission::Admitted), get(path, ""));
    assert!(ask("/healthz").await.ends_with("\r\n\r\nok\n"));
    assert!(ask("/readyz").await.starts_with("HTTP/1.1 200 "));
    let mut open = stage.connect(Admission::Admitted);
    open.write_all(b"POST /slow HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let post = b"POST /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = exchange(stage.connect(Admission::Admitted), post).await;
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("allow: GET, HEAD"), "{answer}");
    // A request whose head was on its way when the drain began still gets its answer.
    let mut late = stage.connect(Admission::Admitted);
    late.write_all(b"GET /readyz HTTP/1.1\r\nHost: local").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    stage.shutdown.drain();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(exchange(late, b"host\r\n\r\n").await.starts_with("HTTP/1.1 503 "));
}

#[tokio::test(start_paused = true)]
async fn half_a_head_does_not_hold_the_drain_up() {
    let stage = Stage::new();
    let mut half = stage.connect(Admission::Admitted);
    half.write_all(b"POST /slow HTTP/1.1\r\nHo").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    stage.shutdown.drain();
    let start = Instant::now();
    assert_eq!(stage.shutdown.finished().await, Ending::Drained);
    assert!(start.elapsed() <= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_requests_finish_and_closes_the_rest() {
    let stage = Stage::new();
    let mut idle = stage.connect(Admission::Admitted);
    idle.write_all(GET).await.unwrap();
    read_until(&mut idle, "hello").await;
    let mut busy = stage.connect(Admission::Admitted);
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    stage.shutdown.drain();
    assert_eq!(idle.read(&mut [0; 8]).await.unwrap(), 0);
    stage.handler.go.notify_one();
    let mut answer = String::new();
    busy.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("connection: close") && answer.ends_with("hello"), "{answer}");
    assert_eq!(stage.shutdown.finished().await, Ending::Drained);
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_after_the_grace_period() {
    let stage = Stage::new();
    let mut busy = stage.connect(Admission::Admitted);
    busy.write_all(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    stage.shutdown.drain();
    let start = Instant::now();
    assert_eq!(stage.shutdown.finished().await, Ending::OutOfTime);
    // The grace period, and the time for last words.
    assert_eq!(start.elapsed(), Duration::from_millis(20_500));
    assert_eq!(busy.read(&mut [0; 8]).await.unwrap(), 0);
}

/// A listener that hands out what a test puts in, errors included.
struct Script(mpsc::UnboundedReceiver<io::Result<BoxIo>>, VecDeque<io::Result<BoxIo>>);

impl Accept for Script {
    async fn accept(&mut self) -> io::Result<BoxIo> {
        if let Some(first) = self.1.pop_front() {
            return first;
        }
        match self.0.recv().await {
            Some(next) => next,
            None => pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_connection_limit_answers_503_and_frees_up() {
    let stage = Stage::new();
    let (connect, script) = mpsc::unbounded_channel();
    // EMFILE, then a peer that hung up while queued: the loop outlives both.
    let errors = [io::Error::from_raw_os_error(24), io::ErrorKind::ConnectionAborted.into()];
    let script = Script(script, errors.into_iter().map(Err).collect());
    let accepting = tokio::spawn(accept_all(script, Arc::clone(&stage.front), 1, stage.shutdown.clone()));
    let open = || {
        let (client, server) = duplex(1 << 16);
        connect.send(Ok(Box::new(server) as BoxIo)).unwrap();
        client
    };
    let mut first = open();
    first.write_all(GET).await.unwrap();
    read_until(&mut first, "hello").await;
    let answer = exchange(open(), GET).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"), "{answer}");
    assert!(answer.contains("limits.connections"), "{answer}");
    // Over the limit and silent: not kept for long, and no more than a few of them.
    let start = Instant::now();
    let mut silent: Vec<_> = (0..65).map(|_| open()).collect();
    assert_eq!(silent[64].read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(start.elapsed(), Duration::ZERO);
    for client in &mut silent[..64] {
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
    }
    assert_eq!(start.elapsed().as_secs(), 2);
    // One was told so, 64 had their chance, one was closed at once.
    assert!(stage.counted("mcp_janus_limit_hits_total{limit=\"limits.connections\"} 66"));
    assert!(stage.counted("mcp_janus_refusals_total{reason=\"connections\",upstream=\"\"} 1"));
    drop(first);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(exchange(open(), &get("/mcp", "")).await.starts_with("HTTP/1.1 200 "));
    stage.shutdown.drain();
    accepting.await.unwrap();
}
