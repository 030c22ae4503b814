//! The verdict on one tool.
//!
//! Owns what is asked of a tool as its server's revision has it: a name, an `inputSchema` whose root is an object, an
//! `outputSchema` that is a schema, both sound in their dialect and within bounds, annotations that headers can repeat. Does not
//! own the list (`list`), nor the verdict on a schema by itself (`judge`).
//! Rules: A5.3-A5.5, A5.10, B6.8; cases C62, C64, C65, C67.

use super::finding::short;
use super::judge::{Judgement, is_bound, judge as judge_schema};
use super::pointer::within;
use super::{Dialect, Finding, Kind, Rules, Speaker, Weight, header};
use crate::wire::json::{self, Object, Span, UNBOUNDED, object};
use crate::wire::jsonrpc::string;

/// What an `inputSchema` is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Sound,
    /// Sound once `"type":"object"` is added at its root (A5.3).
    Untyped,
    /// Nothing that any revision takes for a tool: no name, no schema, or a root that is no object.
    Unfit,
}

/// One tool of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// `None`: it has none.
    pub name: Option<Box<str>>,
    pub shape: Shape,
    pub findings: Vec<Finding>,
    /// Of the schemas at `input` and `output`: the dialect that they are of and do not declare (A5.4).
    pub undeclared: [Option<Dialect>; 2],
    /// The dialects that they are read in; `None`: not known, or no schema.
    pub dialects: [Option<Dialect>; 2],
    /// Its annotations are such that no header may be built from them (A5.10).
    pub headers_invalid: bool,
    /// Spans in the text that was judged.
    pub span: Span,
    pub input: Option<Span>,
    pub output: Option<Span>,
}

impl Judged {
    /// Whether `schema.policy` is about it.
    pub fn is_bad(&self) -> bool {
        self.findings.iter().any(|finding| finding.kind.weight() == Weight::Bad)
    }

    /// The finding that a refusal names.
    pub fn worst(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.kind.weight() == Weight::Bad)
    }
}

/// Findings of one tool that are worth telling.
const MOST_FINDINGS: usize = 32;

const INPUT: &str = "/inputSchema";
const OUTPUT: &str = "/outputSchema";

/// Judges the tool at `span` of `text`; `tool` is `None` if it is no object.
pub(super) fn judge(text: &[u8], span: Span, tool: Option<&Object>, rules: &Rules<'_>) -> Judged {
    let mut judged = Judged::new(span);
    let Some(tool) = tool else {
        judged.unfit("", Kind::NoName, span.of(text));
        return judged;
    };
    match tool.get(text, "name") {
        Ok(Some(name)) => match string(text, name) {
            Some(name) => judged.name = Some((*name).into()),
            None => judged.unfit("/name", Kind::NoName, name.of(text)),
        },
        Ok(None) => judged.unfit("", Kind::NoName, b""),
        Err(_) => judged.unfit("/name", Kind::NoName, TWICE),
    }
    judged.input(text, tool, rules);
    judged.output(text, tool, rules);
    judged.finish();
    judged
}

/// What stands in a list behind more entries than are looked at.
pub(super) fn beyond(span: Span) -> Judged {
    let mut judged = Judged::new(span);
    judged.unfit("", Kind::TooManyTools, b"");
    judged
}

const TWICE: &[u8] = b"it occurs twice";

impl Judged {
    fn new(span: Span) -> Self {
        Self {
            name: None,
            shape: Shape::Sound,
            findings: Vec::new(),
            undeclared: [None; 2],
            dialects: [None; 2],
            headers_invalid: false,
            span,
            input: None,
            output: None,
        }
    }

    fn input(&mut self, text: &[u8], tool: &Object, rules: &Rules<'_>) {
        let span = match tool.get(text, "inputSchema") {
            Ok(Some(span)) => span,
            Ok(None) => return self.unfit("", Kind::NoInputSchema, b""),
            Err(_) => return self.unfit(INPUT, Kind::NoInputSchema, TWICE),
        };
        let Some(schema) = object(text, span, UNBOUNDED) else {
            return self.unfit(INPUT, Kind::NoInputSchema, span.of(text));
        };
        self.input = Some(span);
        match root(text, &schema) {
            Root::Object => {}
            Root::Unsaid => {
                // What is unfit already stays so.
                if self.shape == Shape::Sound {
                    self.shape = Shape::Untyped;
                }
                self.find(INPUT, Kind::TypeAdded, b"");
            }
            Root::Other => self.root(text, &schema, INPUT, Kind::InputRoot),
        }
        self.schema(INPUT, judge_schema(text, span, rules));
        if rules.speaker != Speaker::Modern {
            return;
        }
        // What is too large to be judged is not read for this either.
        let unread = self.findings.iter().any(|finding| is_bound(finding.kind));
        if unread {
            self.headers_invalid = header::may_be_annotated(span.of(text));
        } else if let Err(findings) = header::read(text, &schema) {
            self.headers_invalid = true;
            self.take(INPUT, findings);
        }
    }

    fn output(&mut self, text: &[u8], tool: &Object, rules: &Rules<'_>) {
        let span = match tool.get(text, "outputSchema") {
            Ok(Some(span)) => span,
            Ok(None) => return,
            Err(_) => return self.find(OUTPUT, Kind::Twice, b""),
        };
        let schema = match json::Kind::of(span.of(text)) {
            Some(json::Kind::Object) => object(text, span, UNBOUNDED),
            Some(json::Kind::Bool) => None,
            Some(json::Kind::Null) => {
                self.output = Some(span);
                return self.find(OUTPUT, Kind::NullOutput, b"");
            }
            Some(json::Kind::Array | json::Kind::String | json::Kind::Number) | None => {
                return self.find(OUTPUT, Kind::NotASchema, span.of(text));
            }
        };
        self.output = Some(span);
        if rules.speaker.wants_object_output() {
            match &schema {
                None => self.find(OUTPUT, Kind::OutputRoot, span.of(text)),
                Some(schema) if root(text, schema) == Root::Object => {}
                Some(schema) => self.root(text, schema, OUTPUT, Kind::OutputRoot),
            }
        }
        self.schema(OUTPUT, judge_schema(text, span, rules));
    }

    /// A root that is none of an object.
    fn root(&mut self, text: &[u8], schema: &Object, at: &str, kind: Kind) {
        if kind == Kind::InputRoot {
            self.shape = Shape::Unfit;
        }
        match schema.get(text, "type") {
            Ok(Some(stated)) => self.find(&format!("{at}/type"), kind, stated.of(text)),
            Ok(None) => self.find(at, kind, b""),
            Err(_) => self.find(&format!("{at}/type"), kind, TWICE),
        }
    }

    fn schema(&mut self, at: &str, judgement: Judgement) {
        let index = usize::from(at == OUTPUT);
        self.dialects[index] = judgement.dialect;
        self.undeclared[index] = judgement.undeclared;
        self.take(at, judgement.findings);
    }

    /// Findings whose pointers count from what is at `at`.
    fn take(&mut self, at: &str, findings: Vec<Finding>) {
        self.findings
            .extend(findings.into_iter().map(|finding| Finding { at: within(at, &finding.at), ..finding }));
    }

    fn find(&mut self, at: &str, kind: Kind, detail: &[u8]) {
        self.findings.push(Finding::new("", at, kind, &String::from_utf8_lossy(detail)));
    }

    fn unfit(&mut self, at: &str, kind: Kind, detail: &[u8]) {
        self.shape = Shape::Unfit;
        self.find(at, kind, detail);
    }

    /// Puts the name into the findings, and leaves out what is too much of them; what makes the tool bad stays.
    fn finish(&mut self) {
        if self.findings.len() > MOST_FINDINGS {
            self.findings.sort_by_key(|finding| finding.kind.weight() != Weight::Bad);
            self.findings.truncate(MOST_FINDINGS);
        }
        if self.findings.is_empty() {
            return;
        }
        let name = short(self.name.as_deref().unwrap_or_default());
        self.findings.iter_mut().for_each(|finding| finding.tool.clone_from(&name));
    }
}

/// What a schema says of its instance at its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Object,
    /// Nothing at all.
    Unsaid,
    /// Something that no revision allows.
    Other,
}

fn root(text: &[u8], schema: &Object) -> Root {
    match schema.get(text, "type") {
        Ok(Some(kind)) if string(text, kind).is_some_and(|kind| kind == "object") => Root::Object,
        Ok(None) if schema.members.iter().all(|member| says_nothing(member.name(text).as_deref())) => {
            Root::Unsaid
        }
        Ok(_) | Err(_) => Root::Other,
    }
}

/// Keywords beside which a root without `type` still says nothing of its instance (A5.3).
fn says_nothing(name: Option<&str>) -> bool {
    matches!(
        name,
        Some(
            "$schema"
                | "$id"
                | "$comment"
                | "title"
                | "description"
                | "examples"
                | "default"
                | "deprecated"
                | header::ANNOTATION
        )
    )
}
