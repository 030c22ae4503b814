//! The file in which hosts keep their servers: `{"mcpServers": {"name": {"command": ...} | {"url": ...}}}`.
//!
//! Owns what an entry is in terms of our own settings, so that both go through the same checks and an error names the entry's
//! path, and what becomes of names that ours cannot be. Everything that such a file does not say is as by default. Does not
//! own the reading of JSON (`json`).

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::error::ConfigError;
use super::load::{Loaded, dir_of, read, single};
use super::raw::{self, Leaf};
use super::substitute::{Env, Spelling, below, substitute};
use super::{flags, front, json};

/// The names under which the servers are: that of most hosts, and that of VS Code.
const ROOTS: [&str; 2] = ["mcpServers", "servers"];
/// Longer names are cut.
const NAME_CHARS: usize = 64;

/// Reads such a file. Relative file names in it are relative to the file's own directory.
pub fn load_mcp_servers(path: &Path, env: Env<'_>) -> Result<Loaded, ConfigError> {
    load_over(raw::File::default(), path, None, env)
}

/// One server of such a file, for a process that serves a single client on its standard input and output. Without a name the
/// file must hold one only.
pub fn load_mcp_server(path: &Path, server: Option<&str>, env: Env<'_>) -> Result<Loaded, ConfigError> {
    let mut loaded = load_over(raw::File::default(), path, server, env)?;
    single(&mut loaded.config, None)?;
    Ok(loaded)
}

/// The same with settings of the front, which the flags that go with it stand for, and of one server alone if one is named.
pub(super) fn load_over(
    front: raw::File,
    path: &Path,
    only: Option<&str>,
    env: Env<'_>,
) -> Result<Loaded, ConfigError> {
    load_text(front, &read(path)?, dir_of(path), only, env)
}

pub(super) fn load_text(
    mut front: raw::File,
    text: &str,
    dir: &Path,
    only: Option<&str>,
    env: Env<'_>,
) -> Result<Loaded, ConfigError> {
    let (root, servers) = servers(text)?;
    let mut file = Entries { root, names: BTreeMap::new(), warnings: Vec::new() };
    let chosen = file.choose(servers, only)?;
    for (name, entry) in chosen {
        let at = below("upstream", &name);
        let raw = entry_of(&at, &name, entry, &mut file, env)
            .map_err(|error| error.renamed(|path| file.path(path)))?;
        front.upstream.insert(name, raw);
    }
    let config = front::config(&front, dir).map_err(|error| error.renamed(|path| file.path(path)))?;
    let mut warnings = std::mem::take(&mut file.warnings);
    warnings.extend(flags::warned(&config, env, |path| file.path(path)));
    Ok(Loaded { config, warnings })
}

/// The object of servers, and where it is.
fn servers(text: &str) -> Result<(&'static str, Table), ConfigError> {
    let Value::Table(mut file) = json::parse(text)? else { return Err(no_servers()) };
    let mut found = ROOTS.into_iter().filter_map(|root| Some((root, file.remove(root)?)));
    match (found.next(), found.next()) {
        (Some((root, Value::Table(servers))), None) => Ok((root, servers)),
        (Some((root, other)), None) => {
            let value = format!("a value of type {}", other.type_str());
            Err(ConfigError::Value { path: root.to_owned(), value, accepted: SERVERS.to_owned() })
        }
        (Some(_), Some((root, _))) => {
            let accepted = format!("either \"{}\" or \"{root}\", not both", ROOTS[0]);
            Err(ConfigError::Value { path: root.to_owned(), value: "an object".to_owned(), accepted })
        }
        (None, _) => Err(no_servers()),
    }
}

const SERVERS: &str = "an object of servers, each of which is an object with a `command` or a `url`";

fn no_servers() -> ConfigError {
    ConfigError::missing(ROOTS[0], SERVERS)
}

/// The entries of one file, while they are read.
struct Entries {
    root: &'static str,
    /// By the name that it has here: the name in the file, and what its transport is set by.
    names: BTreeMap<String, (String, &'static str)>,
    warnings: Vec<String>,
}

impl Entries {
    fn at(&self, name: &str) -> String {
        below(self.root, name)
    }

    /// The servers to serve, under the names that they have here.
    fn choose(&mut self, servers: Table, only: Option<&str>) -> Result<Vec<(String, Table)>, ConfigError> {
        let all: Vec<String> = servers.keys().map(|name| super::error::quoted(name)).collect();
        let mut chosen = Vec::new();
        for (name, entry) in servers {
            let mapped = mapped(&name);
            if only.is_some_and(|only| only != name && only != mapped) {
                continue;
            }
            let at = self.at(&name);
            let Value::Table(entry) = entry else {
                let value = format!("a value of type {}", entry.type_str());
                return Err(ConfigError::Value { path: at, value, accepted: SERVER.to_owned() });
            };
            if entry.get("disabled").and_then(Value::as_bool) == Some(true) && only.is_none() {
                self.warnings.push(format!("{at}: disabled, so left out"));
                continue;
            }
            if mapped.is_empty() {
                return Err(ConfigError::value(&at, &Value::String(name), "a name that is not empty"));
            }
            if let Some((other, _)) = self.names.get(&mapped) {
                let accepted =
                    format!("a name that does not come to {mapped} as that of {} does", self.at(other));
                return Err(ConfigError::value(&at, &Value::String(name), accepted));
            }
            if mapped != name {
                self.warnings.push(format!("{at}: has the name {mapped} here"));
            }
            self.names.insert(mapped.clone(), (name, "type"));
            chosen.push((mapped, entry));
        }
        match only {
            Some(only) if chosen.is_empty() => Err(ConfigError::value(
                flags::SERVER,
                &Value::String(only.to_owned()),
                format!("one of {}", all.join(", ")),
            )),
            _ if chosen.is_empty() => {
                Err(ConfigError::missing(self.root, "one server at least that is not disabled"))
            }
            _ => Ok(chosen),
        }
    }

    /// The place in the file that a setting of ours stands for, or the flag.
    fn path(&self, path: &str) -> String {
        for (name, (given, kind)) in &self.names {
            let Some(rest) = path.strip_prefix(&below("upstream", name)) else { continue };
            let entry = self.at(given);
            match rest.strip_prefix('.') {
                None if rest.is_empty() => return entry,
                None => {}
                Some("transport") => return below(&entry, kind),
                Some("authorization.value") => return format!("{entry}.headers.Authorization"),
                Some(setting) => return format!("{entry}.{setting}"),
            }
        }
        flags::flag(path, "url")
    }
}

const SERVER: &str = "an object with a `command` or a `url`";

/// A name that an upstream can have.
fn mapped(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.chars().map(|c| if fits(c) { c } else { '-' }).take(NAME_CHARS).collect()
}

/// One entry as settings of ours.
fn entry_of(
    at: &str,
    name: &str,
    mut entry: Table,
    file: &mut Entries,
    env: Env<'_>,
) -> Result<raw::Upstream, ConfigError> {
    entry.remove("disabled");
    // Written by the forms of hosts, whatever the server is.
    entry.retain(|key, value| !(["args", "env", "headers"].contains(&key) && is_empty(value)));
    let mut take = |key: &str| -> Result<Leaf, ConfigError> {
        let Some(mut value) = entry.remove(key) else { return Ok(None) };
        substitute(&below(at, key), &mut value, Spelling::Hosts, env)?;
        Ok(Some(value))
    };
    let (authorization, headers) = split(take("headers")?);
    let mut raw = raw::Upstream {
        path: Some(Value::String(format!("/{name}/mcp"))),
        url: take("url")?,
        command: take("command")?,
        args: take("args")?,
        env: take("env")?.map(texts),
        cwd: take("cwd")?,
        authorization,
        headers,
        ..raw::Upstream::default()
    };
    let (kind, transport) = (take("type")?, take("transport")?);
    raw.transport = transport_of(at, &raw, kind, transport, name, file)?;
    if !entry.is_empty() {
        let unknown: Vec<_> = entry.keys().map(|key| super::error::quoted(key)).collect();
        let at = file.path(at);
        file.warnings.push(format!("{at}: of no effect here: {}", unknown.join(", ")));
    }
    Ok(raw)
}

fn is_empty(value: &Value) -> bool {
    value.as_table().is_some_and(Table::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// Numbers and truths are texts for a program.
fn texts(env: Value) -> Value {
    let Value::Table(mut table) = env else { return env };
    for (_, value) in table.iter_mut() {
        if let Value::Integer(_) | Value::Float(_) | Value::Boolean(_) = value {
            *value = Value::String(value.to_string());
        }
    }
    Value::Table(table)
}

/// A credential among headers is a setting of its own here.
fn split(headers: Leaf) -> (Leaf, Leaf) {
    let Some(Value::Table(mut table)) = headers else { return (None, headers) };
    let credential = table.keys().find(|name| name.eq_ignore_ascii_case("authorization")).cloned();
    let value = credential.and_then(|name| table.remove(&name));
    let authorization = value.map(|value| Value::Table(Table::from_iter([("value".to_owned(), value)])));
    (authorization, (!table.is_empty()).then_some(Value::Table(table)))
}

/// What `type` says, or `transport`, which some hosts have in its place.
fn transport_of(
    at: &str,
    raw: &raw::Upstream,
    kind: Leaf,
    transport: Leaf,
    name: &str,
    file: &mut Entries,
) -> Result<Leaf, ConfigError> {
    let differ = matches!((&kind, &transport), (Some(kind), Some(transport)) if kind != transport);
    let key = if differ || kind.is_none() { "transport" } else { "type" };
    if let Some((_, kind)) = file.names.get_mut(name) {
        *kind = key;
    }
    let at = format!("{at}.transport");
    let given = if differ { transport } else { kind.or(transport) };
    let Some(given) = given else { return Ok(None) };
    if differ {
        return Err(ConfigError::value(&at, &given, "the same as `type`, or one of the two alone"));
    }
    let word = given.as_str().unwrap_or_default().to_ascii_lowercase().replace(['-', '_'], "");
    let ours = match (word.as_str(), &raw.url, &raw.command) {
        ("stdio", None, _) => None,
        // Hosts that say so try the old transport as well.
        ("http", _, None) => Some("auto"),
        ("streamablehttp", _, None) => Some("streamable-http"),
        ("sse", _, None) => Some("sse"),
        _ => {
            let accepted = match &raw.url {
                Some(_) => "\"http\", \"streamable-http\" or \"sse\" for a server with a `url`",
                None => "\"stdio\" for a server with a `command`",
            };
            return Err(ConfigError::value(&at, &given, accepted));
        }
    };
    Ok(ours.map(|word| Value::String(word.to_owned())))
}
