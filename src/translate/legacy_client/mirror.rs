//! The headers that repeat parts of a request, for intermediaries that do not read bodies.
//!
//! Owns `Mcp-Name` and the `Mcp-Param-*` headers of a call. Does not own the annotations that ask for them
//! (`schema::header`), nor the refresh after a refusal (`upstream`). Rules: A5.10, A5.15, A13.2, A13.3; vectors D78, D79;
//! case C67; spec basic/transports/streamable-http, "Custom Headers from Tool Parameters".

use crate::schema::header::{Mirror, Mirrors};
use crate::wire::headers::encode_value;
use crate::wire::json::{Kind, Limits, Span, object, once};
use crate::wire::jsonrpc::{Request, string};
use crate::wire::method::Method;
use hyper::header::{HeaderName, HeaderValue};
use std::borrow::Cow;

/// Digits of a number that is still written out; beyond, no receiver has an exact value to compare with.
const MOST_DIGITS: usize = 400;

/// `Mcp-Name` of a request that needs it and has what it repeats.
pub fn name(request: &Request, method: Method) -> Option<HeaderValue> {
    let member = method.name_member()?;
    let text = &request.text;
    let name = string(text, once(&request.params.body()?.object, text, member.as_str())?)?;
    if let Cow::Borrowed(name) = &name
        && let Cow::Borrowed(plain) = encode_value(name)
    {
        // As it stands in the request, of which it is a part.
        return HeaderValue::from_maybe_shared(text.slice_ref(plain.as_bytes())).ok();
    }
    value(&name)
}

/// The headers of one call. What has no value there, or `null`, has no header, and neither has a value that a header cannot
/// stand for (an object, a name that occurs twice): what the server makes of it is between it and the client.
pub fn headers(mirrors: &Mirrors, request: &Request, limits: Limits) -> Vec<(HeaderName, HeaderValue)> {
    let text = &request.text;
    let Some(body) = request.params.body().filter(|_| !mirrors.is_empty()) else { return Vec::new() };
    let Some(arguments) = once(&body.object, text, "arguments").and_then(|span| object(text, span, limits))
    else {
        return Vec::new();
    };
    let of = |mirror: &Mirror| {
        let (last, steps) = mirror.path.split_last()?;
        let mut at = Cow::Borrowed(&arguments);
        for step in steps {
            at = Cow::Owned(object(text, once(&at, text, step)?, limits)?);
        }
        let written = scalar(text, once(&at, text, last)?)?;
        Some((mirror.header.clone(), value(&written)?))
    };
    mirrors.iter().filter_map(of).collect()
}

fn value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&encode_value(text)).ok()
}

/// A value as the headers write it: servers compare integers as numbers, everything else as text.
fn scalar(text: &[u8], span: Span) -> Option<Cow<'_, str>> {
    match Kind::of(span.of(text))? {
        Kind::String => string(text, span),
        Kind::Bool => std::str::from_utf8(span.of(text)).ok().map(Cow::Borrowed),
        Kind::Number => decimal(std::str::from_utf8(span.of(text)).ok()?).map(Cow::Owned),
        Kind::Null | Kind::Object | Kind::Array => None,
    }
}

/// A JSON number in decimal notation without a fraction of zeros: `1e3` and `1000.0` are both `1000`.
fn decimal(raw: &str) -> Option<String> {
    let (sign, raw) = raw.strip_prefix('-').map_or(("", raw), |rest| ("-", rest));
    let (mantissa, exponent) = raw.split_once(['e', 'E']).unwrap_or((raw, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent.parse().ok()?;
    let digits = format!("{whole}{fraction}");
    // Where the point stands among the digits.
    let point = exponent.checked_add(whole.len() as i64)?;
    if point.unsigned_abs() as usize > MOST_DIGITS || digits.len() > MOST_DIGITS {
        return None;
    }
    let (whole, fraction) = match usize::try_from(point) {
        Ok(point) if point <= digits.len() => (digits[..point].to_owned(), digits[point..].to_owned()),
        Ok(point) => (format!("{digits:0<point$}"), String::new()),
        Err(_) => (String::new(), format!("{}{digits}", "0".repeat(point.unsigned_abs() as usize))),
    };
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    Some(match (whole, fraction) {
        ("", "") => "0".to_owned(),
        ("", fraction) => format!("{sign}0.{fraction}"),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    })
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;
