//! A server of the old HTTP+SSE (2024-11-05): one event stream for each client, whose first event says where messages go.
//!
//! Owns that transport, read and written by hand, well-behaved or not in one way each; what is said over it is `legacy`'s (or
//! any other handler's), to which a message is handed as a request and whose answers come as events. Does not own what a
//! request must look like (`shape_requests`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::DuplexStream;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::http1::{Buffered, Framing, Headers};
use super::net::{Handler, Receiver, handler};
use super::sse::Reader;
use super::{LegacyServer, Net, Reply, Seen, Upstream, rpc, within};

/// Where its event streams are.
pub const URL: &str = "http://up.test/sse";
const SID: &str = "{sid}";

impl LegacyServer {
    /// Over the old HTTP+SSE.
    pub fn start_old_sse(&self, net: &Net) -> Upstream {
        OldSseServer::new(self).start(net)
    }
}

/// How a message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Taken (202); what there is to say comes on the stream.
    Stream,
    /// The same, and the POST is answered only when it has been said.
    Late,
    /// The answer is the body of the response (200).
    Json,
    /// The same as an event stream.
    Events,
}

#[derive(Clone)]
pub struct OldSseServer {
    inner: Handler,
    path: String,
    before: String,
    endpoint: Option<String>,
    style: Style,
    handlers: HashMap<String, Handler>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    streams: Mutex<Vec<Arc<EventStream>>>,
    more: Notify,
}

enum Order {
    Bytes(Vec<u8>),
    End,
    Break,
}

/// One client's stream, seen from the test.
pub struct EventStream {
    pub seen: Arc<Seen>,
    pub sid: String,
    orders: mpsc::UnboundedSender<Order>,
    over: CancellationToken,
    /// The session of the server behind it.
    session: Mutex<Option<String>>,
    /// By raw id: cancelled when the request is.
    flights: Mutex<HashMap<String, CancellationToken>>,
}

impl EventStream {
    /// One message.
    pub fn say(&self, message: &str) {
        self.write(&format!("event: message\ndata: {message}\n\n"));
    }

    /// These bytes, in a write of their own.
    pub fn write(&self, text: &str) {
        let _ = self.orders.send(Order::Bytes(text.as_bytes().to_vec()));
    }

    /// Ends as HTTP wants it.
    pub fn end(&self) {
        let _ = self.orders.send(Order::End);
    }

    /// Breaks off.
    pub fn break_off(&self) {
        let _ = self.orders.send(Order::Break);
    }

    pub fn is_open(&self) -> bool {
        !self.over.is_cancelled()
    }

    /// Waits until neither side holds it open any more.
    pub async fn closed(&self) {
        within(&format!("the end of the stream {}", self.sid), self.over.cancelled()).await;
    }
}

impl OldSseServer {
    /// Each stream has a session of this server.
    pub fn new(server: &LegacyServer) -> Self {
        let server = server.clone();
        Self {
            inner: handler(move |seen, reply| server.clone().answer(seen, reply)),
            path: "/sse".to_owned(),
            before: String::new(),
            endpoint: Some(format!("/messages?sid={SID}")),
            style: Style::Stream,
            handlers: HashMap::new(),
            state: Arc::default(),
        }
    }

    /// Streams are opened at this path.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// These bytes come before the `endpoint` event.
    #[must_use]
    pub fn before(mut self, bytes: &str) -> Self {
        bytes.clone_into(&mut self.before);
        self
    }

    /// What the `endpoint` event says, with the session in the place of `{sid}`. Messages are taken wherever the session is
    /// named.
    #[must_use]
    pub fn endpoint(mut self, data: &str) -> Self {
        self.endpoint = Some(data.to_owned());
        self
    }

    /// The `endpoint` event never comes.
    #[must_use]
    pub fn without_endpoint(mut self) -> Self {
        self.endpoint = None;
        self
    }

    /// A POST is answered only when its message is.
    #[must_use]
    pub fn late(mut self) -> Self {
        self.style = Style::Late;
        self
    }

    /// The answer to a message is the response to its POST.
    #[must_use]
    pub fn in_json(mut self) -> Self {
        self.style = Style::Json;
        self
    }

    /// The same as an event stream.
    #[must_use]
    pub fn in_events(mut self) -> Self {
        self.style = Style::Events;
        self
    }

    /// Full control over a request: `GET` for a stream that is opened, `POST` for one to where streams are, or a message by
    /// its method (or `response`).
    #[must_use]
    pub fn on<F, T>(mut self, what: &str, f: F) -> Self
    where
        F: Fn(Arc<Seen>, Reply) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        self.handlers.insert(what.to_owned(), handler(f));
        self
    }

    /// At `http://up.test/sse`.
    pub fn start(&self, net: &Net) -> Upstream {
        self.start_at(net, "up.test")
    }

    pub fn start_at(&self, net: &Net, authority: &str) -> Upstream {
        let server = self.clone();
        let handler = handler(move |seen, reply| server.clone().answer(seen, reply));
        net.serve(authority, Receiver::OldSse, handler)
    }

    /// Every stream that was opened, in order.
    pub fn streams(&self) -> Vec<Arc<EventStream>> {
        self.state.streams.lock().unwrap().clone()
    }

    /// Streams that are open now.
    pub fn open_streams(&self) -> usize {
        self.streams().iter().filter(|stream| stream.is_open()).count()
    }

    /// Waits for the n-th stream, from 1.
    pub async fn stream(&self, n: usize) -> Arc<EventStream> {
        within(&format!("event stream number {n}"), async {
            loop {
                let more = self.state.more.notified();
                if let Some(stream) = self.streams().get(n - 1) {
                    return Arc::clone(stream);
                }
                more.await;
            }
        })
        .await
    }

    /// As any handler: for servers that are this one behind another path.
    pub async fn answer(self, seen: Arc<Seen>, reply: Reply) {
        let path = seen.target.split('?').next().unwrap_or_default().to_owned();
        let at_streams = path == self.path && !seen.target.contains("sid=");
        let what = if at_streams { seen.verb.clone() } else { seen.brief() };
        if let Some(own) = self.handlers.get(&what) {
            return own(seen, reply).await;
        }
        match (at_streams, seen.verb.as_str()) {
            (true, "GET") => self.open(seen, reply).await,
            (true, _) => reply.with("Allow", "GET").empty(405).await,
            (false, "POST") => self.take(seen, reply).await,
            (false, _) => reply.body(404, "text/html", "<h1>Not Found</h1>").await,
        }
    }

    async fn open(self, seen: Arc<Seen>, mut reply: Reply) {
        let (orders, mut ordered) = mpsc::unbounded_channel();
        let stream = {
            let mut streams = self.state.streams.lock().unwrap();
            let stream = Arc::new(EventStream {
                seen,
                sid: format!("s{}", streams.len() + 1),
                orders,
                over: CancellationToken::new(),
                session: Mutex::default(),
                flights: Mutex::default(),
            });
            streams.push(Arc::clone(&stream));
            stream
        };
        self.state.more.notify_waiters();
        let _over = stream.over.clone().drop_guard();
        reply.stream().await;
        reply.chunk(format!(": welcome\n\n{}", self.before).as_bytes()).await;
        if let Some(endpoint) = &self.endpoint {
            let endpoint = endpoint.replace(SID, &stream.sid);
            reply.chunk(format!("event: endpoint\ndata: {endpoint}\n\n").as_bytes()).await;
        }
        loop {
            let order = tokio::select! {
                order = ordered.recv() => order,
                () = reply.closed() => break,
            };
            match order {
                Some(Order::Bytes(bytes)) => reply.chunk(&bytes).await,
                Some(Order::End) => {
                    reply.end().await;
                    break;
                }
                Some(Order::Break) | None => break,
            }
        }
        // A session goes with its stream.
        let (reply, _near) = connection(&Arc::default());
        (self.inner)(Arc::new(within_session(&stream, "DELETE", Vec::new())), reply).await;
    }

    async fn take(self, seen: Arc<Seen>, reply: Reply) {
        let sid = seen.target.split("sid=").nth(1).map(|rest| rest.split('&').next().unwrap_or_default());
        let stream = self.streams().into_iter().find(|stream| Some(stream.sid.as_str()) == sid);
        let Some(stream) = stream.filter(|stream| stream.is_open()) else {
            return reply.body(404, "text/plain", "Could not find session").await;
        };
        let (method, id) = (seen.rpc_method(), rpc::id(&seen.body));
        let flight = stream.over.child_token();
        if let (Some(id), false) = (id.clone(), method.is_empty()) {
            stream.flights.lock().unwrap().insert(id, flight.clone());
        }
        if method == "notifications/cancelled" {
            let id = rpc::value(&seen.body).expect("JSON")["params"]["requestId"].to_string();
            if let Some(flight) = stream.flights.lock().unwrap().remove(&id) {
                flight.cancel();
            }
        }
        let asks = id.is_some() && !method.is_empty();
        let body = seen.body.clone();
        let exchange = {
            let (server, stream) = (self.clone(), Arc::clone(&stream));
            async move {
                let said = server.exchange(&stream, "POST", body, &flight, asks).await;
                if let Some(id) = id {
                    stream.flights.lock().unwrap().remove(&id);
                }
                if method == "notifications/initialized" {
                    // What it says beside any call comes when the handshake is done.
                    tokio::spawn(async move {
                        let over = stream.over.clone();
                        server.exchange(&stream, "GET", Vec::new(), &over, false).await;
                    });
                }
                said
            }
        };
        match self.style {
            Style::Stream => {
                reply.body(202, "text/plain", "Accepted").await;
                exchange.await;
            }
            Style::Late => {
                exchange.await;
                reply.body(202, "text/plain", "Accepted").await;
            }
            Style::Json | Style::Events if !asks => {
                exchange.await;
                reply.empty(202).await;
            }
            Style::Json => match exchange.await {
                Some(answer) => reply.json(200, &answer).await,
                None => reply.empty(202).await,
            },
            Style::Events => {
                let mut reply = reply;
                let said = exchange.await;
                reply.stream().await;
                if let Some(answer) = said {
                    reply.event(&answer).await;
                }
                reply.end().await;
            }
        }
    }

    /// Hands a message to the server, and passes on what it says. Gives the answer back, if that is not to be on the stream.
    async fn exchange(
        &self,
        stream: &Arc<EventStream>,
        verb: &str,
        body: Vec<u8>,
        flight: &CancellationToken,
        asks: bool,
    ) -> Option<String> {
        let broken = Arc::new(AtomicBool::new(false));
        let (reply, near) = connection(&broken);
        let keeps = asks && matches!(self.style, Style::Json | Style::Events);
        tokio::spawn((self.inner)(Arc::new(within_session(stream, verb, body)), reply));
        let kept = flight.run_until_cancelled(pass_on(stream, near, keeps)).await.flatten();
        if broken.load(Ordering::SeqCst) {
            stream.break_off();
        }
        kept
    }
}

/// Passes on what the server behind says; the last message is kept where that is the answer.
async fn pass_on(stream: &EventStream, near: DuplexStream, keeps: bool) -> Option<String> {
    let mut near = Buffered::new(near);
    let head = near.head().await.ok()??;
    let status = head.line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    if let Some(session) = head.headers.get("mcp-session-id") {
        *stream.session.lock().unwrap() = Some(session);
    }
    let say = |message: String| -> Option<String> {
        if keeps && rpc::method(message.as_bytes()).is_none() {
            return Some(message);
        }
        stream.say(&message);
        None
    };
    let mut framing = Framing::of_response(status, &head.headers);
    if head.headers.media_type().as_deref() != Some("text/event-stream") {
        let body = near.whole(framing).await.unwrap_or_default();
        return if body.is_empty() { None } else { say(String::from_utf8(body).expect("text")) };
    }
    let mut events = Reader::default();
    let mut kept = None;
    while let Ok(Some(piece)) = near.piece(&mut framing).await {
        events.push(&piece);
        while let Some(event) = events.next() {
            if !event.data.is_empty() {
                kept = say(event.data).or(kept);
            }
        }
    }
    kept
}

/// A message as a request in the session of the server behind.
fn within_session(stream: &EventStream, verb: &str, body: Vec<u8>) -> Seen {
    let mut headers = stream.seen.headers.clone();
    let session = stream.session.lock().unwrap().clone();
    headers.0.extend(session.map(|id| ("Mcp-Session-Id".to_owned(), id.into_bytes())));
    let (connection, target) = (stream.seen.connection, "/mcp".to_owned());
    Seen { connection, verb: verb.to_owned(), target, headers, body }
}

fn connection(broken: &Arc<AtomicBool>) -> (Reply, DuplexStream) {
    let (near, far) = tokio::io::duplex(256 * 1024);
    let (reply, _) = Reply::new(Buffered::new(far), Arc::clone(broken));
    (reply, near)
}
