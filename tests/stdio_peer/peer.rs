//! A stdio server that misbehaves as it is told to: `stdio_peer [WORD]..`, a program for the tests of real processes.
//!
//! Owns the reading and writing of lines by hand, and every way to go wrong that a process has and a task has not (signals,
//! children, real pipes). Built by `cargo test` as an example; shares nothing with the program under test. What its tools do
//! is in `tools`.
//!
//! Words: `modern` (2026-07-28; else 2025-11-25), `logs` (words on standard output), `split` (bytes one by one), `crlf`,
//! `exits` (at the probe), `silent` (answers nothing), `floods` (standard error, at all times), `stubborn` (heeds neither
//! SIGTERM nor the end of its input), `forks` (a child of its own that reads nothing and heeds no SIGTERM), `backwards`
//! (answers of calls go out in reverse order, three at a time).
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod tools;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::{Command, Stdio, exit};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) struct Peer {
    words: Vec<String>,
    /// Questions that wait for their answers.
    asked: Mutex<HashMap<u64, Sender<Value>>>,
    ids: AtomicU64,
    /// Answers that are held back by `backwards`.
    held: Mutex<Vec<String>>,
    /// The child of its own.
    grandchild: Option<u32>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is = |word: &str| words.iter().any(|one| one == word);
    if is("stubborn") || is("lingers") {
        ignore_termination();
    }
    if is("lingers") {
        // It must not outlive a test that fails for good.
        thread::sleep(Duration::from_secs(300));
        return;
    }
    let grandchild = is("forks").then(|| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("lingers").stdin(Stdio::null()).spawn().unwrap().id()
    });
    if is("floods") {
        thread::spawn(|| {
            loop {
                eprintln!("warning: {}", "w".repeat(4096));
            }
        });
    }
    let peer = Arc::new(Peer {
        words,
        asked: Mutex::default(),
        ids: AtomicU64::new(1),
        held: Mutex::default(),
        grandchild,
    });
    peer.run();
    if peer.is("stubborn") {
        thread::sleep(Duration::from_secs(300));
    }
    exit(0);
}

/// SIGTERM does nothing any more.
#[cfg(unix)]
fn ignore_termination() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let entered = runtime.enter();
    let kind = tokio::signal::unix::SignalKind::terminate();
    std::mem::forget(tokio::signal::unix::signal(kind).unwrap());
    drop(entered);
    std::mem::forget(runtime);
}

#[cfg(not(unix))]
fn ignore_termination() {}

impl Peer {
    pub(crate) fn is(&self, word: &str) -> bool {
        self.words.iter().any(|one| one == word)
    }

    pub(crate) fn grandchild(&self) -> Option<u32> {
        self.grandchild
    }

    fn run(self: &Arc<Self>) {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            let message: Value = serde_json::from_str(&line).expect("a line is a message");
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), Some(id)) => self.request(method, id.clone(), message["params"].clone()),
                (Some(_), None) => {}
                (None, _) => {
                    let id = message["id"].as_u64().expect("an id of ours");
                    let asked = self.asked.lock().unwrap().remove(&id).expect("a question of ours");
                    let _ = asked.send(message);
                }
            }
        }
    }

    fn request(self: &Arc<Self>, method: &str, id: Value, params: Value) {
        let modern = self.is("modern");
        if self.is("silent") {
            return;
        }
        if self.is("logs") {
            self.write(&format!("[INFO] {method}\n\n{{\"level\":\"info\"}}"));
        }
        match (method, modern) {
            ("server/discover", true) => self.result(&id, tools::discovered()),
            ("server/discover", false) if self.is("exits") => exit(1),
            ("initialize", false) => self.result(&id, tools::initialized(&params)),
            ("ping", false) => self.result(&id, json!({})),
            ("tools/list", _) => self.result(&id, self.complete("tools/list", tools::list())),
            ("tools/call", _) => {
                let peer = Arc::clone(self);
                thread::spawn(move || {
                    let text = tools::call(&peer, &params);
                    let result = match text {
                        Ok(text) => json!({"content": [{"type": "text", "text": text}]}),
                        Err(asks) => return peer.result(&id, asks),
                    };
                    let result = peer.complete("tools/call", result);
                    peer.answer(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
                });
            }
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                self.write(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
            }
        }
    }

    /// Asks its client, and waits for what it says.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.ids.fetch_add(1, Ordering::SeqCst);
        let (answered, answer) = channel();
        self.asked.lock().unwrap().insert(id, answered);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        answer.recv().unwrap_or(Value::Null)
    }

    fn complete(&self, method: &str, mut result: Value) -> Value {
        if self.is("modern") {
            result["resultType"] = json!("complete");
            result["_meta"] = tools::server_info();
            if method == "tools/list" {
                result["ttlMs"] = json!(0);
                result["cacheScope"] = json!("private");
            }
        }
        result
    }

    fn result(&self, id: &Value, result: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    fn answer(&self, text: String) {
        if !self.is("backwards") {
            return self.write(&text);
        }
        let mut held = self.held.lock().unwrap();
        held.push(text);
        if held.len() == 3 {
            held.drain(..).rev().for_each(|text| self.write(&text));
        }
    }

    fn write(&self, text: &str) {
        let end = if self.is("crlf") { "\r\n" } else { "\n" };
        let line = format!("{text}{end}");
        let mut output = std::io::stdout().lock();
        let piece = if self.is("split") { 1 } else { line.len() };
        for piece in line.as_bytes().chunks(piece) {
            // Who is not heard any more is ended soon.
            let _ = output.write_all(piece);
            let _ = output.flush();
        }
    }
}
