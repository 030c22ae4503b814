//! `mcp-janus demo`: a modern client and a legacy server talk through the proxy, then a legacy client and a modern server, and
//! both wires are shown.
//!
//! Owns the order of the two scripts (`steps`, `old`), the page and the verdict. Clients, taps and servers know nothing of the
//! proxy's code; what is printed is what was on the wire. A step that does not go as it must makes the demo fail, so it is a
//! smoke test as well. Does not own the parts on loopback (`stage`).

mod asking;
mod client;
mod frames;
mod json;
mod layout;
mod old;
mod seen;
mod stage;
mod steps;
mod tap;

use std::io::{self, Write};

use serde_json::Value;

use crate::app::StartError;
use crate::cli::Exit;
use crate::config;
use frames::{Frame, Way, Wire};
use layout::{LEGACY_TO_MODERN, Layout, MODERN_TO_LEGACY, Pair};
use seen::{MODERN_META, expect};
use stage::Stage;

const INTRODUCTION: &str = "A client of revision 2026-07-28 calls a server of revision 2025-11-25 through mcp-janus. All \
    three run in this process, on loopback, and everything below was read off the two connections. --> goes towards the \
    server, <-- towards the client. HTTP headers that say nothing about the protocol are left out (--verbose shows \
    them), and JSON is indented; nothing else is changed.";
const SECOND_PART: &str = "The other way round: a client of revision 2025-11-25 calls a server of revision 2026-07-28. Here the \
    legacy side is the client's.";

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

/// Runs both scripts; 0 if every step went as it must.
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
    let (steps, turns) = (steps::all(), old::all());
    let last = steps.len() + 1 + turns.len();
    let mut page = Page { layout, out, pair: MODERN_TO_LEGACY, number: 0, last, failed: 0 };
    page.text(INTRODUCTION)?;
    let stage = Stage::legacy().await?;
    let mut before = Value::Null;
    for step in &steps {
        let (frames, verdict) = stage.step(step, &mut before).await;
        page.step(step.title, step.look, &frames, &verdict)?;
    }
    let (tape, mark) = (stage.tape.clone(), stage.tape.mark());
    let verdict = stage.end().await;
    let frames = tape.since(mark);
    let ended = || expect(deletes(&frames) == 2, "both sessions should be ended with DELETE");
    let look = "Told to stop, the proxy lets calls finish and then ends its sessions at the server.";
    page.step("the proxy stops", look, &frames, &verdict.and_then(|()| ended()))?;

    page.pair = LEGACY_TO_MODERN;
    page.part(SECOND_PART)?;
    let stage = Stage::modern().await?;
    let mut client = old::Client::new(stage.front);
    for turn in &turns {
        let (frames, verdict) = stage.turn(turn, &mut client).await;
        page.step(turn.title, turn.look, &frames, &verdict)?;
    }
    let modern = stage.tape.clone();
    let verdict = stage.end().await;
    page.summary(&tape.since(0), &modern.since(0), verdict)
}

/// What is printed, and how it went so far.
struct Page<'a, W> {
    layout: &'a Layout,
    out: &'a mut W,
    pair: Pair,
    /// Of the last step that was printed.
    number: usize,
    last: usize,
    failed: usize,
}

impl<W: Write> Page<'_, W> {
    fn text(&mut self, text: &str) -> Result<(), DemoError> {
        self.layout.text(self.out, text).map_err(DemoError::Print)
    }

    fn part(&mut self, text: &str) -> Result<(), DemoError> {
        self.rule()?;
        self.text(text)
    }

    fn rule(&mut self) -> Result<(), DemoError> {
        writeln!(self.out).and_then(|()| self.layout.rule(self.out, "=")).map_err(DemoError::Print)
    }

    fn step(
        &mut self,
        title: &str,
        look: &str,
        frames: &[Frame],
        verdict: &Result<(), String>,
    ) -> Result<(), DemoError> {
        self.number += 1;
        self.rule()?;
        self.text(&format!("{}/{}  {title}", self.number, self.last))?;
        self.text(look)?;
        writeln!(self.out)
            .and_then(|()| self.layout.frames(self.out, frames, self.pair))
            .map_err(DemoError::Print)?;
        self.verdict(verdict)
    }

    fn verdict(&mut self, verdict: &Result<(), String>) -> Result<(), DemoError> {
        let Err(why) = verdict else { return Ok(()) };
        self.failed += 1;
        self.text(&format!("NOT AS EXPECTED: {why}"))
    }

    /// What the servers have seen in all. Returns how much went wrong.
    fn summary(
        mut self,
        legacy: &[Frame],
        modern: &[Frame],
        stopped: Result<(), String>,
    ) -> Result<usize, DemoError> {
        let sent = seen::back(legacy, Way::ToServer);
        let count = |method: &str| sent.iter().filter(|message| message["method"] == method).count();
        let (initialize, cancelled) = (count("initialize"), count("notifications/cancelled"));
        let probes = count("server/discover");
        let requests =
            sent.iter().filter(|message| message.get("id").is_some() && message.get("method").is_some());
        let responses = sent.iter().filter(|message| message.get("method").is_none()).count();
        let strange = sent.iter().filter(|message| message.to_string().contains(MODERN_META)).count();
        let calls = requests.count() - probes - initialize;
        let passed = self.last - self.failed;
        let seen = seen::back(modern, Way::ToServer).len();
        let text = format!(
            "{passed} of {} steps went as expected. In all the legacy server saw {probes} server/discover (the probe), \
             {initialize} initialize, {calls} calls in the two sessions, {responses} answer to its question, {cancelled} \
             notifications/cancelled and {} DELETE; beyond the probe, {} messages with modern _meta. The modern server saw \
             {seen} requests, each with all there is to know, and no session.",
            self.last,
            deletes(legacy),
            strange.saturating_sub(probes),
        );
        self.rule()?;
        self.text(&text)?;
        self.text(
            "Next: mcp-janus serve --upstream http://127.0.0.1:3000/mcp puts the proxy before a server of yours.",
        )?;
        let as_told = initialize == 2 && probes == 1 && strange == 1 && seen == 4 && !names_a_session(modern);
        let told =
            "one probe, two sessions, no modern _meta; four requests and no session at the modern server";
        self.verdict(&stopped.and_then(|()| expect(as_told, told)))?;
        Ok(self.failed)
    }
}

fn deletes(frames: &[Frame]) -> usize {
    seen::heads(frames, Way::ToServer).filter(|head| head.method() == "DELETE").count()
}

/// Whether anything that went to the server, or came from it, names a session.
fn names_a_session(frames: &[Frame]) -> bool {
    let back = frames.iter().filter(|frame| frame.wire == Wire::Back);
    back.filter_map(|frame| frame.what.head()).any(|head| head.get("mcp-session-id").is_some())
}
