//! What references resolve to, as the official JSON Schema test suite has it, for all dialects that are known (C62, C64).
//!
//! Owns the comparison: each schema of the suite is one that a validator can use, so each of its references is local or embedded;
//! where the suite has a document to be fetched, the reference is external, unless the operator supplies that document. The
//! suite's own files and where they are from: README.md beside this file.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use mcp_janus::schema::refs::{Outcome, Walked, walk};
use mcp_janus::schema::{Bounds, Dialect, Documents, Kind, Rules, Speaker};
use mcp_janus::wire::json::Span;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the suite expects its documents.
const REMOTES: &str = "http://localhost:1234/";

const DIALECTS: [(Dialect, &str); 5] = [
    (Dialect::Draft4, "draft4"),
    (Dialect::Draft6, "draft6"),
    (Dialect::Draft7, "draft7"),
    (Dialect::Draft2019, "draft2019-09"),
    (Dialect::Draft2020, "draft2020-12"),
];

/// Groups outside `refRemote` that need a document: the suite keeps what they refer to in `remotes`.
const NEEDS_A_DOCUMENT: [(&str, &str); 9] = [
    ("draft7/optional/cross-draft.json", "refs to future drafts are processed as future drafts"),
    ("draft2019-09/optional/cross-draft.json", "refs to future drafts are processed as future drafts"),
    ("draft2019-09/optional/cross-draft.json", "refs to historic drafts are processed as historic drafts"),
    ("draft2020-12/optional/cross-draft.json", "refs to historic drafts are processed as historic drafts"),
    ("draft2020-12/dynamicRef.json", "strict-tree schema, guards against misspelled properties"),
    ("draft2020-12/dynamicRef.json", "tests for implementation dynamic anchor and reference link"),
    ("draft2020-12/dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $defs first"),
    ("draft2020-12/dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first"),
    ("draft2020-12/dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor"),
];

/// Groups about references whose schemas have none: what looks like one is a property's name, or stands in an `enum`.
const NO_REFERENCE: [&str; 2] = [
    "property named $ref that is not a reference",
    "naive replacement of $ref with its destination is not correct",
];

/// What differs from the suite, and why. Nothing does.
const DEVIATIONS: [(&str, &str, &str); 0] = [];

struct Group {
    dialect: Dialect,
    /// The file, from the suite's `tests`.
    file: String,
    description: String,
    schema: Value,
}

impl Group {
    fn name(&self) -> String {
        format!("{}: {}", self.file, self.description)
    }

    fn needs_a_document(&self) -> bool {
        self.file.ends_with("/refRemote.json")
            || NEEDS_A_DOCUMENT.contains(&(self.file.as_str(), self.description.as_str()))
    }

    fn walk(&self, documents: &Documents) -> Walked {
        let text = self.schema.to_string();
        // The machine may be busy; how long a walk may take is tested elsewhere.
        let bounds = Bounds { time: Duration::from_secs(60), ..Bounds::default() };
        let rules = Rules { speaker: Speaker::Modern, bounds: &bounds, documents };
        walk(text.as_bytes(), Span::new(0, text.len()), self.dialect, &rules)
    }
}

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/json_schema_suite/suite")
}

/// All files below `folder`, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The path below `folder`, with `/` on every system.
fn below(folder: &Path, path: &Path) -> String {
    let parts = path.strip_prefix(folder).unwrap().iter().map(|part| part.to_str().unwrap());
    parts.collect::<Vec<_>>().join("/")
}

fn groups() -> Vec<Group> {
    let tests = suite().join("tests");
    let mut all = Vec::new();
    for (dialect, folder) in DIALECTS {
        for path in files(&tests.join(folder)) {
            let file = below(&tests, &path);
            let groups: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            for mut group in groups {
                let description = group["description"].as_str().unwrap().to_owned();
                all.push(Group { dialect, file: file.clone(), description, schema: group["schema"].take() });
            }
        }
    }
    assert!(all.len() > 250, "{} groups", all.len());
    all
}

fn remotes() -> Documents {
    let folder = suite().join("remotes");
    Documents::new(files(&folder).into_iter().map(|path| {
        let uri = format!("{REMOTES}{}", below(&folder, &path));
        (uri.into(), Bytes::from(std::fs::read(&path).unwrap()))
    }))
}

fn deviates(group: &Group) -> bool {
    DEVIATIONS.iter().any(|(file, description, _)| group.file == *file && group.description == *description)
}

#[test]
fn c64_every_reference_of_the_suite_resolves_as_its_dialect_says() {
    let documents = remotes();
    let mut wrong = Vec::new();
    for group in groups().iter().filter(|group| !deviates(group)) {
        let walked = group.walk(&documents);
        if !walked.findings.is_empty() {
            wrong.push(format!("{}: {:?}", group.name(), walked.findings));
        }
        let about_references = ["/ref.json", "Ref.json", "/anchor.json", "/refRemote.json"];
        let is_about = about_references.iter().any(|end| group.file.ends_with(end));
        if is_about && walked.references.is_empty() && !NO_REFERENCE.contains(&group.description.as_str()) {
            wrong.push(format!("{}: no reference seen", group.name()));
        }
        for reference in &walked.references {
            let own = reference.target.is_empty() || reference.target.starts_with('#');
            let outcomes: &[Outcome] =
                if own { &[Outcome::Local] } else { &[Outcome::Local, Outcome::Embedded] };
            if !outcomes.contains(&reference.outcome) {
                wrong.push(format!("{}: {reference:?}", group.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn c62_what_the_suite_would_fetch_is_external_and_all_else_is_not() {
    let (none, documents) = (Documents::default(), remotes());
    let mut wrong = Vec::new();
    for group in groups().iter().filter(|group| !deviates(group)) {
        let (alone, supplied) = (group.walk(&none), group.walk(&documents));
        let is_external = alone.findings.iter().any(|finding| finding.kind == Kind::External);
        let is_only = alone.findings.iter().all(|finding| finding.kind == Kind::External);
        if is_external != group.needs_a_document() || !is_only {
            wrong.push(format!("{}: {:?}", group.name(), alone.findings));
        }
        // A document changes what leads to it, and nothing else.
        for reference in &alone.references {
            let same = supplied
                .references
                .iter()
                .find(|other| (&other.at, &other.target) == (&reference.at, &reference.target));
            let outcome = same.map(|other| other.outcome);
            let expected =
                if reference.outcome == Outcome::External { Outcome::Embedded } else { reference.outcome };
            if outcome != Some(expected) {
                wrong.push(format!("{}: {reference:?}, with documents {outcome:?}", group.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
