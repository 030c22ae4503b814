//! D33, D43, B1.1, B4.2, A8: one question of every kind, from a legacy server to a modern client and back, byte for byte.

use crate::stage::{Stage, asking, done, ends_with};
use crate::support::questions::{
    ACCEPT, ALL, CONSENT, DECLINE, FORM, ROOTS, SAMPLED, SCHEMA, elicit, elicit_url, form_params, request,
    roots, sample, sample_with_tools,
};
use crate::support::{Ask, Gets, LegacyServer, Round, Value, call, get_prompt, json, pass, read, rpc};

#[tokio::test(start_paused = true)]
async fn d33_elicit_basic() {
    let stage = Stage::new().await;
    let ask = call("ask", r#"{"n":1}"#).caps(FORM).id("1");
    let (round, call) = stage.asked(&ask, &[&elicit("7", "m")]).await;
    let key = round.only();
    let params: Value = serde_json::from_str(&form_params("m")).unwrap();
    assert_eq!(round.entry(&key), &json!({"method": "elicitation/create", "params": params}));
    assert_eq!(
        round.done.headers.media_type().as_deref(),
        Some("application/json"),
        "nothing came before it"
    );
    assert_eq!((stage.parked(), call.is_open(), stage.answers()), (1, true, vec![]), "it stays parked");
    let retry = stage.run(&round.answer("2", ACCEPT));
    let answer = stage.answer("7", "elicitation/create").await;
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "accept", "content": {"n": "x"}}})
    );
    let posted = &stage.up.posts("")[0];
    assert_eq!(posted.session().unwrap_or_default(), call.session(), "in the session that asked");
    call.finish("the end");
    let done = done(retry).await;
    ends_with(&done, "the end");
    assert_eq!(done.message["id"], 2);
    stage.is_over(1).await;
    assert_eq!(stage.cancelled(), [] as [Value; 0]);
    stage.nothing_is_left().await;
}

/// What the server asks, what the client is to read of it, what it says to it, and what the server is to read of that.
struct Kind {
    name: &'static str,
    question: String,
    entry: Value,
    answer: &'static str,
    result: Value,
}

fn kinds() -> Vec<Kind> {
    let params = |raw: &str| serde_json::from_str::<Value>(raw).unwrap()["params"].clone();
    let raw = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let kind = |name, question: String, without: &[&str], answer| {
        let method = rpc::method(question.as_bytes()).unwrap();
        let mut entry = json!({"method": method, "params": params(&question)});
        for word in without {
            entry["params"].as_object_mut().unwrap().remove(*word);
        }
        if method == "roots/list" {
            entry = json!({"method": "roots/list"});
        }
        Kind { name, question, entry, answer, result: raw(answer) }
    };
    let form = |extra: &str| {
        let params = format!(r#"{{{extra}"message":"m","requestedSchema":{SCHEMA}}}"#);
        request("7", "elicitation/create", &params)
    };
    let old_words = r#""task":{"ttl":1},"_meta":{"progressToken":1,"x":2},"elicitationId":"e","#;
    vec![
        kind("form", elicit("7", "m"), &[], ACCEPT),
        kind("form, named so", form(r#""mode":"form","#), &[], ACCEPT),
        kind("A8.8 task, _meta", form(old_words), &["task", "_meta", "elicitationId"], ACCEPT),
        kind("a member of nobody's", form(r#""x-acme":{"a":[1]},"#), &[], ACCEPT),
        kind("B4.2 url", elicit_url("7", "go", "e-1"), &["elicitationId"], CONSENT),
        kind("decline", elicit("7", "m"), &[], DECLINE),
        kind("cancel", elicit("7", "m"), &[], r#"{"action":"cancel"}"#),
        kind("sampling", sample("7", "p"), &[], SAMPLED),
        kind("sampling with tools", sample_with_tools("7"), &[], SAMPLED),
        kind("D43 roots", roots("7"), &[], ROOTS),
        kind("D43 roots with params", request("7", "roots/list", r#"{"_meta":{"x":1}}"#), &[], ROOTS),
        kind("no roots at all", roots("7"), &[], r#"{"roots":[]}"#),
    ]
}

/// Invariant 6, A8, A1.12 to A1.14: each method that may ask, each kind of question.
#[tokio::test(start_paused = true)]
async fn b1_1_every_kind_in_every_method() {
    for kind in kinds() {
        for ask in [asking(1), get_prompt("p").caps(ALL), read("file:///x").caps(ALL)] {
            let stage = Stage::new().await;
            let (round, call) = stage.asked(&ask, &[&kind.question]).await;
            assert_eq!(round.entry(&round.only()), &kind.entry, "{}", kind.name);
            for word in ["elicitationId", "\"task\"", "progressToken"] {
                assert!(!round.done.raw.contains(word), "{word}, {}: {}", kind.name, round.done.raw);
            }
            let retry = stage.run(&round.answer("2", kind.answer));
            let method = kind.entry["method"].as_str().unwrap();
            assert_eq!(stage.answer("7", method).await["result"], kind.result, "{}", kind.name);
            call.finish("the end");
            ends_with(&done(retry).await, "the end");
            stage.is_over(1).await;
        }
    }
}

/// D43: under the client's key, never under the server's id.
#[tokio::test(start_paused = true)]
async fn b1_3_the_servers_id_is_kept_in_its_type_and_never_shown() {
    for id in ["0", "-1", "7", r#""7""#, r#""s-1""#, r#""""#, r#""r\u00fcck\"""#, "9007199254740993"] {
        let stage = Stage::new().await;
        let (round, call) = stage.asked(&asking(1), &[&elicit(id, "m")]).await;
        let plain: Value = serde_json::from_str(id).unwrap();
        assert_ne!(round.only(), plain.as_str().map_or_else(|| id.to_owned(), str::to_owned));
        let retry = stage.run(&round.answer("2", ACCEPT));
        assert_eq!(stage.elicited(id).await["action"], "accept");
        call.finish("the end");
        ends_with(&done(retry).await, "the end");
    }
}

/// Two questions whose ids differ in their type only.
#[tokio::test(start_paused = true)]
async fn b1_3_ids_of_two_types_are_two_questions() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "number"), &elicit(r#""7""#, "text")]).await;
    let (number, text) = (round.key_of("number"), round.key_of("text"));
    let retry = stage.run(&round.retry("2", &[(&text, DECLINE), (&number, ACCEPT)]));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    assert_eq!(stage.elicited(r#""7""#).await["action"], "decline");
    call.finish("the end");
    ends_with(&done(retry).await, "the end");
}

/// Architecture, raw JSON: numbers, escapes, order and unknown members survive in both directions. X5.
#[tokio::test(start_paused = true)]
async fn x5_bytes_survive_in_both_directions() {
    let stage = Stage::new().await;
    let schema = r#"{"type":"object","properties":{"z":{"type":"number","maximum":1e400,"default":1.50},"a":{"type":"string","title":"\u00dc\/"},"m":{"type":"array","items":{"enum":["x","y"],"type":"string"}}}}"#;
    let question =
        request("7", "elicitation/create", &format!(r#"{{"requestedSchema":{schema},"message":"m\u2028"}}"#));
    let (round, call) = stage.asked(&asking(1), &[&question]).await;
    assert!(round.done.raw.contains(schema), "{}", round.done.raw);
    assert!(round.done.raw.contains(r#""m\u2028""#), "{}", round.done.raw);
    let content = r#"{"z":2.50,"big":123456789012345678901234567890,"a":"\u00fc\/","m":["y","x"],"b":true}"#;
    let retry = stage.run(&round.answer("2", &format!(r#"{{"action":"accept","content":{content}}}"#)));
    stage.elicited("7").await;
    let posted = stage.up.posts("")[0].clone();
    assert!(posted.text().contains(content), "{}", posted.text());
    call.finish("the end");
    ends_with(&done(retry).await, "the end");
}

/// A4.15: `ElicitResult` and `ListRootsResult` of an older server are plain objects; of modern words none goes to it.
#[tokio::test(start_paused = true)]
async fn a4_15_modern_words_of_an_answer_are_left_out() {
    let words = r#""resultType":"complete","_meta":{"x":1,"io.modelcontextprotocol/serverInfo":{"name":"c","version":"1"}},"ttlMs":1"#;
    let table = [
        (elicit("7", "m"), format!(r#"{{"action":"accept",{words},"content":{{"n":"x"}}}}"#), ACCEPT),
        (roots("7"), format!(r#"{{{words},"roots":[]}}"#), r#"{"roots":[]}"#),
    ];
    for (question, answer, wanted) in table {
        let stage = Stage::new().await;
        let (round, call) = stage.asked(&asking(1), &[&question]).await;
        let retry = stage.run(&round.answer("2", &answer));
        let method = rpc::method(question.as_bytes()).unwrap();
        let wanted: Value = serde_json::from_str(wanted).unwrap();
        assert_eq!(stage.answer("7", &method).await["result"], wanted);
        call.finish("the end");
        ends_with(&done(retry).await, "the end");
    }
}

/// A sampling result keeps what its block and it itself carry, but for words of the modern revision.
#[tokio::test(start_paused = true)]
async fn a4_15_a_sampling_result_keeps_its_members() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&sample("7", "p")]).await;
    let answer = r#"{"resultType":"complete","role":"assistant","model":"m","content":{"type":"image","data":"AA==","mimeType":"image/png","_meta":{"k":1}}}"#;
    let retry = stage.run(&round.answer("2", answer));
    let result = stage.answer("7", "sampling/createMessage").await["result"].clone();
    assert_eq!(result["content"]["_meta"], json!({"k": 1}), "{result}");
    assert_eq!((&result["role"], &result["model"]), (&json!("assistant"), &json!("m")));
    assert!(result.get("resultType").is_none(), "{result}");
    call.finish("the end");
    ends_with(&done(retry).await, "the end");
}

/// C25: a client that reads JSON only is asked, and answered, in JSON.
#[tokio::test(start_paused = true)]
async fn c25_a_client_that_takes_json_only() {
    let stage = Stage::new().await;
    let ask: Ask = asking(1).header("Accept", "application/json").meta("progressToken", "1");
    let begun = stage.begin(&ask).await;
    begun.call.progress(1);
    pass(1000).await;
    begun.call.event(&elicit("7", "m"));
    let call = begun.call.clone();
    let round = begun.round().await;
    assert_eq!(round.done.headers.media_type().as_deref(), Some("application/json"));
    let retry = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    call.progress(2);
    pass(1000).await;
    call.finish("the end");
    let done = done(retry).await;
    assert_eq!(done.headers.media_type().as_deref(), Some("application/json"));
    ends_with(&done, "the end");
    stage.is_over(1).await;
}

/// D46: a ping while the call waits for its client, and one beside a question.
#[tokio::test(start_paused = true)]
async fn d46_a_ping_between_the_rounds() {
    let stage = Stage::new().await;
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let (round, call) = stage.asked(&asking(1), &[&ping("1"), &elicit("7", "m"), &ping("2")]).await;
    call.event(&ping("3"));
    stage.gets.wait(1).await.event(&ping("4"));
    pass(1000).await;
    for id in ["1", "2", "3", "4"] {
        assert_eq!(stage.answers_to(id).len(), 1, "{id}");
        assert_eq!(stage.answers_to(id)[0]["result"], json!({}));
    }
    let retry = stage.run(&round.answer("2", ACCEPT));
    stage.elicited("7").await;
    call.finish("the end");
    let done = done(retry).await;
    ends_with(&done, "the end");
    assert_eq!((Round::keys(&round).len(), done.before.len()), (1, 0), "the client sees nothing of it");
}

/// Both rounds on one connection of the client, as SDKs do it.
#[tokio::test(start_paused = true)]
async fn d33_on_one_connection() {
    let stage = Stage::new().await;
    let ask = asking(1);
    let opening = stage.proxy.connection().open(&ask);
    let asking = async {
        let call = stage.calls.wait(1).await;
        call.event(&elicit("7", "m"));
        call
    };
    let (answer, call) = tokio::join!(opening, asking);
    let (first, connection) = answer.done_keeping().await;
    let round = Round::of(&ask, first);
    let retry = round.answer("2", ACCEPT);
    let finishing = async {
        stage.elicited("7").await;
        call.finish("the end");
    };
    let (answer, ()) = tokio::join!(connection.open(&retry), finishing);
    ends_with(&answer.done().await, "the end");
    stage.is_over(1).await;
}

/// A14.1: a server of 2025-03-26 may put its requests into one array.
#[tokio::test(start_paused = true)]
async fn a14_1_questions_in_an_array() {
    let server = LegacyServer::telling().version("2025-03-26");
    let stage = Stage::of(server, Gets::open(), "", "").await;
    let ping = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
    let array = format!("[{},{ping},{}]", sample("7", "p"), roots("8"));
    let (round, call) = stage.asked(&asking(1), &[&array]).await;
    let (think, all) = (round.key_of("p"), round.key_of("roots/list"));
    let client = stage.run(&round.retry("2", &[(&think, SAMPLED), (&all, ROOTS)]));
    stage.answer("7", "sampling/createMessage").await;
    stage.answer("8", "roots/list").await;
    assert_eq!(stage.answers_to("9").len(), 1);
    call.event(&format!("[{}]", rpc::result_message(&call.seen.id(), r#"{"content":[]}"#)));
    call.end();
    assert_eq!(done(client).await.result()["content"], json!([]));
    stage.is_over(1).await;
}

/// A server that breaks the rule of unique ids harms nobody but itself.
#[tokio::test(start_paused = true)]
async fn a14_2_two_questions_with_one_id() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "one"), &elicit("7", "two")]).await;
    let client = stage.run(&round.answer_all("2", ACCEPT));
    stage.up.wait("response", 1).await;
    pass(1000).await;
    assert!(stage.answers().len() <= 2, "{:?}", stage.answers());
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}
