//! D57 to D64, D73, D74 of results that are larger than what is held whole (`limits.flow_bytes`): the rules are the same.

use crate::stage::{LATEST, REVISIONS, Stage, parse};
use crate::support::{ModernServer, Reply, Value, json, modern};

const FLOW: usize = 64 * 1024;

/// Text that makes a message several times as large as what is held whole.
fn long() -> String {
    (0..20_000).map(|n| format!("{n:05}\\u0041\\n")).collect()
}

async fn stage(schema: &str, result: &str) -> Stage {
    let output = if schema.is_empty() { String::new() } else { format!(r#","outputSchema":{schema}"#) };
    let tool = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{output}}}"#);
    Stage::before(ModernServer::full().tools(&tool).result("tools/call", result)).await
}

/// The answer to a call of the tool, by a client that takes streams and by one that does not.
async fn called(stage: &Stage, revision: &str) -> Value {
    let user = stage.user(revision).await;
    let streamed = user.call("t", "{}").await.answer().await;
    let ask = user.old.call("t", "{}").header("Accept", "application/json");
    let whole = user.open(&ask).await.answer().await;
    assert_eq!(streamed, whole, "{revision}");
    streamed
}

const STAMPS: [&str; 2] = [r#""resultType":"complete""#, ""];

/// A result with these members in this order, the kind first, in the middle, last, or not there.
fn results(members: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    for stamp in STAMPS {
        for at in 0..=members.len() {
            let mut members: Vec<_> = members.iter().map(|member| (*member).to_owned()).collect();
            if !stamp.is_empty() {
                members.insert(at, stamp.to_owned());
            }
            members.push(modern::SI.to_owned());
            all.push(format!("{{{}}}", members.join(",")));
            if stamp.is_empty() {
                break;
            }
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn d73_large_results_are_stripped() {
    let text = long();
    let content = format!(r#""content":[{{"type":"text","text":"{text}"}}]"#);
    assert!(content.len() > 3 * FLOW);
    for result in results(&[&content, r#""x-own":1.50"#, r#""isError":false"#]) {
        let stage = stage("", &result).await;
        for revision in REVISIONS {
            let answer = called(&stage, revision).await;
            let expected = parse(&format!(r#"{{{content},"x-own":1.50,"isError":false}}"#));
            assert_eq!(answer["result"], expected, "{revision} {}", &result[..60]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d57_large_values_are_wrapped() {
    let text = long();
    let value = format!(r#"["{text}",1.50]"#);
    let structured = format!(r#""structuredContent":{value}"#);
    let told = r#""content":[{"type":"text","text":"told"}]"#;
    for (content, fallback) in [(told, false), (r#""content":[]"#, true)] {
        let before = results(&[content, &structured]);
        let after = results(&[&structured, content]);
        for result in before.into_iter().chain(after) {
            let stage = stage(r#"{"type":"array"}"#, &result).await;
            for revision in REVISIONS {
                let answer = called(&stage, revision).await;
                let result = &answer["result"];
                let shown = result.get("structuredContent");
                if revision >= "2025-06-18" {
                    assert_eq!(shown, Some(&json!({"result": parse(&value)})), "{revision}");
                } else {
                    assert_eq!(shown, None, "{revision}");
                }
                let words = result["content"][0]["text"].as_str().unwrap();
                if fallback {
                    assert_eq!(parse(words), parse(&value), "{revision}: else it is lost");
                } else {
                    assert_eq!(words, "told", "{revision}");
                }
                assert_eq!(result["content"].as_array().unwrap().len(), 1, "{revision}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d62_large_objects_are_words_to_old_clients() {
    let value = format!(r#"{{"a":"{}"}}"#, long());
    let structured = format!(r#""structuredContent":{value}"#);
    let before = results(&[r#""content":[]"#, &structured]);
    let after = results(&[&structured, r#""content":[]"#]);
    for result in before.into_iter().chain(after) {
        for schema in ["", r#"{"type":"object"}"#] {
            let stage = stage(schema, &result).await;
            for revision in REVISIONS {
                let answer = called(&stage, revision).await;
                let result = &answer["result"];
                if revision >= "2025-06-18" {
                    assert_eq!(result["structuredContent"], parse(&value), "{revision}");
                } else {
                    assert_eq!(result.get("structuredContent"), None, "{revision}");
                    let words = result["content"][0]["text"].as_str().unwrap();
                    assert_eq!(parse(words), parse(&value), "{revision}");
                }
            }
        }
    }
}

/// D61: dropped where the schema forbids it.
#[tokio::test(start_paused = true)]
async fn d61_large_values_that_do_not_fit() {
    let value = format!(r#"["{}"]"#, long());
    let structured = format!(r#""structuredContent":{value}"#);
    for result in results(&[r#""content":[]"#, &structured]) {
        let stage = stage(r#"{"type":"object"}"#, &result).await;
        let answer = called(&stage, LATEST).await;
        assert_eq!(answer["result"].get("structuredContent"), None);
        let words = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(parse(words), parse(&value));
    }
}

#[tokio::test(start_paused = true)]
async fn d63_d64_large_blocks_are_converted() {
    let data = "UklG".repeat(50_000);
    let audio = format!(r#"{{"type":"audio","data":"{data}","mimeType":"audio/wav"}}"#);
    let link = r#"{"type":"resource_link","uri":"file:///n","name":"notes"}"#;
    let text = r#"{"type":"text","text":"t"}"#;
    let content = format!(r#""content":[{text},{audio},{link},{audio},{text}]"#);
    for result in results(&[&content, r#""x-own":1"#]) {
        let stage = stage("", &result).await;
        for revision in REVISIONS {
            let answer = called(&stage, revision).await;
            let blocks = answer["result"]["content"].as_array().unwrap();
            let kinds: Vec<_> = blocks.iter().map(|block| block["type"].as_str().unwrap()).collect();
            let expected = match revision {
                "2024-11-05" => ["text", "resource", "text", "resource", "text"],
                "2025-03-26" => ["text", "audio", "text", "audio", "text"],
                _ => ["text", "audio", "resource_link", "audio", "text"],
            };
            assert_eq!(kinds, expected, "{revision}");
            let held =
                if revision == "2024-11-05" { &blocks[1]["resource"]["blob"] } else { &blocks[1]["data"] };
            assert_eq!(held.as_str().map(str::len), Some(data.len()), "{revision}");
            assert_eq!(answer["result"]["x-own"], 1, "{revision}");
        }
    }
}

/// D74: what turns out to be no result in the end is an error, whatever has been read of it.
#[tokio::test(start_paused = true)]
async fn d74_large_results_of_an_unknown_kind() {
    let content = format!(r#""content":[{{"type":"text","text":"{}"}}]"#, long());
    for kind in [r#""banana""#, r#""task""#, "5", "null"] {
        for result in [
            format!(r#"{{"resultType":{kind},{content}}}"#),
            format!(r#"{{{content},"resultType":{kind}}}"#),
            format!(r#"{{{content},"resultType":"complete","resultType":{kind}}}"#),
        ] {
            let stage = stage("", &result).await;
            let user = stage.latest().await;
            for accept in ["application/json, text/event-stream", "application/json"] {
                let stream = user.open(&user.old.call("t", "{}").header("Accept", accept)).await;
                // In words, or broken off where something of it was out already; never a result.
                if stream.end().await == crate::support::End::Clean {
                    assert_eq!(stream.code().await, -32603, "{kind} {accept}");
                } else {
                    assert!(!stream.briefs().contains(&"answer".to_owned()), "{kind} {accept}");
                }
            }
            assert!(user.lives().await);
        }
    }
}

/// Of other methods, too.
#[tokio::test(start_paused = true)]
async fn d73_large_results_of_other_methods() {
    let text = long();
    let table = [
        (
            "prompts/get",
            r#""name":"p""#,
            format!(r#""messages":[{{"role":"user","content":{{"type":"text","text":"{text}"}}}}]"#),
        ),
        (
            "resources/read",
            r#""uri":"file:///x""#,
            format!(r#""contents":[{{"uri":"file:///x","text":"{text}"}}]"#),
        ),
        ("acme/x", "", format!(r#""value":"{text}""#)),
        (
            "resources/list",
            "",
            format!(r#""resources":[{{"uri":"file:///x","name":"x","description":"{text}"}}]"#),
        ),
        (
            "tools/list",
            "",
            format!(r#""tools":[{{"name":"t","inputSchema":{{"type":"object"}},"description":"{text}"}}]"#),
        ),
    ];
    for (method, params, members) in table {
        let cached = r#""ttlMs":5,"cacheScope":"public""#;
        for result in results(&[cached, &members]).into_iter().chain(results(&[&members, cached])) {
            let stage = Stage::before(ModernServer::full().result(method, &result)).await;
            for revision in REVISIONS {
                let user = stage.user(revision).await;
                let stream = user.open(&user.old.ask(method).params(params)).await;
                assert_eq!(stream.result().await, parse(&format!("{{{members}}}")), "{revision} {method}");
            }
        }
    }
}

/// A large round of questions is none that flows: its answers go back with the state, to the byte.
#[tokio::test(start_paused = true)]
async fn d84_a_large_round() {
    let stage = Stage::new().await;
    let user = stage.latest().await;
    let state = format!("\"{}\"", long());
    let entry = crate::stage::SAMPLE.replace("hi", &long());
    let arguments = format!(r#"{{"a":"{}"}}"#, long());
    let ask = user.old.call("ask", &arguments);
    let stream = stage.asked_at(&user, &ask, &[("k", &entry)], Some(&state)).await;
    let question = stream.question().await;
    let answer = crate::stage::SAMPLED.replace("yes", &long());
    user.answer(&question, &answer).await;
    let second = stage.retried(1).await;
    let text = second.seen.text();
    assert!(text.contains(&format!(r#""requestState":{state}"#)), "the state to the byte");
    assert!(text.contains(&format!(r#""arguments":{arguments}"#)), "the arguments to the byte");
    assert_eq!(crate::stage::brings(&second)["k"], parse(&answer));
    second.completes("done");
    stream.result().await;
}

/// A large result that breaks off is an error in words, or a stream that breaks: never half a result.
#[tokio::test(start_paused = true)]
async fn d104_a_large_result_that_breaks_off() {
    for streamed in [true, false] {
        let text = long();
        let server = ModernServer::full().on("tools/call", move |seen, mut reply: Reply| {
            let text = text.clone();
            async move {
                let members = format!(r#""content":[{{"type":"text","text":"{text}"}}]"#);
                let whole = crate::support::rpc::result_message(
                    &seen.id(),
                    &modern::complete("tools/call", &members),
                );
                if !streamed {
                    return reply.half(&whole, whole.len() / 2).await;
                }
                reply.stream().await;
                reply.chunk(format!("data: {}", &whole[..whole.len() / 2]).as_bytes()).await;
            }
        });
        let stage = Stage::before(server).await;
        for revision in REVISIONS {
            let user = stage.user(revision).await;
            let stream = user.call("t", "{}").await;
            if stream.end().await == crate::support::End::Clean {
                assert_eq!(stream.code().await, -32603, "{revision} {streamed}");
            } else {
                assert!(!stream.briefs().contains(&"answer".to_owned()), "{revision} {streamed}");
            }
            assert!(user.lives().await);
        }
        assert_eq!(stage.up.posts("tools/call").len(), 4, "never again");
    }
}
