//! D91, A8.1 to A8.6, B10: forms of 2026-07-28 for clients of 2025-06-18, and their answers in the form that the server asked
//! in.

use crate::stage::{LATEST, Stage, brings, form};
use crate::support::{Stream, User, Value, json};

const OLD: &str = "2025-06-18";

/// The form as the client of this revision gets it; the stage goes on with its answer.
async fn shown(stage: &Stage, user: &User, entry: &str) -> (Stream, Value) {
    let stream = stage.asked(user, &[("k", entry)], Some(r#""S""#)).await;
    let question = stream.question().await;
    (stream, question)
}

async fn start(revision: &str) -> (Stage, User) {
    let stage = Stage::new().await;
    let user = stage.user(revision).await;
    (stage, user)
}

fn accept(content: &str) -> String {
    format!(r#"{{"action":"accept","content":{content}}}"#)
}

/// What the server gets for an answer with this content.
async fn brought(stage: &Stage, user: &User, stream: &Stream, question: &Value, content: &str) -> String {
    user.answer(question, &accept(content)).await;
    let second = stage.retried(1).await;
    let text = second.seen.text().to_owned();
    assert_eq!(brings(&second)["k"]["action"], "accept", "{text}");
    second.completes("done");
    stream.result().await;
    text
}

#[tokio::test(start_paused = true)]
async fn d91_loop_enum_06() {
    let (stage, user) = start(OLD).await;
    let entry = r##"{"method":"elicitation/create","params":{"mode":"form","message":"m\u0041","requestedSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
        "lang":{"type":"string","title":"L","oneOf":[{"const":"de","title":"German"},{"const":"en","title":"English"}],"default":"de"},
        "old":{"type":"string","enum":["a","b"],"enumNames":["A","B"],"default":"a"},
        "bare":{"type":"string","enum":["a","b"]},
        "s":{"type":"string","default":"x","minLength":1,"format":"email"},
        "b":{"type":"boolean","default":true},
        "x":{"type":"number","default":1.5,"minimum":0.50},
        "i":{"type":"integer","default":1}
    },"required":["lang"]}}}"##;
    let (stream, question) = shown(&stage, &user, &entry.replace('\n', "")).await;
    let params = &question["params"];
    let mut names: Vec<_> = params.as_object().unwrap().keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["message", "requestedSchema"]);
    assert_eq!(params["message"], "mA");
    assert_eq!(
        params["requestedSchema"],
        json!({
            "type": "object",
            "properties": {
                "lang": {"type": "string", "title": "L", "enum": ["de", "en"], "enumNames": ["German", "English"]},
                "old": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
                "bare": {"type": "string", "enum": ["a", "b"]},
                "s": {"type": "string", "minLength": 1, "format": "email"},
                "b": {"type": "boolean", "default": true},
                "x": {"type": "number", "minimum": 0.5},
                "i": {"type": "integer"},
            },
            "required": ["lang"],
        })
    );
    let text =
        brought(&stage, &user, &stream, &question, r#"{"lang":"en","x":2.5,"s":"a@\u0062.c","b":false}"#)
            .await;
    assert!(text.contains(r#"{"lang":"en","x":2.5,"s":"a@\u0062.c","b":false}"#), "to the byte (X5): {text}");
}

/// A choice without titles for all: the names fall back on the values.
#[tokio::test(start_paused = true)]
async fn d91_a_choice_whose_titles_are_missing() {
    let (stage, user) = start(OLD).await;
    let entry = form(r#"{"c":{"type":"string","oneOf":[{"const":"de","title":"German"},{"const":"en"}]}}"#);
    let (stream, question) = shown(&stage, &user, &entry).await;
    let field = &question["params"]["requestedSchema"]["properties"]["c"];
    assert_eq!(field["enum"], json!(["de", "en"]), "{field}");
    brought(&stage, &user, &stream, &question, r#"{"c":"en"}"#).await;
}

/// The latest legacy revision has the same forms: they are not touched.
#[tokio::test(start_paused = true)]
async fn d91_the_latest_revision_gets_it_as_it_is() {
    let (stage, user) = start(LATEST).await;
    let schema = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"lang":{"type":"string","oneOf":[{"const":"de","title":"German"}],"default":"de"},"m":{"type":"array","items":{"anyOf":[{"const":"a","title":"\u0041"}]},"default":["a"]},"n":{"type":"number","minimum":0.50}}}"#;
    let entry = format!(
        r#"{{"method":"elicitation/create","params":{{"message":"m","requestedSchema":{schema},"x-own":1.0}}}}"#
    );
    let stream = stage.asked(&user, &[("k", &entry)], None).await;
    let question = stream.question().await;
    let raw = stream.events().into_iter().find(|event| event.message == question).unwrap().raw;
    assert!(raw.contains(schema), "to the byte: {raw}");
    let content = r#"{"m":["a"],"lang":"de","n":2.50}"#;
    let text = brought(&stage, &user, &stream, &question, content).await;
    assert!(text.contains(content), "to the byte: {text}");
}

const MANY: &str = r#""tags":{"type":"array","title":"Tags","items":{"type":"string","enum":["alpha","beta","gamma"]},"minItems":1,"maxItems":2}"#;
const TITLED: &str = r#""tags":{"type":"array","items":{"anyOf":[{"const":"1","title":"alpha"},{"const":"2","title":"beta"},{"const":"3","title":"gamma"}]}}"#;

/// The boolean field that stands for an option: by its name or title.
fn option(question: &Value, text: &str) -> String {
    let fields = question["params"]["requestedSchema"]["properties"].as_object().unwrap();
    let says = |name: &str, field: &Value| {
        name.contains(text) || field["title"].as_str().is_some_and(|title| title.contains(text))
    };
    let found: Vec<_> = fields
        .iter()
        .filter(|(name, field)| field["type"] == "boolean" && says(name, field))
        .map(|(name, _)| name.clone())
        .collect();
    assert_eq!(found.len(), 1, "one field for {text}: {question}");
    found[0].clone()
}

/// B10.3: several choices are one yes or no each, put together again.
#[tokio::test(start_paused = true)]
async fn d91_multi_select_is_recombined() {
    for (field, values) in [(MANY, ["alpha", "gamma"]), (TITLED, ["1", "3"])] {
        let (stage, user) = start(OLD).await;
        let entry = form(&format!(r#"{{{field},"other":{{"type":"string"}}}}"#));
        let (stream, question) = shown(&stage, &user, &entry).await;
        let fields = question["params"]["requestedSchema"]["properties"].as_object().unwrap();
        assert_eq!(fields.len(), 4, "three options and the other field: {question}");
        let (first, second, third) =
            (option(&question, "alpha"), option(&question, "beta"), option(&question, "gamma"));
        let content = format!(r#"{{"{third}":true,"other":"o","{first}":true,"{second}":false}}"#);
        user.answer(&question, &accept(&content)).await;
        let again = stage.retried(1).await;
        assert_eq!(
            brings(&again)["k"]["content"],
            json!({"tags": values, "other": "o"}),
            "in the server's order"
        );
        again.completes("done");
        stream.result().await;
    }
}

/// Whatever of the options is left out is not chosen.
#[tokio::test(start_paused = true)]
async fn d91_multi_select_with_fields_left_out() {
    let (stage, user) = start(OLD).await;
    let entry = form(&format!(r#"{{{TITLED}}}"#));
    let (stream, question) = shown(&stage, &user, &entry).await;
    let content = format!(r#"{{"{}":true}}"#, option(&question, "beta"));
    user.answer(&question, &accept(&content)).await;
    let again = stage.retried(1).await;
    assert_eq!(brings(&again)["k"]["content"], json!({"tags": ["2"]}));
    again.completes("done");
    stream.result().await;
}

/// `minItems` and `maxItems` are looked at after the fact; the user did not cancel, so the call fails (B10.4).
#[tokio::test(start_paused = true)]
async fn d91_multi_select_out_of_bounds() {
    for chosen in [&[][..], &["alpha", "beta", "gamma"]] {
        let (stage, user) = start(OLD).await;
        let entry = form(&format!(r#"{{{MANY}}}"#))
            .replace(r#""requestedSchema":{"#, r#""requestedSchema":{"required":["tags"],"#);
        let (stream, question) = shown(&stage, &user, &entry).await;
        let all: Vec<_> = ["alpha", "beta", "gamma"]
            .iter()
            .map(|text| format!(r#""{}":{}"#, option(&question, text), chosen.contains(text)))
            .collect();
        user.answer(&question, &accept(&format!("{{{}}}", all.join(",")))).await;
        stream.tool_error().await;
        stage.is_over(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn d91_multi_select_with_too_many_options() {
    let options = |n: usize| (0..n).map(|n| format!("\"option-{n}\"")).collect::<Vec<_>>().join(",");
    for (n, fits) in [(10, true), (11, false)] {
        let (stage, user) = start(OLD).await;
        let entry = form(&format!(
            r#"{{"tags":{{"type":"array","items":{{"type":"string","enum":[{}]}}}}}}"#,
            options(n)
        ));
        let stream = stage.asked(&user, &[("k", &entry)], Some(r#""S""#)).await;
        if fits {
            let question = stream.question().await;
            user.answer(&question, r#"{"action":"decline"}"#).await;
            let again = stage.retried(1).await;
            assert_eq!(brings(&again)["k"], json!({"action": "decline"}));
            again.completes("done");
            stream.result().await;
        } else {
            stream.tool_error().await;
            assert_eq!(stream.asked(), 0);
            stage.is_over(1).await;
        }
    }
    // The same on another method is an error.
    let (stage, user) = start(OLD).await;
    let entry = form(&format!(
        r#"{{"tags":{{"type":"array","items":{{"type":"string","enum":[{}]}}}}}}"#,
        options(11)
    ));
    let ask = user.old.ask("prompts/get").params(r#""name":"p""#);
    let stream = stage.asked_at(&user, &ask, &[("k", &entry)], None).await;
    assert_eq!(stream.code().await, -32603);
}

/// B10.4: an answer is held against the server's own form.
#[tokio::test(start_paused = true)]
async fn d91_answers_that_do_not_fit() {
    let fields = r#"{"c":{"type":"string","oneOf":[{"const":"de","title":"German"}]},"n":{"type":"integer","minimum":1},"b":{"type":"boolean"}}"#;
    let entry = form(fields).replace(r#""requestedSchema":{"#, r#""requestedSchema":{"required":["c"],"#);
    let bad = [
        r#"{"c":"German"}"#,
        r#"{"c":5}"#,
        r#"{"n":1}"#,
        r#"{"c":"de","n":0}"#,
        r#"{"c":"de","n":1.5}"#,
        r#"{"c":"de","b":"yes"}"#,
        r#"{"c":["de"]}"#,
    ];
    for content in bad {
        let (stage, user) = start(OLD).await;
        let (stream, question) = shown(&stage, &user, &entry).await;
        user.answer(&question, &accept(content)).await;
        stream.tool_error().await;
        stage.is_over(1).await;
    }
    let (stage, user) = start(OLD).await;
    let (stream, question) = shown(&stage, &user, &entry).await;
    brought(&stage, &user, &stream, &question, r#"{"c":"de","n":2,"b":true}"#).await;
}

/// A form that asks for nothing, and one that cannot be read.
#[tokio::test(start_paused = true)]
async fn d91_forms_at_the_edge() {
    let (stage, user) = start(OLD).await;
    let (stream, question) = shown(&stage, &user, &form("{}")).await;
    assert_eq!(question["params"]["requestedSchema"], json!({"type": "object", "properties": {}}));
    brought(&stage, &user, &stream, &question, "{}").await;
    for fields in
        ["[]", r#"{"a":5}"#, r#"{"a":{"type":"object","properties":{}}}"#, r#"{"a":{"type":"array"}}"#]
    {
        let (stage, user) = start(OLD).await;
        let stream = stage.asked(&user, &[("k", &form(fields))], Some(r#""S""#)).await;
        let answer = stream.answer().await;
        let failed = answer["error"]["code"] == -32603 || answer["result"]["isError"] == true;
        assert!(failed, "{fields}: {answer}");
        assert_eq!(stream.asked(), 0, "{fields}");
    }
}

/// Two forms in one round, and a field of the name that an option might get.
#[tokio::test(start_paused = true)]
async fn d91_names_do_not_clash() {
    let (stage, user) = start(OLD).await;
    let probe = form(&format!(r#"{{{MANY}}}"#));
    let (stream, question) = shown(&stage, &user, &probe).await;
    let name = option(&question, "alpha");
    user.answer(&question, r#"{"action":"decline"}"#).await;
    stage.retried(1).await.completes("done");
    stream.result().await;
    let entry = form(&format!(r#"{{{MANY},"{name}":{{"type":"string"}}}}"#));
    let stream = stage.asked(&user, &[("k", &entry)], Some(r#""S""#)).await;
    // Either another name is found, or it is refused; never two meanings under one name.
    let first = stream.wait(1).await.remove(0);
    if first.get("method").is_none() {
        assert_eq!(first["result"]["isError"], true, "{first}");
        return;
    }
    let question = stream.question().await;
    let fields = question["params"]["requestedSchema"]["properties"].as_object().unwrap().clone();
    assert_eq!((fields.len(), &fields[&name]["type"]), (4, &json!("string")), "{question}");
}
