//! What the keywords of each dialect hold, as far as references go.
//!
//! Owns the table of keywords by dialect: whether it knows them, and whether what they hold applies to the same value, to a part
//! of it, or to none. What shape the value of a keyword has is said by [`walk::Place`](crate::schema::walk::Place).
//! Rules: C62, C64; the specifications of draft-04, -06, -07, 2019-09 and 2020-12.

use crate::schema::Dialect;
use crate::schema::walk::Place;
use crate::wire::json::Kind;

/// To what the schemas of a keyword apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the same value as the schema that they stand in.
    Same,
    /// To a part of it.
    Part,
    /// To nothing, unless a reference leads there.
    Apart,
    /// As above, and the dialect does not know the keyword: schemas are kept there by custom, and no `$id` in them counts.
    Custom,
}

/// What `keyword` holds; `None` if no schemas.
pub(super) fn place(dialect: Dialect, keyword: &str, value: Kind) -> Option<(Place, Reach)> {
    let place = Place::of(keyword, value)?;
    let (since, until, reach) = match keyword {
        "$defs" if dialect < Dialect::Draft2019 => return Some((place, Reach::Custom)),
        "$defs" | "definitions" => (Dialect::Draft4, Dialect::Draft2020, Reach::Apart),
        "allOf" | "anyOf" | "oneOf" | "not" | "dependencies" => {
            (Dialect::Draft4, Dialect::Draft2020, Reach::Same)
        }
        "if" | "then" | "else" => (Dialect::Draft7, Dialect::Draft2020, Reach::Same),
        "dependentSchemas" => (Dialect::Draft2019, Dialect::Draft2020, Reach::Same),
        "additionalItems" => (Dialect::Draft4, Dialect::Draft2019, Reach::Part),
        "contains" | "propertyNames" => (Dialect::Draft6, Dialect::Draft2020, Reach::Part),
        "unevaluatedItems" | "unevaluatedProperties" | "contentSchema" => {
            (Dialect::Draft2019, Dialect::Draft2020, Reach::Part)
        }
        "prefixItems" => (Dialect::Draft2020, Dialect::Draft2020, Reach::Part),
        _ => (Dialect::Draft4, Dialect::Draft2020, Reach::Part),
    };
    (since <= dialect && dialect <= until).then_some((place, reach))
}

/// What `keyword` may hold in a dialect that is not known: a schema, wherever no dialect keeps data.
pub(super) fn anywhere(keyword: &str, value: Kind) -> Option<(Place, Reach)> {
    if matches!(keyword, "const" | "enum" | "default" | "examples") {
        return None;
    }
    let place = Place::of(keyword, value).or(match value {
        Kind::Object => Some(Place::Schema),
        Kind::Array => Some(Place::Array),
        Kind::String | Kind::Number | Kind::Bool | Kind::Null => None,
    });
    Some((place?, Reach::Part))
}

/// What `keyword` holds beside a `$ref` in a dialect that passes over everything beside it.
pub(super) fn beside_ref(keyword: &str, value: Kind) -> Option<(Place, Reach)> {
    let place = Place::of(keyword, value)?;
    matches!(keyword, "$defs" | "definitions").then_some((place, Reach::Custom))
}

/// Whether nothing beside a `$ref` counts, and a fragment in an id is an anchor.
pub(in crate::schema) fn ref_stands_alone(dialect: Dialect) -> bool {
    dialect < Dialect::Draft2019
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists of keywords are those of the dialects' meta-schemas.
    #[test]
    fn c64_keywords_are_those_of_the_dialect() {
        let known = |keyword: &str| {
            let knows = |dialect: &Dialect| {
                place(*dialect, keyword, Kind::Object).is_some_and(|(_, reach)| reach != Reach::Custom)
            };
            let all: Vec<_> =
                Dialect::ALL.iter().filter(|dialect| knows(dialect)).map(|dialect| dialect.name()).collect();
            all.join(" ")
        };
        let all = "draft-04 draft-06 draft-07 2019-09 2020-12";
        for keyword in [
            "properties",
            "patternProperties",
            "additionalProperties",
            "items",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "definitions",
            "dependencies",
        ] {
            assert_eq!(known(keyword), all, "{keyword}");
        }
        for (keywords, dialects) in [
            (&["contains", "propertyNames"][..], "draft-06 draft-07 2019-09 2020-12"),
            (&["if", "then", "else"], "draft-07 2019-09 2020-12"),
            (
                &["$defs", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties", "contentSchema"],
                "2019-09 2020-12",
            ),
            (&["prefixItems"], "2020-12"),
            (&["additionalItems"], "draft-04 draft-06 draft-07 2019-09"),
            (&["const", "enum", "default", "examples", "example", "required", "x", "$ref", "", "$id"], ""),
        ] {
            for keyword in keywords {
                assert_eq!(known(keyword), dialects, "{keyword}");
            }
        }
    }
}
