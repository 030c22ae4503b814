//! What is counted of questions that a legacy server asks in the middle of a call, and of the calls that wait for answers.
//! Questions that nobody is asked are counted here whichever server they are of.
//!
//! Owns these families and their handles. They are the upstream's (`upstream`) in all but the place where they are written
//! down. Does not own what a question is (`translate::question`) nor why one is refused; the words are in `labels`.

use super::families::Registrar;
use super::held::Held;
use super::labels::{NotAsked, ParkEnd, QuestionKind, StateRefused, Way};
use super::upstream::{UpstreamMetrics, add};
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Result};
use std::time::Duration;

/// A tenth of a second, which is a client that answers by itself, to a day.
const ANSWER_SECONDS: [f64; 14] =
    [0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21_600.0, 86_400.0];

pub(super) struct Families {
    parked: IntGaugeVec,
    rounds: IntCounterVec,
    asked: IntCounterVec,
    refused: IntCounterVec,
    resumed: IntCounterVec,
    waits: HistogramVec,
    ended: IntCounterVec,
    states_refused: IntCounterVec,
}

impl Families {
    pub(super) fn register(to: &mut Registrar<'_>) -> Result<Self> {
        const UP: &str = "upstream";
        Ok(Self {
            parked: to.gauges(
                "mcp_janus_parked_calls",
                "Calls whose server has asked something and whose client has not answered yet.",
                &[UP],
            )?,
            rounds: to.counters(
                "mcp_janus_question_rounds_total",
                "Answers input_required to clients, each with one question or several.",
                &[UP],
            )?,
            asked: to.counters(
                "mcp_janus_questions_total",
                "Questions of a legacy server that were put to a client, by kind and by where they came.",
                &[UP, "kind", "way"],
            )?,
            refused: to.counters(
                "mcp_janus_questions_refused_total",
                "Questions of a server that were put to no client, by the reason.",
                &[UP, "reason"],
            )?,
            resumed: to.counters(
                "mcp_janus_calls_resumed_total",
                "Calls that went on with their client's answer, once for each round.",
                &[UP],
            )?,
            waits: to.histograms(
                "mcp_janus_answer_wait_seconds",
                "Time from input_required to the answer that the call went on with.",
                &[UP],
                &ANSWER_SECONDS,
            )?,
            ended: to.counters(
                "mcp_janus_parked_ended_total",
                "Calls that ended while their question waited for an answer, by what ended them.",
                &[UP, "how"],
            )?,
            states_refused: to.counters(
                "mcp_janus_states_refused_total",
                "Answers of clients that were not taken (-32602), by the reason.",
                &[UP, "reason"],
            )?,
        })
    }
}

/// The handles of one upstream.
pub(super) struct Questions {
    parked: IntGauge,
    rounds: IntCounter,
    /// By kind, then by way.
    asked: Vec<IntCounter>,
    refused: Vec<IntCounter>,
    resumed: IntCounter,
    waits: Histogram,
    ended: Vec<IntCounter>,
    states_refused: Vec<IntCounter>,
}

impl Questions {
    pub(super) fn new(families: &Families, name: &str) -> Self {
        let each = |family: &IntCounterVec, words: &[&str]| {
            words.iter().map(|word| family.with_label_values(&[name, word])).collect::<Vec<_>>()
        };
        let ways = |kind: &&'static str| {
            let kind = *kind;
            Way::WORDS.iter().map(move |way| families.asked.with_label_values(&[name, kind, way]))
        };
        Self {
            parked: families.parked.with_label_values(&[name]),
            rounds: families.rounds.with_label_values(&[name]),
            asked: QuestionKind::WORDS.iter().flat_map(ways).collect(),
            refused: each(&families.refused, NotAsked::WORDS),
            resumed: families.resumed.with_label_values(&[name]),
            waits: families.waits.with_label_values(&[name]),
            ended: each(&families.ended, ParkEnd::WORDS),
            states_refused: each(&families.states_refused, StateRefused::WORDS),
        }
    }
}

impl UpstreamMetrics {
    /// A call whose question waits for the client's answer, until the guard is dropped.
    pub fn parked(&self) -> Held {
        Held::new(&self.questions().parked)
    }

    /// A client is asked.
    pub fn round(&self) {
        self.questions().rounds.inc();
    }

    /// A question is put to a client.
    pub fn question(&self, kind: QuestionKind, way: Way) {
        add(&self.questions().asked, kind as usize * Way::WORDS.len() + way as usize);
    }

    /// A question is put to no client.
    pub fn question_refused(&self, why: NotAsked) {
        add(&self.questions().refused, why as usize);
    }

    /// A call goes on with an answer that it has waited for.
    pub fn resumed(&self, waited: Duration) {
        self.questions().resumed.inc();
        self.questions().waits.observe(waited.as_secs_f64());
    }

    /// A call ended while it waited for an answer.
    pub fn parked_ended(&self, how: ParkEnd) {
        add(&self.questions().ended, how as usize);
    }

    /// An answer was not taken.
    pub fn state_refused(&self, why: StateRefused) {
        add(&self.questions().states_refused, why as usize);
    }
}

#[cfg(test)]
mod tests {
    use crate::telemetry::metrics::*;
    use std::time::Duration;

    /// All lines of one family, without its name, that are not 0.
    fn listed(metrics: &Metrics, name: &str) -> Vec<String> {
        let text = metrics.render().unwrap();
        let of_it = text.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned);
        of_it.filter(|line| line.starts_with('{') && !line.ends_with(" 0")).collect()
    }

    #[test]
    fn a_parked_call_is_counted_while_it_is_held() {
        let metrics = Metrics::new().unwrap();
        let (up, other) = (metrics.upstream("up"), metrics.upstream("other"));
        let first = up.parked();
        let second = up.parked();
        let _of_another = other.parked();
        let name = "mcp_janus_parked_calls";
        assert_eq!(listed(&metrics, name), [r#"{upstream="other"} 1"#, r#"{upstream="up"} 2"#]);
        drop((first, second));
        assert_eq!(listed(&metrics, name), [r#"{upstream="other"} 1"#]);
    }

    #[test]
    fn each_kind_and_way_of_a_question_has_a_series_of_its_own() {
        let metrics = Metrics::new().unwrap();
        let up = metrics.upstream("up");
        let kinds =
            [QuestionKind::Elicitation, QuestionKind::Url, QuestionKind::Sampling, QuestionKind::Roots];
        let mut expected = Vec::new();
        for (index, kind) in kinds.into_iter().enumerate() {
            for (beside, way) in [Way::Call, Way::Beside].into_iter().enumerate() {
                let times = 2 * index + beside + 1;
                (0..times).for_each(|_| up.question(kind, way));
                let (kind, way) = (kind.label(), way.label());
                expected.push(format!(r#"{{kind="{kind}",upstream="up",way="{way}"}} {times}"#));
            }
        }
        expected.sort();
        assert_eq!(expected.len(), QuestionKind::WORDS.len() * Way::WORDS.len());
        assert_eq!(listed(&metrics, "mcp_janus_questions_total"), expected);
    }

    #[test]
    fn reasons_are_counted_by_their_words() {
        let metrics = Metrics::new().unwrap();
        let up = metrics.upstream("up");
        up.question_refused(NotAsked::NoCall);
        up.question_refused(NotAsked::Off);
        up.question_refused(NotAsked::Off);
        up.parked_ended(ParkEnd::Drained);
        up.state_refused(StateRefused::Answers);
        up.round();
        assert_eq!(
            listed(&metrics, "mcp_janus_questions_refused_total"),
            [r#"{reason="no-call",upstream="up"} 1"#, r#"{reason="off",upstream="up"} 2"#]
        );
        let ended = listed(&metrics, "mcp_janus_parked_ended_total");
        assert_eq!(ended, [r#"{how="drained",upstream="up"} 1"#]);
        let refused = listed(&metrics, "mcp_janus_states_refused_total");
        assert_eq!(refused, [r#"{reason="answers",upstream="up"} 1"#]);
        assert_eq!(listed(&metrics, "mcp_janus_question_rounds_total"), [r#"{upstream="up"} 1"#]);
    }

    #[test]
    fn a_call_that_goes_on_tells_how_long_it_has_waited() {
        let metrics = Metrics::new().unwrap();
        let up = metrics.upstream("up");
        up.resumed(Duration::from_millis(200));
        up.resumed(Duration::from_secs(90));
        assert_eq!(listed(&metrics, "mcp_janus_calls_resumed_total"), [r#"{upstream="up"} 2"#]);
        assert_eq!(listed(&metrics, "mcp_janus_answer_wait_seconds_sum"), [r#"{upstream="up"} 90.2"#]);
        let buckets = listed(&metrics, "mcp_janus_answer_wait_seconds_bucket");
        for line in
            [r#"{upstream="up",le="0.5"} 1"#, r#"{upstream="up",le="60"} 1"#, r#"{upstream="up",le="120"} 2"#]
        {
            assert!(buckets.iter().any(|found| found == line), "{line} is not in {buckets:?}");
        }
        assert!(!buckets.iter().any(|line| line.contains(r#"le="0.1""#)), "{buckets:?}");
    }
}
