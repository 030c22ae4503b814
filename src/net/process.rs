//! Real processes: a program started without a shell, in a process group of its own, and the end of that whole group.
//!
//! Owns how a process comes about and how its group is signalled. Does not own when it is to end, nor what is said over its
//! streams. `find` is the search for the program, so that what is missing is said in words before anything runs; `launcher`
//! is the short step on Linux that makes the process end when this one is killed. Cases C55-C57.
//!
//! One thread starts all processes and lives as long as this process does: the kernel's signal at the parent's death comes
//! when the *thread* ends that started the child, and threads of the runtime's blocking pool do end. All that looks at files
//! comes before, elsewhere, and for each program one at a time: a mount that hangs keeps one other thread, and holds up
//! nobody but those who want the same program (C56).

mod find;
mod launcher;

pub use launcher::launched;

use super::launch::{Launch, Launched, Process, Program};
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::task::spawn_blocking;

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};

/// Starts that wait for the thread that does them; further ones wait for room.
const STARTS: usize = 64;

/// A program, and where it is to run.
type Named = (OsString, Option<PathBuf>);

/// Starts real processes.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    launcher: Option<PathBuf>,
    /// Whose turn it is to look for a program. As many as there are commands in the settings.
    looks: Arc<Mutex<HashMap<Named, Arc<AsyncMutex<()>>>>>,
}

impl Processes {
    /// `launcher` is a program whose `main` begins with [`launched`]; `None` starts programs without that step.
    pub fn new(launcher: Option<PathBuf>) -> Self {
        Self { launcher, looks: Arc::default() }
    }

    /// With this very program as the launcher, where there is one.
    pub fn of_this_program() -> Self {
        Self::new(launcher::this_program())
    }

    /// The file to run. Whoever does not wait for it any more leaves the look to itself, and the next one waits for its end.
    async fn find(&self, program: &Program) -> io::Result<PathBuf> {
        let turn = {
            let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
            looks.entry((program.program.clone(), program.cwd.clone())).or_default().clone()
        };
        let turn = turn.lock_owned().await;
        let program = program.clone();
        let look = move || {
            let found = find::find(&program);
            drop(turn);
            found
        };
        spawn_blocking(look).await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Launch for Processes {
    fn launch<'a>(&'a self, program: &'a Program) -> BoxFuture<'a, io::Result<Launched>> {
        Box::pin(async move {
            let found = self.find(program).await?;
            let (done, started) = oneshot::channel();
            let (program, launcher, runtime) = (program.clone(), self.launcher.clone(), Handle::current());
            let job = Job { program, found, launcher, runtime, done };
            starter()?.send(job).await.map_err(|_| gone())?;
            started.await.map_err(|_| gone())?
        })
    }
}

/// One process to be started.
struct Job {
    program: Program,
    found: PathBuf,
    launcher: Option<PathBuf>,
    runtime: Handle,
    done: oneshot::Sender<io::Result<Launched>>,
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts processes is gone")
}

/// The way to the one thread that starts processes.
fn starter() -> io::Result<mpsc::Sender<Job>> {
    static STARTER: Mutex<Option<mpsc::Sender<Job>>> = Mutex::new(None);
    let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(starter) = &*starter {
        return Ok(starter.clone());
    }
    let (jobs, queue) = mpsc::channel(STARTS);
    thread::Builder::new().name("processes".to_owned()).spawn(move || start_all(queue))?;
    Ok(starter.insert(jobs).clone())
}

/// What the thread does for ever: the static sender does not go away.
fn start_all(mut queue: mpsc::Receiver<Job>) {
    while let Some(Job { program, found, launcher, runtime, done }) = queue.blocking_recv() {
        if done.is_closed() {
            continue;
        }
        let _inside = runtime.enter();
        // A panic (of a runtime that is being taken down) would end the thread, and with it every child.
        let started = catch_unwind(AssertUnwindSafe(|| start(&program, &found, launcher.as_deref())));
        // Whoever asked may be gone; then the process ends here.
        drop(done.send(started.unwrap_or_else(|_| Err(gone()))));
    }
}

fn start(program: &Program, found: &Path, launcher: Option<&Path>) -> io::Result<Launched> {
    let mut command = match launcher {
        Some(launcher) => launcher::command(launcher, found, &program.program),
        None => {
            let mut command = Command::new(found);
            #[cfg(unix)]
            command.arg0(&program.program);
            command
        }
    };
    command.args(&program.args).env_clear().envs(program.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    let mut child = command
        .spawn()
        .map_err(|error| find::in_words(program, error.kind(), format_args!("cannot be run: {error}")))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("the process has no standard streams"));
    };
    let process = Box::new(Running::new(child));
    Ok(Launched { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr), process })
}

/// A process of ours that may still run.
struct Running {
    child: Child,
    id: Option<u32>,
    /// Is to end at once; where there are no signals, `wait` sees to it.
    killed: AtomicBool,
    /// How it ended. Its number is not its own any more, and nothing is sent there.
    ended: Option<String>,
    /// Readable once it has ended and before it is reaped.
    #[cfg(target_os = "linux")]
    exited: Option<AsyncFd<OwnedFd>>,
}

impl Running {
    fn new(child: Child) -> Self {
        Self {
            id: child.id(),
            killed: AtomicBool::new(false),
            ended: None,
            #[cfg(target_os = "linux")]
            exited: child.id().and_then(watch),
            child,
        }
    }

    async fn reaped(&mut self) -> io::Result<String> {
        if let Some(ended) = &self.ended {
            return Ok(ended.clone());
        }
        // While it is not reaped, its number and its group's are taken: nobody else can be hit.
        #[cfg(target_os = "linux")]
        if let Some(exited) = &self.exited {
            drop(exited.readable().await?);
            self.kill()?;
        }
        if cfg!(not(unix)) && self.killed.load(Ordering::Relaxed) {
            self.child.start_kill()?;
        }
        let ended = self.child.wait().await?.to_string();
        #[cfg(not(target_os = "linux"))]
        self.kill()?;
        self.ended = Some(ended.clone());
        Ok(ended)
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) -> io::Result<()> {
        use rustix::process::{Pid, kill_process_group};
        let id = self.id.filter(|_| self.ended.is_none()).and_then(|id| i32::try_from(id).ok());
        let Some(group) = id.and_then(Pid::from_raw) else { return Ok(()) };
        match kill_process_group(group, signal) {
            // Nobody is left in it; on macOS nobody but what is not reaped yet.
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::PERM) => Ok(()),
            done => done.map_err(io::Error::from),
        }
    }
}

/// The process as a file descriptor that becomes readable when it ends (Linux 5.3).
#[cfg(target_os = "linux")]
#[allow(
    deprecated,
    reason = "its successor is unsafe, for types of which a descriptor can be taken away; an `OwnedFd` is none"
)]
fn watch(id: u32) -> Option<AsyncFd<OwnedFd>> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    let id = Pid::from_raw(i32::try_from(id).ok()?)?;
    let fd = pidfd_open(id, PidfdFlags::empty()).ok()?;
    AsyncFd::with_interest(fd, Interest::READABLE).ok()
}

impl Process for Running {
    fn id(&self) -> Option<u32> {
        self.id
    }

    fn wait(&mut self) -> BoxFuture<'_, io::Result<String>> {
        Box::pin(self.reaped())
    }

    fn terminate(&self) -> io::Result<()> {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM)?;
        Ok(())
    }

    fn kill(&self) -> io::Result<()> {
        self.killed.store(true, Ordering::Relaxed);
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL)?;
        Ok(())
    }
}

/// Nobody waits for it any more: the group ends, and the runtime (`kill_on_drop`) reaps.
impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = self.kill();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn program(name: &str) -> Program {
        let path = std::env::var_os("PATH").unwrap();
        Program { program: name.into(), args: Vec::new(), env: vec![("PATH".into(), path)], cwd: None }
    }

    /// C56: a look at files that does not come back, as on a mount that hangs, is one program's business.
    #[tokio::test]
    async fn a_look_that_hangs_holds_up_no_other_program() {
        let processes = Processes::default();
        let turn = Arc::new(AsyncMutex::new(()));
        let hangs = turn.clone().lock_owned().await;
        processes.looks.lock().unwrap().insert(("cat".into(), None), turn);
        let (cat, tool) = (program("cat"), program("true"));
        let mut waits = processes.launch(&cat);
        let mut other = tokio::select! {
            biased;
            _ = &mut waits => panic!("its turn has not come"),
            other = processes.launch(&tool) => other.unwrap(),
        };
        assert_eq!(other.process.wait().await.unwrap(), "exit status: 0");
        drop(hangs);
        let Launched { stdin, mut process, .. } = waits.await.unwrap();
        drop(stdin);
        assert_eq!(process.wait().await.unwrap(), "exit status: 0");
    }
}
