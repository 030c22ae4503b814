//! D92, A6.6, A6.7, A8.9 to A8.13: what a model is asked, in the words of the client's revision.

use crate::stage::{LATEST, REVISIONS, ROOTED, ROOTS, SAMPLED, Stage, brings, parse};
use crate::support::{Value, json};

const AUDIO: &str = r#"{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}"#;
const IMAGE: &str = r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#;

/// An entry with these members besides `maxTokens`.
fn sample(members: &str) -> String {
    format!(r#"{{"method":"sampling/createMessage","params":{{"maxTokens":10,{members}}}}}"#)
}

fn says(content: &str) -> String {
    format!(r#""messages":[{{"role":"user","content":{content}}}]"#)
}

/// The parameters as a client of this revision gets them.
async fn shown(revision: &str, capabilities: &str, entry: &str) -> Value {
    let stage = Stage::new().await;
    let user = stage.user_with(revision, capabilities).await;
    let stream = stage.asked(&user, &[("k", entry)], None).await;
    let question = stream.question().await;
    user.answer(&question, SAMPLED).await;
    let second = stage.retried(1).await;
    assert_eq!(brings(&second)["k"], parse(SAMPLED), "{revision}");
    second.completes("done");
    stream.result().await;
    question["params"].clone()
}

const PLAIN: &str = r#"{"sampling":{}}"#;
const FULL: &str = r#"{"sampling":{"tools":{},"context":{}}}"#;

#[tokio::test(start_paused = true)]
async fn d92_loop_sampling_array_03() {
    let two = format!(
        r#""messages":[{{"role":"user","content":{{"type":"text","text":"a"}}}},{{"role":"assistant","content":[{{"type":"text","text":"b\u0041"}},{IMAGE}]}},{{"role":"user","content":[{{"type":"text","text":"c"}}]}}]"#
    );
    for revision in REVISIONS {
        let params = shown(revision, PLAIN, &sample(&two)).await;
        let messages = params["messages"].as_array().unwrap();
        if revision == LATEST {
            assert_eq!(messages.len(), 3, "{params}");
            assert_eq!(messages[1]["content"].as_array().unwrap().len(), 2, "{params}");
            continue;
        }
        let flat: Vec<_> = messages.iter().map(|m| (m["role"].clone(), m["content"].clone())).collect();
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(
            flat,
            [
                (json!("user"), text("a")),
                (json!("assistant"), text("bA")),
                (json!("assistant"), parse(IMAGE)),
                (json!("user"), text("c")),
            ],
            "{revision}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d92_audio_to_24_is_words() {
    for revision in REVISIONS {
        for content in [AUDIO.to_owned(), format!("[{AUDIO}]")] {
            let params = shown(revision, PLAIN, &sample(&says(&content))).await;
            let content = params["messages"][0]["content"].clone();
            let block = if content.is_array() { content[0].clone() } else { content };
            if revision == "2024-11-05" {
                assert_eq!(block["type"], "text", "{params}");
                assert!(block["text"].as_str().unwrap().contains("audio"), "{params}");
            } else {
                assert_eq!(block, parse(AUDIO), "{revision}");
            }
        }
    }
}

/// A8.9, A6.6: tools go to the revision that has them, and to clients that can use them.
#[tokio::test(start_paused = true)]
async fn a8_9_tools_of_a_sampling() {
    let tools = format!(
        r#"{},"tools":[{{"name":"t","inputSchema":{{"type":"object"}}}}],"toolChoice":{{"mode":"auto"}}"#,
        says(r#"[{"type":"tool_result","toolUseId":"u","content":[],"structuredContent":[1]}]"#)
    );
    let params = shown(LATEST, FULL, &sample(&tools)).await;
    assert_eq!(params["tools"][0]["name"], "t");
    assert_eq!(params["toolChoice"], json!({"mode": "auto"}));
    let result = params["messages"][0]["content"].clone();
    let result = if result.is_array() { result[0].clone() } else { result };
    assert_eq!(result["structuredContent"], json!({"result": [1]}), "A6.6: an object to that revision");
    let object = tools.replace(r#""structuredContent":[1]"#, r#""structuredContent":{"a":1}"#);
    let params = shown(LATEST, FULL, &sample(&object)).await;
    let result = params["messages"][0]["content"].clone();
    let result = if result.is_array() { result[0].clone() } else { result };
    assert_eq!(result["structuredContent"], json!({"a": 1}));
}

/// A8.10: what the client has not said it can include is not asked for.
#[tokio::test(start_paused = true)]
async fn a8_10_context() {
    for include in ["none", "thisServer", "allServers"] {
        let entry =
            sample(&format!(r#"{},"includeContext":"{include}""#, says(r#"{"type":"text","text":"t"}"#)));
        for revision in REVISIONS {
            for capabilities in [PLAIN, FULL] {
                let params = shown(revision, capabilities, &entry).await;
                let shown = params["includeContext"].as_str().unwrap_or("none");
                let declared = revision == LATEST && capabilities == FULL;
                assert_eq!(shown, if declared { include } else { "none" }, "{revision} {capabilities}");
            }
        }
    }
}

/// Everything else is passed, to the byte.
#[tokio::test(start_paused = true)]
async fn a8_everything_else_is_passed() {
    let more = r#""systemPrompt":"be \u006bind","temperature":0.50,"stopSequences":["x"],"modelPreferences":{"hints":[{"name":"h"}],"costPriority":0.10},"metadata":{"a":[1.50]},"x-own":1.0"#;
    for revision in REVISIONS {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let entry = sample(&format!("{},{more}", says(r#"{"type":"text","text":"t"}"#)));
        let stream = stage.asked(&user, &[("k", &entry)], None).await;
        let question = stream.question().await;
        let expected = parse(&format!(
            r#"{{"maxTokens":10,"messages":[{{"role":"user","content":{{"type":"text","text":"t"}}}}],{more}}}"#
        ));
        assert_eq!(question["params"], expected, "{revision}");
        let raw = stream.events().into_iter().find(|event| event.message == question).unwrap().raw;
        assert!(raw.contains(more), "{revision}: {raw}");
        user.answer(&question, SAMPLED).await;
        stage.retried(1).await.completes("done");
        stream.result().await;
    }
}

/// A8.11, A4.15: answers with tools, several blocks and `_meta`.
#[tokio::test(start_paused = true)]
async fn a8_11_answers_go_up_as_they_are() {
    let answers = [
        r#"{"role":"assistant","model":"m","stopReason":"toolUse","content":[{"type":"tool_use","id":"u","name":"t","input":{"a":1.50}}]}"#,
        r#"{"role":"assistant","model":"m","content":{"type":"text","text":"\u0041"},"_meta":{"k":1}}"#,
    ];
    for answer in answers {
        let stage = Stage::new().await;
        let user = stage.user_with(LATEST, FULL).await;
        let entry = sample(&says(r#"{"type":"text","text":"t"}"#));
        let stream = stage.asked(&user, &[("k", &entry)], None).await;
        user.answer(&stream.question().await, answer).await;
        let second = stage.retried(1).await;
        assert_eq!(brings(&second)["k"], parse(answer));
        second.completes("done");
        stream.result().await;
    }
}

/// A1.14: the roots of a client, with whatever the server said beside the question.
#[tokio::test(start_paused = true)]
async fn a1_14_roots() {
    for (revision, entry) in REVISIONS.into_iter().flat_map(|revision| {
        [(revision, ROOTS), (revision, r#"{"method":"roots/list","params":{"_meta":{"x":1}}}"#)]
    }) {
        let stage = Stage::new().await;
        let user = stage.user(revision).await;
        let stream = stage.asked(&user, &[("k", entry)], None).await;
        let question = stream.question().await;
        assert_eq!(question["method"], "roots/list");
        user.answer(&question, ROOTED).await;
        let second = stage.retried(1).await;
        assert_eq!(brings(&second)["k"], parse(ROOTED));
        second.completes("done");
        stream.result().await;
    }
}
