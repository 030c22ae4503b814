//! What is told of a contest: medians, ratios to the bare relay, and whether the bars are met.
//!
//! Owns the bars. A bar is a ratio, so that it holds on any machine.

use super::load::Slice;
use super::work::Work;
use std::time::Duration;

/// What a contestant stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    Direct,
    Bare,
    /// The proxy between a modern client and a legacy server.
    Across,
    /// The proxy between a legacy client and a modern server.
    Down,
    /// The proxy between client and server of one era.
    Like,
    /// The proxy before a server that is a program. Judged by the row with this name, which is the same over HTTP.
    Piped(&'static str),
    /// Shown, not judged.
    Other,
}

/// One contestant's turns at one work.
pub struct Row {
    name: &'static str,
    pair: Pair,
    pub samples: Vec<Sample>,
}

/// One turn.
pub struct Sample {
    per_second: f64,
    /// Microseconds.
    p50: f64,
    p99: f64,
    cpu: f64,
    /// Mebibytes.
    peak: f64,
}

/// A work, and the most it may take as a ratio to the bare relay: from modern to legacy, between like eras, from legacy to
/// modern.
type Bars = (&'static str, f64, f64, Option<f64>);

/// CPU of a call.
const CPU: [Bars; 5] = [
    ("small", 1.5, 1.3, Some(1.5)),
    ("result-100k", 1.5, 1.2, None),
    ("result-1m", 1.5, 1.2, None),
    ("arguments-1m", 1.6, 1.3, None),
    ("progress", 1.2, 1.0, None),
];
/// The 99th percentile of the small call's time.
const P99: Bars = ("small", 1.6, 1.4, None);
/// CPU of a small call through pipes, as a ratio to the same over HTTP.
const PIPED: f64 = 2.0;

impl Row {
    pub fn new(name: &'static str, pair: Pair) -> Self {
        Self { name, pair, samples: Vec::new() }
    }

    fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(of).collect())
    }

    /// The median of the rounds' ratios.
    fn ratio(&self, bare: &Row, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().zip(&bare.samples).map(|(one, bare)| of(one) / of(bare)).collect())
    }

    /// The CPU of its best round. On a machine with other work to do this says more of the program than the median, which
    /// says more of the machine.
    fn least(&self) -> f64 {
        self.samples.iter().map(|sample| sample.cpu).fold(f64::INFINITY, f64::min)
    }

    fn bar(&self, bars: &Bars) -> Option<f64> {
        match self.pair {
            Pair::Across => Some(bars.1),
            Pair::Like => Some(bars.2),
            Pair::Down => bars.3,
            Pair::Direct | Pair::Bare | Pair::Piped(_) | Pair::Other => None,
        }
    }
}

impl Sample {
    pub fn new(slice: &Slice, cpu: Duration, peak: u64) -> Self {
        let count = slice.latencies.len().max(1);
        let at = |part: f64| {
            let index = ((count as f64 * part) as usize).min(count - 1);
            slice.latencies.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        Self {
            per_second: count as f64 / slice.elapsed.as_secs_f64(),
            p50: at(0.5),
            p99: at(0.99),
            cpu: cpu.as_secs_f64() * 1e6 / count as f64,
            peak: peak as f64 / (1024.0 * 1024.0),
        }
    }
}

pub fn print(work: &Work, rows: &[Row]) {
    println!("\n{} ({} connections)", work.title, work.connections);
    println!(
        "  {:<23} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}   {:<16} {:<16} of least",
        "", "requests/s", "p50 us", "p99 us", "CPU us", "least", "peak MiB", "CPU ratio", "p99 ratio"
    );
    let bare = rows.iter().find(|row| row.pair == Pair::Bare);
    for row in rows {
        print!(
            "  {:<23} {:>10.0} {:>9.0} {:>9.0} {:>9.1} {:>9.1} {:>9.1}",
            row.name,
            row.median(|sample| sample.per_second),
            row.median(|sample| sample.p50),
            row.median(|sample| sample.p99),
            row.median(|sample| sample.cpu),
            row.least(),
            row.median(|sample| sample.peak),
        );
        let judged = bare.filter(|_| !matches!(row.pair, Pair::Direct | Pair::Bare));
        let bars =
            |of: &[Bars]| of.iter().find(|(name, ..)| *name == work.name).and_then(|bars| row.bar(bars));
        if let Some(bare) = judged {
            let cpu = verdict(row.ratio(bare, |sample| sample.cpu), bars(&CPU));
            let p99 = verdict(row.ratio(bare, |sample| sample.p99), bars(&[P99]));
            print!("   {cpu:<16} {p99:<16} {:.2}", row.least() / bare.least());
        }
        if let Pair::Piped(over_http) = row.pair
            && let Some(over_http) = rows.iter().find(|row| row.name == over_http)
        {
            let bar = (work.name == "small").then_some(PIPED);
            print!("   of {}: {}", over_http.name, verdict(row.ratio(over_http, |sample| sample.cpu), bar));
        }
        println!();
    }
}

fn verdict(ratio: f64, bar: Option<f64>) -> String {
    match bar {
        None => format!("{ratio:.2}"),
        Some(bar) if ratio <= bar => format!("{ratio:.2} <= {bar:.1}"),
        Some(bar) => format!("{ratio:.2} > {bar:.1} !!"),
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
