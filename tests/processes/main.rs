//! Real processes: what the system makes of a command, and that a whole group ends with its reason to be there.
//!
//! Owns what only the system shows. Each of it holds for programs started directly and for those started through the binary
//! as their launcher; `launcher` is about that alone. How a process is spoken with and ended is tested in memory (`upstream::transport::child`).
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(target_os = "linux")]
mod launcher;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use mcp_janus::net::{Launch, Launched, Processes, Program};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

const BINARY: &str = env!("CARGO_BIN_EXE_mcp-janus");

/// Longer than anything here takes; only a fault gets this far.
const PATIENCE: Duration = Duration::from_secs(20);

/// Directly, and on Linux through a launcher.
fn both() -> Vec<Processes> {
    let mut both = vec![Processes::new(None)];
    if cfg!(target_os = "linux") {
        both.push(Processes::new(Some(PathBuf::from(BINARY))));
    }
    both
}

fn program(program: impl Into<OsString>, args: &[&str]) -> Program {
    Program {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        cwd: None,
    }
}

fn shell(script: &str) -> Program {
    program("sh", &["-c", script])
}

/// What it says until its output is closed by all who hold it, and how it ends.
async fn run(processes: &Processes, program: &Program) -> (Vec<u8>, String) {
    let Launched { stdin, mut stdout, mut process, .. } = processes.launch(program).await.unwrap();
    drop(stdin);
    let mut said = Vec::new();
    timeout(PATIENCE, stdout.read_to_end(&mut said)).await.unwrap().unwrap();
    (said, process.wait().await.unwrap())
}

async fn said(processes: &Processes, program: &Program) -> String {
    let (said, ended) = run(processes, program).await;
    assert_eq!(ended, "exit status: 0");
    String::from_utf8(said).unwrap()
}

async fn refused(processes: &Processes, program: &Program) -> (io::ErrorKind, String) {
    let error = processes.launch(program).await.err().expect("it was started");
    (error.kind(), error.to_string())
}

/// Whether there is a process with this number that is more than a name in a table.
#[cfg(target_os = "linux")]
fn runs(pid: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().unwrap().trim_start().chars().next();
    !matches!(state, Some('Z' | 'X'))
}

#[cfg(not(target_os = "linux"))]
fn runs(pid: &str) -> bool {
    Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap().success()
}

fn file(at: &Path, mode: u32, text: &str) -> PathBuf {
    fs::write(at, text).unwrap();
    fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
    at.to_owned()
}

#[tokio::test]
async fn it_is_spoken_with_and_waited_for() {
    for processes in both() {
        let Launched { mut stdin, mut stdout, mut process, .. } =
            processes.launch(&program("cat", &[])).await.unwrap();
        stdin.write_all(b"hello").await.unwrap();
        let mut read = [0; 5];
        stdout.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hello");
        let pid = process.id().unwrap().to_string();
        assert!(timeout(Duration::from_millis(1), process.wait()).await.is_err());
        assert!(runs(&pid));
        drop(stdin);
        assert_eq!(process.wait().await.unwrap(), "exit status: 0");
        assert_eq!(process.wait().await.unwrap(), "exit status: 0");
        if cfg!(target_os = "linux") {
            assert!(!Path::new("/proc").join(pid).exists(), "it has not been reaped");
        }
        // Its number may be another's by now.
        process.terminate().unwrap();
        process.kill().unwrap();
    }
}

#[tokio::test]
async fn the_whole_group_is_ended() {
    for processes in both() {
        let script = shell("sleep 1000 & echo $!; sleep 1000");
        let Launched { stdin: _stdin, stdout, mut process, .. } = processes.launch(&script).await.unwrap();
        let mut stdout = BufReader::new(stdout);
        let mut grandchild = String::new();
        stdout.read_line(&mut grandchild).await.unwrap();
        assert!(runs(grandchild.trim()));
        process.kill().unwrap();
        assert_eq!(process.wait().await.unwrap(), "signal: 9 (SIGKILL)");
        // Each of them has held it open.
        assert_eq!(stdout.read_line(&mut String::new()).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn what_it_leaves_behind_ends_with_it() {
    for processes in both() {
        let Launched { stdin: _stdin, mut stdout, mut process, .. } =
            processes.launch(&shell("sleep 1000 & exit 3")).await.unwrap();
        assert_eq!(process.wait().await.unwrap(), "exit status: 3");
        timeout(PATIENCE, stdout.read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn it_may_end_in_its_own_way_when_asked() {
    for processes in both() {
        let script = shell("trap 'exit 7' TERM; sleep 1000 & echo ready; wait");
        let Launched { stdin: _stdin, stdout, mut process, .. } = processes.launch(&script).await.unwrap();
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut String::new()).await.unwrap();
        process.terminate().unwrap();
        assert_eq!(process.wait().await.unwrap(), "exit status: 7");
    }
}

#[tokio::test]
async fn what_nobody_minds_any_more_ends() {
    for processes in both() {
        let Launched { mut stdout, process, .. } =
            processes.launch(&shell("sleep 1000 & sleep 1000")).await.unwrap();
        drop(process);
        timeout(PATIENCE, stdout.read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn arguments_are_no_text_of_a_shell() {
    let args = ["a b", "$HOME", "*", "; exit 1", "\"'`", "", "-c", "line\nline"];
    for processes in both() {
        let mut script = shell("for a; do printf '<%s>' \"$a\"; done");
        script.args.push("sh".into());
        script.args.extend(args.iter().map(Into::into));
        script.args.push(OsString::from_vec(vec![b'x', 0xff]));
        let (said, _) = run(&processes, &script).await;
        let mut expected = args.map(|arg| format!("<{arg}>")).concat().into_bytes();
        expected.extend(b"<x\xff>");
        assert_eq!(said, expected);
    }
}

#[tokio::test]
async fn the_environment_is_what_is_given() {
    for processes in both() {
        let mut env = program("env", &["-0"]);
        env.env.push(("EMPTY".into(), "".into()));
        env.env.push(("EQUALS".into(), "a=b=".into()));
        env.env.push(("ODD".into(), OsStr::from_bytes(b"\xff\n").into()));
        let (said, _) = run(&processes, &env).await;
        let mut said: Vec<_> = said.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
        said.sort_unstable();
        let expected = [&b"EMPTY="[..], b"EQUALS=a=b=", b"ODD=\xff\n", b"PATH=/usr/local/bin:/usr/bin:/bin"];
        assert_eq!(said, expected);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_else_is_handed_down() {
    // What this process itself was handed down by whoever started it, the three streams, and the directory that is read.
    let kept = |file: &u32| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{file}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("02000000");
        u32::from_str_radix(flags.trim(), 8).unwrap() & 0o2_000_000 == 0
    };
    let own = fs::read_dir("/proc/self/fd").unwrap();
    let own = own.filter_map(|file| file.unwrap().file_name().to_str()?.parse().ok());
    let mut expected: BTreeSet<u32> = own.filter(kept).chain([0, 1, 2]).collect();
    let free = (0..).find(|file| !expected.contains(file));
    expected.extend(free);
    // Ignored in every Rust program, and not to be in others.
    const SIGPIPE: u64 = 1 << 12;
    // Those after them are the C library's own.
    const NAMED: u64 = (1 << 31) - 1;
    let ignored = mask(&fs::read_to_string("/proc/self/status").unwrap(), "SigIgn");
    for processes in both() {
        assert_eq!(
            said(&processes, &program("cat", &["/proc/self/cmdline"])).await,
            "cat\0/proc/self/cmdline\0"
        );
        let files = said(&processes, &program("ls", &["/proc/self/fd"])).await;
        let files: BTreeSet<u32> = files.lines().map(|file| file.parse().unwrap()).collect();
        assert_eq!(files, expected);
        let status = said(&processes, &program("cat", &["/proc/self/status"])).await;
        assert_eq!(mask(&status, "SigBlk"), 0);
        assert_eq!(mask(&status, "SigIgn") & NAMED, ignored & NAMED & !SIGPIPE);
    }
}

#[cfg(target_os = "linux")]
fn mask(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    u64::from_str_radix(mask.unwrap(), 16).unwrap()
}

#[tokio::test]
async fn it_runs_where_it_is_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let place = fs::canonicalize(directory.path()).unwrap();
    fs::create_dir(place.join("bin")).unwrap();
    file(&place.join("bin/tool"), 0o755, "#!/bin/sh\npwd\n");
    let expected = format!("{}\n", place.display());
    for processes in both() {
        // By a path from there, by a path from there in PATH, and by an empty entry of it, which means there.
        for (name, path) in [("bin/tool", "/bin"), ("tool", "/nowhere:bin:/bin"), ("tool", ":/bin")] {
            let cwd = if path == ":/bin" { place.join("bin") } else { place.clone() };
            let mut tool = program(name, &[]);
            tool.env = vec![("PATH".into(), path.into())];
            tool.cwd = Some(cwd.clone());
            assert_eq!(said(&processes, &tool).await, format!("{}\n", cwd.display()));
        }
        let mut absolute = program(place.join("bin/tool"), &[]);
        absolute.cwd = Some(place.clone());
        absolute.env.clear();
        assert_eq!(said(&processes, &absolute).await, expected);
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_named_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_owned();
    let shown = place.display();
    let data = file(&place.join("data"), 0o644, "");
    fs::create_dir(place.join("folder")).unwrap();
    for processes in both() {
        let given = |name: &str, cwd: Option<&Path>| {
            let mut program = program(name, &[]);
            program.cwd = cwd.map(Path::to_owned);
            program
        };
        let table = [
            (
                given("no-such-program", Some(&place)),
                io::ErrorKind::NotFound,
                format!(
                    "`no-such-program` is in none of the directories of PATH, \
                     /usr/local/bin:/usr/bin:/bin (in {shown})"
                ),
            ),
            (
                given("./no-such-program", Some(&place)),
                io::ErrorKind::NotFound,
                format!("`./no-such-program` does not exist (in {shown})"),
            ),
            (
                given("/bin/sh/x", None),
                io::ErrorKind::NotFound,
                "`/bin/sh/x` does not exist (in the directory of mcp-janus itself)".to_owned(),
            ),
            (
                given("./data", Some(&place)),
                io::ErrorKind::PermissionDenied,
                format!("`./data` is no program: it has no permission to be run (in {shown})"),
            ),
            (
                given("./folder", Some(&place)),
                io::ErrorKind::PermissionDenied,
                format!("`./folder` is no file (in {shown})"),
            ),
            (
                given("cat", Some(&place.join("gone"))),
                io::ErrorKind::NotFound,
                format!(
                    "`cat` cannot be run: `cwd`: No such file or directory (os error 2) (in {shown}/gone)"
                ),
            ),
            (
                given("cat", Some(&data)),
                io::ErrorKind::NotADirectory,
                format!("`cat` cannot be run: `cwd` is no directory (in {shown}/data)"),
            ),
            (
                given("", None),
                io::ErrorKind::InvalidInput,
                "`` is no name of a program (in the directory of mcp-janus itself)".to_owned(),
            ),
        ];
        for (program, kind, words) in table {
            assert_eq!(refused(&processes, &program).await, (kind, words));
        }
        // One that may not be run does not hide one further on.
        let mut hidden = program("data", &[]);
        hidden.env = vec![("PATH".into(), place.clone().into())];
        assert_eq!(refused(&processes, &hidden).await.0, io::ErrorKind::PermissionDenied);
        fs::create_dir_all(place.join("more")).unwrap();
        file(&place.join("more/data"), 0o755, "#!/bin/sh\necho found\n");
        hidden.env = vec![("PATH".into(), format!("{shown}:{shown}/more:/bin").into())];
        assert_eq!(said(&processes, &hidden).await, "found\n");
    }
}

#[tokio::test]
async fn what_the_kernel_does_not_run_is_said_on_either_way() {
    let directory = tempfile::tempdir().unwrap();
    let tool = file(&directory.path().join("tool"), 0o755, "#!/no/such/interpreter\n");
    let error = refused(&Processes::new(None), &program(&tool, &[])).await;
    assert_eq!(error.0, io::ErrorKind::NotFound);
    let words = format!("`{}` cannot be run: No such file or directory", tool.display());
    assert!(error.1.starts_with(&words), "{}", error.1);
    for processes in both().into_iter().skip(1) {
        let Launched { mut stderr, mut process, .. } = processes.launch(&program(&tool, &[])).await.unwrap();
        let mut said = String::new();
        stderr.read_to_string(&mut said).await.unwrap();
        assert_eq!(process.wait().await.unwrap(), "exit status: 127");
        assert!(said.contains(&words), "{said}");
    }
}

/// The thread that asks for a process is not the one that the kernel takes for its parent.
#[test]
fn it_outlives_the_thread_that_asked_for_it() {
    for processes in both() {
        let (pid, process) = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let launched = runtime.block_on(processes.launch(&shell("echo; sleep 1000"))).unwrap();
            let mut stdout = BufReader::new(launched.stdout);
            // It is past its launcher.
            runtime.block_on(stdout.read_line(&mut String::new())).unwrap();
            let pid = launched.process.id().unwrap().to_string();
            // Both live on, without the thread.
            (pid, (launched.process, launched.stdin, stdout, runtime))
        })
        .join()
        .unwrap();
        assert!(runs(&pid));
        drop(process);
    }
}
