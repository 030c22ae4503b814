//! Which values of a tree are schemas, of which resource they are, and what they refer to.
//!
//! Owns marking values as schemas, from the outer ones to the inner ones, by the keywords of the dialect that holds there;
//! resources and their base URIs (`$id`), anchors, and the references as they are written. Does not own what references
//! lead to (`resolve`). Rules: C62, C64; vector D68.

use super::places::{self, Reach, ref_stands_alone};
use super::tree::Node;
use super::uri::{self, Base};
use super::{Stop, Walk};
use crate::schema::walk::Place;
use crate::schema::{Dialect, Kind};
use crate::wire::json;
use std::collections::HashMap;

/// A schema with a URI, and all within it that has none of its own.
pub(super) struct Resource {
    pub(super) root: Node,
    /// `None`: none was given.
    pub(super) base: Option<Base>,
    /// `None`: it is not known.
    pub(super) dialect: Option<Dialect>,
}

/// What a value is for its schema.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// `None`: data.
    role: Option<Place>,
    /// Its own members have been marked.
    walked: bool,
    /// Ids and anchors in it count.
    named: bool,
    reach: Reach,
    pub(super) resource: u32,
    /// The schema that it stands in.
    within: Node,
}

/// A keyword that refers.
#[derive(Clone, Copy)]
pub(super) struct Refers {
    pub(super) keyword: Node,
    /// The schema that it is a keyword of.
    pub(super) schema: Node,
    pub(super) dynamic: Dynamic,
}

/// A reference that leads to a schema.
pub(super) struct Lead {
    pub(super) keyword: Node,
    pub(super) schema: Node,
    pub(super) target: Node,
    pub(super) dynamic: Dynamic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dynamic {
    No,
    /// `$dynamicRef`: where it leads, an anchor of the same name elsewhere may take its place.
    Anchor,
    /// `$recursiveRef`
    Recursive,
}

/// What is known of the schemas of a tree.
#[derive(Default)]
pub(super) struct Schemas {
    marks: Vec<Mark>,
    resources: Vec<Resource>,
    by_uri: HashMap<Box<str>, u32>,
    anchors: HashMap<(u32, Box<str>), Node>,
    /// `$dynamicAnchor`s by name.
    pub(super) dynamic: HashMap<Box<str>, Vec<Node>>,
    /// Roots with `$recursiveAnchor`.
    pub(super) recursive: Vec<Node>,
    /// From a schema to one within it that applies to the same value.
    pub(super) same: Vec<(Node, Node)>,
    pub(super) references: Vec<Refers>,
    pub(super) leads: Vec<Lead>,
    count: usize,
}

/// The members of a schema that say what it is.
#[derive(Default)]
struct Head {
    declared: Option<Node>,
    id: Option<Node>,
    draft4_id: Option<Node>,
    reference: Option<Node>,
    anchor: Option<Node>,
    dynamic_anchor: Option<Node>,
    dynamic_ref: Option<Node>,
    recursive_anchor: Option<Node>,
    recursive_ref: Option<Node>,
}

impl Mark {
    const DATA: Mark =
        Mark { role: None, walked: false, named: false, reach: Reach::Apart, resource: 0, within: Node::MAX };

    /// Of the root of a text.
    pub(super) fn root(resource: u32) -> Self {
        Mark { role: Some(Place::Schema), named: true, resource, ..Mark::DATA }
    }

    /// Of what a reference leads to although no keyword makes it a schema.
    pub(super) fn target(resource: u32) -> Self {
        Mark { named: false, ..Mark::root(resource) }
    }

    fn inner(self, role: Place) -> Self {
        Mark { role: Some(role), walked: false, ..self }
    }
}

impl Schemas {
    pub(super) fn add(&mut self, resource: Resource) -> u32 {
        self.resources.push(resource);
        self.resources.len() as u32 - 1
    }

    /// Makes room for the values that were read last.
    pub(super) fn grow(&mut self, values: u32) {
        self.marks.resize(values as usize, Mark::DATA);
    }

    /// Says what a value is; what has been walked before stays as it is.
    fn give(&mut self, node: Node, mark: Mark) {
        let old = &mut self.marks[node as usize];
        if !old.walked {
            *old = mark;
        } else if mark.reach == Reach::Same && mark.role == Some(Place::Schema) {
            self.same.push((mark.within, node));
        }
    }

    /// The mark of a value that is a schema and has been walked.
    pub(super) fn schema(&self, node: Node) -> Option<&Mark> {
        self.marks.get(node as usize).filter(|mark| mark.walked)
    }

    /// Whether nothing within has a URI of its own.
    pub(super) fn is_one_resource(&self) -> bool {
        self.resources.len() == 1
    }

    pub(super) fn dialect(&self, resource: u32) -> Option<Dialect> {
        self.resources[resource as usize].dialect
    }

    pub(super) fn root(&self, resource: u32) -> Node {
        self.resources[resource as usize].root
    }

    pub(super) fn base(&self, resource: u32) -> Option<&Base> {
        self.resources[resource as usize].base.as_ref()
    }

    pub(super) fn by_uri(&self, uri: &Base) -> Option<u32> {
        self.by_uri.get(uri.as_str()).copied()
    }

    pub(super) fn anchor(&self, resource: u32, name: &str) -> Option<Node> {
        // Names are looked up with their resource; references to anchors are few.
        self.anchors.get(&(resource, name.into())).copied()
    }

    /// The first of several resources with one URI keeps it.
    pub(super) fn name_resource(&mut self, uri: &Base, resource: u32) {
        self.by_uri.entry(uri.as_str().into()).or_insert(resource);
    }
}

impl Walk<'_> {
    /// Marks `from` and everything in it.
    pub(super) fn mark(&mut self, from: Node, mark: Mark) -> Result<(), Stop> {
        self.schemas.marks[from as usize] = mark;
        let mut node = from;
        while node < self.tree.end(from) {
            let mark = self.schemas.marks[node as usize];
            node = match (mark.role, self.tree.kind(node)) {
                (Some(Place::Schema), json::Kind::Object | json::Kind::Bool) if !mark.walked => {
                    self.schema(node, mark)?;
                    node + 1
                }
                (Some(Place::Map), json::Kind::Object) => {
                    self.once(node);
                    self.hand_down(node, mark);
                    node + 1
                }
                (Some(Place::Array), json::Kind::Array) => {
                    self.hand_down(node, mark);
                    node + 1
                }
                // Data, what is marked already, and what should be a schema and is none.
                _ => self.tree.end(node),
            };
        }
        Ok(())
    }

    fn hand_down(&mut self, node: Node, mark: Mark) {
        for child in self.tree.children(node) {
            self.schemas.give(child, mark.inner(Place::Schema));
        }
    }

    fn once(&mut self, object: Node) {
        if let Some(member) = self.tree.twice(object) {
            let name = self.tree.name(member).unwrap_or_default().into_owned();
            self.find(member, Kind::Twice, &name);
        }
    }

    fn schema(&mut self, node: Node, mut mark: Mark) -> Result<(), Stop> {
        self.step()?;
        mark.walked = true;
        if mark.reach == Reach::Same {
            self.schemas.same.push((mark.within, node));
        }
        if self.supplied.is_empty() {
            self.schemas.count += 1;
            if self.schemas.count > self.rules.bounds.subschemas {
                return Err(Stop::at_root(Kind::Subschemas, String::new()));
            }
        }
        let mut alone = false;
        if self.tree.kind(node) == json::Kind::Object {
            self.once(node);
            if let Some(head) = self.head(node) {
                self.identify(node, &head, &mut mark);
                alone = self.refer(node, &head, &mark)?;
            }
            self.inner_schemas(node, &mark, alone);
        }
        self.schemas.marks[node as usize] = mark;
        Ok(())
    }

    /// `None`: the schema has nothing of the kind.
    fn head(&self, node: Node) -> Option<Head> {
        let mut head = Head::default();
        let mut any = false;
        for child in self.tree.children(node) {
            let Some(name) = self.tree.name(child) else { continue };
            let place = match &*name {
                "$schema" => &mut head.declared,
                "$id" => &mut head.id,
                "id" => &mut head.draft4_id,
                "$ref" => &mut head.reference,
                "$anchor" => &mut head.anchor,
                "$dynamicAnchor" => &mut head.dynamic_anchor,
                "$dynamicRef" => &mut head.dynamic_ref,
                "$recursiveAnchor" => &mut head.recursive_anchor,
                "$recursiveRef" => &mut head.recursive_ref,
                _ => continue,
            };
            any = true;
            place.get_or_insert(child);
        }
        any.then_some(head)
    }

    /// Says of which resource the schema is, and enters its names.
    fn identify(&mut self, node: Node, head: &Head, mark: &mut Mark) {
        let is_root = self.schemas.root(mark.resource) == node;
        let outer = self.schemas.dialect(mark.resource);
        let declared = head.declared.map(|node| self.tree.string(node).and_then(|uri| Dialect::parse(&uri)));
        let dialect = declared.unwrap_or(outer);
        let mut id = self.id(head, dialect);
        // Within a resource `$schema` says nothing.
        let counts = is_root || id.is_some();
        if let (Some(at), Some(None), true) = (head.declared, declared, counts) {
            let word = self.tree.string(at).map_or_else(|| self.raw(at), |word| word.into_owned());
            self.find(at, Kind::UnknownDialect, &word);
        }
        let dialect = if counts { dialect } else { outer };
        if !counts {
            id = self.id(head, dialect);
        }
        if is_root {
            self.schemas.resources[mark.resource as usize].dialect = dialect;
        }
        if let Some(id) = id {
            self.enter_id(node, &id, dialect, is_root, mark);
        }
        self.enter_anchors(node, head, dialect, mark);
    }

    /// The schema's id, if it has one that counts.
    fn id(&self, head: &Head, dialect: Option<Dialect>) -> Option<String> {
        let dialect = dialect.unwrap_or(Dialect::DEFAULT);
        if ref_stands_alone(dialect) && self.is_reference(head.reference) {
            return None;
        }
        let id = if dialect == Dialect::Draft4 { head.draft4_id } else { head.id };
        self.tree.string(id?).map(|id| id.into_owned())
    }

    fn is_reference(&self, keyword: Option<Node>) -> bool {
        keyword.is_some_and(|node| self.tree.kind(node) == json::Kind::String)
    }

    fn enter_id(&mut self, node: Node, id: &str, dialect: Option<Dialect>, is_root: bool, mark: &mut Mark) {
        let (uri, fragment) = uri::split(id);
        let anchor =
            dialect.is_some_and(ref_stands_alone).then_some(fragment).filter(|name| !name.is_empty());
        let outer = self.schemas.base(mark.resource);
        // An id that names nothing is left to the meta-schema and to references that want it.
        let base = (!uri.is_empty()).then(|| Base::join(outer, uri).ok()).flatten();
        if let Some(base) = base.filter(|base| anchor.is_none() || Some(base) != outer) {
            if is_root {
                self.schemas.resources[mark.resource as usize].base = Some(base.clone());
            } else {
                mark.resource = self.schemas.add(Resource { root: node, base: Some(base.clone()), dialect });
            }
            if mark.named {
                self.schemas.name_resource(&base, mark.resource);
            }
        }
        if let Some(name) = anchor {
            self.enter_anchor(name, node, mark);
        }
    }

    fn enter_anchor(&mut self, name: &str, node: Node, mark: &Mark) {
        if mark.named {
            self.schemas.anchors.entry((mark.resource, name.into())).or_insert(node);
        }
    }

    fn enter_anchors(&mut self, node: Node, head: &Head, dialect: Option<Dialect>, mark: &Mark) {
        let dialect = dialect.unwrap_or(Dialect::DEFAULT);
        if ref_stands_alone(dialect) {
            return;
        }
        let name = |keyword: Option<Node>| {
            keyword.and_then(|keyword| self.tree.string(keyword)).map(Box::<str>::from)
        };
        let anchor = name(head.anchor);
        let dynamic = name(head.dynamic_anchor).filter(|_| dialect == Dialect::Draft2020);
        for name in anchor.iter().chain(&dynamic) {
            self.enter_anchor(name, node, mark);
        }
        if let Some(name) = dynamic.filter(|_| mark.named) {
            self.schemas.dynamic.entry(name).or_default().push(node);
        }
        let recursive = head.recursive_anchor.is_some_and(|keyword| self.tree.raw(keyword) == b"true");
        if recursive && dialect == Dialect::Draft2019 && self.schemas.root(mark.resource) == node {
            self.schemas.recursive.push(node);
        }
    }

    /// Takes down the schema's references, and says whether nothing beside one counts.
    fn refer(&mut self, node: Node, head: &Head, mark: &Mark) -> Result<bool, Stop> {
        let dialect = self.schemas.dialect(mark.resource);
        let is = |known| dialect.is_none_or(|dialect| dialect == known);
        let dynamic = head.dynamic_ref.filter(|_| is(Dialect::Draft2020));
        let recursive = head.recursive_ref.filter(|_| is(Dialect::Draft2019));
        for (keyword, dynamic) in
            [(head.reference, Dynamic::No), (dynamic, Dynamic::Anchor), (recursive, Dynamic::Recursive)]
        {
            let Some(keyword) = keyword.filter(|keyword| self.is_reference(Some(*keyword))) else { continue };
            self.schemas.references.push(Refers { keyword, schema: node, dynamic });
        }
        if self.schemas.references.len() > self.rules.bounds.references {
            return Err(Stop::at_root(Kind::References, String::new()));
        }
        Ok(dialect.is_some_and(ref_stands_alone) && self.is_reference(head.reference))
    }

    /// Says of the schema's members which hold schemas. `alone`: its `$ref` is all that counts.
    fn inner_schemas(&mut self, node: Node, mark: &Mark, alone: bool) {
        let dialect = self.schemas.dialect(mark.resource);
        for child in self.tree.children(node) {
            let kind = self.tree.kind(child);
            if !matches!(kind, json::Kind::Object | json::Kind::Array | json::Kind::Bool) {
                continue;
            }
            let Some(name) = self.tree.name(child) else { continue };
            let place = match dialect {
                None => places::anywhere(&name, kind),
                Some(_) if alone => places::beside_ref(&name, kind),
                Some(dialect) => places::place(dialect, &name, kind),
            };
            if let Some((role, reach)) = place {
                let named = mark.named && reach != Reach::Custom;
                let role = Some(role);
                let inner = Mark { role, walked: false, named, reach, resource: mark.resource, within: node };
                self.schemas.give(child, inner);
            }
        }
    }

    /// What stands there, as it is written.
    pub(super) fn raw(&self, node: Node) -> String {
        String::from_utf8_lossy(self.tree.raw(node)).into_owned()
    }
}
