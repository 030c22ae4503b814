//! What servers say of themselves, by rule or case id.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::translate::legacy_client::testing::{LIMITS, answer, body};

fn read(result: &str) -> Result<Discovered, Unusable> {
    let response = answer(result);
    super::read(&response, body(&response), LIMITS)
}

/// A good one with these further members.
fn with(members: &str) -> Discovered {
    read(&format!(r#"{{"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],{members}}}"#))
        .unwrap()
}

fn shown(capabilities: &str) -> (String, Offers) {
    let server = with(&format!(r#""capabilities":{capabilities}"#));
    assert_eq!(Offers::from_bits(server.offers.bits()), server.offers);
    (String::from_utf8(server.capabilities.to_vec()).unwrap(), server.offers)
}

#[test]
fn c50_the_client_is_told_of_the_servers_own_capabilities_and_no_others() {
    let none = Offers::default();
    for (said, expected, offers) in [
        ("{}", "{}", none),
        (r#"{"tools":{}}"#, r#"{"tools":{}}"#, none),
        (
            r#"{"resources":{"subscribe":true,"listChanged":true},"logging":{}, "completions":{}}"#,
            r#"{"completions":{},"logging":{},"resources":{"subscribe":true,"listChanged":true}}"#,
            Offers { subscribe: true, resources_changed: true, logging: true, ..none },
        ),
        (
            r#"{"prompts":{"listChanged":false},"tools":{"listChanged":true,"x":1e400}}"#,
            r#"{"prompts":{"listChanged":false},"tools":{"listChanged":true,"x":1e400}}"#,
            Offers { tools_changed: true, ..none },
        ),
        // What is no object is no capability, what is no flag no flag.
        (r#"{"tools":true,"prompts":null,"logging":[]}"#, "{}", none),
        (r#"{"tools":{"listChanged":"yes"}}"#, r#"{"tools":{}}"#, none),
        (r#"{"tools":{},"tools":{}}"#, "{}", none),
        (r#"{"tools":{"listChanged":true,"listChanged":true}}"#, r#"{"tools":{}}"#, none),
    ] {
        assert_eq!(shown(said), (expected.to_owned(), offers), "{said}");
    }
}

#[test]
fn a3_7_a3_12_a3_13_what_both_eras_understand() {
    let said = r#"{"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}},"experimental":{"a":{},"b":1},"com.acme":{"k":[ 1 ]}}"#;
    let expected =
        r#"{"com.acme":{"k":[1]},"experimental":{"a":{}},"extensions":{"io.modelcontextprotocol/ui":{}}}"#;
    assert_eq!(shown(said).0, expected);
    assert_eq!(shown(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#).0, "{}");
}

#[test]
fn a3_14_a9_1_instructions_and_identity() {
    let server = with(
        r#""instructions":"\u0061","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s", "version":"1"}}"#,
    );
    assert_eq!(server.instructions.as_deref(), Some(&br#""\u0061""#[..]));
    assert_eq!(&server.info[..], br#"{"name":"s","version":"1"}"#);
    let server = with(r#""instructions":5,"serverInfo":{"name":"x","version":"1"}"#);
    assert_eq!(server.instructions, None);
    assert_eq!(&server.info[..], br#"{"name":"unknown","version":"0"}"#);
}

#[test]
fn a15_4_what_no_session_can_be_begun_with() {
    for (result, words) in [
        ("{}", "supportedVersions"),
        (r#"{"supportedVersions":"2026-07-28"}"#, "supportedVersions"),
        (r#"{"supportedVersions":["2025-11-25","2024-11-05"]}"#, "only 2025-11-25, 2024-11-05"),
        (r#"{"resultType":"banana","supportedVersions":["2026-07-28"]}"#, "banana"),
        (r#"{"resultType":"input_required","supportedVersions":["2026-07-28"]}"#, "input_required"),
    ] {
        let fault = read(result).unwrap_err().to_string();
        assert!(fault.contains(words), "{fault}");
    }
}
