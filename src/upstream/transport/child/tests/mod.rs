//! Child processes that are none: their streams are in memory and their time is a paused clock.
//!
//! Owns the processes of these tests ([`Stage`] is the far side of one) and what the inbox heard. `speaking` is about
//! messages in both directions, `ending` about the end.

mod ending;
mod speaking;

use super::*;
use crate::config::Command;
use crate::net::{Process, Reads, Writes};
use crate::telemetry::metrics::Metrics;
use crate::upstream::transport::peer;
use crate::wire::jsonrpc::Id;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// What an in-memory pipe holds; less than a long message.
const PIPE: usize = 1024;

const STOP: Duration = Duration::from_secs(2);

#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Text(Bytes),
    TooLong(Option<Id>),
    Ended(String),
}

fn text(text: impl Into<Bytes>) -> Heard {
    Heard::Text(text.into())
}

fn ended(how: &str) -> Heard {
    Heard::Ended(format!("the server's process: {how}"))
}

struct Ear(mpsc::UnboundedSender<Heard>);

impl Inbox for Ear {
    fn text(&self, text: Bytes) {
        self.0.send(Heard::Text(text)).unwrap();
    }

    fn too_long(&self, id: Option<Id>) {
        self.0.send(Heard::TooLong(id)).unwrap();
    }

    fn ended(&self, why: Cow<'static, str>) {
        self.0.send(Heard::Ended(why.into_owned())).unwrap();
    }
}

/// Starts processes that are played by the test.
struct Theatre(mpsc::UnboundedSender<Stage>);

/// One of them, as it sees itself.
struct Stage {
    stdin: DuplexStream,
    stdout: DuplexStream,
    stderr: DuplexStream,
    exit: watch::Sender<Option<String>>,
    /// When it got which signal.
    signals: Arc<Mutex<Vec<(&'static str, Instant)>>>,
}

struct Played {
    exit: watch::Receiver<Option<String>>,
    signals: Arc<Mutex<Vec<(&'static str, Instant)>>>,
}

impl Launch for Theatre {
    fn launch<'a>(&'a self, program: &'a Program) -> BoxFuture<'a, io::Result<Launched>> {
        Box::pin(async move {
            if program.program == "missing" {
                return Err(io::Error::new(io::ErrorKind::NotFound, "`missing` is nowhere"));
            }
            if program.program == "slow" {
                return std::future::pending().await;
            }
            let ((stdin, own_stdin), (stdout, own_stdout), (stderr, own_stderr)) =
                (duplex(PIPE), duplex(PIPE), duplex(PIPE));
            let (exit, exited) = watch::channel(None);
            let signals = Arc::default();
            let process = Box::new(Played { exit: exited, signals: Arc::clone(&signals) });
            let stage = Stage { stdin: own_stdin, stdout: own_stdout, stderr: own_stderr, exit, signals };
            self.0.send(stage).unwrap();
            let (stdout, stderr): (Reads, Reads) = (Box::new(stdout), Box::new(stderr));
            Ok(Launched { stdin: Box::new(stdin) as Writes, stdout, stderr, process })
        })
    }
}

impl Process for Played {
    fn id(&self) -> Option<u32> {
        Some(4711)
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<String>> {
        Box::pin(async {
            let ended =
                self.exit.wait_for(Option::is_some).await.map_err(|_| io::Error::other("no stage"))?;
            Ok(ended.clone().unwrap())
        })
    }

    fn terminate(&self) -> io::Result<()> {
        self.signals.lock().unwrap().push(("TERM", Instant::now()));
        Ok(())
    }

    fn kill(&self) -> io::Result<()> {
        self.signals.lock().unwrap().push(("KILL", Instant::now()));
        Ok(())
    }
}

/// A server and the ways to its processes.
struct Play {
    child: Child,
    stages: mpsc::UnboundedReceiver<Stage>,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
}

/// One channel of it.
struct Channel {
    pipe: Arc<dyn Pipe>,
    heard: mpsc::UnboundedReceiver<Heard>,
    stage: Stage,
}

fn play(program: &str, message_bytes: usize) -> Play {
    let mut settings = peer::upstream("http://unused.example/");
    settings.limits.message_bytes = message_bytes;
    settings.timeouts.stop = STOP;
    settings.timeouts.start = Duration::from_secs(60);
    let command = Command {
        program: program.into(),
        args: Vec::new(),
        env: Vec::new(),
        inherit_env: Vec::new(),
        cwd: None,
    };
    let (theatre, stages) = mpsc::unbounded_channel();
    let (shutdown, metrics) = (Shutdown::new(Duration::from_secs(1)), Arc::new(Metrics::new().unwrap()));
    let child =
        Child::new(&settings, &command, Arc::new(Theatre(theatre)), shutdown.clone(), metrics.upstream("u"));
    Play { child, stages, shutdown, metrics }
}

impl Play {
    async fn open(&mut self) -> Channel {
        let (ear, heard) = mpsc::unbounded_channel();
        let pipe = self.child.open(&HeaderMap::new(), Arc::new(Ear(ear))).await.ok().unwrap();
        Channel { pipe, heard, stage: self.stages.recv().await.unwrap() }
    }

    async fn refused(&mut self) -> SendError {
        let (ear, _) = mpsc::unbounded_channel();
        match self.child.open(&HeaderMap::new(), Arc::new(Ear(ear))).await {
            Err(Trouble::Send(error)) => error,
            Err(Trouble::Refused(_)) | Ok(_) => panic!("a process was started"),
        }
    }

    /// The value of a metric without its prefix, as it is written.
    fn metric(&self, name: &str) -> String {
        let all = self.metrics.render().unwrap();
        let line = all.lines().find_map(|line| line.strip_prefix(&format!("mcp_janus_upstream_{name} ")));
        line.unwrap_or_else(|| panic!("{name} is not in {all}")).to_owned()
    }
}

impl Channel {
    async fn send(&self, text: impl Into<Payload>) -> Result<(), SendError> {
        match self.pipe.send(text.into(), &HeaderMap::new()).await {
            Ok(()) => Ok(()),
            Err(Trouble::Send(error)) => Err(error),
            Err(Trouble::Refused(_)) => panic!("a process refuses nothing"),
        }
    }

    async fn hears(&mut self, what: Heard) {
        assert_eq!(self.heard.recv().await, Some(what));
    }
}

impl Stage {
    /// The next bytes on its standard input, as many as `expected` has.
    async fn reads(&mut self, expected: &[u8]) {
        let mut read = vec![0; expected.len()];
        self.stdin.read_exact(&mut read).await.unwrap();
        assert!(read == expected, "{}", String::from_utf8_lossy(&read[..read.len().min(500)]));
    }

    async fn reads_the_end(&mut self) {
        assert_eq!(self.stdin.read(&mut [0]).await.unwrap(), 0);
    }

    async fn says(&mut self, text: &str) {
        self.stdout.write_all(text.as_bytes()).await.unwrap();
    }

    /// The process has ended; its streams are closed by dropping the stage.
    fn exits(&self, how: &str) {
        self.exit.send_replace(Some(how.to_owned()));
    }

    /// Which signals it got so far, and how long after `start`.
    fn signals(&self, start: Instant) -> Vec<(&'static str, Duration)> {
        self.signals.lock().unwrap().iter().map(|(signal, at)| (*signal, *at - start)).collect()
    }
}
