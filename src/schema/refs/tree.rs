//! Every value of a text in one flat vector, outer ones before inner ones.
//!
//! Owns reading texts that were scanned before into such a vector, without recursion, names and text of each value, and JSON
//! pointers (RFC 6901) down into it and up out of it. Several texts share the vector, so that a place is one number.
//! Does not know what any member means.

use crate::schema::pointer::{self, step};
use crate::wire::json::{Kind, Span, unescape};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::HashMap;

/// The place of a value.
pub(super) type Node = u32;

const NONE: Node = Node::MAX;

/// Objects and arrays with more children than this are searched by an index.
const WIDE: u32 = 16;

#[derive(Debug, Clone, Copy)]
struct Value {
    kind: Kind,
    escaped: bool,
    /// Its name, between the quotes; empty for items and the text's own value.
    key: Span,
    span: Span,
    parent: Node,
    /// The first place behind everything in it.
    end: Node,
    /// Its place among its parent's children.
    index: u32,
    children: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    values: Vec<Value>,
    /// Each text with the place of its own value.
    texts: SmallVec<[(Node, &'a [u8]); 1]>,
    /// Children of wide objects and arrays, by the child's name or number; of the first of several with one name.
    wide: HashMap<Node, HashMap<Cow<'a, str>, Node>>,
}

/// A text is nested too deep: the value at which reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooDeep(pub(super) Node);

impl<'a> Tree<'a> {
    /// Reads the value at `span` of `text`, and says at which place it stands.
    pub(super) fn read(&mut self, text: &'a [u8], span: Span, depth: usize) -> Result<Node, TooDeep> {
        let root = self.len();
        self.texts.push((root, text));
        self.values.reserve(span.len() / 12 + 1);
        let bytes = text.get(..span.end as usize).unwrap_or_default();
        let mut at = span.start as usize;
        let (mut open, mut opened) = (NONE, 0);
        let mut key: Option<(Span, bool)> = None;
        while let Some(&byte) = bytes.get(at) {
            let kind = match byte {
                b'}' | b']' => {
                    at += 1;
                    open = self.close(open, at);
                    opened -= 1;
                    if open == NONE {
                        break;
                    }
                    continue;
                }
                _ => match Kind::of(&bytes[at..]) {
                    Some(kind) => kind,
                    // White space, a comma or a colon.
                    None => {
                        at += 1;
                        continue;
                    }
                },
            };
            let start = at;
            at = match kind {
                Kind::Object | Kind::Array => at + 1,
                Kind::String => string_end(bytes, at),
                Kind::Number | Kind::Bool | Kind::Null => scalar_end(bytes, at),
            };
            if kind == Kind::String && key.is_none() && self.kind_at(open) == Some(Kind::Object) {
                let name = Span::new(start + 1, (at - 1).max(start + 1));
                key = Some((name, name.of(bytes).contains(&b'\\')));
                continue;
            }
            let node = self.push(kind, key.take().unwrap_or_default(), Span::new(start, at), open);
            if matches!(kind, Kind::Object | Kind::Array) {
                open = node;
                opened += 1;
                if opened > depth {
                    return Err(TooDeep(node));
                }
            } else if open == NONE {
                break;
            }
        }
        Ok(root)
    }

    fn push(&mut self, kind: Kind, (key, escaped): (Span, bool), span: Span, parent: Node) -> Node {
        let node = self.len();
        let mut index = 0;
        if let Some(parent) = self.values.get_mut(parent as usize) {
            index = parent.children;
            parent.children += 1;
        }
        self.values.push(Value { kind, escaped, key, span, parent, end: node + 1, index, children: 0 });
        node
    }

    /// Ends the object or array that is open, and says in which one it stands.
    fn close(&mut self, open: Node, at: usize) -> Node {
        let end = self.len();
        let Some(value) = self.values.get_mut(open as usize) else { return NONE };
        value.end = end;
        value.span.end = at as u32;
        value.parent
    }

    fn kind_at(&self, node: Node) -> Option<Kind> {
        self.values.get(node as usize).map(|value| value.kind)
    }

    /// How many values there are.
    pub(super) fn len(&self) -> u32 {
        self.values.len() as u32
    }

    pub(super) fn kind(&self, node: Node) -> Kind {
        self.values[node as usize].kind
    }

    /// The first place behind everything in it.
    pub(super) fn end(&self, node: Node) -> Node {
        self.values[node as usize].end
    }

    pub(super) fn parent(&self, node: Node) -> Option<Node> {
        Some(self.values[node as usize].parent).filter(|parent| *parent != NONE)
    }

    /// Members or items, in the order of the text.
    pub(super) fn children(&self, node: Node) -> Children<'_> {
        Children { values: &self.values, next: node + 1, end: self.end(node) }
    }

    pub(super) fn raw(&self, node: Node) -> &'a [u8] {
        self.values[node as usize].span.of(self.text(node))
    }

    /// The member's name; `None` if it holds half a surrogate pair.
    pub(super) fn name(&self, node: Node) -> Option<Cow<'a, str>> {
        let value = &self.values[node as usize];
        let raw = value.key.of(self.text(node));
        if value.escaped { unescape(raw) } else { std::str::from_utf8(raw).ok().map(Cow::Borrowed) }
    }

    /// What a string says; `None` for other values and for what holds half a surrogate pair.
    pub(super) fn string(&self, node: Node) -> Option<Cow<'a, str>> {
        let [b'"', inner @ .., b'"'] = self.raw(node) else { return None };
        unescape(inner)
    }

    fn text(&self, node: Node) -> &'a [u8] {
        self.texts.get(self.text_number(node)).map_or(&[], |(_, text)| text)
    }

    /// Which of the texts the place is in, in the order of reading.
    pub(super) fn text_number(&self, node: Node) -> usize {
        match self.texts.len() {
            1 => 0,
            _ => self.texts.partition_point(|(first, _)| *first <= node).saturating_sub(1),
        }
    }

    /// The first two children that have the same name.
    pub(super) fn twice(&self, object: Node) -> Option<Node> {
        let value = &self.values[object as usize];
        if value.children <= WIDE {
            let mut seen: SmallVec<[&Value; WIDE as usize]> = SmallVec::new();
            let text = self.text(object);
            for child in self.children(object) {
                let this = &self.values[child as usize];
                if seen.iter().any(|other| same_name(text, this, other)) {
                    return Some(child);
                }
                seen.push(this);
            }
            return None;
        }
        let mut seen = std::collections::HashSet::with_capacity(value.children as usize);
        self.children(object).find(|child| self.name(*child).is_some_and(|name| !seen.insert(name)))
    }

    /// Where the pointer leads that begins with `/` and is free of percent escapes.
    pub(super) fn down(&mut self, from: Node, pointer: &str) -> Option<Node> {
        let mut at = from;
        for token in pointer.strip_prefix('/')?.split('/') {
            at = self.child(at, &unescape_token(token)?)?;
        }
        Some(at)
    }

    fn child(&mut self, node: Node, token: &str) -> Option<Node> {
        let value = self.values[node as usize];
        match value.kind {
            Kind::Object => {}
            Kind::Array if is_index(token) => {}
            _ => return None,
        }
        if value.children > WIDE {
            return self.indexed(node).get(token).copied();
        }
        match value.kind {
            Kind::Object => self.children(node).find(|child| self.name(*child).as_deref() == Some(token)),
            _ => self.children(node).nth(token.parse().ok()?),
        }
    }

    fn indexed(&mut self, node: Node) -> &HashMap<Cow<'a, str>, Node> {
        if !self.wide.contains_key(&node) {
            let mut index = HashMap::new();
            for child in self.children(node) {
                let name = match self.kind(node) {
                    Kind::Object => self.name(child),
                    _ => Some(self.values[child as usize].index.to_string().into()),
                };
                if let Some(name) = name {
                    index.entry(name).or_insert(child);
                }
            }
            self.wide.insert(node, index);
        }
        &self.wide[&node]
    }

    /// The pointer to a place from its text's own value.
    pub(super) fn pointer(&self, node: Node) -> String {
        let mut way: SmallVec<[Node; 32]> = SmallVec::new();
        let mut at = node;
        while let Some(parent) = self.parent(at) {
            way.push(at);
            at = parent;
        }
        let mut pointer = String::new();
        for node in way.into_iter().rev() {
            let value = &self.values[node as usize];
            if self.kind_at(value.parent) == Some(Kind::Array) {
                step(&mut pointer, &value.index.to_string());
            } else {
                step(&mut pointer, &self.name(node).unwrap_or(Cow::Borrowed("\u{fffd}")));
            }
        }
        pointer
    }
}

/// See [`Tree::children`].
pub(super) struct Children<'t> {
    values: &'t [Value],
    next: Node,
    end: Node,
}

impl Iterator for Children<'_> {
    type Item = Node;

    fn next(&mut self) -> Option<Node> {
        let node = self.next;
        if node >= self.end {
            return None;
        }
        self.next = self.values[node as usize].end;
        Some(node)
    }
}

fn same_name(text: &[u8], one: &Value, other: &Value) -> bool {
    let (this, that) = (one.key.of(text), other.key.of(text));
    if one.escaped || other.escaped {
        return match (unescape(this), unescape(that)) {
            (Some(this), Some(that)) => this == that,
            _ => this == that,
        };
    }
    this == that
}

/// Just behind the closing quote of the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    (pointer::string_end(bytes, at + 1) + 1).min(bytes.len())
}

fn scalar_end(bytes: &[u8], at: usize) -> usize {
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
    bytes[at..].iter().position(ends).map_or(bytes.len(), |length| at + length)
}

/// RFC 6901: no sign, no leading zero.
fn is_index(token: &str) -> bool {
    token.bytes().all(|byte| byte.is_ascii_digit())
        && !token.is_empty()
        && (token == "0" || !token.starts_with('0'))
}

/// One token of a pointer as it is meant; `None` if an escape in it is none.
fn unescape_token(token: &str) -> Option<Cow<'_, str>> {
    if !token.contains('~') {
        return Some(Cow::Borrowed(token));
    }
    let mut out = String::with_capacity(token.len());
    let mut parts = token.split('~');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        match part.as_bytes().first() {
            Some(b'0') => out.push('~'),
            Some(b'1') => out.push('/'),
            _ => return None,
        }
        out.push_str(&part[1..]);
    }
    Some(Cow::Owned(out))
}
