//! Forms for 2025-06-18, and answers to them as the server wants them.
//!
//! Owns a form as a whole: whether it can be read, its fields as the client's revision has them, fields to choose several of as
//! one field for each choice, and the way back. A single field stands in `field`. Clients of 2025-11-25 get the server's own form,
//! and the server judges what they fill in; what comes back for a form that was changed is held against the server's own
//! schema before it goes up. Rules: A8.3-A8.5, B10; vector D91.

use super::super::question::{is, items, present};
use super::round::{Wrong, plain, quoted};
use crate::wire::json::{Kind, Limits, Member, Object, Span, Splice, object};
use crate::wire::jsonrpc::string;
use crate::wire::version::LegacyRevision;
use bytes::{BufMut, Bytes, BytesMut};
use field::{Choices, Field, Takes};
use std::collections::HashSet;

mod field;
mod format;

/// More choices than these are no form that anybody wants to fill in (B10.3).
const CHOICES: usize = 10;

/// What a changed form was.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    /// The server's own schema.
    schema: Bytes,
    splits: Vec<Split>,
}

/// A field to choose several of, which the client has as one field for each choice.
#[derive(Debug, Clone)]
struct Split {
    /// Raw JSON string.
    key: Bytes,
    name: String,
    /// The client's names, and the value that each stands for as a raw JSON string.
    parts: Vec<(String, Bytes)>,
    required: bool,
    /// At least one of them must be chosen if the field is filled in at all.
    least: bool,
}

/// Whether there is a form at all that can be read.
pub(super) fn read(text: &Bytes, params: &Object, limits: Limits) -> Result<(), Wrong> {
    ask(&mut Splice::new(text), text, params, LegacyRevision::LATEST, limits).map(drop)
}

/// Puts what a client of `revision` reads otherwise into `splice`. Answers to what comes back need no way back if it is `None`.
pub(super) fn ask(
    splice: &mut Splice<'_>,
    text: &Bytes,
    params: &Object,
    revision: LegacyRevision,
    limits: Limits,
) -> Result<Option<Fields>, Wrong> {
    let form = Form::read(text, params, limits)?;
    let old = match revision {
        LegacyRevision::V2024_11_05 | LegacyRevision::V2025_03_26 => return Err("it has no forms".into()),
        LegacyRevision::V2025_06_18 => true,
        LegacyRevision::V2025_11_25 => false,
    };
    let mut taken: HashSet<String> = form.names.iter().cloned().collect();
    let mut splits = Vec::new();
    for (member, name) in form.properties.members.iter().zip(&form.names) {
        let wrong = |Wrong(what): Wrong| Wrong::from(format!("of its field {:?}, {what}", plain(name)));
        let field = Field::read(text, member.value, limits).map_err(wrong)?;
        match &field.takes {
            Takes::Many(choices) if old => {
                let key = Span { start: member.key.start - 1, end: member.key.end + 1 };
                let (with, parts) = split(&field, choices, name, &mut taken).map_err(wrong)?;
                splice.replace(Span { start: key.start, end: member.value.end }, with);
                splits.push(Split {
                    key: Bytes::copy_from_slice(key.of(text)),
                    name: name.clone(),
                    parts,
                    required: form.required.iter().any(|required| required == name),
                    least: field.bound("minItems").is_some_and(|least| least > 0.0),
                });
            }
            Takes::Many(_) | Takes::Text | Takes::Number { .. } | Takes::Bool | Takes::One(_) => {
                if let Some(with) = field.written(revision, limits) {
                    splice.replace(member.value, with);
                }
            }
        }
    }
    form.edit(splice, text, old, &splits);
    let schema = Bytes::copy_from_slice(form.schema.span.of(text));
    Ok(old.then_some(Fields { schema, splits }))
}

/// `requestedSchema`, taken apart.
struct Form {
    schema: Object,
    properties: Object,
    /// Of the properties.
    names: Vec<String>,
    required_span: Option<Span>,
    required: Vec<String>,
}

impl Form {
    fn read(text: &[u8], params: &Object, limits: Limits) -> Result<Self, Wrong> {
        const FORM: &str = "`requestedSchema` must be an object schema with `properties`";
        let schema = params.get(text, "requestedSchema")?.and_then(|span| object(text, span, limits));
        let schema = schema.ok_or(FORM)?;
        let kind = schema.get(text, "type")?.and_then(|span| string(text, span));
        let properties = schema.get(text, "properties")?.and_then(|span| object(text, span, limits));
        let (Some("object"), Some(properties)) = (kind.as_deref(), properties) else {
            return Err(FORM.into());
        };
        let mut names: Vec<String> = Vec::with_capacity(properties.members.len());
        let mut seen = HashSet::new();
        for member in &properties.members {
            let name = member.name(text).ok_or("a field's name cannot be read")?.into_owned();
            if !seen.insert(name.clone()) {
                return Err(format!("it has two fields {:?}", plain(&name)).into());
            }
            names.push(name);
        }
        let required_span = present(text, schema.get(text, "required")?);
        let required = required_span.map(|span| {
            let all = items(text, span, limits.members)?;
            all.iter().map(|item| Some(string(text, *item)?.into_owned())).collect::<Option<Vec<_>>>()
        });
        let required = match required {
            None => Vec::new(),
            Some(required) => required.ok_or("`required` must be a list of names")?,
        };
        Ok(Self { schema, properties, names, required_span, required })
    }

    /// What changes beside the fields themselves.
    fn edit(&self, splice: &mut Splice<'_>, text: &[u8], old: bool, splits: &[Split]) {
        let no_schema =
            self.schema.first(text, "$schema").is_some_and(|span| !is(text, Some(span), Kind::String));
        let gone = |member: &Member| {
            let schema = (old || no_schema) && member.is(text, "$schema");
            schema || member.is(text, "required") && self.required_span.is_none()
        };
        splice.rewrite(&self.schema, |member| !gone(member), "");
        if let Some(span) = self.required_span.filter(|_| !splits.is_empty()) {
            let all = items(text, span, usize::MAX).unwrap_or_default();
            let is_split = |name: &String| splits.iter().any(|split| split.name == *name);
            splice.retain(&all, |at| !self.required.get(at).is_some_and(is_split));
        }
    }
}

/// One field for each choice, and what each stands for.
fn split(
    field: &Field,
    choices: &Choices,
    name: &str,
    taken: &mut HashSet<String>,
) -> Result<(Bytes, Vec<(String, Bytes)>), Wrong> {
    if choices.all.len() > CHOICES {
        let count = choices.all.len();
        return Err(format!(
            "several of {count} choices can be chosen, and it has fields for {CHOICES} at most"
        )
        .into());
    }
    let word = |of: &str| {
        let span = field.object.first(&field.text, of)?;
        Some(string(&field.text, span)?.into_owned())
    };
    let title = word("title").unwrap_or_else(|| name.to_owned());
    let description = [word("description"), bounds(field)];
    let description: Vec<String> = description.into_iter().flatten().collect();
    let preset =
        field.object.first(&field.text, "default").and_then(|span| items(&field.text, span, usize::MAX));
    let preset: Vec<&[u8]> = preset.iter().flatten().map(|span| span.of(&field.text)).collect();
    let mut out = BytesMut::new();
    let mut parts = Vec::with_capacity(choices.all.len());
    for choice in &choices.all {
        let text = |raw: &Bytes| string(raw, Span::new(0, raw.len())).map(|text| text.into_owned());
        let value = text(&choice.value).ok_or("a choice cannot be read")?;
        let part = format!("{name}.{value}");
        if !taken.insert(part.clone()) {
            return Err(
                format!("a field {:?} for one of its choices would be there twice", plain(&part)).into()
            );
        }
        let label = choice.title.as_ref().and_then(text).unwrap_or(value);
        if !parts.is_empty() {
            out.put_u8(b',');
        }
        out.put_slice(&quoted(&part));
        out.put_slice(b":{\"type\":\"boolean\",\"title\":");
        out.put_slice(&quoted(&format!("{title}: {label}")));
        if !description.is_empty() {
            out.put_slice(b",\"description\":");
            out.put_slice(&quoted(&description.join(" ")));
        }
        // Of the defaults, those of such fields are the only ones that the revision has (B10.2).
        if preset.contains(&&*choice.value) {
            out.put_slice(b",\"default\":true");
        }
        out.put_u8(b'}');
        parts.push((part, choice.value.clone()));
    }
    Ok((out.freeze(), parts))
}

/// How many can be chosen, for the user.
fn bounds(field: &Field) -> Option<String> {
    Some(match (field.bound("minItems").filter(|least| *least > 0.0), field.bound("maxItems")) {
        (Some(least), Some(most)) => format!("(choose at least {least} and at most {most})"),
        (Some(least), None) => format!("(choose at least {least})"),
        (None, Some(most)) => format!("(choose at most {most})"),
        (None, None) => return None,
    })
}

impl Fields {
    /// What was filled in, as the server's own form has it.
    pub(super) fn answer(&self, content: &Bytes, limits: Limits) -> Result<Bytes, Wrong> {
        let object = |text: &Bytes| object(text, Span::new(0, text.len()), limits);
        let filled = object(content).ok_or("`content` cannot be read")?;
        let mut out: Vec<Bytes> = Vec::new();
        for member in &filled.members {
            let is_part = |split: &Split| split.parts.iter().any(|(name, _)| member.is(content, name));
            if !self.splits.iter().any(is_part) {
                out.push(content.slice(member.key.start as usize - 1..member.value.end as usize));
            }
        }
        for split in &self.splits {
            if let Some(chosen) = split.chosen(content, &filled)? {
                out.push([&*split.key, b":[", &chosen.join(&b','), b"]"].concat().into());
            }
        }
        let content: Bytes = [b"{".as_slice(), &out.join(&b','), b"}"].concat().into();
        let filled = object(&content).ok_or("`content` has too many fields")?;
        self.check(&content, &filled, limits)?;
        Ok(content)
    }

    fn check(&self, content: &Bytes, filled: &Object, limits: Limits) -> Result<(), Wrong> {
        let schema = object(&self.schema, Span::new(0, self.schema.len()), limits);
        let schema = schema.ok_or("the form cannot be read")?;
        let properties = schema.first(&self.schema, "properties");
        let properties = properties.and_then(|span| object(&self.schema, span, limits));
        let properties = properties.ok_or("the form cannot be read")?;
        let closed = schema.first(&self.schema, "additionalProperties");
        if closed.is_some_and(|span| span.of(&self.schema) == b"false") {
            let known = |name: &str| properties.first(&self.schema, name).is_some();
            let strange = |member: &&Member| !member.name(content).is_some_and(|name| known(&name));
            if let Some(member) = filled.members.iter().find(strange) {
                let name = member.name(content).unwrap_or_default();
                return Err(format!("the form has no field {:?}", plain(&name)).into());
            }
        }
        for member in &properties.members {
            let Some(name) = member.name(&self.schema) else { continue };
            let Some(value) = filled.get(content, &name)? else { continue };
            let field = Field::read(&self.schema, member.value, limits)?;
            if let Some(what) = field.refuses(value.of(content)) {
                return Err(format!("field {:?} {what}", plain(&name)).into());
            }
        }
        let required = schema.first(&self.schema, "required");
        for item in required.and_then(|span| items(&self.schema, span, usize::MAX)).unwrap_or_default() {
            let Some(name) = string(&self.schema, item) else { continue };
            if filled.first(content, &name).is_none() {
                return Err(format!("field {:?} must be filled in", plain(&name)).into());
            }
        }
        Ok(())
    }
}

impl Split {
    /// What was chosen; `None` if the field was not filled in.
    fn chosen(&self, content: &Bytes, filled: &Object) -> Result<Option<Vec<Bytes>>, Wrong> {
        let mut chosen = Vec::new();
        let mut seen = self.required;
        for (name, value) in &self.parts {
            match filled.get(content, name)?.map(|span| span.of(content)) {
                None => {}
                Some(b"true") => chosen.push(value.clone()),
                Some(b"false") => seen |= !self.least,
                Some(_) => return Err(format!("field {:?} must be true or false", plain(name)).into()),
            }
        }
        Ok((seen || !chosen.is_empty()).then_some(chosen))
    }
}

#[cfg(test)]
mod tests;
