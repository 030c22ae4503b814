//! Output schemas whose root is no object, which legacy clients cannot take.
//!
//! Owns what a schema says of its root, the object that is put around one that is none, and the references inside that then
//! lead elsewhere. Does not own the values (`result`). Rule: B6; vectors D57-D59.

use crate::schema::walk::{Place, walk};
use crate::wire::json::{Kind, Member, Object, Span, Splice, UNBOUNDED, object, once, quote};
use crate::wire::jsonrpc::string;
use bytes::Bytes;
use memchr::memmem;

/// What a tool's `outputSchema` says of its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// There is none, or the tool is not known.
    #[default]
    Unstated,
    /// Its root has the type `object` and no other.
    Object,
    /// Anything else: the client is shown an object that has the value under `result`.
    Wrapped,
}

/// A schema's place in the object that is put around it.
const MOVED: &str = "/properties/result";

/// What the schema at `span` says; `None` if it is no schema at all.
pub(super) fn of(text: &[u8], span: Span) -> Option<Output> {
    match Kind::of(span.of(text))? {
        Kind::Null => Some(Output::Unstated),
        Kind::Bool => Some(Output::Wrapped),
        Kind::Object => {
            let root = object(text, span, UNBOUNDED)?;
            let kind = once(&root, text, "type").and_then(|span| string(text, span));
            Some(if kind.is_some_and(|kind| kind == "object") { Output::Object } else { Output::Wrapped })
        }
        Kind::Array | Kind::String | Kind::Number => None,
    }
}

/// Puts the object around the schema at `span`.
pub(super) fn wrap(splice: &mut Splice<'_>, text: &Bytes, span: Span) {
    let (before, after) = ("\"type\":\"object\",\"properties\":{\"result\":", "},\"required\":[\"result\"]}");
    let Some(root) = object(text, span, UNBOUNDED) else {
        // `true` and `false`, for which legacy revisions want an object.
        let same = of_boolean(span.of(text)).unwrap_or("{}");
        return splice.replace(span, format!("{{{before}{same}{after}"));
    };
    // The dialect is one of the whole document.
    let dialect = once(&root, text, "$schema").filter(|span| Kind::of(span.of(text)) == Some(Kind::String));
    let dialect = dialect.map(|span| String::from_utf8_lossy(span.of(text)).into_owned());
    let hoisted = dialect.as_ref().map_or(String::new(), |dialect| format!("\"$schema\":{dialect},"));
    let at = |at: u32| Span { start: at, end: at };
    splice.replace(at(span.start), format!("{{{hoisted}{before}"));
    splice.replace(at(span.end), after);
    splice.rewrite(&root, |member| dialect.is_none() || !member.is(text, "$schema"), "");
    references(splice, text, &root, dialect.as_deref().unwrap_or_default());
}

/// The object that means the same as a schema that is `true` or `false`.
pub(super) fn of_boolean(schema: &[u8]) -> Option<&'static str> {
    match schema {
        b"true" => Some("{}"),
        b"false" => Some("{\"not\":{}}"),
        _ => None,
    }
}

/// Lets references to places of this document follow the schema to its new place. What stands below an `$id` of its own is
/// told from there, and data is no reference.
fn references(splice: &mut Splice<'_>, text: &Bytes, root: &Object, dialect: &str) {
    let raw = root.span.of(text);
    // A quick look, since most schemas have none.
    let any = [b"Ref\"".as_slice(), b"$ref", b"\\u"].iter().any(|mark| memmem::find(raw, mark).is_some());
    if !any {
        return;
    }
    let base = if dialect.contains("draft-04") { "id" } else { "$id" };
    let recursive = dialect.contains("2019-09")
        && once(root, text, "$recursiveAnchor").is_none_or(|span| span.of(text) != b"true");
    // What is found within a schema comes before the schema itself, so what it takes back stands last.
    let mut found: Vec<(Span, Bytes)> = Vec::new();
    walk(text, root.span, deeper, |here, _| {
        if here.first(text, base).is_some_and(|id| is_base(text, id)) {
            while found.last().is_some_and(|(span, _)| span.start >= here.span.start) {
                found.pop();
            }
            return;
        }
        for member in &here.members {
            match member.name(text).as_deref() {
                Some("$ref" | "$dynamicRef") => found.extend(reference(text, member.value)),
                // Beside a `$ref` it would be a second one; that pair is left as it is.
                Some("$recursiveRef") if recursive && here.first(text, "$ref").is_none() => {
                    found.extend(recursive_reference(text, member).into_iter().flatten());
                }
                Some(_) | None => {}
            }
        }
    });
    found.into_iter().for_each(|(span, with)| splice.replace(span, with));
}

/// Where references may stand below a keyword. Also below one that no revision defines: a reference may lead there.
fn deeper(name: &str, value: Kind) -> Option<Place> {
    if matches!(name, "const" | "enum" | "default" | "examples") {
        return None;
    }
    Place::of(name, value).or(match value {
        Kind::Object => Some(Place::Schema),
        Kind::Array => Some(Place::Array),
        Kind::String | Kind::Number | Kind::Bool | Kind::Null => None,
    })
}

/// A fragment alone names a place and is no new base.
fn is_base(text: &[u8], id: Span) -> bool {
    !string(text, id).is_some_and(|id| id.starts_with('#'))
}

fn reference(text: &[u8], value: Span) -> Option<(Span, Bytes)> {
    let target = string(text, value).filter(|target| target == "#" || target.starts_with("#/"))?;
    if value.of(text).starts_with(b"\"#") {
        let at = value.start + 2;
        return Some((Span { start: at, end: at }, Bytes::from_static(MOVED.as_bytes())));
    }
    // The `#` itself is an escape.
    Some((value, Bytes::from(quote(&format!("#{MOVED}{}", &target[1..])))))
}

/// Without a `$recursiveAnchor` at the root it is a plain reference to the root (2019-09), which the root's new place is not.
fn recursive_reference(text: &[u8], member: &Member) -> Option<[(Span, Bytes); 2]> {
    string(text, member.value).filter(|target| target == "#")?;
    Some([(member.key, Bytes::from_static(b"$ref")), (member.value, Bytes::from(format!("\"#{MOVED}\"")))])
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
