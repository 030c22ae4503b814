//! B1, B2, B5, C44, C45: elicitation, sampling and roots through a stdio host, whatever the two eras.

use super::stage::{Host, echo, is_error, modern, modern_with, text};
use super::support::questions::{self, ACCEPT, ROOTS, SAMPLED};
use super::support::{Calls, Gets, LegacyServer, ModernServer, Proxy, Value, json, pass};

const KINDS: [(&str, &str); 3] =
    [("elicitation/create", ACCEPT), ("sampling/createMessage", SAMPLED), ("roots/list", ROOTS)];

fn answer(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// What a server asks: an elicitation, a sampling, the roots.
fn question(id: &str, kind: &str) -> String {
    match kind {
        "elicitation/create" => questions::elicit(id, "who?"),
        "sampling/createMessage" => questions::sample(id, "say"),
        _ => questions::roots(id),
    }
}

/// The same as an entry of a modern server's round.
fn entry(kind: &str) -> String {
    let asked: Value = serde_json::from_str(&question("0", kind)).unwrap();
    match asked.get("params") {
        Some(params) => json!({"method": kind, "params": params}).to_string(),
        None => json!({"method": kind}).to_string(),
    }
}

/// Two calls at once, each asked by its server on its own stream, with small ids that the host uses too (C44).
#[tokio::test(start_paused = true)]
async fn c44_a_legacy_host_before_a_legacy_server() {
    let calls = Calls::new();
    let (proxy, up) = Proxy::before(&calls.of(LegacyServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", questions::ALL).await;
    for (n, (kind, result)) in (1..).zip(KINDS) {
        host.say(&echo("5", r#"{"n":1}"#)).await;
        let call = calls.wait(n).await;
        call.event(&question("5", kind));
        let asked = host.told(kind).await;
        assert_eq!(asked["id"], json!(5), "as it was");
        host.say(&answer(&asked["id"], result)).await;
        let told = up.wait("response", n).await.pop().unwrap();
        assert_eq!(told.json(), serde_json::from_str::<Value>(&answer(&json!(5), result)).unwrap());
        assert_eq!(told.session(), Some(call.session()));
        call.finish("done");
        assert_eq!(text(&host.answer("5").await), "done");
    }
    host.quiet(1000).await;
}

/// What the server asks on the session's own stream, and an answer that is an error.
#[tokio::test(start_paused = true)]
async fn c44_on_the_sessions_own_stream() {
    let gets = Gets::open();
    let (proxy, up) = Proxy::before(&gets.of(LegacyServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", questions::ALL).await;
    gets.wait(1).await;
    gets.tell(&questions::request("\"p\"", "ping", "{}"));
    let ping = host.told("ping").await;
    host.say(&answer(&ping["id"], "{}")).await;
    up.wait("response", 1).await;
    gets.tell(&questions::sample("6", "say"));
    host.told("sampling/createMessage").await;
    host.say(r#"{"jsonrpc":"2.0","id":6,"error":{"code":-1,"message":"no"}}"#).await;
    let told = up.wait("response", 2).await.pop().unwrap();
    assert_eq!(told.json()["error"]["code"], -1);
    host.quiet(1000).await;
}

/// D84: a modern server's round becomes real requests on the channel, all at once, and the answers another request.
#[tokio::test(start_paused = true)]
async fn d84_a_legacy_host_before_a_modern_server() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", questions::ALL).await;
    host.say(&echo("1", "{}")).await;
    host.say(&echo("\"1\"", r#"{"n":2}"#)).await;
    let other = calls.marked(2).await;
    let first = calls.all().into_iter().find(|call| call.argument("n").is_null()).unwrap();
    let entries: Vec<_> = KINDS.iter().map(|(kind, _)| (*kind, entry(kind))).collect();
    let entries: Vec<_> = entries.iter().map(|(key, entry)| (*key, entry.as_str())).collect();
    first.asks(&entries, Some("\"S\""));
    for (kind, result) in KINDS {
        let asked = host.told(kind).await;
        host.say(&answer(&asked["id"], result)).await;
    }
    let second = calls.wait(3).await;
    assert_eq!(second.params()["requestState"], "S");
    for (kind, result) in KINDS {
        let expected: Value = serde_json::from_str(result).unwrap();
        assert_eq!(second.params()["inputResponses"][kind], expected, "{kind}");
    }
    second.completes("asked");
    assert_eq!(text(&host.answer("1").await), "asked");
    other.completes("not asked");
    assert_eq!(text(&host.answer("\"1\"").await), "not asked");
    host.quiet(1000).await;
}

/// D33: a legacy server's question ends the request with `input_required`; the retry resumes the same call.
#[tokio::test(start_paused = true)]
async fn d33_a_modern_host_before_a_legacy_server() {
    for (kind, result) in KINDS {
        let calls = Calls::new();
        let (proxy, up) = Proxy::before(&calls.of(LegacyServer::new())).await;
        let mut host = Host::launch(&proxy);
        let call_of = |id: &str, more: &str| {
            modern_with(
                id,
                "tools/call",
                questions::ALL,
                &format!(r#""name":"echo","arguments":{{"n":1}}{more}"#),
            )
        };
        host.say(&call_of("1", "")).await;
        let call = calls.wait(1).await;
        call.event(&question("7", kind));
        let round = host.answer("1").await;
        assert_eq!(round["result"]["resultType"], "input_required", "{round}");
        let asked = round["result"]["inputRequests"].as_object().unwrap();
        let (key, entry) = asked.iter().next().unwrap();
        assert_eq!((asked.len(), &entry["method"]), (1, &json!(kind)));
        let state = &round["result"]["requestState"];
        let more = format!(r#","inputResponses":{{"{key}":{result}}},"requestState":{state}"#);
        host.say(&call_of("2", &more)).await;
        let told = up.wait("response", 1).await;
        assert_eq!(told[0].json()["id"], json!(7));
        call.finish("done");
        assert_eq!(text(&host.answer("2").await), "done");
        assert_eq!(up.posts("tools/call").len(), 1, "run once");
        host.quiet(1000).await;
    }
}

/// A modern server's round is its host's to answer, byte for byte.
#[tokio::test(start_paused = true)]
async fn a_modern_host_before_a_modern_server() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::launch(&proxy);
    host.say(&modern_with("1", "tools/call", questions::ALL, r#""name":"echo""#)).await;
    calls.wait(1).await.asks(&[("k", &entry("roots/list"))], Some("\"\\u0053\""));
    let round = host.answer("1").await;
    assert_eq!(round["result"]["inputRequests"]["k"]["method"], "roots/list");
    let retry = format!(r#""name":"echo","inputResponses":{{"k":{ROOTS}}},"requestState":"\u0053""#);
    host.say(&modern_with("2", "tools/call", questions::ALL, &retry)).await;
    let second = calls.wait(2).await;
    assert!(second.seen.text().contains(r#""requestState":"\u0053""#));
    second.completes("done");
    assert_eq!(text(&host.answer("2").await), "done");
}

/// C45: four questions of two calls, each twice, answered to the one that asked.
#[tokio::test(start_paused = true)]
async fn c45_each_call_gets_its_own_answers() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", questions::FORM).await;
    for n in 1..=2 {
        host.say(&echo(&n.to_string(), &format!(r#"{{"n":{n}}}"#))).await;
    }
    for round in 0..2 {
        for n in 1..=2 {
            let words = format!("call {n} round {round}");
            let asked =
                format!(r#"{{"method":"elicitation/create","params":{}}}"#, questions::form_params(&words));
            let of_it = |call: &std::sync::Arc<super::support::Call>| call.argument("n") == json!(n);
            calls.wait(2 * (round + 1)).await;
            calls.all().into_iter().rfind(of_it).unwrap().asks(&[("k", &asked)], None);
        }
        for _ in 0..2 {
            let asked = host.told("elicitation/create").await;
            let words = asked["params"]["message"].as_str().unwrap();
            let result = format!(r#"{{"action":"accept","content":{{"n":"{words}"}}}}"#);
            host.say(&answer(&asked["id"], &result)).await;
        }
        for _ in 0..2 {
            calls.wait(2 * (round + 2)).await;
        }
        for call in calls.all().into_iter().skip(2 * (round + 1)) {
            let told = &call.params()["inputResponses"]["k"]["content"]["n"];
            assert_eq!(*told, format!("call {} round {round}", call.argument("n")));
        }
    }
    for call in calls.all().into_iter().skip(4) {
        call.completes(&format!("done {}", call.argument("n")));
    }
    assert_eq!(text(&host.answer("1").await), "done 1");
    assert_eq!(text(&host.answer("2").await), "done 2");
}

/// A2 ("Direction summary"): a modern server that asks by a request, and a modern host that answers, are not heard.
#[tokio::test(start_paused = true)]
async fn a2_no_requests_go_to_a_modern_host() {
    let calls = Calls::new();
    let (proxy, up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::launch(&proxy);
    host.say(&modern("0", "server/discover", "")).await;
    host.answer("0").await;
    host.say(&modern_with("1", "tools/call", questions::ALL, r#""name":"echo""#)).await;
    let call = calls.wait(1).await;
    call.event(&questions::roots("3"));
    pass(1000).await;
    host.say(&answer(&json!(3), ROOTS)).await;
    pass(1000).await;
    call.completes("done");
    text(&host.answer("1").await);
    host.quiet(1000).await;
    assert_eq!(up.briefs().iter().filter(|brief| *brief == "response").count(), 0);
}

/// B2.1: what the host has not declared is not asked.
#[tokio::test(start_paused = true)]
async fn b2_1_what_was_not_declared_is_not_asked() {
    let calls = Calls::new();
    let (proxy, _up) = Proxy::before_modern(&calls.of_modern(ModernServer::new())).await;
    let mut host = Host::initialized(&proxy, "2025-11-25", "{}").await;
    host.say(&echo("1", "{}")).await;
    calls.wait(1).await.asks(&[("k", &entry("roots/list"))], None);
    assert_eq!(host.answer("1").await["result"]["isError"], true);
    host.say(r#"{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"p"}}"#).await;
    calls.wait(2).await.asks(&[("k", &entry("roots/list"))], None);
    is_error(&host.answer("2").await, -32603);
}
