//! The real binary before `stdio_peer`, and clients of both eras.
#![allow(unreachable_pub)]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Answer, send};
use crate::procs::{PATIENCE, below, gone, signal};

const VERSION: &str = "2026-07-28";

/// The program that `cargo test` has built beside this one.
pub fn peer() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let built = own.parent().and_then(|deps| deps.parent()).expect("a directory of a build");
    let peer = built.join("examples").join("stdio_peer");
    assert!(peer.exists(), "{} (cargo build --examples)", peer.display());
    peer
}

pub fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mcp-janus"))
}

/// A serving proxy; killed if a test fails before it ends.
pub struct Served {
    process: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    _temporary: Option<tempfile::NamedTempFile>,
}

impl Served {
    /// `serve -- stdio_peer WORDS`
    pub fn before(words: &[&str]) -> Self {
        let peer = peer();
        Self::command(&[&[peer.to_str().unwrap()], words].concat())
    }

    /// `serve -- COMMAND`
    pub fn command(command: &[&str]) -> Self {
        Self::start(&[&["--listen", "127.0.0.1:0", "--"], command].concat(), None)
    }

    /// From a configuration before `stdio_peer`, with these lines for the upstream.
    pub fn configured(words: &[&str], lines: &str) -> Self {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        let listen = "[listen]\naddress = \"127.0.0.1:0\"\n";
        let toml = format!("{listen}[upstream.up]\ncommand = {:?}\nargs = {words:?}\n{lines}", peer());
        std::fs::write(file.path(), toml).unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        Self::start(&["--config", &path], Some(file))
    }

    fn start(args: &[&str], temporary: Option<tempfile::NamedTempFile>) -> Self {
        let mut command = binary();
        command.arg("serve").args(args);
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = process.stderr.take().unwrap();
        let (log, (ready, address)) = (Arc::<Mutex<Vec<String>>>::default(), channel());
        let lines = Arc::clone(&log);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some(at) = line.find("http://") {
                    let _ = ready.send(line[at + "http://".len()..].split('/').next().unwrap().to_owned());
                }
                lines.lock().unwrap().push(line);
            }
        });
        let address: SocketAddr = ready_at(&address).parse().unwrap();
        Self { process, address, log, _temporary: temporary }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    /// A request of a modern client.
    pub fn open(&self, id: &str, method: &str, name: &str, params: Value) -> Answer {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
        });
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let mut headers = vec![("MCP-Protocol-Version", VERSION), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", name));
        }
        send(self.address, "POST", &headers, &body)
    }

    /// A call of a modern client, and its response.
    pub fn call(&self, id: &str, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let response = self.open(id, "tools/call", tool, params).response();
        assert_eq!(response["id"], id, "{response}");
        response
    }

    /// What a tool says.
    #[track_caller]
    pub fn text(&self, tool: &str, arguments: Value) -> String {
        let response = self.call("t", tool, arguments);
        text_of(&response).unwrap_or_else(|| panic!("a text: {response}\n{}", self.log()))
    }

    /// The process that serves, and the child of its own.
    #[track_caller]
    pub fn pids(&self) -> (u32, Option<u32>) {
        serde_json::from_str(&self.text("pid", json!({}))).unwrap()
    }

    /// SIGTERM; waits for the end.
    pub fn terminate(mut self) -> (Option<i32>, String) {
        signal("-TERM", self.pid());
        let code = self.process.wait().unwrap().code();
        (code, self.log())
    }

    /// `kill -9`, without a chance to do anything.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn ready_at(address: &Receiver<String>) -> String {
    address.recv_timeout(PATIENCE).expect("the proxy says where it serves")
}

impl Drop for Served {
    fn drop(&mut self) {
        // Politely, since what a child has started heeds nothing that this process could do then.
        if self.process.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        let left = below(self.pid());
        signal("-TERM", self.pid());
        let began = Instant::now();
        while self.process.try_wait().is_ok_and(|ended| ended.is_none()) && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        if !thread::panicking() {
            gone(&left);
        }
    }
}

pub fn text_of(response: &Value) -> Option<String> {
    response["result"]["content"][0]["text"].as_str().map(str::to_owned)
}

/// A legacy client in its session.
pub struct Legacy<'a> {
    served: &'a Served,
    session: String,
}

impl<'a> Legacy<'a> {
    pub fn begin(served: &'a Served) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
            "clientInfo": {"name": "old", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
        let answer = send(served.address, "POST", &[], &body);
        let session = answer.session.clone().expect("a session");
        assert_eq!(answer.response()["result"]["protocolVersion"], "2025-11-25");
        let client = Self { served, session };
        let told = client.send("POST", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(told.status, 202);
        client
    }

    pub fn send(&self, verb: &str, message: &Value) -> Answer {
        let headers = [("Mcp-Session-Id", self.session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
        let body = if message.is_null() { String::new() } else { message.to_string() };
        send(self.served.address, verb, &headers, &body)
    }

    pub fn open(&self, id: u32, tool: &str, arguments: Value) -> Answer {
        let params = json!({"name": tool, "arguments": arguments});
        self.send("POST", &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    pub fn text(&self, tool: &str, arguments: Value) -> String {
        let response = self.open(7, tool, arguments).response();
        text_of(&response).unwrap_or_else(|| panic!("a text: {response}"))
    }
}
