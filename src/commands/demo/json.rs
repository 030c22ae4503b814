//! JSON for the eye: indented where it does not fit a line, everything else as it was sent.
//!
//! Owns reading JSON text into pieces of that text, so that numbers, escapes and the order of members are shown as they
//! are on the wire, and laying it out. Lines may come out too long (a long string); `layout` wraps them.

const INDENT: usize = 2;
const DEEPEST: usize = 64;

enum Node<'a> {
    /// A string, number or word.
    Leaf(&'a str),
    Array(Vec<Node<'a>>),
    Object(Vec<(&'a str, Node<'a>)>),
}

/// Lines of at most `width` where it can be done between pieces; `None` if the text is not JSON.
pub(super) fn lines(text: &str, width: usize) -> Option<Vec<String>> {
    let mut parser = Parser { rest: text };
    let node = parser.value(0)?;
    parser.space();
    parser.rest.is_empty().then(|| {
        let mut out = vec![String::new()];
        lay(&node, 0, width, 0, &mut out);
        out
    })
}

/// Appends the node to the last line; `behind` is what must still fit on its last line.
fn lay(node: &Node<'_>, indent: usize, width: usize, behind: usize, out: &mut Vec<String>) {
    let line = out.last_mut();
    let flat = flat(node);
    let used = line.as_ref().map_or(0, |line| line.chars().count());
    let whole = matches!(node, Node::Leaf(_)) || flat.len() == 2;
    if whole || used + flat.chars().count() + behind <= width {
        if let Some(line) = line {
            line.push_str(&flat);
        }
        return;
    }
    let (open, close, children): (_, _, Vec<(Option<&str>, &Node<'_>)>) = match node {
        Node::Leaf(_) => return,
        Node::Array(items) => ("[", "]", items.iter().map(|item| (None, item)).collect()),
        Node::Object(members) => {
            ("{", "}", members.iter().map(|(name, value)| (Some(*name), value)).collect())
        }
    };
    if let Some(line) = line {
        line.push_str(open);
    }
    let last = children.len();
    for (at, (name, child)) in children.into_iter().enumerate() {
        let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
        out.push(format!("{}{name}", " ".repeat(indent + INDENT)));
        let comma = usize::from(at + 1 < last);
        lay(child, indent + INDENT, width, comma, out);
        if let Some(line) = out.last_mut().filter(|_| comma == 1) {
            line.push(',');
        }
    }
    out.push(format!("{}{close}", " ".repeat(indent)));
}

fn flat(node: &Node<'_>) -> String {
    match node {
        Node::Leaf(text) => (*text).to_owned(),
        Node::Array(items) => {
            let items: Vec<_> = items.iter().map(flat).collect();
            format!("[{}]", items.join(", "))
        }
        Node::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}: {}", flat(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        self.space();
        if depth > DEEPEST {
            return None;
        }
        match self.rest.chars().next()? {
            '[' => {
                let mut items = Vec::new();
                self.list('[', ']', |parser| {
                    items.push(parser.value(depth + 1)?);
                    Some(())
                })?;
                Some(Node::Array(items))
            }
            '{' => {
                let mut members = Vec::new();
                self.list('{', '}', |parser| {
                    let name = parser.string()?;
                    parser.space();
                    parser.eat(':')?;
                    members.push((name, parser.value(depth + 1)?));
                    Some(())
                })?;
                Some(Node::Object(members))
            }
            '"' => self.string().map(Node::Leaf),
            _ => {
                let end = self.rest.find([',', ']', '}', ' ', '\n', '\r', '\t']).unwrap_or(self.rest.len());
                (end > 0).then(|| Node::Leaf(self.take(end)))
            }
        }
    }

    fn list(&mut self, open: char, close: char, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.eat(open)?;
        self.space();
        if self.eat(close).is_some() {
            return Some(());
        }
        loop {
            self.space();
            item(self)?;
            self.space();
            if self.eat(close).is_some() {
                return Some(());
            }
            self.eat(',')?;
        }
    }

    /// With its quotes.
    fn string(&mut self) -> Option<&'a str> {
        let bytes = self.rest.as_bytes();
        let mut at = 1;
        if bytes.first() != Some(&b'"') {
            return None;
        }
        loop {
            match bytes.get(at)? {
                b'"' => return Some(self.take(at + 1)),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    fn take(&mut self, end: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn eat(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_one_line_and_nothing_is_changed() {
        let text = r#"{"b":1e400,"a":[-0,"x\"}"],"c":{}}"#;
        assert_eq!(lines(text, 80).unwrap(), [r#"{"b": 1e400, "a": [-0, "x\"}"], "c": {}}"#]);
        let narrow = lines(text, 18).unwrap();
        assert_eq!(
            narrow,
            ["{", r#"  "b": 1e400,"#, r#"  "a": ["#, "    -0,", r#"    "x\"}""#, "  ],", r#"  "c": {}"#, "}"]
        );
    }

    #[test]
    fn other_text_is_not_taken_for_json() {
        for text in ["", "{", "[1,]", "{\"a\" 1}", "\"", "1 2", "\"\\"] {
            assert!(lines(text, 80).is_none(), "{text}");
        }
    }
}
