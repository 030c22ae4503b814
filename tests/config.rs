//! Settings from outside the crate: files on disk, secrets, the examples, and what `check` prints.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use mcp_janus::cli::{Exit, check, check_with};
use mcp_janus::config::{
    Authorization, Config, HttpTransport, Loaded, SchemaPolicy, Target, Upstream, Validation, load_file,
    load_mcp_servers,
};
use tempfile::TempDir;

const SESSION_KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("configs")
}

/// A directory with what the examples refer to, and a file in it.
fn place(text: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    for inner in ["tls", "secrets"] {
        fs::create_dir(dir.path().join(inner)).unwrap();
    }
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for name in ["tls/server.crt", "tls/company-ca.pem"] {
        fs::write(dir.path().join(name), certified.cert.pem()).unwrap();
    }
    fs::write(dir.path().join("tls/server.key"), certified.signing_key.serialize_pem()).unwrap();
    fs::write(dir.path().join("secrets/authorization"), "Bearer s3cret\n").unwrap();
    fs::create_dir(dir.path().join("schemas")).unwrap();
    fs::write(dir.path().join("schemas/address.json"), "{\"type\": \"object\"}").unwrap();
    fs::write(dir.path().join("secrets/session-key"), format!("{SESSION_KEY}\n")).unwrap();
    let file = dir.path().join("janus.toml");
    fs::write(&file, text).unwrap();
    (dir, file)
}

fn env(name: &str) -> Option<String> {
    (name == "SEARCH_API_KEY").then(|| "s3cret".to_owned())
}

fn load(text: &str) -> Loaded {
    let (_dir, file) = place(text);
    load_file(&file, &env).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refusal(text: &str) -> String {
    let (_dir, file) = place(text);
    load_file(&file, &env).expect_err(text).to_string()
}

fn with(lines: &str) -> String {
    format!("[upstream.api]\nurl = \"https://a.example/mcp\"\n{lines}\n")
}

#[test]
fn every_example_loads() {
    let mut seen = 0;
    for entry in fs::read_dir(configs().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        match path.extension().and_then(|ext| ext.to_str()) {
            Some("toml") => drop(load(&text)),
            Some("json") => drop(load_mcp_servers(&path, &env).unwrap_or_else(|error| panic!("{error}"))),
            _ => panic!("{}", path.display()),
        }
        seen += 1;
    }
    assert_eq!(seen, 8);
}

#[test]
fn the_file_inside_the_kubernetes_example_loads() {
    let yaml = fs::read_to_string(configs().join("kubernetes-sidecar.yaml")).unwrap();
    let inner: Vec<&str> = yaml
        .lines()
        .skip_while(|line| *line != "  janus.toml: |")
        .skip(1)
        .take_while(|line| line.starts_with("    "))
        .collect();
    let loaded = load(&inner.join("\n"));
    assert!(loaded.config.listen.address.ip().is_unspecified());
}

#[test]
fn the_examples_say_what_they_are_for() {
    let example = |name: &str| load(&fs::read_to_string(configs().join("examples").join(name)).unwrap());
    let several = example("several-upstreams.toml").config;
    let paths: Vec<&str> = several.upstreams.iter().map(|upstream| upstream.path.as_str()).collect();
    assert_eq!(paths, ["/browser/mcp", "/files", "/search/mcp"]);
    assert_eq!(several.upstreams[2].headers[0].1.expose(), "s3cret");
    let private = &example("private-ca.toml").config.upstreams[0];
    assert!(
        matches!(&private.authorization, Authorization::Fixed(value) if value.expose() == "Bearer s3cret")
    );
    assert_eq!(private.ca_files.len(), 1);
    assert!(example("tls-front.toml").config.listen.tls.is_some());
    assert!(!example("sidecar.toml").warnings.is_empty());
    let legacy = &example("legacy-clients.toml").config.upstreams[0];
    assert!(legacy.session.key.is_some() && legacy.cache_lists);
    let guarded = &example("schemas.toml").config.upstreams;
    assert_eq!(guarded[0].schema.documents[0].uri, "https://crm.example.com/schemas/address.json");
    assert_eq!(guarded[0].schema.arguments, Validation::Enforce);
    assert_eq!(guarded[1].schema.policy, SchemaPolicy::Warn);
    let program = &example("stdio-server.toml").config.upstreams[0];
    assert!(matches!(&program.target, Target::Command(command) if command.env[0].1.expose() == "s3cret"));
    assert_eq!(program.sse_messages_path().as_deref(), Some("/messages"));
    let servers = load_mcp_servers(&configs().join("examples/mcp-servers.json"), &env).unwrap();
    let paths: Vec<&str> = servers.config.upstreams.iter().map(|upstream| upstream.path.as_str()).collect();
    assert_eq!(paths, ["/files/mcp", "/notes/mcp", "/search/mcp"]);
    assert_eq!(servers.warnings, ["mcpServers.old: disabled, so left out"]);
}

/// As TOML, in which it means the same but for its secrets; whether it is JSON is told by its name, or by how it begins.
#[test]
fn check_reads_the_file_of_a_host() {
    let text = r#"{"mcpServers": {"a": {"command": "cat", "args": ["s3cret"], "env": {"KEY": "s3cret"}},
                   "b c": {"type": "sse", "url": "https://b.example/sse", "headers": {"Authorization": "s3cret"}}}}"#;
    for name in ["servers.json", "servers.JSON", "servers", "servers.toml"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        let (output, exit) = check_with(&file, &env);
        assert_eq!(exit, Exit::Ok, "{output}");
        assert!(!output.contains("s3cret"), "{output}");
        assert!(output.contains("# [redacted] stands for what is left out"), "{output}");
        assert!(output.contains("# warning: mcpServers.\"b c\": has the name b-c here"), "{output}");
        let again = dir.path().join("again.toml");
        fs::write(&again, &output).unwrap();
        let loaded = load_file(&again, &env).unwrap();
        assert_eq!(loaded.config.upstreams[1].transport, HttpTransport::Sse);
        assert!(output.ends_with(&loaded.config.to_redacted_toml()), "{output}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("servers.json");
    fs::write(&file, "{\"mcpServers\": {\"a\": {\"args\": []}}}").unwrap();
    let (output, exit) = check(&file);
    assert_eq!(exit, Exit::Usage);
    assert!(output.contains("servers.json: mcpServers.a.url: missing; accepted: "), "{output}");
}

#[test]
fn relative_names_are_relative_to_the_file() {
    let (dir, file) =
        place(&with("ca_files = ['tls/company-ca.pem']\nheaders = { x = 'file:secrets/authorization' }"));
    let upstream = load_file(&file, &env).unwrap().config.upstreams.remove(0);
    assert_eq!(upstream.ca_files, [dir.path().join("tls/company-ca.pem")]);
    assert_eq!(upstream.headers[0].1.expose(), "Bearer s3cret");
}

#[test]
fn files_that_do_not_serve_are_refused() {
    for (lines, path, part) in [
        ("ca_files = ['none.pem']", "upstream.api.ca_files[0]", "none.pem"),
        ("ca_files = ['janus.toml']", "upstream.api.ca_files[0]", "no certificate in it"),
        ("ca_files = ['tls/server.key']", "upstream.api.ca_files[0]", "no certificate in it"),
        ("headers = { x = 'file:none' }", "upstream.api.headers.x", "none"),
        ("headers = { x = 'file:janus.toml' }", "upstream.api.headers.x", "cannot stand in a header"),
        ("authorization = { value = 'file:none' }", "upstream.api.authorization.value", "none"),
        ("session.key = 'file:none'", "upstream.api.session.key", "none"),
        ("session.key = 'file:secrets/authorization'", "upstream.api.session.key", "no such key"),
        ("[listen.tls]\ncertificate = 'tls/server.crt'", "listen.tls.key", "missing"),
        (
            "[listen.tls]\ncertificate = 'tls/server.key'\nkey = 'tls/server.key'",
            "listen.tls.certificate",
            "no certificate",
        ),
        (
            "[listen.tls]\ncertificate = 'tls/server.crt'\nkey = 'tls/server.crt'",
            "listen.tls.key",
            "private key",
        ),
    ] {
        let error = refusal(&with(lines));
        assert!(error.starts_with(&format!("{path}: ")), "{path}: {error}");
        assert!(error.contains(part) && error.contains("accepted: "), "{part}: {error}");
    }
}

#[test]
fn secret_files_are_bounded_and_never_shown() {
    let (dir, file) = place(&with("headers = { x = 'file:big' }"));
    for content in
        ["s3cret".repeat(4000), "s3cret\nmore".to_owned(), "s3cret\u{fc}".to_owned(), "\n".to_owned()]
    {
        fs::write(dir.path().join("big"), content).unwrap();
        let error = load_file(&file, &env).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
}

/// What stands for it in the output is no key, so that nobody seals sessions with it by mistake.
#[test]
fn a_session_key_comes_from_a_file_or_the_environment_and_is_never_shown() {
    for from in ["file:secrets/session-key", "${KEY}"] {
        let (dir, file) = place(&with(&format!("session.key = '{from}'")));
        let env = |name: &str| (name == "KEY").then(|| SESSION_KEY.to_owned());
        let config = load_file(&file, &env).unwrap().config;
        let key = config.upstreams[0].session.key.as_ref().unwrap();
        assert_eq!(key.expose(), b"01234567890123456789012345678901");
        let (output, exit) = check_with(&file, &env);
        assert_eq!(exit, Exit::Ok);
        assert!(output.contains("key = \"[redacted]\""), "{output}");
        assert!(!format!("{output}{config:?}").contains("MDEy"), "{output}");
        let again = dir.path().join("again.toml");
        fs::write(&again, output).unwrap();
        let error = load_file(&again, &env).unwrap_err().to_string();
        assert!(error.starts_with("upstream.api.session.key: [redacted] is not accepted"), "{error}");
    }
}

#[test]
fn check_prints_every_setting_and_no_secret() {
    let text = "[upstream.api]\nurl = 'https://a.example/mcp?key=s3cret'\n\
                headers = { X-Key = '${SEARCH_API_KEY}', X-Other = 'file:secrets/authorization' }\n\
                authorization = { value = 'file:secrets/authorization' }\n\
                session.affinity = 'meta:$${a}'\n[listen.tls]\ncertificate = 'tls/server.crt'\nkey = 'tls/server.key'\n";
    let (_dir, file) = place(text);
    let loaded = load_file(&file, &env).unwrap();
    let (output, exit) = check_with(&file, &env);
    assert_eq!(exit, Exit::Ok);
    for shown in [&output, &format!("{loaded:?}").replace("key=s3cret", "")] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    for part in ["x-key = \"[redacted]\"", "value = \"[redacted]\"", "mcp?[redacted]", "hold = \"500ms\""] {
        // The keys of `headers` are quoted.
        assert!(output.replace("\"x-key\"", "x-key").contains(part), "{part} is not in {output}");
    }
    let (_dir, file) = place("[upstream.a]\nurl = 'http://a.example/'");
    assert!(check(&file).0.contains("\n# warning: upstream.a.url: plain http"));
}

#[test]
fn what_check_prints_loads_again() {
    let full = "shutdown_grace = '0s'\nera_cache_file = 'era.json'\nadmin.address = '[::1]:9464'\n\
                [upstream.a]\nurl = 'builtin:demo'\nauthorization = 'strip'\nsession.affinity = 'meta:$${a}'\n\
                [upstream.b]\nurl = 'http://[::1]:3000/mcp?key=x'\nheaders = { x = 'y' }\nforward_headers = ['z']\n\
                era = 'legacy'\nauthorization = { value = 'Basic abc' }\nca_files = ['tls/company-ca.pem']\n\
                session = { affinity = 'header:q', scope = 'request', max_per_key = 3, max_age = '2h', \
                replay_events = 8, replay_bytes = '8KiB', replay = '9s', poll = '10s', log_level = 'notice' }\n\
                interactive = false\n\
                legacy_clients = false\nconvert_content = ['2025-06-18']\nlegacy_not_found = false\ncache_lists = true\n\
                limits = { rounds = 2, questions = 3, waiting_calls = 4, polls = 5, cache_bytes = '1MiB', \
                catalog_tools = 6, catalogs = 7, resources = 8 }\n\
                timeouts = { gather = '1ms', answer = '1h', attribute = '1s', url = '0s', replay = '0s', pace = '2s' }\n\
                [limits]\nparked = 5\nparked_per_principal = 4\nreplay_bytes = 0\n\
                [listen]\nallowed_hosts = ['a']\nallowed_origins = ['*']\n\
                tls = { certificate = 'tls/server.crt', key = 'tls/server.key' }\n";
    let (dir, file) = place(full);
    let first = load_file(&file, &env).unwrap().config.to_redacted_toml();
    let again = dir.path().join("again.toml");
    fs::write(&again, &first).unwrap();
    assert!(first.contains("[admin]\naddress = \"[::1]:9464\""), "{first}");
    for set in [
        "interactive = false",
        "answer = \"1h\"",
        "replay_bytes = \"0B\"",
        "max_per_key = 3",
        "rounds = 2",
        "legacy_clients = false",
        "convert_content = [\"2025-06-18\"]",
        "legacy_not_found = false",
        "cache_lists = true",
        "pace = \"2s\"",
        "polls = 5",
        "cache_bytes = \"1MiB\"",
        "catalog_tools = 6",
        "catalogs = 7",
        "resources = 8",
        "max_age = \"2h\"",
        "replay_events = 8",
        "replay_bytes = \"8KiB\"",
        "replay = \"9s\"",
        "poll = \"10s\"",
        "log_level = \"notice\"",
    ] {
        assert!(first.contains(set), "{set} is not in {first}");
    }
    assert_eq!(load_file(&again, &env).unwrap().config.to_redacted_toml(), first);
}

#[test]
fn check_refuses_with_64_and_names_the_file() {
    let (_dir, file) = place(&with("era = 'old'"));
    let (output, exit) = check(&file);
    assert_eq!(exit, Exit::Usage);
    assert!(output.contains(&file.display().to_string()), "{output}");
    assert!(output.contains("upstream.api.era: \"old\" is not accepted; accepted: \"auto\""), "{output}");
    let (output, exit) = check(Path::new("no/such/file.toml"));
    assert_eq!(exit, Exit::Usage);
    assert!(output.contains("no/such/file.toml") && output.contains("accepted: "), "{output}");
}

#[test]
fn unwise_settings_are_told() {
    for (text, path) in [
        ("[upstream.a]\nurl = 'http://a.example/mcp'", "upstream.a.url"),
        ("[upstream.a]\nurl = 'http://127.0.0.1/'\nca_files = ['tls/company-ca.pem']", "upstream.a.ca_files"),
        (
            "[upstream.a]\nurl = 'builtin:demo'\nsession = { scope = 'request', affinity = 'header:x' }",
            "upstream.a.session.affinity",
        ),
        (
            "[upstream.a]\nurl = 'builtin:demo'\nsession = { scope = 'request', max_per_key = 2 }",
            "upstream.a.session.max_per_key",
        ),
        (
            "[upstream.a]\nurl = 'builtin:demo'\nsession = { max = 1, max_per_key = 2 }",
            "upstream.a.session.max_per_key",
        ),
        ("[limits]\nparked = 1\n[upstream.a]\nurl = 'builtin:demo'", "limits.parked_per_principal"),
        ("[admin]\naddress = '0.0.0.0:9464'\n[upstream.a]\nurl = 'builtin:demo'", "admin.address"),
        (
            "[upstream.a]\nurl = 'builtin:demo'\nera = 'modern'\nsession = { shield = true }",
            "upstream.a.session.shield",
        ),
        (
            "[upstream.a]\nurl = 'builtin:demo'\ntimeouts = { reconnect = '1m' }",
            "upstream.a.timeouts.reconnect_max",
        ),
        (
            "[upstream.a]\nurl = 'builtin:demo'\nlimits = { message_bytes = '32KiB' }",
            "upstream.a.limits.flow_bytes",
        ),
        ("[upstream.a]\nurl = 'builtin:demo'\nera = 'legacy'\ncache_lists = true", "upstream.a.cache_lists"),
        (
            "[upstream.a]\nurl = 'builtin:demo'\nera = 'legacy'\nsession = { key = 'file:secrets/session-key' }",
            "upstream.a.session.key",
        ),
        (
            "[upstream.a]\nurl = 'builtin:demo'\nlegacy_clients = false\nsession = { key = 'file:secrets/session-key' }",
            "upstream.a.session.key",
        ),
        ("[upstream.a]\nurl = 'builtin:demo'\nsession = { max_age = '2h' }", "upstream.a.session.max_age"),
        (
            "[upstream.a]\nurl = 'builtin:demo'\nconvert_content = ['2025-06-18']",
            "upstream.a.convert_content",
        ),
        ("[listen]\nallowed_origins = ['*']\n[upstream.a]\nurl = 'builtin:demo'", "listen.allowed_origins"),
    ] {
        let warnings = load(text).warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with(&format!("{path}: ")), "{warnings:?}");
    }
    // Not the same address, and yet only one of them can have the port.
    let twice = "[listen]\naddress = '0.0.0.0:9464'\n[admin]\naddress = '127.0.0.1:9464'\n[upstream.a]\nurl = 'builtin:demo'";
    assert!(load(twice).warnings.iter().any(|warning| warning.starts_with("admin.address: the same port")));
    let open = "[listen]\naddress = '0.0.0.0:1'\n[upstream.a]\nurl = 'builtin:demo'\nauthorization = { value = 'x' }";
    assert_eq!(load(open).warnings.len(), 3);
    for url in [
        "https://a.example/",
        "http://localhost:1/",
        "http://LOCALHOST/",
        "http://[::1]/",
        "http://127.9.9.9/",
    ] {
        assert_eq!(load(&format!("[upstream.a]\nurl = '{url}'")).warnings, Vec::<String>::new(), "{url}");
    }
}

#[test]
fn an_upstream_comes_from_its_url_alone() {
    let upstream = Upstream::for_url("http://127.0.0.1:3000/mcp").unwrap();
    let config = Config::single(upstream);
    let file = load("[upstream.default]\nurl = 'http://127.0.0.1:3000/mcp'").config;
    assert_eq!(config.to_redacted_toml(), file.to_redacted_toml());
    assert_eq!(Upstream::for_url("builtin:demo").unwrap().target, Target::Demo);
    let error = Upstream::for_url("mcp").unwrap_err().to_string();
    assert!(error.starts_with("URL: \"mcp\" is not accepted; accepted: an http://"), "{error}");
}
