//! The GET streams of a legacy server, each in the hands of the test: opened, refused or held back by a script, then
//! written to, ended or broken off.
//!
//! Owns the record of every GET that passed the session gate, with its time. Does not own the messages themselves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::{LegacyServer, Reply, Seen, within};

/// How a GET is answered.
#[derive(Debug, Clone)]
pub enum Begin {
    /// An event stream that the test goes on with.
    Open,
    /// One that begins with these bytes.
    With(String),
    /// One that holds these bytes and ends.
    Only(String),
    Empty(u16),
    Body(u16, &'static str, &'static str),
    /// An event stream whose head comes after so many milliseconds.
    Late(u64),
    /// Nothing ever comes.
    Hang,
    /// The connection is closed without an answer.
    Cut,
}

enum Order {
    Bytes(Vec<u8>),
    End,
    Reset,
    Cut,
}

/// One GET.
pub struct Get {
    pub seen: Arc<Seen>,
    pub at: Instant,
    orders: mpsc::UnboundedSender<Order>,
    open: AtomicBool,
}

type Script = dyn Fn(usize) -> Begin + Send + Sync;

#[derive(Clone)]
pub struct Gets {
    script: Arc<Script>,
    all: Arc<Mutex<Vec<Arc<Get>>>>,
    more: Arc<Notify>,
    /// Words in what the script says, and what is known of them by now.
    words: Arc<Mutex<Vec<(String, String)>>>,
}

impl Gets {
    /// Every stream opens.
    pub fn open() -> Self {
        Self::script(|_| Begin::Open)
    }

    /// The n-th GET, from 0, is answered as the script says.
    pub fn script(script: impl Fn(usize) -> Begin + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), all: Arc::default(), more: Arc::default(), words: Arc::default() }
    }

    /// From now on streams that begin with something have this text in place of the word.
    pub fn put(&self, word: &str, text: &str) {
        self.words.lock().unwrap().push((word.to_owned(), text.to_owned()));
    }

    /// The server with these streams.
    pub fn of(&self, server: LegacyServer) -> LegacyServer {
        let gets = self.clone();
        server.on("GET", move |seen, reply| gets.clone().answer(seen, reply))
    }

    pub fn all(&self) -> Vec<Arc<Get>> {
        self.all.lock().unwrap().clone()
    }

    /// Waits for the n-th GET, from 1.
    pub async fn wait(&self, n: usize) -> Arc<Get> {
        within(&format!("GET number {n}"), async {
            loop {
                let more = self.more.notified();
                if let Some(get) = self.all.lock().unwrap().get(n - 1) {
                    return Arc::clone(get);
                }
                more.await;
            }
        })
        .await
    }

    /// Streams that are open now.
    pub fn now(&self) -> usize {
        self.all().iter().filter(|get| get.is_open()).count()
    }

    /// Tells it on every stream that is open.
    pub fn tell(&self, message: &str) {
        let all = self.all();
        let open: Vec<_> = all.iter().filter(|get| get.is_open()).collect();
        assert!(!open.is_empty(), "a stream to tell it on");
        open.iter().for_each(|get| get.event(message));
    }

    async fn answer(self, seen: Arc<Seen>, mut reply: Reply) {
        let (orders, mut ordered) = mpsc::unbounded_channel();
        let open = AtomicBool::new(false);
        let get = Arc::new(Get { seen, at: Instant::now(), orders, open });
        let n = {
            let mut all = self.all.lock().unwrap();
            all.push(Arc::clone(&get));
            all.len() - 1
        };
        let begin = (self.script)(n);
        get.open.store(matches!(begin, Begin::Open | Begin::Late(_) | Begin::With(_)), Ordering::SeqCst);
        self.more.notify_waiters();
        match begin {
            Begin::Open => reply.stream().await,
            Begin::Late(millis) => {
                super::pass(millis).await;
                reply.stream().await;
            }
            Begin::With(bytes) => {
                let words = self.words.lock().unwrap().clone();
                let bytes = words.iter().fold(bytes, |bytes, (word, text)| bytes.replace(word, text));
                reply.stream().await;
                reply.chunk(bytes.as_bytes()).await;
            }
            Begin::Only(bytes) => {
                reply.stream().await;
                if !bytes.is_empty() {
                    reply.chunk(bytes.as_bytes()).await;
                }
                return reply.end().await;
            }
            Begin::Empty(status) => return reply.empty(status).await,
            Begin::Body(status, media_type, body) => return reply.body(status, media_type, body).await,
            Begin::Hang => return reply.never().await,
            Begin::Cut => return,
        }
        loop {
            let order = tokio::select! {
                order = ordered.recv() => order,
                () = reply.closed() => break,
            };
            match order {
                Some(Order::Bytes(bytes)) => reply.chunk(&bytes).await,
                Some(Order::End) => {
                    get.open.store(false, Ordering::SeqCst);
                    return reply.end().await;
                }
                Some(Order::Reset) => {
                    get.open.store(false, Ordering::SeqCst);
                    return reply.reset();
                }
                Some(Order::Cut) | None => break,
            }
        }
        get.open.store(false, Ordering::SeqCst);
    }
}

impl Get {
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    pub fn session(&self) -> String {
        self.seen.session().unwrap_or_default()
    }

    pub fn last_event(&self) -> Option<String> {
        self.seen.header("last-event-id")
    }

    pub fn event(&self, message: &str) {
        self.bytes(format!("event: message\ndata: {message}\n\n").as_bytes());
    }

    pub fn bytes(&self, bytes: &[u8]) {
        let _ = self.orders.send(Order::Bytes(bytes.to_vec()));
    }

    pub fn end(&self) {
        let _ = self.orders.send(Order::End);
    }

    pub fn reset(&self) {
        let _ = self.orders.send(Order::Reset);
    }

    /// Closes the connection in the middle of the body.
    pub fn cut(&self) {
        let _ = self.orders.send(Order::Cut);
    }
}
