//! What the server says: one of either era that answers out of order, tells of progress and changes, asks, and sometimes never
//! answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;
use tokio::time::{Duration, sleep};

use crate::Ledger;
use crate::support::{Choice, LegacyServer, ModernServer, Reply, Seen, Value, json, modern};

/// Marks each call's question.
const PARAMS: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"systemPrompt":"of N","maxTokens":1}"#;
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// A call of so many gets no answer at all.
const SILENT: u64 = 97;

/// The server's own questions that wait for their answers, by their marks.
type Open = Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>;

pub(crate) fn legacy(ledger: &Arc<Ledger>) -> LegacyServer {
    let open = Open::default();
    let (answered, ledger) = (open.clone(), ledger.clone());
    LegacyServer::telling()
        .on("response", move |seen, reply: Reply| {
            let answered = answered.clone();
            async move {
                let id = seen.json()["id"].as_str().unwrap_or_default().to_owned();
                if let Some(waiting) = answered.lock().unwrap().remove(&id) {
                    let _ = waiting.send(());
                }
                reply.empty(202).await;
            }
        })
        .on("tools/call", move |seen, reply| {
            let (ledger, open) = (ledger.clone(), open.clone());
            async move { run_legacy(&ledger, &open, &seen, reply).await }
        })
        .on("GET", |seen, mut reply| async move {
            reply.stream().await;
            tell(&mut reply, seen.connection as u64, &json!({})).await;
        })
}

/// Tells of changes until nobody listens.
async fn tell(reply: &mut Reply, seed: u64, meta: &Value) {
    let mut choice = Choice::of(seed + 77);
    for turn in 0.. {
        tokio::select! {
            () = sleep(Duration::from_millis(choice.below(900) + 50)) => {}
            () = reply.closed() => return,
        }
        let (method, mut params) = match turn % 2 {
            0 => ("notifications/tools/list_changed", json!({})),
            _ => ("notifications/resources/updated", json!({"uri": "file:///d"})),
        };
        if !meta.as_object().unwrap().is_empty() {
            params["_meta"] = meta.clone();
        }
        reply.event(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }
}

fn count(ledger: &Ledger, mark: String) {
    *ledger.ran.lock().unwrap().entry(mark).or_default() += 1;
}

/// What comes before the end of a call; `false` if nobody waits for it any more.
async fn begin(params: &Value, n: u64, choice: &mut Choice, reply: &mut Reply) -> bool {
    tokio::select! {
        () = choice.pause(200) => {}
        () = reply.closed() => return false,
    }
    if n.is_multiple_of(SILENT) {
        reply.closed().await;
        return false;
    }
    let token = &params["_meta"]["progressToken"];
    reply.stream().await;
    for progress in 0..if token.is_null() { 0 } else { choice.below(3) } {
        reply
            .event(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress}}}}}"#
            ))
            .await;
    }
    true
}

/// The content of a result by which its call is known.
fn content(n: u64) -> String {
    let text = if n.is_multiple_of(11) { "x".repeat(200_000) } else { String::new() };
    format!(r#""content":[{{"type":"text","text":"{n} {text}"}}]"#)
}

async fn run_legacy(ledger: &Ledger, open: &Open, seen: &Seen, mut reply: Reply) {
    let params = seen.json()["params"].clone();
    let n = params["arguments"]["n"].as_u64().unwrap();
    count(ledger, n.to_string());
    let mut choice = Choice::of(n * 7);
    if !begin(&params, n, &mut choice, &mut reply).await {
        return;
    }
    if n.is_multiple_of(3) {
        let (id, params) = (format!("q-{n}"), PARAMS.replace("of N", &format!("of {n}")));
        let (answer, answered) = oneshot::channel();
        open.lock().unwrap().insert(id.clone(), answer);
        let method = "sampling/createMessage";
        reply
            .event(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#))
            .await;
        let over = tokio::select! {
            answer = answered => answer.is_err(),
            () = reply.closed() => true,
        };
        if over {
            open.lock().unwrap().remove(&id);
            return;
        }
    }
    reply.result_event(seen, &format!("{{{}}}", content(n))).await;
    reply.end().await;
}

pub(crate) fn modern(ledger: &Arc<Ledger>) -> ModernServer {
    let ledger = ledger.clone();
    ModernServer::full()
        .on("tools/call", move |seen, reply| {
            let ledger = ledger.clone();
            async move { run_modern(&ledger, &seen, reply).await }
        })
        .on("subscriptions/listen", |seen, mut reply| async move {
            let request = seen.json();
            let meta = json!({SUBSCRIPTION: request["id"]});
            let promise = json!({"_meta": meta, "notifications": request["params"]["notifications"]});
            let acknowledged = "notifications/subscriptions/acknowledged";
            reply.stream().await;
            reply
                .event(&json!({"jsonrpc": "2.0", "method": acknowledged, "params": promise}).to_string())
                .await;
            tell_asked(&mut reply, &seen, &meta).await;
        })
}

/// Of what a listen asks for.
async fn tell_asked(reply: &mut Reply, seen: &Seen, meta: &Value) {
    let filter = seen.json()["params"]["notifications"].clone();
    let both = filter["toolsListChanged"] == true && filter["resourceSubscriptions"].is_array();
    if both {
        tell(reply, seen.body.len() as u64, meta).await;
    } else {
        reply.closed().await;
    }
}

async fn run_modern(ledger: &Ledger, seen: &Seen, mut reply: Reply) {
    let params = seen.json()["params"].clone();
    let n = params["arguments"]["n"].as_u64().unwrap();
    let rounds = params["requestState"].as_str().map_or(0, |state| state.len() as u64);
    count(ledger, format!("{n} in round {rounds}"));
    let mut choice = Choice::of(n * 7 + rounds);
    if !begin(&params, n, &mut choice, &mut reply).await {
        return;
    }
    let result = if n.is_multiple_of(3) && rounds < 1 + n % 2 {
        let asked = PARAMS.replace("of N", &format!("of {n}"));
        let entry = format!(r#"{{"method":"sampling/createMessage","params":{asked}}}"#);
        modern::asks(&[("k", &entry)], Some(&format!("\"{}\"", "s".repeat(rounds as usize + 1))))
    } else {
        modern::complete("tools/call", &content(n))
    };
    reply.result_event(seen, &result).await;
    reply.end().await;
}
