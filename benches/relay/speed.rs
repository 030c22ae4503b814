//! The contest: who relays the same calls at what cost.
//!
//! Owns the contestants and their order. Every round gives each of them a turn at a work, so that whatever else the
//! machine does hits all alike; what is told is the median over the rounds, and ratios are taken within a round.

use super::child;
use super::load::{self, Target};
use super::process::Process;
use super::report::{self, Pair, Row, Sample};
use super::work::{CAPABILITIES, Era, NO_CAPABILITIES, WORKS};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a contest takes.
pub struct Plan {
    pub rounds: usize,
    pub span: Duration,
    /// Only works whose name holds one of these; all if there is none.
    pub only: Vec<String>,
    /// Another build of the proxy, to compare with.
    pub other: Option<PathBuf>,
}

struct Contestant {
    name: &'static str,
    pair: Pair,
    process: Option<Process>,
    target: Target,
}

pub async fn run(plan: &Plan, folder: &Path) -> io::Result<()> {
    let server = Process::role("role-upstream", None)?;
    let all = enter(&server, folder, plan.other.as_deref()).await?;
    let began = Instant::now();
    for work in WORKS {
        if !plan.only.is_empty() && !plan.only.iter().any(|name| work.name.contains(name.as_str())) {
            continue;
        }
        // What goes through pipes is told of one work, or of those that are asked for.
        let piped = |one: &&Contestant| {
            !matches!(one.pair, Pair::Piped(_)) || work == WORKS[0] || !plan.only.is_empty()
        };
        let contestants: Vec<_> = all.iter().filter(piped).collect();
        let mut rows: Vec<Row> = contestants.iter().map(|one| Row::new(one.name, one.pair)).collect();
        for round in 0..plan.rounds {
            for turn in 0..contestants.len() {
                let index = (turn + round) % contestants.len();
                let one = contestants[index];
                rows[index].samples.push(one.turn(&work, plan.span).await?);
            }
        }
        report::print(&work, &rows);
    }
    println!("{} rounds in {:.0} s", plan.rounds, began.elapsed().as_secs_f64());
    Ok(())
}

const ACROSS: &str = "janus modern>legacy";
const MODERN: &str = "janus modern>modern";
const LEGACY: &str = "janus legacy>legacy";
const CAN_BE_ASKED: &str = "janus m>l, can be asked";
const DOWN: &str = "janus legacy>modern";
const DOWN_CAN_BE_ASKED: &str = "janus l>m, can be asked";

async fn enter(server: &Process, folder: &Path, other: Option<&Path>) -> io::Result<Vec<Contestant>> {
    let url = |era: Era| format!("http://{}{}", server.address, era.path());
    let mut all = vec![Contestant {
        name: "direct",
        pair: Pair::Direct,
        process: None,
        target: Target {
            address: server.address,
            path: Era::Modern.path(),
            era: Era::Modern,
            capabilities: NO_CAPABILITIES,
        },
    }];
    let mut add = |name, pair, era, process: Process| {
        let can_be_asked = name == CAN_BE_ASKED || name == DOWN_CAN_BE_ASKED;
        let capabilities = if can_be_asked { CAPABILITIES } else { NO_CAPABILITIES };
        let target = Target { address: process.address, path: "/mcp", era, capabilities };
        all.push(Contestant { name, pair, process: Some(process), target });
    };
    add("bare relay", Pair::Bare, Era::Modern, Process::role("role-bare", Some(&url(Era::Modern)))?);
    match Process::nginx(folder, server.address, Era::Modern.path())? {
        Some(process) => add("nginx", Pair::Other, Era::Modern, process),
        None => println!("nginx is not installed; its row is left out"),
    }
    let janus = |log: &str, era: Era| Process::proxy(log, &["--upstream", &url(era)]);
    add(ACROSS, Pair::Across, Era::Modern, janus("warn", Era::Legacy)?);
    add(MODERN, Pair::Like, Era::Modern, janus("warn", Era::Modern)?);
    add(LEGACY, Pair::Like, Era::Legacy, janus("warn", Era::Legacy)?);
    // Each connection begins a session before anything is counted.
    add(DOWN, Pair::Down, Era::Legacy, janus("warn", Era::Modern)?);
    add(DOWN_CAN_BE_ASKED, Pair::Other, Era::Legacy, janus("warn", Era::Modern)?);
    // For orientation: what one line of log for each call costs.
    add("janus m>l, log info", Pair::Other, Era::Modern, janus("info", Era::Legacy)?);
    // What it costs that the server might ask something.
    add(CAN_BE_ASKED, Pair::Other, Era::Modern, janus("warn", Era::Legacy)?);
    // The same server as a program; of a legacy client each connection has one of its own.
    let this = std::env::current_exe()?;
    let program = |era: Era| {
        let role = ["role-child", child::word(era)].map(std::ffi::OsStr::new);
        Process::proxy("warn", &[&["--".as_ref(), this.as_os_str()][..], &role].concat())
    };
    add("janus m>l, program", Pair::Piped(ACROSS), Era::Modern, program(Era::Legacy)?);
    add("janus m>m, program", Pair::Piped(MODERN), Era::Modern, program(Era::Modern)?);
    add("janus l>l, program", Pair::Piped(LEGACY), Era::Legacy, program(Era::Legacy)?);
    add("janus l>m, program", Pair::Piped(DOWN), Era::Legacy, program(Era::Modern)?);
    if let Some(binary) = other {
        let other = |era: Era| Process::proxy_of(binary, "warn", &["--upstream", &url(era)]);
        add("other modern>legacy", Pair::Across, Era::Modern, other(Era::Legacy)?);
        add("other modern>modern", Pair::Like, Era::Modern, other(Era::Modern)?);
        add("other legacy>modern", Pair::Down, Era::Legacy, other(Era::Modern)?);
    }
    served(all).await
}

/// Without those that do not take a client of their era; another build may be an older one.
async fn served(all: Vec<Contestant>) -> io::Result<Vec<Contestant>> {
    let mut kept = Vec::with_capacity(all.len());
    for one in all {
        match load::Client::new(&one.target, 64 * 1024).await {
            Ok(_) => kept.push(one),
            Err(error) if one.pair == Pair::Bare => return Err(error),
            Err(error) => println!("{}: not served ({error}); the row is left out", one.name),
        }
    }
    Ok(kept)
}

impl Contestant {
    async fn turn(&self, work: &super::work::Work, span: Duration) -> io::Result<Sample> {
        let mut before = Duration::ZERO;
        let begin = || {
            if let Some(process) = &self.process {
                process.reset_peak();
                before = process.cpu();
            }
        };
        let slice = load::slice(&self.target, work, span, begin)
            .await
            .map_err(|error| io::Error::other(format!("{}, {}: {error}", self.name, work.title)))?;
        let (cpu, peak) =
            self.process.as_ref().map_or((Duration::ZERO, 0), |one| (one.cpu() - before, one.peak()));
        Ok(Sample::new(&slice, cpu, peak))
    }
}
