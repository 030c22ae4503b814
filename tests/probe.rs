//! `mcp-janus probe`: what it says of servers at a URL and of servers that are programs, and how it ends.
//!
//! The programs are this one, which is a modern server as `stdio`, and lines of a shell.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::{Command, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-janus");

/// A legacy server: it answers requests by their method, whatever their ids are.
const LEGACY: &str = r#"
    while read -r line; do
        id=$(expr "$line" : '.*"id":\([^,]*\)')
        case $line in
            *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"lines","version":"3"}}}';;
            *'"server/discover"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}';;
        esac
    done"#;

/// The exit, what is printed and what is logged.
fn probe(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(PROGRAM).arg("probe").args(args).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn has_line(text: &str, name: &str, value: &str) -> bool {
    text.lines().any(|line| line.split_once(' ').is_some_and(|(n, v)| n == name && v.trim_start() == value))
}

#[test]
fn a_legacy_program() {
    let (exit, text, log) = probe(&["--", "sh", "-c", LEGACY]);
    assert_eq!(exit, Some(0), "{text}{log}");
    for (name, value) in [
        ("command", "sh"),
        ("probe", "the error -32601"),
        ("transport", "stdio"),
        ("era", "legacy"),
        ("version", "2025-06-18"),
        ("server", "lines 3"),
        ("capabilities", r#"{"tools":{}}"#),
    ] {
        assert!(has_line(&text, name, value), "{name}: {text}");
    }
}

#[test]
fn a_modern_program() {
    let (exit, text, log) = probe(&["--json", "--", PROGRAM, "stdio", "--upstream", "builtin:demo"]);
    assert_eq!(exit, Some(0), "{text}{log}");
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["command"], PROGRAM);
    assert_eq!((&found["transport"], &found["era"]), (&"stdio".into(), &"modern".into()));
    assert_eq!(found["serverInfo"]["name"], "mcp-janus-demo");
}

#[test]
fn a_server_at_a_url() {
    let (exit, text, _) = probe(&["builtin:demo"]);
    assert_eq!(exit, Some(0), "{text}");
    assert!(
        has_line(&text, "url", "builtin:demo") && has_line(&text, "transport", "Streamable HTTP"),
        "{text}"
    );
    let (_, text, _) = probe(&["--json", "builtin:demo"]);
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&found["transport"], &found["era"]), (&"streamable-http".into(), &"legacy".into()));
}

#[test]
fn programs_that_are_none() {
    for (command, told) in [
        // Why is for who looks, not for clients.
        (vec!["/nonexistent/server"], "`/nonexistent/server` does not exist"),
        (vec!["false"], "ended before"),
        (vec!["cat"], "error"),
    ] {
        let args = [vec!["--timeout", "2s", "--"], command.clone()].concat();
        let (exit, text, log) = probe(&args);
        assert_eq!(exit, Some(1), "{command:?}: {text}{log}");
        assert!(text.contains(told) && !text.contains("era  "), "{command:?}: {text}");
        assert!(!text.contains("HTTP status"), "{command:?}: {text}");
        let (_, json, _) = probe(&[vec!["--json"], args].concat());
        assert!(json.contains(told), "{command:?}: {json}");
    }
}
