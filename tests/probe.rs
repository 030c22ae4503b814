//! `mcp-janus probe`: what it says of servers at a URL and of servers that are programs, and how it ends.
//!
//! The programs are this one, which is a modern server as `stdio`, and lines of a shell.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::{Command, Stdio};

use mcp_janus::schema::Kind;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-janus");

/// A legacy server: it answers requests by their method, whatever their ids are.
const LEGACY: &str = r#"
    while read -r line; do
        id=$(expr "$line" : '.*"id":\([^,]*\)')
        case $line in
            *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"lines","version":"3"}}}';;
            *'"server/discover"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}';;
            *'"cursor":"two"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":['"$TOOLS2"']}}';;
            *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":['"$TOOLS"']'"$NEXT"'}}';;
        esac
    done"#;

/// A modern one, which refuses what is not.
const MODERN: &str = r#"
    while read -r line; do
        id=$(expr "$line" : '.*"id":\([^,]*\)')
        case $line in
            *'"server/discover"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}';;
            *'"cursor":"two"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":['"$TOOLS2"']}}';;
            *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":['"$TOOLS"']'"$NEXT"'}}';;
            *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}';;
        esac
    done"#;

/// Arguments for a program that lists these tools, on two pages if there are two.
fn listing(program: &str, pages: &[&str]) -> Vec<String> {
    let mut args = Vec::new();
    let names = ["TOOLS", "TOOLS2"];
    let next = if pages.len() > 1 { r#","nextCursor":"two""# } else { "" };
    for (name, value) in names.iter().zip(pages).chain([(&"NEXT", &next)]) {
        args.extend(["--env".to_owned(), format!("{name}={value}")]);
    }
    args.extend(["--", "sh", "-c", program].map(str::to_owned));
    args
}

fn found(args: &[String]) -> Value {
    let (found, log) = found_and_logged(args);
    assert_eq!(log, "", "{found}");
    found
}

fn found_and_logged(args: &[String]) -> (Value, String) {
    let args: Vec<&str> = ["--json"].into_iter().chain(args.iter().map(String::as_str)).collect();
    let (exit, text, log) = probe(&args);
    assert_eq!(exit, Some(0), "{text}");
    (serde_json::from_str(&text).unwrap(), log)
}

/// Tool, place and kind of each finding.
fn findings(found: &Value) -> Vec<[&str; 3]> {
    let word = |finding: &'_ Value, name: &str| finding[name].as_str().unwrap().to_owned().leak() as &str;
    let all = found["findings"].as_array().unwrap().iter();
    all.map(|finding| ["tool", "at", "kind"].map(|name| word(finding, name))).collect()
}

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

const GOOD: &str = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
const ROOT: &str = r#"{"name":"root","inputSchema":{"type":"array"}}"#;
const NAMELESS: &str = r#"{"inputSchema":{"type":"object"}}"#;
const BARE: &str = r#"{"name":"bare","inputSchema":{}}"#;

/// C65, A5.3: of servers of either era, on all pages, in their order; what is found is no failure.
#[test]
fn c65_bad_tools_are_told_by_name_place_and_kind() {
    for program in [LEGACY, MODERN] {
        let args = listing(program, &[&format!("{GOOD},{ROOT}"), &format!("{NAMELESS},{BARE}")]);
        let found = found(&args);
        assert_eq!(found["tools"], serde_json::json!({"listed": 4, "left_out": 2}), "{found}");
        assert_eq!(
            findings(&found),
            [
                ["root", "/inputSchema/type", "input_root"],
                ["", "", "no_name"],
                ["bare", "/inputSchema", "type_added"],
            ],
            "{found}"
        );
        let weights: Vec<_> =
            found["findings"].as_array().unwrap().iter().map(|one| &one["weight"]).collect();
        assert_eq!(weights, ["bad", "bad", "mended"], "{found}");
        for finding in found["findings"].as_array().unwrap() {
            for name in ["words", "remedy"] {
                assert!(finding[name].as_str().is_some_and(|words| words.len() > 10), "{finding}");
            }
            assert!(finding["detail"].is_string(), "{finding}");
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (exit, text, log) = probe(&args);
        assert_eq!((exit, log.as_str()), (Some(0), ""), "{text}");
        assert!(has_line(&text, "tools", "4, left out 2; 3 findings"), "{text}");
        assert!(text.contains("\nTOOL       KIND        WHERE\n"), "{text}");
        assert!(text.contains("\nroot       input_root  /inputSchema/type\n           left out: "), "{text}");
        assert!(text.contains("\n(no name)  no_name\n"), "{text}");
        assert!(text.contains("\n           mended: ") && text.contains("\n           to do: "), "{text}");
    }
}

#[test]
fn sound_tools_are_counted_and_no_more_is_said() {
    let args = listing(MODERN, &[GOOD]);
    assert_eq!(found(&args)["tools"], serde_json::json!({"listed": 1, "left_out": 0}));
    assert_eq!(found(&args)["findings"], serde_json::json!([]));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (_, text, _) = probe(&args);
    assert!(has_line(&text, "tools", "1") && !text.contains("TOOL"), "{text}");
    // A server that has none is not asked.
    let none = LEGACY.replace(r#""tools":{}"#, r#""prompts":{}"#);
    let found = found(&listing(&none, &[ROOT]));
    assert_eq!(found["tools"], serde_json::json!({"listed": 0, "left_out": 0}), "{found}");
}

/// C62: and a document of the operator stands for what would be fetched.
#[test]
fn c62_a_reference_that_leads_out_is_told_unless_its_document_is_there() {
    let tool = r##"{"name":"out","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://a.example/s#/$defs/x"}}}}"##;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.json");
    std::fs::write(&file, r#"{"$defs":{"x":{"type":"string"}}}"#).unwrap();
    for program in [LEGACY, MODERN] {
        let args = listing(program, &[tool]);
        assert_eq!(findings(&found(&args)), [["out", "/inputSchema/properties/a/$ref", "external_ref"]]);
        let document = format!("--schema-document=https://a.example/s={}", file.display());
        let found = found(&[vec![document], args].concat());
        assert_eq!(findings(&found), Vec::<[&str; 3]>::new(), "{found}");
        assert_eq!(found["tools"], serde_json::json!({"listed": 1, "left_out": 0}), "{found}");
    }
}

/// A list that has no end, or does not come, is said to be one; what came before it is told.
#[test]
fn a_list_that_is_not_whole_is_told() {
    let round = LEGACY.replace(r#"'"$TOOLS2"']"#, r#"'"$TOOLS2"'],"nextCursor":"two""#);
    let found_round = found(&listing(&round, &[GOOD, ROOT]));
    assert_eq!(found_round["tools"]["error"], "tools/list names the same next page again", "{found_round}");
    assert_eq!(findings(&found_round).len(), 1, "{found_round}");
    let mute = LEGACY.replace(r#"*'"cursor":"two"'*) "#, r#"*'"cursor":"two"'*) : "#);
    let args = [vec!["--timeout=1s".to_owned()], listing(&mute, &[ROOT, GOOD])].concat();
    // That the server is silent may be logged, too.
    let (found_mute, _) = found_and_logged(&args);
    assert_eq!(found_mute["tools"]["left_out"], 1, "{found_mute}");
    assert!(
        found_mute["tools"]["error"].as_str().is_some_and(|error| error.contains("time")),
        "{found_mute}"
    );
}

#[test]
fn the_readme_has_every_kind_of_finding_with_its_weight() {
    let readme = include_str!("../README.md");
    let section = readme.split("\n## Tool schemas\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut told = Vec::new();
    for row in section.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (kinds, rest) = row.split_once("` | ").unwrap();
        let weight = rest.split_once(" | ").unwrap().0;
        told.extend(kinds.split("`, `").map(|kind| (kind, weight)));
    }
    let mut all: Vec<_> = Kind::ALL.iter().map(|kind| (kind.label(), kind.weight().label())).collect();
    told.sort_unstable();
    all.sort_unstable();
    assert_eq!(told, all);
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
