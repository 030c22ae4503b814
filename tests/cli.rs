//! The command line: what is accepted, what the flags come to, and that a wrong one ends with 64.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::process::ExitCode;

use clap::CommandFactory;
use mcp_janus::cli::{Cli, Command, Exit, exit_of, parse_from};
use mcp_janus::config::{
    self, Authorization, ConfigError, EraSetting, Loaded, LogFormat, SchemaPolicy, SessionScope, Target,
    Validation, from_probe_flags,
};

fn parse(line: &str) -> Result<Cli, clap::Error> {
    parse_from(["mcp-janus"].into_iter().chain(line.split_whitespace()))
}

fn load(line: &str) -> Result<Loaded, ConfigError> {
    let cli = parse(line).unwrap_or_else(|error| panic!("{error}"));
    match &cli.command {
        Command::Serve(serve) => serve.load(&cli.log, &|_| None),
        Command::Stdio(stdio) => stdio.load(&cli.log, &|_| None),
        _ => panic!("neither serve nor stdio: {line}"),
    }
}

/// The command that the only upstream of these settings is.
fn command(loaded: &Loaded) -> &config::Command {
    match &loaded.config.upstreams[..] {
        [upstream] => match &upstream.target {
            Target::Command(command) => command,
            other => panic!("{other:?}"),
        },
        other => panic!("{} upstreams", other.len()),
    }
}

#[test]
fn wrong_command_lines_end_with_64_and_say_why() {
    for (line, part) in [
        ("", "Usage"),
        ("fly", "fly"),
        ("serve", "--config"),
        ("serve --upstream", "--upstream"),
        ("serve --config a.toml --upstream http://a/", "--upstream"),
        ("serve --config a.toml --listen 127.0.0.1:1", "--listen"),
        ("serve --upstream http://a/ -- cat", "COMMAND"),
        ("serve --config a.toml -- cat", "COMMAND"),
        ("serve --config a.toml --mcp-servers a.json", "--mcp-servers"),
        ("serve --mcp-servers a.json --path /a", "--path"),
        ("serve --mcp-servers a.json --header a=b", "--header"),
        ("serve --header a=b -- cat", "COMMAND"),
        ("serve --ca-file a.pem -- cat", "COMMAND"),
        ("serve --authorization strip -- cat", "COMMAND"),
        ("serve --upstream http://a/ --cwd a", "--cwd"),
        ("serve --upstream http://a/ --env a=b", "--env"),
        ("serve --upstream http://a/ --inherit-env a", "--inherit-env"),
        ("serve cat", "cat"),
        ("stdio", "--upstream"),
        ("stdio --upstream http://a/ -- cat", "COMMAND"),
        ("stdio --config a.toml --upstream http://a/", "--upstream"),
        ("stdio --config a.toml --mcp-servers a.json", "--mcp-servers"),
        ("stdio --upstream http://a/ --server a", "--server"),
        ("stdio --server a -- cat", "COMMAND"),
        ("stdio --server a", "--config"),
        ("stdio --upstream http://a/ --listen 127.0.0.1:1", "--listen"),
        ("stdio --upstream http://a/ --path /a", "--path"),
        ("stdio --config a.toml --era legacy", "--era"),
        ("probe http://a/ -- cat", "COMMAND"),
        ("probe --header a=b -- cat", "COMMAND"),
        ("probe http://a/ --env a=b", "--env"),
        ("serve --upstream http://a/ --schema-policy off", "drop"),
        ("serve --upstream http://a/ --validate-arguments yes", "enforce"),
        ("stdio --upstream http://a/ --validate-results drop", "enforce"),
        ("serve --mcp-servers a.json --schema-policy warn", "--schema-policy"),
        ("stdio --config a.toml --schema-document urn:a=b", "--schema-document"),
        ("probe http://a/ --schema-policy warn", "--schema-policy"),
        ("serve --upstream http://a/ --era old", "modern"),
        ("serve --upstream http://a/ --authorization keep", "strip"),
        ("serve --upstream http://a/ --session-scope user", "principal"),
        ("serve --upstream http://a/ --interactive no", "true"),
        ("serve --upstream http://a/ --tls-cert a.pem", "--tls-key"),
        ("serve --upstream http://a/ --log-format xml", "human"),
        ("serve --upstream http://a/ --colour red", "--colour"),
        ("probe", "URL"),
        ("check", "FILE"),
        ("check a.toml b.toml", "b.toml"),
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(exit_of(&error), Exit::Usage, "{line}");
        assert!(error.to_string().contains(part), "{line}: {part}: {error}");
    }
    assert_eq!(Exit::Usage as u8, 64);
    // `ExitCode` can only be compared by what it prints.
    assert_eq!(format!("{:?}", ExitCode::from(Exit::Usage)), format!("{:?}", ExitCode::from(64)));
}

#[test]
fn a_file_excludes_every_flag_but_those_about_the_log() {
    let command = Cli::command();
    let serve = command.find_subcommand("serve").unwrap();
    let flags = serve.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg.get_possible_values())));
    let mut seen = 0;
    for (long, possible) in flags.filter(|(long, _)| *long != "config") {
        let value = possible.first().map_or("v", |value| value.get_name());
        let error = parse(&format!("serve --config a.toml --{long} {value}")).expect_err(long);
        assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{long}");
        seen += 1;
    }
    assert_eq!(seen, 22);
}

#[test]
fn a_parsed_command_line_does_not_show_headers() {
    for line in ["serve --upstream http://a/ --header x=abcdef", "stdio --env x=abcdef -- cat"] {
        assert!(!format!("{:?}", parse(line).unwrap()).contains("abcdef"));
    }
}

#[test]
fn help_and_version_end_with_0() {
    for line in ["--help", "serve --help", "stdio --help", "probe -h", "--version"] {
        assert_eq!(exit_of(&parse(line).unwrap_err()), Exit::Ok, "{line}");
    }
    assert!(parse("--help").unwrap_err().to_string().contains("64 wrong command line"));
    assert!(parse("--version").unwrap_err().to_string().contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn flags_come_to_settings() {
    let line = "--log-level debug serve --upstream http://127.0.0.1:3000/mcp --listen [::1]:9000 --path /a/ \
                --era legacy --header X-A=b=c --authorization strip --allow-host A.example --allow-origin https://a.example \
                --session-scope request --interactive false --log-format json --admin 127.0.0.1:9464";
    let Loaded { config, warnings } = load(line).unwrap();
    let upstream = &config.upstreams[0];
    assert_eq!(config.listen.address.to_string(), "[::1]:9000");
    assert_eq!(config.admin.unwrap().address.to_string(), "127.0.0.1:9464");
    assert_eq!(config.listen.allowed_hosts, ["a.example"]);
    assert_eq!(config.listen.allowed_origins, ["https://a.example"]);
    assert_eq!((upstream.path.as_str(), upstream.era), ("/a", EraSetting::Legacy));
    assert_eq!((upstream.headers[0].0.as_str(), upstream.headers[0].1.expose()), ("x-a", "b=c"));
    assert!(matches!(upstream.authorization, Authorization::Strip));
    assert_eq!(upstream.session.scope, SessionScope::Request);
    assert!(!upstream.interactive);
    assert_eq!((config.log.level.as_str(), config.log.format), ("debug", LogFormat::Json));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(load("serve --upstream builtin:demo").unwrap().config.upstreams[0].target, Target::Demo);
}

#[test]
fn flags_about_the_log_win_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.toml");
    fs::write(&file, "[log]\nformat = 'json'\nlevel = 'warn'\n[upstream.a]\nurl = 'builtin:demo'\n").unwrap();
    let config = load(&format!("serve --config {} --log-level trace", file.display())).unwrap().config;
    assert_eq!((config.log.level.as_str(), config.log.format), ("trace", LogFormat::Json));
    assert_eq!(parse("demo").unwrap().log_of_tool().unwrap().level, "warn");
    // It prints all findings itself.
    let probe = parse("probe http://a/").unwrap().log_of_tool().unwrap();
    assert_eq!(probe.level, "warn,mcp_janus::upstream::guard=error");
    assert_eq!(parse("demo --log-level info").unwrap().log_of_tool().unwrap().level, "info");
}

#[test]
fn wrong_values_name_the_flag() {
    let upstream = "--upstream http://127.0.0.1/";
    for (line, start) in [
        ("--upstream ftp://a/".to_owned(), "--upstream: \"ftp://a/\" is not accepted"),
        (format!("{upstream} --listen 8808"), "--listen: \"8808\" is not accepted"),
        (format!("{upstream} --admin 9464"), "--admin: \"9464\" is not accepted"),
        (format!("{upstream} --path mcp"), "--path: \"mcp\" is not accepted"),
        (format!("{upstream} --header abcdef"), "--header: [redacted] is not accepted"),
        (format!("{upstream} --header Host=abcdef"), "--header Host: [redacted] is not accepted"),
        (format!("{upstream} --header a=abcdef --header a=abcdef"), "--header: [redacted] is not accepted"),
        (format!("{upstream} --header a=file:none"), "--header a: cannot use the file none"),
        (
            format!("{upstream} --header Authorization=abcdef --authorization strip"),
            "--authorization: \"strip\" is not accepted",
        ),
        (format!("{upstream} --header Authorization="), "--header authorization: [redacted] is not accepted"),
        (format!("{upstream} --ca-file none.pem"), "--ca-file: cannot use the file none.pem"),
        (
            format!("{upstream} --tls-cert none.pem --tls-key none.pem"),
            "--tls-cert: cannot use the file none.pem",
        ),
        (format!("{upstream} --allow-host http://a"), "--allow-host: \"http://a\" is not accepted"),
        (format!("{upstream} --allow-origin a"), "--allow-origin: \"a\" is not accepted"),
        (format!("{upstream} --log-level loud"), "--log-level: \"loud\" is not accepted"),
    ] {
        let error = load(&format!("serve {line}")).expect_err(&line).to_string();
        assert!(error.starts_with(start), "{start}: {error}");
        assert!(error.contains("accepted: ") && !error.contains("abcdef"), "{error}");
    }
}

#[test]
fn warnings_name_the_flag() {
    let warnings = load("serve --upstream http://a.example/ --listen 0.0.0.0:1").unwrap().warnings;
    let starts: Vec<&str> =
        warnings.iter().filter_map(|warning| warning.split_once(": ")).map(|(s, _)| s).collect();
    assert_eq!(starts, ["--listen", "--allow-host", "--upstream"]);
}

#[test]
fn a_command_that_is_not_there_is_told_by_its_flag() {
    for line in ["serve -- gone", "stdio -- gone"] {
        let cli = parse(line).unwrap();
        let env = |name: &str| (name == "PATH").then(|| "/nonexistent".to_owned());
        let loaded = match &cli.command {
            Command::Serve(serve) => serve.load(&cli.log, &env),
            Command::Stdio(stdio) => stdio.load(&cli.log, &env),
            _ => panic!("{line}"),
        };
        assert_eq!(loaded.unwrap().warnings, ["COMMAND: \"gone\" is in none of the directories of PATH"]);
    }
}

/// What is mistyped would be a program to start behind `--`.
#[test]
fn nothing_misleading_is_suggested() {
    for line in ["serve --upstrem http://a/", "stdio --upstrem http://a/", "probe --jsn http://a/"] {
        let error = parse(line).unwrap_err().to_string();
        assert!(error.contains("unexpected argument") && !error.contains("'-- "), "{error}");
    }
}

#[test]
fn a_fixed_credential_is_a_header_flag() {
    let line = "serve --upstream https://a.example/ --header authorization=abc";
    let upstream = load(line).unwrap().config.upstreams.remove(0);
    assert!(matches!(&upstream.authorization, Authorization::Fixed(value) if value.expose() == "abc"));
    assert!(upstream.headers.is_empty());
}

#[test]
fn probe_has_its_upstream_from_flags() {
    let probe = |line: &str| match parse(line).unwrap().command {
        Command::Probe(flags) => from_probe_flags(&flags),
        _ => panic!("not probe"),
    };
    let (upstream, warnings) = probe("probe http://a.example/mcp --json --header x=y --timeout 2s").unwrap();
    assert_eq!(upstream.timeouts.probe.as_secs(), 2);
    assert_eq!(upstream.timeouts.connect.as_secs(), 2);
    assert_eq!(upstream.headers.len(), 1);
    assert!(warnings[0].starts_with("URL: plain http to a.example"), "{warnings:?}");
    for (line, start) in [
        ("probe a", "URL: \"a\" is not accepted"),
        ("probe http://a/ --timeout 2", "--timeout: \"2\" is not accepted"),
        ("probe http://a/ --header x", "--header: [redacted]"),
    ] {
        let error = probe(line).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn the_schema_guard_has_flags_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.json");
    fs::write(&file, "{}").unwrap();
    let document = format!("--schema-document https://a.example/s?v=1={}", file.display());
    for command in ["serve", "stdio"] {
        let flags = "--schema-policy warn --validate-arguments enforce --validate-results warn";
        let line = format!("{command} --upstream builtin:demo {flags} {document}");
        let schema = load(&line).unwrap().config.upstreams.remove(0).schema;
        assert_eq!(schema.policy, SchemaPolicy::Warn);
        assert_eq!((schema.arguments, schema.results), (Validation::Enforce, Validation::Warn));
        let documents: Vec<_> =
            schema.documents.iter().map(|one| (one.uri.as_str(), &one.text[..])).collect();
        assert_eq!(documents, [("https://a.example/s?v=1", &b"{}"[..])]);
    }
    let Command::Probe(flags) = parse(&format!("probe {document} -- cat")).unwrap().command else {
        panic!("not probe")
    };
    assert_eq!(from_probe_flags(&flags).unwrap().0.schema.documents.len(), 1);
    for (flags, start) in [
        ("--schema-document a.json", "--schema-document: \"a.json\" is not accepted; accepted: URI=FILE"),
        ("--schema-document a=b", "--schema-document a: \"b\" is not accepted; accepted: an absolute URI"),
        ("--schema-document urn:[a]=b", "--schema-document \"urn:[a]\": \"b\" is not accepted"),
        ("--schema-document urn:a=none.json", "--schema-document \"urn:a\": cannot use the file none.json: "),
        (
            "--schema-document urn:a=b --schema-document urn:a=c",
            "--schema-document: \"urn:a=c\" is not accepted; accepted: each URI once",
        ),
    ] {
        let error = load(&format!("serve --upstream builtin:demo {flags}")).unwrap_err().to_string();
        assert!(error.starts_with(start), "{start}: {error}");
    }
}

#[test]
fn a_command_after_two_dashes_is_the_server() {
    let line = "serve --path /a --era legacy --interactive false --session-scope request --listen [::1]:9000 --cwd tests \
                --env A=b=c --env B= --inherit-env D --inherit-env C -- npx -y --era modern -- x";
    let loaded = load(line).unwrap();
    let upstream = &loaded.config.upstreams[0];
    assert_eq!((upstream.path.as_str(), upstream.era), ("/a", EraSetting::Legacy));
    assert_eq!((upstream.interactive, upstream.session.scope), (false, SessionScope::Request));
    assert_eq!(loaded.config.listen.address.to_string(), "[::1]:9000");
    assert_eq!(loaded.warnings, ["--session-scope: \"request\" starts a process for every call"]);
    let command = command(&loaded);
    assert_eq!(command.program, "npx");
    assert_eq!(command.args, ["-y", "--era", "modern", "--", "x"]);
    let env: Vec<_> = command.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("A", "b=c"), ("B", "")]);
    assert_eq!(command.inherit_env, ["C", "D"]);
    assert_eq!(command.cwd.as_deref(), Some(std::path::Path::new("tests")));
    let here = std::env::current_dir().unwrap();
    let local = load("serve -- ./server").unwrap();
    assert_eq!(here.join(&self::command(&local).program), here.join("./server"));
    assert!(std::path::Path::new(&self::command(&local).program).is_absolute());
}

/// As with --header.
#[test]
fn a_variable_may_be_read_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    fs::write(&file, "t0ken\n").unwrap();
    for line in ["serve", "stdio"] {
        let loaded = load(&format!("{line} --env TOKEN=file:{} -- cat", file.display())).unwrap();
        assert_eq!(command(&loaded).env[0].1.expose(), "t0ken");
        assert_eq!(loaded.warnings, Vec::<String>::new());
    }
}

/// A shell gives what it has been given, which need not be UTF-8, and `${` is its business.
#[cfg(unix)]
#[test]
fn arguments_stay_what_they_are() {
    use std::os::unix::ffi::OsStringExt;
    let odd = std::ffi::OsString::from_vec(b"\xff${A}".to_vec());
    let line = ["mcp-janus", "stdio", "--"].map(Into::into).into_iter().chain([odd.clone(), odd.clone()]);
    let cli = parse_from(line).unwrap();
    let Command::Stdio(stdio) = &cli.command else { panic!("not stdio") };
    let loaded = stdio.load(&cli.log, &|_| None).unwrap();
    assert_eq!((&command(&loaded).program, &command(&loaded).args), (&odd, &vec![odd.clone()]));
}

#[test]
fn wrong_surroundings_name_the_flag() {
    for (line, start) in [
        ("serve --cwd none -- cat", "--cwd: cannot use the file none"),
        ("serve --env abcdef -- cat", "--env: [redacted] is not accepted; accepted: NAME=VALUE"),
        ("serve --env =abcdef -- cat", "--env \"\": [redacted] is not accepted"),
        ("serve --env A=file:none -- cat", "--env A: cannot use the file none"),
        (
            "stdio --env A=abcdef --env A=abcdef -- cat",
            "--env: [redacted] is not accepted; accepted: each variable once",
        ),
        ("stdio --inherit-env A=1 -- cat", "--inherit-env: \"A=1\" is not accepted"),
        ("stdio --upstream ftp://a/", "--upstream: \"ftp://a/\" is not accepted"),
        (
            "stdio --upstream http://127.0.0.1/ --header Host=abcdef",
            "--header Host: [redacted] is not accepted",
        ),
        ("stdio --config none.toml", "cannot read the file none.toml"),
        ("stdio --mcp-servers none.json", "cannot read the file none.json"),
    ] {
        let error = load(line).expect_err(line).to_string();
        assert!(error.starts_with(start), "{start}: {error}");
        assert!(error.contains("accepted: ") && !error.contains("abcdef"), "{error}");
    }
    let cli = parse_from(["mcp-janus", "serve", "--", ""]).unwrap();
    let Command::Serve(serve) = &cli.command else { panic!("not serve") };
    let error = serve.load(&cli.log, &|_| None).unwrap_err().to_string();
    assert!(error.starts_with("COMMAND: \"\" is not accepted; accepted: the name of a program"), "{error}");
}

#[test]
fn stdio_has_one_server_whatever_it_is_from() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let one = file("one.toml", "[upstream.a]\ncommand = 'cat'\npath = '/a'\nsse_path = '/sse'");
    let two = file(
        "two.toml",
        "[listen]\naddress = '0.0.0.0:1'\n[admin]\naddress = '127.0.0.1:9464'\n[upstream.a]\ncommand = 'cat'\n\
         [upstream.b]\nurl = 'http://a.example/'",
    );
    let many = file(
        "many.json",
        r#"{"mcpServers": {"x y": {"command": "cat"}, "z": {"command": "tac", "args": ["${NO}"]}}}"#,
    );
    let single = file("single.json", r#"{"mcpServers": {"x": {"command": "cat"}}}"#);
    for (source, name, warned) in [
        ("--upstream http://127.0.0.1/mcp".to_owned(), "default", vec![]),
        ("--era legacy -- cat".to_owned(), "default", vec![]),
        (format!("--config {one}"), "a", vec![]),
        (format!("--config {one} --server a"), "a", vec![]),
        (format!("--config {two} --server a"), "a", vec!["admin"]),
        (format!("--config {two} --server b"), "b", vec!["admin", "upstream.b.url"]),
        (format!("--mcp-servers {single}"), "x", vec![]),
        (format!("--mcp-servers {many} --server x-y"), "x-y", vec!["mcpServers.\"x y\""]),
    ] {
        let Loaded { config, warnings } =
            load(&format!("stdio {source}")).unwrap_or_else(|error| panic!("{source}: {error}"));
        let upstreams: Vec<_> =
            config.upstreams.iter().map(|up| (up.name.as_str(), up.path.as_str())).collect();
        assert_eq!(upstreams, [(name, "/mcp")], "{source}");
        assert!(config.admin.is_none() && config.upstreams[0].sse_path.is_none(), "{source}");
        let told: Vec<_> = warnings.iter().map(|warning| warning.split(": ").next().unwrap()).collect();
        assert_eq!(told, warned, "{source}");
    }
    for (source, start) in [
        (format!("--config {two}"), "--server: missing; accepted: one of \"a\", \"b\""),
        (
            format!("--config {two} --server c"),
            "--server: \"c\" is not accepted; accepted: one of \"a\", \"b\"",
        ),
        (
            format!("--mcp-servers {many} --server c"),
            "--server: \"c\" is not accepted; accepted: one of \"x y\", \"z\"",
        ),
        (
            format!("--mcp-servers {many} --server z"),
            "mcpServers.z.args[0]: the environment variable NO is not set",
        ),
    ] {
        let error = load(&format!("stdio {source}")).expect_err(&source).to_string();
        assert!(error.starts_with(start), "{start}: {error}");
    }
}

#[test]
fn the_servers_of_a_host_are_served_each_at_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers.json");
    fs::write(&file, r#"{"mcpServers": {"a": {"command": "cat"}, "b": {"url": "http://a.example/mcp"}}}"#)
        .unwrap();
    let line = format!(
        "serve --mcp-servers {} --listen [::1]:9000 --admin 127.0.0.1:9464 --log-level warn",
        file.display()
    );
    let Loaded { config, warnings } = load(&line).unwrap();
    let paths: Vec<_> = config.upstreams.iter().map(|upstream| upstream.path.as_str()).collect();
    assert_eq!(paths, ["/a/mcp", "/b/mcp"]);
    assert_eq!(config.listen.address.to_string(), "[::1]:9000");
    assert!(config.admin.is_some());
    assert_eq!(config.log.level, "warn");
    assert!(warnings[0].starts_with("mcpServers.b.url: plain http to a.example"), "{warnings:?}");
    let error = load(&format!("{line} --allow-host http://a")).unwrap_err().to_string();
    assert!(error.starts_with("--allow-host: "), "{error}");
}

#[test]
fn probe_looks_at_a_command_as_well() {
    let Command::Probe(flags) =
        parse("probe --json --timeout 2s --env A=b --cwd tests -- npx -y x").unwrap().command
    else {
        panic!("not probe")
    };
    let (upstream, warnings) = from_probe_flags(&flags).unwrap();
    assert_eq!((upstream.timeouts.start.as_secs(), upstream.timeouts.probe.as_secs()), (2, 2));
    assert_eq!(warnings, Vec::<String>::new());
    let Target::Command(command) = &upstream.target else { panic!("not a command") };
    assert_eq!((command.args.len(), command.env.len(), command.cwd.is_some()), (2, 1, true));
}
