//! Test support: a peer that gets the other end of every connection the transport makes, and writes bytes by hand.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, header};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};
use tokio::sync::mpsc;

use super::{HttpTransport, RequestHead, SendError, Speaker};
use crate::config::{Target, Upstream, UpstreamLimits, UpstreamTimeouts};
use crate::net::{BoxIo, Dial, Origin};
use crate::wire::payload::Payload;

pub(in crate::upstream) const CONNECT: Duration = Duration::from_secs(3);
pub(in crate::upstream) const REQUEST: Duration = Duration::from_secs(30);
pub(in crate::upstream) const POOL_IDLE: Duration = Duration::from_secs(90);
pub(in crate::upstream) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

pub(in crate::upstream) fn upstream(url: &str) -> Upstream {
    Upstream {
        name: "u".to_owned(),
        era_ttl: REQUEST,
        timeouts: UpstreamTimeouts {
            connect: CONNECT,
            probe: REQUEST,
            initialize: REQUEST,
            request: REQUEST,
            pool_idle: POOL_IDLE,
            ..UpstreamTimeouts::default()
        },
        limits: UpstreamLimits { pool_connections: 4, redirects: 2, ..UpstreamLimits::default() },
        ..Upstream::for_target(Target::Http(url.parse().unwrap()))
    }
}

/// Every dial hands the other end of a pipe to the test.
pub(in crate::upstream) struct Pipes {
    pub(in crate::upstream) size: usize,
    pub(in crate::upstream) ends: mpsc::UnboundedSender<DuplexStream>,
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

pub(in crate::upstream) struct Peer(pub(in crate::upstream) mpsc::UnboundedReceiver<DuplexStream>);

impl Peer {
    pub(in crate::upstream) async fn accept(&mut self) -> DuplexStream {
        self.0.recv().await.expect("the transport is gone")
    }

    pub(in crate::upstream) fn connections_waiting(&mut self) -> usize {
        std::iter::from_fn(|| self.0.try_recv().ok()).count()
    }
}

pub(in crate::upstream) fn stage(url: &str, size: usize) -> (HttpTransport, Peer) {
    let (ends, peer) = mpsc::unbounded_channel();
    let transport = HttpTransport::new(&upstream(url), Arc::new(Pipes { size, ends }), metrics()).unwrap();
    (transport, Peer(peer))
}

pub(in crate::upstream) fn post() -> RequestHead {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer t"));
    RequestHead { method: Method::POST, headers, speaker: Speaker::Driver }
}

/// Reads one request with a `Content-Length`.
pub(in crate::upstream) async fn read_request(io: &mut DuplexStream) -> String {
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

pub(in crate::upstream) async fn text(
    transport: &HttpTransport,
    body: impl Into<Bytes>,
) -> Result<String, SendError> {
    let response = transport.send(post(), Payload::from(body.into())).await?;
    Ok(String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

pub(in crate::upstream) fn metrics() -> Arc<crate::telemetry::metrics::UpstreamMetrics> {
    crate::telemetry::metrics::Metrics::new().unwrap().upstream("u")
}
