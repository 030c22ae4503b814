//! What `probe` prints, for people and for machines.

use super::tools::Tools;
use crate::schema::{Finding, Weight};
use crate::upstream::Found;
use crate::upstream::era;
use crate::wire::version::Era;
use serde_json::{Value, json};

/// What was found.
pub(super) struct Report {
    /// Where the server is, or what it is.
    pub(super) target: String,
    pub(super) transport: Found,
    pub(super) first: era::Finding,
    pub(super) found: Result<Server, String>,
}

/// A server that speaks MCP.
pub(super) struct Server {
    pub(super) era: Era,
    /// The result of `server/discover`, the server's own or made from `initialize`.
    pub(super) discovered: Value,
    pub(super) version: String,
    pub(super) tools: Tools,
}

/// The widest a tool's name may make its column.
const NAME: usize = 40;

impl Report {
    /// What the target is called.
    fn kind(&self) -> &'static str {
        match self.transport {
            Found::Stdio => "command",
            Found::StreamableHttp | Found::OldSse => "url",
        }
    }

    pub(super) fn json(&self) -> Value {
        let (kind, target, first) = (self.kind(), &self.target, self.first.to_string());
        match &self.found {
            Ok(Server { era, discovered, version, tools }) => json!({
                kind: target,
                "transport": self.transport.word(),
                "era": era.name(),
                "version": version,
                "probe": first,
                "serverInfo": discovered["_meta"]["io.modelcontextprotocol/serverInfo"],
                "capabilities": discovered["capabilities"],
                "instructions": discovered["instructions"],
                "tools": tools.json(),
                "findings": tools.findings.iter().map(finding_json).collect::<Value>(),
            }),
            Err(error) => json!({kind: target, "era": null, "probe": first, "error": error}),
        }
    }

    pub(super) fn text(&self) -> String {
        let (kind, target, first) = (self.kind(), &self.target, self.first.to_string());
        let mut lines = vec![format!("{kind:<13} {target}")];
        if self.found.as_ref().err() != Some(&first) {
            lines.push(format!("probe         {first}"));
        }
        match &self.found {
            Ok(Server { era, discovered, version, tools }) => {
                let info = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
                let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
                lines.push(format!("transport     {}", self.transport));
                lines.push(format!("era           {}", era.name()));
                lines.push(format!("version       {version}"));
                lines.push(format!("server        {} {}", text(&info["name"]), text(&info["version"])));
                lines.push(format!("capabilities  {}", discovered["capabilities"]));
                if let Some(instructions) = discovered["instructions"].as_str() {
                    lines.push(format!("instructions  {}", instructions.lines().next().unwrap_or_default()));
                }
                lines.push(format!("tools         {}", tools.line()));
                lines.extend(table(&tools.findings));
            }
            Err(error) => lines.push(format!("error         {error}")),
        }
        lines.join("\n") + "\n"
    }
}

impl Tools {
    fn line(&self) -> String {
        let Self { listed, left_out, findings, error } = self;
        let counted = match findings.len() {
            0 => format!("{listed}"),
            1 => format!("{listed}, left out {left_out}; 1 finding"),
            found => format!("{listed}, left out {left_out}; {found} findings"),
        };
        match error {
            None => counted,
            Some(error) => format!("{counted}; not all were listed: {error}"),
        }
    }

    fn json(&self) -> Value {
        let mut counted = json!({"listed": self.listed, "left_out": self.left_out});
        if let Some(error) = &self.error {
            counted["error"] = error.as_str().into();
        }
        counted
    }
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "tool": &*finding.tool,
        "at": &*finding.at,
        "kind": finding.kind.label(),
        "weight": finding.kind.weight().label(),
        "detail": &*finding.detail,
        "words": finding.kind.words(),
        "remedy": finding.kind.remedy(),
    })
}

/// Tool, kind and place in columns; below them what it is and what to do.
fn table(findings: &[Finding]) -> Vec<String> {
    if findings.is_empty() {
        return Vec::new();
    }
    let named = |finding: &Finding| match shown(&finding.tool) {
        name if name.is_empty() => "(no name)".to_owned(),
        name => name,
    };
    let width = |cells: &mut dyn Iterator<Item = usize>| cells.max().unwrap_or_default();
    let names = width(&mut findings.iter().map(|finding| named(finding).chars().count())).clamp(4, NAME);
    let kinds = width(&mut findings.iter().map(|finding| finding.kind.label().len())).max(4);
    let mut lines = vec![String::new(), format!("{:<names$}  {:<kinds$}  WHERE", "TOOL", "KIND")];
    for finding in findings {
        let (name, kind) = (named(finding), finding.kind.label());
        lines.push(format!("{name:<names$}  {kind:<kinds$}  {}", shown(&finding.at)).trim_end().to_owned());
        let became = match finding.kind.weight() {
            Weight::Bad => "left out",
            Weight::Mended => "mended",
            Weight::Note => "note",
        };
        let detail = match shown(&finding.detail) {
            detail if detail.is_empty() => detail,
            detail => format!(" ({detail})"),
        };
        lines.push(format!("{:names$}  {became}: {}{detail}", "", finding.kind.words()));
        lines.push(format!("{:names$}  to do: {}", "", finding.kind.remedy()));
    }
    lines
}

/// A server's word on a terminal: nothing that could move the cursor or turn the text round.
fn shown(word: &str) -> String {
    let turns = |char: char| matches!(char, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    word.chars().map(|char| if char.is_control() || turns(char) { '\u{fffd}' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Kind;

    fn lines(findings: &[Finding]) -> Vec<String> {
        table(findings)
    }

    #[test]
    fn findings_are_a_table() {
        let findings = [
            Finding::new("weather", "/inputSchema/properties/a/$ref", Kind::External, "https://a.example/x"),
            Finding::new("", "", Kind::NoName, ""),
            Finding::new("t", "/outputSchema", Kind::NullOutput, ""),
            Finding::new("other", "/inputSchema", Kind::UnknownDialect, "urn:x"),
        ];
        let remedy = |kind: Kind| format!("           to do: {}", kind.remedy());
        let words = |became: &str, kind: Kind| format!("           {became}: {}", kind.words());
        assert_eq!(
            lines(&findings),
            [
                String::new(),
                "TOOL       KIND             WHERE".to_owned(),
                "weather    external_ref     /inputSchema/properties/a/$ref".to_owned(),
                words("left out", Kind::External) + " (https://a.example/x)",
                remedy(Kind::External),
                "(no name)  no_name".to_owned(),
                words("left out", Kind::NoName),
                remedy(Kind::NoName),
                "t          null_output      /outputSchema".to_owned(),
                words("mended", Kind::NullOutput),
                remedy(Kind::NullOutput),
                "other      unknown_dialect  /inputSchema".to_owned(),
                words("note", Kind::UnknownDialect) + " (urn:x)",
                remedy(Kind::UnknownDialect),
            ]
        );
        assert_eq!(lines(&[]), Vec::<String>::new());
    }

    #[test]
    fn a_servers_word_does_not_move_the_cursor() {
        let finding = Finding::new("a\u{1b}[2J", "/\u{9b}1\u{202e}", Kind::Dangling, "#/\u{2066}x");
        let printed = lines(&[finding]).join("\n");
        assert!(printed.chars().all(|char| char == '\n' || !char.is_control()), "{printed:?}");
        for part in ["/\u{fffd}1\u{fffd}", "(#/\u{fffd}x)"] {
            assert!(printed.contains(part), "{printed:?}");
        }
    }

    #[test]
    fn what_was_counted_is_said_in_one_line() {
        let finding = || Finding::new("a", "", Kind::InputRoot, "");
        let tools = |listed, left_out, found: usize, error: Option<&str>| Tools {
            listed,
            left_out,
            findings: (0..found).map(|_| finding()).collect(),
            error: error.map(str::to_owned),
        };
        assert_eq!(tools(0, 0, 0, None).line(), "0");
        assert_eq!(tools(3, 1, 1, None).line(), "3, left out 1; 1 finding");
        assert_eq!(tools(3, 1, 2, None).line(), "3, left out 1; 2 findings");
        assert_eq!(tools(5, 0, 0, Some("why")).line(), "5; not all were listed: why");
        assert_eq!(tools(3, 1, 1, None).json(), json!({"listed": 3, "left_out": 1}));
        assert_eq!(tools(5, 0, 0, Some("why")).json(), json!({"listed": 5, "left_out": 0, "error": "why"}));
    }
}
