//! The network of a test: host names behind which raw peers accept connections held in memory.
//!
//! Owns dialling (refused, silent, served), the record of every request that reached a peer, and the list of faults
//! found on the way. Does not own what a peer answers (`legacy`, `modern`, or a closure of the test).

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::http1::{Buffered, Framing, Headers};
use super::{Programs, Reply, rpc, shape_requests, within};

pub type Handling = Pin<Box<dyn Future<Output = ()> + Send>>;
pub type Handler = Arc<dyn Fn(Arc<Seen>, Reply) -> Handling + Send + Sync>;

/// Makes a handler of a closure.
pub fn handler<F, T>(f: F) -> Handler
where
    F: Fn(Arc<Seen>, Reply) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |seen, reply| Box::pin(f(seen, reply)))
}

/// One request as it reached a peer.
#[derive(Debug)]
pub struct Seen {
    pub connection: usize,
    pub verb: String,
    pub target: String,
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body is UTF-8")
    }

    pub fn json(&self) -> Value {
        rpc::value(&self.body).expect("a body is JSON")
    }

    pub fn rpc_method(&self) -> String {
        rpc::method(&self.body).unwrap_or_default()
    }

    /// The id as written; a request without one fails the test.
    pub fn id(&self) -> String {
        rpc::id(&self.body).expect("the request has an id")
    }

    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name)
    }

    pub fn session(&self) -> Option<String> {
        self.header("mcp-session-id")
    }

    /// It came as a line on a pipe (`lines`).
    pub fn is_piped(&self) -> bool {
        self.target == super::lines::TARGET
    }

    /// What a reader of a failed test wants to see of it.
    pub fn brief(&self) -> String {
        match rpc::method(&self.body) {
            Some(method) => method,
            None if self.body.is_empty() => self.verb.clone(),
            None => "response".to_owned(),
        }
    }
}

/// What the requests to a peer are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    Legacy,
    Modern,
    /// A modern server whose clients are all legacy ones: the proxy has made every envelope (`shape_envelope`).
    Bridged,
    /// A legacy one over the old HTTP+SSE.
    OldSse,
    /// A server of both eras: by its version header a request is of one or the other.
    Dual,
    /// The test sends or expects what no well-behaved server is sent.
    Unchecked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Up,
    Refused,
    Silent,
}

/// One server in the network, seen from the test.
#[derive(Clone)]
pub struct Upstream(Arc<Peer>);

struct Peer {
    authority: String,
    handler: Handler,
    receiver: Receiver,
    reach: Mutex<Reach>,
    seen: Mutex<Vec<Arc<Seen>>>,
    arrived: Notify,
    connections: AtomicUsize,
    /// Cancelled to close the connections that are open; where another peer takes this one's place, for good.
    open: Mutex<CancellationToken>,
    faults: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    pub fn authority(&self) -> &str {
        &self.0.authority
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.0.authority)
    }

    pub fn requests(&self) -> Vec<Arc<Seen>> {
        self.0.seen.lock().unwrap().clone()
    }

    /// The requests of one JSON-RPC method, in order.
    pub fn posts(&self, method: &str) -> Vec<Arc<Seen>> {
        self.requests().into_iter().filter(|s| s.verb == "POST" && s.rpc_method() == method).collect()
    }

    pub fn only(&self, method: &str) -> Arc<Seen> {
        let mut posts = self.posts(method);
        assert_eq!(posts.len(), 1, "{method} upstream once; saw {:?}", self.briefs());
        posts.remove(0)
    }

    /// Methods in order of arrival; a bare GET or DELETE by its verb, an answer as `response`.
    pub fn briefs(&self) -> Vec<String> {
        self.requests().iter().map(|s| s.brief()).collect()
    }

    /// As `briefs`, without the probe.
    pub fn after_probe(&self) -> Vec<String> {
        self.briefs().into_iter().filter(|m| m != "server/discover").collect()
    }

    /// Waits until `n` requests of this method (or verb, or `response`) have come.
    pub async fn wait(&self, brief: &str, n: usize) -> Vec<Arc<Seen>> {
        let what = format!("{n} x {brief} upstream (saw {:?})", self.briefs());
        within(&what, async {
            loop {
                let arrived = self.0.arrived.notified();
                let of_it: Vec<_> = self.requests().into_iter().filter(|s| s.brief() == brief).collect();
                if of_it.len() >= n {
                    return of_it;
                }
                arrived.await;
            }
        })
        .await
    }

    pub fn connections(&self) -> usize {
        self.0.connections.load(Ordering::SeqCst)
    }

    /// Closes every connection that is not in the middle of an answer.
    pub fn hang_up(&self) {
        std::mem::take(&mut *self.0.open.lock().unwrap()).cancel();
    }

    pub fn receiver(&self) -> Receiver {
        self.0.receiver
    }

    /// Notes a request that has reached this peer, however it came, and looks at it.
    pub fn arrived(&self, seen: Seen) -> Arc<Seen> {
        let (peer, seen) = (&self.0, Arc::new(seen));
        let faults = shape_requests::faults(peer.receiver, &peer.authority, &seen);
        peer.faults.lock().unwrap().extend(faults);
        peer.seen.lock().unwrap().push(Arc::clone(&seen));
        peer.arrived.notify_waiters();
        seen
    }

    /// The handler runs as a task of its own, so that its panic ends the connection and nothing else.
    pub fn handle(&self, seen: Arc<Seen>, reply: Reply) {
        tokio::spawn((self.0.handler)(seen, reply));
    }

    /// From now on dialling is refused.
    pub fn refuse(&self) {
        *self.0.reach.lock().unwrap() = Reach::Refused;
    }

    /// From now on dialling never comes to an end.
    pub fn silence(&self) {
        *self.0.reach.lock().unwrap() = Reach::Silent;
    }

    pub fn restore(&self) {
        *self.0.reach.lock().unwrap() = Reach::Up;
    }
}

#[derive(Clone, Default)]
pub struct Net {
    peers: Arc<Mutex<HashMap<String, Upstream>>>,
    dialled: Arc<Mutex<Vec<String>>>,
    faults: Arc<Mutex<Vec<String>>>,
    programs: Programs,
}

impl Net {
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a peer behind `host:port`; one that was there before goes, with its connections.
    pub fn serve(&self, authority: &str, receiver: Receiver, handler: Handler) -> Upstream {
        let upstream = Upstream(Arc::new(Peer {
            authority: authority.to_owned(),
            handler,
            receiver,
            reach: Mutex::new(Reach::Up),
            seen: Mutex::default(),
            arrived: Notify::new(),
            connections: AtomicUsize::new(0),
            open: Mutex::default(),
            faults: Arc::clone(&self.faults),
        }));
        let key = if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
        if let Some(former) = self.peers.lock().unwrap().insert(key, upstream.clone()) {
            former.hang_up();
        }
        upstream
    }

    pub async fn dial(&self, host: &str, port: u16) -> io::Result<Wire> {
        let key = format!("{host}:{port}");
        self.dialled.lock().unwrap().push(key.clone());
        let peer = self.peers.lock().unwrap().get(&key).cloned();
        let Some(Upstream(peer)) = peer else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let reach = *peer.reach.lock().unwrap();
        match reach {
            Reach::Up => {}
            Reach::Refused => return Err(io::ErrorKind::ConnectionRefused.into()),
            Reach::Silent => std::future::pending().await,
        }
        let (near, far) = tokio::io::duplex(256 * 1024);
        let broken = Arc::new(AtomicBool::new(false));
        let number = peer.connections.fetch_add(1, Ordering::SeqCst);
        let gone = peer.open.lock().unwrap().child_token();
        let (breaking, ended) = (Arc::clone(&broken), gone.clone());
        tokio::spawn(async move {
            let serving = serve_connection(Upstream(peer), Buffered::new(far), number, breaking);
            ended.run_until_cancelled(serving).await;
            ended.cancel();
        });
        Ok(Wire { io: near, broken, gone })
    }

    /// What can be started, and what was.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Every `host:port` dialled, in order.
    pub fn dialled(&self) -> Vec<String> {
        self.dialled.lock().unwrap().clone()
    }

    /// Breaches of the receivers' specification, found in requests as they came.
    pub fn faults(&self) -> Vec<String> {
        [self.faults.lock().unwrap().clone(), self.programs.faults()].concat()
    }
}

async fn serve_connection(
    peer: Upstream,
    mut io: Buffered<DuplexStream>,
    number: usize,
    broken: Arc<AtomicBool>,
) {
    while let Ok(Some(head)) = io.head().await {
        let Ok(body) = io.whole(Framing::of_request(&head.headers)).await else { return };
        let mut first = head.line.split(' ');
        let verb = first.next().unwrap_or_default().to_owned();
        let target = first.next().unwrap_or_default().to_owned();
        let seen = peer.arrived(Seen { connection: number, verb, target, headers: head.headers, body });
        let (reply, back) = Reply::new(io, Arc::clone(&broken));
        peer.handle(seen, reply);
        match back.await {
            Ok(again) => io = again,
            Err(_) => return,
        }
    }
}

/// The proxy's end of a connection; a peer may break it so that reading fails instead of ending.
#[derive(Debug)]
pub struct Wire {
    io: DuplexStream,
    broken: Arc<AtomicBool>,
    gone: CancellationToken,
}

impl Wire {
    /// The peer has closed its end.
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    fn reset(&self) -> Option<io::Error> {
        self.broken.load(Ordering::SeqCst).then(|| io::ErrorKind::ConnectionReset.into())
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        match (&polled, self.reset()) {
            (Poll::Ready(Ok(())), Some(reset)) if buf.filled().len() == before => Poll::Ready(Err(reset)),
            _ => polled,
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
