//! What is counted of the schema guard: what it finds, what it refuses, and what is checked against schemas.
//!
//! Owns these families and their handles. They are the upstream's (`upstream`) in all but the place where they are written
//! down. Does not own when any of it happens. The words are in `labels`; kinds of findings are those of the guard itself.

use super::families::Registrar;
use super::held::HeldBytes;
use super::labels::{CallValue, ListVerdict, ValueCheck};
use super::upstream::{UpstreamMetrics, add};
use crate::schema::Kind;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Result};

pub(super) struct Families {
    findings: IntCounterVec,
    lists: IntCounterVec,
    calls_refused: IntCounterVec,
    forms_refused: IntCounterVec,
    too_large: IntCounterVec,
    checks: IntCounterVec,
    cache_bytes: IntGaugeVec,
}

impl Families {
    pub(super) fn register(to: &mut Registrar<'_>) -> Result<Self> {
        const UP: &str = "upstream";
        Ok(Self {
            findings: to.counters(
                "mcp_janus_schema_findings_total",
                "Findings about a server's tools and forms by kind, each once until it changes.",
                &[UP, "kind"],
            )?,
            lists: to.counters(
                "mcp_janus_schema_lists_total",
                "Lists of tools that passed the schema guard: judged, or known by their bytes.",
                &[UP, "how"],
            )?,
            calls_refused: to.counters(
                "mcp_janus_schema_calls_refused_total",
                "Calls of tools that are left out of the list.",
                &[UP],
            )?,
            forms_refused: to.counters(
                "mcp_janus_schema_forms_refused_total",
                "Forms of elicitations that were put to no client for their schema.",
                &[UP],
            )?,
            too_large: to.counters(
                "mcp_janus_schema_too_large_total",
                "Messages with tools or a form that were broken off, because they were too large to be judged.",
                &[UP],
            )?,
            checks: to.counters(
                "mcp_janus_schema_checks_total",
                "Arguments and results that were to be checked against their tool's schema, by what came of it.",
                &[UP, "what", "outcome"],
            )?,
            cache_bytes: to.gauges(
                "mcp_janus_schema_cache_bytes",
                "Size of the lists kept with their verdicts and of the schemas kept compiled.",
                &[UP],
            )?,
        })
    }
}

/// The handles of one upstream.
pub(super) struct Schemas {
    findings: Vec<IntCounter>,
    lists: Vec<IntCounter>,
    calls_refused: IntCounter,
    forms_refused: IntCounter,
    too_large: IntCounter,
    /// By what was checked, then by what came of it.
    checks: Vec<IntCounter>,
    cache_bytes: IntGauge,
}

impl Schemas {
    pub(super) fn new(families: &Families, name: &str) -> Self {
        let one = |family: &IntCounterVec| family.with_label_values(&[name]);
        let each = |family: &IntCounterVec, words: &[&str]| {
            words.iter().map(|word| family.with_label_values(&[name, word])).collect::<Vec<_>>()
        };
        let came = |what: &&'static str| {
            let what = *what;
            ValueCheck::WORDS.iter().map(move |how| families.checks.with_label_values(&[name, what, how]))
        };
        Self {
            findings: each(&families.findings, Kind::LABELS),
            lists: each(&families.lists, ListVerdict::WORDS),
            calls_refused: one(&families.calls_refused),
            forms_refused: one(&families.forms_refused),
            too_large: one(&families.too_large),
            checks: CallValue::WORDS.iter().flat_map(came).collect(),
            cache_bytes: families.cache_bytes.with_label_values(&[name]),
        }
    }
}

impl UpstreamMetrics {
    /// Something new has been found in a tool or a form.
    pub fn schema_finding(&self, kind: Kind) {
        add(&self.schemas().findings, kind as usize);
    }

    /// A list of tools has passed the guard.
    pub fn schema_list(&self, how: ListVerdict) {
        add(&self.schemas().lists, how as usize);
    }

    /// A call was refused because its tool is left out.
    pub fn schema_call_refused(&self) {
        self.schemas().calls_refused.inc();
    }

    /// A form was put to no client.
    pub fn schema_form_refused(&self) {
        self.schemas().forms_refused.inc();
    }

    /// A message was broken off that holds what has to be judged and is too large for that.
    pub fn schema_too_large(&self) {
        self.schemas().too_large.inc();
    }

    /// A value was to be checked against its tool's schema.
    pub fn schema_check(&self, what: CallValue, how: ValueCheck) {
        add(&self.schemas().checks, what as usize * ValueCheck::WORDS.len() + how as usize);
    }

    /// A verdict or a compiled schema of this size is kept until the guard is dropped.
    pub fn schema_cached(&self, bytes: usize) -> HeldBytes {
        HeldBytes::new(&self.schemas().cache_bytes, bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::Kind;
    use crate::telemetry::metrics::*;

    /// All series of the families of this module that are not 0, in order.
    fn listed(metrics: &Metrics) -> Vec<String> {
        let text = metrics.render().unwrap();
        let ours = text.lines().filter_map(|line| line.strip_prefix("mcp_janus_schema_"));
        ours.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect()
    }

    #[test]
    fn every_kind_of_finding_has_a_series_of_its_own() {
        assert_eq!(Kind::ALL.len(), Kind::LABELS.len());
        let metrics = Metrics::new().unwrap();
        let up = metrics.upstream("up");
        for (index, kind) in Kind::ALL.iter().enumerate() {
            (0..=index).for_each(|_| up.schema_finding(*kind));
        }
        let expected = |index: usize, kind: &Kind| {
            format!(r#"findings_total{{kind="{}",upstream="up"}} {}"#, kind.label(), index + 1)
        };
        let mut expected: Vec<_> =
            Kind::ALL.iter().enumerate().map(|(index, kind)| expected(index, kind)).collect();
        expected.sort();
        let mut listed = listed(&metrics);
        listed.sort();
        assert_eq!(listed, expected);
    }

    #[test]
    fn every_word_has_a_series_of_its_own() {
        let metrics = Metrics::new().unwrap();
        let up = metrics.upstream("up");
        up.schema_list(ListVerdict::Judged);
        up.schema_list(ListVerdict::Known);
        up.schema_list(ListVerdict::Known);
        up.schema_call_refused();
        up.schema_form_refused();
        up.schema_too_large();
        up.schema_check(CallValue::Arguments, ValueCheck::Fits);
        up.schema_check(CallValue::Arguments, ValueCheck::UnknownTool);
        up.schema_check(CallValue::Result, ValueCheck::Fits);
        up.schema_check(CallValue::Result, ValueCheck::Warned);
        up.schema_check(CallValue::Result, ValueCheck::Refused);
        up.schema_check(CallValue::Result, ValueCheck::Unchecked);
        let kept = [up.schema_cached(10), up.schema_cached(1000)];
        let counted = [
            r#"calls_refused_total{upstream="up"} 1"#,
            r#"checks_total{outcome="fits",upstream="up",what="arguments"} 1"#,
            r#"checks_total{outcome="fits",upstream="up",what="result"} 1"#,
            r#"checks_total{outcome="refused",upstream="up",what="result"} 1"#,
            r#"checks_total{outcome="unchecked",upstream="up",what="result"} 1"#,
            r#"checks_total{outcome="unknown_tool",upstream="up",what="arguments"} 1"#,
            r#"checks_total{outcome="warned",upstream="up",what="result"} 1"#,
            r#"forms_refused_total{upstream="up"} 1"#,
            r#"lists_total{how="judged",upstream="up"} 1"#,
            r#"lists_total{how="known",upstream="up"} 2"#,
            r#"too_large_total{upstream="up"} 1"#,
        ];
        let mut expected: Vec<_> = counted.to_vec();
        expected.insert(0, r#"cache_bytes{upstream="up"} 1010"#);
        assert_eq!(listed(&metrics), expected);
        drop(kept);
        assert_eq!(listed(&metrics), counted);
    }
}
