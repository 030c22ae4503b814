//! Connecting out: an origin, the trait that turns it into a stream, and the TCP way of doing so.
//!
//! Owns name lookup, the race between address families, socket options. Does not own TLS, pooling or retries. The
//! caller only ever dials the origin of a configured upstream (architecture, invariant 4).

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};
use url::{Host, Url};

use super::BoxIo;

/// Turns an origin into a byte stream. Tests bring their own, in memory.
pub trait Dial: Send + Sync {
    fn dial<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, io::Result<BoxIo>>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

/// Scheme, host and port of a URL; two URLs with equal origins are the same origin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    pub scheme: Scheme,
    pub host: Host<String>,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    #[error("the scheme is `{0}`; `http` and `https` are served")]
    Scheme(String),
    #[error("the URL names no host")]
    Host,
}

impl TryFrom<&Url> for Origin {
    type Error = OriginError;

    fn try_from(url: &Url) -> Result<Self, OriginError> {
        let (scheme, default_port) = match url.scheme() {
            "http" => (Scheme::Http, 80),
            "https" => (Scheme::Https, 443),
            other => return Err(OriginError::Scheme(other.to_owned())),
        };
        let host = url.host().ok_or(OriginError::Host)?.to_owned();
        Ok(Self { scheme, host, port: url.port().unwrap_or(default_port) })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// Dials over TCP. Addresses of both families are raced with a head start for the first (RFC 8305), so that a name with
/// a dead address, or `localhost` where the server listens on one family only, costs a fraction of a second at most.
#[derive(Debug, Clone)]
pub struct TcpDialer {
    connect_timeout: Duration,
}

/// Head start of one address before the next is tried as well.
const HEAD_START: Duration = Duration::from_millis(250);
/// A silent connection is probed after this long, so a peer that vanished is noticed while nobody waits for it.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// Written data that nobody acknowledges breaks the connection after this.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

impl TcpDialer {
    pub fn new(connect_timeout: Duration) -> Self {
        Self { connect_timeout }
    }

    async fn connect(&self, origin: &Origin) -> io::Result<BoxIo> {
        let connecting = async {
            let addresses = lookup(origin).await?;
            race(interleave(addresses)).await
        };
        let tcp = timeout(self.connect_timeout, connecting)
            .await
            .unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))?;
        prepare_tcp(&tcp)?;
        Ok(Box::new(tcp))
    }
}

impl Dial for TcpDialer {
    fn dial<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, io::Result<BoxIo>> {
        Box::pin(self.connect(origin))
    }
}

/// Options of every TCP connection, in or out: no delay, and probing while silent.
pub fn prepare_tcp(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let socket = SockRef::from(tcp);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(())
}

async fn lookup(origin: &Origin) -> io::Result<Vec<SocketAddr>> {
    let port = origin.port;
    match &origin.host {
        Host::Ipv4(address) => Ok(vec![SocketAddr::from((*address, port))]),
        Host::Ipv6(address) => Ok(vec![SocketAddr::from((*address, port))]),
        // A resolver may know one family only, or forward the name to the network; both loopbacks are meant.
        Host::Domain(name) if is_localhost(name) => {
            Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()])
        }
        Host::Domain(name) => Ok(tokio::net::lookup_host((name.as_str(), port)).await?.collect()),
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
}

/// Alternates the families, beginning with the one that the resolver put first.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first().map(SocketAddr::is_ipv6) else { return addresses };
    let (mut preferred, mut other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first);
    preferred.reverse();
    other.reverse();
    let mut order = Vec::with_capacity(preferred.len() + other.len());
    while !preferred.is_empty() || !other.is_empty() {
        order.extend(preferred.pop());
        order.extend(other.pop());
    }
    order
}

/// The first address to accept wins; the others are dropped. A failed attempt starts the next one at once.
async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut next_start = Instant::now();
    loop {
        if attempts.is_empty() || Instant::now() >= next_start {
            match waiting.next() {
                Some(address) => {
                    attempts.push(TcpStream::connect(address));
                    next_start = Instant::now() + HEAD_START;
                }
                None if attempts.is_empty() => return Err(last_error),
                None => {}
            }
        }
        let more = waiting.len() > 0;
        tokio::select! {
            Some(result) = attempts.next() => match result {
                Ok(tcp) => return Ok(tcp),
                Err(error) => {
                    last_error = error;
                    next_start = Instant::now();
                }
            },
            () = sleep_until(next_start), if more => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    fn origin(url: &str) -> Origin {
        Origin::try_from(&Url::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn origins_compare_by_scheme_host_and_port() {
        assert_eq!(origin("http://A.example/x"), origin("http://a.example:80/y"));
        assert_ne!(origin("http://a.example"), origin("https://a.example"));
        assert_eq!(origin("http://[::1]:7/").to_string(), "http://[::1]:7");
        assert_eq!(
            Origin::try_from(&Url::parse("ftp://a").unwrap()),
            Err(OriginError::Scheme("ftp".to_owned()))
        );
    }

    #[test]
    fn families_alternate() {
        let addresses = ["[::1]:1", "[::2]:1", "1.0.0.1:1", "[::3]:1"].map(|text| text.parse().unwrap());
        let order = interleave(addresses.to_vec());
        assert_eq!(
            order,
            ["[::1]:1", "1.0.0.1:1", "[::2]:1", "[::3]:1"].map(|text| text.parse::<SocketAddr>().unwrap())
        );
    }

    #[tokio::test]
    async fn localhost_reaches_a_server_on_either_family() {
        for bind in ["127.0.0.1:0", "[::1]:0"] {
            // A machine without IPv6 has nothing to try there.
            let Ok(listener) = TcpListener::bind(bind).await else { continue };
            let port = listener.local_addr().unwrap().port();
            let dialer = TcpDialer::new(Duration::from_secs(5));
            let accept = async { listener.accept().await.unwrap().0.write_all(b"x").await.unwrap() };
            let target = origin(&format!("http://localhost:{port}/"));
            let (io, ()) = tokio::join!(dialer.dial(&target), accept);
            assert_eq!(io.unwrap().read_u8().await.unwrap(), b'x');
        }
    }

    #[tokio::test]
    async fn a_stale_connection_is_seen_without_reading() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = origin(&format!("http://{}/", listener.local_addr().unwrap()));
        let dialer = TcpDialer::new(Duration::from_secs(5));
        let (io, accepted) = tokio::join!(dialer.dial(&target), listener.accept());
        let mut io = io.unwrap();
        assert!(!io.is_stale());
        drop(accepted.unwrap());
        assert_eq!(io.read(&mut [0]).await.unwrap(), 0);
        assert!(io.is_stale());
    }

    #[tokio::test]
    async fn a_refused_port_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = origin(&format!("http://localhost:{}/", listener.local_addr().unwrap().port()));
        drop(listener);
        let refused = TcpDialer::new(Duration::from_secs(5)).dial(&target).await.map(|_| ());
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
