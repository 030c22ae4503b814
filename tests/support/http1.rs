//! HTTP/1.1 read by hand: heads, bodies by length, by chunks, or to the end of the connection.
//!
//! Owns parsing only, strictly and independently of the proxy's HTTP library. Does not own what the bytes mean.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// First line and header fields, in order, names as they were sent.
#[derive(Debug, Clone)]
pub struct Head {
    pub line: String,
    pub headers: Headers,
}

#[derive(Debug, Clone, Default)]
pub struct Headers(pub Vec<(String, Vec<u8>)>);

impl Headers {
    /// The only value of a header; two lines of one name fail the test.
    pub fn get(&self, name: &str) -> Option<String> {
        let all = self.all(name);
        assert!(all.len() <= 1, "header {name} occurs {} times: {all:?}", all.len());
        all.into_iter().next()
    }

    pub fn all(&self, name: &str) -> Vec<String> {
        let same = self.0.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        same.map(|(_, v)| String::from_utf8_lossy(v).into_owned()).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(n, _)| n.eq_ignore_ascii_case(name))
    }

    /// Media type without parameters.
    pub fn media_type(&self) -> Option<String> {
        let value = self.get("content-type")?;
        Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }
}

/// How the rest of a message is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length(usize),
    Chunked,
    ToEnd,
}

impl Framing {
    pub fn of_request(headers: &Headers) -> Self {
        Self::stated(headers).unwrap_or(Self::Length(0))
    }

    pub fn of_response(status: u16, headers: &Headers) -> Self {
        match status {
            100..=199 | 204 | 304 => Self::Length(0),
            _ => Self::stated(headers).unwrap_or(Self::ToEnd),
        }
    }

    fn stated(headers: &Headers) -> Option<Self> {
        if let Some(coding) = headers.get("transfer-encoding") {
            assert!(coding.eq_ignore_ascii_case("chunked"), "transfer coding {coding}");
            assert!(!headers.has("content-length"), "both framings in one message");
            return Some(Self::Chunked);
        }
        headers.get("content-length").map(|n| Self::Length(n.parse().expect("content-length is a number")))
    }
}

/// A connection with what was read ahead of the parser.
#[derive(Debug)]
pub struct Buffered<T> {
    pub io: T,
    buf: Vec<u8>,
    done: bool,
}

impl<T: AsyncRead + Unpin> Buffered<T> {
    pub fn new(io: T) -> Self {
        Self { io, buf: Vec::new(), done: false }
    }

    /// The next head, or `None` where the connection ended before its first byte.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        self.done = false;
        let end = loop {
            if let Some(at) = find(&self.buf, b"\r\n\r\n") {
                break at;
            }
            if !self.fill().await? {
                return if self.buf.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        };
        let raw: Vec<u8> = self.buf.drain(..end + 4).take(end).collect();
        let mut lines = raw.split(|b| *b == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
        let line = String::from_utf8(lines.next().unwrap_or_default().to_vec()).expect("first line is text");
        let mut headers = Headers::default();
        for field in lines {
            let colon = field.iter().position(|b| *b == b':').expect("a header field has a colon");
            let name = String::from_utf8(field[..colon].to_vec()).expect("a header name is text");
            headers.0.push((name, field[colon + 1..].trim_ascii().to_vec()));
        }
        Ok(Some(Head { line, headers }))
    }

    /// The next piece of a body as it comes; `None` once the body is complete.
    pub async fn piece(&mut self, framing: &mut Framing) -> io::Result<Option<Vec<u8>>> {
        if self.done {
            return Ok(None);
        }
        match framing {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                if self.buf.is_empty() && !self.fill().await? {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let n = self.buf.len().min(*left);
                *left -= n;
                Ok(Some(self.buf.drain(..n).collect()))
            }
            Framing::ToEnd => {
                if self.buf.is_empty() && !self.fill().await? {
                    self.done = true;
                    return Ok(None);
                }
                Ok(Some(std::mem::take(&mut self.buf)))
            }
            Framing::Chunked => self.chunk().await,
        }
    }

    pub async fn whole(&mut self, mut framing: Framing) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece(&mut framing).await? {
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Waits until the other side closes; bytes that still come are kept.
    pub async fn closed(&mut self) {
        while let Ok(true) = self.fill().await {}
    }

    async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.line().await?;
        let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
            .expect("a chunk size");
        while self.buf.len() < size + 2 {
            if !self.fill().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let data: Vec<u8> = self.buf.drain(..size).collect();
        let end: Vec<u8> = self.buf.drain(..2).collect();
        assert_eq!(end, b"\r\n", "a chunk ends in CRLF");
        if size == 0 {
            self.done = true;
            return Ok(None);
        }
        Ok(Some(data))
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(at) = find(&self.buf, b"\r\n") {
                let line: Vec<u8> = self.buf.drain(..at + 2).take(at).collect();
                return Ok(String::from_utf8(line).expect("a chunk line is text"));
            }
            if !self.fill().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn fill(&mut self) -> io::Result<bool> {
        let mut space = [0; 8192];
        let n = self.io.read(&mut space).await?;
        self.buf.extend_from_slice(&space[..n]);
        Ok(n > 0)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}
