//! What is found in a tool's schemas, in words for the operator.
//!
//! Owns the kinds with their labels (for metrics and `probe --json`), their weight, what is wrong and what to do. Does not own
//! what follows from them: that is the upstream's policy.

use std::fmt;

/// Something about one tool, or one form, that the operator should know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// The tool's name as far as it has one, cut short; a form's findings have the name of what asks.
    pub tool: Box<str>,
    /// Where, as a JSON pointer (RFC 6901) within the tool: `/inputSchema/properties/a/$ref`. Cut short if it is very long.
    pub at: Box<str>,
    pub kind: Kind,
    /// What stands there, as far as it says more than the kind does; short, on one line, nothing of a secret.
    pub detail: Box<str>,
}

/// What follows from a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// The operator should know; the tool is as good as any.
    Note,
    /// Mended where the list is written anew, so that clients can take the tool.
    Mended,
    /// A bad tool: `schema.policy` says what becomes of it.
    Bad,
}

impl Weight {
    /// For machines.
    pub fn label(self) -> &'static str {
        match self {
            Weight::Note => "note",
            Weight::Mended => "mended",
            Weight::Bad => "bad",
        }
    }
}

macro_rules! kinds {
    ($($kind:ident $label:literal $weight:ident $words:literal $todo:literal;)*) => {
        /// What is wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($kind,)* }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];
            /// The labels in the order of [`ALL`](Self::ALL).
            pub const LABELS: &'static [&'static str] = &[$($label,)*];

            /// For metrics and machines.
            pub fn label(self) -> &'static str {
                match self { $(Kind::$kind => $label,)* }
            }

            pub fn weight(self) -> Weight {
                match self { $(Kind::$kind => Weight::$weight,)* }
            }

            /// What is wrong, for people.
            pub fn words(self) -> &'static str {
                match self { $(Kind::$kind => $words,)* }
            }

            /// What its author, or the operator, can do about it.
            pub fn remedy(self) -> &'static str {
                match self { $(Kind::$kind => $todo,)* }
            }
        }
    };
}

kinds! {
    NoName "no_name" Bad "the tool is no object with a name" "give the tool a `name`, a string";
    NoInputSchema "no_input_schema" Bad "inputSchema is missing or no object" "give the tool an inputSchema; for no parameters {\"type\":\"object\"}";
    InputRoot "input_root" Bad "the root of inputSchema is not of the type \"object\"" "set \"type\":\"object\" at the root of inputSchema";
    OutputRoot "output_root" Bad "the root of outputSchema is not of the type \"object\", as the server's revision wants" "wrap the result in an object, or move the server to 2026-07-28";
    NotASchema "not_a_schema" Bad "outputSchema is neither an object nor true or false" "leave outputSchema out, or give it a schema";
    TypeAdded "type_added" Mended "inputSchema says nothing of its root; \"type\":\"object\" is added" "set \"type\":\"object\" at the root of inputSchema";
    NullOutput "null_output" Mended "outputSchema is null; it is taken out" "leave outputSchema out where there is none";
    DialectAdded "dialect_added" Mended "the schema is of an older dialect and does not say so; \"$schema\" is added" "set \"$schema\" at the root";
    UnknownDialect "unknown_dialect" Note "the dialect is not known; the schema is not checked against a meta-schema" "use one of 2020-12, 2019-09, draft-07, draft-06, draft-04 in \"$schema\"";
    MetaSchema "meta_schema" Bad "the schema is not valid in its dialect" "mend the schema, or declare its dialect in \"$schema\"";
    External "external_ref" Bad "a reference leads out of the schema, and nothing is fetched" "move the target into $defs, or supply the document in schema.documents";
    Dangling "dangling_ref" Bad "a reference leads nowhere" "mend the reference, or add its target";
    Loop "ref_loop" Bad "references lead round in a circle without taking anything of the value" "break the circle";
    Twice "duplicate_member" Bad "a member of the schema occurs twice, and readers differ in which they take" "leave one out";
    Depth "depth" Bad "nested deeper than schema.depth" "flatten the schema, or raise schema.depth";
    Subschemas "subschemas" Bad "more subschemas than schema.subschemas, or more of them applied to one value" "simplify the schema, or raise schema.subschemas";
    Bytes "bytes" Bad "larger than schema.bytes" "make the schema smaller, or raise schema.bytes";
    References "references" Bad "more references than schema.references" "simplify the schema, or raise schema.references";
    Time "time" Bad "judging it takes longer than schema.time" "simplify the schema, or raise schema.time";
    HeaderPlace "header_place" Bad "x-mcp-header stands where no chain of `properties` leads" "annotate a parameter that is reached by `properties` alone";
    HeaderName "header_name" Bad "the value of x-mcp-header is no header name" "use letters, digits and - . _ only";
    HeaderType "header_type" Bad "x-mcp-header on a parameter that is no integer, string or boolean" "annotate a parameter of a primitive type";
    HeaderTwice "header_twice" Bad "two parameters have the same x-mcp-header" "give each its own name; upper and lower case are the same";
    TooManyHeaders "too_many_headers" Bad "more than 128 parameters have an x-mcp-header" "annotate fewer parameters";
    TooManyTools "too_many_tools" Bad "more than 65536 entries in one list; the others are not looked at" "list tools in pages";
    NameTwice "name_twice" Note "another tool of the list has the same name" "give each tool its own name";
    NeedsTask "needs_task" Note "calls of it fail: it asks for tasks (execution.taskSupport), which are not bridged" "make tasks optional at the server";
    Unreadable "unreadable" Note "holds a text or a number that the validator cannot read; no value is checked against the schema" "leave out numbers beyond 64-bit floats and lone surrogates";
}

/// Characters of a peer's word in a finding.
const SHORT: usize = 128;

impl Finding {
    pub fn new(tool: &str, at: impl Into<Box<str>>, kind: Kind, detail: &str) -> Self {
        Self { tool: short(tool), at: at.into(), kind, detail: short(detail) }
    }
}

/// A peer's word: short and on one line.
pub fn short(word: &str) -> Box<str> {
    word.chars().take(SHORT).map(|char| if char.is_control() { ' ' } else { char }).collect()
}

/// Everything but the tool's name: where, what, and what stands there.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.at.is_empty() {
            write!(f, "{}: ", self.at)?;
        }
        f.write_str(self.kind.words())?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        Ok(())
    }
}
