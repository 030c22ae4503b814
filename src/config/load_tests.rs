//! Wrong values, table-driven: every refusal names the path, the value (or that it is a secret) and what is accepted.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::time::Duration;

use super::load::load_text;
use super::{Affinity, Authorization, ConfigError, Loaded, Target};
use crate::wire::log_level::LogLevel;
use crate::wire::version::LegacyRevision;

fn load(text: &str) -> Result<Loaded, ConfigError> {
    load_text(text, Path::new("/nowhere"), &|name| (name == "SET").then(|| "from-env".to_owned()))
}

/// A file with one upstream, and `lines` in the upstream's table.
fn with(lines: &str) -> String {
    format!("[upstream.api]\nurl = \"http://127.0.0.1:1/mcp\"\n{lines}\n")
}

/// A file with one upstream after `lines` for the top.
fn top(lines: &str) -> String {
    format!("{lines}\n{}", with(""))
}

fn refusal(text: &str) -> String {
    match load(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

/// (table, setting and value, value as shown, a part of what is accepted); the table `up` is the upstream's own, `cmd` that of
/// one that is a program.
#[rustfmt::skip]
const WRONG: &[(&str, &str, &str, &str, &str)] = &[
    ("", "shutdown_grace", "10", "10", "0s to 1h"),
    ("", "shutdown_grace", "'2h'", "\"2h\"", "0s to 1h"),
    ("", "era_cache_file", "1", "1", "name of a file"),
    ("", "era_cache_file", "''", "\"\"", "name of a file"),
    ("listen", "address", "':8808'", "\":8808\"", "127.0.0.1:8808"),
    ("listen", "address", "'localhost:8808'", "\"localhost:8808\"", "IP address and a port"),
    ("listen", "address", "8808", "8808", "IP address and a port"),
    ("listen", "allowed_hosts", "'a'", "\"a\"", "array"),
    ("listen", "allowed_hosts[0]", "['http://a']", "\"http://a\"", "host name"),
    ("listen", "allowed_hosts[1]", "['a', 'a:0']", "\"a:0\"", "host name"),
    ("listen", "allowed_hosts[0]", "['[::1']", "\"[::1\"", "host name"),
    ("listen", "allowed_origins[0]", "['null']", "\"null\"", "scheme://host"),
    ("listen", "allowed_origins[0]", "['https://a/b']", "\"https://a/b\"", "scheme://host"),
    ("listen", "allowed_origins[0]", "['https://*.a']", "\"https://*.a\"", "scheme://host"),
    ("listen", "tls", "true", "boolean", "a table"),
    ("admin", "address", "'9464'", "\"9464\"", "127.0.0.1:9464"),
    ("admin", "address", "'localhost:9464'", "\"localhost:9464\"", "IP address and a port"),
    ("admin", "address", "'127.0.0.1:8808'", "\"127.0.0.1:8808\"", "other than the one where clients come in"),
    ("limits", "body_bytes", "0", "0", "1KiB to 1GiB"),
    ("limits", "body_bytes", "'4MB'", "\"4MB\"", "4MiB"),
    ("limits", "body_bytes", "-1", "-1", "a size from"),
    ("limits", "header_bytes", "100", "100", "8KiB to 1MiB"),
    ("limits", "connections", "0", "0", "1 to 1000000"),
    ("limits", "connections", "1.5", "1.5", "whole number"),
    ("limits", "requests", "'many'", "\"many\"", "whole number"),
    ("limits", "nesting", "1", "1", "8 to 10000"),
    ("limits", "members", "0", "0", "8 to 1000000"),
    ("limits", "events", "0", "0", "1 to 65536"),
    ("limits", "event_bytes", "1", "1", "1KiB to 1GiB"),
    ("limits", "parked", "0", "0", "1 to 1000000"),
    ("limits", "parked_per_principal", "1000001", "1000001", "1 to 1000000"),
    ("limits", "replay_bytes", "'2GiB'", "\"2GiB\"", "0B to 1GiB"),
    ("timeouts", "header", "'0s'", "\"0s\"", "1ms to 1h"),
    ("timeouts", "body", "30", "30", "\"30s\""),
    ("timeouts", "idle", "'forever'", "\"forever\"", "1ms to 1d"),
    ("timeouts", "handshake", "'0ms'", "\"0ms\"", "1ms to 1h"),
    ("timeouts", "hold", "'1001ms'", "\"1001ms\"", "0s to 1s"),
    ("timeouts", "keep_alive", "'61s'", "\"61s\"", "10ms to 1m"),
    ("timeouts", "keep_alive", "'0s'", "\"0s\"", "10ms to 1m"),
    ("log", "format", "'xml'", "\"xml\"", "\"human\" or \"json\""),
    ("log", "level", "'inof'", "\"inof\"", "\"info\""),
    ("log", "level", "''", "\"\"", "\"info\""),
    ("log", "level", "'mcp_janus=loud'", "\"mcp_janus=loud\"", "\"info\""),
    ("log", "level", "'3'", "\"3\"", "\"info\""),
    ("up", "path", "'mcp'", "\"mcp\"", "begins with `/`"),
    ("up", "path", "''", "\"\"", "begins with `/`"),
    ("up", "path", "'/healthz'", "\"/healthz\"", "not \\\"/healthz\\\""),
    ("up", "path", "'/readyz/'", "\"/readyz/\"", "not \\\"/healthz\\\""),
    ("up", "path", "'/a//b'", "\"/a//b\"", "begins with `/`"),
    ("up", "path", "'/a/../b'", "\"/a/../b\"", "begins with `/`"),
    ("up", "path", "'/a?b'", "\"/a?b\"", "begins with `/`"),
    ("up", "era", "'2025-11-25'", "\"2025-11-25\"", "\"auto\" or \"modern\" or \"legacy\""),
    ("up", "era_ttl", "'0h'", "\"0h\"", "1ms to 365d"),
    ("up", "authorization", "'Bearer abcdef'", "[redacted]", "\"forward\", \"strip\""),
    ("up", "authorization", "{ token = 'abcdef' }", "[redacted]", "\"forward\", \"strip\""),
    ("up", "authorization.value", "{ value = 1 }", "[redacted]", "a header value"),
    ("up", "authorization.value", "{ value = \"abcdef\\n\" }", "[redacted]", "a header value"),
    ("up", "headers", "'abcdef'", "[redacted]", "a table"),
    ("up", "headers.Host", "{ Host = 'abcdef' }", "[redacted]", "other than `host`"),
    ("up", "headers.Mcp-Session-Id", "{ Mcp-Session-Id = 'abcdef' }", "[redacted]", "other than `host`"),
    ("up", "headers.authorization", "{ authorization = 'abcdef' }", "[redacted]", "the setting `authorization`"),
    ("up", "headers.Transfer-Encoding", "{ Transfer-Encoding = 'abcdef' }", "[redacted]", "hop-by-hop"),
    ("up", "headers.\"a b\"", "{ \"a b\" = 'abcdef' }", "[redacted]", "a header name"),
    ("up", "headers.x", "{ x = '' }", "[redacted]", "not empty"),
    ("up", "headers.x", "{ x = 'abcdefü' }", "[redacted]", "visible ASCII"),
    ("up", "headers.x", "{ X = 'a', x = 'abcdef' }", "[redacted]", "each header once"),
    ("up", "forward_headers[0]", "['content-length']", "\"content-length\"", "other than"),
    ("up", "forward_headers[0]", "['Authorization']", "\"Authorization\"", "the setting `authorization`"),
    ("up", "forward_headers[0]", "['Cookie']", "\"Cookie\"", "`cookie`"),
    ("up", "forward_headers", "1", "1", "array"),
    ("up", "ca_files", "'ca.pem'", "\"ca.pem\"", "array"),
    ("up", "ca_files[0]", "[1]", "1", "name of a file"),
    ("up", "ca_files[0]", "['ca.pem']", "ca.pem", "one certificate"),
    ("up", "interactive", "'yes'", "\"yes\"", "true or false"),
    ("up", "legacy_clients", "'no'", "\"no\"", "true or false"),
    ("up", "convert_content", "'2025-03-26'", "\"2025-03-26\"", "array"),
    ("up", "convert_content[1]", "['2025-03-26', '2026-07-28']", "\"2026-07-28\"", "\"2025-11-25\""),
    ("up", "legacy_not_found", "-32002", "-32002", "true or false"),
    ("up", "cache_lists", "'1m'", "\"1m\"", "true or false"),
    ("up", "transport", "'http'", "\"http\"", "\"auto\" or \"streamable-http\" or \"sse\""),
    ("up", "sse_endpoint", "'http://127.0.0.1:2/m'", "\"http://127.0.0.1:2/m\"", "same origin"),
    ("up", "sse_endpoint", "'//other/m'", "\"//other/m\"", "same origin"),
    ("up", "sse_endpoint", "'a b'", "\"a b\"", "same origin"),
    ("up", "sse_endpoint", "''", "\"\"", "same origin"),
    ("up", "sse_path", "'sse'", "\"sse\"", "begins with `/`"),
    ("up", "sse_path", "'/mcp'", "\"/mcp\"", "/mcp is upstream.api.path already"),
    ("up", "sse_path", "'/messages'", "\"/messages\"", "/messages is upstream.api.sse_path already"),
    ("up", "command", "'cat'", "\"cat\"", "either `url` or `command`"),
    ("up", "args", "['abcdef']", "[redacted]", "only where the server has a `command`"),
    ("up", "env", "{ A = 'abcdef' }", "[redacted]", "only where the server has a `command`"),
    ("up", "inherit_env", "['A']", "an array of 1", "only where the server has a `command`"),
    ("up", "cwd", "'.'", "\".\"", "only where the server has a `command`"),
    ("cmd", "transport", "'auto'", "\"auto\"", "only where the server has a `url`"),
    ("cmd", "sse_endpoint", "'/m'", "\"/m\"", "only where the server has a `url`"),
    ("cmd", "authorization", "'strip'", "[redacted]", "only where the server has a `url`"),
    ("cmd", "headers", "{ a = 'abcdef' }", "[redacted]", "only where the server has a `url`"),
    ("cmd", "forward_headers", "['a']", "an array of 1", "only where the server has a `url`"),
    ("cmd", "ca_files", "['a.pem']", "an array of 1", "only where the server has a `url`"),
    ("cmd", "args", "'abcdef'", "[redacted]", "array"),
    ("cmd", "args[1]", "['a', 1]", "[redacted]", "a text without NUL"),
    ("cmd", "args[0]", "[\"abcdef\\u0000\"]", "[redacted]", "a text without NUL"),
    ("cmd", "args[0]", "[{ file = 'none' }]", "none", "a readable file"),
    ("cmd", "args[0]", "[{ path = 'abcdef' }]", "[redacted]", "{ file = \"PATH\" }"),
    ("cmd", "env", "['A=abcdef']", "[redacted]", "a table of names"),
    ("cmd", "env.A", "{ A = 1 }", "[redacted]", "a text without NUL"),
    ("cmd", "env.\"A=B\"", "{ \"A=B\" = 'abcdef' }", "[redacted]", "without `=`"),
    ("cmd", "env.\"\"", "{ \"\" = 'abcdef' }", "[redacted]", "not empty"),
    ("cmd", "inherit_env", "'A'", "\"A\"", "array"),
    ("cmd", "inherit_env[0]", "['A=1']", "\"A=1\"", "without `=`"),
    ("cmd", "cwd", "''", "\"\"", "a directory that exists"),
    ("cmd", "cwd", "'none'", "/nowhere/none", "a directory that exists"),
    ("timeouts@", "start", "'0s'", "\"0s\"", "1ms to 1h"),
    ("timeouts@", "stop", "'2h'", "\"2h\"", "0s to 1h"),
    ("limits@", "max_processes", "0", "0", "1 to 65536"),
    ("timeouts@", "pace", "'11s'", "\"11s\"", "1ms to 10s"),
    ("timeouts@", "connect", "'0s'", "\"0s\"", "1ms to 1h"),
    ("timeouts@", "probe", "'0s'", "\"0s\"", "1ms to 1h"),
    ("timeouts@", "initialize", "'0s'", "\"0s\"", "1ms to 1h"),
    ("timeouts@", "request", "'0s'", "\"0s\"", "1ms to 1d"),
    ("timeouts@", "request", "'30'", "\"30\"", "\"30s\""),
    ("timeouts@", "pool_idle", "'-1s'", "\"-1s\"", "0s to 1d"),
    ("timeouts@", "gather", "'0ms'", "\"0ms\"", "1ms to 1s"),
    ("timeouts@", "gather", "'1001ms'", "\"1001ms\"", "1ms to 1s"),
    ("timeouts@", "answer", "'999ms'", "\"999ms\"", "1s to 1d"),
    ("timeouts@", "answer", "'25h'", "\"25h\"", "1s to 1d"),
    ("timeouts@", "attribute", "'0s'", "\"0s\"", "1ms to 1h"),
    ("timeouts@", "url", "'2h'", "\"2h\"", "0s to 1h"),
    ("timeouts@", "replay", "30", "30", "0s to 1h"),
    ("limits@", "message_bytes", "0", "0", "1KiB to 2GiB"),
    ("limits@", "flow_bytes", "'3GiB'", "\"3GiB\"", "1KiB to 2GiB"),
    ("limits@", "pool_connections", "-1", "-1", "0 to 65536"),
    ("limits@", "redirects", "11", "11", "0 to 10"),
    ("limits@", "resumptions", "'x'", "\"x\"", "0 to 100"),
    ("limits@", "rounds", "0", "0", "1 to 1000"),
    ("limits@", "questions", "0", "0", "1 to 65536"),
    ("limits@", "question_bytes", "0", "0", "1KiB to 2GiB"),
    ("limits@", "waiting_calls", "65537", "65537", "1 to 65536"),
    ("limits@", "polls", "10001", "10001", "0 to 10000"),
    ("limits@", "cache_bytes", "0", "0", "1KiB to 1GiB"),
    ("limits@", "catalog_tools", "0", "0", "1 to 1000000"),
    ("limits@", "catalogs", "0", "0", "1 to 1000000"),
    ("limits@", "resources", "0", "0", "1 to 65536"),
    ("session@", "key", "'abcdef'", "[redacted]", "32 random bytes"),
    ("session@", "key", "7", "[redacted]", "32 random bytes"),
    ("session@", "max_age", "'366d'", "\"366d\"", "1ms to 365d"),
    ("session@", "replay_events", "0", "0", "1 to 65536"),
    ("session@", "replay_bytes", "0", "0", "1KiB to 1GiB"),
    ("session@", "replay", "'2d'", "\"2d\"", "0s to 1d"),
    ("session@", "poll", "'2h'", "\"2h\"", "0s to 1h"),
    ("session@", "log_level", "'trace'", "\"trace\"", "\"off\" or \"debug\""),
    ("session@", "scope", "'user'", "\"user\"", "\"principal\" or \"request\""),
    ("session@", "affinity", "'x-id'", "\"x-id\"", "\"header:NAME\""),
    ("session@", "affinity", "'header:a b'", "\"header:a b\"", "\"header:NAME\""),
    ("session@", "affinity", "'meta:'", "\"meta:\"", "\"meta:KEY\""),
    ("session@", "max", "0", "0", "1 to 1000000"),
    ("session@", "max_per_key", "0", "0", "1 to 1000"),
    ("session@", "shield", "'on'", "\"on\"", "true or false"),
    ("session@", "idle", "'0s'", "\"0s\"", "1ms to 1d"),
];

#[test]
fn every_refusal_names_path_value_and_what_is_accepted() {
    for (table, path, value, shown, accepted) in WRONG {
        let key = path.split(['[', '.']).next().unwrap();
        let line = format!("{key} = {value}");
        let (text, path) = match *table {
            "" => (top(&line), (*path).to_owned()),
            "up" => (with(&line), format!("upstream.api.{path}")),
            "cmd" => (format!("[upstream.api]\ncommand = 'cat'\n{line}\n"), format!("upstream.api.{path}")),
            inner => match inner.strip_suffix('@') {
                Some(inner) => {
                    (with(&format!("[upstream.api.{inner}]\n{line}")), format!("upstream.api.{inner}.{path}"))
                }
                None => (top(&format!("[{inner}]\n{line}")), format!("{inner}.{path}")),
            },
        };
        let error = refusal(&text);
        let accepted = accepted.replace("\\\"", "\"");
        assert!(error.starts_with(&format!("{path}: ")), "{path}: {error}");
        assert!(error.contains(shown), "{shown}: {error}");
        let told = error.split_once("accepted: ").expect(&error).1;
        assert!(told.contains(&accepted), "{accepted}: {error}");
        assert!(!error.contains("abcdef"), "shows a secret: {error}");
    }
}

#[test]
fn urls_are_refused_without_showing_credentials() {
    for (url, shown) in [
        ("ftp://a/mcp", "ftp://a/mcp"),
        ("127.0.0.1:3000", "127.0.0.1:3000"),
        ("https:a", "https:a"),
        ("http://", "http://"),
        ("http://a:0/", "http://a:0/"),
        ("http://a b/", "http://a b/"),
        ("https://user:abcdef@a/mcp", "https://[redacted]@a/mcp"),
        ("https://a/mcp#abcdef", "https://a/mcp#[redacted]"),
        ("ftp://a/mcp?key=abcdef", "ftp://a/mcp?[redacted]"),
        ("builtin:other", "builtin:other"),
    ] {
        let error = refusal(&format!("[upstream.api]\nurl = \"{url}\""));
        assert!(error.starts_with(&format!("upstream.api.url: \"{shown}\"")), "{error}");
        assert!(error.contains("builtin:demo") && !error.contains("abcdef"), "{error}");
    }
}

#[test]
fn unknown_settings_name_their_path_and_what_there_is() {
    for (text, path, expected) in [
        (top("colour = 'abcdef'"), "colour", "`listen`"),
        (top("[listen]\nport = 'abcdef'"), "listen.port", "`address`"),
        (with("header = { a = 'abcdef' }"), "upstream.api.header", "`headers`"),
        (with("[upstream.api.timeouts]\ntotal = 'abcdef'"), "upstream.api.timeouts.total", "`request`"),
    ] {
        let error = refusal(&text);
        assert!(error.starts_with(&format!("{path}: unknown field")), "{path}: {error}");
        assert!(error.contains(expected) && !error.contains("abcdef"), "{error}");
    }
}

#[test]
fn a_value_in_place_of_a_table_is_not_shown() {
    for (text, path) in [
        (top("limits = 'abcdef'"), "limits"),
        ("upstream = 'abcdef'".to_owned(), "upstream"),
        ("[upstream]\napi = 'abcdef'".to_owned(), "upstream.api"),
        (with("session = ['abcdef']"), "upstream.api.session"),
        ("[[upstream]]\nurl = 'abcdef'".to_owned(), "upstream"),
    ] {
        let error = refusal(&text);
        assert!(error.starts_with(&format!("{path}: a value of type")), "{path}: {error}");
        assert!(error.contains(&format!("[{path}]")) && !error.contains("abcdef"), "{error}");
    }
}

#[test]
fn syntax_errors_name_line_and_column_and_quote_nothing() {
    let error = refusal("[upstream.api]\nheaders = { a = \"abcdef }\n");
    assert!(error.starts_with("line 2, column "), "{error}");
    assert!(!error.contains("abcdef"), "{error}");
    let error = refusal("[log]\nlevel = 'info'\nlevel = 'abcdef'\n");
    assert!(error.starts_with("line 3, column 1: ") && !error.contains("abcdef"), "{error}");
}

#[test]
fn no_syntax_error_quotes_the_file() {
    for line in [
        "x = abcdef",
        "x = \"\\qabcdef\"",
        "x = \"abcdef",
        "x = 'abcdef' abcdef",
        "x = 1abcdef",
        "x = { y = 'abcdef', y = 'abcdef' }",
        "x = \"\"\"abcdef",
        "x 'abcdef'",
        "x = [ 'abcdef'",
        "x = 'abcdef\u{1}'",
        "x.y = 'abcdef'\nx = 'abcdef'",
    ] {
        let error = refusal(line);
        assert!(error.starts_with("line ") && error.contains("not TOML"), "{error}");
        assert!(!error.contains("abcdef"), "{error}");
    }
}

#[test]
fn the_admin_table_needs_an_address_and_is_off_without() {
    assert!(refusal(&top("[admin]")).starts_with("admin.address: missing; accepted: an IP address"));
    assert!(load(&with("")).unwrap().config.admin.is_none());
    assert!(refusal(&top("[admin]\nport = 1")).starts_with("admin.port: unknown field"));
}

#[test]
fn upstreams_are_needed_named_and_apart() {
    assert!(refusal("").starts_with("upstream: missing; accepted: one table [upstream.NAME]"));
    let error = refusal("[upstream.api]\n");
    assert!(error.starts_with("upstream.api.url: missing") && error.contains("`command`"), "{error}");
    let error = refusal("[upstream.'a b']\nurl = 'builtin:demo'");
    assert!(error.starts_with("upstream.\"a b\": \"a b\" is not accepted; accepted: a name of"), "{error}");
    let twice =
        "[upstream.a]\nurl = 'builtin:demo'\npath = '/x/'\n[upstream.b]\nurl = 'builtin:demo'\npath = '/x'\n";
    let error = refusal(twice);
    assert!(error.starts_with("upstream.b.path: \"/x\"") && error.contains("upstream.a"), "{error}");
}

#[test]
fn paths_follow_the_number_of_upstreams() {
    let paths = |text: &str| -> Vec<String> {
        load(text).unwrap().config.upstreams.into_iter().map(|upstream| upstream.path).collect()
    };
    assert_eq!(paths(&with("")), ["/mcp"]);
    assert_eq!(paths(&with("path = '/mcp/'")), ["/mcp"]);
    assert_eq!(paths(&with("path = '/'")), ["/"]);
    assert_eq!(paths(&format!("{}[upstream.b]\nurl = 'builtin:demo'", with(""))), ["/api/mcp", "/b/mcp"]);
}

#[test]
fn numbers_and_words_may_come_from_the_environment() {
    let text =
        "[limits]\nconnections = '${N}'\nbody_bytes = '${N}'\n[upstream.a]\nurl = '${U}'\nera = '${E}'\n";
    let env = |name: &str| {
        let value = match name {
            "N" => "2048",
            "U" => "https://example.com/mcp",
            "E" => "modern",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let config = load_text(text, Path::new(""), &env).unwrap().config;
    assert_eq!((config.limits.connections, config.limits.body_bytes), (2048, 2048));
    assert!(
        matches!(&config.upstreams[0].target, Target::Http(url) if url.as_str() == "https://example.com/mcp")
    );
}

#[test]
fn a_variable_that_is_not_set_is_named_with_its_path() {
    for (text, path) in [
        (with("headers = { x = 'a${UNSET}' }"), "upstream.api.headers.x"),
        (with("ca_files = ['a', '${UNSET}']"), "upstream.api.ca_files[1]"),
        (top("[log]\nlevel = '${UNSET}'"), "log.level"),
    ] {
        let error = refusal(&text);
        assert!(error.starts_with(&format!("{path}: the environment variable UNSET is not set")), "{error}");
        assert!(error.contains("accepted: "), "{error}");
    }
    let error = refusal(&with("headers = { x = 'abcdef${' }"));
    assert!(error.starts_with("upstream.api.headers.x: [redacted] is not accepted"), "{error}");
}

#[test]
fn settings_arrive_in_the_form_they_are_compared_in() {
    let text = top("[listen]\nallowed_hosts = ['MCP.Example.com:443', '[::1]', 'a']\n\
                    allowed_origins = ['HTTPS://App.example.com:443/', 'vscode-webview://Abc', '*']")
        + "headers = { X-Key = '${SET}' }\nforward_headers = ['X-B', 'x-a', 'x-b']\n\
           authorization = { value = 'Bearer ${SET}' }\n\
           [upstream.api.session]\naffinity = 'header:X-Id'\nidle = '90s'\n";
    let loaded = load(&text).unwrap();
    let (listen, upstream) = (&loaded.config.listen, &loaded.config.upstreams[0]);
    assert_eq!(listen.allowed_hosts, ["mcp.example.com:443", "[::1]", "a"]);
    assert_eq!(listen.allowed_origins, ["https://app.example.com", "vscode-webview://abc", "*"]);
    assert_eq!(upstream.headers[0].0, "x-key");
    assert_eq!(upstream.headers[0].1.expose(), "from-env");
    assert_eq!(upstream.forward_headers, ["x-a", "x-b"]);
    assert!(matches!(&upstream.authorization, Authorization::Fixed(s) if s.expose() == "Bearer from-env"));
    assert_eq!(upstream.session.affinity, Some(Affinity::Header("x-id".to_owned())));
    assert_eq!(upstream.session.idle, Duration::from_secs(90));
}

/// B1, B5: the ends of the ranges, which are all accepted, and what they are as values.
#[test]
fn settings_about_questions_arrive() {
    let text = top("[limits]\nparked = 1\nparked_per_principal = 1\nreplay_bytes = 0")
        + "interactive = 'false'\n\
           [upstream.api.timeouts]\ngather = '1s'\nanswer = '1d'\nattribute = '1ms'\nurl = '0s'\nreplay = '0s'\n\
           [upstream.api.limits]\nrounds = 1\nquestions = 1\nquestion_bytes = 1024\nwaiting_calls = 1\n\
           [upstream.api.session]\nmax_per_key = 1000\n";
    let loaded = load(&text).unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let (front, upstream) = (&loaded.config.limits, &loaded.config.upstreams[0]);
    assert_eq!((front.parked, front.parked_per_principal, front.replay_bytes), (1, 1, 0));
    assert!(!upstream.interactive);
    let times = &upstream.timeouts;
    assert_eq!((times.gather, times.answer), (Duration::from_secs(1), Duration::from_secs(86_400)));
    assert_eq!((times.attribute, times.url), (Duration::from_millis(1), Duration::ZERO));
    assert_eq!(times.replay, Duration::ZERO);
    let limits = &upstream.limits;
    assert_eq!((limits.rounds, limits.questions, limits.waiting_calls), (1, 1, 1));
    assert_eq!(limits.question_bytes, 1024);
    assert_eq!(upstream.session.max_per_key, 1000);
}

/// The ends of the ranges, and what they are as values.
#[test]
fn settings_about_legacy_clients_arrive() {
    let text = with(
        "legacy_clients = 'false'\nlegacy_not_found = false\ncache_lists = true\n\
         convert_content = ['2025-11-25', '2024-11-05', '2025-11-25']\n\
         [upstream.api.timeouts]\npace = '1ms'\n\
         [upstream.api.limits]\npolls = 0\ncache_bytes = 1024\ncatalog_tools = 1\ncatalogs = 1\nresources = 1\n\
         [upstream.api.session]\nmax_age = '365d'\nreplay_events = 1\nreplay_bytes = 1024\nreplay = '0s'\n\
         poll = '1h'\nlog_level = 'warning'\n",
    );
    let loaded = load(&text).unwrap();
    let told: Vec<_> = loaded.warnings.iter().map(|warning| warning.split(": ").next().unwrap()).collect();
    assert_eq!(told, ["upstream.api.session.max_age", "upstream.api.convert_content"]);
    let upstream = &loaded.config.upstreams[0];
    assert!(!upstream.legacy_clients && !upstream.legacy_not_found && upstream.cache_lists);
    assert_eq!(upstream.convert_content, [LegacyRevision::V2024_11_05, LegacyRevision::V2025_11_25]);
    assert_eq!(upstream.timeouts.pace, Duration::from_millis(1));
    let limits = &upstream.limits;
    assert_eq!((limits.polls, limits.cache_bytes, limits.catalog_tools, limits.catalogs), (0, 1024, 1, 1));
    assert_eq!(limits.resources, 1);
    let session = &upstream.session;
    assert_eq!(session.max_age, Duration::from_secs(365 * 86_400));
    assert_eq!((session.replay_events, session.replay_bytes), (1, 1024));
    assert_eq!((session.replay, session.poll), (Duration::ZERO, Duration::from_secs(3_600)));
    assert_eq!(session.log_level, Some(LogLevel::Warning));
    assert_eq!(load(&with("convert_content = []")).unwrap().config.upstreams[0].convert_content, []);
}

#[test]
fn a_session_key_is_32_bytes_in_any_of_the_usual_spellings() {
    let with_key = |key: &str| with(&format!("[upstream.api.session]\nkey = \"{key}\""));
    let bytes: [u8; 32] = std::array::from_fn(|at| [0xfb, 0xff, 0x3e][at % 3]);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let base64 = "+/8++/8++/8++/8++/8++/8++/8++/8++/8++/8++/8";
    for key in [
        base64.to_owned(),
        format!("{base64}="),
        base64.replace('+', "-").replace('/', "_"),
        base64.replace('+', "-").replace('/', "_") + "=",
        hex.to_ascii_uppercase(),
        hex.clone(),
    ] {
        let loaded = load(&with_key(&key)).unwrap();
        let session = &loaded.config.upstreams[0].session;
        assert_eq!(session.key.as_ref().unwrap().expose(), &bytes, "{key}");
        let shown = format!("{loaded:?}{}", loaded.config.to_redacted_toml());
        assert!(shown.contains("key = \"[redacted]\"") && !shown.contains(&key), "{shown}");
    }
    for wrong in [
        &hex[1..],
        &format!("{hex}0"),
        &hex.replace('f', "g"),
        &base64[1..],
        &format!("{base64}A"),
        &format!("{base64}=="),
        // Bits beyond the 32 bytes.
        &format!("{}9", &base64[..42]),
        "",
    ] {
        let error = refusal(&with_key(wrong));
        assert!(
            error.starts_with("upstream.api.session.key: [redacted] is not accepted; accepted: 32"),
            "{error}"
        );
    }
}
