//! The command line: which commands and flags there are, and how the program ends.
//!
//! Owns parsing, help, exit codes, and `check`, which needs nothing but the settings. Does not own what flags mean as
//! settings (`config`), nor the running of `serve`, `stdio`, `probe` and `demo` (`app`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Termination};

use clap::error::ContextKind;
use clap::{ArgGroup, Args, Parser, Subcommand};

use crate::config::{
    Config, ConfigError, Loaded, Log, LogFlags, ProbeFlags, ServeFlags, UpstreamFlags, from_flags,
    from_mcp_servers, from_stdio_flags, load_any, load_file, load_mcp_server, load_one,
};

/// How the program ends; what a caller's script may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    /// Something failed at run time: a port in use, a server that cannot be reached.
    Failure = 1,
    /// The command line or the settings are wrong; nothing was started (`EX_USAGE` of sysexits).
    Usage = 64,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        self.into()
    }
}

/// Lets MCP clients and MCP servers of different generations work together.
#[derive(Debug, Parser)]
#[command(
    name = "mcp-janus",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Exit codes: 0 success; 1 failure while running; 64 wrong command line or settings."
)]
pub struct Cli {
    #[command(flatten)]
    pub log: LogFlags,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Listen for clients and pass their calls to MCP servers
    Serve(Box<ServeArgs>),
    /// Be the stdio server that a host launches, and pass its messages to one MCP server
    Stdio(Box<StdioArgs>),
    /// Find out a server's generation, versions and capabilities, and what is wrong with its tools' schemas
    Probe(ProbeFlags),
    /// Check a file of settings and print them in full, without secrets
    Check {
        /// A TOML file, or the JSON file of a host with its "mcpServers"
        file: PathBuf,
    },
    /// Show clients and servers of different generations talk through the proxy, in both directions, all in this program
    Demo {
        /// Print all HTTP headers, not only the telling ones
        #[arg(long, short)]
        verbose: bool,
    },
}

/// Where the settings come from: a file, or flags.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").args(["config", "mcp_servers", "upstream", "command"]).required(true)))]
pub struct ServeArgs {
    /// TOML file with all settings; excludes all flags but those about the log
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// JSON file of a host with its "mcpServers": each of them is served at /NAME/mcp
    #[arg(long, value_name = "FILE")]
    pub mcp_servers: Option<PathBuf>,
    #[command(flatten)]
    pub flags: ServeFlags,
    /// After `--`: a stdio server to start and stand in front of
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Which one server the host's messages go to.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").args(["config", "mcp_servers", "upstream", "command"]).required(true)))]
pub struct StdioArgs {
    /// TOML file with all settings, of one server
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// JSON file of a host with its "mcpServers"
    #[arg(long, value_name = "FILE")]
    pub mcp_servers: Option<PathBuf>,
    /// Which server of the file, if it has several
    #[arg(long, value_name = "NAME", conflicts_with_all = ["upstream", "command"])]
    pub server: Option<String>,
    #[command(flatten)]
    pub flags: UpstreamFlags,
    /// After `--`: a stdio server to start and stand in front of
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The command line of this process. Help, version and errors are printed here; the caller ends with the exit given.
pub fn parse() -> Result<Cli, Exit> {
    parse_from(std::env::args_os()).map_err(|error| {
        // Nobody is left to tell when the terminal is gone.
        let _ = error.print();
        exit_of(&error)
    })
}

/// The same for arguments given, of which the first is the program's name; prints nothing.
pub fn parse_from<I, T>(args: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    Cli::try_parse_from(args).map_err(|mut error| {
        // That what is mistyped can stand after `--`, where it would be a program to start.
        error.remove(ContextKind::Suggested);
        error
    })
}

/// Help and version are answers; everything else is a wrong command line.
pub fn exit_of(error: &clap::Error) -> Exit {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Ok,
        _ => Exit::Usage,
    }
}

impl ServeArgs {
    /// The settings, from the file or from the flags, with the flags about the log over them.
    pub fn load(&self, log: &LogFlags, env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, ConfigError> {
        let loaded = match (&self.config, &self.mcp_servers) {
            (Some(file), _) => load_file(file, env)?,
            (None, Some(file)) => from_mcp_servers(&self.flags, file, env)?,
            (None, None) => from_flags(&self.flags, &self.command, env)?,
        };
        with_log(loaded, log)
    }
}

impl StdioArgs {
    /// The settings, of exactly one upstream, with the flags about the log over them.
    pub fn load(&self, log: &LogFlags, env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, ConfigError> {
        let server = self.server.as_deref();
        let loaded = match (&self.config, &self.mcp_servers) {
            (Some(file), _) => load_one(file, server, env)?,
            (None, Some(file)) => load_mcp_server(file, server, env)?,
            (None, None) => from_stdio_flags(&self.flags, &self.command, env)?,
        };
        with_log(loaded, log)
    }
}

fn with_log(mut loaded: Loaded, log: &LogFlags) -> Result<Loaded, ConfigError> {
    loaded.config.log = log.over(&loaded.config.log)?;
    Ok(loaded)
}

impl Cli {
    /// How commands other than `serve` log: only what matters, as they print on their own.
    pub fn log_of_tool(&self) -> Result<Log, ConfigError> {
        let level = match self.command {
            // It prints all findings.
            Command::Probe(_) => "warn,mcp_janus::upstream::guard=error",
            Command::Serve(_) | Command::Stdio(_) | Command::Check { .. } | Command::Demo { .. } => "warn",
        };
        self.log.over(&Log { level: level.to_owned(), ..Log::default() })
    }
}

/// The environment of this process, as the loader wants it.
pub fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// `check`: the text to print (on standard error if the exit is not [`Exit::Ok`]) and the exit.
pub fn check(file: &Path) -> (String, Exit) {
    check_with(file, &process_env)
}

/// The same with another environment.
pub fn check_with(file: &Path, env: &dyn Fn(&str) -> Option<String>) -> (String, Exit) {
    match load_any(file, env) {
        Ok(Loaded { config, warnings }) => (accepted(file, &config, &warnings), Exit::Ok),
        Err(error @ ConfigError::Read { .. }) => (format!("mcp-janus: {error}\n"), Exit::Usage),
        Err(error) => (format!("mcp-janus: {}: {error}\n", file.display()), Exit::Usage),
    }
}

fn accepted(file: &Path, config: &Config, warnings: &[String]) -> String {
    let mut text = format!("# {}: accepted. All settings, secrets left out:\n", file.display());
    for warning in warnings {
        text.push_str(&format!("# warning: {warning}\n"));
    }
    let settings = config.to_redacted_toml();
    if settings.contains("[redacted]") {
        text.push_str("# [redacted] stands for what is left out, and has to be replaced before this can be used as a file.\n");
    }
    text.push_str(&settings);
    text
}
