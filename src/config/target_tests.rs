//! Upstreams that are programs, and those of the old HTTP+SSE: what the settings come to.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::load::load_text;
use super::{Command, ConfigError, HttpTransport, Loaded, Target, Upstream};

fn load_in(dir: &Path, text: &str) -> Result<Loaded, ConfigError> {
    load_text(text, dir, &|name| (name == "SET").then(|| "from-env".to_owned()))
}

fn upstream(text: &str) -> Upstream {
    load_in(Path::new("/nowhere"), text).unwrap_or_else(|error| panic!("{error}")).config.upstreams.remove(0)
}

fn command(upstream: Upstream) -> Command {
    match upstream.target {
        Target::Command(command) => command,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_with_all_that_goes_with_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("token"), "t0ken\n").unwrap();
    fs::create_dir(dir.path().join("work")).unwrap();
    let text = "[upstream.a]\ncommand = 'npx'\nargs = ['-y', '', '${SET}', 'file:x', { file = 'token' }]\n\
                env = { B = { file = 'token' }, A = 'x=${SET}', C = '' }\ninherit_env = ['Z', 'A', 'Z']\ncwd = 'work'\n\
                [upstream.a.timeouts]\nstart = '1ms'\nstop = '0s'\n[upstream.a.limits]\nmax_processes = 1\n";
    let loaded = load_in(dir.path(), text).unwrap();
    let shown = format!("{loaded:?}{}", loaded.config.to_redacted_toml());
    for secret in ["t0ken", "from-env", "file:x"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    let upstream = loaded.config.upstreams.into_iter().next().unwrap();
    assert_eq!((upstream.path.as_str(), upstream.target.to_string().as_str()), ("/mcp", "npx"));
    assert_eq!((upstream.timeouts.start, upstream.timeouts.stop), (Duration::from_millis(1), Duration::ZERO));
    assert_eq!(upstream.limits.max_processes, 1);
    let command = command(upstream);
    assert_eq!(command.program, "npx");
    assert_eq!(command.args, ["-y", "", "from-env", "file:x", "t0ken"].map(OsString::from));
    let env: Vec<_> = command.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("A", "x=from-env"), ("B", "t0ken"), ("C", "")]);
    assert_eq!(command.inherit_env, ["A", "Z"]);
    assert_eq!(command.cwd, Some(dir.path().join("work")));
}

#[test]
fn nothing_but_the_program_is_needed() {
    let command = command(upstream("[upstream.a]\ncommand = 'cat'"));
    let bare = Command { program: "cat".into(), args: vec![], env: vec![], inherit_env: vec![], cwd: None };
    assert_eq!(command, bare);
}

/// Wherever it is to run, and whoever starts the proxy from where.
#[test]
fn a_program_with_a_path_is_relative_to_the_file() {
    for (given, found) in [
        ("./server", "/nowhere/./server"),
        ("bin/server", "/nowhere/bin/server"),
        ("/usr/bin/server", "/usr/bin/server"),
        ("server", "server"),
        ("a server", "a server"),
    ] {
        let program = command(upstream(&format!("[upstream.a]\ncommand = '{given}'"))).program;
        assert_eq!(Path::new(&program), Path::new(found), "{given}");
    }
    for wrong in ["''", "' '", "1", "[\"npx\", \"-y\"]"] {
        let error =
            load_in(Path::new(""), &format!("[upstream.a]\ncommand = {wrong}")).unwrap_err().to_string();
        assert!(error.starts_with("upstream.a.command: ") && error.contains("without arguments"), "{error}");
    }
}

#[test]
fn a_directory_that_is_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = load_in(dir.path(), "[upstream.a]\ncommand = 'cat'\ncwd = 'file'").unwrap_err().to_string();
    assert!(error.starts_with("upstream.a.cwd: ") && error.contains("it is no directory"), "{error}");
}

#[test]
fn a_command_is_shown_so_that_it_loads_again_but_for_its_secrets() {
    let text = "[upstream.a]\ncommand = 'cat'\nargs = ['x']\nenv = { A = 'y' }\ninherit_env = ['B']\n\
                sse_path = '/sse/'\nera = 'legacy'\n[upstream.b]\nurl = 'http://127.0.0.1/sse'\ntransport = 'sse'\n\
                sse_endpoint = '/m?key=k3y'\n";
    let shown = load_in(Path::new(""), text).unwrap().config.to_redacted_toml();
    for line in [
        "command = \"cat\"",
        "args = [\"[redacted]\"]",
        "env = { \"A\" = \"[redacted]\" }",
        "inherit_env = [\"B\"]",
        "sse_path = \"/sse\"",
        "transport = \"sse\"",
        "sse_endpoint = \"/m?[redacted]\"",
        "start = \"1m\"",
        "stop = \"2s\"",
        "max_processes = 64",
    ] {
        assert!(shown.lines().any(|found| found == line), "{line} is not in {shown}");
    }
    assert_eq!(load_in(Path::new(""), &shown).unwrap().config.to_redacted_toml(), shown);
}

#[test]
fn the_old_transport_of_servers() {
    let with = |lines: &str| format!("[upstream.a]\nurl = 'https://a.example/x/sse'\n{lines}\n");
    assert_eq!(upstream(&with("")).transport, HttpTransport::Auto);
    let streamable = upstream(&with("transport = 'streamable-http'")).transport;
    assert_eq!(streamable, HttpTransport::StreamableHttp);
    for endpoint in ["/messages", "messages?x=1", "https://a.example/m", "https://a.example:443/m"] {
        let upstream = upstream(&with(&format!("transport = 'sse'\nsse_endpoint = '{endpoint}'")));
        assert_eq!(upstream.transport, HttpTransport::Sse);
        assert_eq!(upstream.sse_endpoint.as_deref(), Some(endpoint));
    }
    let error = load_in(Path::new(""), &with("transport = 'sse'\nera = 'modern'")).unwrap_err().to_string();
    assert!(
        error.starts_with("upstream.a.transport: \"sse\" is not accepted; accepted: \"auto\""),
        "{error}"
    );
    let told =
        load_in(Path::new(""), &with("transport = 'streamable-http'\nsse_endpoint = '/m'")).unwrap().warnings;
    assert_eq!(told, ["upstream.a.sse_endpoint: no effect with transport = \"streamable-http\""]);
}

#[test]
fn the_old_paths_for_clients() {
    for (path, messages) in [("/sse", "/messages"), ("/a/sse/", "/a/messages"), ("/a/b/c", "/a/b/messages")] {
        let upstream = upstream(&format!("[upstream.a]\ncommand = 'cat'\nsse_path = '{path}'"));
        assert_eq!(upstream.sse_messages_path().as_deref(), Some(messages));
    }
    assert_eq!(upstream("[upstream.a]\ncommand = 'cat'").sse_messages_path(), None);
    let two = |a: &str, b: &str| {
        let text =
            format!("[upstream.a]\nurl = 'builtin:demo'\n{a}\n[upstream.b]\nurl = 'builtin:demo'\n{b}\n");
        load_in(Path::new(""), &text)
    };
    two("sse_path = '/a/sse'", "sse_path = '/b/sse'").unwrap();
    for (a, b, path, other) in [
        ("sse_path = '/x'", "sse_path = '/x'", "upstream.b.sse_path: \"/x\"", "/x is upstream.a.sse_path"),
        (
            "sse_path = '/x'",
            "sse_path = '/y'",
            "upstream.b.sse_path: \"/y\"",
            "/messages is `messages` beside upstream.a.sse_path",
        ),
        ("sse_path = '/x'", "path = '/x'", "upstream.a.sse_path: \"/x\"", "/x is upstream.b.path"),
        (
            "sse_path = '/x'",
            "path = '/messages'",
            "upstream.a.sse_path: \"/x\"",
            "/messages is upstream.b.path",
        ),
    ] {
        let error = two(a, b).unwrap_err().to_string();
        assert!(error.starts_with(path) && error.contains(other), "{path}, {other}: {error}");
    }
    let never =
        "[upstream.a]\nurl = 'builtin:demo'\nera = 'modern'\nlegacy_clients = false\nsse_path = '/sse'";
    let warnings = load_in(Path::new(""), never).unwrap().warnings;
    assert!(warnings[0].starts_with("upstream.a.sse_path: no effect"), "{warnings:?}");
}

#[test]
fn a_process_for_every_call_is_told() {
    let text = "[upstream.a]\ncommand = 'cat'\nsession.scope = 'request'";
    let warnings = load_in(Path::new(""), text).unwrap().warnings;
    assert_eq!(warnings, ["upstream.a.session.scope: \"request\" starts a process for every call"]);
}

/// What is learnt of a server is kept under it, also in a file that others may read.
#[test]
fn a_fingerprint_is_that_of_the_command_without_its_secrets() {
    let of = |lines: &str| {
        command(upstream(&format!("[upstream.a]\ncommand = '/bin/cat'\n{lines}"))).fingerprint()
    };
    let all = "args = ['a']\nenv = { K = 'one' }\ninherit_env = ['X']";
    assert!(of(all).starts_with("stdio:cat:"), "{}", of(all));
    assert_eq!(of(all), of("args = ['a']\nenv = { K = 'two' }"));
    let others = [
        "",
        "args = ['a']",
        "args = ['a', 'K']",
        "env = { a = '', K = '' }",
        "args = ['b']\nenv = { K = 'one' }",
    ];
    for other in others {
        assert_ne!(of(all), of(other), "{other}");
    }
}

/// Told, and not refused: it may be there when it is needed.
#[cfg(unix)]
#[test]
fn a_program_that_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bin")).unwrap();
    fs::write(dir.path().join("bin/here"), "").unwrap();
    let bin = dir.path().join("bin").display().to_string();
    let env = |name: &str| (name == "PATH").then(|| format!("/nonexistent:{bin}"));
    let told = |lines: &str| load_text(&format!("[upstream.a]\n{lines}"), dir.path(), &env).unwrap().warnings;
    for there in
        ["command = 'here'", "command = 'bin/here'", "command = 'elsewhere'\nenv = { PATH = '/nonexistent' }"]
    {
        let warned = told(there);
        assert_eq!(warned.is_empty(), !there.contains("elsewhere"), "{there}: {warned:?}");
    }
    for (lines, why) in [
        ("command = 'gone'", "\"gone\" is in none of the directories of PATH"),
        (
            "command = 'here'\nenv = { PATH = '/nonexistent' }",
            "\"here\" is in none of the directories of PATH",
        ),
        (
            "command = 'here --now'",
            "\"here --now\" is in none of the directories of PATH; arguments go into `args`",
        ),
        ("command = './gone'", "gone\" does not exist"),
        ("command = './bin'", "bin\" is no file"),
    ] {
        let warned = told(lines);
        assert!(warned.len() == 1 && warned[0].starts_with("upstream.a.command: \""), "{lines}: {warned:?}");
        assert!(warned[0].contains(why), "{why}: {warned:?}");
    }
}

#[test]
fn what_stands_in_the_place_of_a_secret_is_told() {
    let text = "[upstream.a]\ncommand = 'cat'\nargs = ['x', '[redacted]']\nenv = { K = '[redacted]', F = 'file:./dev.db' }\n\
                [upstream.b]\nurl = 'https://b.example/'\nheaders = { x = '[redacted]' }\nauthorization = { value = '[redacted]' }";
    let warnings = load_in(Path::new(""), text).unwrap().warnings;
    let told: Vec<_> = warnings.iter().map(|warning| warning.split(": ").next().unwrap()).collect();
    let paths = ["a.args[1]", "a.env.K", "a.env.F", "b.headers.x", "b.authorization.value"];
    assert_eq!(told, paths.map(|path| format!("upstream.{path}")), "{warnings:?}");
}
