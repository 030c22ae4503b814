//! The built binary as a process: exit codes, the ready line, the drain on SIGTERM.
//!
//! Owns what only a process shows. Its upstream is a few lines of blocking sockets that share nothing with the product;
//! what the proxy does with messages is tested in memory (`vectors`, `cases`).
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Longer than anything here takes; only a fault gets this far.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn doubles_are_found_in_the_object_that_they_stand_in() {
    assert_eq!(doubles(r#"{"a":{"b":"a","c":["b",{"b":1}]},"d":"\\\"","b":1}"#), [""; 0]);
    assert_eq!(doubles(r#"{"a":{"b":"{","b" :1},"c":[{"d\"":1,"d\"":2}]}"#), ["b", "d\\\""]);
}

fn binary(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-janus"));
    command.args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    binary(args).output().unwrap()
}

/// A serving proxy; killed if a test fails before it ends.
struct Proxy {
    child: Child,
    address: SocketAddr,
    log: Receiver<String>,
}

impl Proxy {
    fn start(upstream: &str, more: &[&str]) -> Self {
        let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--upstream", upstream];
        args.extend(more);
        let mut child = binary(&args).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (sender, log) = channel();
        thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let ready = loop {
            let line = log.recv_timeout(PATIENCE).expect("the proxy says where it serves");
            if let Some(at) = line.find("http://") {
                break line[at + "http://".len()..].split('/').next().unwrap().parse().unwrap();
            }
        };
        Self { child, address: ready, log }
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Sends one request and reads to the end of the connection.
    fn post(&self, method: &str, extra: &str, params: &str) -> String {
        let mut stream = self.open(method, extra, params);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn open(&self, method: &str, extra: &str, params: &str) -> TcpStream {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let comma = if params.is_empty() { "" } else { "," };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"b1","method":"{method}","params":{{{params}{comma}{meta}}}}}"#
        );
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{extra}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        stream
    }

    fn end(mut self) -> (Option<i32>, Vec<String>) {
        let code = self.child.wait().unwrap().code();
        (code, self.log.iter().collect())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Already over in every test that passes.
        let _ = self.child.kill();
    }
}

/// A legacy server of one session that reports each request's first line and body, and answers `tools/call` only when
/// it is told to.
fn upstream() -> (String, Receiver<(String, String)>, Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (seen, requests) = channel();
    let (go, wait) = channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (seen, wait) = (seen.clone(), wait.clone());
            thread::spawn(move || serve(stream, &seen, &wait));
        }
    });
    (url, requests, go)
}

fn serve(
    stream: TcpStream,
    seen: &Sender<(String, String)>,
    wait: &std::sync::Mutex<Receiver<()>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).ok()? == 0 {
            return None;
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).ok()?;
        seen.send((first.trim().to_owned(), body.clone())).ok()?;
        let message: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let id = &message["id"];
        let (status, head, body) = match message["method"].as_str().unwrap_or("DELETE") {
            "server/discover" => ("400 Bad Request", "", String::new()),
            "initialize" => (
                "200 OK",
                "Mcp-Session-Id: S1\r\nContent-Type: application/json\r\n",
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"u","version":"1"}}}}}}"#
                ),
            ),
            "tools/call" => {
                wait.lock().unwrap().recv().ok()?;
                (
                    "200 OK",
                    "Content-Type: application/json\r\n",
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#),
                )
            }
            "DELETE" => ("204 No Content", "", String::new()),
            _ => ("202 Accepted", "", String::new()),
        };
        write!(stream, "HTTP/1.1 {status}\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    }
}

/// Waits until the upstream has seen a request whose first line or body holds `what`.
fn until(requests: &Receiver<(String, String)>, what: &str) {
    loop {
        let (first, body) = requests.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {what} came"));
        if first.contains(what) || body.contains(what) {
            return;
        }
    }
}

#[test]
fn wrong_use_exits_64_and_says_what_is_wrong() {
    for (args, told) in [
        (vec!["serve", "--upstream", "ftp://a/"], "--upstream"),
        (vec!["serve"], "--upstream"),
        (vec!["serve", "--config", "/nonexistent/janus.toml"], "janus.toml"),
        (vec!["check", "/nonexistent/janus.toml"], "janus.toml"),
        (vec!["nonsense"], "nonsense"),
        (vec!["stdio"], "--upstream"),
        (vec!["stdio", "--upstream", "ftp://a/"], "--upstream"),
        (vec!["serve", "--cwd", "/nonexistent", "--", "some-server"], "--cwd"),
    ] {
        let output = run(&args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {text}");
        assert!(text.contains(told), "{args:?}: {text}");
    }
    assert_eq!(run(&["--version"]).status.code(), Some(0));
}

#[test]
fn an_address_in_use_is_a_failure_with_a_reason() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["serve", "--upstream", "http://127.0.0.1:9/mcp", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&address));
}

#[test]
fn an_admin_address_in_use_is_a_failure_that_names_the_setting() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let upstream = ["serve", "--upstream", "http://127.0.0.1:9/mcp", "--listen", "127.0.0.1:0", "--admin"];
    let output = run(&[&upstream[..], &[&address]].concat());
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(&format!("admin.address: {address}: ")), "{text}");
}

#[test]
fn metrics_are_served_until_the_end_of_the_drain() {
    let (url, requests, go) = upstream();
    let proxy = Proxy::start(&url, &["--admin", "127.0.0.1:0"]);
    let line = proxy.log.recv_timeout(PATIENCE).unwrap();
    let at = line.split("serving metrics at http://").nth(1).expect("where the metrics are");
    let admin: SocketAddr = at.split('/').next().unwrap().parse().unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(admin).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let mut call = proxy.open("tools/call", "Mcp-Name: t\r\n", r#""name":"t""#);
    until(&requests, "tools/call");
    assert!(get("/readyz").starts_with("HTTP/1.1 200 "));
    assert!(get("/metrics").contains("\nmcp_janus_requests_in_progress{upstream=\"default\"} 1\n"));
    proxy.signal("-TERM");
    loop {
        if proxy.log.recv_timeout(PATIENCE).unwrap().contains("draining") {
            break;
        }
    }
    // The line comes a moment before the drain.
    let began = std::time::Instant::now();
    while !get("/readyz").starts_with("HTTP/1.1 503 ") {
        assert!(began.elapsed() < PATIENCE, "it never says that it drains");
    }
    assert!(
        get("/metrics").contains("\nmcp_janus_upstream_sessions{state=\"busy\",upstream=\"default\"} 1\n")
    );
    go.send(()).unwrap();
    let mut answer = String::new();
    call.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(r#""resultType":"complete""#), "{answer}");
    assert_eq!(proxy.end().0, Some(0));
    assert!(TcpStream::connect(admin).is_err(), "it ends with the process");
}

#[test]
fn a_client_that_writes_far_too_much_gets_to_read_why() {
    let (url, _requests, _go) = upstream();
    let proxy = Proxy::start(&url, &[]);
    for head in ["Content-Length: 6000050\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5B8DB2\r\n"] {
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n{head}",
            proxy.address
        )
        .unwrap();
        // 6,000,050 bytes, 0x5B8DB2, of which the last are not JSON; the id comes first.
        let mut body = br#"{"id":"big","jsonrpc":"2.0","method":"tools/call","params":{"x":""#.to_vec();
        body.resize(6_000_050, b'x');
        stream.write_all(&body).unwrap();
        if head.contains("chunked") {
            stream.write_all(b"\r\n0\r\n\r\n").unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains(r#""id":"big""#), "{answer}");
    }
    proxy.signal("-TERM");
    assert_eq!(proxy.end().0, Some(0));
}

#[test]
fn sigterm_drains_finishes_the_call_and_ends_the_upstream_session() {
    let (url, requests, go) = upstream();
    let proxy = Proxy::start(&url, &[]);
    let mut call = proxy.open("tools/call", "Mcp-Name: t\r\n", r#""name":"t""#);
    until(&requests, "tools/call");
    proxy.signal("-TERM");
    // The socket is closed to newcomers once the drain has begun.
    let line = proxy.log.recv_timeout(PATIENCE).unwrap();
    let draining = std::iter::once(line).chain(proxy.log.iter()).any(|line| line.contains("draining"));
    assert!(draining);
    go.send(()).unwrap();
    let mut answer = String::new();
    call.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(r#""id":"b1""#) && answer.contains(r#""resultType":"complete""#), "{answer}");
    until(&requests, "DELETE /mcp");
    assert_eq!(proxy.end().0, Some(0));
}

#[test]
fn a_second_signal_ends_at_once_and_the_call_is_told() {
    let (url, requests, _go) = upstream();
    let proxy = Proxy::start(&url, &[]);
    let mut call = proxy.open("tools/call", "Mcp-Name: t\r\n", r#""name":"t""#);
    until(&requests, "tools/call");
    proxy.signal("-INT");
    let draining = proxy.log.iter().any(|line| line.contains("draining"));
    assert!(draining);
    proxy.signal("-INT");
    let mut answer = String::new();
    call.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(r#""id":"b1""#) && answer.contains("-32603"), "{answer}");
    until(&requests, "notifications/cancelled");
    assert_ne!(proxy.end().0, Some(0), "the call was cut short");
}

#[test]
fn logs_are_lines_of_json_on_request_and_never_hold_arguments_or_tokens() {
    let (url, requests, go) = upstream();
    let proxy = Proxy::start(&url, &["--log-format", "json", "--log-level", "debug"]);
    go.send(()).unwrap();
    let secrets = "Mcp-Name: t\r\nAuthorization: Bearer sesame-7\r\n";
    let answer = proxy.post("tools/call", secrets, r#""name":"t","arguments":{"pin":"sesame-8"}"#);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    until(&requests, "tools/call");
    proxy.signal("-TERM");
    let (code, lines) = proxy.end();
    assert_eq!(code, Some(0));
    for line in &lines {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        assert!(!line.contains("sesame"), "{line}");
        assert_eq!(doubles(line), [""; 0], "a reader keeps one of them: {line}");
    }
    let done = lines.iter().find(|line| line.contains("\"done\"")).expect("one line a request");
    for told in ["tools/call", "legacy", "modern", "result", "milliseconds"] {
        assert!(done.contains(told), "{told}: {done}");
    }
    let done: serde_json::Value = serde_json::from_str(done).unwrap();
    assert_eq!((&done["span"]["name"], &done["span"]["named"]), (&"request".into(), &"t".into()));
}

/// Names that stand more than once in an object of a JSON text.
fn doubles(json: &str) -> Vec<&str> {
    let (mut objects, mut doubles, mut rest) = (Vec::<Vec<&str>>::new(), Vec::new(), json);
    while let Some(at) = rest.find(['{', '}', '"']) {
        let mark = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match mark {
            b'{' => objects.push(Vec::new()),
            b'}' => drop(objects.pop()),
            _ => {
                let mut escaped = false;
                let ends = |byte: u8| {
                    byte == b'"' && !escaped || {
                        escaped = byte == b'\\' && !escaped;
                        false
                    }
                };
                let (text, behind) = rest.split_at(rest.bytes().position(ends).unwrap());
                rest = &behind[1..];
                let Some(names) = objects.last_mut().filter(|_| rest.trim_start().starts_with(':')) else {
                    continue;
                };
                if names.contains(&text) {
                    doubles.push(text);
                }
                names.push(text);
            }
        }
    }
    doubles
}
