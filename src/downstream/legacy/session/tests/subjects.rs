//! Whose token a credential says that it is.

use super::*;
use crate::downstream::legacy::session::subject;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

fn token(claims: &str) -> String {
    format!("Bearer {}.{}.c2ln", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), URL_SAFE_NO_PAD.encode(claims))
}

fn of(value: &str) -> Option<subject::Subject> {
    subject::of(&headers(Some(value)))
}

/// The rest of a token, its header and its signature change with every refresh.
#[test]
fn a_subject_is_its_issuer_name_client_and_audience() {
    let one = of(&token(r#"{"iss":"i","sub":"s","aud":"a","client_id":"c","exp":1}"#)).unwrap();
    let same = [
        token(r#"{ "exp":2,"client_id":"c", "aud":"a","sub":"\u0073","iss":"i","scope":"x" }"#),
        token(r#"{"iss":"i","sub":"s","aud":"a","client_id":"c"}"#).replace("c2ln", "b3RoZXI"),
        token(r#"{"iss":"i","sub":"s","aud":"a","client_id":"c"}"#).replace("Bearer", "bearer"),
    ];
    for token in same {
        assert_eq!(of(&token), Some(one), "{token}");
    }
    let others = [
        r#"{"iss":"j","sub":"s","aud":"a","client_id":"c"}"#,
        r#"{"iss":"i","sub":"t","aud":"a","client_id":"c"}"#,
        r#"{"iss":"i","sub":"s","aud":"b","client_id":"c"}"#,
        r#"{"iss":"i","sub":"s","aud":["a"],"client_id":"c"}"#,
        r#"{"iss":"i","sub":"s","aud":"a","client_id":"d"}"#,
        r#"{"iss":"i","sub":"s","aud":"a","azp":"c"}"#,
        r#"{"iss":"i","sub":"s","aud":"a"}"#,
        r#"{"iss":"i","sub":"s","client_id":"c"}"#,
        r#"{"iss":"is","sub":"","aud":"a","client_id":"c"}"#,
        r#"{"iss":"s","sub":"i","aud":"a","client_id":"c"}"#,
    ];
    for claims in others {
        assert_ne!(of(&token(claims)), Some(one), "{claims}");
    }
}

/// What two readers could take for two things, or what is no token of this kind, has no subject.
#[test]
fn inv2_what_does_not_say_it_clearly_has_no_subject() {
    let claims = [
        r#"{"iss":"i"}"#,
        r#"{"sub":"s"}"#,
        r#"{"iss":"","sub":"s"}"#,
        r#"{"iss":"i","sub":""}"#,
        r#"{"iss":"i","sub":5}"#,
        r#"{"iss":"i","sub":null}"#,
        r#"{"iss":"i","sub":["s"]}"#,
        r#"{"iss":"i","sub":"s","sub":"t"}"#,
        r#"{"iss":"i","sub":"s","s\u0075b":"t"}"#,
        r#"{"iss":"i","iss":"i","sub":"s"}"#,
        r#"{"iss":"i","sub":"s","aud":"a","aud":"a"}"#,
        r#"{"iss":"i","sub":"s","aud":5}"#,
        r#"{"iss":"i","sub":"s","azp":""}"#,
        r#"{"iss":"i","sub":"\ud800"}"#,
        r#"{"iss":"i","sub":"s"}x"#,
        r#"{"iss":"i","sub":"s""#,
        r#"["i","s"]"#,
        "",
        "\u{0}",
    ];
    for claims in claims {
        assert_eq!(of(&token(claims)), None, "{claims}");
    }
    let good = r#"{"iss":"i","sub":"s"}"#;
    assert!(of(&token(good)).is_some());
    let raw = URL_SAFE_NO_PAD.encode(good);
    let odd = [
        raw.clone(),
        format!("Bearer {raw}"),
        format!("Bearer h.{raw}"),
        format!("Bearer h.{raw}."),
        format!("Bearer h.{raw}.s.t.u"),
        format!("Basic h.{raw}.s"),
        format!("Bearer h.{}.s", STANDARD.encode(r#"{"iss":"i","sub":"s?>"}"#)),
        format!("Bearer h.{}.s", URL_SAFE_NO_PAD.encode(b"{\"iss\":\"i\",\"sub\":\"\xff\"}")),
        format!(
            "Bearer h.{}.s",
            URL_SAFE_NO_PAD.encode(format!(r#"{{"iss":"i","sub":"s","x":{}}}"#, "[".repeat(9999)))
        ),
    ];
    for value in odd {
        assert_eq!(of(&value), None, "{value}");
    }
    let mut twice = headers(Some(&token(good)));
    twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer x"));
    assert_eq!(subject::of(&twice), None);
    assert_eq!(subject::of(&headers(None)), None);
}
