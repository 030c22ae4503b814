//! The command line: which commands and flags there are, and how the program ends.
//!
//! Owns parsing, help, exit codes, and `check`, which needs nothing but the settings. Does not own what flags mean as
//! settings (`config`), nor the running of `serve`, `probe` and `demo` (`app`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Termination};

use clap::{ArgGroup, Args, Parser, Subcommand};

use crate::config::{
    Config, ConfigError, Loaded, Log, LogFlags, ProbeFlags, ServeFlags, from_flags, load_file,
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
    /// Be a stdio server for a host that launches this program (comes in a later version)
    #[command(disable_help_flag = true)]
    Stdio {
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Find out a server's generation, versions and capabilities
    Probe(ProbeFlags),
    /// Check a file of settings and print them in full, without secrets
    Check {
        /// A TOML file
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
#[command(group(ArgGroup::new("source").args(["config", "upstream", "command"]).required(true)))]
pub struct ServeArgs {
    /// TOML file with all settings; excludes all flags but those about the log
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub flags: ServeFlags,
    /// After `--`: a stdio server to start and stand in front of (comes in a later version)
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The command line of this process. Help, version and errors are printed here; the caller ends with the exit given.
pub fn parse() -> Result<Cli, Exit> {
    let cli = Cli::try_parse().map_err(|error| {
        // Nobody is left to tell when the terminal is gone.
        let _ = error.print();
        exit_of(&error)
    })?;
    match later(&cli.command) {
        Some(text) => {
            eprintln!("mcp-janus: {text}");
            Err(Exit::Usage)
        }
        None => Ok(cli),
    }
}

/// The same for arguments given, of which the first is the program's name; prints nothing.
pub fn parse_from<I, T>(args: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    Cli::try_parse_from(args)
}

/// Help and version are answers; everything else is a wrong command line.
pub fn exit_of(error: &clap::Error) -> Exit {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Ok,
        _ => Exit::Usage,
    }
}

/// What to answer to a command that is known, but not yet there.
pub fn later(command: &Command) -> Option<&'static str> {
    match command {
        Command::Stdio { .. } => Some(
            "stdio: comes in a later version; accepted: `serve --upstream URL`, with the host configured for HTTP",
        ),
        Command::Serve(serve) if !serve.command.is_empty() => Some(
            "serve -- COMMAND: stdio servers come in a later version; accepted: `serve --upstream URL` with a server \
             that speaks HTTP",
        ),
        Command::Serve(_) | Command::Probe(_) | Command::Check { .. } | Command::Demo { .. } => None,
    }
}

impl ServeArgs {
    /// The settings, from the file or from the flags, with the flags about the log over them.
    pub fn load(&self, log: &LogFlags, env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, ConfigError> {
        let mut loaded = match &self.config {
            Some(file) => load_file(file, env)?,
            None => from_flags(&self.flags)?,
        };
        loaded.config.log = log.over(&loaded.config.log)?;
        Ok(loaded)
    }
}

impl Cli {
    /// How commands other than `serve` log: only what matters, as they print on their own.
    pub fn log_of_tool(&self) -> Result<Log, ConfigError> {
        self.log.over(&Log { level: "warn".to_owned(), ..Log::default() })
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
    match load_file(file, env) {
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
    text.push_str(&config.to_redacted_toml());
    text
}
