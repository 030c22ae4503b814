//! The servers of `legacy` and `modern` (and any other handler) behind the pipes of a process: a line that comes in is handed
//! to them as a request, and what they answer goes out as lines.
//!
//! Owns the way from lines to requests and back, read and written by hand: the same servers, and all that holds their calls
//! for a test, serve over every transport. What a request over HTTP says beside its body is put to it here (session, version,
//! method), so that the checks of requests hold for lines too. Does not own processes (`stdio_server`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use super::http1::{Buffered, Framing, Headers};
use super::net::{Receiver, handler};
use super::sse::Reader;
use super::stdio_server::{Script, script};
use super::{Child, LegacyServer, ModernServer, Net, Reply, Running, Seen, Upstream, rpc};

/// The target of a request that came as a line.
pub const TARGET: &str = "stdio";
const MODERN: &str = "2026-07-28";

impl LegacyServer {
    /// Behind the pipes of a program of this name.
    pub fn start_program(&self, net: &Net, name: &str) -> Upstream {
        let server = self.clone();
        let handler = handler(move |seen, reply| server.clone().answer(seen, reply));
        start(net, name, net.serve(name, Receiver::Legacy, handler))
    }
}

impl ModernServer {
    /// Behind the pipes of a program of this name.
    pub fn start_program(&self, net: &Net, name: &str) -> Upstream {
        self.start_program_as(net, name, Receiver::Modern)
    }

    /// The same behind legacy clients only.
    pub fn start_bridged_program(&self, net: &Net, name: &str) -> Upstream {
        self.start_program_as(net, name, Receiver::Bridged)
    }

    fn start_program_as(&self, net: &Net, name: &str, receiver: Receiver) -> Upstream {
        let server = self.clone();
        let handler = handler(move |seen, reply| server.clone().answer(seen, reply));
        start(net, name, net.serve(name, receiver, handler))
    }
}

/// Puts a peer of the network behind the pipes of a program.
pub fn start(net: &Net, name: &str, upstream: Upstream) -> Upstream {
    net.programs().put_script(name, behind(upstream.clone()));
    upstream
}

/// A process that hands its lines to this peer, until its input ends.
pub fn behind(upstream: Upstream) -> Script {
    script(move |child| {
        let process = Server { upstream: upstream.clone(), running: child.running(), state: Arc::default() };
        process.serve(child)
    })
}

#[derive(Clone)]
struct Server {
    upstream: Upstream,
    running: Arc<Running>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    session: Option<String>,
    /// By raw id: cancelled when the request is.
    flights: HashMap<String, CancellationToken>,
}

impl Server {
    async fn serve(self, mut child: Child) -> u8 {
        let (server, running) = (self.clone(), child.running());
        // A session goes with its process.
        tokio::spawn(async move {
            running.over().await;
            let seen = Arc::new(server.seen("DELETE", Vec::new()));
            let (reply, _near) = connection(&Arc::default());
            server.upstream.handle(seen, reply);
        });
        while let Some(line) = child.line().await {
            let seen = self.upstream.arrived(self.seen("POST", line.clone().into_bytes()));
            let (method, id) = (seen.rpc_method(), rpc::id(&seen.body));
            let flight = CancellationToken::new();
            if let (Some(id), false) = (id, method.is_empty()) {
                self.state.lock().unwrap().flights.insert(id, flight.clone());
            }
            // What follows may come at once, and on several threads tasks have no order.
            let exchange = self.clone().exchange(seen, flight);
            match method.as_str() {
                "notifications/initialized" => exchange.await,
                _ => child.spawn(exchange),
            }
            match method.as_str() {
                "notifications/cancelled" => {
                    let id = rpc::value(line.as_bytes()).expect("JSON")["params"]["requestId"].to_string();
                    if let Some(flight) = self.state.lock().unwrap().flights.remove(&id) {
                        flight.cancel();
                    }
                }
                // What it says beside any call comes when the handshake is done.
                "notifications/initialized" => {
                    let seen = Arc::new(self.seen("GET", Vec::new()));
                    child.spawn(self.clone().exchange(seen, CancellationToken::new()));
                }
                _ => {}
            }
        }
        0
    }

    /// One request, and the lines that it is answered.
    async fn exchange(self, seen: Arc<Seen>, flight: CancellationToken) {
        let broken = Arc::new(AtomicBool::new(false));
        let (reply, near) = connection(&broken);
        let id = rpc::id(&seen.body).unwrap_or_default();
        self.upstream.handle(seen, reply);
        flight.run_until_cancelled(self.pass_on(near)).await;
        if broken.load(Ordering::SeqCst) {
            self.running.exit(1);
        }
        self.state.lock().unwrap().flights.remove(&id);
    }

    async fn pass_on(&self, near: DuplexStream) {
        let mut near = Buffered::new(near);
        let Ok(Some(head)) = near.head().await else { return };
        let status = head.line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        if let Some(session) = head.headers.get("mcp-session-id") {
            self.state.lock().unwrap().session = Some(session);
        }
        let mut framing = Framing::of_response(status, &head.headers);
        if head.headers.media_type().as_deref() != Some("text/event-stream") {
            let body = near.whole(framing).await.unwrap_or_default();
            if !body.is_empty() {
                self.running.write(&[body.as_slice(), b"\n"].concat());
            }
            return;
        }
        let mut events = Reader::default();
        while let Ok(Some(piece)) = near.piece(&mut framing).await {
            events.push(&piece);
            while let Some(event) = events.next() {
                if !event.data.is_empty() {
                    self.running.say(&event.data);
                }
            }
        }
    }

    /// A line as a request: with the headers that one of its era has over HTTP.
    fn seen(&self, verb: &str, body: Vec<u8>) -> Seen {
        let mut headers = Headers::default();
        let mut put = |name: &str, value: &str| {
            headers.0.push((name.to_owned(), value.as_bytes().to_vec()));
        };
        put("Host", self.upstream.authority());
        match verb {
            "POST" => {
                put("Accept", "application/json, text/event-stream");
                put("Content-Type", "application/json");
            }
            _ => put("Accept", "text/event-stream"),
        }
        let message = rpc::value(&body).unwrap_or(Value::Null);
        let method = message["method"].as_str().unwrap_or_default();
        let claim = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let modern = matches!(self.upstream.receiver(), Receiver::Modern | Receiver::Bridged);
        // A notification claims nothing.
        let claim = claim.or((modern && method.starts_with("notifications/")).then_some(MODERN));
        let session = self.state.lock().unwrap().session.clone().filter(|_| !modern && claim.is_none());
        if let Some(session) = session {
            put("Mcp-Session-Id", &session);
        }
        if let Some(claim) = claim {
            put("MCP-Protocol-Version", claim);
            put("Mcp-Method", method);
            let params = &message["params"];
            let named = match method {
                "tools/call" | "prompts/get" => params["name"].as_str(),
                "resources/read" => params["uri"].as_str(),
                _ => None,
            };
            if let Some(name) = named {
                put("Mcp-Name", name);
            }
        }
        let (verb, target) = (verb.to_owned(), TARGET.to_owned());
        Seen { connection: self.running.n, verb, target, headers, body }
    }
}

fn connection(broken: &Arc<AtomicBool>) -> (Reply, DuplexStream) {
    let (near, far) = tokio::io::duplex(256 * 1024);
    let (reply, _) = Reply::new(Buffered::new(far), Arc::clone(broken));
    (reply, near)
}
