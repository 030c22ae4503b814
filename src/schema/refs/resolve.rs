//! What references lead to.
//!
//! Owns resolving each reference by the base URI of its resource: within the resource, to a resource that is embedded, to a
//! supplied document (which is read when it is first reached), to a meta-schema, nowhere, or out. What a reference leads to is a
//! schema even where no keyword says so, and is walked from there. Rules: C62, C64.

use super::mark::{Lead, Mark, Refers, Resource};
use super::tree::{Node, TooDeep};
use super::uri::{self, Base, Unresolved};
use super::{Outcome, Reference, Stop, Supplied, Walk};
use crate::schema::Kind;
use crate::wire::json::{self, Span};

/// Where a reference leads.
#[derive(Clone, Copy)]
pub(super) enum Target {
    Schema {
        node: Node,
        outcome: Outcome,
    },
    /// A meta-schema, which has no place in the tree.
    MetaSchema,
    Dangling(&'static str),
    External,
}

impl Walk<'_> {
    /// Resolves all references, those too that come to light by it.
    pub(super) fn resolve(&mut self) -> Result<(), Stop> {
        let mut targets: Vec<Target> = Vec::new();
        let ended = self.resolve_into(&mut targets);
        self.tell(&targets);
        ended
    }

    fn resolve_into(&mut self, targets: &mut Vec<Target>) -> Result<(), Stop> {
        loop {
            while let Some(refers) = self.schemas.references.get(targets.len()).copied() {
                self.step()?;
                let target = self.target(refers)?;
                targets.push(target);
            }
            let supplied = self.supplied.len();
            if supplied == 0 {
                return Ok(());
            }
            // A document that was reached later may hold what was not found before.
            for (number, target) in targets.iter_mut().enumerate() {
                if let Target::External = target {
                    self.step()?;
                    *target = self.target(self.schemas.references[number])?;
                }
            }
            if self.schemas.references.len() == targets.len() && self.supplied.len() == supplied {
                return Ok(());
            }
        }
    }

    fn target(&mut self, Refers { keyword, schema, .. }: Refers) -> Result<Target, Stop> {
        let Some(reference) = self.tree.string(keyword) else {
            return Ok(Target::Dangling("half a surrogate pair"));
        };
        let (uri, fragment) = uri::split(&reference);
        let Some(from) = self.schemas.schema(schema).map(|mark| mark.resource) else {
            return Ok(Target::Dangling(""));
        };
        if uri.is_empty() {
            return self.within(from, fragment, Outcome::Local);
        }
        let uri = match Base::join(self.schemas.base(from), uri) {
            Ok(uri) => uri,
            Err(Unresolved::Opaque) => {
                return Ok(Target::Dangling("its base URI takes no relative references"));
            }
            Err(Unresolved::NoUri) => return Ok(Target::External),
        };
        let resource = match self.schemas.by_uri(&uri) {
            Some(resource) => Some(resource),
            None => self.read_document(&uri, from, keyword)?,
        };
        match resource {
            Some(resource) if resource == from => self.within(resource, fragment, Outcome::Local),
            Some(resource) => self.within(resource, fragment, Outcome::Embedded),
            None if uri.is_meta_schema() => Ok(Target::MetaSchema),
            None => Ok(Target::External),
        }
    }

    /// The resource that a supplied document is, if there is one under this URI.
    fn read_document(&mut self, uri: &Base, from: u32, by: Node) -> Result<Option<u32>, Stop> {
        let Some(text) = self.rules.documents.get(&uri.normal()) else { return Ok(None) };
        let span = Span::new(0, text.len());
        let number = self.supplied.len();
        self.supplied.push(Supplied { uri: uri.as_str().into(), by });
        let root = self.tree.read(text, span, self.rules.bounds.depth).map_err(|TooDeep(_)| {
            let (at, _) = self.within_schema(by, "");
            let detail = self.supplied.get(number).map(|document| format!("in {}", document.uri));
            Stop { kind: Kind::Depth, at: self.tree.pointer(at).into(), detail: detail.unwrap_or_default() }
        })?;
        let dialect = self.schemas.dialect(from);
        let resource = self.schemas.add(Resource { root, base: Some(uri.clone()), dialect });
        self.schemas.name_resource(uri, resource);
        self.schemas.grow(self.tree.len());
        self.mark(root, Mark::root(resource))?;
        Ok(Some(resource))
    }

    /// Where a fragment leads in a resource.
    fn within(&mut self, resource: u32, fragment: &str, outcome: Outcome) -> Result<Target, Stop> {
        let root = self.schemas.root(resource);
        let Some(fragment) = uri::decode(fragment) else {
            return Ok(Target::Dangling("a broken percent escape"));
        };
        let node = if fragment.is_empty() {
            Some(root)
        } else if fragment.starts_with('/') {
            self.tree.down(root, &fragment)
        } else {
            self.schemas.anchor(resource, &fragment)
        };
        let Some(node) = node else { return Ok(Target::Dangling("")) };
        if !matches!(self.tree.kind(node), json::Kind::Object | json::Kind::Bool) {
            return Ok(Target::Dangling("what is there is no schema"));
        }
        if self.schemas.schema(node).is_none() {
            let resource = self.resource_around(node).unwrap_or(resource);
            self.mark(node, Mark::target(resource))?;
        }
        Ok(Target::Schema { node, outcome })
    }

    fn resource_around(&self, node: Node) -> Option<u32> {
        let mut at = node;
        while let Some(parent) = self.tree.parent(at) {
            if let Some(mark) = self.schemas.schema(parent) {
                return Some(mark.resource);
            }
            at = parent;
        }
        None
    }

    /// Whether the dialect that holds there is known.
    pub(super) fn is_judged(&self, schema: Node) -> bool {
        self.schemas.schema(schema).is_some_and(|mark| self.schemas.dialect(mark.resource).is_some())
    }

    /// The outcomes, and the findings that follow from them.
    fn tell(&mut self, targets: &[Target]) {
        for (number, target) in targets.iter().copied().enumerate() {
            let Refers { keyword, schema, dynamic } = self.schemas.references[number];
            let known = self.is_judged(schema);
            let word = self.tree.string(keyword).map_or_else(|| self.raw(keyword), |word| word.into_owned());
            let outcome = match target {
                Target::Schema { node, outcome } => {
                    self.schemas.leads.push(Lead { keyword, schema, target: node, dynamic });
                    outcome
                }
                Target::MetaSchema => Outcome::Embedded,
                Target::Dangling(why) => {
                    if known {
                        let detail = if why.is_empty() { word.clone() } else { format!("{word}: {why}") };
                        self.find(keyword, Kind::Dangling, &detail);
                    }
                    Outcome::Dangling
                }
                // In an unknown dialect too: a validator that takes it for another would fetch it.
                Target::External => {
                    self.find(keyword, Kind::External, &word);
                    Outcome::External
                }
            };
            let (at, _) = self.within_schema(keyword, "");
            let at = self.tree.pointer(at).into();
            self.found.references.push(Reference { at, target: word.into(), outcome });
        }
    }
}
