//! What an upstream is: the URL of a server and how it is spoken to, or the command that starts one.
//!
//! Owns the validated command, which settings go with which of the two, and the checks of them. Does not own the grammar of URLs and paths
//! (`net`), nor the starting (`crate::net`).

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use toml::Value;

use super::error::{ConfigError, quoted};
use super::raw;
use super::secrets::env_value;
use super::substitute::below;
use super::values::{Table, text};
use super::{EraSetting, HttpTransport, Secret, Target, net};

/// `command`, `args`, `env`, `inherit_env` and `cwd`: a program to start. No shell reads any of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// A path, or a name that is looked for in `PATH`.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Variables set for it, over those that it inherits.
    pub env: Vec<(String, Secret)>,
    /// Names of variables of this process that it inherits besides the short list that every program needs (C57).
    pub inherit_env: Vec<String>,
    /// Where it runs; `None`: where this process runs.
    pub cwd: Option<PathBuf>,
}

impl Command {
    /// The program's name and a hash of what makes the command what it is: what is learnt of a server is kept under it, also in
    /// a file. Values in the environment are left out, because a hash of them would let whoever reads it try passwords, and
    /// another one makes no other server.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        add(self.program.as_encoded_bytes());
        // So that an argument is not taken for a variable.
        add(&(self.args.len() as u64).to_be_bytes());
        self.args.iter().for_each(|arg| add(arg.as_encoded_bytes()));
        self.env.iter().for_each(|(name, _)| add(name.as_bytes()));
        add(self.cwd.as_ref().map_or(&b""[..], |cwd| cwd.as_os_str().as_encoded_bytes()));
        let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = Path::new(&self.program).file_name().unwrap_or(&self.program);
        format!("stdio:{}:{hash}", name.to_string_lossy())
    }
}

/// Arguments may hold secrets as well.
impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &format_args!("{} of them", self.args.len()))
            .field("env", &self.env)
            .field("inherit_env", &self.inherit_env)
            .field("cwd", &self.cwd)
            .finish()
    }
}

const DEMO: &str = "builtin:demo";

/// `builtin:demo` or the URL of an endpoint.
pub(super) fn of_url(path: &str, value: &Value) -> Result<Target, ConfigError> {
    if value.as_str() == Some(DEMO) {
        return Ok(Target::Demo);
    }
    net::endpoint_url(path, value).map(Target::Http)
}

/// The target of one `[upstream.NAME]`; whatever else the table says goes with it.
pub(super) fn of(table: &Table<'_>, raw: &raw::Upstream) -> Result<Target, ConfigError> {
    match (&raw.url, &raw.command) {
        (Some(_), Some(value)) => {
            let accepted = "either `url` or `command`, not both";
            Err(ConfigError::value(&table.at("command"), value, accepted))
        }
        (None, None) => {
            let accepted = format!(
                "an http:// or https:// URL, \"{DEMO}\", or `command` with the program of a stdio server in its place"
            );
            Err(ConfigError::missing(&table.at("url"), accepted))
        }
        (Some(url), None) => {
            only(
                table,
                "command",
                [
                    ("args", &raw.args),
                    ("env", &raw.env),
                    ("inherit_env", &raw.inherit_env),
                    ("cwd", &raw.cwd),
                ],
            )?;
            of_url(&table.at("url"), url)
        }
        (None, Some(program)) => {
            only(
                table,
                "url",
                [
                    ("transport", &raw.transport),
                    ("sse_endpoint", &raw.sse_endpoint),
                    ("authorization", &raw.authorization),
                    ("headers", &raw.headers),
                    ("forward_headers", &raw.forward_headers),
                    ("ca_files", &raw.ca_files),
                ],
            )?;
            command(table, program, raw).map(Target::Command)
        }
    }
}

/// Refuses settings that mean something with another one alone.
fn only<const N: usize>(
    table: &Table<'_>,
    with: &str,
    settings: [(&str, &raw::Leaf); N],
) -> Result<(), ConfigError> {
    match settings.into_iter().find_map(|(key, leaf)| Some((key, leaf.as_ref()?))) {
        Some((key, value)) => {
            Err(ConfigError::value(&table.at(key), value, format!("only where the server has a `{with}`")))
        }
        None => Ok(()),
    }
}

/// `transport`, and what it excludes.
pub(super) fn transport(
    table: &Table<'_>,
    raw: &raw::Upstream,
    era: EraSetting,
) -> Result<HttpTransport, ConfigError> {
    const TRANSPORTS: &[(&str, HttpTransport)] = &[
        ("auto", HttpTransport::Auto),
        ("streamable-http", HttpTransport::StreamableHttp),
        ("sse", HttpTransport::Sse),
    ];
    let transport = table.word("transport", &raw.transport, HttpTransport::Auto, TRANSPORTS)?;
    if let (HttpTransport::Sse, EraSetting::Modern, Some(value)) = (transport, era, &raw.transport) {
        let accepted = "\"auto\" or \"streamable-http\" with era = \"modern\", as no modern server has the old transport";
        return Err(ConfigError::value(&table.at("transport"), value, accepted));
    }
    Ok(transport)
}

/// A path or URL below the origin of the target.
pub(super) fn sse_endpoint(
    table: &Table<'_>,
    raw: &raw::Upstream,
    target: &Target,
) -> Result<Option<String>, ConfigError> {
    const ACCEPTED: &str = "a path such as \"/messages\", or a URL of the same origin as `url`";
    let (at, Some(value)) = (table.at("sse_endpoint"), &raw.sse_endpoint) else { return Ok(None) };
    let given = text(&at, value, ACCEPTED)?;
    let clean =
        !given.is_empty() && !given.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#');
    let fits = match target {
        Target::Http(url) => url.join(given).is_ok_and(|joined| {
            joined.origin() == url.origin() && joined.username().is_empty() && joined.password().is_none()
        }),
        Target::Demo | Target::Command(_) => false,
    };
    if clean && fits { Ok(Some(given.to_owned())) } else { Err(ConfigError::value(&at, value, ACCEPTED)) }
}

fn command(table: &Table<'_>, program: &Value, raw: &raw::Upstream) -> Result<Command, ConfigError> {
    const ARGUMENT: &str = "a text, or a table with the one member `file`";
    Ok(Command {
        program: self::program(&table.at("command"), program, table.dir)?,
        args: table.list("args", &raw.args, ARGUMENT, |path, value| {
            env_value(path, value, table.dir).map(|secret| OsString::from(secret.expose()))
        })?,
        env: env(&table.at("env"), raw, table.dir)?,
        inherit_env: inherited(table, raw)?,
        cwd: cwd(table, raw)?,
    })
}

/// A relative path is one below the file's directory, wherever the program is to run. A name alone is looked for in `PATH`.
fn program(path: &str, value: &Value, dir: &Path) -> Result<OsString, ConfigError> {
    const ACCEPTED: &str =
        "the name of a program, or the path of one, without arguments; these go into `args`";
    let given = text(path, value, ACCEPTED)?;
    if given.trim().is_empty() || given.contains('\0') {
        return Err(ConfigError::value(path, value, ACCEPTED));
    }
    Ok(located(given.into(), dir))
}

/// The same for a program that is not from a file.
pub(super) fn located(program: OsString, dir: &Path) -> OsString {
    let named = Path::new(&program);
    let is_path = named.components().count() > 1 || program.to_string_lossy().contains('/');
    if !is_path || named.is_absolute() {
        return program;
    }
    let below = dir.join(named);
    // Fails only where this process has no directory of its own any more; starting then says what is wrong.
    std::path::absolute(&below).unwrap_or(below).into_os_string()
}

fn env(path: &str, raw: &raw::Upstream, dir: &Path) -> Result<Vec<(String, Secret)>, ConfigError> {
    let table = match &raw.env {
        None => return Ok(Vec::new()),
        Some(Value::Table(table)) => table,
        Some(other) => {
            return Err(ConfigError::value(path, other, "a table of names of variables and their values"));
        }
    };
    let variable = |(name, value): (&String, &Value)| {
        let at = below(path, name);
        if !is_variable(name) {
            return Err(ConfigError::value(&at, value, VARIABLE));
        }
        Ok((name.clone(), env_value(&at, value, dir)?))
    };
    table.iter().map(variable).collect()
}

fn inherited(table: &Table<'_>, raw: &raw::Upstream) -> Result<Vec<String>, ConfigError> {
    let mut names = table.list("inherit_env", &raw.inherit_env, VARIABLE, |path, value| {
        let name = text(path, value, VARIABLE)?;
        if is_variable(name) { Ok(name.to_owned()) } else { Err(ConfigError::value(path, value, VARIABLE)) }
    })?;
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

const VARIABLE: &str = "the name of an environment variable, not empty and without `=`";

fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn cwd(table: &Table<'_>, raw: &raw::Upstream) -> Result<Option<PathBuf>, ConfigError> {
    const ACCEPTED: &str = "a directory that exists";
    let (at, Some(value)) = (table.at("cwd"), &raw.cwd) else { return Ok(None) };
    let given = text(&at, value, ACCEPTED)?;
    if given.is_empty() || given.contains('\0') {
        return Err(ConfigError::value(&at, value, ACCEPTED));
    }
    let dir = table.dir.join(given);
    let refuse = |reason: String| ConfigError::File {
        path: at.clone(),
        file: dir.clone(),
        reason,
        accepted: ACCEPTED.to_owned(),
    };
    match std::fs::metadata(&dir) {
        Ok(found) if found.is_dir() => Ok(Some(dir)),
        Ok(_) => Err(refuse("it is no directory".to_owned())),
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// Why the program of a command cannot be run as things are now, if that can be told; `path` is the `PATH` of this process.
pub(super) fn unrunnable(command: &Command, path: Option<&str>) -> Option<String> {
    let program = Path::new(&command.program);
    let own = command.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.expose());
    let why = if command.program.to_string_lossy().contains('/') {
        match std::fs::metadata(program) {
            Ok(found) if found.is_file() => return None,
            Ok(_) => "is no file",
            Err(error) if error.kind() == ErrorKind::NotFound => "does not exist",
            // Whoever runs the proxy later may see it.
            Err(_) => return None,
        }
    } else {
        // Entries that are not absolute are seen from where it is to run.
        let at = |entry: PathBuf| command.cwd.as_ref().map_or_else(|| entry.clone(), |cwd| cwd.join(&entry));
        let is_in = |entry: PathBuf| at(entry).join(program).is_file();
        if !cfg!(unix) || std::env::split_paths(own.or(path)?).any(is_in) {
            return None;
        }
        "is in none of the directories of PATH"
    };
    let name = quoted(&command.program.to_string_lossy());
    let hint = if command.program.to_string_lossy().contains(char::is_whitespace) {
        "; arguments go into `args`, or follow as words of their own"
    } else {
        ""
    };
    Some(format!("{name} {why}{hint}"))
}
