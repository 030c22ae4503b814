//! B1.8, B1.10, X5: what a client answers, looked at by the kind of the question before the server sees it.

use crate::stage::{STATES_REFUSED, Stage, asking, done, ends_with, next_round};
use crate::support::questions::{ACCEPT, CONSENT, ROOTS, SAMPLED, elicit, elicit_url, roots, sample};
use crate::support::rounds::retry;
use crate::support::{Value, json, pass};

const BAD_ELICITED: [&str; 18] = [
    "null",
    "5",
    r#""accept""#,
    "[]",
    "{}",
    r#"{"action":null}"#,
    r#"{"action":5}"#,
    r#"{"action":"maybe"}"#,
    r#"{"action":"ACCEPT"}"#,
    r#"{"content":{"n":"x"}}"#,
    r#"{"action":"accept","content":"x"}"#,
    r#"{"action":"accept","content":["x"]}"#,
    r#"{"action":"accept","content":{"n":{"deep":1}}}"#,
    r#"{"action":"accept","content":{"n":null}}"#,
    r#"{"action":"accept","content":{"n":[1,2]}}"#,
    r#"{"action":"accept","content":{"n":["a",["b"]]}}"#,
    r#"{"action":"accept","action":"decline"}"#,
    SAMPLED,
];

const BAD_SAMPLED: [&str; 11] = [
    "null",
    "{}",
    r#"{"action":"decline"}"#,
    r#"{"role":"assistant","model":"m"}"#,
    r#"{"role":"assistant","content":{"type":"text","text":"x"}}"#,
    r#"{"content":{"type":"text","text":"x"},"model":"m"}"#,
    r#"{"role":"system","content":{"type":"text","text":"x"},"model":"m"}"#,
    r#"{"role":"assistant","content":"x","model":"m"}"#,
    r#"{"role":"assistant","content":{"text":"x"},"model":"m"}"#,
    r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":5}"#,
    r#"{"error":{"code":-1,"message":"User rejected"}}"#,
];

const BAD_ROOTS: [&str; 8] = [
    "null",
    "[]",
    "{}",
    r#"{"roots":{}}"#,
    r#"{"roots":["file:///x"]}"#,
    r#"{"roots":[{"name":"x"}]}"#,
    r#"{"roots":[{"uri":5}]}"#,
    r#"{"roots":[{"uri":"file:///x"},null]}"#,
];

/// Each of the bad ones is refused, the server gets nothing, and then the good one is taken.
async fn refuses_all(question: &str, method: &str, bad: &[&str], good: &str) {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[question]).await;
    let before = stage.up.briefs();
    for answer in bad {
        let done = stage.proxy.send(&round.answer("2", answer)).await;
        assert_eq!(
            (done.status, done.message["error"]["code"].as_i64()),
            (200, Some(-32602)),
            "{answer}: {}",
            done.raw
        );
    }
    pass(1000).await;
    assert_eq!(stage.up.briefs(), before, "the server is not bothered");
    assert_eq!((stage.parked(), stage.metric(STATES_REFUSED, &["answers"])), (1, bad.len() as f64));
    let client = stage.run(&round.answer("3", good));
    stage.answer("7", method).await;
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

#[tokio::test(start_paused = true)]
async fn b1_10_answers_to_forms_that_are_none() {
    refuses_all(&elicit("7", "m"), "elicitation/create", &BAD_ELICITED, ACCEPT).await;
}

#[tokio::test(start_paused = true)]
async fn b1_10_answers_to_urls_that_are_none() {
    refuses_all(&elicit_url("7", "m", "e"), "elicitation/create", &BAD_ELICITED, CONSENT).await;
}

#[tokio::test(start_paused = true)]
async fn b1_10_answers_to_sampling_that_are_none() {
    refuses_all(&sample("7", "p"), "sampling/createMessage", &BAD_SAMPLED, SAMPLED).await;
}

#[tokio::test(start_paused = true)]
async fn b1_10_answers_to_roots_that_are_none() {
    refuses_all(&roots("7"), "roots/list", &BAD_ROOTS, ROOTS).await;
}

/// X5: a number of any kind is a good value, as texts, booleans and rows of texts are.
#[tokio::test(start_paused = true)]
async fn x5_values_of_a_form() {
    for value in ["2.5", "-0.0", "1e3", "7", r#""x""#, "true", r#"["a","b"]"#, "[]", r#""""#] {
        let stage = Stage::new().await;
        let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
        let answer = format!(r#"{{"action":"accept","content":{{"n":{value}}}}}"#);
        let client = stage.run(&round.answer("2", &answer));
        let wanted: Value = serde_json::from_str(value).unwrap();
        assert_eq!(stage.elicited("7").await["content"]["n"], wanted);
        call.finish("the end");
        ends_with(&done(client).await, "the end");
    }
}

/// `inputResponses` itself is no object, or says one key twice.
#[tokio::test(start_paused = true)]
async fn b1_10_answers_that_are_no_object_of_answers() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&elicit("7", "m")]).await;
    let key = round.only();
    let escaped: String = key.chars().map(|c| format!("\\u{:04x}", c as u32)).collect();
    let table = [
        "5".to_owned(),
        "[]".to_owned(),
        format!("[{ACCEPT}]"),
        format!(r#"{{"{key}":{ACCEPT},"{key}":{{"action":"decline"}}}}"#),
        format!(r#"{{"{key}":{ACCEPT},"{escaped}":{{"action":"decline"}}}}"#),
    ];
    for responses in &table {
        let done = stage.unmoved(stage.proxy.send(&retry(round.ask(), "2", responses, round.state()))).await;
        assert!([-32600, -32602].contains(&done.code()), "{responses}: {}", done.raw);
    }
    // Written otherwise it is the same key.
    let client = stage.run(&retry(round.ask(), "3", &format!(r#"{{"{escaped}":{ACCEPT}}}"#), round.state()));
    assert_eq!(stage.elicited("7").await["action"], "accept");
    call.finish("the end");
    ends_with(&done(client).await, "the end");
    stage.is_over(1).await;
}

/// A good answer beside a bad one: all or nothing, so that the good one is not answered twice later on.
#[tokio::test(start_paused = true)]
async fn b1_10_one_good_and_one_bad() {
    for swapped in [false, true] {
        let stage = Stage::new().await;
        let (round, call) = stage.asked(&asking(1), &[&elicit("7", "name"), &sample("8", "think")]).await;
        let (name, think) = (round.key_of("name"), round.key_of("think"));
        let bad = if swapped {
            [(&*name, ACCEPT), (&*think, ACCEPT)]
        } else {
            [(&*think, SAMPLED), (&*name, SAMPLED)]
        };
        stage.refuses(&round.retry("2", &bad)).await;
        let client = stage.run(&round.retry("3", &[(&name, ACCEPT), (&think, SAMPLED)]));
        stage.elicited("7").await;
        stage.answer("8", "sampling/createMessage").await;
        call.finish("the end");
        ends_with(&done(client).await, "the end");
        assert_eq!(stage.answers().len(), 2);
    }
}

/// Members that no revision knows stay, where the schema is open.
#[tokio::test(start_paused = true)]
async fn a8_13_a8_14_roots_pass_with_what_they_carry() {
    let stage = Stage::new().await;
    let (round, call) = stage.asked(&asking(1), &[&roots("7")]).await;
    let answer = r#"{"roots":[{"uri":"file:///a","name":"a","_meta":{"k":1}},{"uri":"file:///b"}]}"#;
    let client = stage.run(&round.answer("2", answer));
    let result = stage.answer("7", "roots/list").await["result"].clone();
    assert_eq!(result, serde_json::from_str::<Value>(answer).unwrap());
    call.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// A8.13: `Root._meta` is unknown before 2025-06-18.
#[tokio::test(start_paused = true)]
async fn a8_13_root_meta_for_old_revisions() {
    for version in ["2025-03-26", "2024-11-05"] {
        let server = crate::support::LegacyServer::telling().version(version);
        let stage = Stage::of(server, crate::support::Gets::open(), "", "").await;
        let (round, call) = stage.asked(&asking(1), &[&roots("7")]).await;
        let client =
            stage.run(&round.answer("2", r#"{"roots":[{"uri":"file:///a","_meta":{"k":1},"name":"a"}]}"#));
        let result = stage.answer("7", "roots/list").await["result"].clone();
        assert_eq!(result, json!({"roots": [{"uri": "file:///a", "name": "a"}]}), "{version}");
        call.finish("the end");
        ends_with(&done(client).await, "the end");
    }
}

/// A6.7: a server before 2025-11-25 is answered with one block: all texts joined, else the first.
#[tokio::test(start_paused = true)]
async fn a6_7_a_row_of_blocks_for_old_revisions() {
    let server = crate::support::LegacyServer::telling().version("2025-06-18");
    let stage = Stage::of(server, crate::support::Gets::open(), "", "").await;
    let (round, call) = stage.asked(&asking(1), &[&sample("7", "p")]).await;
    let answer = r#"{"role":"assistant","model":"m","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#;
    let client = stage.run(&round.answer("2", answer));
    let result = stage.answer("7", "sampling/createMessage").await["result"].clone();
    let content = &result["content"];
    assert_eq!(content["type"], "text", "{result}");
    let text = content["text"].as_str().unwrap();
    assert!(text.starts_with('a') && text.ends_with('b'), "{result}");
    call.finish("the end");
    ends_with(&done(client).await, "the end");
}

/// B1.8: sampling and roots have no way to decline but to leave the key out; when the rounds are used up, the server is
/// told so, and what it makes of it is the client's answer.
#[tokio::test(start_paused = true)]
async fn b1_8_a8_15_a_decline_by_silence() {
    for (question, method, code) in
        [(sample("7", "p"), "sampling/createMessage", -1), (roots("7"), "roots/list", -32603)]
    {
        let stage = Stage::with("[upstream.up.limits]\nrounds = 3\n").await;
        let (mut round, call) = stage.asked(&asking(1), &[&question]).await;
        for id in ["2", "3"] {
            let retry = round.retry(id, &[]);
            round = next_round(&retry, stage.run(&retry)).await;
        }
        assert_eq!(stage.answers().len(), 0);
        let client = stage.run(&round.retry("4", &[]));
        assert_eq!(stage.refused("7", method).await, code);
        call.finish("without it");
        ends_with(&done(client).await, "without it");
        stage.is_over(1).await;
        assert_eq!(stage.metric(crate::stage::QUESTIONS_REFUSED, &["rounds"]), 1.0);
    }
}
