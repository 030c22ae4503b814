//! The headers that repeat parts of a request, for intermediaries that do not read bodies.
//!
//! Owns `Mcp-Name`, the reading of a tool's `x-mcp-header` annotations with the rules that make the whole tool invalid, and
//! the `Mcp-Param-*` headers of a call. Does not own what happens to an invalid tool (`tools`), nor the refresh after a
//! refusal (`upstream`). Rules: A5.10, A5.15, A13.2, A13.3; vectors D78, D79; case C67; spec basic/transports/streamable-http,
//! "Custom Headers from Tool Parameters".

use crate::schema::walk::{Place, Way, walk};
use crate::translate::tools::{ANNOTATION, may_be_annotated};
use crate::wire::headers::{MCP_PARAM_PREFIX, encode_value};
use crate::wire::json::{Kind, Limits, Object, Span, object, once};
use crate::wire::jsonrpc::{Request, string};
use crate::wire::method::Method;
use hyper::header::{HeaderName, HeaderValue};
use std::borrow::Cow;
use std::collections::HashSet;

/// The parameters of one tool that headers repeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirrors(Box<[Mirror]>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mirror {
    header: HeaderName,
    /// Names of members, from `arguments` inwards.
    path: Box<[Box<str>]>,
}

/// Why a tool's annotations make it invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("`x-mcp-header` stands where no chain of `properties` leads")]
    Place,
    #[error("the value of `x-mcp-header` is no header name")]
    Name,
    #[error("`x-mcp-header` on a parameter that is no integer, string or boolean")]
    Type,
    #[error("two parameters have the same `x-mcp-header`")]
    Twice,
    #[error("more than {MOST} parameters have an `x-mcp-header`")]
    TooMany,
}

/// Annotations of one tool: what is known of it is kept.
const MOST: usize = 128;

/// Digits of a number that is still written out; beyond, no receiver has an exact value to compare with.
const MOST_DIGITS: usize = 400;

impl Mirrors {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

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
    mirrors.0.iter().filter_map(of).collect()
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

/// Reads the annotations of an `inputSchema`.
pub(super) fn of(text: &[u8], schema: &Object) -> Result<Mirrors, Invalid> {
    if !may_be_annotated(schema.span.of(text)) {
        return Ok(Mirrors::default());
    }
    let mut found = Found::default();
    let mut invalid = None;
    walk(text, schema.span, Place::of, |here, way| {
        if invalid.is_none() && here.first(text, ANNOTATION).is_some() {
            invalid = found.annotation(text, here, way).err();
        }
    });
    match invalid {
        Some(invalid) => Err(invalid),
        None => Ok(Mirrors(found.mirrors.into())),
    }
}

/// What a walk over the schemas of one tool has found.
#[derive(Default)]
struct Found {
    seen: HashSet<HeaderName>,
    mirrors: Vec<Mirror>,
}

impl Found {
    fn annotation(&mut self, text: &[u8], schema: &Object, way: Way<'_>) -> Result<(), Invalid> {
        let path = way.properties().filter(|path| !path.is_empty()).ok_or(Invalid::Place)?;
        let name = once(schema, text, ANNOTATION).and_then(|span| string(text, span)).ok_or(Invalid::Name)?;
        let header = (!name.is_empty()).then(|| format!("{MCP_PARAM_PREFIX}{name}"));
        let header = header.and_then(|header| HeaderName::from_bytes(header.as_bytes()).ok());
        let header = header.ok_or(Invalid::Name)?;
        let kind = once(schema, text, "type").and_then(|span| string(text, span)).ok_or(Invalid::Type)?;
        if !matches!(&*kind, "integer" | "string" | "boolean") {
            return Err(Invalid::Type);
        }
        if !self.seen.insert(header.clone()) {
            return Err(Invalid::Twice);
        }
        if self.mirrors.len() == MOST {
            return Err(Invalid::TooMany);
        }
        self.mirrors.push(Mirror { header, path: path.into() });
        Ok(())
    }
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;
