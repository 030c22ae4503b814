//! A raw host of either era: lines into the proxy's standard input, lines out of its standard output.
//!
//! Owns the two pipes and the check that every line is one message. Does not own what an era allows.
#![allow(unreachable_pub)]

use std::collections::VecDeque;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::support::old::NAME;
use super::support::{CAPS, INFO, Proxy, VERSION, Value, pass, within};

/// What a pipe holds.
const PIPE: usize = 64 * 1024;

pub struct Host {
    stdin: Option<DuplexStream>,
    lines: mpsc::UnboundedReceiver<String>,
    /// Read and not asked for yet.
    kept: VecDeque<Value>,
    ending: JoinHandle<String>,
    reader: JoinHandle<()>,
    reads: watch::Sender<bool>,
    /// Everything that came, in order.
    pub heard: Vec<Value>,
}

/// A modern request with these capabilities and these raw members of `params` besides `_meta`.
pub fn modern_with(id: &str, method: &str, capabilities: &str, members: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{"{VERSION}":"2026-07-28","{INFO}":{{"name":"host","version":"1"}},"{CAPS}":{capabilities}}}{comma}{members}}}}}"#
    )
}

pub fn modern(id: &str, method: &str, members: &str) -> String {
    modern_with(id, method, "{}", members)
}

pub fn legacy(id: &str, method: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}}}}}"#)
}

pub fn echo(id: &str, arguments: &str) -> String {
    legacy(id, "tools/call", &format!(r#""name":"echo","arguments":{arguments}"#))
}

pub fn modern_echo(id: &str, arguments: &str) -> String {
    modern(id, "tools/call", &format!(r#""name":"echo","arguments":{arguments}"#))
}

pub fn initialize(id: &str, version: &str, capabilities: &str) -> String {
    legacy(
        id,
        "initialize",
        &format!(
            r#""protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"{NAME}","version":"1"}}"#
        ),
    )
}

pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub fn cancelled(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

impl Host {
    pub fn launch(proxy: &Proxy) -> Self {
        Self::with_pipes(proxy, PIPE)
    }

    pub fn with_pipes(proxy: &Proxy, pipe: usize) -> Self {
        let (stdin, stdout, ending) = proxy.launched(pipe);
        let (tell, lines) = mpsc::unbounded_channel();
        let (reads, reading) = watch::channel(true);
        let reader = tokio::spawn(async move {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            let mut reading = reading;
            while reading.wait_for(|reads| *reads).await.is_ok()
                && let Ok(1..) = stdout.read_line(&mut line).await
            {
                let text = line.strip_suffix('\n').expect("a whole line");
                if tell.send(text.to_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Self { stdin: Some(stdin), lines, kept: VecDeque::new(), ending, heard: Vec::new(), reader, reads }
    }

    /// With a session of this version, and these capabilities of the client.
    pub async fn initialized(proxy: &Proxy, version: &str, capabilities: &str) -> Self {
        let mut host = Self::launch(proxy);
        host.say(&initialize("\"init\"", version, capabilities)).await;
        assert!(host.answer("\"init\"").await["result"].is_object(), "{:?}", host.heard);
        host.say(INITIALIZED).await;
        host
    }

    /// The next line as it came.
    pub async fn next_raw(&mut self) -> String {
        assert!(self.kept.is_empty(), "{:?}", self.kept);
        within("a line", self.lines.recv()).await.expect("a line before the end")
    }

    /// One line.
    pub async fn say(&mut self, text: &str) {
        assert!(!text.contains('\n'), "one line: {text}");
        self.write(format!("{text}\n").as_bytes()).await;
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("an open pipe");
        within("room in the pipe", stdin.write_all(bytes)).await.expect("a reader");
    }

    /// The next message, whatever it is.
    pub async fn next(&mut self) -> Value {
        match self.kept.pop_front() {
            Some(message) => message,
            None => self.read().await.expect("a message before the end"),
        }
    }

    /// The answer under this raw id, wherever it comes among other messages, which are kept.
    pub async fn answer(&mut self, id: &str) -> Value {
        let id: Value = serde_json::from_str(id).unwrap();
        self.find(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// The next message of this method.
    pub async fn told(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    pub async fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&fits) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let Some(message) = self.read().await else { panic!("it never came; heard {:?}", self.heard) };
            if fits(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// Nothing has come that was not asked for, nor comes in so many milliseconds.
    pub async fn quiet(&mut self, millis: u64) {
        pass(millis).await;
        assert!(self.kept.is_empty(), "nothing else came: {:?}", self.kept);
        if let Ok(line) = self.lines.try_recv() {
            panic!("nothing more comes: {line}");
        }
    }

    /// What is written from now on stays in the pipe.
    pub fn stop_reading(&mut self) {
        self.reads.send_replace(false);
    }

    pub fn read_on(&mut self) {
        self.reads.send_replace(true);
    }

    /// One line, if there is room for it within so many milliseconds; else some of it may have been written.
    pub async fn try_say(&mut self, text: &str, millis: u64) -> bool {
        let stdin = self.stdin.as_mut().expect("an open pipe");
        let line = format!("{text}\n");
        let writing = stdin.write_all(line.as_bytes());
        tokio::time::timeout(std::time::Duration::from_millis(millis), writing).await.is_ok()
    }

    /// Closes standard output.
    pub fn hang_up(&mut self) {
        self.reader.abort();
    }

    /// Closes standard input.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// How the proxy ended.
    pub async fn ending(self) -> String {
        within("the end of the proxy", self.ending).await.expect("no panic")
    }

    /// Closes standard input and waits for the end.
    pub async fn end(mut self) -> String {
        self.close();
        self.ending().await
    }

    async fn read(&mut self) -> Option<Value> {
        let line = within(&format!("a line (heard {:?})", self.heard), self.lines.recv()).await?;
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("a message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        self.heard.push(message.clone());
        Some(message)
    }
}

/// An error of this code, under this id.
pub fn is_error(message: &Value, code: i64) {
    assert_eq!(message["error"]["code"], code, "{message}");
    assert!(message.get("result").is_none(), "{message}");
}

pub fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("a text: {message}"))
}
