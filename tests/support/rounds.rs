//! A modern client that is asked (`input_required`) and tries again with what it was asked for.
//!
//! Owns the retry: the same request under a new id, with `inputResponses` and the state as it came. Whatever it is asked is
//! checked (`shape_input`).

use super::{Ask, Done, Value, shape_input};

/// One round of questions, as the client got it.
#[derive(Debug)]
pub struct Round {
    pub done: Done,
    ask: Ask,
}

impl Round {
    /// Fails the test where the answer asks nothing.
    #[track_caller]
    pub fn of(ask: &Ask, done: Done) -> Self {
        assert_eq!(done.result()["resultType"], "input_required", "a round of questions: {}", done.raw);
        shape_input::check(ask, done.result());
        Self { done, ask: ask.clone() }
    }

    pub fn state(&self) -> &str {
        self.done.result()["requestState"].as_str().expect("a state")
    }

    pub fn entries(&self) -> &serde_json::Map<String, Value> {
        self.done.result()["inputRequests"].as_object().expect("questions")
    }

    pub fn keys(&self) -> Vec<String> {
        self.entries().keys().cloned().collect()
    }

    pub fn entry(&self, key: &str) -> &Value {
        &self.entries()[key]
    }

    /// The key of the only question.
    #[track_caller]
    pub fn only(&self) -> String {
        let keys = self.keys();
        assert_eq!(keys.len(), 1, "one question: {}", self.done.raw);
        keys[0].clone()
    }

    /// The key of the question with this message, prompt or method.
    #[track_caller]
    pub fn key_of(&self, words: &str) -> String {
        let says = |entry: &Value| {
            let params = &entry["params"];
            [&params["message"], &params["systemPrompt"], &entry["method"]].iter().any(|text| **text == words)
        };
        let found: Vec<_> = self.entries().iter().filter(|(_, entry)| says(entry)).collect();
        assert_eq!(found.len(), 1, "one question that says {words}: {}", self.done.raw);
        found[0].0.clone()
    }

    /// The retry with these answers, each as raw JSON.
    pub fn retry(&self, id: &str, answers: &[(&str, &str)]) -> Ask {
        retry(&self.ask, id, &responses(answers), self.state())
    }

    /// The retry that answers the only question.
    #[track_caller]
    pub fn answer(&self, id: &str, answer: &str) -> Ask {
        self.retry(id, &[(&self.only(), answer)])
    }

    /// The retry that answers every question with the same.
    pub fn answer_all(&self, id: &str, answer: &str) -> Ask {
        let keys = self.keys();
        self.retry(id, &keys.iter().map(|key| (key.as_str(), answer)).collect::<Vec<_>>())
    }

    /// The request that was answered with this round.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }
}

/// An object of these members, each value as raw JSON.
pub fn responses(answers: &[(&str, &str)]) -> String {
    let all: Vec<_> = answers.iter().map(|(key, value)| format!(r#""{key}":{value}"#)).collect();
    format!("{{{}}}", all.join(","))
}

/// `ask` once more under another id, with these `inputResponses` (raw JSON) and this state.
pub fn retry(ask: &Ask, id: &str, responses: &str, state: &str) -> Ask {
    let state = serde_json::to_string(state).expect("text");
    let ask = ask.clone().id(id).without_member("inputResponses").without_member("requestState");
    ask.member("inputResponses", responses).member("requestState", &state)
}
