//! Tables of header values, each row with what it stands for.

use super::*;

#[test]
fn d79_value_encoding_examples() {
    let table = [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("file:///é", "=?base64?ZmlsZTovLy/DqQ==?="),
        ("inner\ttab and space", "inner\ttab and space"),
        ("\ttab", "=?base64?CXRhYg==?="),
        ("", "=?base64??="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?base64?open", "=?base64?open"),
        ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
        ("\u{7f}", "=?base64?fw==?="),
    ];
    for (text, value) in table {
        assert_eq!(encode_value(text), value, "{text:?}");
        assert_eq!(decode_value(value.as_bytes()).as_deref(), Ok(text), "{value:?}");
    }
}

#[test]
fn d10_header_values_as_they_come() {
    let table: [(&[u8], Result<&str, HeaderFault>); 17] = [
        (b"=?base64?ZWNobw==?=", Ok("echo")),
        (b"ECHO", Ok("ECHO")),
        (b" echo\t", Ok("echo")),
        (b"", Ok("")),
        (b"=?base64?ZWNobw==", Ok("=?base64?ZWNobw==")),
        (b"ZWNobw==?=", Ok("ZWNobw==?=")),
        (b"=?Base64?ZWNobw==?=", Ok("=?Base64?ZWNobw==?=")),
        (b"=?base64?ZWNobw?=", Err(HeaderFault::NotBase64)),
        (b"=?base64?ZWNo!!!bw==?=", Err(HeaderFault::NotBase64)),
        (b"=?base64?ZWNobw== ?=", Err(HeaderFault::NotBase64)),
        (b"=?base64?_-8=?=", Err(HeaderFault::NotBase64)),
        (b"=?base64?=", Err(HeaderFault::NotBase64)),
        (b"=?base64?/w==?=", Err(HeaderFault::NotUtf8)),
        (b"caf\xc3\xa9", Err(HeaderFault::NotVisible)),
        (b"caf\xe9", Err(HeaderFault::NotVisible)),
        (b"echo\n", Err(HeaderFault::NotVisible)),
        (b"a\x7fb", Err(HeaderFault::NotVisible)),
    ];
    for (value, text) in table {
        assert_eq!(decode_value(value).as_deref().map_err(|fault| *fault), text, "{}", value.escape_ascii());
    }
}

#[test]
fn c25_accept() {
    const NEITHER: (bool, bool) = (false, false);
    const JSON: (bool, bool) = (true, false);
    const STREAM: (bool, bool) = (false, true);
    const BOTH: (bool, bool) = (true, true);
    let table: [(&[&str], (bool, bool)); 28] = [
        (&[], BOTH),
        (&["*/*"], BOTH),
        (&["application/json"], JSON),
        (&["text/event-stream"], STREAM),
        (&["application/*"], JSON),
        (&["text/*"], STREAM),
        (&["application/json, text/event-stream"], BOTH),
        (&["application/json", "text/event-stream"], BOTH),
        (&["Application/JSON;charset=utf-8,TEXT/Event-Stream"], BOTH),
        (&["application/json;q=0.5, text/event-stream;q=0"], JSON),
        (&["application/json ; q=0.000 , text/event-stream"], STREAM),
        (&["*/*, text/event-stream;q=0"], JSON),
        (&["text/event-stream;q=0, */*"], JSON),
        (&["text/*;q=0, text/event-stream;Q=1.0"], STREAM),
        (&["*/*;q=0"], NEITHER),
        (&["*/*;q=0, application/json;q=0.001"], JSON),
        (&["application/json, application/json;q=0"], JSON),
        (&["text/html, image/png"], NEITHER),
        (&["application/json-seq"], NEITHER),
        (&["text/html;a=\"x, application/json\""], NEITHER),
        (&["text/html;a=\"\\\", application/json\", text/event-stream"], STREAM),
        (&["application/json;level=1;q=0.3"], JSON),
        (&[""], BOTH),
        (&[" , ,"], BOTH),
        (&["garbage"], BOTH),
        (&["garbage, application/json"], JSON),
        (&["a/b/c, /json, application/, text/event-stream"], STREAM),
        (&["text/event-stream;q=no, application/json"], JSON),
    ];
    for (lines, (json, event_stream)) in table {
        let accepts = Accepts::parse(lines.iter().map(|line| line.as_bytes()));
        assert_eq!(accepts, Accepts { json, event_stream }, "{lines:?}");
        assert_eq!(accepts.nothing(), !json && !event_stream);
    }
}

#[test]
fn c25_accept_with_bytes_that_are_no_text() {
    let accepts = Accepts::parse([&b"\xff/\xff, application/json"[..]]);
    assert_eq!(accepts, Accepts { json: true, event_stream: false });
}

#[test]
fn a13_7_content_type() {
    let table = [
        ("application/json", ContentType::Json),
        ("Application/Json; charset=UTF-8", ContentType::Json),
        (" application/json ;", ContentType::Json),
        ("text/event-stream", ContentType::EventStream),
        ("TEXT/EVENT-STREAM;charset=utf-8", ContentType::EventStream),
        ("application/json-rpc", ContentType::Other),
        ("application/problem+json", ContentType::Other),
        ("text/html", ContentType::Other),
        ("application/json, text/plain", ContentType::Other),
        ("", ContentType::Other),
    ];
    for (value, expected) in table {
        assert_eq!(ContentType::parse(value.as_bytes()), expected, "{value:?}");
    }
}
