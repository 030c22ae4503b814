//! The built binary as the stdio server that a host launches: what only a process shows.
//!
//! Owns exit codes, signals, and that nothing but messages is on its standard output. What it does with messages is tested in
//! memory (`stdio_host`).
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes; only a fault gets this far.
const PATIENCE: Duration = Duration::from_secs(20);

struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Host {
    fn launch(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-janus"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { stdin: child.stdin.take(), child, lines }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn next(&self) -> serde_json::Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line");
        let message: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("a message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    fn initialize(&mut self) {
        self.say(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}"#);
        assert!(self.next()["result"]["serverInfo"].is_object());
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// The exit code, and whatever else came on standard output.
    fn exit(mut self) -> (Option<i32>, Vec<String>) {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it ends");
            thread::sleep(Duration::from_millis(5));
        };
        (status.code(), self.lines.iter().collect())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// However much is logged, the answers are all that a host reads; with the end of its input the process has ended well.
#[test]
fn nothing_but_messages_is_on_standard_output() {
    let mut host = Host::launch(&["--log-level", "trace", "stdio", "--upstream", "builtin:demo"]);
    host.initialize();
    host.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#);
    assert_eq!(host.next()["result"]["content"][0]["text"], "hi");
    host.say("no message");
    assert_eq!(host.next()["error"]["code"], -32700);
    host.stdin = None;
    assert_eq!(host.exit(), (Some(0), vec![]));
}

/// The spec's shutdown is quick, also with a call at a server that never answers.
#[test]
fn the_end_of_standard_input_is_quick() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let held: thread::JoinHandle<Vec<TcpStream>> =
        thread::spawn(move || silent.incoming().take(1).flatten().collect());
    let mut host = Host::launch(&["stdio", "--upstream", &url]);
    host.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#);
    let held = held.join().unwrap();
    let began = Instant::now();
    host.stdin = None;
    assert_eq!(host.exit(), (Some(0), vec![]));
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    drop(held);
}

/// Its input is still open, so a thread reads there: that is no reason to stay.
#[test]
fn a_signal_drains() {
    for name in ["-TERM", "-INT"] {
        let mut host = Host::launch(&["stdio", "--upstream", "builtin:demo"]);
        host.initialize();
        host.say(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        host.next();
        host.signal(name);
        let (stdin, began) = (host.stdin.take(), Instant::now());
        assert_eq!(host.exit(), (Some(0), vec![]), "{name}");
        assert!(began.elapsed() < Duration::from_secs(8), "{name}: {:?}", began.elapsed());
        drop(stdin);
    }
}

#[test]
fn a_closed_standard_output_is_the_end() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcp-janus"))
        .args(["stdio", "--upstream", "builtin:demo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        let _ = writeln!(stdin, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#);
        assert!(began.elapsed() < PATIENCE, "it ends");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// What is wrong with the command line is said on standard error, and the exit tells.
#[test]
fn what_is_wrong_is_not_said_on_standard_output() {
    for (args, code) in
        [(["stdio", "--upstream", "ftp://a/"], 64), (["stdio", "--config", "/nowhere.toml"], 64)]
    {
        let host = Host::launch(&args);
        assert_eq!(host.exit(), (Some(code), vec![]), "{args:?}");
    }
}
