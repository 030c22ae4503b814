//! A process of a test, which is a task with three pipes in memory: from outside (`Running`) and from inside (`Child`).
//!
//! Owns the record of every line that it has read, what it writes, how it ends, and who has asked it to. Does not own which
//! programs there are (`stdio_server`), nor what they say.

use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{rpc, within};

#[derive(Debug)]
enum Order {
    Out(Vec<u8>),
    Err(Vec<u8>),
    Exit(u8),
    CloseOutput,
}

#[derive(Default)]
struct State {
    lines: Vec<(Instant, String)>,
    input_ended: Option<Instant>,
    terminated: Vec<Instant>,
    killed: Vec<Instant>,
    ended: Option<(Instant, String)>,
    reaped: bool,
    /// Standard output, held open by a child of this process.
    left: Option<DuplexStream>,
}

/// What was started.
pub struct Named {
    /// From 1, among all processes of the test.
    pub n: usize,
    pub name: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: Option<PathBuf>,
}

/// A process, seen from the test.
pub struct Running {
    named: Named,
    pub at: Instant,
    state: Mutex<State>,
    orders: mpsc::UnboundedSender<Order>,
    unwritten: AtomicUsize,
    ignores_term: AtomicBool,
    leaves_output: AtomicBool,
    over: CancellationToken,
    faults: Arc<Mutex<Vec<String>>>,
    more: Notify,
}

impl Deref for Running {
    type Target = Named;

    fn deref(&self) -> &Named {
        &self.named
    }
}

impl Running {
    pub fn start(
        named: Named,
        input: DuplexStream,
        output: DuplexStream,
        errors: DuplexStream,
        faults: Arc<Mutex<Vec<String>>>,
    ) -> (Arc<Self>, Child) {
        let (orders, ordered) = mpsc::unbounded_channel();
        let running = Arc::new(Self {
            named,
            at: Instant::now(),
            state: Mutex::default(),
            orders,
            unwritten: AtomicUsize::new(0),
            ignores_term: AtomicBool::new(false),
            leaves_output: AtomicBool::new(false),
            over: CancellationToken::new(),
            faults,
            more: Notify::new(),
        });
        tokio::spawn(write(Arc::clone(&running), ordered, output, errors));
        let child = Child { running: Arc::clone(&running), input: BufReader::new(input), gate: None };
        (running, child)
    }

    /// Runs what it does, until it exits by itself or is ended.
    pub fn runs(self: &Arc<Self>, process: impl Future<Output = u8> + Send + 'static) {
        let running = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(code) = running.over.run_until_cancelled(process).await {
                running.exit(code);
            }
        });
    }

    /// Lines that it has read, in order.
    pub fn lines(&self) -> Vec<String> {
        self.state.lock().unwrap().lines.iter().map(|(_, line)| line.clone()).collect()
    }

    pub fn messages(&self) -> Vec<Value> {
        self.lines().iter().map(|line| rpc::value(line.as_bytes()).expect("a line is JSON")).collect()
    }

    /// Methods in order; an answer as `response`.
    pub fn briefs(&self) -> Vec<String> {
        let brief = |line: &String| rpc::method(line.as_bytes()).unwrap_or_else(|| "response".to_owned());
        self.lines().iter().map(brief).collect()
    }

    /// Waits for the n-th line of this method (or `response`), from 1.
    pub async fn wait(&self, brief: &str, n: usize) -> Value {
        let of_it = || {
            let at = self.briefs().into_iter().enumerate().filter(|(_, other)| other == brief).nth(n - 1)?.0;
            self.messages().get(at).cloned()
        };
        self.until(&format!("{n} x {brief}"), of_it).await
    }

    /// When the first line of this method came.
    pub fn when(&self, brief: &str) -> Option<Instant> {
        let at = self.briefs().iter().position(|other| other == brief)?;
        Some(self.state.lock().unwrap().lines[at].0)
    }

    async fn until<T>(&self, what: &str, find: impl Fn() -> Option<T>) -> T {
        let wait = async {
            loop {
                let more = self.more.notified();
                if let Some(found) = find() {
                    return found;
                }
                more.await;
            }
        };
        match tokio::time::timeout(super::PATIENCE, wait).await {
            Ok(found) => found,
            Err(_) => panic!("{what} at process {}: it never came; read {:?}", self.n, self.lines()),
        }
    }

    /// One line on its standard output.
    pub fn say(&self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    /// These bytes on its standard output, in a write of their own.
    pub fn write(&self, bytes: &[u8]) {
        self.unwritten.fetch_add(bytes.len(), Ordering::SeqCst);
        let _ = self.orders.send(Order::Out(bytes.to_vec()));
    }

    /// These bytes on its standard error.
    pub fn complain(&self, bytes: &[u8]) {
        self.unwritten.fetch_add(bytes.len(), Ordering::SeqCst);
        let _ = self.orders.send(Order::Err(bytes.to_vec()));
    }

    /// Bytes that have found no room on the pipes yet.
    pub fn unwritten(&self) -> usize {
        self.unwritten.load(Ordering::SeqCst)
    }

    /// It exits by itself, once it has written everything.
    pub fn exit(&self, code: u8) {
        let _ = self.orders.send(Order::Exit(code));
    }

    /// Its standard output ends; it goes on.
    pub fn close_output(&self) {
        let _ = self.orders.send(Order::CloseOutput);
    }

    /// A child of its own holds its standard output open when it has ended, until their group is ended.
    pub fn leaves_output_open(&self) {
        self.leaves_output.store(true, Ordering::SeqCst);
    }

    /// `kill -9` by somebody else.
    pub fn dies(&self) {
        self.end("signal: 9 (SIGKILL)");
    }

    fn end(&self, how: &str) {
        self.state.lock().unwrap().ended.get_or_insert_with(|| (Instant::now(), how.to_owned()));
        self.over.cancel();
        self.more.notify_waiters();
    }

    pub fn is_alive(&self) -> bool {
        !self.over.is_cancelled()
    }

    pub fn is_reaped(&self) -> bool {
        self.state.lock().unwrap().reaped
    }

    /// Waits until somebody has heard of its end.
    pub async fn reaped(&self) {
        self.until("its reaping", || self.is_reaped().then_some(())).await;
    }

    pub fn leaves_something(&self) -> bool {
        self.state.lock().unwrap().left.is_some()
    }

    /// Waits for its end, however late that is.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Waits for its end: when, and how.
    pub async fn ended(&self) -> (Instant, String) {
        within(&format!("the end of process {}", self.n), self.over.cancelled()).await;
        self.state.lock().unwrap().ended.clone().expect("an end")
    }

    /// When its standard input ended.
    pub fn input_ended(&self) -> Option<Instant> {
        self.state.lock().unwrap().input_ended
    }

    /// When it was asked to end.
    pub fn terminations(&self) -> Vec<Instant> {
        self.state.lock().unwrap().terminated.clone()
    }

    /// When it was made to end.
    pub fn kills(&self) -> Vec<Instant> {
        self.state.lock().unwrap().killed.clone()
    }

    /// As `waitpid` has it, when what the process has left behind has been ended.
    pub async fn reap(&self) -> String {
        self.over.cancelled().await;
        let mut state = self.state.lock().unwrap();
        state.left = None;
        state.reaped = true;
        self.more.notify_waiters();
        state.ended.clone().expect("an end").1
    }

    /// As `killpg(SIGTERM)` has it.
    pub fn terminate(&self) -> io::Result<()> {
        self.signalled()?;
        self.state.lock().unwrap().terminated.push(Instant::now());
        self.more.notify_waiters();
        if !self.ignores_term.load(Ordering::SeqCst) {
            self.end("signal: 15 (SIGTERM)");
        }
        Ok(())
    }

    /// As `killpg(SIGKILL)` has it.
    pub fn kill(&self) -> io::Result<()> {
        self.signalled()?;
        {
            let mut state = self.state.lock().unwrap();
            state.killed.push(Instant::now());
            state.left = None;
        }
        self.end("signal: 9 (SIGKILL)");
        Ok(())
    }

    /// A group that has been reaped cannot be signalled.
    fn signalled(&self) -> io::Result<()> {
        let state = self.state.lock().unwrap();
        // ESRCH
        if state.reaped { Err(io::Error::from_raw_os_error(3)) } else { Ok(()) }
    }

    fn fault(&self, what: &str) {
        self.faults.lock().unwrap().push(format!("{what}, to process {}", self.n));
    }
}

/// A process, seen from its own script.
pub struct Child {
    running: Arc<Running>,
    input: BufReader<DuplexStream>,
    gate: Option<Arc<Semaphore>>,
}

impl Child {
    pub fn running(&self) -> Arc<Running> {
        Arc::clone(&self.running)
    }

    /// The next line; `None` at the end of its input.
    pub async fn line(&mut self) -> Option<String> {
        if let Some(gate) = &self.gate {
            gate.acquire().await.expect("an open gate").forget();
        }
        let mut bytes = Vec::new();
        let _ = self.input.read_until(b'\n', &mut bytes).await;
        let ends = bytes.pop_if(|last| *last == b'\n').is_some();
        if bytes.is_empty() && !ends {
            self.running.state.lock().unwrap().input_ended.get_or_insert_with(Instant::now);
            self.running.more.notify_waiters();
            return None;
        }
        let line = String::from_utf8_lossy(&bytes).into_owned();
        if !ends {
            self.running.fault(&format!("half a line: {line}"));
        }
        if !rpc::value(&bytes).is_ok_and(|value| value.is_object()) {
            self.running.fault(&format!("a line that is no message: {line}"));
        }
        self.running.state.lock().unwrap().lines.push((Instant::now(), line.clone()));
        self.running.more.notify_waiters();
        Some(line)
    }

    /// Waits for the next request of this method and says its raw id; `None` at the end of its input.
    pub async fn next(&mut self, method: &str) -> Option<String> {
        loop {
            let line = self.line().await?;
            if rpc::method(line.as_bytes()).as_deref() == Some(method) {
                return Some(rpc::id(line.as_bytes()).unwrap_or_default());
            }
        }
    }

    pub fn say(&self, line: &str) {
        self.running.say(line);
    }

    /// Reads whatever comes, and says nothing, until its input ends.
    pub async fn listen(&mut self) {
        while self.line().await.is_some() {}
    }

    /// SIGTERM does nothing to it.
    pub fn ignore_term(&self) {
        self.running.ignores_term.store(true, Ordering::SeqCst);
    }

    /// From now on it reads a line only where there is a permit.
    pub fn gated(&mut self, gate: Arc<Semaphore>) {
        self.gate = Some(gate);
    }

    /// Something else that it does, and that ends with it.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let over = self.running.over.clone();
        tokio::spawn(async move { over.run_until_cancelled(future).await });
    }
}

async fn write(
    running: Arc<Running>,
    mut ordered: mpsc::UnboundedReceiver<Order>,
    output: DuplexStream,
    mut errors: DuplexStream,
) {
    let mut output = Some(output);
    let over = running.over.clone();
    let writing = async {
        while let Some(order) = ordered.recv().await {
            // Who is not read any more goes on all the same.
            match order {
                Order::Out(bytes) => {
                    if let Some(output) = &mut output {
                        let _ = output.write_all(&bytes).await;
                    }
                    running.unwritten.fetch_sub(bytes.len(), Ordering::SeqCst);
                }
                Order::Err(bytes) => {
                    let _ = errors.write_all(&bytes).await;
                    running.unwritten.fetch_sub(bytes.len(), Ordering::SeqCst);
                }
                Order::CloseOutput => output = None,
                Order::Exit(code) => running.end(&format!("exit status: {code}")),
            }
        }
    };
    over.run_until_cancelled(writing).await;
    if running.leaves_output.load(Ordering::SeqCst) && running.kills().is_empty() {
        running.state.lock().unwrap().left = output;
    }
}
