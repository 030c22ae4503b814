//! The programs of a test: processes that are tasks, each with three pipes in memory, which a script of the test runs.
//!
//! Owns what can be started, and the list of what was. Does not own a single process (`process`), what a well-behaved server
//! says (`lines` puts the servers of `legacy` and `modern` behind pipes), nor the types of the program under test (`proxy`).

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::DuplexStream;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::process::{Child, Named, Running};
use super::within;

/// What a pipe of Linux holds.
const PIPE: usize = 64 * 1024;

/// What a process does until it exits by itself, with this code.
pub type Script = Arc<dyn Fn(Child) -> Pin<Box<dyn Future<Output = u8> + Send>> + Send + Sync>;

/// Makes a script of a closure.
pub fn script<F, T>(f: F) -> Script
where
    F: Fn(Child) -> T + Send + Sync + 'static,
    T: Future<Output = u8> + Send + 'static,
{
    Arc::new(move |child| Box::pin(f(child)))
}

#[derive(Clone)]
enum Entry {
    Runs(Script),
    Fails(io::ErrorKind),
}

/// What can be started, by name, and what was.
#[derive(Clone, Default)]
pub struct Programs(Arc<Table>);

#[derive(Default)]
struct Table {
    known: Mutex<HashMap<String, Entry>>,
    started: Mutex<Vec<Arc<Running>>>,
    forgotten: AtomicUsize,
    attempts: Mutex<Vec<(String, Instant)>>,
    faults: Arc<Mutex<Vec<String>>>,
    more: Notify,
}

/// The proxy's ends of the pipes.
pub struct Started {
    pub stdin: DuplexStream,
    pub stdout: DuplexStream,
    pub stderr: DuplexStream,
    pub running: Arc<Running>,
}

impl Programs {
    /// From now on starting `name` runs this; what runs already goes on.
    pub fn put<F, T>(&self, name: &str, f: F)
    where
        F: Fn(Child) -> T + Send + Sync + 'static,
        T: Future<Output = u8> + Send + 'static,
    {
        self.put_script(name, script(f));
    }

    pub fn put_script(&self, name: &str, script: Script) {
        self.0.known.lock().unwrap().insert(name.to_owned(), Entry::Runs(script));
    }

    /// From now on starting `name` fails so.
    pub fn fail(&self, name: &str, kind: io::ErrorKind) {
        self.0.known.lock().unwrap().insert(name.to_owned(), Entry::Fails(kind));
    }

    pub fn start(
        &self,
        name: &str,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<PathBuf>,
    ) -> io::Result<Started> {
        let entry = self.0.known.lock().unwrap().get(name).cloned();
        self.0.attempts.lock().unwrap().push((name.to_owned(), Instant::now()));
        let script = match entry {
            Some(Entry::Runs(script)) => script,
            Some(Entry::Fails(kind)) => return Err(kind.into()),
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let (stdin, input) = tokio::io::duplex(PIPE);
        let (stdout, output) = tokio::io::duplex(PIPE);
        let (stderr, errors) = tokio::io::duplex(PIPE);
        let mut started = self.0.started.lock().unwrap();
        let faults = Arc::clone(&self.0.faults);
        let named = Named {
            n: self.0.forgotten.load(Ordering::SeqCst) + started.len() + 1,
            name: name.to_owned(),
            args,
            env,
            cwd,
        };
        let (running, child) = Running::start(named, input, output, errors, faults);
        started.push(Arc::clone(&running));
        drop(started);
        self.0.more.notify_waiters();
        running.runs(script(child));
        Ok(Started { stdin, stdout, stderr, running })
    }

    /// Every process that was started, in order.
    pub fn all(&self) -> Vec<Arc<Running>> {
        self.0.started.lock().unwrap().clone()
    }

    /// Lets go of those that have ended, with what they have read; numbers go on.
    pub fn forget_ended(&self) {
        let mut started = self.0.started.lock().unwrap();
        let before = started.len();
        started.retain(|one| one.is_alive());
        self.0.forgotten.fetch_add(before - started.len(), Ordering::SeqCst);
    }

    /// Those of this name.
    pub fn of(&self, name: &str) -> Vec<Arc<Running>> {
        self.all().into_iter().filter(|one| one.name == name).collect()
    }

    /// Those that have not ended.
    pub fn alive(&self) -> Vec<Arc<Running>> {
        self.all().into_iter().filter(|one| one.is_alive()).collect()
    }

    /// When starting this program was tried, with or without success.
    pub fn attempts(&self, name: &str) -> Vec<Instant> {
        let attempts = self.0.attempts.lock().unwrap();
        attempts.iter().filter(|(other, _)| other == name).map(|(_, at)| *at).collect()
    }

    /// Waits for the n-th process, from 1.
    pub async fn wait(&self, n: usize) -> Arc<Running> {
        within(&format!("process number {n}"), async {
            loop {
                let more = self.0.more.notified();
                if let Some(running) = self.all().get(n - 1) {
                    return Arc::clone(running);
                }
                more.await;
            }
        })
        .await
    }

    /// Waits until every process has ended and has been reaped.
    pub async fn over(&self) {
        for running in self.all() {
            running.ended().await;
            running.reaped().await;
            assert!(!running.leaves_something(), "process {} has left a child behind", running.n);
        }
    }

    /// Lines that no process may be sent.
    pub fn faults(&self) -> Vec<String> {
        self.0.faults.lock().unwrap().clone()
    }
}
