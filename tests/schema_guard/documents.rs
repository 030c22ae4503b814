//! C62: documents that the operator supplies for what leads out, and nothing else.

use std::io::Write;

use tempfile::NamedTempFile;

use crate::canary::Canary;
use crate::stage::{Cell, PAIRS, Stage, good, tool};

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Lines that supply these.
fn supplied(all: &[(&str, &NamedTempFile)]) -> String {
    let entry = |(uri, file): &(&str, &NamedTempFile)| format!("\"{uri}\" = \"{}\"", file.path().display());
    let entries: Vec<_> = all.iter().map(entry).collect();
    format!("documents = {{ {} }}", entries.join(", "))
}

fn with(reference: &str) -> String {
    tool("t", &format!(r#"{{"type":"object","properties":{{"a":{{"$ref":"{reference}"}}}}}}"#))
}

#[tokio::test(start_paused = true)]
async fn c62_what_is_supplied_is_known() {
    let canary = Canary::new();
    let url = canary.url();
    let document = file(
        r##"{"type":"string","$defs":{"n":{"type":"integer"},"again":{"$ref":"#/$defs/n"},"here":{"$anchor":"here"}}}"##,
    );
    let lines = supplied(&[(&url, &document)]);
    let good_ones = [
        url.clone(),
        format!("{url}#"),
        format!("{url}#/$defs/n"),
        format!("{url}#/$defs/again"),
        format!("{url}#here"),
    ];
    for pair in PAIRS {
        for reference in &good_ones {
            let own = with(reference);
            let stage = Stage::set(Cell::http(pair), &format!("{own},{}", good("g0")), &lines).await;
            let shown = stage.listed().await;
            assert_eq!(shown.names(), ["t", "g0"], "{pair:?} {reference}");
            assert_eq!(shown.raw_tool("t"), own, "it is not put in its place");
            assert_eq!(stage.found(""), 0.0);
            stage.passes("t", "{}").await;
            canary.is_untouched(&stage.net);
        }
        for (reference, kind) in [
            (format!("{url}#/$defs/none"), "dangling_ref"),
            (format!("{url}#nowhere"), "dangling_ref"),
            (format!("{url}.other"), "external_ref"),
            (url.replace("x.json", "X.json"), "external_ref"),
        ] {
            let stage =
                Stage::set(Cell::http(pair), &format!("{},{}", with(&reference), good("g0")), &lines).await;
            assert_eq!(stage.listed().await.names(), ["g0"], "{pair:?} {reference}");
            assert_eq!(stage.found(kind), 1.0, "{reference}");
            canary.is_untouched(&stage.net);
        }
    }
}

/// A document's own references are judged as the tool's are.
#[tokio::test(start_paused = true)]
async fn c62_what_is_supplied_leads_on() {
    let canary = Canary::new();
    let one = file(r#"{"$ref":"two.json#/$defs/d"}"#);
    let two = file(r#"{"$defs":{"d":{"type":"string"}}}"#);
    let lost = file(r#"{"properties":{"x":{"$ref":"https://canary.test/elsewhere"}}}"#);
    let round = file(r#"{"allOf":[{"$ref":"https://s.test/round.json"}]}"#);
    let lines = supplied(&[
        ("https://s.test/one.json", &one),
        ("https://s.test/two.json", &two),
        ("https://s.test/lost.json", &lost),
        ("https://s.test/round.json", &round),
    ]);
    for pair in PAIRS {
        for (reference, kind) in [
            ("https://s.test/one.json", ""),
            ("https://s.test/lost.json", "external_ref"),
            ("https://s.test/round.json", "ref_loop"),
        ] {
            let stage =
                Stage::set(Cell::http(pair), &format!("{},{}", with(reference), good("g0")), &lines).await;
            let wanted: &[&str] = if kind.is_empty() { &["t", "g0"] } else { &["g0"] };
            assert_eq!(stage.listed().await.names(), wanted, "{pair:?} {reference}");
            if !kind.is_empty() {
                assert!(stage.found(kind) >= 1.0, "{reference}");
            }
            canary.is_untouched(&stage.net);
        }
    }
}

/// Values are checked against what is supplied.
#[tokio::test(start_paused = true)]
async fn c62_values_are_checked_against_it() {
    let canary = Canary::new();
    let document = file(r#"{"type":"integer"}"#);
    let lines = format!("arguments = \"enforce\"\n{}", supplied(&[("https://s.test/n.json", &document)]));
    for pair in PAIRS {
        let stage = Stage::set(Cell::http(pair), &with("https://s.test/n.json"), &lines).await;
        stage.listed().await;
        stage.passes("t", r#"{"a":1}"#).await;
        let said = stage.call("t", r#"{"a":"x"}"#).await;
        assert_eq!(said.message["result"]["isError"], true, "{pair:?}: {}", said.raw);
        assert_eq!(stage.calls(), 1, "{pair:?}");
        canary.is_untouched(&stage.net);
    }
}
