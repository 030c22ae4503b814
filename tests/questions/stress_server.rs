//! The server of the stress test: it asks at random, remembers who was asked what, and holds the proxy to that.
//!
//! Owns the ledger of calls and questions as the server saw them. Does not own what clients do (`stress`).
#![allow(unreachable_pub)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use crate::support::calls::withdrawal;
use crate::support::questions::{elicit, elicit_url, roots, sample};
use crate::support::{Choice, Gets, LegacyServer, Reply, Seen, Value, pass, rpc};

/// One question, from its asking on.
struct Question {
    n: u64,
    method: String,
    authorization: String,
    session: String,
    answered: Vec<(String, String, Value)>,
    waiter: Option<oneshot::Sender<Value>>,
}

#[derive(Default)]
pub struct Ledger {
    /// By the mark of the call: how often it ran.
    runs: Mutex<HashMap<u64, usize>>,
    /// By the raw id.
    questions: Mutex<HashMap<String, Question>>,
    /// By session and raw id: calls as they came, and how often each was cancelled.
    calls: Mutex<HashMap<(String, String), usize>>,
    ids: AtomicU64,
    running: AtomicI64,
    faults: Mutex<Vec<String>>,
}

impl Ledger {
    pub fn server(self: &Arc<Self>, gets: &Gets, beside: bool, seed: u64) -> LegacyServer {
        let (of_call, of_response, of_cancel) = (self.clone(), self.clone(), self.clone());
        let gets = gets.clone();
        let server = gets.of(LegacyServer::telling());
        server
            .on("tools/call", move |seen, reply| {
                let (ledger, gets) = (of_call.clone(), beside.then(|| gets.clone()));
                async move {
                    ledger.running.fetch_add(1, Ordering::SeqCst);
                    ledger.run(&seen, reply, gets, seed).await;
                    ledger.running.fetch_sub(1, Ordering::SeqCst);
                }
            })
            .on("response", move |seen, reply: Reply| {
                of_response.answered(&seen);
                async move { reply.empty(202).await }
            })
            .on("notifications/cancelled", move |seen, reply: Reply| {
                of_cancel.cancelled(&seen);
                async move { reply.empty(202).await }
            })
    }

    async fn run(&self, seen: &Seen, mut reply: Reply, gets: Option<Gets>, seed: u64) {
        let n = seen.json()["params"]["arguments"]["n"].as_u64().unwrap();
        *self.runs.lock().unwrap().entry(n).or_default() += 1;
        let session = seen.session().unwrap_or_default();
        self.calls.lock().unwrap().insert((session, seen.id()), 0);
        let mut choice = Choice::nth(seed, n);
        reply.stream().await;
        for _ in 0..choice.below(4) {
            choice.pause(60).await;
            // It minds a cancellation before it asks again.
            if is_closed(&mut reply).await {
                return;
            }
            let mut open = Vec::new();
            for _ in 0..=choice.below(2) {
                let (id, message, answer) = self.question(seen, n, &mut choice);
                match &gets {
                    None => reply.event(&message).await,
                    Some(gets) => tell(gets, seen, &message),
                }
                open.push((id, answer));
            }
            match choice.below(40) {
                // It takes one back, and does not wait for it.
                0 => {
                    let (id, _) = open.pop().unwrap();
                    pass(50).await;
                    match &gets {
                        None => reply.event(&withdrawal(&id)).await,
                        Some(gets) => tell(gets, seen, &withdrawal(&id)),
                    }
                }
                // It waits for none of them. Beside the calls this breaks what attribution rests on (B5): a call that has
                // asked does not finish before it is answered.
                1 if gets.is_none() => break,
                2 => {
                    choice.pause(1000).await;
                    return reply.reset();
                }
                _ => {}
            }
            for (_, answer) in open {
                tokio::select! {
                    _ = answer => {}
                    () = reply.closed() => return,
                }
            }
        }
        reply.result_event(seen, &format!(r#"{{"content":[{{"type":"text","text":"done {n}"}}]}}"#)).await;
        reply.end().await;
    }

    fn question(
        &self,
        seen: &Seen,
        n: u64,
        choice: &mut Choice,
    ) -> (String, String, oneshot::Receiver<Value>) {
        let number = self.ids.fetch_add(1, Ordering::SeqCst);
        let id = if choice.below(2) == 0 { number.to_string() } else { format!("\"{number}\"") };
        let mark = format!("of {n}");
        let message = match choice.below(6) {
            0 => sample(&id, &mark),
            1 => roots(&id),
            2 => elicit_url(&id, &mark, &format!("e{number}")),
            _ => elicit(&id, &mark),
        };
        let (waiter, answer) = oneshot::channel();
        let question = Question {
            n,
            method: rpc::method(message.as_bytes()).unwrap(),
            authorization: seen.header("authorization").unwrap_or_default(),
            session: seen.session().unwrap_or_default(),
            answered: Vec::new(),
            waiter: Some(waiter),
        };
        self.questions.lock().unwrap().insert(id.clone(), question);
        (id, message, answer)
    }

    fn answered(&self, seen: &Seen) {
        let id = rpc::id(&seen.body).unwrap_or_default();
        let mut questions = self.questions.lock().unwrap();
        let Some(question) = questions.get_mut(&id) else {
            self.faults.lock().unwrap().push(format!("an answer to nothing: {}", seen.text()));
            return;
        };
        let from = seen.header("authorization").unwrap_or_default();
        question.answered.push((from, seen.session().unwrap_or_default(), seen.json()));
        if let Some(waiter) = question.waiter.take() {
            let _ = waiter.send(seen.json());
        }
    }

    fn cancelled(&self, seen: &Seen) {
        let key = (seen.session().unwrap_or_default(), seen.json()["params"]["requestId"].to_string());
        match self.calls.lock().unwrap().get_mut(&key) {
            Some(times) => *times += 1,
            None => self.faults.lock().unwrap().push(format!("a cancellation of nothing: {}", seen.text())),
        }
    }

    /// Invariants 1 to 3 as far as the server can see them.
    pub fn holds(&self, calls: u64) {
        assert_eq!(*self.faults.lock().unwrap(), [] as [String; 0]);
        assert_eq!(self.running.load(Ordering::SeqCst), 0, "no call is waited for or left at the server");
        let runs = self.runs.lock().unwrap();
        let twice: Vec<_> = runs.iter().filter(|(_, times)| **times != 1).collect();
        assert!(twice.is_empty(), "not run once: {twice:?}");
        assert_eq!(runs.len() as u64, calls, "every call was seen");
        let often: Vec<_> = self.calls.lock().unwrap().clone().into_iter().filter(|(_, n)| *n > 1).collect();
        assert!(often.is_empty(), "cancelled more than once: {often:?}");
        for (id, question) in self.questions.lock().unwrap().iter() {
            let context = format!("question {id} of call {}: {:?}", question.n, question.answered);
            assert!(question.answered.len() <= 1, "answered more than once: {context}");
            for (from, session, answer) in &question.answered {
                assert_eq!(from, &question.authorization, "{context}");
                assert_eq!(session, &question.session, "{context}");
                question.is_answered_by(answer, &context);
            }
        }
    }

    /// Questions that were asked, and those that were answered by a client.
    pub fn questions(&self) -> (usize, usize) {
        let questions = self.questions.lock().unwrap();
        let by_client = |question: &&Question| {
            question.answered.iter().any(|(_, _, answer)| {
                let result = &answer["result"];
                result["action"] == "accept" || result["model"].is_string() || result["roots"].is_array()
            })
        };
        (questions.len(), questions.values().filter(by_client).count())
    }
}

impl Question {
    /// What a client says names its call, or for roots, which have no room for that, its user.
    fn is_answered_by(&self, answer: &Value, context: &str) {
        crate::support::shape_answers::check(&self.method, answer);
        let Some(result) = answer.get("result") else { return };
        let own = format!("of {}", self.n);
        match self.method.as_str() {
            "sampling/createMessage" => assert_eq!(result["content"]["text"], own, "{context}"),
            "roots/list" => {
                let user = self.authorization.strip_prefix("Bearer ").unwrap_or("nobody");
                assert_eq!(result["roots"][0]["uri"], format!("file:///{user}"), "{context}");
            }
            _ if result["action"] == "accept" && result.get("content").is_some() => {
                assert_eq!(result["content"]["n"], own, "{context}");
            }
            _ => {}
        }
    }
}

async fn is_closed(reply: &mut Reply) -> bool {
    tokio::select! {
        biased;
        () = reply.closed() => true,
        () = tokio::task::yield_now() => false,
    }
}

fn tell(gets: &Gets, seen: &Seen, message: &str) {
    let session = seen.session().unwrap_or_default();
    let all = gets.all();
    let get = all.iter().rfind(|get| get.session() == session && get.is_open());
    get.expect("a stream of the session").event(message);
}
