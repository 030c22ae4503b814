//! What the schema guard adds to a list of tools: the first time, and when its bytes are those of before.
//!
//! Owns this bar. In this process and without a network: what is measured is the one call that every list passes through. The
//! best round is told beside the median, since on a machine with other work it says more of the program.

use super::report::median;
use mcp_janus::config::{Target, Upstream};
use mcp_janus::exchange::Principal;
use mcp_janus::schema::Speaker;
use mcp_janus::telemetry::metrics::{Metrics, UpstreamMetrics};
use mcp_janus::upstream::guard::{Guard, Page, Scope};
use mcp_janus::wire::json::Span;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

const TOOLS: usize = 300;
const ROUNDS: usize = 201;
/// What a list may take that was never seen.
const FIRST: Duration = Duration::from_millis(3);
/// What it may take when nothing has changed.
const UNCHANGED: Duration = Duration::from_micros(50);

/// Schemas as generators of the day write them: by hand, from zod, from pydantic.
const SCHEMAS: [&str; 3] = [
    r#"{"type":"object","properties":{"path":{"type":"string","description":"Where the file is, relative to the root of the workspace"},"encoding":{"type":"string","enum":["utf-8","latin-1","base64"],"default":"utf-8","description":"How its bytes are read"},"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"At most so many lines"},"filters":{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"value":{"type":["string","number","null"]}},"required":["key"]}},"recursive":{"type":"boolean","default":false}},"required":["path"],"additionalProperties":false}"#,
    r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"owner":{"type":"string","minLength":1,"description":"Whom the repository belongs to"},"repo":{"type":"string","minLength":1,"description":"What it is called"},"labels":{"type":"array","items":{"type":"string"},"description":"Only those with all of these"},"state":{"anyOf":[{"type":"string","const":"open"},{"type":"string","const":"closed"},{"type":"null"}],"default":"open"},"page":{"type":"integer","exclusiveMinimum":0,"maximum":9007199254740991}},"required":["owner","repo"],"additionalProperties":false}"#,
    r##"{"$defs":{"Point":{"properties":{"x":{"title":"X","type":"number"},"y":{"title":"Y","type":"number"}},"required":["x","y"],"title":"Point","type":"object"}},"properties":{"from":{"$ref":"#/$defs/Point","description":"Where the line begins"},"to":{"$ref":"#/$defs/Point","description":"Where it ends"},"color":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"Color"},"width":{"default":1.0,"minimum":0,"title":"Width","type":"number"}},"required":["from","to"],"title":"drawArguments","type":"object"}"##,
];

pub fn run() -> io::Result<()> {
    let metrics = Metrics::new().map_err(io::Error::other)?.upstream("bench");
    let bytes = list(0).len();
    println!("\nthe schema guard, a list of {TOOLS} ordinary tools ({bytes} bytes), {ROUNDS} times each");
    println!("  {:<34} {:>9} {:>9}", "", "best us", "p50 us");
    let first = measure(|round| (guard(&metrics), list(round)));
    told("the first time", &first, Some(FIRST));
    // Of the first of all, the process has read no schema before.
    println!("  {:<34} {:>9.1}", "  the very first in the process", first.0.as_secs_f64() * 1e6);
    let (guard, list) = (guard(&metrics), list(0));
    told("unchanged", &measure(|_| (guard.clone(), list.clone())), Some(UNCHANGED));
    Ok(())
}

/// The first of all rounds, and all of them in microseconds.
fn measure(mut given: impl FnMut(usize) -> (Arc<Guard>, String)) -> (Duration, Vec<f64>) {
    let scope = Scope::of(Principal::Anonymous, None);
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let (guard, list) = given(round);
        let began = Instant::now();
        let sift = guard.list(scope, Speaker::Modern, list.as_bytes(), Span::new(0, list.len()), Page::Whole);
        times.push(began.elapsed());
        assert!(black_box(sift).tools().iter().all(|tool| tool.findings.is_empty()));
    }
    (times[0], times.iter().map(|time| time.as_secs_f64() * 1e6).collect())
}

fn told(name: &str, (_, times): &(Duration, Vec<f64>), bar: Option<Duration>) {
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    print!("  {name:<34} {best:>9.1} {:>9.1}", median(times.clone()));
    if let Some(bar) = bar.map(|bar| bar.as_secs_f64() * 1e6) {
        print!(" {} {bar:.0}", if best <= bar { "<=" } else { "!! >" });
    }
    println!();
}

fn guard(metrics: &Arc<UpstreamMetrics>) -> Arc<Guard> {
    let upstream = Upstream::for_target(Target::Demo);
    Arc::new(Guard::new(&upstream, metrics.clone()))
}

/// The array; no two rounds have the same.
fn list(round: usize) -> String {
    let tool = |n: usize| {
        let schema = SCHEMAS[n % SCHEMAS.len()];
        format!(
            r#"{{"name":"tool_{round}_{n}","description":"Does one thing and does it well","inputSchema":{schema}}}"#
        )
    };
    format!("[{}]", (0..TOOLS).map(tool).collect::<Vec<_>>().join(","))
}
