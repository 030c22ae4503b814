//! Each kind of message renamed and put back, with every other byte as it was. Rules: A2.2, A14.2-A14.4, B17; case C20.

use super::*;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{Message, parse};

const LIMITS: Limits = Limits { nesting: 64, members: 1000 };
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn message(text: &str) -> Message {
    parse(Bytes::copy_from_slice(text.as_bytes()), LIMITS).unwrap()
}

fn a_request(text: &str) -> Request {
    let Message::Request(request) = message(text) else { panic!("no request: {text}") };
    request
}

fn a_response(text: &str) -> Response {
    let Message::Response(response) = message(text) else { panic!("no response: {text}") };
    response
}

fn a_notification(text: &str) -> Notification {
    let Message::Notification(notification) = message(text) else { panic!("no notification: {text}") };
    notification
}

/// An id as a caller writes it.
fn id(raw: &str) -> Id {
    let text = Bytes::copy_from_slice(raw.as_bytes());
    Id::accept(&text, json::Span::new(0, raw.len())).unwrap()
}

fn token(raw: &str) -> Token {
    Token(Bytes::copy_from_slice(raw.as_bytes()))
}

fn text(payload: &Payload) -> String {
    String::from_utf8(payload.to_bytes().to_vec()).unwrap()
}

/// `request` under 70: what goes out, and the caller's token.
fn down(text_of: &str) -> (String, Option<String>) {
    let (payload, token) = request(&a_request(text_of), &Id::number(70));
    (text(&payload), token.map(|token| String::from_utf8(token.raw().to_vec()).unwrap()))
}

fn up(text_of: &str, caller: &str, listen: bool) -> String {
    text(&response(&a_response(text_of), &id(caller), listen))
}

#[test]
fn a14_2_a_request_goes_under_our_id_and_every_other_byte_stays() {
    for theirs in ["1", "-0", "9007199254740993", r#""1""#, r#""""#, r#""\u0031\"\\""#, r#""äöü""#] {
        let given = format!(
            "{{ \"x\":1e400 ,\"id\" :\t{theirs},\"method\":\"tools\\/call\",\"jsonrpc\":\"2.0\",\"params\":{{\"id\":{theirs},\"arguments\":{{\"n\":1.0}}}}}}"
        );
        let wanted = format!(
            "{{ \"x\":1e400 ,\"id\" :\t70,\"method\":\"tools\\/call\",\"jsonrpc\":\"2.0\",\"params\":{{\"id\":{theirs},\"arguments\":{{\"n\":1.0}}}}}}"
        );
        assert_eq!(down(&given), (wanted, None), "{theirs}");
    }
}

#[test]
fn a14_2_the_member_is_found_under_an_escaped_name_and_wherever_it_stands() {
    assert_eq!(
        down(r#"{"jsonrpc":"2.0","method":"m","\u0069d":"a"}"#).0,
        r#"{"jsonrpc":"2.0","method":"m","\u0069d":70}"#
    );
    for params in ["", r#","params":null"#, r#","params":{}"#, r#","params":{"_meta":{}}"#] {
        let given = format!(r#"{{"id":3,"jsonrpc":"2.0","method":"m"{params}}}"#);
        assert_eq!(down(&given), (given.replace("\"id\":3", "\"id\":70"), None));
    }
}

#[test]
fn a14_4_the_progress_token_becomes_our_id_and_the_callers_is_kept_as_he_wrote_it() {
    for theirs in ["1", "1.50", "-0", "1e400", r#""1""#, r#""""#, r#""\u0061\n""#] {
        let given = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"progressToken":{theirs},"_meta":{{"a":{{"progressToken":{theirs}}},"progressToken": {theirs} ,"b":[]}}}}}}"#
        );
        let wanted = format!(
            r#"{{"jsonrpc":"2.0","id":70,"method":"m","params":{{"progressToken":{theirs},"_meta":{{"a":{{"progressToken":{theirs}}},"progressToken": 70 ,"b":[]}}}}}}"#
        );
        assert_eq!(down(&given), (wanted, Some(theirs.to_owned())));
    }
}

#[test]
fn a14_4_an_id_of_ours_that_is_a_string_is_a_token_that_is_one() {
    let (payload, token) = request(
        &a_request(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1}}}"#),
        &id(r#""a-1""#),
    );
    assert_eq!(
        text(&payload),
        r#"{"jsonrpc":"2.0","id":"a-1","method":"m","params":{"_meta":{"progressToken":"a-1"}}}"#
    );
    assert_eq!(token.unwrap().raw(), "1");
}

#[test]
fn a14_4_what_is_no_token_stays() {
    for theirs in ["null", "true", "{}", "[1]", r#"{"progressToken":1}"#] {
        let given = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{{"progressToken":{theirs}}}}}}}"#
        );
        assert_eq!(down(&given), (given.replace("\"id\":1", "\"id\":70"), None), "{theirs}");
    }
}

#[test]
fn a14_4_a_token_that_stands_twice_reaches_nobody_else() {
    let (sent, kept) = down(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":5,"progress\u0054oken":"b"}}}"#,
    );
    let wanted = r#"{"jsonrpc":"2.0","id":70,"method":"m","params":{"_meta":{"progressToken":70,"progress\u0054oken":70}}}"#;
    assert_eq!((sent.as_str(), kept.as_deref()), (wanted, Some(r#""b""#)));
}

#[test]
fn a14_3_an_answer_goes_back_under_the_callers_id_in_its_own_type_and_writing() {
    let result = r#"{"id":ID, "jsonrpc":"2.0","result":{"id":70,"n":1e400,"_meta":{"k":70}},"x":70}"#;
    let error = r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"70","data":{"id":70}},"id": ID }"#;
    for caller in ["1", "-0", r#""1""#, r#""\u0031""#, r#""""#, r#""70""#] {
        // A server may answer under the number as a string (C17): what is there does not matter.
        for (given, theirs) in [(result, "70"), (error, "70"), (result, r#""70""#)] {
            for listen in [false, true] {
                assert_eq!(
                    up(&given.replace("ID", theirs), caller, listen),
                    given.replace("ID", caller),
                    "{caller} {theirs}"
                );
            }
        }
    }
}

#[test]
fn a14_3_an_answer_without_an_id_gets_the_callers() {
    assert_eq!(
        up(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#, "7", false),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32700,"message":"m"}}"#
    );
    assert_eq!(
        up(r#"{ "jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#, "\"a\"", false),
        r#"{"id":"a", "jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#
    );
}

#[test]
fn b17_the_answer_to_a_listen_has_the_callers_id_twice() {
    for caller in ["1", r#""1""#, r#""\u0031""#, "-0"] {
        let given = format!(
            r#"{{"result":{{"{SUBSCRIPTION}":70,"resultType":"complete","_meta":{{"k":70,"{SUBSCRIPTION}":70,"a":{{"{SUBSCRIPTION}":70}}}}}},"jsonrpc":"2.0","id":70}}"#
        );
        let wanted = format!(
            r#"{{"result":{{"{SUBSCRIPTION}":70,"resultType":"complete","_meta":{{"k":70,"{SUBSCRIPTION}":{caller},"a":{{"{SUBSCRIPTION}":70}}}}}},"jsonrpc":"2.0","id":{caller}}}"#
        );
        assert_eq!(up(&given, caller, true), wanted);
        // What any other result says there is its own.
        assert_eq!(up(&given, caller, false), given.replace("\"id\":70", &format!("\"id\":{caller}")));
    }
}

#[test]
fn b17_a_listens_answer_may_lack_what_would_be_put_back() {
    for result in ["{}", r#"{"_meta":null}"#, r#"{"_meta":{}}"#] {
        let given = format!(r#"{{"jsonrpc":"2.0","id":70,"result":{result}}}"#);
        assert_eq!(up(&given, "\"s\"", true), given.replace("70", "\"s\""));
    }
    let error = r#"{"jsonrpc":"2.0","id":70,"error":{"code":-32601,"message":"m"}}"#;
    assert_eq!(up(error, "\"s\"", true), error.replace("70", "\"s\""));
}

fn told(text_of: &str, what: Renamed<'_>) -> String {
    text(&notification(&a_notification(text_of), what))
}

#[test]
fn a14_4_progress_comes_back_under_the_callers_token() {
    for theirs in ["1", "1.50", "1e400", r#""1""#, r#""\u0061""#] {
        let given = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":7e1,"progressToken":TOKEN,"_meta":{"progressToken":70}}}"#;
        for ours in ["70", r#""70""#] {
            let told = told(&given.replace("TOKEN", ours), Renamed::Progress(&token(theirs)));
            assert_eq!(told, given.replace("TOKEN", theirs));
        }
    }
}

#[test]
fn b17_what_is_told_to_a_listen_comes_back_under_the_callers_id() {
    for method in ["notifications/subscriptions/acknowledged", "notifications/resources/updated", "acme/x"] {
        for caller in ["1", r#""1""#, r#""\u0031""#] {
            let given = format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"uri":"a","_meta":{{"{SUBSCRIPTION}" : ID,"k":70}},"{SUBSCRIPTION}":70}}}}"#
            );
            let told = told(&given.replace("ID", "70"), Renamed::Subscription(&id(caller)));
            assert_eq!(told, given.replace("ID", caller));
        }
    }
}

#[test]
fn a_notification_without_the_place_stays_as_it_was() {
    for params in ["", r#","params":null"#, r#","params":{}"#, r#","params":{"_meta":{"progressToken":70}}"#]
    {
        let given = format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress"{params}}}"#);
        assert_eq!(told(&given, Renamed::Progress(&token("1"))), given);
        assert_eq!(told(&given, Renamed::Subscription(&id("1"))), given);
    }
}

fn whom(method: &str, params: &str, expected: Addressee<'_>) {
    let notification =
        a_notification(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    assert_eq!(addressee(&notification), expected, "{method} {params}");
}

#[test]
fn b17_a_notification_says_whom_it_is_for() {
    let (progress, cancelled) = ("notifications/progress", "notifications/cancelled");
    let meta = |id: &str| format!(r#"{{"_meta":{{"io.modelcontextprotocol\/subscriptionId":{id}}}}}"#);
    whom(progress, r#"{"progressToken": 70 }"#, Addressee::Progress(b"70"));
    whom(progress, r#"{"progressToken":"\u0037"}"#, Addressee::Progress(br#""\u0037""#));
    whom(progress, r#"{"progressToken":70,"_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#, {
        Addressee::Progress(b"70")
    });
    whom(cancelled, r#"{"requestId":70,"reason":"r"}"#, Addressee::Cancelled(b"70"));
    whom(cancelled, r#"{"requestId":"70"}"#, Addressee::Cancelled(br#""70""#));
    whom("notifications/tools/list_changed", &meta("70"), Addressee::Subscription(b"70"));
    whom("notifications/subscriptions/acknowledged", &meta("\"70\""), Addressee::Subscription(b"\"70\""));
    whom("notifications/message", &meta("70"), Addressee::Subscription(b"70"));
}

#[test]
fn b17_a_notification_that_does_not_say_is_for_nobody_in_particular() {
    let (progress, cancelled) = ("notifications/progress", "notifications/cancelled");
    for params in
        ["null", "{}", r#"{"_meta":{}}"#, r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":null}}"#]
    {
        for method in [progress, cancelled, "notifications/tools/list_changed", "acme/x"] {
            whom(method, params, Addressee::None);
        }
    }
    for bad in ["null", "true", "[]", "{}"] {
        whom(progress, &format!(r#"{{"progressToken":{bad}}}"#), Addressee::None);
        whom(cancelled, &format!(r#"{{"requestId":{bad}}}"#), Addressee::None);
    }
    // Two readers could take either one.
    whom(progress, r#"{"progressToken":70,"progressToken":71}"#, Addressee::None);
    whom(cancelled, r#"{"requestId":70,"request\u0049d":71}"#, Addressee::None);
    whom("notifications/message", r#"{"progressToken":70,"requestId":70}"#, Addressee::None);
    assert_eq!(
        addressee(&a_notification(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#)),
        Addressee::None
    );
}

#[test]
fn a2_2_our_cancellation_is_a_message_of_its_own() {
    let plain = text(&cancelled(&Id::number(70), None));
    assert_eq!(plain, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":70}}"#);
    let said = text(&cancelled(&id(r#""\u0061""#), Some("left\n\"so\"")));
    assert_eq!(
        said,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061","reason":"left\n\"so\""}}"#
    );
    for sent in [&plain, &said] {
        assert!(matches!(addressee(&a_notification(sent)), Addressee::Cancelled(_)));
    }
}

#[test]
fn c20_equal_ids_and_tokens_of_two_callers_part_and_come_back() {
    let given = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1}}}"#;
    for (ours, caller) in [(70, "1"), (71, r#""1""#)] {
        let given = given.replace(":1", &format!(":{caller}"));
        let asked = a_request(&given);
        let (sent, token) = request(&asked, &Id::number(ours));
        let seen = a_request(&text(&sent));
        assert_eq!(seen.id, Id::number(ours));
        let progress = a_notification(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{ours},"progress":1}}}}"#
        ));
        assert_eq!(addressee(&progress), Addressee::Progress(ours.to_string().as_bytes()));
        let back = text(&notification(&progress, Renamed::Progress(&token.unwrap())));
        assert!(back.contains(&format!(r#""progressToken":{caller},"#)), "{back}");
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{}}}}"#);
        assert_eq!(up(&answer, caller, false), format!(r#"{{"jsonrpc":"2.0","id":{caller},"result":{{}}}}"#));
    }
}

#[test]
fn a_long_text_is_not_copied() {
    let long = "x".repeat(1 << 20);
    let asked =
        a_request(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"long":"{long}"}}}}"#));
    let (sent, _) = request(&asked, &Id::number(70));
    let whole = asked.text.as_ptr_range();
    let last = sent.parts().last().unwrap();
    assert!(whole.contains(&last.as_ptr()) && last.len() > long.len());
}
