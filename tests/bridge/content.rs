//! D63, D64, A6, A7: content blocks that the client's revision does not know, in the results of tools and prompts.

use crate::stage::{REVISIONS, Stage};
use crate::support::{ModernServer, User, Value, json};

const AUDIO: &str = r#"{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}"#;
const LINK: &str = r#"{"type":"resource_link","uri":"file:///notes.txt","name":"notes","mimeType":"text/plain","annotations":{"priority":0.5}}"#;
const KNOWN: [&str; 4] = [
    r#"{"type":"text","text":"t","_meta":{"k":1}}"#,
    r#"{"type":"image","data":"AA==","mimeType":"image/png","annotations":{"audience":["user"]}}"#,
    r#"{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"x","_meta":{"k":1}}}"#,
    r#"{"type":"resource","resource":{"uri":"file:///b","blob":"AA=="}}"#,
];

/// A server whose tool and prompt give this block among others.
async fn stage(block: &str, lines: &str) -> Stage {
    let (before, after) = (KNOWN[0], KNOWN[1]);
    let server = ModernServer::full()
        .completes("tools/call", &format!(r#""content":[{before},{block},{after}]"#))
        .completes("prompts/get", &format!(r#""messages":[{{"role":"user","content":{block}}}]"#));
    Stage::before_with(server, lines).await
}

/// The block as the client gets it from the tool; the prompt's must be the same.
async fn shown(user: &User) -> Value {
    let result = user.call("t", "{}").await.result().await;
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 3, "{result}");
    assert_eq!(content[0], crate::stage::parse(KNOWN[0]), "those around it stay");
    assert_eq!(content[2], crate::stage::parse(KNOWN[1]), "those around it stay");
    let ask = user.old.ask("prompts/get").params(r#""name":"p""#);
    let prompt = user.open(&ask).await.result().await;
    let of_prompt = &prompt["messages"][0]["content"];
    assert_eq!(of_prompt["type"], content[1]["type"], "{prompt}");
    content[1].clone()
}

#[tokio::test(start_paused = true)]
async fn d63_audio_to_24() {
    for revision in REVISIONS {
        let stage = stage(AUDIO, "").await;
        let user = stage.user(revision).await;
        let block = shown(&user).await;
        if revision != "2024-11-05" {
            assert_eq!(block, crate::stage::parse(AUDIO), "{revision}");
            continue;
        }
        assert_eq!(block["type"], "resource", "{block}");
        let held = &block["resource"];
        assert_eq!((&held["mimeType"], &held["blob"]), (&json!("audio/wav"), &json!("UklGRg==")));
        assert!(
            held["uri"].as_str().is_some_and(|uri| !uri.is_empty() && !uri.contains("UklGRg")),
            "{block}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d64_link_to_03() {
    for revision in REVISIONS {
        let stage = stage(LINK, "").await;
        let user = stage.user(revision).await;
        let block = shown(&user).await;
        if revision >= "2025-06-18" {
            assert_eq!(block, crate::stage::parse(LINK), "{revision}");
            continue;
        }
        assert_eq!(block["type"], "text", "{block}");
        let text = block["text"].as_str().unwrap();
        assert!(text.contains("notes") && text.contains("file:///notes.txt"), "{text}");
        assert_eq!(block["annotations"], json!({"priority": 0.5}), "{block}");
        // A6.3: nobody reads it for them.
        assert_eq!(stage.up.posts("resources/read").len(), 0);
    }
}

/// A6.1, A6.4, A6.5, A6.8: what all revisions know stays as it is, to the byte.
#[tokio::test(start_paused = true)]
async fn a6_known_blocks_are_not_touched() {
    let content = format!(r#""content":[{}]"#, KNOWN.join(", "));
    for revision in REVISIONS {
        let stage = Stage::before(ModernServer::full().completes("tools/call", &content)).await;
        let user = stage.user(revision).await;
        let stream = user.call("t", "{}").await;
        stream.result().await;
        let raw = stream.events().pop().unwrap().raw;
        assert!(raw.contains(&content), "{revision}: {raw}");
    }
}

/// A6: the conversion is a setting for each revision.
#[tokio::test(start_paused = true)]
async fn a6_conversion_is_a_setting() {
    for (lines, audio, link) in [
        ("convert_content = []", "audio", "resource_link"),
        (r#"convert_content = ["2024-11-05"]"#, "resource", "text"),
        (r#"convert_content = ["2025-03-26"]"#, "audio", "resource_link"),
    ] {
        for (block, expected) in [(AUDIO, audio), (LINK, link)] {
            let stage = stage(block, lines).await;
            // Unconverted blocks are none of the revision: looked at without its eyes.
            let old = crate::support::Old::open(&stage.proxy, "2024-11-05").await;
            let done = stage.proxy.send(&old.call("t", "{}")).await;
            assert_eq!(done.result()["content"][1]["type"], expected, "{lines}: {}", done.raw);
        }
    }
}

/// A block of no revision at all goes on: there is no rule for it.
#[tokio::test(start_paused = true)]
async fn a6_many_blocks_in_their_order() {
    let blocks: Vec<_> = (0..50)
        .flat_map(|n| {
            [AUDIO.replace("UklGRg==", &format!("AA{n:02}")), format!(r#"{{"type":"text","text":"{n}"}}"#)]
        })
        .collect();
    let server = ModernServer::full()
        .completes("tools/call", &format!(r#""isError":false,"content":[{}],"x":1"#, blocks.join(",")));
    let stage = Stage::before(server).await;
    let user = stage.user("2024-11-05").await;
    let result = user.call("t", "{}").await.result().await;
    let content = result["content"].as_array().unwrap();
    assert_eq!((content.len(), &result["x"]), (100, &json!(1)));
    for n in 0..50 {
        assert_eq!(content[2 * n]["resource"]["blob"], format!("AA{n:02}"));
        assert_eq!(content[2 * n + 1]["text"], n.to_string());
    }
}
