//! The tool `book`: what it asks in the middle of its call, and what it makes of the answer.
//!
//! Owns the question's form and every way in which it can end, by specification 2025-11-25, client/elicitation. Pure; the
//! asking itself is `calls`.

use std::time::Duration;

use serde_json::{Value, json};

use super::features::{text_result, tool_error};

const MOST_GUESTS: u64 = 12;

/// The tool, as `tools/list` shows it.
pub(super) fn tool() -> Value {
    json!({
        "name": "book",
        "title": "Book",
        "description": "Books a table, after asking for how many. Only pretends to.",
        "inputSchema": {
            "type": "object",
            "properties": { "place": { "type": "string", "description": "Where the table is." } },
            "required": ["place"],
        },
    })
}

/// Whether a client that said this at `initialize` can be shown a form. There are none before 2025-06-18; since
/// 2025-11-25 a client may take only pages to visit, and an empty object still means forms.
pub(super) fn can_be_asked(version: &str, capabilities: &Value) -> bool {
    let Some(elicitation) = capabilities["elicitation"].as_object() else { return false };
    let only_pages = elicitation.contains_key("url") && !elicitation.contains_key("form");
    version >= "2025-06-18" && (version < "2025-11-25" || !only_pages)
}

/// The `params` of `elicitation/create`.
pub(super) fn question(place: &str) -> Value {
    json!({
        "message": format!("A table at {place}: for how many?"),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "guests": { "type": "integer", "title": "Guests", "minimum": 1, "maximum": MOST_GUESTS },
                "terrace": { "type": "boolean", "title": "On the terrace", "default": false },
            },
            "required": ["guests"],
        },
    })
}

/// The tool's result where the client cannot be asked.
pub(super) fn without_asking() -> Value {
    tool_error("book has to ask for how many the table is, and this client does not take forms (elicitation)")
}

/// The tool's result where nobody answered.
pub(super) fn without_answer(waited: Duration) -> Value {
    tool_error(&format!("nothing was booked: nobody answered within {waited:?}"))
}

/// The tool's result by the client's response, which may be anything.
pub(super) fn outcome(place: &str, response: &Value) -> Value {
    if let Some(error) = response.get("error") {
        let message = error["message"].as_str().unwrap_or("no reason given");
        return tool_error(&format!("nothing was booked: the client could not ask ({message})"));
    }
    let answer = &response["result"];
    match answer["action"].as_str() {
        Some("accept") => booked(place, &answer["content"]),
        Some("decline") => text_result("Nothing was booked: the question was declined."),
        Some("cancel") => text_result("Nothing was booked: the question was dismissed."),
        _ => tool_error("nothing was booked: the answer has no action"),
    }
}

fn booked(place: &str, content: &Value) -> Value {
    let guests = whole(&content["guests"]).filter(|guests| (1..=MOST_GUESTS).contains(guests));
    let terrace = match &content["terrace"] {
        Value::Null => Some(false),
        other => other.as_bool(),
    };
    let (Some(guests), Some(terrace)) = (guests, terrace) else {
        let needed = format!("guests, an integer from 1 to {MOST_GUESTS}, and terrace, true or false");
        return tool_error(&format!("nothing was booked: the form needs {needed}"));
    };
    let seat = if terrace { "on the terrace" } else { "inside" };
    text_result(&format!("A table for {guests} at {place}, {seat}."))
}

/// A whole number, however it is written: `2.0` is one too.
fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..1e9).contains(number))?;
    // In that range nothing is lost.
    Some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// client/elicitation, Capabilities, of each revision.
    #[test]
    fn who_can_be_asked() {
        for (version, capabilities, can) in [
            ("2025-11-25", json!({}), false),
            ("2025-11-25", json!({ "elicitation": {} }), true),
            ("2025-11-25", json!({ "elicitation": { "form": {} } }), true),
            ("2025-11-25", json!({ "elicitation": { "form": {}, "url": {} } }), true),
            ("2025-11-25", json!({ "elicitation": { "url": {} } }), false),
            ("2025-11-25", json!({ "elicitation": true }), false),
            ("2025-06-18", json!({ "elicitation": {} }), true),
            ("2025-06-18", json!({ "sampling": {} }), false),
            ("2025-03-26", json!({ "elicitation": {} }), false),
        ] {
            assert_eq!(can_be_asked(version, &capabilities), can, "{version} {capabilities}");
        }
    }

    /// client/elicitation, Response Actions.
    #[test]
    fn every_answer_comes_to_a_result() {
        let accept = |content: Value| json!({ "result": { "action": "accept", "content": content } });
        for (response, failed, part) in [
            (accept(json!({ "guests": 2 })), false, "A table for 2 at Luigi's, inside."),
            (accept(json!({ "guests": 2.0, "terrace": true })), false, "for 2 at Luigi's, on the terrace"),
            (accept(json!({ "guests": 0 })), true, "an integer from 1 to 12"),
            (accept(json!({ "guests": "2" })), true, "an integer from 1 to 12"),
            (accept(json!({ "guests": 2, "terrace": "yes" })), true, "true or false"),
            (json!({ "result": { "action": "accept" } }), true, "an integer from 1 to 12"),
            (json!({ "result": { "action": "decline" } }), false, "declined"),
            (json!({ "result": { "action": "cancel" } }), false, "dismissed"),
            (json!({ "result": {} }), true, "no action"),
            (json!({ "error": { "code": -32602, "message": "no forms" } }), true, "(no forms)"),
            (json!({ "error": 1 }), true, "no reason given"),
        ] {
            let result = outcome("Luigi's", &response);
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains(part), "{part}: {text}");
            assert_eq!(result.get("isError").is_some(), failed, "{response}");
        }
    }
}
