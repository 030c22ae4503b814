//! `mcp-janus demo`: a modern client and a legacy server talk through the proxy, and both wires are shown.
//!
//! Owns putting the four parts on loopback (client, tap, proxy, tap, server), running the script (`steps`) and the
//! verdict. Client, taps and server know nothing of the proxy's code; what is printed is what was on the wire.
//! A step that does not go as it must makes the demo fail, so it is a smoke test as well.

mod asking;
mod client;
mod frames;
mod json;
mod layout;
mod seen;
mod steps;
mod tap;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::app::{App, StartError};
use crate::cli::Exit;
use crate::config::{self, Config};
use crate::shutdown::{Ending, Shutdown};
use frames::{Frame, Way, Wire};
use layout::Layout;
use seen::{MODERN_META, Seen, expect};
use steps::Step;
use tap::{Tap, Tape};

/// For one step. They take a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(2);

const INTRODUCTION: &str = "A client of revision 2026-07-28 calls a server of revision 2025-11-25 through mcp-janus. All \
    three run in this process, on loopback, and everything below was read off the two connections. --> goes towards the \
    server, <-- towards the client. HTTP headers that say nothing about the protocol are left out (--verbose shows \
    them), and JSON is indented; nothing else is changed.";

/// Why the demo ended before its end.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    #[error("loopback: {0}")]
    Socket(io::Error),
    #[error("standard output: {0}")]
    Print(io::Error),
}

/// The parts, running.
struct Stage {
    tape: Arc<Tape>,
    /// Where the client goes: the tap in front of the proxy.
    front: SocketAddr,
    proxy: Shutdown,
    serving: JoinHandle<Ending>,
    /// Dropped, it stops the server.
    _server: oneshot::Sender<()>,
}

/// Runs the script; 0 if every step went as it must.
pub async fn demo(verbose: bool) -> Exit {
    match show(&Layout::of_stdout(verbose), &mut io::stdout()).await {
        Ok(0) => Exit::Ok,
        Ok(failed) => {
            eprintln!(
                "mcp-janus: demo: {failed} of the steps did not go as expected; see NOT AS EXPECTED above"
            );
            Exit::Failure
        }
        // Nobody reads any more, such as `| head`.
        Err(DemoError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Failure,
        Err(error) => {
            eprintln!("mcp-janus: demo: {error}");
            Exit::Failure
        }
    }
}

/// Returns how many steps failed.
async fn show(layout: &Layout, out: &mut impl Write) -> Result<usize, DemoError> {
    let stage = Stage::build().await?;
    let mut failed = 0;
    layout.text(out, INTRODUCTION).map_err(DemoError::Print)?;
    let steps = steps::all();
    let last = steps.len() + 1;
    let mut before = Value::Null;
    for (at, step) in steps.iter().enumerate() {
        let (frames, verdict) = stage.run(step, &mut before).await;
        failed += usize::from(verdict.is_err());
        print(layout, out, &format!("{}/{last}  {}", at + 1, step.title), step.look, &frames, &verdict)
            .map_err(DemoError::Print)?;
    }
    let (tape, mark) = (stage.tape.clone(), stage.tape.mark());
    let verdict = stage.end().await;
    failed += usize::from(verdict.is_err());
    let look = "Told to stop, the proxy lets calls finish and then ends its sessions at the server.";
    let title = format!("{last}/{last}  the proxy stops");
    print(layout, out, &title, look, &tape.since(mark), &verdict).map_err(DemoError::Print)?;
    let verdict = summary(layout, out, &tape.since(0), last - failed, last).map_err(DemoError::Print)?;
    Ok(failed + usize::from(verdict.is_err()))
}

impl Stage {
    async fn build() -> Result<Self, DemoError> {
        let tape = Arc::new(Tape::default());
        let (front, back) =
            (Tap::bind().await.map_err(DemoError::Socket)?, Tap::bind().await.map_err(DemoError::Socket)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(DemoError::Socket)?;
        let server = listener.local_addr().map_err(DemoError::Socket)?;
        let (keep, stop) = oneshot::channel::<()>();
        // Ends with the stage.
        tokio::spawn(async move { crate::demo::serve(listener, stop).await });

        let upstream = config::Upstream::for_url(&format!("http://{}/mcp", back.address))?;
        let mut settings = Config::single(upstream);
        settings.listen.address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        settings.shutdown_grace = GRACE;
        let app = App::new(settings, None).await?;
        let sockets = app.bind().await?;
        let (proxy, address) = (app.shutdown().clone(), sockets.clients.local_addr());
        // Ends with the drain.
        let serving = tokio::spawn(async move { app.serve(sockets).await });

        back.start(server, Wire::Legacy, tape.clone());
        let client = front.address;
        front.start(address, Wire::Modern, tape.clone());
        Ok(Self { tape, front: client, proxy, serving, _server: keep })
    }

    /// One step, what was on the wires in it, and whether that is as it must be. `before` is the answer of the step before.
    async fn run(&self, step: &Step, before: &mut Value) -> (Vec<Frame>, Result<(), String>) {
        let mark = self.tape.mark();
        let running = async {
            let answer = client::call(self.front, &step.request, step.most, before).await;
            let answer = answer.map_err(|error| format!("the client got no answer: {error}"))?;
            self.tape.wait(mark, step.settled).await;
            Ok(answer)
        };
        let answer = timeout(PATIENCE, running)
            .await
            .unwrap_or_else(|_| Err(format!("the step was not over after {PATIENCE:?}")));
        *before = answer.as_ref().ok().and_then(|answer| answer.messages.last().cloned()).unwrap_or_default();
        let frames = self.tape.since(mark);
        let verdict = answer.and_then(|answer| (step.check)(&Seen { answer: &answer, frames: &frames }));
        (frames, verdict)
    }

    /// Drains the proxy, which must end its session, and stops the server.
    async fn end(self) -> Result<(), String> {
        let mark = self.tape.mark();
        self.proxy.drain();
        match timeout(PATIENCE, self.serving).await {
            Ok(Ok(Ending::Drained)) => {}
            Ok(Ok(Ending::OutOfTime | Ending::CutShort)) => {
                return Err("the proxy cut something short".to_owned());
            }
            Ok(Err(error)) => return Err(format!("the proxy broke: {error}")),
            Err(_) => return Err("the proxy did not stop".to_owned()),
        }
        expect(deletes(&self.tape.since(mark)) == 2, "both sessions should be ended with DELETE")
    }
}

fn print(
    layout: &Layout,
    out: &mut impl Write,
    title: &str,
    look: &str,
    frames: &[Frame],
    verdict: &Result<(), String>,
) -> io::Result<()> {
    writeln!(out)?;
    layout.rule(out, "=")?;
    layout.text(out, title)?;
    layout.text(out, look)?;
    writeln!(out)?;
    layout.frames(out, frames)?;
    if let Err(why) = verdict {
        layout.text(out, &format!("NOT AS EXPECTED: {why}"))?;
    }
    Ok(())
}

/// What the server has seen in all.
fn summary(
    layout: &Layout,
    out: &mut impl Write,
    frames: &[Frame],
    passed: usize,
    all: usize,
) -> io::Result<Result<(), String>> {
    let sent = seen::legacy(frames, Way::ToServer);
    let count = |method: &str| sent.iter().filter(|message| message["method"] == method).count();
    let (initialize, cancelled) = (count("initialize"), count("notifications/cancelled"));
    let probes = count("server/discover");
    let requests =
        sent.iter().filter(|message| message.get("id").is_some() && message.get("method").is_some());
    let responses = sent.iter().filter(|message| message.get("method").is_none()).count();
    let modern = sent.iter().filter(|message| message.to_string().contains(MODERN_META)).count();
    writeln!(out)?;
    layout.rule(out, "=")?;
    let calls = requests.count() - probes - initialize;
    let text = format!(
        "{passed} of {all} steps went as expected. In all the legacy server saw {probes} server/discover (the probe), \
         {initialize} initialize, {calls} calls in the two sessions, {responses} answer to its question, {cancelled} \
         notifications/cancelled and {} DELETE; beyond the probe, {} messages with modern _meta.",
        deletes(frames),
        modern.saturating_sub(probes),
    );
    layout.text(out, &text)?;
    layout.text(
        out,
        "Next: mcp-janus serve --upstream http://127.0.0.1:3000/mcp puts the proxy before a server of yours.",
    )?;
    let verdict =
        expect(initialize == 2 && probes == 1 && modern == 1, "one probe, two sessions, no modern _meta");
    if let Err(why) = &verdict {
        layout.text(out, &format!("NOT AS EXPECTED: {why}"))?;
    }
    Ok(verdict)
}

fn deletes(frames: &[Frame]) -> usize {
    let is_delete = |frame: &&Frame| frame.what.head().is_some_and(|head| head.method() == "DELETE");
    frames.iter().filter(|frame| frame.wire == Wire::Legacy).filter(is_delete).count()
}
