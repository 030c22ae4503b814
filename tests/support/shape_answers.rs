//! What an answer to a legacy server's question must look like, from the texts of its revisions.
//!
//! Owns the form of every response that reaches a legacy server, whatever it was asked (applied as requests arrive), and
//! the form by kind of question. Does not own which answer one test expects.

use serde_json::Value;

/// Members of results that no revision before 2026-07-28 knows (A4.10, A4.11, B1).
const MODERN: [&str; 6] =
    ["resultType", "ttlMs", "cacheScope", "inputRequests", "inputResponses", "requestState"];

/// The breaches in one response; empty is good.
pub fn faults(message: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut that = |holds: bool, rule: &str| {
        if !holds {
            found.push(rule.to_owned());
        }
    };
    let Some(object) = message.as_object() else { return vec!["a response is an object".to_owned()] };
    let known = ["jsonrpc", "id", "result", "error"];
    that(object.keys().all(|key| known.contains(&key.as_str())), "a response has no other members");
    that(object.contains_key("result") != object.contains_key("error"), "result or error");
    if let Some(result) = object.get("result") {
        that(result.is_object(), "a result is an object");
        for word in MODERN {
            that(result.get(word).is_none(), &format!("no {word} to a legacy server"));
        }
        let reserved = result["_meta"]
            .as_object()
            .is_some_and(|meta| meta.keys().any(|key| key.starts_with("io.modelcontextprotocol/")));
        that(!reserved, "no reserved _meta key to a legacy server");
    }
    if let Some(error) = object.get("error") {
        that(error["code"].is_i64(), "an error has an integer code");
        that(error["message"].as_str().is_some_and(|text| !text.is_empty()), "an error has a message");
    }
    found
}

/// Fails the test where the answer is none to a question of this method.
pub fn check(method: &str, answer: &Value) {
    let context = format!("answer to {method}: {answer}");
    assert_eq!(faults(answer), [] as [String; 0], "{context}");
    let Some(result) = answer.get("result") else { return };
    match method {
        "elicitation/create" => {
            let action = result["action"].as_str().unwrap_or_default();
            assert!(["accept", "decline", "cancel"].contains(&action), "{context}");
            assert!(result.get("content").is_none_or(Value::is_object), "{context}");
            // A4.15: a plain object.
            assert!(result.get("_meta").is_none(), "{context}");
        }
        "sampling/createMessage" => {
            assert!(
                ["user", "assistant"].contains(&result["role"].as_str().unwrap_or_default()),
                "{context}"
            );
            assert!(result["model"].is_string(), "{context}");
            assert!(result["content"].is_object() || result["content"].is_array(), "{context}");
        }
        "roots/list" => {
            let roots = result["roots"].as_array().unwrap_or_else(|| panic!("{context}"));
            assert!(roots.iter().all(|root| root["uri"].is_string()), "{context}");
            assert!(result.get("_meta").is_none(), "{context}");
        }
        other => panic!("{other} is no question: {context}"),
    }
}
