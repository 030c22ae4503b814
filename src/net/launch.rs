//! Starting programs: the trait that turns a command into a running process with its three streams.
//!
//! Owns the seam alone, so that tests bring processes that are none. `process` is the real thing. Does not own what is said
//! over the streams, nor when a process is to end.

use futures_util::future::BoxFuture;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncWrite};

/// What to start: no shell reads any of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The whole environment of the process.
    pub env: Vec<(OsString, OsString)>,
    /// `None`: where this process runs.
    pub cwd: Option<PathBuf>,
}

/// Without arguments and the values in the environment, which may be secrets.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, args, env, cwd } = self;
        let env: Vec<_> = env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Program")
            .field("program", program)
            .field("args", &format_args!("{} of them", args.len()))
            .field("env", &env)
            .field("cwd", cwd)
            .finish()
    }
}

/// Turns a program into a process. Tests bring their own, in memory.
pub trait Launch: Send + Sync {
    fn launch<'a>(&'a self, program: &'a Program) -> BoxFuture<'a, io::Result<Launched>>;
}

pub type Reads = Box<dyn AsyncRead + Send + Unpin>;
pub type Writes = Box<dyn AsyncWrite + Send + Unpin>;

/// A process that runs.
pub struct Launched {
    pub stdin: Writes,
    pub stdout: Reads,
    pub stderr: Reads,
    pub process: Box<dyn Process>,
}

/// A process, towards whoever minds it.
pub trait Process: Send + Sync {
    /// For logs.
    fn id(&self) -> Option<u32>;

    /// Resolves when it has ended and has been reaped; in words, such as `exit status: 1`. Before that, what it has left behind
    /// in its group is ended (SIGKILL). Safe to drop and to call again.
    fn wait(&mut self) -> BoxFuture<'_, io::Result<String>>;

    /// Asks its whole group to end (SIGTERM).
    fn terminate(&self) -> io::Result<()>;

    /// Ends its whole group (SIGKILL). Nothing happens once it has been reaped: its number may be another's by then.
    fn kill(&self) -> io::Result<()>;
}
