//! The step between this process and a child's program, on Linux: the program `mcp-janus` runs once more, asks the kernel to
//! be killed when its parent dies, and becomes the child's program.
//!
//! Owns that step on both sides. It is there because the request can only be made from within the child, and running code of
//! ours between `fork` and `exec` cannot be had without `unsafe`. The kernel keeps the request across `exec`. Nothing is left
//! of this step in the process: not a file, not an environment variable. It takes about a millisecond. Case C55.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// The first argument of a program that is to be a launcher.
const MARK: &str = "__launch";

/// The file that this process runs, whatever has become of it on the disk since.
#[cfg(target_os = "linux")]
const THIS_PROGRAM: &str = "/proc/self/exe";

/// This program as a launcher; `None` where it has no use or cannot be reached.
pub(super) fn this_program() -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    if std::fs::metadata(THIS_PROGRAM).is_ok() {
        return Some(PathBuf::from(THIS_PROGRAM));
    }
    None
}

/// `found` by way of `launcher`; it sees `name` as its own name. Its arguments follow.
pub(super) fn command(launcher: &Path, found: &Path, name: &OsStr) -> Command {
    let mut command = Command::new(launcher);
    command.arg(MARK).arg(std::process::id().to_string()).arg(found).arg(name);
    command
}

/// To be called by `main` before anything else, with all arguments. If this process was started as a launcher, it becomes
/// the program, and this returns only where that fails, with the exit status; what was wrong is on standard error by then.
pub fn launched(args: impl IntoIterator<Item = OsString>) -> Option<i32> {
    let mut args = args.into_iter().skip(1);
    (args.next()? == MARK).then(|| become_program(args))
}

#[cfg(target_os = "linux")]
fn become_program(mut args: impl Iterator<Item = OsString>) -> i32 {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    use std::os::unix::process::CommandExt;

    let parent = args.next().and_then(|id| id.to_str()?.parse::<i32>().ok());
    let (Some(parent), Some(program), Some(name)) = (parent, args.next(), args.next()) else {
        eprintln!("mcp-janus: {MARK} is for this program's own use");
        return 64;
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        // Then it ends with its standard input only.
        eprintln!("mcp-janus: the signal at the parent's death: {error}");
    }
    // It may have died before the kernel was asked.
    if getppid().is_none_or(|found| found.as_raw_nonzero().get() != parent) {
        return 125;
    }
    let error = std::process::Command::new(&program).arg0(name).args(args).exec();
    eprintln!("mcp-janus: `{}` cannot be run: {error}", program.display());
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

#[cfg(not(target_os = "linux"))]
fn become_program(_args: impl Iterator<Item = OsString>) -> i32 {
    eprintln!("mcp-janus: {MARK} is for this program's own use");
    64
}
