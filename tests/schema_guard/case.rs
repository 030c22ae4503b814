//! Tables of tools, each with what is to be said of it, all put through every pair of eras in one list.
//!
//! Owns what follows from a verdict where policy is as it comes: good tools are there to the byte and can be called, bad ones are
//! not and cannot, and each finding is counted once under its kind. Does not own the tables.

use std::collections::BTreeMap;

use crate::canary::Canary;
use crate::stage::{Cell, FINDINGS, PAIRS, Stage, good};
use crate::support::{Era, Value, json, rpc};

/// What is to be said of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Good,
    /// As good as any, with a finding of this kind.
    Note(&'static str),
    /// It is there, in another form.
    Mended(&'static str),
    /// It is there without its `outputSchema`.
    Taken(&'static str),
    /// It is left out, for a finding of this kind (or one that begins so) at a place that ends so.
    Bad(&'static str, &'static str),
}

pub(crate) struct Case {
    what: &'static str,
    /// Raw, with `NAME` in the place of its name.
    tool: String,
    of_modern: Verdict,
    of_legacy: Verdict,
}

impl Case {
    /// A tool with this `inputSchema`, of which the same is to be said whatever the server's era.
    pub(crate) fn input(what: &'static str, schema: impl AsRef<str>, verdict: Verdict) -> Self {
        Self::raw(what, format!(r#"{{"name":"NAME","inputSchema":{}}}"#, schema.as_ref()), verdict)
    }

    /// One with this schema at a property `a` of its input.
    pub(crate) fn property(what: &'static str, schema: impl AsRef<str>, verdict: Verdict) -> Self {
        Self::input(what, format!(r#"{{"type":"object","properties":{{"a":{}}}}}"#, schema.as_ref()), verdict)
    }

    /// One with this `outputSchema`.
    pub(crate) fn output(what: &'static str, schema: impl AsRef<str>, verdict: Verdict) -> Self {
        let schema = schema.as_ref();
        let input = r#"{"type":"object"}"#;
        Self::raw(
            what,
            format!(r#"{{"name":"NAME","inputSchema":{input},"outputSchema":{schema}}}"#),
            verdict,
        )
    }

    pub(crate) fn raw(what: &'static str, tool: impl Into<String>, verdict: Verdict) -> Self {
        Self { what, tool: tool.into(), of_modern: verdict, of_legacy: verdict }
    }

    /// Of a legacy server's this is to be said.
    #[must_use]
    pub(crate) fn of_a_legacy_server(mut self, verdict: Verdict) -> Self {
        self.of_legacy = verdict;
        self
    }

    fn verdict(&self, server: Era) -> Verdict {
        match server {
            Era::Modern => self.of_modern,
            Era::Legacy(_) => self.of_legacy,
        }
    }

    fn named(&self, n: usize) -> String {
        self.tool.replace("NAME", &format!("t{n}"))
    }
}

/// Puts the table through every pair, between servers' latest revisions.
pub(crate) async fn judged(canary: &Canary, cases: &[Case]) {
    for pair in PAIRS {
        judged_in(canary, Cell::http(pair), cases).await;
    }
}

/// Puts it through one cell: a good tool stands before and behind each of the table.
pub(crate) async fn judged_in(canary: &Canary, cell: Cell, cases: &[Case]) {
    let mut list = vec![good("g0")];
    for (n, case) in cases.iter().enumerate() {
        list.extend([case.named(n), good(&format!("g{}", n + 1))]);
    }
    let stage = Stage::set(cell, &list.join(" , "), "").await;
    let shown = stage.listed().await;
    let all: Vec<String> = cases.iter().enumerate().map(|(n, case)| label(n, case)).collect();
    let context = format!("{cell:?} of {all:#?}");

    let mut wanted = vec!["g0".to_owned()];
    for (n, case) in cases.iter().enumerate() {
        if !matches!(case.verdict(cell.server), Verdict::Bad(..)) {
            wanted.push(format!("t{n}"));
        }
        wanted.push(format!("g{}", n + 1));
    }
    assert_eq!(shown.names(), wanted, "who is listed, in the server's order: {}: {context}", samples(&stage));
    for n in 0..=cases.len() {
        let name = format!("g{n}");
        assert_eq!(shown.raw_tool(&name), good(&name), "a good tool is not touched: {context}");
    }
    for (n, case) in cases.iter().enumerate() {
        looks_as(cell, case, n, || shown.raw_tool(&format!("t{n}")).to_owned());
    }

    counted(&stage, cases, &context);
    for (n, case) in cases.iter().enumerate().filter(|(_, case)| case.tool.contains("NAME")) {
        called(&stage, n, case).await;
    }
    stage.passes("g0", "{}").await;
    canary.is_untouched(&stage.net);
}

fn label(n: usize, case: &Case) -> String {
    format!("t{n}: {}", case.what)
}

/// What is left in is the server's own: to the byte between like pairs, in its meaning between others.
fn looks_as(cell: Cell, case: &Case, n: usize, shown: impl Fn() -> String) {
    let (own, context) = (case.named(n), format!("{} in {cell:?}", label(n, case)));
    let value = |raw: &str| rpc::value(raw.as_bytes()).unwrap();
    match case.verdict(cell.server) {
        Verdict::Bad(..) => {}
        Verdict::Mended(_) => {
            let mut schema = value(&shown())["inputSchema"].clone();
            assert_eq!(schema["type"], "object", "A5.3: {context}");
            schema.as_object_mut().unwrap().remove("type");
            assert_eq!(schema, value(&own)["inputSchema"], "nothing else changes: {context}");
        }
        Verdict::Taken(_) => {
            let shown = value(&shown());
            assert!(shown.get("outputSchema").is_none(), "{context}: {shown}");
            assert_eq!(shown["inputSchema"], value(&own)["inputSchema"], "{context}");
        }
        Verdict::Good | Verdict::Note(_) if cell.is_like() => assert_eq!(shown(), own, "{context}"),
        Verdict::Good | Verdict::Note(_) => {
            let mut input = value(&own)["inputSchema"].clone();
            if cell.server == Era::Modern {
                booleans(&mut input);
            }
            // A5.10: what legacy servers annotate is taken out.
            if !own.contains("x-mcp-header") {
                assert_eq!(value(&shown())["inputSchema"], input, "{context}");
            }
            // B6.1: an output whose root is no object is wrapped for legacy clients.
            if cell.client == Era::Modern {
                let output = |raw: &str| value(raw).get("outputSchema").cloned();
                assert_eq!(output(&shown()), output(&own), "{context}");
            }
        }
    }
}

/// Inv. 6: no legacy revision has a boolean for the schema of a root's property; an object means the same.
fn booleans(schema: &mut Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|all| all.values_mut()) {
        match property {
            Value::Bool(true) => *property = json!({}),
            Value::Bool(false) => *property = json!({"not": {}}),
            _ => {}
        }
    }
}

/// Each finding of the table is counted, and no other kind.
fn counted(stage: &Stage, cases: &[Case], context: &str) {
    let mut wanted: BTreeMap<&str, f64> = BTreeMap::new();
    for case in cases {
        match case.verdict(stage.cell.server) {
            Verdict::Good => {}
            Verdict::Note(kind) | Verdict::Mended(kind) | Verdict::Taken(kind) | Verdict::Bad(kind, _) => {
                *wanted.entry(kind).or_default() += 1.0;
            }
        }
    }
    let mut known = 0.0;
    for (kind, n) in &wanted {
        let found = stage.found(kind);
        assert!(found >= *n, "{kind}: {found} of {n}: {}: {context}", samples(stage));
        let covers = |other: &&str| other.is_empty() || other.ends_with('_');
        if !wanted.keys().any(|other| other != kind && covers(other) && kind.starts_with(other)) {
            known += found;
        }
    }
    assert_eq!(known, stage.found(""), "no other kinds: {}: {context}", samples(stage));
}

fn samples(stage: &Stage) -> String {
    let metrics = stage.proxy.metrics();
    let stands = |line: &&str| line.starts_with(FINDINGS) && !line.ends_with(" 0");
    metrics.lines().filter(stands).collect::<Vec<_>>().join("\n")
}

async fn called(stage: &Stage, n: usize, case: &Case) {
    let (name, context) = (format!("t{n}"), format!("{} in {:?}", label(n, case), stage.cell));
    match case.verdict(stage.cell.server) {
        Verdict::Bad(_, at) => {
            let words = stage.refused(&name).await;
            assert!(words.contains(at), "it says where, {at}: {words}: {context}");
        }
        // The proxy may say of its own what a header of a call must be.
        _ if case.tool.contains("x-mcp-header") => {}
        Verdict::Good | Verdict::Note(_) | Verdict::Mended(_) | Verdict::Taken(_) => {
            let result: Value = stage.passes(&name, "{}").await;
            assert_eq!(result["content"][0]["text"], "done", "{context}");
        }
    }
}
