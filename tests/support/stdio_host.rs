//! A raw host that has launched the proxy as its stdio server, of either era: lines out, lines in.
//!
//! Owns the two pipes and what came on them; everything on the proxy's standard output must be one message a line. Does not
//! own requests, nor what an era allows in them.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::ear::Ear;
use super::{Proxy, within};

/// What a pipe of Linux holds.
const PIPE: usize = 64 * 1024;

pub struct Host {
    pub ear: Ear,
    stdin: Mutex<Option<DuplexStream>>,
    reading: JoinHandle<()>,
}

impl Host {
    /// Before the only upstream of this proxy.
    pub fn launch(proxy: &Proxy) -> Self {
        let (stdin, stdout, _ending) = proxy.launched(PIPE);
        let ear = Ear::default();
        let reading = tokio::spawn(read(stdout, ear.clone()));
        Self { ear, stdin: Mutex::new(Some(stdin)), reading }
    }

    /// One message.
    pub async fn say(&self, text: &str) {
        assert!(!text.contains(['\n', '\r']), "a message is one line: {text}");
        self.write(format!("{text}\n").as_bytes()).await;
    }

    /// These bytes on the proxy's standard input, if that is open; a proxy that has gone takes nothing.
    pub async fn write(&self, bytes: &[u8]) {
        if let Some(stdin) = &mut *self.stdin.lock().await {
            let _ = within("room on standard input", stdin.write_all(bytes)).await;
        }
    }

    /// Closes the proxy's standard input, with which it is to end.
    pub async fn close(&self) {
        self.stdin.lock().await.take();
    }

    /// Closes it and waits until the proxy has closed its standard output.
    pub async fn end(&self) {
        self.close().await;
        self.ear.ended().await;
    }
}

async fn read(stdout: DuplexStream, ear: Ear) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    while let Ok(1..) = stdout.read_until(b'\n', &mut line).await {
        let text = std::str::from_utf8(&line).expect("a line is UTF-8");
        let text = text.strip_suffix('\n').unwrap_or_else(|| panic!("half a line: {text:?}"));
        assert!(!text.is_empty() && !text.contains('\r'), "a line is a message: {text:?}");
        ear.hear(text, None);
        line.clear();
    }
    ear.over();
}

impl Drop for Host {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
