//! Vectors of the answers to a server's questions, by rule or vector id; expected values are written from the rules.
#![allow(clippy::unwrap_used)]

use super::answer::{self, Answer, AnswerFault, Responses, Why};
use super::question::{Need, Question};
use super::question_tests::{LIMITS, form, question, request, roots, sampling, text};
use crate::wire::json::Span;
use crate::wire::version::LegacyRevision::{self, V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};
use bytes::Bytes;

const ALL: [LegacyRevision; 4] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];

fn down(question: &Question, value: &str, revision: LegacyRevision) -> Result<Answer, AnswerFault> {
    let text = Bytes::from(format!("  {value} "));
    answer::to_legacy(question, Span::new(2, 2 + value.len()), &text, revision, LIMITS)
}

/// The result that the server gets.
fn result(question: &Question, value: &str, revision: LegacyRevision) -> String {
    let message = text(&down(question, value, revision).unwrap().message);
    let head = r#"{"jsonrpc":"2.0","id":7,"result":"#;
    message.strip_prefix(head).unwrap().strip_suffix('}').unwrap().to_owned()
}

fn faulty(question: &Question, value: &str, revision: LegacyRevision) {
    let read = down(question, value, revision);
    assert!(read.is_err(), "{value}: {read:?}");
}

fn url() -> Question {
    question("elicitation/create", r#"{"mode":"url","message":"m","url":"https://s/x"}"#)
}

#[test]
fn d33_a8_7_actions_map_one_to_one() {
    for (action, accepted) in
        [("accept", true), ("decline", false), ("cancel", false), ("c\\u0061ncel", false)]
    {
        let value = format!(r#"{{"action":"{action}"}}"#);
        for question in [form(), url()] {
            assert_eq!(result(&question, &value, V2025_11_25), value);
            assert_eq!(down(&question, &value, V2025_11_25).unwrap().accepted, Some(accepted));
        }
    }
}

#[test]
fn d33_x5_content_passes_whatever_kind_of_number_it_has() {
    let value = r#"{ "action":"accept", "content":{"n":"x\ud800","i":2.5,"big":1e400,"zero":-0,"t":true,"n":"y"} ,"x":[null]}"#;
    for revision in [V2025_06_18, V2025_11_25] {
        assert_eq!(result(&form(), value, revision), value);
    }
    assert_eq!(
        result(&form(), r#"{"action":"cancel","content":null}"#, V2025_11_25),
        r#"{"action":"cancel"}"#
    );
}

#[test]
fn a8_6_lists_of_strings_exist_from_2025_11_25_on() {
    let value = r#"{"action":"accept","content":{"l":["a","b"],"m":[]}}"#;
    assert_eq!(result(&form(), value, V2025_11_25), value);
    faulty(&form(), value, V2025_06_18);
    faulty(&form(), r#"{"action":"accept","content":{"l":["a",1]}}"#, V2025_11_25);
}

#[test]
fn a4_15_elicitation_and_roots_lose_what_is_modern_and_their_meta() {
    let modern = r#""resultType":"complete","_meta":{"a":1},"ttlMs":1,"cacheScope":"private","inputRequests":{},"inputResponses":{},"request\u0053tate":"s""#;
    assert_eq!(
        result(
            &form(),
            &format!(r#"{{{modern},"action":"accept","content":{{"resultType":"x"}},"_m\u0065ta":1}}"#),
            V2025_11_25
        ),
        r#"{"action":"accept","content":{"resultType":"x"}}"#
    );
    assert_eq!(result(&roots(), &format!(r#"{{"roots":[],{modern}}}"#), V2025_11_25), r#"{"roots":[]}"#);
    assert_eq!(
        result(
            &sampling(),
            &format!(r#"{{{modern},"role":"user","model":"m","content":{{"type":"text","text":""}}}}"#),
            V2025_11_25
        ),
        r#"{"_meta":{"a":1},"role":"user","model":"m","content":{"type":"text","text":""}}"#
    );
}

#[test]
fn a4_15_the_meta_of_a_sampling_result_loses_the_reserved_keys_alone() {
    let with = |meta: &str| {
        let value = format!(r#"{{"role":"user","model":"m","content":{{"type":"text","text":""}}{meta}}}"#);
        let result = result(&sampling(), &value, V2025_06_18);
        let head = r#"{"role":"user","model":"m","content":{"type":"text","text":""}"#;
        result.strip_prefix(head).unwrap().strip_suffix('}').unwrap().to_owned()
    };
    assert_eq!(
        with(
            r#","_meta":{"io.modelcontextprotocol/serverInfo":{},"a":1,"io.modelcontextprotocol\/clientInfo":{}}"#
        ),
        r#","_meta":{"a":1}"#
    );
    assert_eq!(with(r#","_meta":{"io.modelcontextprotocol/logLevel":"x"}"#), "");
    assert_eq!(with(r#","_meta":{}"#), r#","_meta":{}"#);
    assert_eq!(with(r#","_meta":null"#), "");
}

#[test]
fn d43_roots_are_forwarded_and_kept() {
    let value = r#"{"roots":[{"uri":"file:///a","name":"a","x":1e400},{"uri":"file:\/\/\/b"}]}"#;
    for revision in ALL {
        assert_eq!(result(&roots(), value, revision), value);
        assert_eq!(down(&roots(), value, revision).unwrap().roots.unwrap(), value);
    }
    assert_eq!(down(&roots(), value, V2025_11_25).unwrap().accepted, None);
    assert!(down(&form(), r#"{"action":"accept"}"#, V2025_11_25).unwrap().roots.is_none());
    assert!(down(&sampling(), ANSWER, V2025_11_25).unwrap().roots.is_none());
}

#[test]
fn a8_13_a_roots_meta_is_unknown_before_2025_06_18() {
    let value =
        r#"{"roots":[{"uri":"file:///a","_meta":{"a":1}},{"_meta":{},"uri":"file:///b"}],"_meta":{}}"#;
    for revision in [V2024_11_05, V2025_03_26] {
        let plain = r#"{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}"#;
        assert_eq!(result(&roots(), value, revision), plain);
        assert_eq!(down(&roots(), value, revision).unwrap().roots.unwrap(), plain);
    }
    for revision in [V2025_06_18, V2025_11_25] {
        assert_eq!(
            result(&roots(), value, revision),
            r#"{"roots":[{"uri":"file:///a","_meta":{"a":1}},{"_meta":{},"uri":"file:///b"}]}"#
        );
    }
}

const ANSWER: &str = r#"{"role":"assistant","content":{"type":"text","text":"hi","annotations":{"priority":0.50}},"model":"m","stopReason":"com.acme/odd","x":-0}"#;

#[test]
fn a8_11_a8_12_a_sampling_result_passes_as_it_is() {
    for revision in ALL {
        assert_eq!(result(&sampling(), ANSWER, revision), ANSWER);
    }
    assert_eq!(down(&sampling(), ANSWER, V2025_11_25).unwrap().accepted, None);
    let null = r#"{"role":"user","content":{"type":"text","text":""},"model":"","stopReason":null}"#;
    assert_eq!(
        result(&sampling(), null, V2025_11_25),
        r#"{"role":"user","content":{"type":"text","text":""},"model":""}"#
    );
}

fn content(blocks: &str, revision: LegacyRevision) -> String {
    let result =
        result(&sampling(), &format!(r#"{{"role":"user","model":"m","content":{blocks}}}"#), revision);
    let content = result.strip_prefix(r#"{"role":"user","model":"m","content":"#).unwrap();
    content.strip_suffix('}').unwrap().to_owned()
}

#[test]
fn a6_7_older_servers_get_one_block() {
    const IMAGE: &str = r#"{"type":"image","data":"aa","mimeType":"image/png"}"#;
    let lists = [
        // All text joined.
        (
            r#"[{"type":"text","text":"a\ud83d"},{"type":"text","text":"\"\u0062"}]"#,
            r#"{"type":"text","text":"a\ud83d\n\"\u0062"}"#,
        ),
        (&format!(r#"[{IMAGE},{{"type":"text","text":"a"}}]"#), r#"{"type":"text","text":"a"}"#),
        // Without any, the first block; a list of one is that one.
        (&format!(r#"[{IMAGE},{{"type":"image","data":"b","mimeType":"x"}}]"#), IMAGE),
        (
            r#"[ {"type":"text", "text":"a","_meta":{"b":1}} ]"#,
            r#"{"type":"text", "text":"a","_meta":{"b":1}}"#,
        ),
        ("[]", r#"{"type":"text","text":""}"#),
    ];
    for (blocks, one) in lists {
        assert_eq!(content(blocks, V2025_11_25), blocks);
        for revision in [V2024_11_05, V2025_03_26, V2025_06_18] {
            assert_eq!(content(blocks, revision), one);
        }
    }
}

#[test]
fn a6_2_audio_is_unknown_to_2024_11_05() {
    let audio = r#"{"type":"audio","data":"aa","mimeType":"audio\/wav"}"#;
    let note = r#"{"type":"text","text":"[audio audio/wav omitted]"}"#;
    assert_eq!(content(audio, V2024_11_05), note);
    assert_eq!(content(&format!("[{audio}]"), V2024_11_05), note);
    assert_eq!(content(&format!("[{audio},{audio}]"), V2024_11_05), note);
    assert_eq!(content(audio, V2025_03_26), audio);
}

#[test]
fn a6_6_tools_are_known_from_2025_11_25_on() {
    let used = r#"{"type":"tool_use","id":"1","name":"t","input":{"a":1e400}}"#;
    let done = r#"{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":{}}"#;
    for block in [used, done] {
        assert_eq!(content(block, V2025_11_25), block);
        assert_eq!(content(&format!("[{block}]"), V2025_11_25), format!("[{block}]"));
        faulty(&sampling(), &format!(r#"{{"role":"user","model":"m","content":{block}}}"#), V2025_06_18);
    }
}

#[test]
fn b1_10_an_answer_must_fit_its_question() {
    let not_for_a_form = [
        "null",
        "1",
        "[]",
        "{}",
        r#"{"action":"yes"}"#,
        r#"{"action":null}"#,
        r#"{"action":"\ud800"}"#,
        r#"{"action":"accept","\u0061ction":"cancel"}"#,
        r#"{"action":"accept","content":[]}"#,
        r#"{"action":"accept","content":{"a":{}}}"#,
        r#"{"action":"accept","content":{"a":null}}"#,
        r#"{"action":"accept","content":{"a":[["b"]]}}"#,
        r#"{"action":"accept","content":{},"content":{}}"#,
        r#"{"roots":[]}"#,
        ANSWER,
    ];
    for value in not_for_a_form {
        faulty(&form(), value, V2025_11_25);
        faulty(&url(), value, V2025_11_25);
    }
    let not_roots = [
        "{}",
        r#"{"action":"accept"}"#,
        r#"{"roots":null}"#,
        r#"{"roots":{}}"#,
        r#"{"roots":["file:///a"]}"#,
        r#"{"roots":[{"name":"a"}]}"#,
        r#"{"roots":[{"uri":"file:///a","uri":"file:///b"}]}"#,
        r#"{"roots":[{"uri":"file:///a","name":1}]}"#,
        r#"{"roots":[],"roots":[]}"#,
    ];
    for value in not_roots {
        faulty(&roots(), value, V2025_11_25);
    }
}

#[test]
fn b1_10_a_sampling_result_must_be_one() {
    let whole = |role: &str, model: &str, content: &str, more: &str| {
        format!(r#"{{"role":{role},"model":{model},"content":{content}{more}}}"#)
    };
    let (role, model, block) = (r#""user""#, r#""m""#, r#"{"type":"text","text":"a"}"#);
    result(&sampling(), &whole(role, model, block, ""), V2025_11_25);
    let contents = [
        "null",
        r#""a""#,
        "{}",
        r#"{"type":"text"}"#,
        r#"{"type":"text","text":1}"#,
        r#"{"type":"text","text":"a","text":"b"}"#,
        r#"{"type":"text","type":"image","text":"a"}"#,
        r#"{"type":"image","data":"a"}"#,
        r#"{"type":"audio","mimeType":"a"}"#,
        r#"{"type":"resource_link","uri":"file:///a","name":"a"}"#,
        r#"{"type":"tool_use","id":"1","name":"t","input":[]}"#,
        r#"{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":null}"#,
        r#"[{"type":"text","text":"a"},1]"#,
        r#"[[{"type":"text","text":"a"}]]"#,
    ];
    let odd = contents.map(|content| whole(role, model, content, ""));
    let others = [
        "{}".to_owned(),
        whole(r#""system""#, model, block, ""),
        whole("1", model, block, ""),
        whole(role, "null", block, ""),
        whole(role, model, block, r#","model":"n""#),
        whole(role, model, block, r#","content":[]"#),
        whole(role, model, block, r#","stopReason":1"#),
        whole(role, model, block, r#","_meta":[]"#),
        whole(role, model, block, r#","_meta":{},"_meta":{}"#),
        r#"{"action":"accept"}"#.to_owned(),
    ];
    for value in odd.iter().chain(&others) {
        faulty(&sampling(), value, V2025_11_25);
        faulty(&sampling(), value, V2025_03_26);
    }
}

#[test]
fn bounds_hold_for_what_is_taken_apart() {
    let fields = |count: usize| {
        let all: Vec<_> = (0..count).map(|n| format!(r#""f{n}":1"#)).collect();
        format!(r#"{{"action":"accept","content":{{{}}}}}"#, all.join(","))
    };
    assert!(down(&form(), &fields(64), V2025_11_25).is_ok());
    faulty(&form(), &fields(65), V2025_11_25);
    // Large answers pass as slices, without a copy.
    let long =
        format!(r#"{{"action":"accept","content":{{"a":"{}"}},"resultType":"x"}}"#, "x".repeat(1 << 20));
    let kept = long.replace(r#","resultType":"x""#, "");
    assert_eq!(result(&form(), &long, V2025_11_25), kept);
}

#[test]
fn b1_11_b1_12_refusals() {
    let tools = question("sampling/createMessage", r#"{"messages":[],"maxTokens":1,"tools":[]}"#);
    assert_eq!(tools.need, Need::SamplingTools);
    let cases = [
        (form(), Why::Cancelled, r#""result":{"action":"cancel"}"#),
        (form(), Why::NotPossible, r#""result":{"action":"cancel"}"#),
        (form(), Why::Undeclared, r#""error":{"code":-32602,"#),
        (url(), Why::Cancelled, r#""result":{"action":"cancel"}"#),
        (url(), Why::NotPossible, r#""result":{"action":"cancel"}"#),
        // D41.
        (url(), Why::Undeclared, r#""error":{"code":-32602,"#),
        (sampling(), Why::Cancelled, r#""error":{"code":-1,"#),
        (sampling(), Why::NotPossible, r#""error":{"code":-1,"#),
        // D40.
        (sampling(), Why::Undeclared, r#""error":{"code":-32601,"#),
        // D42.
        (tools, Why::Undeclared, r#""error":{"code":-32602,"#),
        (roots(), Why::Cancelled, r#""error":{"code":-32603,"#),
        (roots(), Why::NotPossible, r#""error":{"code":-32601,"#),
        (roots(), Why::Undeclared, r#""error":{"code":-32601,"#),
    ];
    for (question, why, rest) in cases {
        let message = text(&answer::refused(&question, why));
        assert!(message.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":7,{rest}"#)), "{why:?}: {message}");
    }
}

#[test]
fn b1_12_roots_that_were_named_before() {
    let kept =
        down(&roots(), r#"{"roots":[{"uri":"file:///a"}],"_meta":{}}"#, V2025_06_18).unwrap().roots.unwrap();
    assert_eq!(
        text(&answer::roots(&roots(), &kept)),
        r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[{"uri":"file:///a"}]}}"#
    );
}

#[test]
fn a1_2_a10_16_requests_that_are_no_questions() {
    let asked = request(r#"{"jsonrpc":"2.0","id":"\u0037","method":"tasks/get","params":{"taskId":"x"}}"#);
    assert_eq!(text(&answer::pong(&asked)), r#"{"jsonrpc":"2.0","id":"\u0037","result":{}}"#);
    let unknown = text(&answer::unknown(&asked));
    assert!(unknown.starts_with(r#"{"jsonrpc":"2.0","id":"\u0037","error":{"code":-32601,"#), "{unknown}");
    let malformed = text(&answer::malformed(&asked, "`a` must be b"));
    assert!(
        malformed.starts_with(r#"{"jsonrpc":"2.0","id":"\u0037","error":{"code":-32602,"#),
        "{malformed}"
    );
}

#[test]
fn b1_5_responses_are_found_by_key() {
    let retry = |member: &str| {
        request(&format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"t"{member}}}}}"#
        ))
    };
    let two =
        retry(r#","inputResponses":{"s1":{"action":"cancel"},"s\u0032":{"roots":[]},"\ud800":1,"\ud800":2}"#);
    let read = Responses::read(&two, LIMITS).unwrap();
    assert_eq!(read.get("s1").unwrap().of(&two.text), br#"{"action":"cancel"}"#);
    assert_eq!(read.get("s2").unwrap().of(&two.text), br#"{"roots":[]}"#);
    assert_eq!((read.get("s3"), read.get("")), (None, None));
    for none in ["", r#","inputResponses":null"#, r#","inputResponses":{}"#] {
        let read = Responses::read(&retry(none), LIMITS).unwrap();
        assert!(read.get("s1").is_none());
    }
    let many: Vec<_> = (0..65).map(|n| format!(r#""s{n}":{{}}"#)).collect();
    for odd in [
        r#","inputResponses":[]"#,
        r#","inputResponses":"s1""#,
        r#","inputResponses":{"s1":{},"\u00731":{}}"#,
        r#","inputResponses":{},"inputResponses":{}"#,
        &format!(r#","inputResponses":{{{}}}"#, many.join(",")),
    ] {
        assert!(Responses::read(&retry(odd), LIMITS).is_err(), "{odd}");
    }
}
