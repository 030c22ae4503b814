//! What is refused, told or let through under each policy, and what is kept compiled.

use super::*;
use crate::telemetry::metrics::Metrics;
use crate::wire::json::{Span, UNBOUNDED, object};

const NUMBER: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

struct Bench {
    checks: Checks,
    metrics: Metrics,
}

impl Bench {
    fn new(policy: Validation) -> Self {
        Self::with(config::Schema { arguments: policy, results: policy, ..config::Schema::default() })
    }

    fn with(settings: config::Schema) -> Self {
        let settings = config::Schema { time: Duration::from_secs(10), ..settings };
        let metrics = Metrics::new().unwrap();
        let checks = Checks::new("up", &settings, Documents::default(), metrics.upstream("up"));
        Self { checks, metrics }
    }

    fn arguments(&self, schema: &str, params: &str) -> Result<(), String> {
        let text = Bytes::copy_from_slice(schema.as_bytes());
        let schema = Schema { tool: "count", text: &text, dialect: Some(Dialect::DEFAULT) };
        self.checks.arguments(schema, params.as_bytes(), &taken_apart(params))
    }

    fn result(&self, schema: &str, result: &str) -> Result<(), String> {
        let text = Bytes::copy_from_slice(schema.as_bytes());
        let schema = Schema { tool: "count", text: &text, dialect: Some(Dialect::DEFAULT) };
        self.checks.result(schema, result.as_bytes(), &taken_apart(result))
    }

    /// How often each outcome was counted.
    fn counted(&self) -> Vec<String> {
        let text = self.metrics.render().unwrap();
        let ours =
            text.lines().filter_map(|line| line.strip_prefix("mcp_janus_schema_checks_total{outcome="));
        ours.filter(|line| !line.ends_with(" 0")).map(|line| line.replace("upstream=\"up\",", "")).collect()
    }
}

fn taken_apart(text: &str) -> Object {
    object(text.as_bytes(), Span::new(0, text.len()), UNBOUNDED).unwrap()
}

#[test]
fn off_looks_at_nothing() {
    let bench = Bench::new(Validation::Off);
    assert_eq!(bench.arguments("nonsense", r#"{"arguments":{"n":"1"}}"#), Ok(()));
    assert_eq!(bench.result(NUMBER, r#"{"structuredContent":{"n":"1"}}"#), Ok(()));
    bench.checks.unknown_tool(CallValue::Arguments);
    assert_eq!(bench.counted(), Vec::<String>::new());
}

#[test]
fn warn_lets_everything_through_and_counts_it() {
    let bench = Bench::new(Validation::Warn);
    assert_eq!(bench.arguments(NUMBER, r#"{"arguments":{"n":1}}"#), Ok(()));
    assert_eq!(bench.arguments(NUMBER, r#"{"arguments":{"n":"1"}}"#), Ok(()));
    assert_eq!(bench.arguments(NUMBER, r#"{"arguments":{"n":1e999}}"#), Ok(()));
    assert_eq!(bench.result(NUMBER, r#"{"structuredContent":{"n":"1"}}"#), Ok(()));
    bench.checks.unknown_tool(CallValue::Arguments);
    assert_eq!(
        bench.counted(),
        [
            r#""fits",what="arguments"} 1"#,
            r#""unchecked",what="arguments"} 1"#,
            r#""unknown_tool",what="arguments"} 1"#,
            r#""warned",what="arguments"} 1"#,
            r#""warned",what="result"} 1"#,
        ]
    );
}

/// The words are for a model that can mend its call: the tool, and each place with what it wants.
#[test]
fn enforce_says_what_does_not_fit_and_where() {
    let bench = Bench::new(Validation::Enforce);
    assert_eq!(bench.arguments(NUMBER, r#"{"name":"count","arguments":{"n":1}}"#), Ok(()));
    let words = bench.arguments(NUMBER, r#"{"arguments":{"n":"SECRET"}}"#).unwrap_err();
    for part in ["count", "inputSchema", "\n- /n: ", "integer"] {
        assert!(words.contains(part), "{words}");
    }
    assert!(!words.contains("SECRET"), "{words}");
    assert_eq!(bench.counted(), [r#""fits",what="arguments"} 1"#, r#""refused",what="arguments"} 1"#]);
}

/// Without `arguments`, or with two, a call is checked all the same.
#[test]
fn absent_arguments_are_an_empty_object() {
    let bench = Bench::new(Validation::Enforce);
    assert_eq!(bench.arguments(r#"{"type":"object"}"#, r#"{"name":"count"}"#), Ok(()));
    let words = bench.arguments(NUMBER, r#"{"name":"count"}"#).unwrap_err();
    assert!(words.contains("(the whole)") && words.contains("\"n\""), "{words}");
    assert!(bench.arguments(NUMBER, r#"{"arguments":{"n":1},"arguments":{"n":"1"}}"#).is_err());
}

/// B6.3: the key tells whether there is a value. B6.5: what an error, a question or a task brings is not the tool's result.
#[test]
fn b6_structured_content_is_what_the_key_says() {
    let bench = Bench::new(Validation::Enforce);
    let passes = |schema: &str, result: &str| bench.result(schema, result).is_ok();
    assert!(passes(NUMBER, r#"{"structuredContent":{"n":1},"content":[]}"#));
    assert!(!passes(NUMBER, r#"{"structuredContent":{"n":"1"},"content":[]}"#));
    assert!(!passes(NUMBER, r#"{"structuredContent":null}"#));
    assert!(passes(r#"{"type":"null"}"#, r#"{"structuredContent":null}"#));
    assert!(passes(r#"{"type":"array"}"#, r#"{"resultType":"complete","structuredContent":[]}"#));
    assert!(passes(NUMBER, r#"{"content":[]}"#), "there is nothing to check");
    assert!(!passes(NUMBER, r#"{"structuredContent":{"n":1},"structuredContent":{"n":1}}"#));
    for other in [
        r#"{"isError":true,"content":[]}"#,
        r#"{"isError":true,"structuredContent":{"n":"1"}}"#,
        r#"{"resultType":"input_required","inputRequests":{}}"#,
        r#"{"task":{"taskId":"1"}}"#,
    ] {
        assert!(passes(NUMBER, other), "{other}");
    }
    assert!(!passes(NUMBER, r#"{"isError":false,"structuredContent":{}}"#));
    let words = bench.result(NUMBER, r#"{"structuredContent":{}}"#).unwrap_err();
    assert!(
        words.contains("has run") && words.contains("outputSchema") && words.contains("\"n\""),
        "{words}"
    );
}

/// What cannot be checked passes, even under `enforce`, and is counted.
#[test]
fn what_cannot_be_checked_passes() {
    let bench = Bench::new(Validation::Enforce);
    assert_eq!(bench.arguments(r#"{"$ref":"http://127.0.0.1:1/"}"#, r#"{"arguments":{}}"#), Ok(()));
    assert_eq!(bench.arguments(r#"{"$schema":"mine:"}"#, r#"{"arguments":{}}"#), Ok(()));
    let text = Bytes::from_static(b"{}");
    let unknown = Schema { tool: "count", text: &text, dialect: None };
    assert_eq!(bench.checks.arguments(unknown, b"{}", &taken_apart("{}")), Ok(()));
    assert_eq!(bench.counted(), [r#""unchecked",what="arguments"} 3"#]);
}

fn kept(bench: &Bench) -> usize {
    bench.checks.lock().all.len()
}

#[test]
fn a_schema_is_compiled_once_and_the_oldest_make_room() {
    let policy = Validation::Enforce;
    let cache_bytes = 40 * 1024;
    let bench = Bench::with(config::Schema { arguments: policy, cache_bytes, ..config::Schema::default() });
    let slots = |bench: &Bench| {
        let state = bench.checks.lock();
        let mut all: Vec<_> = state.all.values().map(|kept| Arc::as_ptr(&kept.slot) as usize).collect();
        all.sort();
        all
    };
    let pass = |schema: &str| assert_eq!(bench.arguments(schema, "{}"), Ok(()));
    pass("{}");
    let first = slots(&bench);
    pass("{}");
    assert_eq!(slots(&bench), first);
    for n in 0..100 {
        pass(&format!(r#"{{"minProperties":0,"title":"{n}"}}"#));
        pass("{}");
    }
    let state = bench.checks.lock();
    assert!(state.bytes <= cache_bytes && state.all.len() > 2, "{} {}", state.bytes, state.all.len());
    assert_eq!(state.bytes, state.all.values().map(|kept| kept.bytes).sum::<usize>());
    assert!(state.all.keys().any(|key| key.text == "{}"), "it is in use");
    drop(state);
    assert!(slots(&bench).contains(&first[0]));
}

#[test]
fn a_schema_that_is_not_compiled_is_kept_as_such() {
    let bench = Bench::new(Validation::Enforce);
    for _ in 0..3 {
        assert_eq!(bench.arguments(r#"{"$ref":"other"}"#, "{}"), Ok(()));
    }
    assert_eq!(kept(&bench), 1);
}

/// Calls that come together wait for one another's compiling.
#[test]
fn a_schema_is_compiled_once_for_all_who_wait() {
    let bench = Bench::new(Validation::Enforce);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(bench.arguments(NUMBER, "{}").is_err()));
        }
    });
    assert_eq!(kept(&bench), 1);
    assert_eq!(bench.counted(), [r#""refused",what="arguments"} 8"#]);
}
