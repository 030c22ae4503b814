//! D57 to D62, A5, B6, C51: tools, and structured results, as the client's revision knows them.

use crate::stage::{LATEST, Stage, text_of};
use crate::support::{ModernServer, Value, json};

const BOTH: [&str; 2] = ["2025-11-25", "2025-06-18"];
const OLDER: [&str; 2] = ["2025-03-26", "2024-11-05"];

/// A server with one tool `t` of this output schema (raw; empty for none) and this result (raw members).
async fn stage(schema: &str, members: &str) -> Stage {
    let output = if schema.is_empty() { String::new() } else { format!(r#","outputSchema":{schema}"#) };
    let tool = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{output}}}"#);
    let other = r#"{"name":"plain","inputSchema":{"type":"object"}}"#;
    let server = ModernServer::full().tools(&format!("{tool},{other}")).completes("tools/call", members);
    // What is rewritten is of interest here, whether or not its references lead somewhere.
    Stage::before_with(server, "schema.policy = \"warn\"").await
}

/// The output schema that a client of this revision sees, and the raw list.
async fn listed(stage: &Stage, revision: &str) -> (Option<Value>, String) {
    let user = stage.user(revision).await;
    let done = user.send(&user.old.ask("tools/list")).await;
    assert_eq!(done.result()["tools"].as_array().unwrap().len(), 2, "{}", done.raw);
    (done.result()["tools"][0].get("outputSchema").cloned(), done.raw)
}

/// What a call of the tool is answered, by a client that has listed the tools and by one that has not.
async fn called(stage: &Stage, revision: &str) -> Value {
    let cold = stage.user(revision).await;
    let first = cold.call("t", "{}").await.result().await;
    let warm = stage.user(revision).await;
    warm.list("tools/list").await;
    let second = warm.call("t", "{}").await.result().await;
    assert_eq!(first, second, "{revision}: whether the list was asked for or not");
    first
}

#[tokio::test(start_paused = true)]
async fn d57_wrap_array_schema() {
    let schema = r##"{"type":"array","items":{"$ref":"#/$defs/u"},"$defs":{"u":{"type":"integer"}}}"##;
    let wrapped = json!({
        "type": "object",
        "properties": {"result": {
            "type": "array",
            "items": {"$ref": "#/properties/result/$defs/u"},
            "$defs": {"u": {"type": "integer"}},
        }},
        "required": ["result"],
    });
    for revision in BOTH {
        let without = stage(schema, r#""content":[],"structuredContent":[1]"#).await;
        assert_eq!(listed(&without, revision).await.0.as_ref(), Some(&wrapped), "{revision}");
        let result = called(&without, revision).await;
        assert_eq!(result["structuredContent"], json!({"result": [1]}), "{revision}");
        assert_eq!(text_of(&result), "[1]", "{revision}");
        let with = stage(schema, r#""content":[{"type":"text","text":"one"}],"structuredContent":[1]"#).await;
        let result = called(&with, revision).await;
        assert_eq!(result["structuredContent"], json!({"result": [1]}), "{revision}");
        assert_eq!(text_of(&result), "one", "{revision}: a text that is there stays the only one");
    }
}

/// B6.1: references are followed to where their targets have gone, and nothing else is taken for one.
#[tokio::test(start_paused = true)]
async fn d57_only_references_are_rewritten() {
    let schema = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","oneOf":[{"$ref":"#"},{"$ref":"#/$defs/a~1b"},{"$ref":"#named"},{"$ref":"https://x.test/s"}],"properties":{"$ref":{"type":"string"}},"const":{"$ref":"#/c"},"enum":[{"$ref":"#/e"}],"default":{"$ref":"#/d"},"examples":[{"$ref":"#/x"}],"$defs":{"a/b":{"type":"integer"},"own":{"$id":"https://x.test/own","items":{"$ref":"#/$defs/inner"}},"dyn":{"$anchor":"named"}}}"##;
    for revision in BOTH {
        let stage = stage(schema, r#""content":[],"structuredContent":[]"#).await;
        let schema = listed(&stage, revision).await.0.unwrap();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "hoisted");
        assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["result"])));
        let inner = &schema["properties"]["result"];
        let refs: Vec<_> = inner["oneOf"].as_array().unwrap().iter().map(|one| one["$ref"].clone()).collect();
        assert_eq!(
            refs[..2],
            [json!("#/properties/result"), json!("#/properties/result/$defs/a~1b")],
            "{revision}"
        );
        assert_eq!(refs[3], "https://x.test/s", "another document");
        assert_eq!(inner["properties"]["$ref"], json!({"type": "string"}), "a property of that name");
        assert_eq!(inner["const"], json!({"$ref": "#/c"}), "data");
        assert_eq!(inner["enum"], json!([{"$ref": "#/e"}]), "data");
        assert_eq!(inner["default"], json!({"$ref": "#/d"}), "data");
        assert_eq!(inner["examples"], json!([{"$ref": "#/x"}]), "data");
        assert_eq!(inner["$defs"]["own"]["items"], json!({"$ref": "#/$defs/inner"}), "under its own $id");
    }
}

#[tokio::test(start_paused = true)]
async fn d57_every_root_that_is_not_exactly_object() {
    let roots = [
        r#"{"type":["object","null"]}"#,
        r##"{"$ref":"#/$defs/o","$defs":{"o":{"type":"object"}}}"##,
        r#"{"properties":{"a":{}}}"#,
        "{}",
        "true",
        r#"{"type":"string"}"#,
    ];
    for revision in BOTH {
        for root in roots {
            let stage = stage(root, r#""content":[],"structuredContent":{"a":1}"#).await;
            let schema = listed(&stage, revision).await.0.unwrap();
            assert_eq!(schema["type"], "object", "{revision} {root}: {schema}");
            assert!(schema["properties"].get("result").is_some(), "{revision} {root}: {schema}");
            assert_eq!(schema["required"], json!(["result"]), "{revision} {root}");
            let result = called(&stage, revision).await;
            assert_eq!(result["structuredContent"], json!({"result": {"a": 1}}), "{revision} {root}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d58_wrap_anyof_object_value() {
    let schema = r#"{"anyOf":[{"type":"object"},{"type":"null"}]}"#;
    for revision in BOTH {
        let object = stage(schema, r#""content":[],"structuredContent":{"a":1}"#).await;
        assert_eq!(called(&object, revision).await["structuredContent"], json!({"result": {"a": 1}}));
        let null = stage(schema, r#""content":[],"structuredContent":null"#).await;
        let result = called(&null, revision).await;
        assert_eq!(result["structuredContent"], json!({"result": null}), "{revision}");
        assert_eq!(text_of(&result), "null", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn d59_wrap_none_object() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"number","maximum":1.50}},"x":"\u0041","$defs":{"u":{}},"required":["n"]}"#;
    for revision in BOTH {
        let stage = stage(schema, r#""content":[],"structuredContent":{"n":1.50,"e":"\u0041"}"#).await;
        let (_, raw) = listed(&stage, revision).await;
        assert!(raw.contains(&format!(r#""outputSchema":{schema}"#)), "to the byte: {raw}");
        let user = stage.user(revision).await;
        let stream = user.call("t", "{}").await;
        stream.result().await;
        let raw = stream.events().pop().unwrap().raw;
        assert!(raw.contains(r#""structuredContent":{"n":1.50,"e":"\u0041"}"#), "to the byte: {raw}");
    }
}

#[tokio::test(start_paused = true)]
async fn d60_wrap_noschema_number() {
    for revision in BOTH {
        for value in ["0", "false", "1.50", r#""""#, r#""s""#, "[]", "null"] {
            let stage = stage("", &format!(r#""content":[],"structuredContent":{value}"#)).await;
            let result = called(&stage, revision).await;
            let expected = json!({"result": crate::stage::parse(value)});
            assert_eq!(result["structuredContent"], expected, "{revision} {value}");
            assert_eq!(text_of(&result), value, "{revision} {value}");
        }
        let object = stage("", r#""content":[],"structuredContent":{"a":1}"#).await;
        assert_eq!(called(&object, revision).await["structuredContent"], json!({"a": 1}), "{revision}");
        // A tool that is in no list is one without a schema.
        let user = object.user(revision).await;
        let result = user.call("unlisted", "{}").await.result().await;
        assert_eq!(result["structuredContent"], json!({"a": 1}), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn d61_objschema_badvalue() {
    for revision in BOTH {
        for value in ["[1]", "null", "5"] {
            let members = format!(r#""content":[],"structuredContent":{value}"#);
            let stage = stage(r#"{"type":"object"}"#, &members).await;
            let result = called(&stage, revision).await;
            assert_eq!(result.get("structuredContent"), None, "{revision} {value}");
            assert_eq!(text_of(&result), value, "{revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d62_strip_structured_03_24() {
    for revision in OLDER {
        for (schema, value) in [
            (r#"{"type":"array"}"#, "[1]"),
            (r#"{"type":"object"}"#, r#"{"a":1}"#),
            ("", r#"{"a":1}"#),
            ("", "0"),
            ("", "null"),
        ] {
            let members = format!(r#""content":[],"structuredContent":{value}"#);
            let stage = stage(schema, &members).await;
            let (shown, raw) = listed(&stage, revision).await;
            assert_eq!(shown, None, "{revision}: {raw}");
            let result = called(&stage, revision).await;
            assert_eq!(result.get("structuredContent"), None, "{revision} {value}");
            assert_eq!(text_of(&result), value, "{revision} {value}: else it is lost");
        }
        let told = r#""content":[{"type":"text","text":"one"}],"structuredContent":{"a":1}"#;
        let stage = stage(r#"{"type":"object"}"#, told).await;
        let result = called(&stage, revision).await;
        assert_eq!((result.get("structuredContent"), text_of(&result).as_str()), (None, "one"));
    }
}

/// B6.5: a tool's own failure is wrapped as any other result.
#[tokio::test(start_paused = true)]
async fn d57_failures_are_results_too() {
    let members = r#""content":[{"type":"text","text":"no"}],"isError":true,"structuredContent":["x"]"#;
    for revision in BOTH {
        let stage = stage(r#"{"type":"array"}"#, members).await;
        let result = called(&stage, revision).await;
        assert_eq!(result["isError"], true, "C49: untouched");
        assert_eq!(result["structuredContent"], json!({"result": ["x"]}), "{revision}");
        let bare = self::stage(r#"{"type":"array"}"#, r#""content":[],"isError":true"#).await;
        assert_eq!(called(&bare, revision).await.get("structuredContent"), None, "{revision}");
    }
}

/// The decision is that of the schema that the client was shown: a list that changes is looked at again.
#[tokio::test(start_paused = true)]
async fn d57_a_schema_that_changes() {
    let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let server = ModernServer::full()
        .completes("tools/call", r#""content":[],"structuredContent":{"a":1}"#)
        .on("tools/list", move |seen, reply: crate::support::Reply| {
            let n = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let schema = if n == 0 { r#"{"type":"object"}"# } else { r#"{"anyOf":[{"type":"object"}]}"# };
            let tool = format!(
                r#""tools":[{{"name":"t","inputSchema":{{"type":"object"}},"outputSchema":{schema}}}]"#
            );
            async move {
                reply.result(&seen, &crate::support::modern::complete("tools/list", &tool)).await;
            }
        });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    user.list("tools/list").await;
    let result = user.call("t", "{}").await.result().await;
    assert_eq!(result["structuredContent"], json!({"a": 1}));
    user.list("tools/list").await;
    let result = user.call("t", "{}").await.result().await;
    assert_eq!(result["structuredContent"], json!({"result": {"a": 1}}));
}

/// The tool may be on any page of the list.
#[tokio::test(start_paused = true)]
async fn d57_a_tool_on_a_later_page() {
    let server = ModernServer::full()
        .completes("tools/call", r#""content":[],"structuredContent":[1]"#)
        .on("tools/list", |seen, reply: crate::support::Reply| async move {
            let page = match seen.json()["params"]["cursor"].as_str() {
                None => r#""tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"2\u0041""#,
                Some("2A") => {
                    r#""tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}],"nextCursor":"""#
                }
                Some(_) => r#""tools":[{"name":"z","inputSchema":{"type":"object"}}]"#,
            };
            reply.result(&seen, &crate::support::modern::complete("tools/list", page)).await;
        });
    let stage = Stage::before(server).await;
    let user = stage.latest().await;
    let result = user.call("t", "{}").await.result().await;
    assert_eq!(result.get("structuredContent"), None, "D61 needs the schema of the second page");
    // A4.18: the client gets each page as it is, and cursors to the byte.
    let done = user.send(&user.old.ask("tools/list")).await;
    assert!(done.raw.contains(r#""nextCursor":"2\u0041""#), "{}", done.raw);
    let second = user.send(&user.old.ask("tools/list").params(r#""cursor":"2\u0041""#)).await;
    assert_eq!(
        (&second.result()["tools"][0]["name"], &second.result()["nextCursor"]),
        (&json!("t"), &json!(""))
    );
    let third = user.send(&user.old.ask("tools/list").params(r#""cursor":"""#)).await;
    assert_eq!(third.result()["tools"][0]["name"], "z");
}

/// A5, C51: what else is said of a tool is kept.
#[tokio::test(start_paused = true)]
async fn a5_everything_else_of_a_tool_is_kept() {
    let tool = r#"{"name":"t","title":"T","description":"d\u0041","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"number","minimum":1.50}},"anyOf":[{"required":["a"]},true]},"annotations":{"title":"A","readOnlyHint":true},"icons":[{"src":"https://x.test/i.png"}],"_meta":{"k":1},"x-own":[1.50]}"#;
    for revision in crate::stage::REVISIONS {
        let stage = Stage::before(ModernServer::full().tools(tool)).await;
        let user = stage.user(revision).await;
        let done = user.send(&user.old.ask("tools/list")).await;
        let shown = &done.result()["tools"][0];
        let mut expected = crate::stage::parse(tool);
        // A7.2, A5.7: these may be left out for clients that do not know them.
        if revision < LATEST && shown.get("icons").is_none() {
            expected.as_object_mut().unwrap().remove("icons");
        }
        assert_eq!(*shown, expected, "{revision}");
        assert!(done.raw.contains(r#""minimum":1.50"#) && done.raw.contains(r#""d\u0041""#), "{}", done.raw);
    }
}
