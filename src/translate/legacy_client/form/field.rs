//! One field of a form.
//!
//! Owns what kind of value a field takes, its choices, how each revision writes it, and whether a value fits it. A keyword that
//! says something no revision can read (`"title":null`) is left out, since it asks nothing of the user; everything else stays as
//! it was written. Rules: A8.4, A8.5, B10.1, B10.2, B10.4.

use super::super::super::form::reduced;
use super::super::super::question::{is, is_integer, items, present};
use super::super::ask::sampling::number;
use super::super::round::Wrong;
use super::format;
use crate::wire::json::object;
use crate::wire::json::{Kind, Limits, Object, Span, Splice};
use crate::wire::jsonrpc::string;
use crate::wire::version::LegacyRevision;
use bytes::{BufMut, Bytes, BytesMut};

pub(super) struct Field {
    /// The property; a choice between a type and `null` is the type.
    pub(super) text: Bytes,
    pub(super) object: Object,
    pub(super) takes: Takes,
    /// The text is not the server's own.
    reduced: bool,
}

/// What a field takes.
pub(super) enum Takes {
    Text,
    Number { integer: bool },
    Bool,
    One(Choices),
    Many(Choices),
}

pub(super) struct Choices {
    pub(super) all: Vec<Choice>,
    /// How the server writes them.
    keyword: &'static str,
}

pub(super) struct Choice {
    /// Raw JSON string.
    pub(super) value: Bytes,
    /// Raw JSON string.
    pub(super) title: Option<Bytes>,
}

const WHAT: &str =
    "its `type` must be string, number, integer, boolean, or array with strings to choose from as `items`";

impl Field {
    pub(super) fn read(text: &Bytes, span: Span, limits: Limits) -> Result<Self, Wrong> {
        let property = object(text, span, limits).ok_or("it must be an object")?;
        let instead = reduced(text, &property, limits);
        let reduced = instead.is_some();
        let text = instead.map_or_else(|| text.slice(span.range()), Bytes::from);
        let object = object(&text, Span::new(0, text.len()), limits).ok_or("it must be an object")?;
        let takes = takes(&text, &object, limits)?;
        Ok(Self { text, object, takes, reduced })
    }

    /// As a client of `revision` reads it; `None` if that is the server's own text.
    pub(super) fn written(&self, revision: LegacyRevision, limits: Limits) -> Option<Bytes> {
        let old = revision < LegacyRevision::V2025_11_25;
        let mut gone: Vec<&str> = self.misread();
        let mut add = Vec::new();
        let mut items = None;
        let untyped = self.object.first(&self.text, "type").is_none();
        match &self.takes {
            Takes::Text | Takes::Number { .. } | Takes::Bool => {}
            Takes::One(choices) => {
                if untyped {
                    add.push(Bytes::from_static(b"\"type\":\"string\""));
                }
                if old && choices.keyword != "enum" {
                    // A client of that revision would show a free text (B10.1).
                    gone.extend(["oneOf", "anyOf", "enum", "enumNames"]);
                    add.push(choices.listed());
                }
            }
            Takes::Many(choices) => {
                if untyped {
                    add.push(Bytes::from_static(b"\"type\":\"array\""));
                }
                items = self.object.first(&self.text, "items").zip(choices.items(
                    &self.text,
                    &self.object,
                    limits,
                ));
            }
        }
        if old && !matches!(self.takes, Takes::Bool) {
            gone.push("default");
        }
        gone.retain(|name| self.object.first(&self.text, name).is_some());
        if gone.is_empty() && add.is_empty() && items.is_none() {
            return self.reduced.then(|| self.text.clone());
        }
        let mut splice = Splice::new(&self.text);
        if let Some((span, with)) = items {
            splice.replace(span, with);
        }
        let keep = |member: &crate::wire::json::Member| !gone.iter().any(|name| member.is(&self.text, name));
        splice.rewrite(&self.object, keep, add.join(&b','));
        Some(splice.finish().to_bytes())
    }

    /// Keywords that no client could read as what they are.
    fn misread(&self) -> Vec<&'static str> {
        let (text, object) = (&self.text, &self.object);
        let integer = |span: Span| is_integer(span.of(text));
        let of = |kind| move |span: Span| is(text, Some(span), kind);
        let strings = |span: Span| {
            items(text, span, usize::MAX)
                .is_some_and(|all| all.iter().all(|item| is(text, Some(*item), Kind::String)))
        };
        let mut gone = Vec::new();
        let mut check = |name: &'static str, fits: &dyn Fn(Span) -> bool| {
            if object.first(text, name).is_some_and(|span| !fits(span)) {
                gone.push(name);
            }
        };
        check("title", &of(Kind::String));
        check("description", &of(Kind::String));
        match &self.takes {
            Takes::Text | Takes::One(_) => {
                check("format", &|span| string(text, span).is_some_and(|name| format::is_known(&name)));
                check("minLength", &integer);
                check("maxLength", &integer);
                check("enumNames", &strings);
                check("default", &of(Kind::String));
            }
            Takes::Number { .. } => {
                check("minimum", &of(Kind::Number));
                check("maximum", &of(Kind::Number));
                check("default", &of(Kind::Number));
            }
            Takes::Bool => check("default", &of(Kind::Bool)),
            Takes::Many(_) => {
                check("minItems", &integer);
                check("maxItems", &integer);
                check("default", &strings);
            }
        }
        gone
    }

    /// The number at `name`, if there is one.
    pub(super) fn bound(&self, name: &str) -> Option<f64> {
        number(self.object.first(&self.text, name)?.of(&self.text))
    }

    /// What is wrong with `value` as an answer.
    pub(super) fn refuses(&self, value: &[u8]) -> Option<String> {
        let kind = Kind::of(value)?;
        match &self.takes {
            Takes::Text if kind == Kind::String => self.refuses_text(value),
            Takes::Text => Some("must be a string".into()),
            Takes::Bool if kind == Kind::Bool => None,
            Takes::Bool => Some("must be true or false".into()),
            Takes::Number { integer } => self.refuses_number(value, kind, *integer),
            Takes::One(choices) if choices.have(value) => None,
            Takes::One(_) => Some("must be one of the choices".into()),
            Takes::Many(choices) => self.refuses_list(value, choices),
        }
    }

    fn refuses_text(&self, value: &[u8]) -> Option<String> {
        let whole = Span::new(0, value.len());
        // Half a surrogate pair has no length that two readers agree on.
        let text = string(value, whole)?;
        let length = text.chars().count() as f64;
        let constant = self.object.first(&self.text, "const").map(|span| span.of(&self.text));
        if constant.is_some_and(|constant| !same(constant, value)) {
            return Some("must be what the form says".into());
        }
        match (self.bound("minLength"), self.bound("maxLength")) {
            (Some(least), _) if length < least => Some(format!("must have at least {least} characters")),
            (_, Some(most)) if length > most => Some(format!("must have at most {most} characters")),
            _ => {
                let name =
                    self.object.first(&self.text, "format").and_then(|span| string(&self.text, span))?;
                (!format::fits(&name, &text)).then(|| format!("must be of the format {name}"))
            }
        }
    }

    fn refuses_number(&self, value: &[u8], kind: Kind, integer: bool) -> Option<String> {
        if kind != Kind::Number {
            return Some("must be a number".into());
        }
        if integer && !is_integer(value) {
            return Some("must be an integer".into());
        }
        let value = number(value)?;
        let listed =
            self.object.first(&self.text, "enum").and_then(|span| items(&self.text, span, usize::MAX));
        if listed.is_some_and(|all| !all.iter().any(|item| number(item.of(&self.text)) == Some(value))) {
            return Some("must be one of the choices".into());
        }
        match (self.bound("minimum"), self.bound("maximum")) {
            (Some(least), _) if value < least => Some(format!("must be at least {least}")),
            (_, Some(most)) if value > most => Some(format!("must be at most {most}")),
            _ => None,
        }
    }

    fn refuses_list(&self, value: &[u8], choices: &Choices) -> Option<String> {
        let Some(chosen) = items(value, Span::new(0, value.len()), usize::MAX) else {
            return Some("must be a list".into());
        };
        if !chosen.iter().all(|item| choices.have(item.of(value))) {
            return Some("must hold nothing but the choices".into());
        }
        let count = chosen.len() as f64;
        match (self.bound("minItems"), self.bound("maxItems")) {
            (Some(least), _) if count < least => Some(format!("must have at least {least} of the choices")),
            (_, Some(most)) if count > most => Some(format!("must have at most {most} of the choices")),
            _ => None,
        }
    }
}

impl Choices {
    fn have(&self, value: &[u8]) -> bool {
        self.all.iter().any(|choice| same(&choice.value, value))
    }

    /// `"enum":[..],"enumNames":[..]`: what 2025-06-18 has for choices with titles.
    fn listed(&self) -> Bytes {
        let mut out = BytesMut::new();
        let mut list = |name: &[u8], each: &dyn Fn(&Choice) -> Bytes| {
            out.put_slice(name);
            for (at, choice) in self.all.iter().enumerate() {
                if at > 0 {
                    out.put_u8(b',');
                }
                out.put_slice(&each(choice));
            }
            out.put_u8(b']');
        };
        list(b"\"enum\":[", &|choice| choice.value.clone());
        list(b",\"enumNames\":[", &|choice| choice.title.clone().unwrap_or_else(|| choice.value.clone()));
        out.freeze()
    }

    /// `items` as the schema of 2025-11-25 has them, if the server writes them otherwise.
    fn items(&self, text: &Bytes, field: &Object, limits: Limits) -> Option<Bytes> {
        let items = object(text, field.first(text, "items")?, limits)?;
        let kind = items.first(text, "type").and_then(|span| string(text, span));
        let titled = self.all.iter().all(|choice| choice.title.is_some());
        match self.keyword {
            "enum" if kind.as_deref() == Some("string") => None,
            "anyOf" if titled => None,
            "enum" => {
                let all: Vec<&[u8]> = self.all.iter().map(|choice| &*choice.value).collect();
                let head = b"{\"type\":\"string\",\"enum\":[".as_slice();
                Some([head, &all.join(&b','), b"]}"].concat().into())
            }
            _ => {
                let each = |choice: &Choice| {
                    let title = choice.title.as_ref().unwrap_or(&choice.value);
                    [b"{\"const\":".as_slice(), &choice.value, b",\"title\":", title, b"}"].concat()
                };
                let all: Vec<Vec<u8>> = self.all.iter().map(each).collect();
                Some([b"{\"anyOf\":[".as_slice(), &all.join(&b','), b"]}"].concat().into())
            }
        }
    }
}

/// Two JSON strings with the same text.
fn same(one: &[u8], other: &[u8]) -> bool {
    let text = |raw: &'_ [u8]| string(raw, Span::new(0, raw.len())).map(|text| text.into_owned());
    one == other || text(one).is_some_and(|one| text(other).is_some_and(|other| one == other))
}

fn takes(text: &Bytes, object: &Object, limits: Limits) -> Result<Takes, Wrong> {
    let kind = present(text, object.get(text, "type")?).map(|span| string(text, span));
    match kind.as_ref().map(|kind| kind.as_deref()) {
        Some(Some("string")) => Ok(choices(text, object, limits)?.map_or(Takes::Text, Takes::One)),
        None if object.first(text, "items").is_none() => {
            Ok(Takes::One(choices(text, object, limits)?.ok_or(WHAT)?))
        }
        Some(Some("number")) => Ok(Takes::Number { integer: false }),
        Some(Some("integer")) => Ok(Takes::Number { integer: true }),
        Some(Some("boolean")) => Ok(Takes::Bool),
        Some(Some("array")) | None => {
            let inner =
                object.get(text, "items")?.and_then(|span| self::object(text, span, limits)).ok_or(WHAT)?;
            Ok(Takes::Many(choices(text, &inner, limits)?.ok_or(WHAT)?))
        }
        Some(_) => Err(WHAT.into()),
    }
}

/// The strings to choose from, if `object` names any.
fn choices(text: &Bytes, object: &Object, limits: Limits) -> Result<Option<Choices>, Wrong> {
    for keyword in ["enum", "oneOf", "anyOf"] {
        let Some(span) = present(text, object.get(text, keyword)?) else { continue };
        let Some(list) = items(text, span, usize::MAX) else { continue };
        let all: Option<Vec<Choice>> = if keyword == "enum" {
            let names = object.first(text, "enumNames").and_then(|span| items(text, span, usize::MAX));
            let names = names.unwrap_or_default();
            let each = |(at, value): (usize, &Span)| {
                let title = names.get(at).filter(|span| is(text, Some(**span), Kind::String));
                is(text, Some(*value), Kind::String).then(|| Choice {
                    value: text.slice(value.range()),
                    title: title.map(|span| text.slice(span.range())),
                })
            };
            list.iter().enumerate().map(each).collect()
        } else {
            list.iter().map(|span| constant(text, *span, limits)).collect()
        };
        if let Some(all) = all.filter(|all| !all.is_empty()) {
            return Ok(Some(Choices { all, keyword }));
        }
    }
    Ok(None)
}

/// `{"const":..,"title":..}`.
fn constant(text: &Bytes, span: Span, limits: Limits) -> Option<Choice> {
    let object = object(text, span, limits)?;
    let part = |name: &str| {
        let span = object.get(text, name).ok()??;
        is(text, Some(span), Kind::String).then(|| text.slice(span.range()))
    };
    Some(Choice { value: part("const")?, title: part("title") })
}
