//! The command line: what is accepted, what the flags come to, and that a wrong one ends with 64.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::process::ExitCode;

use clap::CommandFactory;
use mcp_janus::cli::{Cli, Command, Exit, exit_of, later, parse_from};
use mcp_janus::config::{
    Authorization, ConfigError, EraSetting, Loaded, LogFormat, SessionScope, Target, from_probe_flags,
};

fn parse(line: &str) -> Result<Cli, clap::Error> {
    parse_from(["mcp-janus"].into_iter().chain(line.split_whitespace()))
}

fn load(line: &str) -> Result<Loaded, ConfigError> {
    let cli = parse(line).unwrap_or_else(|error| panic!("{error}"));
    let Command::Serve(serve) = &cli.command else { panic!("not serve: {line}") };
    serve.load(&cli.log, &|_| None)
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
    assert_eq!(seen, 14);
}

#[test]
fn a_parsed_command_line_does_not_show_headers() {
    let cli = parse("serve --upstream http://a/ --header x=abcdef").unwrap();
    assert!(!format!("{cli:?}").contains("abcdef"));
}

#[test]
fn help_and_version_end_with_0() {
    for line in ["--help", "serve --help", "probe -h", "--version"] {
        assert_eq!(exit_of(&parse(line).unwrap_err()), Exit::Ok, "{line}");
    }
    assert!(parse("--help").unwrap_err().to_string().contains("64 wrong command line"));
    assert!(parse("--version").unwrap_err().to_string().contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn what_comes_later_says_so() {
    for line in
        ["stdio", "stdio --upstream https://a/mcp", "stdio --help", "serve -- npx -y server", "serve -- cat"]
    {
        let cli = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(later(&cli.command).unwrap_or_default().contains("later version"), "{line}");
    }
    for line in ["serve --upstream http://a/", "probe http://a/", "check a.toml", "demo", "demo --verbose"] {
        assert_eq!(later(&parse(line).unwrap().command), None, "{line}");
    }
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
