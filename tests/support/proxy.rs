//! The proxy under test: started from a configuration, reached and reaching out in memory only.
//!
//! Owns the seam between these tests and the program; no other file of the tests names a type of it.

use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use mcp_janus::app::{App, Reach};
use mcp_janus::config::load_file;
use mcp_janus::net::{BoxIo, Dial, Io, Launch, Launched, Origin, Process, Program};
use tokio::io::DuplexStream;

use super::client::{self, Answer, Connection};
use super::net::Wire;
use super::{Ask, Done, LegacyServer, ModernServer, Net, Running, Upstream};

pub struct Proxy {
    net: Net,
    app: Arc<App>,
}

impl Proxy {
    /// One upstream, `http://up.test/mcp`, at `/mcp`, all settings at their defaults.
    pub async fn start(net: &Net) -> Self {
        Self::with(net, "").await
    }

    /// As `start`, with more lines for `[upstream.up]`.
    pub async fn with(net: &Net, upstream_lines: &str) -> Self {
        Self::configured(net, &format!("[upstream.up]\nurl = \"http://up.test/mcp\"\n{upstream_lines}")).await
    }

    /// One upstream that is the program `server`, at `/mcp`, with more lines for `[upstream.up]`.
    pub async fn of_command(net: &Net, upstream_lines: &str) -> Self {
        Self::configured(net, &format!("[upstream.up]\ncommand = \"server\"\n{upstream_lines}")).await
    }

    /// One upstream whose event streams are at `http://up.test/sse`, at `/mcp`, with more lines for `[upstream.up]`.
    pub async fn of_old_sse(net: &Net, upstream_lines: &str) -> Self {
        let url = super::old_sse_server::URL;
        Self::configured(net, &format!("[upstream.up]\nurl = \"{url}\"\n{upstream_lines}")).await
    }

    /// From the whole text of a configuration file.
    pub async fn configured(net: &Net, toml: &str) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), toml).expect("a writable file");
        let loaded = load_file(file.path(), &|_| None).expect("a good configuration");
        let net = Arc::new(net.clone());
        let reach = Reach { dial: Some(net.clone()), launch: Some(net.clone()) };
        let app = App::reaching(loaded.config, reach).await.expect("a proxy");
        Self { net: net.as_ref().clone(), app: Arc::new(app) }
    }

    pub async fn before(server: &LegacyServer) -> (Self, Upstream) {
        let net = Net::new();
        let upstream = server.start(&net);
        (Self::start(&net).await, upstream)
    }

    pub async fn before_modern(server: &ModernServer) -> (Self, Upstream) {
        let net = Net::new();
        let upstream = server.start(&net);
        (Self::start(&net).await, upstream)
    }

    /// The first step of the end: nothing new, and what runs comes to its end.
    pub fn drain(&self) {
        self.app.shutdown().drain();
    }

    /// After `drain`: everything that runs has come to its end, or the grace period has.
    pub async fn finished(&self) {
        self.app.shutdown().finished().await;
    }

    /// The end as `serve` does it: what runs comes to its end, then sessions and processes are ended.
    pub async fn end(&self) {
        self.drain();
        self.finished().await;
        for upstream in self.app.relay().upstreams() {
            upstream.close().await;
        }
    }

    /// The first upstream, for what it holds.
    pub fn upstream(&self) -> &mcp_janus::upstream::Upstream {
        &self.app.relay().upstreams()[0]
    }

    /// The metrics as they are scraped.
    pub fn metrics(&self) -> String {
        self.app.metrics().render().expect("metrics")
    }

    /// Sessions of the first upstream with a task that follows them for listeners.
    pub fn feeds(&self) -> usize {
        self.app.relay().upstreams()[0].legacy.feeds()
    }

    /// Sessions of the first upstream.
    pub fn sessions(&self) -> usize {
        self.app.relay().upstreams()[0].legacy.sessions()
    }

    /// The second step: whatever still runs is stopped.
    pub fn cut(&self) {
        self.app.shutdown().cut();
    }

    /// A client connection.
    pub fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(256 * 1024);
        let app = Arc::clone(&self.app);
        tokio::spawn(async move { app.serve_connection(Box::new(far)).await });
        near
    }

    /// One request on the admin listener.
    pub async fn admin(&self, ask: &Ask) -> Done {
        self.admin_open(ask).await.done().await
    }

    /// The same up to the head of its answer.
    pub async fn admin_open(&self, ask: &Ask) -> Answer {
        let (near, far) = tokio::io::duplex(256 * 1024);
        let app = Arc::clone(&self.app);
        tokio::spawn(async move { app.serve_admin_connection(Box::new(far)).await });
        client::open(near, ask).await
    }

    /// Serves a stdio host whose pipes hold so many bytes: its ends of the proxy's standard input and output, and how the
    /// proxy ended.
    pub fn launched(&self, pipe: usize) -> (DuplexStream, DuplexStream, tokio::task::JoinHandle<String>) {
        let (stdin, input) = tokio::io::duplex(pipe);
        let (output, stdout) = tokio::io::duplex(pipe);
        let app = Arc::clone(&self.app);
        let ending = tokio::spawn(async move { format!("{:?}", app.serve_stdio(input, output).await) });
        (stdin, stdout, ending)
    }

    pub fn connection(&self) -> Connection {
        Connection::new(self.connect())
    }

    /// One request on a connection of its own, answered completely.
    pub async fn send(&self, ask: &Ask) -> Done {
        client::exchange(self.connect(), ask).await
    }

    /// One request on a connection of its own, up to the head of its answer.
    pub async fn open(&self, ask: &Ask) -> Answer {
        client::open(self.connect(), ask).await
    }

    /// Starts a request without waiting for its answer.
    pub fn spawn(&self, ask: &Ask) -> tokio::task::JoinHandle<Done> {
        let (io, ask) = (self.connect(), ask.clone());
        tokio::spawn(async move { client::exchange(io, &ask).await })
    }
}

impl Dial for Net {
    fn dial<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, io::Result<BoxIo>> {
        Box::pin(async move {
            let wire = Net::dial(self, &origin.host.to_string(), origin.port).await?;
            Ok(Box::new(wire) as BoxIo)
        })
    }
}

impl Launch for Net {
    fn launch<'a>(&'a self, program: &'a Program) -> BoxFuture<'a, io::Result<Launched>> {
        Box::pin(async move {
            let text = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
            let env = program.env.iter().map(|(name, value)| (text(name), text(value))).collect();
            let args = program.args.iter().map(text).collect();
            let started = self.programs().start(&text(&program.program), args, env, program.cwd.clone())?;
            Ok(Launched {
                stdin: Box::new(started.stdin),
                stdout: Box::new(started.stdout),
                stderr: Box::new(started.stderr),
                process: Box::new(Minded(started.running)),
            })
        })
    }
}

/// A process of a test, as the program minds it.
struct Minded(Arc<Running>);

impl Process for Minded {
    fn id(&self) -> Option<u32> {
        Some(1000 + self.0.n as u32)
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<String>> {
        Box::pin(async { Ok(self.0.reap().await) })
    }

    fn terminate(&self) -> io::Result<()> {
        self.0.terminate()
    }

    fn kill(&self) -> io::Result<()> {
        self.0.kill()
    }
}

impl Io for Wire {
    fn is_stale(&self) -> bool {
        self.is_gone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let faults = self.net.faults();
        if !std::thread::panicking() {
            assert!(
                faults.is_empty(),
                "requests that their receiver's specification forbids:\n{}",
                faults.join("\n")
            );
        }
    }
}
