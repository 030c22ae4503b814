//! As much HTTP/1.1 as both ends of the benchmark need: heads, and bodies of both framings, on one connection.
//!
//! Owns reading. It shares nothing with the proxy nor with an HTTP library, so that neither end profits from what is
//! measured, and does no work that is not needed: bodies are handed on in pieces and counted, never gathered.

use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Conn {
    stream: TcpStream,
    buf: Vec<u8>,
    start: usize,
    end: usize,
}

/// What of a head counts here.
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// Of a response.
    pub status: u16,
    /// The first line.
    pub line: String,
    pub session: Option<String>,
    framing: Framing,
}

#[derive(Debug, Clone, Copy, Default)]
enum Framing {
    #[default]
    Empty,
    Length(usize),
    Chunked,
}

impl Conn {
    /// `room` is the most that is read at once, and bounds a head.
    pub fn new(stream: TcpStream, room: usize) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buf: vec![0; room], start: 0, end: 0 })
    }

    pub async fn connect(address: std::net::SocketAddr, room: usize) -> io::Result<Self> {
        Self::new(TcpStream::connect(address).await?, room)
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The pieces in one system call where the socket takes them.
    pub async fn write_pieces<const N: usize>(&mut self, pieces: [&[u8]; N]) -> io::Result<()> {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        let slices = pieces.map(io::IoSlice::new);
        let mut written = self.stream.write_vectored(&slices).await?;
        if written == total {
            return Ok(());
        }
        for piece in pieces {
            let skip = written.min(piece.len());
            written -= skip;
            self.stream.write_all(&piece[skip..]).await?;
        }
        Ok(())
    }

    /// The next head; `None` where the peer has closed the connection in between.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            let seen = &self.buf[self.start..self.end];
            if let Some(at) = memchr::memmem::find(seen, b"\r\n\r\n") {
                let head = Head::parse(&seen[..at]);
                self.start += at + 4;
                return Ok(Some(head));
            }
            if self.fill().await? == 0 {
                return if self.start == self.end { Ok(None) } else { Err(cut()) };
            }
        }
    }

    /// The body that belongs to `head`, piece by piece; returns its length.
    pub async fn body(&mut self, head: &Head, mut piece: impl FnMut(&[u8])) -> io::Result<usize> {
        match head.framing {
            Framing::Empty => Ok(0),
            Framing::Length(length) => {
                self.exactly(length, &mut piece).await?;
                Ok(length)
            }
            Framing::Chunked => {
                let mut total = 0;
                loop {
                    let size = self.line().await?;
                    let size =
                        std::str::from_utf8(&size).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
                    let size = size.ok_or_else(|| io::Error::other("a chunk without a size"))?;
                    self.exactly(size, &mut piece).await?;
                    self.line().await?;
                    if size == 0 {
                        return Ok(total);
                    }
                    total += size;
                }
            }
        }
    }

    async fn exactly(&mut self, mut left: usize, piece: &mut impl FnMut(&[u8])) -> io::Result<()> {
        while left > 0 {
            if self.start == self.end && self.fill().await? == 0 {
                return Err(cut());
            }
            let take = left.min(self.end - self.start);
            piece(&self.buf[self.start..self.start + take]);
            self.start += take;
            left -= take;
        }
        Ok(())
    }

    /// A short line without its end.
    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let seen = &self.buf[self.start..self.end];
            if let Some(at) = memchr::memmem::find(seen, b"\r\n") {
                let line = seen[..at].to_vec();
                self.start += at + 2;
                return Ok(line);
            }
            if self.fill().await? == 0 {
                return Err(cut());
            }
        }
    }

    async fn fill(&mut self) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buf.len() {
            self.buf.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buf.len() {
            return Err(io::Error::other("a head or a line that is too long"));
        }
        let read = self.stream.read(&mut self.buf[self.end..]).await?;
        self.end += read;
        Ok(read)
    }
}

impl Head {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or(0);
        let mut head = Self { status, line, ..Self::default() };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                head.framing = Framing::Length(value.parse().unwrap_or(0));
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                head.framing = Framing::Chunked;
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                head.session = Some(value.to_owned());
            }
        }
        head
    }
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}
