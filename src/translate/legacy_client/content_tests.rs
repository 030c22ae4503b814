//! Content for older revisions, by vector id.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::translate::legacy_client::output::Output;
use crate::translate::legacy_client::result::to_legacy;
use crate::translate::legacy_client::testing::{answer, body, id, text};
use crate::wire::method::Method;
use crate::wire::version::LegacyRevision;

const OLDEST: LegacyRevision = LegacyRevision::V2024_11_05;
const OLD: LegacyRevision = LegacyRevision::V2025_03_26;
const NEWER: LegacyRevision = LegacyRevision::V2025_06_18;

fn down(result: &str, method: Method, revision: LegacyRevision, convert: bool) -> String {
    let response = answer(result);
    let out = to_legacy(&response, body(&response), method, &id(), revision, Output::Unstated, convert);
    let out = text(&out.unwrap());
    let _: serde_json::Value = serde_json::from_str(&out).unwrap();
    let out = out.strip_prefix(r#"{"jsonrpc":"2.0","id":"c","result":"#).unwrap();
    out.strip_suffix('}').unwrap().to_owned()
}

fn called(blocks: &str, revision: LegacyRevision) -> String {
    let out = down(&format!(r#"{{"content":[{blocks}]}}"#), Method::ToolsCall, revision, true);
    out.strip_prefix(r#"{"content":["#).unwrap().strip_suffix("]}").unwrap().to_owned()
}

#[test]
fn d63_audio_is_an_embedded_resource_to_2024_11_05() {
    let audio = r#"{"type":"audio","data":"QUJD","mimeType":"audio/wav"}"#;
    assert_eq!(
        called(audio, OLDEST),
        r#"{"type":"resource","resource":{"uri":"urn:mcp-janus:audio:0","mimeType":"audio/wav","blob":"QUJD"}}"#
    );
    for revision in [OLD, NEWER, LegacyRevision::LATEST] {
        assert_eq!(called(audio, revision), audio);
    }
    // In whatever order the members stand, with what else there is; the data stays where it is.
    for (block, expected) in [
        (
            r#"{"mimeType":"a/b", "data" : "QQ==","annotations":{"priority":1.0},"type":"audio"}"#,
            r#"{"resource":{"uri":"urn:mcp-janus:audio:1","mimeType":"a/b","blob":"QQ=="},"annotations":{"priority":1.0},"type":"resource"}"#,
        ),
        (
            r#"{"\u0064ata":"QQ==","mimeType":"a/b","type":"audio","_meta":{"k":1}}"#,
            r#"{"resource":{"uri":"urn:mcp-janus:audio:1","mimeType":"a/b","blob":"QQ=="},"type":"resource","_meta":{"k":1}}"#,
        ),
        (
            r#"{"type":"audio","resource":5,"data":"QQ=="}"#,
            r#"{"type":"resource","resource":{"uri":"urn:mcp-janus:audio:1","blob":"QQ=="}}"#,
        ),
        // What is no audio cannot be made a resource.
        (r#"{"type":"audio","data":5}"#, r#"{"type":"audio","data":5}"#),
        (r#"{"type":"audio"}"#, r#"{"type":"audio"}"#),
    ] {
        let text = r#"{"type":"text","text":"t"}"#;
        assert_eq!(called(&format!("{text},{block}"), OLDEST), format!("{text},{expected}"));
    }
}

#[test]
fn d64_a_link_is_words_before_2025_06_18() {
    let link = r#"{"type":"resource_link","uri":"file:///a","name":"A \"b\"","mimeType":"text/plain","title":"T","annotations":{"audience":["user"]},"size":5,"icons":[]}"#;
    let words =
        r#"{"type":"text","text":"A \"b\": file:///a (text/plain)","annotations":{"audience":["user"]}}"#;
    assert_eq!(called(link, OLDEST), words);
    assert_eq!(called(link, OLD), words);
    assert_eq!(called(link, NEWER), link);
    let bare = r#"{"uri":"u","type":"resource_link"}"#;
    assert_eq!(called(bare, OLD), r#"{"type":"text","text":"u"}"#);
}

#[test]
fn a7_10_messages_of_prompts_have_the_same_blocks() {
    let prompt = r#"{"messages":[{"role":"user","content":{"type":"audio","data":"QQ==","mimeType":"a/b"}},{"role":"assistant","content":{"type":"resource_link","uri":"u","name":"n"}},{"role":"user","content":{"type":"image","data":"","mimeType":"i/p"}},5,{"role":"user"}]}"#;
    assert_eq!(
        down(prompt, Method::PromptsGet, OLDEST, true),
        r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"urn:mcp-janus:audio:0","mimeType":"a/b","blob":"QQ=="}}},{"role":"assistant","content":{"type":"text","text":"n: u"}},{"role":"user","content":{"type":"image","data":"","mimeType":"i/p"}},5,{"role":"user"}]}"#
    );
    assert_eq!(down(prompt, Method::PromptsGet, OLDEST, false), prompt, "switched off");
}

#[test]
fn a_converted_link_is_not_the_text_that_a_structured_result_needs() {
    let result = r#"{"content":[{"type":"resource_link","uri":"u","name":"n"}],"structuredContent":{"a":1}}"#;
    assert_eq!(
        down(result, Method::ToolsCall, OLD, true),
        r#"{"content":[{"type":"text","text":"n: u"},{"type":"text","text":"{\"a\":1}"}]}"#
    );
}
