//! The program that a command names, and in words why there is none.
//!
//! Owns the search along `PATH` as `execvp` does it, in the environment that the process is going to have. It comes before
//! the start because the start itself says no more than "no such file", of which it is not known what is missing: the
//! program, the directory, or (where a launcher runs first) nothing at all. Case C57.

use crate::net::launch::Program;
use std::ffi::OsStr;
use std::fmt::{Arguments, Display};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Where `execvp` looks if there is no `PATH`.
#[cfg(unix)]
const NO_PATH: &str = "/bin:/usr/bin";

/// The file to run. Says why not, naming command and directory.
#[cfg(unix)]
pub(super) fn find(program: &Program) -> io::Result<PathBuf> {
    let cwd = directory(program)?;
    let at = |path: &Path| cwd.as_ref().map_or_else(|| path.to_owned(), |cwd| cwd.join(path));
    let name = Path::new(&program.program);
    if name.as_os_str().is_empty() {
        return Err(in_words(program, ErrorKind::InvalidInput, format_args!("is no name of a program")));
    }
    if program.program.as_encoded_bytes().contains(&b'/') {
        let path = at(name);
        return match runs(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(in_words(program, error.kind(), format_args!("{error}"))),
        };
    }
    let path = program.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let path = path.unwrap_or(OsStr::new(NO_PATH));
    let mut refused = None;
    for directory in std::env::split_paths(path) {
        // An empty entry is where the process runs.
        let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
        let candidate = at(&directory.join(name));
        match runs(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                refused.get_or_insert_with(|| {
                    in_words(program, error.kind(), format_args!("{error}: {}", candidate.display()))
                });
            }
        }
    }
    Err(refused.unwrap_or_else(|| {
        let what = format_args!("is in none of the directories of PATH, {}", path.display());
        in_words(program, ErrorKind::NotFound, what)
    }))
}

#[cfg(not(unix))]
pub(super) fn find(program: &Program) -> io::Result<PathBuf> {
    directory(program)?;
    Ok(PathBuf::from(&program.program))
}

/// Where the process is going to run, as an absolute path.
fn directory(program: &Program) -> io::Result<Option<PathBuf>> {
    let Some(cwd) = &program.cwd else { return Ok(None) };
    match std::fs::metadata(cwd) {
        Ok(found) if found.is_dir() => std::path::absolute(cwd).map(Some),
        Ok(_) => Err(in_words(
            program,
            ErrorKind::NotADirectory,
            format_args!("cannot be run: `cwd` is no directory"),
        )),
        Err(error) => Err(in_words(program, error.kind(), format_args!("cannot be run: `cwd`: {error}"))),
    }
}

/// Whether it is a file that may be run; the kernel has the last word.
#[cfg(unix)]
fn runs(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let found = std::fs::metadata(path).map_err(|error| match error.kind() {
        // A part of the path is a file: as if nothing were there.
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            io::Error::new(ErrorKind::NotFound, "does not exist")
        }
        _ => error,
    })?;
    if !found.is_file() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "is no file"));
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err(io::Error::new(
            ErrorKind::PermissionDenied,
            "is no program: it has no permission to be run",
        ));
    }
    Ok(())
}

/// An error that names the command and where it was to run.
pub(super) fn in_words(program: &Program, kind: ErrorKind, what: Arguments<'_>) -> io::Error {
    let place: &dyn Display = match &program.cwd {
        Some(cwd) => &format_args!("in {}", cwd.display()),
        None => &"in the directory of mcp-janus itself",
    };
    io::Error::new(kind, format!("`{}` {what} ({place})", program.program.display()))
}
