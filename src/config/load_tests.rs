//! Files that are wrong as a whole or in a table, and what right ones come to. Single wrong values are in `wrong_tests`.

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
pub(super) fn with(lines: &str) -> String {
    format!("[upstream.api]\nurl = \"http://127.0.0.1:1/mcp\"\n{lines}\n")
}

/// A file with one upstream after `lines` for the top.
pub(super) fn top(lines: &str) -> String {
    format!("{lines}\n{}", with(""))
}

pub(super) fn refusal(text: &str) -> String {
    match load(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
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
