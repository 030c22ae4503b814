//! HTTP/1.1 by hand, one request for each connection.
#![allow(unreachable_pub)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::procs::PATIENCE;

pub struct Answer {
    pub status: u16,
    pub session: Option<String>,
    streams: bool,
    body: Box<dyn BufRead>,
}

/// Sends a POST (or another verb with an empty body) and reads the head of its answer.
pub fn send(address: SocketAddr, verb: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(
        stream,
        "{verb} /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let (mut session, mut streams, mut chunked) = (None, false, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        match name.as_str() {
            "mcp-session-id" => session = Some(value.to_owned()),
            "content-type" => streams = value.starts_with("text/event-stream"),
            "transfer-encoding" => chunked = value == "chunked",
            _ => {}
        }
    }
    let body: Box<dyn BufRead> = if chunked {
        Box::new(BufReader::new(Chunks { reader, left: 0, over: false }))
    } else {
        Box::new(reader)
    };
    Answer { status, session, streams, body }
}

impl Answer {
    /// The next message; `None` at the end.
    pub fn message(&mut self) -> Option<Value> {
        if !self.streams {
            let mut text = String::new();
            self.body.read_to_string(&mut text).unwrap();
            return (!text.is_empty()).then(|| serde_json::from_str(&text).expect("JSON"));
        }
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }

    /// The response, which there is once; what comes before it is left out.
    pub fn response(mut self) -> Value {
        let all: Vec<_> = std::iter::from_fn(|| self.message()).collect();
        let responses: Vec<_> = all.iter().filter(|one| one.get("method").is_none()).collect();
        assert_eq!(responses.len(), 1, "one answer: {} {all:?}", self.status);
        responses[0].clone()
    }
}

/// A body in chunks.
struct Chunks {
    reader: BufReader<TcpStream>,
    left: usize,
    over: bool,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.over {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                line.clear();
                self.reader.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
            self.over = self.left == 0;
        }
        let most = self.left.min(buffer.len());
        let n = self.reader.read(&mut buffer[..most])?;
        self.left -= n;
        Ok(n)
    }
}
