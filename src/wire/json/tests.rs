//! Scanner and splice against the grammar of RFC 8259 and against serde_json as a second opinion.
#![allow(clippy::unwrap_used)]

use super::*;
use bytes::Bytes;

const LIMITS: Limits = Limits { nesting: 8, members: 4 };

fn skip(text: &str) -> Result<(), ScanFault> {
    let mut cursor = Cursor::new(text.as_bytes(), LIMITS).map_err(|e| e.fault)?;
    cursor.skip().and_then(|_| cursor.end()).map_err(|e| e.fault)
}

fn object(text: &Bytes) -> Object {
    let mut cursor = Cursor::new(text, Limits { members: 8, ..LIMITS }).unwrap();
    let object = cursor.object(|cursor, _| cursor.skip()).unwrap();
    cursor.end().unwrap();
    object
}

#[test]
fn accepts_what_the_grammar_allows() {
    for text in [
        "{}",
        "[]",
        "null",
        "true",
        "false",
        "\"\"",
        "0",
        "-0",
        "1e400",
        "-1.5E-7",
        "12345678901234567890123",
        " [ 1 , { \"a\" : [ ] } ] \r\n",
        r#""\u0000\ud800\"\\\/\b\f\n\r\t""#,
        "\"\u{2028}\u{85}é世\"",
        r#"{"a":1,"a":2}"#,
        "[[[[[[[[]]]]]]]]",
    ] {
        assert_eq!(skip(text), Ok(()), "{text}");
    }
}

#[test]
fn refuses_what_it_does_not() {
    for text in [
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "-",
        "nul",
        "nulL",
        "tru",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "[1,]",
        "{\"a\":1,}",
        "[1 2]",
        "[1}",
        "{\"a\":1]",
        "\"\u{1}\"",
        "\"\n\"",
        r#""\x""#,
        r#""\u12g4""#,
        "\"",
        "",
        " ",
        "1 2",
        "[",
        "NaN",
        "'a'",
        "/**/1",
        "\u{feff}1",
    ] {
        assert!(matches!(skip(text), Err(ScanFault::Syntax | ScanFault::Truncated)), "{text:?}");
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text:?}");
    }
}

#[test]
fn bounds_nesting_members_and_encoding() {
    assert_eq!(skip("[[[[[[[[[]]]]]]]]]"), Err(ScanFault::Nesting(8)));
    assert_eq!(skip(&"[".repeat(100_000)), Err(ScanFault::Nesting(8)));
    let text = Bytes::from_static(br#"{"a":1,"b":2,"c":3,"d":4,"e":5}"#);
    let mut cursor = Cursor::new(&text, LIMITS).unwrap();
    assert_eq!(cursor.object(|cursor, _| cursor.skip()).unwrap_err().fault, ScanFault::Members(4));
    assert_eq!(Cursor::new(b"\"\xff\"", LIMITS).unwrap_err().fault, ScanFault::Utf8);
    // Containers that `object` has entered count too.
    let text = br#"{"a":[[[[[[[[]]]]]]]]}"#;
    let mut cursor = Cursor::new(text, LIMITS).unwrap();
    assert_eq!(cursor.object(|cursor, _| cursor.skip()).unwrap_err().fault, ScanFault::Nesting(8));
}

#[test]
fn long_strings_cross_block_borders() {
    for len in [0, 1, 31, 32, 33, 63, 64, 65, 1000] {
        for tail in ["\"", "\\n\"", "\\u00e9x\""] {
            let text = format!("\"{}{tail}", "x".repeat(len));
            assert_eq!(skip(&text), Ok(()), "{len} {tail}");
        }
        assert_eq!(skip(&format!("\"{}\u{1f}\"", "x".repeat(len))), Err(ScanFault::Syntax));
    }
}

#[test]
fn names_are_compared_after_unescaping_and_duplicates_refused() {
    let text = Bytes::from_static(br#"{"n\u0061me":1,"b":2,"name":3}"#);
    let object = object(&text);
    assert_eq!(object.get(&text, "name"), Err(Duplicate("name".into())));
    assert_eq!(object.get(&text, "b").unwrap().unwrap().of(&text), b"2");
    assert_eq!(object.get(&text, "c"), Ok(None));
    assert_eq!(object.first(&text, "name").unwrap().of(&text), b"1");
}

#[test]
fn unescape_and_quote() {
    assert_eq!(unescape(br"a\u00e9\ud83d\ude00\n\/").as_deref(), Some("aé😀\n/"));
    assert_eq!(unescape(br"\ud83d"), None);
    assert_eq!(unescape(br"\ud83dx"), None);
    assert_eq!(unescape(br"\ude00"), None);
    for text in ["", "é\"\\\u{1}\n\t\r\u{2028}😀", "plain"] {
        assert_eq!(serde_json::from_str::<String>(&quote(text)).unwrap(), text);
    }
}

#[test]
fn rewrite_takes_out_any_set_of_members_and_keeps_the_rest_byte_for_byte() {
    let text = Bytes::from_static(b"{ \"a\" : 1e400 ,\"b\":[-0],\n\"c\":\"\\u0041\" , \"d\":{} }");
    let found = object(&text);
    for mask in 0_u32..16 {
        for add in ["", "\"x\":1"] {
            let mut splice = Splice::new(&text);
            let index = |member: &Member| found.members.iter().position(|m| m == member).unwrap();
            let left =
                splice.rewrite(&found, |member| mask >> index(member) & 1 == 0, add.as_bytes().to_vec());
            let out = splice.finish().to_bytes();
            let kept: Vec<_> = (0..4).filter(|i| mask >> i & 1 == 0).collect();
            assert_eq!(left, kept.len() + usize::from(!add.is_empty()));
            let again = object(&out);
            let offset = usize::from(!add.is_empty());
            assert_eq!(again.members.len(), kept.len() + offset, "{out:?}");
            for (place, &was) in kept.iter().enumerate() {
                let (now, then) = (&again.members[place + offset], &found.members[was]);
                assert_eq!(now.key.of(&out), then.key.of(&text));
                assert_eq!(now.value.of(&out), then.value.of(&text));
            }
        }
    }
}

#[test]
fn an_unchanged_splice_is_the_same_bytes_and_a_large_one_is_not_copied() {
    let text = Bytes::from(format!("{{\"a\":\"{}\",\"b\":2}}", "x".repeat(100_000)));
    let found = object(&text);
    assert_eq!(Splice::new(&text).finish().to_bytes(), text);
    let mut splice = Splice::new(&text);
    splice.replace(found.members[1].value, &b"3"[..]);
    let out = splice.finish();
    assert_eq!(out.parts()[0].as_ptr(), text.as_ptr());
    assert_eq!(out.parts().len(), 3);
    assert!(out.to_bytes().ends_with(b"\"b\":3}"));
    assert_eq!(out.len(), text.len());
}
