//! No schema and no value makes a check, or compiling, take long or much of the stack, and nothing is left running.

use super::*;
use crate::schema::{Dialect, Documents};
use std::fmt::Write;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const TIME: Duration = Duration::from_millis(50);

/// What slow machines may add to it.
const SLACK: Duration = Duration::from_secs(5);

fn compiled(schema: &str) -> Result<Compiled, &'static str> {
    Compiled::new(schema.as_bytes(), Dialect::DEFAULT, &Documents::default(), TIME)
}

fn checked(schema: &str, value: &str) -> Checked {
    let compiled = compiled(schema).unwrap_or_else(|why| panic!("{why}"));
    let began = Instant::now();
    let checked = compiled.check(value.as_bytes(), TIME);
    assert!(began.elapsed() < TIME + SLACK, "{:?}", began.elapsed());
    checked
}

fn nested(depth: usize, leaf: &str) -> String {
    format!("{}{leaf}{}", r#"{"x":"#.repeat(depth), "}".repeat(depth))
}

/// D68: each level of the value doubles what there is to tell of it.
#[test]
fn d68_violations_of_alternatives_that_multiply_are_cut_off() {
    let branch = r##"{"type":"object","properties":{"x":{"$ref":"#"}},"required":["x"]}"##;
    let schema = format!(r#"{{"anyOf":[{branch},{branch},{{"const":0}}]}}"#);
    assert_eq!(checked(&schema, &nested(100, "0")), Checked::Valid);
    let came = checked(&schema, &nested(100, "1"));
    let Checked::Invalid(told) = came else { panic!("{came:?}") };
    assert_eq!(told.first.len(), 1);
}

/// The same without an end in sight: a check with no time at all.
#[test]
fn a_check_without_time_is_cut_off() {
    let many = format!("[{}1]", "1,".repeat(1000));
    let compiled = compiled(r#"{"items":{"type":"integer"}}"#).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(compiled.check(many.as_bytes(), SLACK), Checked::Valid);
    let cut = Checked::Unchecked("the check takes longer than schema.time");
    assert_eq!(compiled.check(many.as_bytes(), Duration::ZERO), cut);
}

/// A check is left without a word on standard error, and the thread is none the worse for it.
#[test]
fn cutting_off_is_no_panic() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = panic::take_hook();
    let this = std::thread::current().id();
    panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == this {
            PANICS.fetch_add(1, Ordering::Relaxed);
        }
        before(info);
    }));
    let compiled = compiled(r#"{"items":{"type":"integer"}}"#).unwrap_or_else(|why| panic!("{why}"));
    let many = format!("[{}1]", "1,".repeat(1000));
    for _ in 0..100 {
        assert!(matches!(compiled.check(many.as_bytes(), Duration::ZERO), Checked::Unchecked(_)));
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    assert_eq!(compiled.check(b"[1]", SLACK), Checked::Valid);
}

/// More violations than are worth gathering: the first is told.
#[test]
fn of_very_many_violations_the_first_is_told() {
    let many = format!("[{}1]", "1,".repeat(5000));
    let Checked::Invalid(told) = checked(r#"{"items":{"type":"string"}}"#, &many) else { panic!("no") };
    assert_eq!((told.first[0].at.as_str(), told.more), ("/0", true));
}

/// Schemas that lead to one another for a long way, each of them at the same value.
fn chain(length: usize, end: &str) -> String {
    let mut defs = String::new();
    for index in 0..length {
        let _ = write!(defs, r##""d{index}":{{"allOf":[{{"$ref":"#/$defs/d{}"}}]}},"##, index + 1);
    }
    format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{defs}"d{length}":{end}}}}}"##)
}

/// Runs `work` on a stack that is as small as the ones of a busy server.
fn cramped<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    watch::on_stack(1024 * 1024, work).unwrap_or_else(|| panic!("no thread"))
}

#[test]
fn a_long_way_of_references_does_not_exhaust_the_stack() {
    for (length, end) in [(20, r#""type":"string""#), (4000, r#""type":"string""#)] {
        let schema = chain(length, &format!("{{{end}}}"));
        cramped(|| {
            assert_eq!(checked(&schema, "\"a\""), Checked::Valid, "{length}");
            let Checked::Invalid(told) = checked(&schema, "1") else { panic!("it does not fit") };
            assert_eq!(told.first.len(), 1);
        });
    }
}

/// The long way again at each level of the value: it may be too deep to be checked, which is said.
#[test]
fn a_long_way_at_each_level_of_the_value_does_not_exhaust_the_stack() {
    for length in [1, 8, 20, 31, 500] {
        let schema = chain(length, r##"{"properties":{"x":{"$ref":"#/$defs/d0"}},"not":{"const":1}}"##);
        cramped(|| {
            for (depth, leaf) in [(1, "0"), (10, "0"), (10, "1"), (100, "0"), (100, "1")] {
                let value = nested(depth, leaf);
                let (came, fits) = (checked(&schema, &value), leaf == "0");
                if depth == 1 {
                    assert_eq!(came, Checked::Valid, "{length}");
                }
                assert!(came != Checked::Valid || fits, "{length} {depth}");
            }
        });
    }
}

#[test]
fn a_deep_schema_is_compiled() {
    let depth = 60;
    let schema = format!("{}{{\"type\":\"string\"}}{}", r#"{"allOf":["#.repeat(depth), "]}".repeat(depth));
    cramped(|| {
        assert_eq!(checked(&schema, "\"a\""), Checked::Valid);
        assert!(matches!(checked(&schema, "1"), Checked::Invalid(_)));
    });
}

/// Eight schemas that reach each other by references, each as deep as can be, are compiled one within the other.
#[test]
fn deep_schemas_that_lead_to_one_another_are_compiled() {
    let mut defs = String::new();
    for index in 0..40 {
        let open = r#"{"properties":{"x":"#.repeat(50);
        let close = "}}".repeat(50);
        let _ = write!(defs, r##""d{index}":{open}{{"$ref":"#/$defs/d{}"}}{close},"##, index + 1);
    }
    let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{defs}"d40":true}}}}"##);
    cramped(|| {
        assert_eq!(checked(&schema, r#"{"x":1}"#), Checked::Valid);
    });
}

/// Resources that lead to each other: there are more ways than can be counted, and dynamic scopes differ on each.
#[test]
fn resources_that_lead_to_each_other_in_very_many_ways_are_not_compiled() {
    let resources = |count: usize| {
        let mut defs = String::new();
        for from in 0..count {
            let mut properties = String::new();
            for to in 0..count {
                let _ = write!(properties, r#""p{to}":{{"$ref":"r{to}"}},"#);
            }
            let properties = properties.trim_end_matches(',');
            let _ = write!(defs, r#""r{from}":{{"$id":"r{from}","properties":{{{properties}}}}},"#);
        }
        format!(r#"{{"$id":"https://example.com/","$ref":"r0","$defs":{{{}}}}}"#, defs.trim_end_matches(','))
    };
    assert_eq!(checked(&resources(3), r#"{"p1":{"p2":{}}}"#), Checked::Valid);
    let began = Instant::now();
    let why = compiled(&resources(12)).err();
    assert_eq!(why, Some("too many references lead from one resource of the schema to another"));
    assert!(began.elapsed() < SLACK);
}

#[test]
fn patterns_are_bounded() {
    // Too long; more than can be compiled in time; larger than any machine can hold.
    assert!(compiled(&format!(r#"{{"pattern":"{}"}}"#, "(".repeat(9000))).is_err());
    let began = Instant::now();
    let mut all = String::new();
    for index in 0..4000 {
        let _ = write!(all, r#"{{"pattern":"[^a{index}]{{900}}[^b]{{900}}c"}},"#);
    }
    assert!(compiled(&format!(r#"{{"anyOf":[{}]}}"#, all.trim_end_matches(','))).is_err());
    assert!(compiled(r#"{"pattern":"((a{1000}){1000}){1000}"}"#).is_err());
    assert!(compiled(&format!(r#"{{"pattern":"{}{}"}}"#, "(".repeat(4000), ")".repeat(4000))).is_err());
    assert!(began.elapsed() < TIME * 4 + SLACK, "{:?}", began.elapsed());
}

/// Patterns with look-around take few steps, on short texts only.
#[test]
fn patterns_that_take_very_many_steps_are_cut_off() {
    let schema = r#"{"pattern":"^(?=(a+)+b)(a|aa)+$(?<!c)"}"#;
    let value = format!("\"{}\"", "a".repeat(60));
    assert_ne!(checked(schema, &value), Checked::Valid);
    let twice = r#"{"properties":{"p":{"pattern":"^(a|aa)+\\1$"}}}"#;
    let value = |length: usize| format!(r#"{{"p":"{}c"}}"#, "a".repeat(length));
    assert!(matches!(checked(twice, &value(60)), Checked::Unchecked(_)));
    assert!(matches!(checked(twice, &value(100_000)), Checked::Unchecked(_)));
}

/// Texts that no pattern is tried on may be long.
#[test]
fn long_texts_are_checked_where_there_is_no_pattern_for_them() {
    let schema =
        r#"{"properties":{"name":{"pattern":"^(?!x).+$"},"content":{"type":"string","minLength":3}}}"#;
    let value = format!(r#"{{"name":"a","content":"{}"}}"#, "a".repeat(1_000_000));
    assert_eq!(checked(schema, &value), Checked::Valid);
    let value = format!(r#"{{"name":"{}"}}"#, "a".repeat(1_000_000));
    assert!(matches!(checked(schema, &value), Checked::Unchecked(_)));
}

#[test]
fn a_value_of_very_many_items_is_not_checked() {
    let many = format!("[{}1]", "1,".repeat(300_000));
    assert!(matches!(checked("{}", &many), Checked::Unchecked(_)));
    assert_eq!(checked("{}", &format!("\"{}\"", "x".repeat(2_000_000))), Checked::Valid);
}
