//! What legacy servers ask, as raw messages, and what a client may answer to each kind.
//!
//! Owns the well-formed question and answer of every kind. Does not own their way through the proxy.

/// Every capability that a question may need.
pub const ALL: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}"#;
pub const FORM: &str = r#"{"elicitation":{}}"#;
pub const URL: &str = r#"{"elicitation":{"url":{}}}"#;

pub const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}"#;
/// The answer to a form, to a URL, to sampling and to roots.
pub const ACCEPT: &str = r#"{"action":"accept","content":{"n":"x"}}"#;
pub const CONSENT: &str = r#"{"action":"accept"}"#;
pub const DECLINE: &str = r#"{"action":"decline"}"#;
pub const SAMPLED: &str =
    r#"{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m-1","stopReason":"endTurn"}"#;
pub const ROOTS: &str = r#"{"roots":[{"uri":"file:///home","name":"home"}]}"#;

const MESSAGES: &str = r#""messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10"#;

/// The parameters of a form with this message.
pub fn form_params(message: &str) -> String {
    format!(r#"{{"message":"{message}","requestedSchema":{SCHEMA}}}"#)
}

/// A request of a server, its id and parameters as raw JSON.
pub fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub fn elicit(id: &str, message: &str) -> String {
    request(id, "elicitation/create", &form_params(message))
}

pub fn elicit_url(id: &str, message: &str, elicitation: &str) -> String {
    request(
        id,
        "elicitation/create",
        &format!(
            r#"{{"mode":"url","elicitationId":"{elicitation}","url":"https://s.test/{elicitation}","message":"{message}"}}"#
        ),
    )
}

/// `systemPrompt` marks it.
pub fn sample(id: &str, prompt: &str) -> String {
    request(id, "sampling/createMessage", &format!(r#"{{{MESSAGES},"systemPrompt":"{prompt}"}}"#))
}

pub fn sample_with_tools(id: &str) -> String {
    let tools = r#""tools":[{"name":"t","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}"#;
    request(id, "sampling/createMessage", &format!("{{{MESSAGES},{tools}}}"))
}

pub fn roots(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#)
}

/// The error -32042 that asks for these elicitations, by id.
pub fn url_required(elicitations: &[&str]) -> String {
    let all: Vec<_> = elicitations
        .iter()
        .map(|id| {
            format!(
                r#"{{"mode":"url","elicitationId":"{id}","url":"https://s.test/{id}","message":"go to {id}"}}"#
            )
        })
        .collect();
    format!(
        r#"{{"code":-32042,"message":"URL elicitation required","data":{{"elicitations":[{}]}}}}"#,
        all.join(",")
    )
}

pub fn completed(elicitation: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{{"elicitationId":"{elicitation}"}}}}"#
    )
}
