//! A client of either era over any transport; it hears everything that comes, wherever it comes, and all of it is checked.
//!
//! Owns how requests, answers and cancellations go out over each transport; `check` looks at what was heard. Does not own what a
//! test asks or expects.

mod check;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::task::JoinHandle;

use super::{Answer, Ask, Ear, Host, Old, OldSse, Proxy, Said, Value, call, rpc};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Modern,
    Legacy(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Http,
    /// The legacy HTTP with Server-Sent Events of 2024-11-05.
    HttpSse,
    /// The client has launched the proxy, or the proxy the server.
    Stdio,
}

/// What every client can be asked; the same for all, so that its calls share one session.
pub const CAPS: &str = r#"{"sampling":{},"roots":{}}"#;
/// A bound of the proxy is reached; the one status of 500 and more that a legacy client gets.
const BUSY: u16 = 503;

pub struct Party {
    pub era: Era,
    pub ear: Ear,
    proxy: Arc<Proxy>,
    token: Option<String>,
    way: Way,
    asked: Mutex<Vec<Asked>>,
    /// By raw id, over HTTP: who reads the response.
    reading: Mutex<HashMap<String, JoinHandle<()>>>,
    stream: Mutex<Option<JoinHandle<()>>>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Raw ids of requests that were given up.
    given_up: Mutex<Vec<String>>,
    /// It was told that its session is not known.
    lost: AtomicBool,
}

enum Way {
    Modern,
    Legacy(Old),
    Host(Host),
    HttpSse(OldSse),
}

/// A request that was sent.
#[derive(Debug, Clone)]
struct Asked {
    id: String,
    method: String,
    token: Option<Value>,
}

impl Party {
    /// A client that has done whatever its era does first; the answer to `initialize` must be a result. Anonymous.
    pub async fn join(proxy: &Arc<Proxy>, era: Era, from: Transport) -> Self {
        let party = Self::try_join(proxy, era, from, None).await;
        party.unwrap_or_else(|answer| panic!("a session, not {answer}"))
    }

    /// The same with this bearer token, if its transport has one; the answer where `initialize` is refused.
    pub async fn try_join(
        proxy: &Arc<Proxy>,
        era: Era,
        from: Transport,
        token: Option<&str>,
    ) -> Result<Self, Value> {
        let (way, ear) = match (era, from) {
            (Era::Modern, Transport::Http) => (Way::Modern, Ear::default()),
            (Era::Legacy(version), Transport::Http) => {
                let ask = Old::initialize_with(version, CAPS);
                let answer = proxy.open(&token.iter().fold(ask, |ask, token| ask.bearer(token))).await;
                if answer.status == BUSY {
                    return Err(busy(answer).await.1);
                }
                let done = answer.done().await;
                if done.message.get("result").is_none() {
                    return Err(done.message);
                }
                let ear = Ear::default();
                ear.hear(&done.raw, Some("0"));
                (Way::Legacy(Old::initialized(proxy, &done, token).await), ear)
            }
            (_, Transport::Stdio) => {
                let host = Host::launch(proxy);
                let ear = host.ear.clone();
                (Way::Host(host), ear)
            }
            (_, Transport::HttpSse) => {
                let old = match OldSse::try_open(proxy, "/sse", token).await {
                    Ok(old) => old,
                    Err((status, body)) => {
                        assert_eq!(status, BUSY, "{body}");
                        return Err(rpc::value(body.as_bytes()).expect("a body is JSON"));
                    }
                };
                let ear = old.ear.clone();
                (Way::HttpSse(old), ear)
            }
        };
        let (proxy, token) = (Arc::clone(proxy), token.map(str::to_owned));
        let (asked, reading, stream, state) =
            (Mutex::default(), Mutex::default(), Mutex::default(), Arc::default());
        let party = Self { era, ear, proxy, token, way, asked, reading, stream, state };
        party.begin().await?;
        Ok(party)
    }

    async fn begin(&self) -> Result<(), Value> {
        match (&self.way, self.era) {
            (Way::Host(_) | Way::HttpSse(_), Era::Legacy(version)) => {
                self.send(&Old::initialize_with(version, CAPS)).await;
                let answered = |said: &Said| said.is_answer() && said.id() == "0";
                let Some(answer) = self.ear.first_or_over("0", answered).await else {
                    return Err(Value::Null);
                };
                if answer.message.get("result").is_none() {
                    return Err(answer.message);
                }
                self.say(&Ask::old("notifications/initialized").notification()).await;
            }
            (Way::Legacy(_), _) => self.note_asked("0", "initialize", None),
            (Way::Modern | Way::Host(_) | Way::HttpSse(_), _) => {}
        }
        Ok(())
    }

    /// What `initialize` was answered.
    pub fn initialized(&self) -> Value {
        let all = self.ear.all();
        all.into_iter()
            .find(|said| said.id() == "0")
            .map_or(Value::Null, |said| said.message["result"].clone())
    }

    /// Opens the stream of a legacy client's session, where its transport has one beside the requests'; says whether it has.
    pub async fn open_stream(&self) -> bool {
        let Way::Legacy(old) = &self.way else { return false };
        let mut answer = self.proxy.open(&old.get()).await;
        if !answer.is_stream() {
            self.state.lost.fetch_or(answer.status == 404, Ordering::SeqCst);
            return false;
        }
        let ear = self.ear.clone();
        let reading = tokio::spawn(async move {
            while let Ok(true) = answer.read_on().await {
                while let Some(event) = answer.events.next() {
                    if !event.data.is_empty() {
                        ear.hear(&event.data, None);
                    }
                }
            }
        });
        if let Some(before) = self.stream.lock().unwrap().replace(reading) {
            before.abort();
        }
        true
    }

    /// Whether it was told that its session is not known, or its only channel is over.
    pub fn is_lost(&self) -> bool {
        self.state.lost.load(Ordering::SeqCst) || self.ear.is_over()
    }

    /// A request of this client's era without parameters of its own.
    pub fn ask(&self, method: &str) -> Ask {
        let ask = match (self.era, &self.way) {
            (Era::Modern, _) => Ask::new(method).caps(CAPS),
            (Era::Legacy(_), Way::Legacy(old)) => old.ask(method),
            (Era::Legacy(_), _) => Ask::old(method),
        };
        self.token.iter().fold(ask, |ask, token| ask.bearer(token))
    }

    pub fn call(&self, tool: &str, arguments: &str) -> Ask {
        match self.era {
            Era::Modern => {
                let ask = call(tool, arguments).caps(CAPS);
                self.token.iter().fold(ask, |ask, token| ask.bearer(token))
            }
            Era::Legacy(_) => {
                self.ask("tools/call").params(&format!(r#""name":"{tool}","arguments":{arguments}"#))
            }
        }
    }

    fn note_asked(&self, id: &str, method: &str, token: Option<Value>) {
        let asked = Asked { id: id.to_owned(), method: method.to_owned(), token };
        self.asked.lock().unwrap().push(asked);
    }

    /// Sends a request; what comes of it is heard.
    pub async fn send(&self, ask: &Ask) {
        let body = ask.body();
        let id = rpc::id(&body).expect("a request");
        let token = rpc::value(&body).unwrap()["params"]["_meta"].get("progressToken").cloned();
        self.note_asked(&id, &ask.method, token);
        match &self.way {
            Way::Modern | Way::Legacy(_) => {
                let (proxy, state) = (Arc::clone(&self.proxy), Arc::clone(&self.state));
                let reading = read(proxy, ask.clone(), id.clone(), self.ear.clone(), state);
                self.reading.lock().unwrap().insert(id, tokio::spawn(reading));
            }
            Way::Host(_) | Way::HttpSse(_) => self.say(ask).await,
        }
    }

    /// Sends an array of 2025-03-26; what is answered to its requests is heard.
    pub async fn send_array(&self, texts: &[String]) {
        for text in texts {
            let (id, method) = (rpc::id(text.as_bytes()), rpc::method(text.as_bytes()));
            if let Some(id) = id {
                self.note_asked(&id, &method.unwrap_or_default(), None);
            }
        }
        let ask = self.ask("").raw_body(format!("[{}]", texts.join(",")).as_bytes());
        match &self.way {
            Way::Modern | Way::Legacy(_) => {
                let (proxy, state) = (Arc::clone(&self.proxy), Arc::clone(&self.state));
                let reading = read(proxy, ask, String::new(), self.ear.clone(), state);
                self.reading.lock().unwrap().insert(texts.join(","), tokio::spawn(reading));
            }
            Way::Host(_) | Way::HttpSse(_) => self.say(&ask).await,
        }
    }

    /// Sends a notification.
    pub async fn note(&self, ask: &Ask) {
        let text = String::from_utf8(ask.clone().notification().body()).unwrap();
        let ask = match &self.way {
            Way::Legacy(old) => old.raw(&text),
            Way::Modern | Way::Host(_) | Way::HttpSse(_) => Ask::old("").raw_body(text.as_bytes()),
        };
        self.say(&ask).await;
    }

    /// Sends a request and waits for its answer.
    pub async fn answered(&self, ask: &Ask) -> Said {
        self.send(ask).await;
        self.ear.answer(ask.id.as_deref().unwrap()).await
    }

    /// The result of a request; anything else fails the test.
    pub async fn result(&self, ask: &Ask) -> Value {
        let said = self.answered(ask).await;
        said.message.get("result").cloned().unwrap_or_else(|| panic!("a result, not {}", said.raw))
    }

    /// A message that gets no answer.
    async fn say(&self, ask: &Ask) {
        let text = String::from_utf8(ask.body()).unwrap();
        match &self.way {
            Way::Modern => panic!("a modern client says nothing over HTTP but requests: {text}"),
            Way::Legacy(_) => {
                let done = self.proxy.send(ask).await;
                // A server that ends in this very moment has not got it.
                if done.status == 404 || done.status == 502 {
                    return self.state.lost.store(true, Ordering::SeqCst);
                }
                assert_eq!((done.status, done.raw.as_str()), (202, ""), "{text}");
            }
            Way::Host(host) => host.say(&text).await,
            Way::HttpSse(old) => {
                let (status, body) = old.post(&text).await;
                match status {
                    202 => {}
                    // Its stream has ended, and with it the session.
                    404 => self.state.lost.store(true, Ordering::SeqCst),
                    _ => panic!("{status} {body} to {text}"),
                }
            }
        }
    }

    /// Gives up a request as its era and transport do it.
    pub async fn cancel(&self, id: &str) {
        self.state.given_up.lock().unwrap().push(id.to_owned());
        if let Way::Modern = &self.way {
            let reading = self.reading.lock().unwrap().remove(id).expect("a request");
            return reading.abort();
        }
        let note = match &self.way {
            Way::Legacy(old) => old.note("notifications/cancelled"),
            Way::Modern | Way::Host(_) | Way::HttpSse(_) => {
                Ask::old("notifications/cancelled").notification()
            }
        };
        self.say(&note.params(&format!(r#""requestId":{id},"reason":"enough""#))).await;
    }

    /// Its connection for this request goes, without a word; `false` where its transport has one for all.
    pub fn hang_up(&self, id: &str) -> bool {
        let reading = self.reading.lock().unwrap().remove(id);
        reading.inspect(JoinHandle::abort).is_some()
    }

    /// Answers a question of the server.
    pub async fn answer(&self, question: &Said, result: &str) {
        self.respond(&rpc::result_message(&question.id(), result)).await;
    }

    /// Refuses it.
    pub async fn refuse(&self, question: &Said) {
        self.respond(&rpc::error_message(&question.id(), r#"{"code":-1,"message":"no"}"#)).await;
    }

    async fn respond(&self, text: &str) {
        let ask = match &self.way {
            Way::Legacy(old) => old.raw(text),
            Way::Modern | Way::Host(_) | Way::HttpSse(_) => Ask::old("").raw_body(text.as_bytes()),
        };
        self.say(&ask).await;
    }

    /// The end of the client, in order; `false` where its transport knows none. A session may be over already.
    pub async fn leave(&self) -> bool {
        match &self.way {
            Way::Modern => return false,
            Way::HttpSse(old) => old.hang_up(),
            Way::Legacy(old) => {
                let status = self.proxy.send(&old.delete()).await.status;
                assert!((200..300).contains(&status) || status == 404, "{status}");
                assert_eq!(self.proxy.send(&old.ask("tools/list")).await.status, 404);
            }
            Way::Host(host) => host.end().await,
        }
        true
    }
}

/// One request over HTTP (an array has no id), and all that comes in its response.
async fn read(proxy: Arc<Proxy>, ask: Ask, id: String, ear: Ear, state: Arc<State>) {
    let on = Some(id.as_str()).filter(|id| !id.is_empty());
    let mut answer = proxy.open(&ask).await;
    if answer.status == 202 {
        let given_up = state.given_up.lock().unwrap().contains(&id);
        assert!(given_up, "C04: a request is never answered by nothing: {id}");
        return;
    }
    state.lost.fetch_or(ask.legacy && answer.status == 404, Ordering::SeqCst);
    if !answer.is_stream() {
        let raw = if answer.status == BUSY { busy(answer).await.0 } else { answer.done().await.raw };
        ear.hear(&raw, on);
        return ear.over_on(&id);
    }
    while let Ok(true) = answer.read_on().await {
        while let Some(event) = answer.events.next() {
            if !event.data.is_empty() {
                ear.hear(&event.data, on);
            }
        }
    }
    ear.over_on(&id);
}

/// The body of a refusal for want of room, as text and as a message.
async fn busy(mut answer: Answer) -> (String, Value) {
    assert!(answer.headers.has("retry-after"), "{:?}", answer.headers);
    let text = String::from_utf8(answer.pieces().await.0).expect("a body is UTF-8");
    let message = rpc::value(text.as_bytes()).expect("a body is JSON");
    (text, message)
}

impl Drop for Party {
    fn drop(&mut self) {
        let reading = self.reading.get_mut().unwrap().drain().map(|(_, reading)| reading);
        reading.chain(self.stream.get_mut().unwrap().take()).for_each(|reading| reading.abort());
        if !std::thread::panicking() {
            self.check();
        }
    }
}
