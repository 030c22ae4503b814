//! `mcp-janus stdio -- stdio_peer`: the proxy between a host's pipes and those of a process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::procs::{PATIENCE, below, gone, lives, signal};
use crate::stage::{binary, peer, text_of};

/// A host that has launched the proxy.
struct Host {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Host {
    fn launch(words: &[&str]) -> Self {
        let mut command = binary();
        command.args(["stdio", "--"]).arg(peer()).args(words);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (said, lines) = channel();
        let output = process.stdout.take().unwrap();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| said.send(line))
        });
        Self { stdin: process.stdin.take(), process, lines }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next line, which is a message: nothing else may be there.
    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    fn ask(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "host", "version": "1"},
        });
        let answer = self.ask(json!(0), "initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn call(&mut self, modern: bool, id: Value, tool: &str, arguments: Value) -> Value {
        let mut params = json!({"name": tool, "arguments": arguments});
        if modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.ask(id, "tools/call", params)
    }

    /// The end of its input; waits for the end of all. What it says until then.
    fn close(mut self) -> (Option<i32>, Vec<String>) {
        let all = below(self.process.id());
        assert!(!all.is_empty());
        let began = Instant::now();
        self.stdin = None;
        let code = self.process.wait().unwrap().code();
        assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
        let left: Vec<_> = all.iter().filter(|pid| lives(**pid)).collect();
        assert!(left.is_empty(), "{left:?} of {all:?}");
        (code, self.lines.iter().collect())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Both eras on each side; the process logs to its output, of which nothing gets through.
#[test]
fn handshake_call_and_the_end_of_input() {
    for modern_host in [false, true] {
        for words in
            [&["logs"][..], &["modern", "logs"], &["stubborn", "forks"], &["crlf", "split", "floods"]]
        {
            let mut host = Host::launch(words);
            if !modern_host {
                host.initialize();
            }
            for id in [json!(1), json!("1"), json!("x")] {
                let answer = host.call(modern_host, id, "echo", json!({"text": "hi"}));
                assert_eq!(text_of(&answer).as_deref(), Some("hi"), "{words:?}: {answer}");
            }
            let (code, rest) = host.close();
            assert_eq!((code, rest), (Some(0), Vec::new()), "{words:?}");
        }
    }
}

/// A call in flight when the host goes: everything ends all the same.
#[test]
fn the_end_of_input_in_the_middle_of_a_call() {
    for modern_host in [false, true] {
        for words in [&[][..], &["modern"]] {
            let mut host = Host::launch(words);
            if !modern_host {
                host.initialize();
            }
            let answer = host.call(modern_host, json!(1), "echo", json!({"text": "hi"}));
            assert!(text_of(&answer).is_some(), "{answer}");
            let mark = tempfile::tempdir().unwrap();
            let path = mark.path().join("mark");
            let mut params = json!({"name": "hang", "arguments": {"mark": path}});
            if modern_host {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
            }
            host.say(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
            crate::procs::until("the call", || path.exists());
            host.close();
        }
    }
}

/// The process dies: the call is answered, and the next one finds another process.
#[test]
fn c56_the_process_dies_in_a_call() {
    for modern_host in [false, true] {
        for words in [&[][..], &["modern"]] {
            let mut host = Host::launch(words);
            if !modern_host {
                host.initialize();
            }
            for n in 0..5 {
                let lost = host.call(modern_host, json!(n * 2), "die", json!({}));
                assert_eq!(lost["error"]["code"], -32603, "{words:?}: {lost}");
                let answer = host.call(modern_host, json!(n * 2 + 1), "echo", json!({"text": "hi"}));
                assert_eq!(text_of(&answer).as_deref(), Some("hi"), "{words:?}: {answer}");
            }
            host.close();
        }
    }
}

/// A host kills what it has launched, politely or not.
#[test]
fn c55_the_host_kills_the_proxy() {
    for (name, words) in [
        ("-KILL", &["stubborn"][..]),
        ("-KILL", &["modern"]),
        ("-TERM", &["stubborn", "forks"]),
        ("-TERM", &["modern"]),
    ] {
        let mut host = Host::launch(words);
        let answer = host.call(true, json!(1), "echo", json!({"text": "hi"}));
        assert_eq!(text_of(&answer).as_deref(), Some("hi"), "{words:?}: {answer}");
        let all = below(host.process.id());
        signal(name, host.process.id());
        host.process.wait().unwrap();
        let took = gone(&all);
        assert!(took < Duration::from_secs(3), "{name} {words:?}: {took:?} after the proxy's end");
    }
}
