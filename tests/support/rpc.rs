//! JSON-RPC envelopes looked at without losing a byte: ids, results and params as the raw text that was sent.
//!
//! Owns reading and writing of envelopes in tests. Does not own what a valid message is (`shape`).

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

fn envelope(body: &[u8]) -> Option<Envelope<'_>> {
    serde_json::from_slice(body).ok()
}

/// The id exactly as written; `None` where there is none or where it is `null`.
pub fn id(body: &[u8]) -> Option<String> {
    envelope(body)?.id.map(|raw| raw.get().to_owned())
}

pub fn method(body: &[u8]) -> Option<String> {
    envelope(body)?.method
}

pub fn params(body: &[u8]) -> Option<String> {
    envelope(body)?.params.map(|raw| raw.get().to_owned())
}

pub fn result(body: &[u8]) -> Option<String> {
    envelope(body)?.result.map(|raw| raw.get().to_owned())
}

/// A message as a tree, for looking at; the number and the escape that a tree cannot hold are read as others.
pub fn value(text: &[u8]) -> serde_json::Result<serde_json::Value> {
    let fits = |_| {
        let text = String::from_utf8_lossy(text).replace("1e400", "1e40").replace(r#""\ud800""#, r#""""#);
        serde_json::from_str(&text)
    };
    serde_json::from_slice(text).or_else(fits)
}

pub fn result_message(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

pub fn error_message(id: &str, error: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}
