//! Header values: every text survives encoding, every value is read as a slow reference reads it, and `Accept` says
//! the same on one line as on several.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp_janus_fuzz::wire::headers::{Accepts, ContentType, HeaderFault, decode_value, encode_value};

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        round_trip(text);
    }
    let decoded = decode_value(input).map(std::borrow::Cow::into_owned);
    assert_eq!(decoded, reference(input));
    if let Ok(text) = decoded {
        round_trip(&text);
    }
    accept(input);
    assert_eq!(ContentType::parse(input), ContentType::parse(&input.to_ascii_uppercase()));
    let mut more = input.to_vec();
    more.extend_from_slice(b"; charset=utf-8");
    assert_eq!(ContentType::parse(input), ContentType::parse(&more));
});

fn round_trip(text: &str) {
    let value = encode_value(text);
    assert!(!value.is_empty() && value.bytes().all(visible));
    assert_eq!(value.trim_matches([' ', '\t']), value);
    assert_eq!(decode_value(value.as_bytes()).as_deref(), Ok(text));
}

fn reference(value: &[u8]) -> Result<String, HeaderFault> {
    let text: String = value.iter().map(|byte| char::from(*byte)).collect();
    let text = text.trim_matches([' ', '\t']);
    if !text.chars().all(|c| u8::try_from(c).is_ok_and(visible)) {
        return Err(HeaderFault::NotVisible);
    }
    if !(text.starts_with("=?base64?") && text.ends_with("?=")) {
        return Ok(text.to_owned());
    }
    let coded = text.get(9..text.len() - 2).ok_or(HeaderFault::NotBase64)?;
    let bytes = base64(coded).ok_or(HeaderFault::NotBase64)?;
    String::from_utf8(bytes).map_err(|_| HeaderFault::NotUtf8)
}

fn visible(byte: u8) -> bool {
    byte == b'\t' || (0x20..=0x7e).contains(&byte)
}

/// RFC 4648 section 4, padding required, unused bits zero.
fn base64(coded: &str) -> Option<Vec<u8>> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if !coded.len().is_multiple_of(4) {
        return None;
    }
    let digits = coded.strip_suffix("==").or_else(|| coded.strip_suffix('=')).unwrap_or(coded);
    let mut bits = String::new();
    for digit in digits.chars() {
        bits += &format!("{:06b}", ALPHABET.find(digit)?);
    }
    let (whole, unused) = bits.split_at(bits.len() / 8 * 8);
    if unused.contains('1') || unused.len() >= 6 {
        return None;
    }
    (0..whole.len() / 8).map(|at| u8::from_str_radix(&whole[at * 8..at * 8 + 8], 2).ok()).collect()
}

fn accept(input: &[u8]) {
    let one_line = Accepts::parse([input]);
    if !input.contains(&b'"') {
        assert_eq!(one_line, Accepts::parse(input.split(|byte| *byte == b',')));
    }
    assert_eq!(one_line, Accepts::parse([&b"garbage"[..], input, b""]));
    assert!(Accepts::parse([input, b"application/json"]).json);
    assert!(Accepts::parse([b"Text/Event-Stream;q=0.1", input]).event_stream);
}
