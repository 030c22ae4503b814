//! `mcp-janus demo` as a newcomer runs it: the built binary, its exit code and the lines that tell what was translated.
//!
//! The demo checks each of its steps itself; here is tried that it says so, in both layouts.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn demo(columns: Option<&str>, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-janus"));
    command.arg("demo").args(args).env_remove("COLUMNS");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns);
    }
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{text}\n{errors}");
    assert_eq!(errors, "");
    text.into_owned()
}

#[test]
fn one_under_the_other_it_shows_what_was_translated() {
    let began = Instant::now();
    let text = text(&demo(None, &[]));
    assert!(began.elapsed() < Duration::from_secs(5));
    for (wanted, times) in [
        (r#""method": "initialize""#, 3),
        (r#""method": "notifications/initialized""#, 3),
        (r#""method": "notifications/cancelled""#, 1),
        ("--> DELETE /mcp HTTP/1.1", 3),
        (r#""progressToken": "mine""#, 4),
        (r#""resultType": "input_required""#, 2),
        (r#""inputResponses": {"#, 2),
        ("mcp-param-place: Luigi's", 2),
        ("NOT AS EXPECTED", 0),
    ] {
        assert_eq!(text.matches(wanted).count(), times, "{wanted}\n{text}");
    }
    for wanted in [
        "MODERN client --> proxy",
        "       LEGACY proxy --> server",
        "LEGACY client --> proxy",
        "       MODERN proxy --> server",
        r#""resultType": "complete""#,
        "<-- HTTP/1.1 404 Not Found",
        "Mcp-Method: tools/call",
        r#""code": -32002"#,
        r#""code": -32602"#,
        "19 of 19 steps went as expected",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains("Accept: application/json"), "not a telling header");
}

#[test]
fn side_by_side_each_line_has_both_wires() {
    let text = text(&demo(Some("160"), &["--verbose"]));
    let both = |line: &str| {
        let mut columns = line.splitn(2, " | ").map(str::trim);
        columns.next() == Some("--> POST /mcp HTTP/1.1") && columns.next() == Some("--> POST /mcp HTTP/1.1")
    };
    assert!(text.lines().any(both), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
    assert!(text.contains("Accept: application/json"), "--verbose shows all headers");
}
