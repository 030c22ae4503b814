//! `${NAME}` in the strings of the file: replaced by the environment before anything else looks at them.
//!
//! Owns the small grammar: `${NAME}` is the variable, `$${` is the text `${`, any other `$` is itself. Files of hosts have
//! `${env:NAME}` and `${NAME:-TEXT}` besides. What a variable holds is not looked at again. Keys are left alone. Does not own
//! `file:` (that is `secrets`).

use toml::Value;

use super::error::ConfigError;

pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What may stand between the braces.
#[derive(Clone, Copy)]
pub(super) enum Spelling {
    /// A name alone.
    Own,
    /// As hosts have it: `env:` may stand in front, and `:-` with a text behind, for a variable that is not set.
    Hosts,
}

/// Replaces in every string below `value`; `path` is where `value` is.
pub(super) fn substitute(
    path: &str,
    value: &mut Value,
    spelling: Spelling,
    env: Env<'_>,
) -> Result<(), ConfigError> {
    match value {
        Value::String(text) => {
            if text.contains("${") {
                let replaced = expand(path, text, spelling, env)?;
                *text = replaced;
            }
            Ok(())
        }
        Value::Array(items) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(index, item)| substitute(&format!("{path}[{index}]"), item, spelling, env)),
        Value::Table(table) => {
            table.iter_mut().try_for_each(|(key, item)| substitute(&below(path, key), item, spelling, env))
        }
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => Ok(()),
    }
}

/// The path of `key` in the table at `path`. A key that TOML would want quoted is quoted.
pub(super) fn below(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let key = if bare { key.to_owned() } else { super::error::quoted(key) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The reverse for text that is to be written into a file.
pub(super) fn escape(text: &str) -> String {
    text.replace("${", "$${")
}

fn expand(path: &str, text: &str, spelling: Spelling, env: Env<'_>) -> Result<String, ConfigError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let after = &from[2..];
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = after;
            continue;
        }
        out.push_str(before);
        let inner = after.split_once('}').map(|(inner, tail)| (spelling.read(inner), tail));
        let Some(((name, otherwise), tail)) = inner.filter(|((name, _), _)| is_name(name)) else {
            return Err(ConfigError::value(path, &Value::String(text.to_owned()), spelling.accepted()));
        };
        let value = env(name)
            .or_else(|| otherwise.map(str::to_owned))
            .ok_or_else(|| ConfigError::Environment { path: path.to_owned(), variable: name.to_owned() })?;
        out.push_str(&value);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

impl Spelling {
    /// The name, and what stands for a variable that is not set.
    fn read(self, inner: &str) -> (&str, Option<&str>) {
        match self {
            Self::Own => (inner, None),
            Self::Hosts => {
                let inner = inner.strip_prefix("env:").unwrap_or(inner);
                inner.split_once(":-").map_or((inner, None), |(name, otherwise)| (name, Some(otherwise)))
            }
        }
    }

    fn accepted(self) -> &'static str {
        match self {
            Self::Own => "`${NAME}` with letters, digits and `_` in NAME; `$${` for the text `${`",
            Self::Hosts => {
                "`${NAME}`, `${env:NAME}` or `${NAME:-TEXT}` with letters, digits and `_` in NAME; what a host asks its user \
                 for (`${input:...}`) has to be in the environment here; `$${` for the text `${`"
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "A" => Some("one".to_owned()),
            "B_2" => Some("${A}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_replaced_once() {
        for (text, expected) in [
            ("${A}", "one"),
            ("x${A}y${A}", "xoneyone"),
            ("${B_2}", "${A}"),
            ("[${EMPTY}]", "[]"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("$A $$ {A}", "$A $$ {A}"),
            ("ü${A}ü", "üoneü"),
        ] {
            assert_eq!(expand("p", text, Spelling::Own, &env).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_escaped_reads_back() {
        for text in ["${A}", "a$${A}", "${", "plain", "$"] {
            assert_eq!(expand("p", &escape(text), Spelling::Own, &env).unwrap(), text);
        }
    }

    #[test]
    fn unset_and_malformed_variables_are_refused() {
        let unset = expand("log.level", "${NOPE}", Spelling::Own, &env).unwrap_err().to_string();
        assert!(unset.contains("log.level") && unset.contains("NOPE"), "{unset}");
        for text in ["${", "${}", "${A", "${1A}", "${A-B}", "${A:-x}"] {
            let error = expand("log.level", text, Spelling::Own, &env).unwrap_err().to_string();
            assert!(error.starts_with("log.level: \"${"), "{error}");
            assert!(error.contains("accepted: `${NAME}`"), "{error}");
        }
    }
    #[test]
    fn hosts_have_more_spellings() {
        for (text, expected) in [
            ("${A}", "one"),
            ("${env:A}", "one"),
            ("${NOPE:-two}", "two"),
            ("${env:NOPE:-}", ""),
            ("${A:-two}", "one"),
            ("$${env:A}", "${env:A}"),
        ] {
            assert_eq!(expand("p", text, Spelling::Hosts, &env).unwrap(), expected, "{text}");
        }
        for text in ["${input:token}", "${env:}", "${:-x}", "${A"] {
            let error = expand("p", text, Spelling::Hosts, &env).unwrap_err().to_string();
            assert!(error.starts_with("p: \"${") && error.contains("`${env:NAME}`"), "{error}");
        }
        let error = expand("p", "${env:NOPE}", Spelling::Hosts, &env).unwrap_err().to_string();
        assert!(error.starts_with("p: the environment variable NOPE is not set"), "{error}");
    }
}
