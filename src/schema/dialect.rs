//! The dialects of JSON Schema that are known, and what declares them.
//!
//! Owns reading `$schema` (C64: with and without an empty fragment, http and https). Does not own what a dialect's keywords
//! mean (`places`, `refs`), nor its meta-schema (`meta`).

/// A dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

impl Dialect {
    pub const ALL: [Dialect; 5] =
        [Dialect::Draft4, Dialect::Draft6, Dialect::Draft7, Dialect::Draft2019, Dialect::Draft2020];

    /// What a modern peer takes a schema for that declares none (spec basic/index).
    pub const DEFAULT: Dialect = Dialect::Draft2020;

    /// The dialect that `$schema` names; `None` if it is not a known one.
    pub fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_suffix('#').unwrap_or(uri);
        let rest = rest.strip_prefix("http://").or_else(|| rest.strip_prefix("https://"))?;
        Some(match rest {
            "json-schema.org/draft-04/schema" => Dialect::Draft4,
            "json-schema.org/draft-06/schema" => Dialect::Draft6,
            "json-schema.org/draft-07/schema" => Dialect::Draft7,
            "json-schema.org/draft/2019-09/schema" => Dialect::Draft2019,
            "json-schema.org/draft/2020-12/schema" => Dialect::Draft2020,
            _ => return None,
        })
    }

    /// What its meta-schema calls itself.
    pub fn uri(self) -> &'static str {
        match self {
            Dialect::Draft4 => "http://json-schema.org/draft-04/schema#",
            Dialect::Draft6 => "http://json-schema.org/draft-06/schema#",
            Dialect::Draft7 => "http://json-schema.org/draft-07/schema#",
            Dialect::Draft2019 => "https://json-schema.org/draft/2019-09/schema",
            Dialect::Draft2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// For people and machines.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Draft4 => "draft-04",
            Dialect::Draft6 => "draft-06",
            Dialect::Draft7 => "draft-07",
            Dialect::Draft2019 => "2019-09",
            Dialect::Draft2020 => "2020-12",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c64_a_dialect_is_known_in_each_form() {
        for dialect in Dialect::ALL {
            let plain = dialect.uri().trim_end_matches('#');
            let rest = plain.split_once("://").unwrap().1;
            for form in ["http://", "https://"] {
                for end in ["", "#"] {
                    assert_eq!(Dialect::parse(&format!("{form}{rest}{end}")), Some(dialect));
                }
            }
        }
        for other in ["", "https://example.com/schema", "http://json-schema.org/schema#", "draft-07"] {
            assert_eq!(Dialect::parse(other), None, "{other}");
        }
    }
}
