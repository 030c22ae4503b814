//! The GET streams of a legacy server, each in the hands of the test: opened, refused or held back by a script, then
//! written to, ended or broken off.
//!
//! Owns the record of every GET that passed the session gate, with its time. Does not own the messages themselves.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::held::Held;
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

/// One GET.
pub struct Get {
    pub seen: Arc<Seen>,
    pub at: Instant,
    held: Held,
}

impl Deref for Get {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
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
        self.find(&format!("GET number {n}"), |all| all.get(n - 1).cloned()).await
    }

    /// Waits for a GET that takes up the stream of a request after this event.
    pub async fn after(&self, event: &str) -> Arc<Get> {
        let resumes =
            |all: &[Arc<Get>]| all.iter().find(|get| get.last_event().as_deref() == Some(event)).cloned();
        self.find(&format!("GET after {event}"), resumes).await
    }

    async fn find(&self, what: &str, find: impl Fn(&[Arc<Get>]) -> Option<Arc<Get>>) -> Arc<Get> {
        within(what, async {
            loop {
                let more = self.more.notified();
                if let Some(get) = find(&self.all()) {
                    return get;
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
        let (held, ordered) = Held::new(false);
        let get = Arc::new(Get { seen, at: Instant::now(), held });
        let n = {
            let mut all = self.all.lock().unwrap();
            all.push(Arc::clone(&get));
            all.len() - 1
        };
        let begin = (self.script)(n);
        get.set_open(matches!(begin, Begin::Open | Begin::Late(_) | Begin::With(_)));
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
        get.follow(reply, ordered, true).await;
    }
}

impl Get {
    pub fn session(&self) -> String {
        self.seen.session().unwrap_or_default()
    }

    pub fn last_event(&self) -> Option<String> {
        self.seen.header("last-event-id")
    }
}
