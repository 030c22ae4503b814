//! The text format of Prometheus (version 0.0.4), read strictly by hand.
//!
//! Owns the rules that hold for every line of every scrape. Does not own what a single metric should be.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Ask, Proxy, pass};

#[derive(Debug)]
pub(crate) struct Scrape {
    /// Kind by name of the family, in order of the text.
    pub(crate) kinds: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// What the admin listener shows once everything that is due now has happened.
pub(crate) async fn scrape(proxy: &Proxy) -> Scrape {
    pass(1).await;
    let done = proxy.admin(&Ask::verb("GET").path("/metrics")).await;
    assert_eq!(done.status, 200, "{}", done.raw);
    assert_eq!(done.headers.get("content-type").as_deref(), Some("text/plain; version=0.0.4"));
    Scrape::parse(&done.raw)
}

impl Scrape {
    pub(crate) fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line is not ended");
        let mut kinds: BTreeMap<String, String> = BTreeMap::new();
        let mut samples = Vec::new();
        let mut seen = BTreeSet::new();
        let (mut helped, mut current) = (None::<String>, String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect(line);
                assert!(is_name(name, true) && help.trim().len() > 10, "{line}");
                assert!(helped.replace(name.to_owned()).is_none(), "help without a type before {line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect(line);
                assert_eq!(helped.take().as_deref(), Some(name), "type without help: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
                assert!(
                    name.starts_with("mcp_janus_") || name == "process_start_time_seconds",
                    "a name of others: {line}"
                );
                assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "a family twice: {line}");
                name.clone_into(&mut current);
            } else {
                let sample = sample(line);
                let suffixes: &[&str] = match kinds.get(&current).map(String::as_str) {
                    Some("histogram") => &["_bucket", "_sum", "_count"],
                    Some(_) => &[""],
                    None => panic!("a sample before its type: {line}"),
                };
                let of_family = suffixes.iter().any(|suffix| format!("{current}{suffix}") == sample.name);
                assert!(of_family, "{line} stands under {current}");
                assert!(sample.value >= 0.0, "{line}");
                let key = line.rsplit_once(' ').unwrap().0.to_owned();
                assert!(seen.insert(key), "a series twice: {line}");
                samples.push(sample);
            }
        }
        let scrape = Self { kinds, samples };
        scrape.check_histograms();
        scrape
    }

    /// The sum of all samples of this name with these labels; further labels may be anything.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let families = crate::requests::names();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        let known = families.contains(&name) || family.is_some_and(|family| families.contains(&family));
        assert!(known, "{name} is no metric");
        let fits = |sample: &&Sample| {
            labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|found| found == value))
        };
        self.samples.iter().filter(|sample| sample.name == name).filter(fits).map(|s| s.value).sum()
    }

    /// `sum` as a whole number.
    pub(crate) fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let sum = self.sum(name, labels);
        assert!(sum.fract() == 0.0, "{name}: {sum}");
        sum as u64
    }

    /// All samples of a name that are not zero, as `label=value,... count`, sorted.
    pub(crate) fn listed(&self, name: &str) -> Vec<String> {
        let shown = |sample: &Sample| {
            let labels: Vec<_> =
                sample.labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
            format!("{} {}", labels.join(","), sample.value)
        };
        let of_it = self.samples.iter().filter(|sample| sample.name == name && sample.value != 0.0);
        let mut listed: Vec<_> = of_it.map(shown).collect();
        listed.sort();
        listed
    }

    /// The gauges that are not zero, without those that never are, and what is kept of lists.
    pub(crate) fn raised(&self) -> Vec<String> {
        let always = ["mcp_janus_build_info", "process_start_time_seconds", "mcp_janus_schema_cache_bytes"];
        let gauges =
            self.kinds.iter().filter(|(name, kind)| *kind == "gauge" && !always.contains(&name.as_str()));
        gauges
            .flat_map(|(name, _)| self.listed(name).into_iter().map(move |s| format!("{name} {s}")))
            .collect()
    }

    fn check_histograms(&self) {
        for family in self.kinds.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
            let mut series: BTreeMap<Vec<String>, Vec<(f64, f64)>> = BTreeMap::new();
            for bucket in self.samples.iter().filter(|sample| sample.name == format!("{family}_bucket")) {
                let mut labels = bucket.labels.clone();
                let bound = labels.remove("le").expect("a bound");
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a number") };
                let key = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
                series.entry(key).or_default().push((bound, bucket.value));
            }
            for (labels, buckets) in series {
                let rising = buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
                assert!(rising, "{family} {labels:?}: {buckets:?}");
                let last = buckets.last().unwrap();
                let pairs: Vec<_> = labels.iter().map(|label| label.split_once('=').unwrap()).collect();
                assert_eq!(last.0, f64::INFINITY, "{family} {labels:?}");
                assert_eq!(last.1, self.sum(&format!("{family}_count"), &pairs), "{family} {labels:?}");
            }
        }
    }
}

/// `name{label="value",...} number`
fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').expect(line);
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let (name, rest) = series.split_at(series.find('{').unwrap_or(series.len()));
    assert!(is_name(name, true), "{line}");
    let mut labels = BTreeMap::new();
    let mut rest = match rest.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').expect(line),
        None => "",
    };
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect(line);
        assert!(is_name(label, false), "{line}");
        // No value of ours needs an escape.
        let (value, after) = after.split_once('"').expect(line);
        assert!(value.bytes().all(|b| b.is_ascii_graphic() && b != b'\\'), "{line}");
        assert!(labels.insert(label.to_owned(), value.to_owned()).is_none(), "a label twice: {line}");
        rest = after.strip_prefix(',').unwrap_or(after);
        assert!(after.is_empty() || after.starts_with(','), "{line}");
    }
    Sample { name: name.to_owned(), labels, value }
}

fn is_name(text: &str, colon: bool) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || (colon && b == b':');
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with(|c: char| c.is_ascii_digit())
}
