//! `configs/janus.toml` tells the truth: it loads, names every setting there is, and shows the defaults.
//!
//! Here and not in `tests/`, because the list of settings is taken from the raw structs themselves.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor, value};

use super::load::load_text;
use super::raw;

const EXPLAINED: &str = include_str!("../../configs/janus.toml");
const MINIMAL: &str = "[upstream.default]\nurl = \"http://127.0.0.1:3000/mcp\"\n";

/// Settings that stay off unless set, so the file can only show them as comments.
const WITHOUT_DEFAULT: &[&str] = &[
    "era_cache_file",
    "admin",
    "admin.address",
    "listen.tls",
    "listen.tls.certificate",
    "listen.tls.key",
    "upstream.default.sse_endpoint",
    "upstream.default.sse_path",
    "upstream.files.command",
    "upstream.files.args",
    "upstream.files.env",
    "upstream.files.inherit_env",
    "upstream.files.cwd",
    "upstream.default.session.affinity",
    "upstream.default.session.key",
];

#[test]
fn the_values_shown_are_the_defaults() {
    let shown = load(EXPLAINED);
    let default = load(MINIMAL);
    assert_eq!(format!("{:#?}", shown.config), format!("{:#?}", default.config));
    assert_eq!(shown.warnings, Vec::<String>::new());
}

#[test]
fn every_setting_is_mentioned() {
    let active: toml::Value = toml::from_str(EXPLAINED).unwrap();
    let all: toml::Value = toml::from_str(&uncommented()).unwrap();
    for setting in all_settings() {
        assert!(find(&all, &setting).is_some(), "configs/janus.toml does not mention {setting}");
        let optional = WITHOUT_DEFAULT.contains(&setting.as_str());
        assert_eq!(find(&active, &setting).is_none(), optional, "{setting}: set, or a comment?");
    }
}

#[test]
fn the_commented_settings_are_right_too() {
    let dir = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::create_dir(dir.path().join("tls")).unwrap();
    std::fs::write(dir.path().join("tls/server.crt"), certified.cert.pem()).unwrap();
    std::fs::write(dir.path().join("tls/server.key"), certified.signing_key.serialize_pem()).unwrap();
    std::fs::create_dir(dir.path().join("secrets")).unwrap();
    std::fs::write(dir.path().join("secrets/session-key"), "0".repeat(64) + "\n").unwrap();
    std::fs::write(dir.path().join("secrets/token"), "t0ken\n").unwrap();
    std::fs::create_dir(dir.path().join("files")).unwrap();
    let env = |name: &str| (name == "SEARCH_API_KEY").then(|| "k3y".to_owned());
    let config = load_text(&uncommented(), dir.path(), &env).unwrap().config;
    assert!(config.listen.tls.is_some());
    assert!(config.admin.is_some());
    assert!(config.era_cache_file.is_some());
    assert!(config.upstreams[0].session.affinity.is_some());
    assert!(config.upstreams[0].session.key.is_some());
    assert!(config.upstreams[0].sse_endpoint.is_some() && config.upstreams[0].sse_path.is_some());
    let super::Target::Command(command) = &config.upstreams[1].target else { panic!("not a command") };
    let env: Vec<_> = command.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, [("API_KEY", "k3y"), ("LOG_LEVEL", "info"), ("TOKEN", "t0ken")]);
    assert_eq!(command.cwd, Some(dir.path().join("files")));
}

fn load(text: &str) -> super::Loaded {
    load_text(text, Path::new(""), &|_| None).unwrap_or_else(|error| panic!("{error}"))
}

/// The file with every commented setting (`#name = ...`, `#[table]`) in force; prose has a blank after the `#`.
fn uncommented() -> String {
    let is_setting = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
    EXPLAINED
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| is_setting(rest)).unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

fn find<'v>(file: &'v toml::Value, path: &str) -> Option<&'v toml::Value> {
    path.split('.').try_fold(file, |value, key| value.get(key))
}

/// Those of a server that is a program are explained in a table of their own.
fn all_settings() -> Vec<String> {
    const OF_COMMANDS: &[&str] = &["command", "args", "env", "inherit_env", "cwd"];
    let table = |table: &str, name: &str| match table {
        "upstream.default." if OF_COMMANDS.contains(&name) => "upstream.files.".to_owned(),
        other => other.to_owned(),
    };
    [
        ("", fields::<raw::File>()),
        ("listen.", fields::<raw::Listen>()),
        ("listen.tls.", fields::<raw::Tls>()),
        ("admin.", fields::<raw::Admin>()),
        ("limits.", fields::<raw::Limits>()),
        ("timeouts.", fields::<raw::FrontTimeouts>()),
        ("log.", fields::<raw::Log>()),
        ("upstream.default.", fields::<raw::Upstream>()),
        ("upstream.default.timeouts.", fields::<raw::UpstreamTimeouts>()),
        ("upstream.default.limits.", fields::<raw::UpstreamLimits>()),
        ("upstream.default.session.", fields::<raw::Session>()),
        ("upstream.default.schema.", fields::<raw::Schema>()),
    ]
    .into_iter()
    .flat_map(|(table, names)| names.iter().map(move |name| (table, name)))
    .map(|(of, name)| table(of, name) + name)
    .collect()
}

/// The names that a struct tells its deserializer.
fn fields<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    struct Names<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Names<'_> {
        type Error = value::Error;

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            Err(Self::Error::custom("seen"))
        }

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(Self::Error::custom("not a struct"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut names: &'static [&'static str] = &[];
    // The error is how the visit ends.
    let _ = T::deserialize(Names(&mut names));
    assert!(!names.is_empty());
    names
}
