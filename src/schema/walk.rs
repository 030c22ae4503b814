//! Where schemas stand in a schema.
//!
//! Owns the table of keywords that hold schemas, and the walk over all schemas of one, which can tell a keyword from a
//! property of the same name and a schema from data. It goes over the text once, without recursion, however deep that is.
//! What a walk does with a schema is its own business. Rules: A5.3, A5.10, B6.1; cases C62, C67; vector D68.

use crate::wire::json::{Kind, Mark, Member, Object, ScanFault, Scanner, Span};
use smallvec::SmallVec;

/// What stands at a place of a schema that holds further schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Schema,
    /// An object whose values are schemas, under names that mean nothing.
    Map,
    Array,
}

impl Place {
    /// What the value of a keyword is; `None` where no revision of the language puts a schema.
    pub(crate) fn of(keyword: &str, value: Kind) -> Option<Self> {
        Some(match keyword {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies" => Place::Map,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Place::Array,
            "items" if value == Kind::Array => Place::Array,
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => Place::Schema,
            _ => return None,
        })
    }
}

/// Hands every schema at and below `root` to `visit`, the inner ones before the outer ones, with the way to it. `root` is a
/// span of a text that was scanned before; `place` says what the value of a keyword holds.
pub(crate) fn walk(
    text: &[u8],
    root: Span,
    place: impl Fn(&str, Kind) -> Option<Place>,
    mut visit: impl FnMut(&Object, Way<'_>),
) {
    let mut scanner = Scanner::new(usize::MAX, usize::MAX);
    let mut open: Vec<Level> = Vec::new();
    let read = scanner.feed(root.of(text), &mut |at, depth, mark| {
        let at = root.start + at as u32;
        if mark == Mark::Open {
            if let Some(here) = below(open.last(), depth) {
                open.push(Level::new(depth, here, at - 1));
            }
            return Ok::<_, ScanFault>(());
        }
        // What is deeper than the last schema is data.
        let Some(level) = open.last_mut().filter(|level| level.depth == depth) else { return Ok(()) };
        match mark {
            Mark::Open => {}
            Mark::KeyStart => level.member.key.start = at,
            Mark::KeyEnd => level.name(text, at - 1),
            Mark::Value => level.value(text, at, &place),
            Mark::ValueEnd => level.member_end(at),
            Mark::Close => {
                if let Some(level) = open.pop().filter(|level| level.place == Place::Schema) {
                    let span = Span { start: level.start, end: at };
                    visit(&Object { span, members: level.members }, Way { text, open: &open });
                }
            }
        }
        Ok(())
    });
    debug_assert!(read.is_ok(), "the text was scanned before");
}

/// What the object is that begins at `depth`; `None` if it is data.
fn below(outer: Option<&Level>, depth: usize) -> Option<Place> {
    let Some(outer) = outer else { return (depth == 1).then_some(Place::Schema) };
    // Arrays are levels of their own.
    match (outer.holds?, depth - outer.depth) {
        (Place::Array, 2..) => Some(Place::Schema),
        (place @ (Place::Schema | Place::Map), 1) => Some(place),
        (Place::Array | Place::Schema | Place::Map, _) => None,
    }
}

/// Properties in a way that is worth knowing.
const LONGEST: usize = 256;

/// The objects that are open around a schema.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    text: &'a [u8],
    open: &'a [Level],
}

impl Way<'_> {
    /// The names of the properties that lead to the schema, if nothing but `properties` does, and no more than anyone nests
    /// arguments; none at the root.
    pub(crate) fn properties(&self) -> Option<Vec<Box<str>>> {
        if self.open.len() > 2 * LONGEST {
            return None;
        }
        let mut names = Vec::new();
        for level in self.open {
            match level.place {
                Place::Schema if level.member.is(self.text, "properties") => {}
                Place::Map => names.push(level.member.name(self.text)?.into()),
                Place::Schema | Place::Array => return None,
            }
        }
        Some(names)
    }
}

/// An object that holds schemas, as far as it has passed.
struct Level {
    depth: usize,
    place: Place,
    start: u32,
    members: SmallVec<[Member; 8]>,
    /// The member that passes now, and what its value is.
    member: Member,
    holds: Option<Place>,
}

impl Level {
    fn new(depth: usize, place: Place, start: u32) -> Self {
        let member = Member { key: Span::default(), escaped: false, value: Span::default() };
        Self { depth, place, start, members: SmallVec::new(), member, holds: None }
    }

    fn name(&mut self, text: &[u8], end: u32) {
        self.member.key.end = end;
        self.member.escaped = self.member.key.of(text).contains(&b'\\');
    }

    fn value(&mut self, text: &[u8], at: u32, place: impl Fn(&str, Kind) -> Option<Place>) {
        self.member.value.start = at;
        self.holds = match self.place {
            // Names that mean nothing.
            Place::Map => Some(Place::Schema),
            Place::Schema | Place::Array => {
                let kind = text.get(at as usize..).and_then(Kind::of);
                self.member.name(text).zip(kind).and_then(|(name, kind)| place(&name, kind))
            }
        };
    }

    fn member_end(&mut self, at: u32) {
        self.member.value.end = at;
        self.members.push(self.member);
        self.holds = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(text: &str) -> Vec<(String, Option<String>)> {
        let mut found = Vec::new();
        let text = text.as_bytes();
        walk(text, Span::new(2, text.len()), Place::of, |schema, way| {
            let names =
                schema.members.iter().map(|member| member.name(text).unwrap_or_default().into_owned());
            let way = way.properties().map(|way| way.join("."));
            found.push((names.collect::<Vec<_>>().join(","), way));
        });
        found
    }

    #[test]
    fn schemas_are_told_from_data_and_from_names() {
        let found = walked(
            r#"  { "properties" : {"properties":{"a":1,"default":{"b":1}},"\u0061":{"properties":{"x":{"c":true}}}},
                "allOf":[{"d":[{"e":1}]},{"items":[{"f":1},5,{"g":[]}]}],"const":{"h":1},"if":{"i":null},"not":true,"z":{"y":1}}"#,
        );
        let way = |way: &str| Some(way.to_owned());
        let expected: [(&str, Option<String>); 9] = [
            ("a,default", way("properties")),
            ("c", way("a.x")),
            ("properties", way("a")),
            ("d", None),
            ("f", None),
            ("g", None),
            ("items", None),
            ("i", None),
            ("properties,allOf,const,if,not,z", way("")),
        ];
        let expected: Vec<_> = expected.map(|(names, way)| (names.to_owned(), way)).into();
        assert_eq!(found, expected);
        assert_eq!(walked("  true"), []);
        assert_eq!(walked("  {}"), [(String::new(), way(""))]);
    }

    /// D68: the time does not grow with the square of the depth, and there is no recursion.
    #[test]
    fn d68_a_deep_schema_is_walked_once() {
        let depth = 100_000;
        let text = format!("  {}{{}}{}", r#"{"allOf":["#.repeat(depth), "]}".repeat(depth));
        assert_eq!(walked(&text).len(), depth + 1);
    }
}
