//! What a client of either era may hear, wherever it comes: each request has one answer at most, under its own id; progress has
//! its token and comes before the answer; nothing has words of the other era.
//!
//! Owns what holds over every transport. Does not own the rules of single messages (`shape`, `shape_down`).

use super::super::shape_down::{View, answer as is_answer};
use super::super::shape_down_asks::question as is_question;
use super::super::{Said, Value, rpc, shape};
use super::{Asked, CAPS, Era, Party};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Party {
    /// Everything heard so far, checked.
    pub fn check(&self) {
        let (all, asked) = (self.ear.all(), self.asked.lock().unwrap().clone());
        let mut answered: Vec<String> = Vec::new();
        for said in &all {
            let context = format!("{} to a client of {:?}", said.raw, self.era);
            assert!(!said.in_array || self.era == Era::Legacy("2025-03-26"), "A14.1: no arrays: {context}");
            if said.is_answer() {
                let id = said.id();
                let of = asked.iter().find(|asked| asked.id == id);
                let of = of.unwrap_or_else(|| panic!("A14.3: an answer to nothing: {context}"));
                assert!(said.on.as_ref().is_none_or(|on| *on == id), "on its own stream: {context}");
                assert!(!answered.contains(&id), "one answer: {context}");
                answered.push(id);
                self.check_answer(&of.method, said, &context);
            } else if said.is_question() {
                let Era::Legacy(_) = self.era else {
                    panic!("a modern client is sent no requests: {context}")
                };
                is_question(&self.view(), said.brief(), &said.message, &context);
            } else {
                self.check_notification(said, &asked, &answered, &context);
            }
        }
    }

    fn view(&self) -> View {
        let Era::Legacy(version) = self.era else { panic!("a modern client") };
        View { revision: version.to_owned(), declared: rpc::value(CAPS.as_bytes()).unwrap() }
    }

    fn check_answer(&self, method: &str, said: &Said, context: &str) {
        match (self.era, said.message.get("result")) {
            // What was agreed on may be an earlier revision.
            (Era::Legacy(_), _) if method == "initialize" => {}
            (Era::Legacy(_), _) => is_answer(&self.view(), Some(method), &said.message, context),
            (Era::Modern, Some(result)) => shape::assert_modern_result(method, result),
            (Era::Modern, None) => shape::assert_modern_error(None, &said.message["error"]),
        }
    }

    fn check_notification(&self, said: &Said, asked: &[Asked], answered: &[String], context: &str) {
        let params = &said.message["params"];
        if said.brief() == "notifications/progress" {
            // One that tries again may do so under the same token.
            let token = |asked: &&Asked| asked.token.as_ref() == Some(&params["progressToken"]);
            let of: Vec<_> = asked.iter().filter(token).map(|asked| &asked.id).collect();
            assert!(!of.is_empty(), "A14.4: nobody's token: {context}");
            assert!(said.on.as_ref().is_none_or(|on| of.contains(&on)), "on its own stream: {context}");
            assert!(of.iter().any(|id| !answered.contains(id)), "progress after the answer: {context}");
        }
        match self.era {
            Era::Legacy(_) => {
                assert!(!said.raw.contains("io.modelcontextprotocol/"), "A4: a modern word: {context}");
                assert!(!said.brief().starts_with("notifications/subscriptions/"), "A2.10: {context}");
            }
            Era::Modern => match params["_meta"].get(SUBSCRIPTION) {
                Some(of) => {
                    let listens = asked.iter().filter(|asked| asked.method == "subscriptions/listen");
                    let ids: Vec<Value> = listens.map(|one| rpc::value(one.id.as_bytes()).unwrap()).collect();
                    assert!(ids.contains(of), "B17: nobody's subscription: {context}");
                }
                None => shape::assert_modern_notification(&said.message, context),
            },
        }
    }
}
