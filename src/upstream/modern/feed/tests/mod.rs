//! The whole feed against a server that writes bytes by hand, in memory and with a paused clock.

mod hubs;
mod standing;
mod trouble;

use super::*;
use crate::net::Processes;
use crate::shutdown::Shutdown;
use crate::upstream::asking::Asking;
use crate::upstream::transport::peer::{Peer, Pipes, metrics, read_request, upstream};
use crate::upstream::{Room, Ways};
use crate::wire::json::Limits;
use hyper::header::AUTHORIZATION;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const TOOLS: Lists = Lists { tools: true, prompts: false, resources: false };
const PATIENCE: Duration = Duration::from_millis(500);
const NONE: Lists = Lists { tools: false, prompts: false, resources: false };

struct Stage {
    feed: Arc<Feed>,
    peer: Peer,
    /// What the owner of the feed was told.
    changed: Arc<Mutex<Vec<Change>>>,
    shutdown: Shutdown,
}

impl Stage {
    fn new() -> Self {
        let (ends, peer) = mpsc::unbounded_channel();
        let mut settings = upstream("http://u.example/mcp");
        settings.timeouts.initialize = PATIENCE;
        settings.forward_headers = vec!["x-key".to_owned()];
        let (metrics, shutdown) = (metrics(), Shutdown::new(Duration::from_secs(1)));
        let limits = Limits { nesting: 16, members: 1000 };
        let asking = Arc::new(Asking::new().unwrap());
        let ways =
            Ways { dial: Arc::new(Pipes { size: 1 << 16, ends }), launch: Arc::new(Processes::default()) };
        let room = Room { events: 16, bytes: 1 << 16, hold: PATIENCE };
        let shared = Shared::new(settings, limits, ways, asking, room, shutdown.clone(), metrics).unwrap();
        let changed = Arc::new(Mutex::new(Vec::new()));
        let seen = changed.clone();
        let hook = move |_: Principal, change: &Change| seen.lock().unwrap().push(change.clone());
        let feed = Feed::new(shared, 100, Box::new(hook));
        Self { feed, peer: Peer(peer), changed, shutdown }
    }

    fn join(&self, lists: Lists) -> (Following, Arc<Session>) {
        self.join_as("Bearer a", lists)
    }

    fn join_as(&self, credential: &'static str, lists: Lists) -> (Following, Arc<Session>) {
        let session = Arc::new(Session::default());
        let headers = headers(credential);
        let principal = Principal::of(headers.get(AUTHORIZATION));
        let follower: Arc<dyn Follower> = session.clone();
        (self.feed.join(principal, &headers, lists, Arc::downgrade(&follower)), session)
    }

    /// The next listen, read and not answered.
    async fn listen(&mut self) -> Asked {
        let mut io = timeout(Duration::from_secs(3600), self.peer.accept()).await.unwrap();
        let request = read_request(&mut io).await;
        let id = request.split("\"id\":").nth(1).unwrap().split(',').next().unwrap().to_owned();
        Asked { io, request, id }
    }

    async fn no_listen_for(&mut self, time: Duration) {
        assert!(timeout(time, self.peer.accept()).await.is_err(), "a request that nobody wants");
    }
}

fn headers(credential: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static(credential));
    headers.insert("mcp-session-id", HeaderValue::from_static("legacy"));
    headers.insert("mcp-method", HeaderValue::from_static("not/this"));
    headers
}

#[derive(Default)]
struct Session {
    told: Mutex<Vec<(Change, String)>>,
}

impl Follower for Session {
    fn tell(&self, change: &Change, message: &Payload) {
        let text = String::from_utf8(message.to_bytes().to_vec()).unwrap();
        self.told.lock().unwrap().push((change.clone(), text));
    }
}

impl Session {
    async fn told(&self) -> Vec<Change> {
        // Longer than anything that is on its way takes.
        sleep(Duration::from_millis(100)).await;
        self.told.lock().unwrap().drain(..).map(|(change, _)| change).collect()
    }
}

struct Asked {
    io: DuplexStream,
    request: String,
    id: String,
}

impl Asked {
    fn asks(&self) -> &str {
        let filter = self.request.split("\"notifications\":").nth(1).unwrap();
        filter.strip_suffix("}}").unwrap()
    }

    /// Answers with an event stream whose first message acknowledges all that was asked for.
    async fn acknowledge(mut self) -> Stream {
        let honoured = self.asks().to_owned();
        self.open().await.acknowledge(&honoured).await
    }

    async fn open(&mut self) -> Stream {
        let head =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (closed, _) = tokio::io::duplex(1);
        let mut io = std::mem::replace(&mut self.io, closed);
        io.write_all(head).await.unwrap();
        Stream { io, id: self.id.clone() }
    }

    async fn answer(mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.io.write_all(text.as_bytes()).await.unwrap();
    }

    async fn refuse(self, code: i64) {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"no"}}}}"#, self.id);
        self.answer(if code == -32601 { "404 Not Found" } else { "200 OK" }, "", &body).await;
    }
}

struct Stream {
    io: DuplexStream,
    id: String,
}

impl Stream {
    async fn send(&mut self, message: &str) {
        let event = format!("data: {message}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        self.io.write_all(chunk.as_bytes()).await.unwrap();
    }

    async fn acknowledge(mut self, honoured: &str) -> Self {
        let tag = self.tag();
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{{tag},"notifications":{honoured}}}}}"#
        ))
        .await;
        self
    }

    fn tag(&self) -> String {
        format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#, self.id)
    }

    async fn changed(&mut self, list: &str) {
        let tag = self.tag();
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed","params":{{{tag}}}}}"#
        ))
        .await;
    }

    async fn updated(&mut self, uri: &str) {
        let tag = self.tag();
        self.send(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{{tag},"uri":"{uri}"}}}}"#)).await;
    }

    async fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        matches!(timeout(Duration::from_millis(1), self.io.read(&mut byte)).await, Ok(Ok(0) | Err(_)))
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn updated(uri: &str) -> Change {
    Change::Updated(uri.into())
}

/// Subscribes while the server acknowledges as much as `honoured` names.
async fn subscribed(stage: &mut Stage, following: &Following, uri: &str) -> Stream {
    let serve = async { stage.listen().await.acknowledge().await };
    let (granted, stream) = tokio::join!(following.subscribe(uri, 100, soon()), serve);
    assert_eq!(granted, Ok(()));
    stream
}
