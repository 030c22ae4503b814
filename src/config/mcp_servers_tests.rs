//! Files of hosts, as they are found: what they come to, and what is said of what they cannot be here.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use super::mcp_servers::load_text;
use super::{Authorization, Command, ConfigError, HttpTransport, Loaded, Target, raw};

fn load_in(dir: &Path, text: &str) -> Result<Loaded, ConfigError> {
    let env = |name: &str| match name {
        "HOME" => Some("/home/me".to_owned()),
        "API_KEY" => Some("s3cret".to_owned()),
        _ => None,
    };
    load_text(raw::File::default(), text, dir, None, &env)
}

fn load(text: &str) -> Loaded {
    load_in(Path::new("/nowhere"), text).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    let error = load_in(Path::new("/nowhere"), text).expect_err(text).to_string();
    assert!(error.contains("accepted: ") && !error.contains("s3cret"), "{error}");
    error
}

/// One server of this entry.
fn one(entry: &str) -> String {
    format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#)
}

fn command(loaded: &Loaded, name: &str) -> Command {
    match &loaded.config.upstreams.iter().find(|upstream| upstream.name == name).unwrap().target {
        Target::Command(command) => command.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_desktop_hosts_file() {
    let loaded = load(
        r#"{
          "globalShortcut": "",
          "preferences": {"theme": null},
          "mcpServers": {
            "filesystem": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/Desktop"]
            },
            "weather": {"command": "/opt/weather/run", "args": [], "env": {"API_KEY": "s3cret", "PORT": 8080, "DEBUG": true}}
          }
        }"#,
    );
    assert_eq!(loaded.warnings, ["mcpServers.weather.command: \"/opt/weather/run\" does not exist"]);
    let paths: Vec<_> = loaded.config.upstreams.iter().map(|upstream| upstream.path.as_str()).collect();
    assert_eq!(paths, ["/filesystem/mcp", "/weather/mcp"]);
    let files = command(&loaded, "filesystem");
    assert_eq!(files.program, "npx");
    assert_eq!(files.args, ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/Desktop"]);
    let env = command(&loaded, "weather").env;
    let env: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("API_KEY", "s3cret"), ("DEBUG", "true"), ("PORT", "8080")]);
    let shown = format!("{loaded:?}{}", loaded.config.to_redacted_toml());
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn an_editors_file() {
    let loaded = load(
        r#"{
          "mcpServers": {
            "remote": {
              "url": "https://mcp.example.com/mcp",
              "headers": {"Authorization": "Bearer ${env:API_KEY}", "X-Team": "${TEAM:-none}"},
              "env": {}, "args": []
            },
            "local server": {
              "type": "stdio", "command": "${HOME}/bin/server", "args": ["--key", "${API_KEY}"],
              "autoApprove": ["read"], "alwaysAllow": [], "timeout": 60
            },
            "off": {"command": "none", "args": ["${NOT_SET}"], "disabled": true},
            "on": {"command": "cat", "disabled": false, "cwd": null}
          }
        }"#,
    );
    assert_eq!(
        loaded.warnings,
        [
            "mcpServers.\"local server\": has the name local-server here",
            "mcpServers.off: disabled, so left out",
            "mcpServers.\"local server\": of no effect here: \"alwaysAllow\", \"autoApprove\", \"timeout\"",
            "mcpServers.\"local server\".command: \"/home/me/bin/server\" does not exist",
        ]
    );
    let names: Vec<_> = loaded.config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    assert_eq!(names, ["local-server", "on", "remote"]);
    let local = command(&loaded, "local-server");
    assert_eq!(local.program, "/home/me/bin/server");
    assert_eq!(local.args, ["--key", "s3cret"]);
    let remote = &loaded.config.upstreams[2];
    assert_eq!(remote.target.to_string(), "https://mcp.example.com/mcp");
    assert_eq!((remote.headers[0].0.as_str(), remote.headers[0].1.expose()), ("x-team", "none"));
    assert!(
        matches!(&remote.authorization, Authorization::Fixed(value) if value.expose() == "Bearer s3cret")
    );
}

/// With comments, and under another name.
#[test]
fn a_workspaces_file() {
    let loaded = load(
        r#"// mine
        {
          "inputs": [{"type": "promptString", "id": "key", "password": true}],
          "servers": {
            /* over HTTP */
            "http": {"type": "http", "url": "http://127.0.0.1:3000/mcp"},
            "old": {"type": "sse", "url": "http://127.0.0.1:3001/sse",},
            "new": {"transport": "streamableHttp", "url": "http://127.0.0.1:3002/mcp", "gallery": true},
          },
        }"#,
    );
    let transports: Vec<_> =
        loaded.config.upstreams.iter().map(|upstream| (upstream.name.as_str(), upstream.transport)).collect();
    assert_eq!(
        transports,
        [("http", HttpTransport::Auto), ("new", HttpTransport::StreamableHttp), ("old", HttpTransport::Sse)]
    );
    assert_eq!(loaded.warnings, ["servers.new: of no effect here: \"gallery\""]);
}

#[test]
fn a_directory_and_a_program_are_relative_to_the_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("work")).unwrap();
    let loaded = load_in(dir.path(), &one(r#"{"command": "./run", "cwd": "work"}"#)).unwrap();
    let command = command(&loaded, "a");
    assert_eq!(Path::new(&command.program), dir.path().join("./run"));
    assert_eq!(command.cwd, Some(dir.path().join("work")));
}

#[test]
fn what_is_wrong_is_named_by_its_place_in_the_file() {
    for (entry, start, part) in [
        (r#""s3cret""#, "mcpServers.a: a value of type string", "an object with a `command` or a `url`"),
        ("{}", "mcpServers.a.url: missing", "`command`"),
        (r#"{"command": 1}"#, "mcpServers.a.command: 1 is", "the name of a program"),
        (r#"{"command": ""}"#, "mcpServers.a.command: \"\" is", "the name of a program"),
        (r#"{"command": "cat", "url": "http://a/"}"#, "mcpServers.a.command: \"cat\" is", "not both"),
        (r#"{"command": "cat", "args": "s3cret"}"#, "mcpServers.a.args: [redacted] is", "an array of texts"),
        (r#"{"command": "cat", "args": ["s3cret", null]}"#, "mcpServers.a.args[1]: [redacted] is", "a text"),
        (
            r#"{"command": "cat", "env": {"A=B": "s3cret"}}"#,
            "mcpServers.a.env.\"A=B\": [redacted] is",
            "without `=`",
        ),
        (r#"{"command": "cat", "env": {"A": ["s3cret"]}}"#, "mcpServers.a.env.A: [redacted] is", "a text"),
        (r#"{"command": "cat", "env": "s3cret"}"#, "mcpServers.a.env: [redacted] is", "a table"),
        (r#"{"command": "cat", "cwd": "none"}"#, "mcpServers.a.cwd: cannot use", "a directory that exists"),
        (
            r#"{"command": "cat", "headers": {"x": "s3cret"}}"#,
            "mcpServers.a.headers: [redacted] is",
            "only where",
        ),
        (
            r#"{"command": "cat", "type": "http"}"#,
            "mcpServers.a.type: \"http\" is",
            "\"stdio\" for a server with",
        ),
        (
            r#"{"url": "http://a/", "type": "stdio"}"#,
            "mcpServers.a.type: \"stdio\" is",
            "\"streamable-http\" or \"sse\"",
        ),
        (r#"{"url": "http://a/", "transport": "ws"}"#, "mcpServers.a.transport: \"ws\" is", "\"http\", "),
        (
            r#"{"url": "http://a/", "type": "sse", "transport": "http"}"#,
            "mcpServers.a.transport: \"http\" is",
            "`type`",
        ),
        (r#"{"url": "ftp://me:s3cret@a/"}"#, "mcpServers.a.url: \"ftp://[redacted]@a/\" is", "http://"),
        (r#"{"url": "http://a/", "env": {"A": "s3cret"}}"#, "mcpServers.a.env: [redacted] is", "only where"),
        (
            r#"{"url": "http://a/", "headers": {"Host": "s3cret"}}"#,
            "mcpServers.a.headers.Host: [redacted] is",
            "other than",
        ),
        (
            r#"{"url": "http://a/", "headers": {"authorization": ""}}"#,
            "mcpServers.a.headers.Authorization: [redacted] is",
            "a header value",
        ),
        (
            r#"{"url": "http://a/", "headers": {"Authorization": "Bearer ${NO}"}}"#,
            "mcpServers.a.headers.Authorization: the environment variable NO is not set",
            "accepted",
        ),
        (
            r#"{"command": "cat", "args": ["s3cret ${input:key}"]}"#,
            "mcpServers.a.args[0]: [redacted] is",
            "`${env:NAME}`",
        ),
        (
            r#"{"command": "${workspaceFolder}/x"}"#,
            "mcpServers.a.command: the environment variable workspaceFolder is not set",
            "accepted",
        ),
    ] {
        let error = refusal(&one(entry));
        assert!(error.starts_with(start) && error.contains(part), "{start}, {part}: {error}");
    }
}

#[test]
fn what_is_wrong_with_the_file_as_a_whole() {
    for (text, start) in [
        ("{}", "mcpServers: missing; accepted: an object of servers"),
        ("[]", "mcpServers: missing; accepted: an object of servers"),
        (r#"{"mcpServers": ["s3cret"]}"#, "mcpServers: a value of type array is not accepted"),
        (r#"{"servers": {}}"#, "servers: missing; accepted: one server at least"),
        (
            r#"{"mcpServers": {"a": {"disabled": true}}}"#,
            "mcpServers: missing; accepted: one server at least",
        ),
        (r#"{"mcpServers": {}, "servers": {}}"#, "servers: an object is not accepted; accepted: either"),
        (r#"{"mcpServers": {"": {"command": "cat"}}}"#, "mcpServers.\"\": \"\" is not accepted"),
    ] {
        let error = refusal(text);
        assert!(error.starts_with(start), "{start}: {error}");
    }
    let error = load_in(Path::new(""), "{\n  \"mcpServers\": s3cret}").unwrap_err().to_string();
    assert!(error.starts_with("line 2, column ") && error.contains("not JSON"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}

#[test]
fn names_are_made_to_fit_and_stay_apart() {
    let named = |names: &[&str]| {
        let entries: Vec<_> = names.iter().map(|name| format!(r#""{name}": {{"command": "cat"}}"#)).collect();
        load_in(Path::new(""), &format!(r#"{{"mcpServers": {{{}}}}}"#, entries.join(",")))
    };
    let loaded = named(&["GitHub MCP", "io.github.me/server", "größe", &"x".repeat(80)]).unwrap();
    let names: Vec<_> = loaded.config.upstreams.iter().map(|upstream| upstream.name.clone()).collect();
    assert_eq!(names, ["GitHub-MCP", "gr--e", "io-github-me-server", &"x".repeat(64)]);
    assert_eq!(loaded.config.upstreams[0].path, "/GitHub-MCP/mcp");
    assert_eq!(loaded.warnings.len(), 4, "{:?}", loaded.warnings);
    let error = named(&["a b", "a.b"]).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "mcpServers.\"a.b\": \"a.b\" is not accepted; accepted: a name that does not come to a-b"
        ) && error.contains("mcpServers.\"a b\""),
        "{error}"
    );
    let error = named(&["a", "a"]).unwrap_err().to_string();
    assert!(error.contains("the name \"a\" stands twice"), "{error}");
}
