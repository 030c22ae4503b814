//! The whole feed against a server that writes bytes by hand, in memory and with a paused clock.

use super::*;
use crate::shutdown::Shutdown;
use crate::upstream::asking::Asking;
use crate::upstream::transport::peer::{Peer, Pipes, metrics, read_request, upstream};
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
        let dial = Arc::new(Pipes { size: 1 << 16, ends });
        let shared = Shared::new(settings, limits, dial, asking, shutdown.clone(), metrics).unwrap();
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

/// D99, A4.2-A4.4, A4.9, A13.2-A13.4, B9.7.
#[tokio::test(start_paused = true)]
async fn one_listen_tells_all_sessions_and_is_opened_again_after_it_broke_off() {
    let mut stage = Stage::new();
    let (_following, session) = stage.join(TOOLS);
    let (_other, other) = stage.join(TOOLS);
    let (_silent, silent) = stage.join(NONE);
    let asked = stage.listen().await;
    let head = asked.request.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
    for line in [
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: subscriptions/listen",
        "authorization: bearer a",
        "accept: application/json, text/event-stream",
    ] {
        assert_eq!(head.lines().filter(|seen| *seen == line).count(), 1, "{line}: {head}");
    }
    assert!(!head.contains("mcp-session-id") && !head.contains("not/this"), "{head}");
    assert_eq!(asked.asks(), r#"{"toolsListChanged":true}"#);
    let mut stream = asked.acknowledge().await;
    stream.changed("tools").await;
    stream.changed("prompts").await;
    assert_eq!(session.told().await, [Change::Tools]);
    let told = other.told.lock().unwrap().drain(..).next().unwrap();
    assert!(
        told.1.contains("notifications/tools/list_changed") && !told.1.contains("subscriptionId"),
        "{told:?}"
    );
    assert_eq!(silent.told().await, []);
    // What is kept of the server is told of everything.
    assert_eq!(stage.changed.lock().unwrap().drain(..).collect::<Vec<_>>(), [Change::Tools, Change::Prompts]);
    drop(stream);
    let before = Instant::now();
    let asked = stage.listen().await;
    assert!(before.elapsed() >= Duration::from_secs(1), "{:?}", before.elapsed());
    assert_eq!(session.told().await, []);
    let mut stream = asked.acknowledge().await;
    assert_eq!(session.told().await, [Change::Tools]);
    assert_eq!(other.told().await, [Change::Tools]);
    stream.changed("tools").await;
    assert_eq!(session.told().await, [Change::Tools]);
    stage.no_listen_for(Duration::from_secs(600)).await;
}

/// D100, A1.8.
#[tokio::test(start_paused = true)]
async fn a_subscription_waits_for_its_acknowledgement() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(NONE);
    stage.no_listen_for(Duration::from_secs(5)).await;
    let serve = async {
        let mut asked = stage.listen().await;
        assert_eq!(asked.asks(), r#"{"resourceSubscriptions":["file:///a","file:///b"]}"#);
        asked.open().await.acknowledge(r#"{"resourceSubscriptions":["file:///a"]}"#).await
    };
    let (a, b, mut stream) = tokio::join!(
        following.subscribe("file:///a", 100, soon()),
        following.subscribe("file:///b", 100, soon()),
        serve
    );
    assert_eq!((a, b), (Ok(()), Err(NotSubscribed::Refused)));
    assert_eq!(following.uris(), [Box::from("file:///a")]);
    stream.updated("file:///b").await;
    stream.updated("file:///a/1").await;
    assert_eq!(session.told().await, [updated("file:///a/1")]);
    // Another session of the same principal needs no listen for it.
    let (second, _session) = stage.join(NONE);
    assert_eq!(second.subscribe("file:///a", 100, soon()).await, Ok(()));
    following.unsubscribe("file:///a");
    stream.updated("file:///a").await;
    assert_eq!(session.told().await, []);
    // The refused one is asked for no more once there is time for it; then nothing is left.
    let mut kept = stage.listen().await.acknowledge().await;
    assert!(!stream.is_closed().await, "made before broken");
    sleep(Duration::from_secs(1)).await;
    assert!(stream.is_closed().await);
    second.unsubscribe("file:///a");
    sleep(Duration::from_secs(1)).await;
    assert!(!kept.is_closed().await);
    sleep(Duration::from_secs(5)).await;
    assert!(kept.is_closed().await);
}

/// B9.7: make before break; what both streams tell is told once, and what only the old one still tells is not lost.
#[tokio::test(start_paused = true)]
async fn while_two_listens_overlap_a_change_is_told_once() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(NONE);
    let mut first = subscribed(&mut stage, &following, "a").await;
    let serve = async {
        let mut asked = stage.listen().await;
        assert_eq!(asked.asks(), r#"{"resourceSubscriptions":["a","b"]}"#);
        let all = asked.asks().to_owned();
        first.updated("a").await;
        let mut second = asked.open().await.acknowledge(&all).await;
        second.updated("a").await;
        second.updated("a/2").await;
        first.updated("a/1").await;
        second
    };
    let (granted, mut second) = tokio::join!(following.subscribe("b", 100, soon()), serve);
    assert_eq!(granted, Ok(()));
    let mut told = session.told().await;
    told.sort_by_key(|change| format!("{change:?}"));
    assert_eq!(told, [updated("a"), updated("a/1"), updated("a/2")]);
    sleep(Duration::from_secs(1)).await;
    assert!(first.is_closed().await && !second.is_closed().await);
    // Two of them one after the other are two.
    second.updated("a").await;
    second.updated("a").await;
    assert_eq!(session.told().await, [updated("a"), updated("a")]);
}

/// Invariant 5: sessions of one principal share one hub, one listen, and who comes meanwhile is taken along.
#[tokio::test(start_paused = true)]
async fn thousands_of_sessions_share_their_listens() {
    let mut stage = Stage::new();
    let sessions: Vec<_> = (0..5000).map(|_| stage.join(TOOLS)).collect();
    let mut lists = stage.listen().await.acknowledge().await;
    assert_eq!(stage.feed.len(), 1);
    let first = sessions.iter().map(|(following, _)| following.subscribe("a", 100, soon()));
    let all = futures_util::future::join_all(first);
    let (granted, _uris) = tokio::join!(all, async { stage.listen().await.acknowledge().await });
    assert!(granted.iter().all(Result::is_ok));
    lists.changed("tools").await;
    sleep(Duration::from_millis(100)).await;
    assert!(sessions.iter().all(|(_, session)| session.told.lock().unwrap().len() == 1));
    stage.no_listen_for(Duration::from_secs(60)).await;
}

/// B9.7 at a server without the method.
#[tokio::test(start_paused = true)]
async fn a_server_without_listens_is_left_alone() {
    for (status, body) in
        [("404 Not Found", "{}"), ("405 Method Not Allowed", ""), ("202 Accepted", ""), ("", "")]
    {
        let mut stage = Stage::new();
        let (following, session) = stage.join(TOOLS);
        let asked = stage.listen().await;
        match status {
            "" => asked.refuse(-32601).await,
            status => asked.answer(status, "", body).await,
        }
        stage.no_listen_for(Duration::from_secs(3600)).await;
        let serve = async { stage.listen().await.refuse(-32601).await };
        let (refused, ()) = tokio::join!(following.subscribe("a", 100, soon()), serve);
        assert_eq!(refused, Err(NotSubscribed::Refused), "{status}");
        assert_eq!(following.subscribe("a", 100, soon()).await, Err(NotSubscribed::Refused), "{status}");
        assert!(following.uris().is_empty());
        assert_eq!(session.told().await, []);
        stage.no_listen_for(Duration::from_secs(3600)).await;
    }
}

/// A credential that the server refuses goes to it again only when a client comes with one.
#[tokio::test(start_paused = true)]
async fn a_refused_credential_waits_for_a_newer_one() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(TOOLS);
    stage.listen().await.answer("401 Unauthorized", "WWW-Authenticate: Bearer x\r\n", "").await;
    stage.no_listen_for(Duration::from_secs(3600)).await;
    let serve = async { stage.listen().await.answer("403 Forbidden", "", "").await };
    let (denied, ()) = tokio::join!(following.subscribe("a", 100, soon()), serve);
    let Err(NotSubscribed::Fault(fault)) = denied else { panic!("{denied:?}") };
    assert!(matches!(fault.kind, FaultKind::Unauthorized { status: 403, .. }), "{fault:?}");
    stage.no_listen_for(Duration::from_secs(3600)).await;
    // The same again, whatever trace it belongs to.
    let mut newer = headers("Bearer a");
    for n in 0..1000 {
        newer.insert("traceparent", HeaderValue::from(n));
        following.credential(&newer);
    }
    stage.no_listen_for(Duration::from_secs(3600)).await;
    newer.insert("x-key", HeaderValue::from_static("new"));
    following.credential(&newer);
    let asked = stage.listen().await;
    let head = asked.request.to_ascii_lowercase();
    assert!(head.contains("authorization: bearer a") && head.contains("x-key: new"), "{head}");
    assert!(!head.contains("traceparent"), "{head}");
    asked.answer("401 Unauthorized", "", "").await;
    stage.no_listen_for(Duration::from_secs(3600)).await;
    // Whoever comes may bring anything.
    let (_second, _other) = stage.join(TOOLS);
    let _stream = stage.listen().await.acknowledge().await;
    assert_eq!(session.told().await, [Change::Tools], "it may have changed meanwhile");
    following.credential(&newer);
    stage.no_listen_for(Duration::from_secs(3600)).await;
}

/// Invariant 2: what listens for one principal never goes out in the credential of another, as that of a session which has
/// moved and is used with both.
#[tokio::test(start_paused = true)]
async fn inv2_a_credential_of_another_principal_is_not_listened_with() {
    let mut stage = Stage::new();
    let (following, _session) = stage.join(TOOLS);
    stage.listen().await.answer("401 Unauthorized", "", "").await;
    stage.no_listen_for(Duration::from_secs(3600)).await;
    following.credential(&headers("Bearer b"));
    following.credential(&HeaderMap::new());
    stage.no_listen_for(Duration::from_secs(3600)).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_limits_the_rate_is_left_alone_for_so_long() {
    let mut stage = Stage::new();
    let (following, _session) = stage.join(TOOLS);
    stage.listen().await.answer("429 Too Many Requests", "Retry-After: 90\r\n", "").await;
    let before = Instant::now();
    let _stream = stage.listen().await.acknowledge().await;
    assert!(before.elapsed() >= Duration::from_secs(90), "{:?}", before.elapsed());
    let serve = async { stage.listen().await.answer("503 Busy", "Retry-After: 90\r\n", "").await };
    let (limited, ()) = tokio::join!(following.subscribe("a", 100, soon()), serve);
    assert!(matches!(limited, Err(NotSubscribed::Fault(_))), "{limited:?}");
    let before = Instant::now();
    assert!(following.subscribe("a", 100, soon()).await.is_err());
    assert_eq!(before.elapsed(), Duration::ZERO, "nobody waits for that");
    stage.no_listen_for(Duration::from_secs(3600)).await;
}

/// An acknowledgement that does not come: the client is told so in time, and it may still come.
#[tokio::test(start_paused = true)]
async fn a_silent_server_is_waited_for_but_not_by_the_client() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(NONE);
    let serve = async { stage.listen().await.open().await };
    let before = Instant::now();
    let (late, stream) = tokio::join!(following.subscribe("a", 100, soon()), serve);
    let Err(NotSubscribed::Fault(fault)) = late else { panic!("{late:?}") };
    assert_eq!(fault.kind, FaultKind::Timeout);
    assert_eq!(before.elapsed(), PATIENCE, "timeouts.initialize");
    assert!(following.uris().is_empty());
    // Whoever tries again has it tried again; and the deadline of the caller holds too.
    let serve = async { stage.listen().await };
    let (late, _asked) =
        tokio::join!(following.subscribe("a", 100, Instant::now() + Duration::from_millis(100)), serve);
    assert!(matches!(late, Err(NotSubscribed::Fault(_))), "{late:?}");
    assert_eq!(before.elapsed(), PATIENCE + Duration::from_millis(100));
    drop(stream);
    assert_eq!(session.told().await, []);
}

/// A server that answers a listen at once, with whatever, is not asked over and over.
#[tokio::test(start_paused = true)]
async fn what_ends_at_once_is_asked_for_more_and_more_seldom() {
    let mut stage = Stage::new();
    let (_following, session) = stage.join(TOOLS);
    let mut asked = Vec::new();
    for n in 0..20 {
        let mut listen = stage.listen().await;
        asked.push(Instant::now());
        let result =
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete"}}}}"#, listen.id);
        match n % 4 {
            0 => listen.answer("200 OK", "", &result).await,
            1 => {
                let mut stream = listen.acknowledge().await;
                stream.send(&result).await;
            }
            2 => drop(listen.open().await),
            _ => listen.answer("200 OK", "", "<html>").await,
        }
    }
    let last = asked[19] - asked[18];
    assert!(last >= Duration::from_secs(30) && asked[19] - asked[0] > Duration::from_secs(400), "{last:?}");
    assert!(session.told().await.len() <= 5, "no more than there were listens that stood");
}

/// B9.6: both ways in which a server may end a subscription.
#[tokio::test(start_paused = true)]
async fn a_server_may_end_a_listen_as_it_likes() {
    for end in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":ID}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"restart"}}"#,
    ] {
        let mut stage = Stage::new();
        let (_following, session) = stage.join(TOOLS);
        let mut stream = stage.listen().await.acknowledge().await;
        // Not ours: no end.
        stream.send(&end.replace("ID", "999")).await;
        stream.send(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#).await;
        stream.send("no JSON at all").await;
        stage.no_listen_for(Duration::from_secs(60)).await;
        let end = end.replace("ID", &stream.id);
        stream.send(&end).await;
        let _stream = stage.listen().await.acknowledge().await;
        assert_eq!(session.told().await, [Change::Tools], "{end}");
    }
}

/// A4.9: a message that says that it belongs to another subscription does. What is too large to be kept is told in short.
#[tokio::test(start_paused = true)]
async fn only_messages_of_the_subscription_count() {
    let mut stage = Stage::new();
    let (_following, session) = stage.join(TOOLS);
    let mut asked = stage.listen().await;
    let mut stream = asked.open().await;
    let own = std::mem::replace(&mut stream.id, "777".to_owned());
    stream = stream.acknowledge(r#"{"toolsListChanged":true}"#).await;
    stream.changed("tools").await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(session.told().await, []);
    stream.id = format!("\"{own}\"");
    stream = stream.acknowledge(r#"{"toolsListChanged":true}"#).await;
    assert_eq!(session.told().await, [Change::Tools], "it was acknowledged late");
    let large = "x".repeat(20_000);
    stream
        .send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"x":"{large}"}}}}"#
        ))
        .await;
    sleep(Duration::from_millis(100)).await;
    let told = session.told.lock().unwrap().drain(..).next().unwrap();
    assert_eq!(
        told,
        (Change::Tools, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned())
    );
}

/// One URI that the server refuses does not cost the others their subscriptions.
#[tokio::test(start_paused = true)]
async fn a_refused_uri_is_refused_alone() {
    let mut stage = Stage::new();
    let (following, _session) = stage.join(NONE);
    let _first = subscribed(&mut stage, &following, "a").await;
    let serve = async {
        let mut streams = Vec::new();
        for _ in 0..3 {
            let asked = stage.listen().await;
            if asked.asks().contains("bad") {
                asked.refuse(-32602).await;
            } else {
                streams.push(asked.acknowledge().await);
            }
        }
        streams
    };
    let (bad, good, _streams) = tokio::join!(
        following.subscribe("bad", 100, soon()),
        following.subscribe("good", 100, soon()),
        serve
    );
    assert_eq!((bad, good), (Err(NotSubscribed::Refused), Ok(())));
    stage.no_listen_for(Duration::from_secs(3600)).await;
}

/// A2.5: a change that came on the stream of a call is told to the sessions of that call's principal.
#[tokio::test(start_paused = true)]
async fn what_is_told_elsewhere_is_told_here() {
    let mut stage = Stage::new();
    let (_one, session) = stage.join_as("Bearer a", TOOLS);
    let _first = stage.listen().await.acknowledge().await;
    let (_two, other) = stage.join_as("Bearer b", TOOLS);
    let _second = stage.listen().await.acknowledge().await;
    let of = |credential| Principal::of(headers(credential).get(AUTHORIZATION));
    stage.feed.tell(of("Bearer a"), &Change::Tools, &announce(&Change::Tools));
    stage.feed.tell(of("Bearer a"), &Change::Prompts, &announce(&Change::Prompts));
    stage.feed.tell(of("Bearer c"), &Change::Resources, &announce(&Change::Resources));
    assert_eq!((session.told().await, other.told().await), (vec![Change::Tools], vec![]));
    assert_eq!(stage.changed.lock().unwrap()[..], [Change::Tools, Change::Prompts, Change::Resources]);
}

/// Invariant 5: a long URI that a server makes up is told as the subscription that it belongs to.
#[tokio::test(start_paused = true)]
async fn inv5_a_long_uri_is_told_in_short() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(NONE);
    let mut stream = subscribed(&mut stage, &following, "file:///d").await;
    stream.updated("file:///d/short").await;
    stream.updated(&format!("file:///d/{}", "x".repeat(10_000))).await;
    stream.updated(&format!("file:///e/{}", "x".repeat(10_000))).await;
    assert_eq!(session.told().await, [updated("file:///d/short"), updated("file:///d")]);
}

/// Invariant 2, and the life of a hub.
#[tokio::test(start_paused = true)]
async fn each_principal_has_its_own_hub_until_its_last_session_has_left() {
    let mut stage = Stage::new();
    let (one, session) = stage.join_as("Bearer a", TOOLS);
    let mut first = stage.listen().await.acknowledge().await;
    let (_two, other) = stage.join_as("Bearer b", TOOLS);
    let asked = stage.listen().await;
    assert!(asked.request.contains("Bearer b"));
    let mut second = asked.acknowledge().await;
    first.changed("tools").await;
    assert_eq!((session.told().await, other.told().await), (vec![Change::Tools], vec![]));
    assert_eq!(stage.feed.len(), 2);
    drop(one);
    sleep(Duration::from_secs(1)).await;
    // One that comes back in time finds everything as it was.
    let (one, _session) = stage.join_as("Bearer a", TOOLS);
    stage.no_listen_for(Duration::from_secs(60)).await;
    drop(one);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.feed.len(), 1);
    assert!(first.is_closed().await && !second.is_closed().await);
    let (_one, _session) = stage.join_as("Bearer a", TOOLS);
    let _again = stage.listen().await.acknowledge().await;
}

/// Invariant 5: what is listened for and nobody is there to hear is bounded, however fast sessions come and go.
#[tokio::test(start_paused = true)]
async fn inv5_few_hubs_outlive_their_sessions() {
    let mut stage = Stage::new();
    let mut all = Vec::new();
    for n in 0..50 {
        let credential = format!("Bearer {n}");
        let (following, _session) = stage.join_as(Box::leak(credential.into_boxed_str()), TOOLS);
        all.push((following, stage.listen().await.acknowledge().await));
    }
    let (parts, mut streams): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.feed.len(), 50);
    drop(parts);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(stage.feed.len(), LINGERING);
    let mut open = 0;
    for stream in &mut streams {
        open += usize::from(!stream.is_closed().await);
    }
    assert_eq!(open, LINGERING);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.feed.len(), 0);
    assert_eq!(stage.feed.lingering.load(Ordering::Acquire), 0);
}

#[tokio::test(start_paused = true)]
async fn the_drain_ends_it() {
    let mut stage = Stage::new();
    let (following, _session) = stage.join(TOOLS);
    let mut stream = stage.listen().await.acknowledge().await;
    let drain = async {
        let _asked = stage.listen().await;
        stage.shutdown.drain();
    };
    let (drained, ()) = tokio::join!(following.subscribe("a", 100, soon()), drain);
    let Err(NotSubscribed::Fault(fault)) = drained else { panic!("{drained:?}") };
    assert_eq!(fault.kind, FaultKind::Draining);
    assert_eq!(stage.shutdown.finished().await, crate::shutdown::Ending::Drained);
    assert!(stream.is_closed().await);
    drop(following);
}

/// Invariant 5: a server that tells without end is told on in a measure, and the last word is never left out.
#[tokio::test(start_paused = true)]
async fn a_flood_of_changes_is_told_in_a_measure() {
    let mut stage = Stage::new();
    let (following, session) = stage.join(TOOLS);
    let mut lists = stage.listen().await.acknowledge().await;
    let mut uris = subscribed(&mut stage, &following, "d").await;
    let before = Instant::now();
    for _ in 0..5000 {
        lists.changed("tools").await;
    }
    let took = before.elapsed().as_millis() as usize;
    sleep(Duration::from_millis(60)).await;
    let told = session.told().await;
    assert!(told.len() >= 2 && told.len() <= 3 + took / 50, "{} in {took} ms", told.len());
    assert_eq!(stage.changed.lock().unwrap().len(), told.len());
    let mut all = std::collections::HashSet::new();
    for n in 0..2000 {
        uris.updated(&format!("d/{n}")).await;
    }
    sleep(Duration::from_secs(5)).await;
    all.extend(session.told().await);
    assert_eq!(all.len(), 2000, "each of them");
    assert!(before.elapsed() >= Duration::from_millis(350), "the server had to wait");
}

/// A server that ends each listen at once, while clients come and go: neither waits for the other.
#[tokio::test(start_paused = true)]
async fn sessions_that_come_and_go_at_a_server_that_does_not_keep_still() {
    let mut stage = Stage::new();
    let feed = stage.feed.clone();
    let coming = async {
        for n in 0..300u64 {
            let session = Arc::new(Session::default());
            let follower: Arc<dyn Follower> = session.clone();
            let headers = headers("Bearer a");
            let principal = Principal::of(headers.get(AUTHORIZATION));
            let following = feed.join(principal, &headers, TOOLS, Arc::downgrade(&follower));
            drop(follower);
            let uri = format!("u:{}", n % 7);
            let waited =
                following.subscribe(&uri, 100, Instant::now() + Duration::from_millis(50 * (n % 5))).await;
            if n % 3 == 0 && waited.is_ok() {
                following.unsubscribe(&uri);
            }
            if n % 2 == 0 {
                drop(session);
            }
            sleep(Duration::from_millis(n * 37 % 500)).await;
        }
    };
    let mut listens = 0;
    let serving = async {
        loop {
            let asked = stage.listen().await;
            listens += 1;
            match listens % 4 {
                0 => drop(asked),
                1 => drop(asked.acknowledge().await),
                2 => asked.refuse(-32602).await,
                _ => {
                    let mut stream = asked.acknowledge().await;
                    stream.changed("tools").await;
                    stream.updated("u:1").await;
                }
            }
        }
    };
    tokio::select! {
        () = coming => {}
        () = serving => {}
    }
    assert!(listens > 10 && listens < 600, "{listens}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(feed.len(), 0);
}
