//! Channels of HTTP+SSE against a peer that writes bytes by hand (C42), in memory and with a paused clock.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::super::error::{NoEndpoint, SendError};
use super::super::peer::{Peer, REQUEST, read_request, stage, upstream};
use super::super::pipe::{Inbox, Open, Pipe, Trouble};
use super::OldSse;
use super::endpoint::{Override, resolve};
use crate::shutdown::Shutdown;
use crate::wire::jsonrpc::Id;
use crate::wire::payload::Payload;

const URL: &str = "http://h.test/api/v1/sse";
const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const ENDPOINT: &str = "event: endpoint\ndata: /messages?sid=1\n\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\nAccepted";
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What came, in words.
#[derive(Default)]
struct Heard {
    what: Mutex<Vec<String>>,
    more: Notify,
}

impl Heard {
    fn note(&self, what: String) {
        self.what.lock().unwrap().push(what);
        self.more.notify_waiters();
    }

    fn all(&self) -> Vec<String> {
        self.what.lock().unwrap().clone()
    }

    async fn wait(&self, n: usize) -> Vec<String> {
        loop {
            let more = self.more.notified();
            let all = self.all();
            if all.len() >= n {
                return all;
            }
            more.await;
        }
    }
}

impl Inbox for Heard {
    fn text(&self, text: Bytes) {
        self.note(String::from_utf8(text.to_vec()).unwrap());
    }

    fn too_long(&self, id: Option<Id>) {
        let id = id.map(|id| String::from_utf8(id.raw().to_vec()).unwrap());
        self.note(format!("too long: {id:?}"));
    }

    fn ended(&self, why: Cow<'static, str>) {
        self.note(format!("ended: {why}"));
    }
}

struct Stage {
    sse: Arc<OldSse>,
    peer: Peer,
    heard: Arc<Heard>,
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer t"));
    headers.insert(HeaderName::from_static("mcp-session-id"), HeaderValue::from_static("ours"));
    headers
}

impl Stage {
    fn new() -> Self {
        Self::with(None, 1 << 20)
    }

    fn with(instead: Option<&str>, message_bytes: usize) -> Self {
        let (http, peer) = stage(URL, 1 << 20);
        let mut settings = upstream(URL);
        settings.sse_endpoint = instead.map(str::to_owned);
        settings.limits.message_bytes = message_bytes;
        let sse = OldSse::new(&settings, http, Shutdown::new(Duration::from_secs(1))).unwrap();
        Self { sse: Arc::new(sse), peer, heard: Arc::default() }
    }

    fn opening(&self) -> JoinHandle<Result<Arc<dyn Pipe>, Trouble>> {
        let (sse, heard) = (self.sse.clone(), self.heard.clone());
        tokio::spawn(async move { sse.open(&headers(), heard).await })
    }

    /// Opens a channel; the stream's connection stays with the test.
    async fn open(&mut self) -> (Arc<dyn Pipe>, DuplexStream) {
        let opening = self.opening();
        let mut io = self.peer.accept().await;
        let request = read_request(&mut io).await;
        assert!(request.starts_with("GET /api/v1/sse HTTP/1.1\r\n"), "{request}");
        write(&mut io, &format!("{STREAM}{ENDPOINT}")).await;
        (taken(opening.await.unwrap()), io)
    }

    /// The error of an opening that the peer answers with these bytes, and the stream's connection.
    async fn refused(&mut self, answer: &str) -> (Trouble, DuplexStream) {
        let opening = self.opening();
        let mut io = self.peer.accept().await;
        read_request(&mut io).await;
        write(&mut io, answer).await;
        let Err(trouble) = opening.await.unwrap() else { panic!("{answer}: a channel was opened") };
        (trouble, io)
    }
}

async fn write(io: &mut DuplexStream, text: &str) {
    io.write_all(text.as_bytes()).await.unwrap();
}

fn taken<T>(result: Result<T, Trouble>) -> T {
    match result {
        Ok(value) => value,
        Err(Trouble::Send(error)) => panic!("{error}"),
        Err(Trouble::Refused(response)) => panic!("refused: {}", response.status()),
    }
}

fn none(trouble: Trouble) -> NoEndpoint {
    match trouble {
        Trouble::Send(SendError::Endpoint(none)) => none,
        Trouble::Send(other) => panic!("{other}"),
        Trouble::Refused(response) => panic!("refused: {}", response.status()),
    }
}

fn sending(pipe: &Arc<dyn Pipe>, text: &'static str) -> JoinHandle<Result<(), Trouble>> {
    let pipe = pipe.clone();
    tokio::spawn(async move { pipe.send(Payload::from(text), &headers()).await })
}

/// The stream's connection has been closed by the client.
async fn closed(io: &mut DuplexStream) {
    assert_eq!(io.read(&mut [0; 64]).await.unwrap(), 0, "closed by the proxy");
}

#[test]
fn c42_endpoints_are_read_by_the_rules_of_urls() {
    let (http, _peer) = stage(URL, 64);
    let home = http.home();
    let good = [
        ("/messages?sid=1", "http://h.test/messages?sid=1"),
        ("messages?sid=1", "http://h.test/api/v1/messages?sid=1"),
        ("?sid=1", "http://h.test/api/v1/sse?sid=1"),
        ("../m/", "http://h.test/api/m/"),
        ("http://H.test:80/m?a=b&c=%20d#f", "http://h.test/m?a=b&c=%20d"),
        ("//h.test/m", "http://h.test/m"),
        (" /m ", "http://h.test/m"),
    ];
    for (told, expected) in good {
        let place = resolve(told, home, &http, None).unwrap();
        assert_eq!(place.url().as_str(), expected, "{told}");
        assert_eq!(place.uri().to_string(), expected, "{told}");
    }
    let elsewhere = [
        "//evil.example/m",
        "http://internal:9000/m",
        "https://other.example/m",
        "https://h.test/m",
        "http://h.test:81/m",
        "http://u:p@h.test/m",
        "file:///etc/passwd",
        "data:text/plain,x",
    ];
    for told in elsewhere {
        let error = resolve(told, home, &http, None).unwrap_err();
        assert!(matches!(error, NoEndpoint::CrossOrigin { .. }), "{told}: {error:?}");
    }
    let error = resolve("http://", home, &http, None).unwrap_err();
    assert!(matches!(error, NoEndpoint::Unusable { .. }), "{error:?}");
}

#[test]
fn c42_an_override_goes_before_the_event_and_keeps_its_query() {
    let (http, _peer) = stage(URL, 64);
    let table = [
        ("/api/v1/messages", "/messages?sid=1", "http://h.test/api/v1/messages?sid=1"),
        ("/m?key=k", "/messages?sid=1", "http://h.test/m?key=k&sid=1"),
        ("/m?key=k", "/messages", "http://h.test/m?key=k"),
        ("http://h.test/m", "http://internal:9000/messages?sid=1", "http://h.test/m?sid=1"),
    ];
    for (setting, told, expected) in table {
        let instead = Override::read(setting, &http).unwrap();
        let place = resolve(told, http.home(), &http, Some(&instead)).unwrap();
        assert_eq!(place.url().as_str(), expected, "{setting}");
    }
    for setting in ["//evil.example/m", "https://h.test/m", "http://u:p@h.test/m", "http://"] {
        let reason = Override::read(setting, &http).err().unwrap();
        assert!(reason.contains("sse_endpoint"), "{setting}: {reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_opens_whatever_comes_before_its_endpoint() {
    let before = [
        "",
        ": hello\n\n",
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"early\"}\n\n",
        "data: {}\n\nevent: ping\ndata: x\n\nid: 4\n\nretry: 10\n\n",
        "event: endpoint\ndata:\n\n",
        "\u{feff}: mark\r\n\r\n",
    ];
    for before in before {
        let mut stage = Stage::new();
        let opening = stage.opening();
        let mut io = stage.peer.accept().await;
        let request = read_request(&mut io).await.to_ascii_lowercase();
        assert!(request.contains("accept: text/event-stream\r\n"), "{request}");
        assert!(request.contains("authorization: bearer t\r\n"), "{request}");
        assert!(!request.contains("mcp-session-id") && !request.contains("content-type"), "{request}");
        write(&mut io, &format!("{STREAM}{before}")).await;
        sleep(Duration::from_secs(5)).await;
        assert!(!opening.is_finished(), "{before}");
        // Cut anywhere.
        write(&mut io, "event: endpoint\r\ndata: /mess").await;
        write(&mut io, "ages?sid=1\r\n\r\n").await;
        let pipe = taken(opening.await.unwrap());
        assert_eq!(stage.sse.endpoints(), 1);
        let sent = sending(&pipe, CALL);
        let mut post = stage.peer.accept().await;
        let request = read_request(&mut post).await;
        assert!(request.starts_with("POST /messages?sid=1 HTTP/1.1\r\n"), "{request}");
        write(&mut post, ACCEPTED).await;
        taken(sent.await.unwrap());
        assert!(stage.heard.all().is_empty(), "{:?}", stage.heard.all());
    }
}

#[tokio::test(start_paused = true)]
async fn c42_an_endpoint_that_never_comes_is_a_timeout_that_says_so() {
    for silence in ["", STREAM, &format!("{STREAM}: still here\n\n")] {
        let mut stage = Stage::new();
        let opening = stage.opening();
        let mut io = stage.peer.accept().await;
        read_request(&mut io).await;
        let since = Instant::now();
        write(&mut io, silence).await;
        let Err(trouble) = opening.await.unwrap() else { panic!("a channel was opened") };
        let none = none(trouble);
        assert!(since.elapsed() < REQUEST, "before the time of `initialize` is over");
        assert!(none.to_string().contains("`endpoint` event did not come within"), "{none}");
        closed(&mut io).await;
        assert_eq!(stage.sse.endpoints(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn c42_a_stream_that_is_none_or_ends_is_no_channel() {
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let (trouble, _io) = Stage::new().refused(json).await;
    assert_eq!(none(trouble), NoEndpoint::NotAStream("status 200 and application/json".to_owned()));
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    let (trouble, _io) = Stage::new().refused(empty).await;
    assert_eq!(none(trouble), NoEndpoint::NotAStream("status 204 and no media type".to_owned()));
    let ended = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 5\r\n\r\n: x\n\n";
    let (trouble, _io) = Stage::new().refused(ended).await;
    assert_eq!(none(trouble), NoEndpoint::Ended);
}

#[tokio::test(start_paused = true)]
async fn c42_a_cross_origin_endpoint_gets_nothing() {
    for told in ["//evil.example/m", "http://internal:9000/m?sid=secret", "https://h.test/m"] {
        let mut stage = Stage::new();
        let (trouble, mut io) = stage.refused(&format!("{STREAM}event: endpoint\ndata: {told}\n\n")).await;
        let error = none(trouble).to_string();
        assert!(
            error.contains(told.split('?').next().unwrap()) && error.contains("http://h.test:80"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
        closed(&mut io).await;
        assert_eq!(stage.peer.connections_waiting(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_stream_is_refused_with_is_the_callers_answer() {
    let mut stage = Stage::new();
    let answer =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer scope=\"x\"\r\nContent-Length: 0\r\n\r\n";
    let (trouble, _io) = stage.refused(answer).await;
    let Trouble::Refused(response) = trouble else { panic!("not refused") };
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer scope=\"x\"");
}

#[tokio::test(start_paused = true)]
async fn c42_an_endpoint_is_read_against_where_the_stream_was_found() {
    let mut stage = Stage::new();
    let opening = stage.opening();
    let mut io = stage.peer.accept().await;
    read_request(&mut io).await;
    write(&mut io, "HTTP/1.1 307 X\r\nLocation: /api/v2/sse/\r\nContent-Length: 0\r\n\r\n").await;
    let request = read_request(&mut io).await;
    assert!(request.starts_with("GET /api/v2/sse/ HTTP/1.1\r\n"), "{request}");
    write(&mut io, &format!("{STREAM}event: endpoint\ndata: messages?sid=1\n\n")).await;
    let pipe = taken(opening.await.unwrap());
    let _sent = sending(&pipe, CALL);
    let request = read_request(&mut stage.peer.accept().await).await;
    assert!(request.starts_with("POST /api/v2/sse/messages?sid=1 HTTP/1.1\r\n"), "{request}");
}

#[tokio::test(start_paused = true)]
async fn messages_go_by_post_and_come_on_the_stream() {
    let mut stage = Stage::new();
    let (pipe, mut stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    let request = read_request(&mut post).await;
    assert!(request.starts_with("POST /messages?sid=1 HTTP/1.1\r\n") && request.ends_with(CALL), "{request}");
    let lower = request.to_ascii_lowercase();
    for line in [
        "content-type: application/json\r\n",
        "accept: application/json, text/event-stream\r\n",
        "authorization: bearer t\r\n",
        "host: h.test\r\n",
    ] {
        assert!(lower.contains(line), "{line} in {request}");
    }
    assert!(!lower.contains("mcp-session-id"), "{request}");
    // The answer may be there before the POST is accepted.
    write(&mut stream, ": keep-alive\n\nevent: message\ndata: {\"id\":1}\n\ndata: {\ndata: \"x\":2}\n\n")
        .await;
    assert_eq!(stage.heard.wait(2).await, ["{\"id\":1}", "{\n\"x\":2}"]);
    assert!(!sent.is_finished());
    write(&mut post, ACCEPTED).await;
    taken(sent.await.unwrap());
    // Others than messages are none.
    write(&mut stream, "event: endpoint\ndata: /other\n\nevent: ping\ndata: {}\n\ndata:\n\ndata: 3\n\n")
        .await;
    assert_eq!(stage.heard.wait(3).await[2], "3");
    // The connection of the first POST serves the second.
    let sent = sending(&pipe, NOTE);
    assert!(read_request(&mut post).await.ends_with(NOTE));
    write(&mut post, ACCEPTED).await;
    taken(sent.await.unwrap());
    assert_eq!(stage.peer.connections_waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn c42_a_reply_in_the_response_is_one_on_the_stream() {
    let json = |status: &str, body: &str| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let events = "data: {\"id\":1}\n\nevent: other\ndata: x\n\nevent: message\ndata: {\"id\":2}\n\n";
    let table: [(String, &[&str]); 6] = [
        (json("200 OK", "{\"id\":1}"), &["{\"id\":1}"]),
        (
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{events}",
                events.len()
            ),
            &["{\"id\":1}", "{\"id\":2}"],
        ),
        (json("202 Accepted", "\"Accepted\""), &[]),
        (json("200 OK", ""), &[]),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok".to_owned(), &[]),
        ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), &[]),
    ];
    for (answer, expected) in table {
        let mut stage = Stage::new();
        let (pipe, mut stream) = stage.open().await;
        let sent = sending(&pipe, CALL);
        let mut post = stage.peer.accept().await;
        read_request(&mut post).await;
        write(&mut post, &answer).await;
        taken(sent.await.unwrap());
        assert_eq!(stage.heard.wait(expected.len()).await, expected, "{answer}");
        // Nothing more than that has come when a later event has.
        sleep(Duration::from_secs(1)).await;
        write(&mut stream, "data: last\n\n").await;
        assert_eq!(stage.heard.wait(expected.len() + 1).await.last().unwrap(), "last", "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_message_is_refused_with_is_the_callers_answer() {
    for status in [400, 401, 403, 413, 429, 500, 503] {
        let mut stage = Stage::new();
        let (pipe, mut stream) = stage.open().await;
        let sent = sending(&pipe, CALL);
        let mut post = stage.peer.accept().await;
        read_request(&mut post).await;
        let answer = format!("HTTP/1.1 {status} X\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
        write(&mut post, &answer).await;
        let Err(Trouble::Refused(response)) = sent.await.unwrap() else { panic!("{status}") };
        assert_eq!(
            (response.status().as_u16(), &response.headers()[RETRY_AFTER]),
            (status, &"7".parse().unwrap())
        );
        // Only that message failed.
        write(&mut stream, "data: on\n\n").await;
        assert_eq!(stage.heard.wait(1).await, ["on"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_the_server_does_not_know_is_over() {
    let mut stage = Stage::new();
    let (pipe, mut stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    read_request(&mut post).await;
    write(&mut post, "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n").await;
    let Err(Trouble::Refused(response)) = sent.await.unwrap() else { panic!("not refused") };
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    closed(&mut stream).await;
    assert_eq!(stage.heard.wait(1).await, ["ended: it was ended"]);
}

#[tokio::test(start_paused = true)]
async fn notifications_keep_their_place_and_requests_go_side_by_side() {
    let mut stage = Stage::new();
    let (pipe, _stream) = stage.open().await;
    let first = sending(&pipe, CALL);
    let mut one = stage.peer.accept().await;
    read_request(&mut one).await;
    let second = sending(&pipe, CALL);
    let mut two = stage.peer.accept().await;
    read_request(&mut two).await;
    // A notification waits for both of them, and a request for it.
    let note = sending(&pipe, NOTE);
    tokio::task::yield_now().await;
    let third = sending(&pipe, CALL);
    write(&mut one, ACCEPTED).await;
    taken(first.await.unwrap());
    tokio::task::yield_now().await;
    assert_eq!(stage.peer.connections_waiting(), 0);
    assert!(!note.is_finished() && !third.is_finished());
    write(&mut two, ACCEPTED).await;
    taken(second.await.unwrap());
    let (mut noted, text) = either_of(one, two).await;
    assert!(text.ends_with(NOTE), "{text}");
    assert!(!third.is_finished());
    write(&mut noted, ACCEPTED).await;
    taken(note.await.unwrap());
    let (mut last, text) = next(&mut stage.peer, noted).await;
    assert!(text.ends_with(CALL), "{text}");
    write(&mut last, ACCEPTED).await;
    taken(third.await.unwrap());
}

/// The next request on either of two connections; the other one is closed.
async fn either_of(mut one: DuplexStream, mut two: DuplexStream) -> (DuplexStream, String) {
    tokio::select! {
        text = read_request(&mut one) => (one, text),
        text = read_request(&mut two) => (two, text),
    }
}

/// The next request on this connection or on a new one.
async fn next(peer: &mut Peer, mut old: DuplexStream) -> (DuplexStream, String) {
    tokio::select! {
        text = read_request(&mut old) => (old, text),
        mut new = peer.accept() => {
            let text = read_request(&mut new).await;
            (new, text)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_a_post_late_holds_up_nobody_for_long() {
    let mut stage = Stage::new();
    let (pipe, _stream) = stage.open().await;
    let call = sending(&pipe, CALL);
    let mut slow = stage.peer.accept().await;
    read_request(&mut slow).await;
    let since = Instant::now();
    let note = sending(&pipe, NOTE);
    let mut quick = stage.peer.accept().await;
    assert!(read_request(&mut quick).await.ends_with(NOTE));
    assert!(since.elapsed() <= Duration::from_secs(1), "{:?}", since.elapsed());
    write(&mut quick, ACCEPTED).await;
    taken(note.await.unwrap());
    // Nobody waits a second time for it.
    let since = Instant::now();
    let note = sending(&pipe, NOTE);
    read_request(&mut quick).await;
    assert_eq!(since.elapsed(), Duration::ZERO);
    write(&mut quick, ACCEPTED).await;
    taken(note.await.unwrap());
    let reply = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"id\":1}";
    write(&mut slow, reply).await;
    taken(call.await.unwrap());
    assert_eq!(stage.heard.wait(1).await, ["{\"id\":1}"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_sender_goes_is_handed_over_all_the_same() {
    let mut stage = Stage::new();
    let (pipe, _stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    sent.abort();
    assert!(sent.await.is_err());
    assert!(read_request(&mut post).await.ends_with(CALL));
    write(&mut post, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        .await;
    assert_eq!(stage.heard.wait(1).await, ["{}"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_the_end() {
    let mut stage = Stage::new();
    let (pipe, stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    read_request(&mut post).await;
    drop(stream);
    let Err(Trouble::Send(error)) = sent.await.unwrap() else { panic!("it was sent") };
    assert!(matches!(error, SendError::Ended { .. }) && !error.did_not_run(), "{error}");
    closed(&mut post).await;
    assert_eq!(stage.heard.wait(1).await.len(), 1);
    let Err(Trouble::Send(error)) = sending(&pipe, CALL).await.unwrap() else { panic!("it was sent") };
    assert!(matches!(error, SendError::Ended { .. }), "{error}");
    assert_eq!((stage.heard.all().len(), stage.peer.connections_waiting()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn ending_a_channel_closes_its_stream() {
    let mut stage = Stage::new();
    let (pipe, mut stream) = stage.open().await;
    pipe.end();
    closed(&mut stream).await;
    assert_eq!(stage.heard.wait(1).await, ["ended: it was ended"]);
    // Dropping the last handle is the same.
    let (pipe, mut stream) = stage.open().await;
    drop(pipe);
    closed(&mut stream).await;
    assert_eq!(stage.heard.wait(2).await[1], "ended: it was ended");
    // And so is the end of all.
    let (_pipe, mut stream) = stage.open().await;
    stage.sse.close().await;
    assert_eq!(stage.heard.all().len(), 3);
    closed(&mut stream).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_too_long_is_passed_over_with_its_id() {
    let mut stage = Stage::with(None, 100);
    let (_pipe, mut stream) = stage.open().await;
    let fill = "x".repeat(200_000);
    let fits = format!("{{\"id\":1,\"result\":\"{}\"}}", "x".repeat(80));
    assert_eq!(fits.len(), 100);
    let long = format!(
        "data: {fits}\n\nevent: message\ndata: {fits} \n\ndata: {{\"result\":\"{fill}\",\"id\":\"a\"}}\n\n: {}\n\ndata: done\n\n",
        "c".repeat(150)
    );
    write(&mut stream, &long).await;
    let heard = stage.heard.wait(4).await;
    assert_eq!(heard[0], fits);
    assert_eq!(heard[1..], ["too long: Some(\"1\")", "too long: Some(\"\\\"a\\\"\")", "done"]);
    // A line without end that is no data cannot be passed over.
    write(&mut stream, &format!(": {fill}")).await;
    assert_eq!(stage.heard.wait(5).await[4], "ended: the event stream has a line without end");
    closed(&mut stream).await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_a_response_that_is_too_long_is_passed_over_with_its_id() {
    let mut stage = Stage::with(None, 100);
    let (pipe, _stream) = stage.open().await;
    let sent = sending(&pipe, CALL);
    let mut post = stage.peer.accept().await;
    read_request(&mut post).await;
    let body = format!("{{\"result\":\"{}\",\"id\":9}}", "x".repeat(200));
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    write(&mut post, &(head + &body)).await;
    taken(sent.await.unwrap());
    assert_eq!(stage.heard.wait(1).await, ["too long: Some(\"9\")"]);
}
