//! What came of a step, and the questions that its check may ask about it.
//!
//! Owns the reading of the answer and of both wires, by the rules of the two revisions. Does not own what a step expects.

use serde_json::{Value, json};

use super::client::Answer;
use super::frames::{Frame, Head, Way, Wire};

/// The vocabulary of the modern revision, in a message to a legacy server.
pub(super) const MODERN_META: &str = "io.modelcontextprotocol/";

/// What a check may look at.
pub(super) struct Seen<'a> {
    pub(super) answer: &'a Answer,
    pub(super) frames: &'a [Frame],
}

impl Seen<'_> {
    /// The answer's last message.
    pub(super) fn last(&self) -> &Value {
        self.answer.messages.last().unwrap_or(&Value::Null)
    }

    /// 200 with a complete modern result under the client's own id.
    pub(super) fn ok(&self, id: impl Into<Value>) -> Result<(), String> {
        self.status(200)?;
        let (last, id) = (self.last(), id.into());
        expect(last["id"] == id, format!("the answer's id is {}, not {id}", last["id"]))?;
        self.result("/resultType", &json!("complete"))
    }

    pub(super) fn error(&self, status: u16, id: u64, code: i64) -> Result<(), String> {
        self.status(status)?;
        let last = self.last();
        expect(last["id"] == id, format!("the answer's id is {}, not {id}", last["id"]))?;
        expect(last["error"]["code"] == code, format!("the answer should be the error {code}: {last}"))
    }

    pub(super) fn status(&self, status: u16) -> Result<(), String> {
        expect(self.answer.status == status, format!("the status is {}, not {status}", self.answer.status))
    }

    pub(super) fn result(&self, pointer: &str, value: &Value) -> Result<(), String> {
        let found = self.last()["result"].pointer(pointer);
        expect(found == Some(value), format!("result{pointer} should be {value}: {}", self.last()))
    }

    pub(super) fn heads(&self, way: Way) -> impl Iterator<Item = &Head> {
        heads(self.frames, way)
    }

    pub(super) fn back(&self, way: Way) -> Vec<Value> {
        back(self.frames, way)
    }

    /// The methods of what the server got.
    pub(super) fn methods(&self) -> Vec<String> {
        let name = |message: &Value| message["method"].as_str().unwrap_or_default().to_owned();
        self.back(Way::ToServer).iter().map(name).collect()
    }

    /// The one message of this method that the server got: numbered by the proxy, without modern vocabulary.
    pub(super) fn one(&self, method: &str) -> Result<Value, String> {
        let mut sent = self.back(Way::ToServer);
        sent.retain(|message| message["method"] == method);
        let (1, Some(message)) = (sent.len(), sent.pop()) else {
            return Err(format!("the server should get {method} once"));
        };
        expect(message["id"].is_u64() || message["id"].is_null(), "the proxy should number what it sends")?;
        expect(!message.to_string().contains(MODERN_META), "modern _meta should not go upstream")?;
        Ok(message)
    }
}

/// The heads on the wire to the server.
pub(super) fn heads(frames: &[Frame], way: Way) -> impl Iterator<Item = &Head> {
    let of = move |frame: &&Frame| frame.wire == Wire::Back && frame.way == way;
    frames.iter().filter(of).filter_map(|frame| frame.what.head())
}

/// The messages on the wire to the server.
pub(super) fn back(frames: &[Frame], way: Way) -> Vec<Value> {
    let of = |frame: &&Frame| frame.wire == Wire::Back && frame.way == way;
    frames.iter().filter(of).filter_map(|frame| serde_json::from_str(frame.what.json()).ok()).collect()
}

pub(super) fn expect(holds: bool, otherwise: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}
