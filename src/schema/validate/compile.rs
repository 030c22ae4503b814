//! Compiling a schema.
//!
//! Owns the dialect that it is compiled in, documents that the operator supplies for its references, and patterns: the engine
//! that takes time linear in the text first, the other with few steps back where that cannot (look-around); each is compiled by
//! itself before, so that there is an end to it. Formats are as the dialect has them: annotations from 2019-09 on.

use super::super::meta::draft;
use super::super::refs::normal_uri;
use super::super::{Dialect, Documents};
use super::Compiled;
use super::measure::Measure;
use super::watch::{Limits, Watched, caught, on_stack};
use jsonschema::{Draft, PatternCache, PatternOptions, Retrieve, Uri, ValidationOptions};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Stack for compiling: some KiB for each level of eight schemas that reach one another by references.
const STACK: usize = 32 * 1024 * 1024;

/// Bytes of one compiled pattern, and of a text that it is tried on: no text takes long.
const PLAIN: (usize, usize) = (64 * 1024, 16 * 1024);
/// The same where a pattern is large or has look-around.
const RICH: (usize, usize) = (1024 * 1024, 2 * 1024);

/// Steps back in a pattern with look-around.
const STEPS: usize = 5000;

/// Compiling may take longer than a check by so much: it is done once.
const PATIENCE: u32 = 4;

/// What a compiled schema takes for each byte of its text, for each pattern, and in any case; about what was measured.
const BYTES: (usize, usize, usize) = (20, 32 * 1024, 4096);

impl Compiled {
    /// `dialect` is the one where the schema declares none. `Err`: why values cannot be checked against it.
    pub fn new(
        schema: &[u8],
        dialect: Dialect,
        documents: &Documents,
        time: Duration,
    ) -> Result<Self, &'static str> {
        let mut value: Value =
            serde_json::from_slice(schema).map_err(|_| "the schema cannot be read by the validator")?;
        let dialect = declare(&mut value, dialect).ok_or("the dialect of the schema is not known")?;
        let mut measure = Measure::default();
        measure.add(&value)?;
        let bytes = schema.len() * BYTES.0 + measure.patterns.len() * BYTES.1 + BYTES.2;
        let end = Instant::now() + time * PATIENCE;
        let built = on_stack(STACK, || caught(|| build(&value, dialect, documents, measure, end)));
        let (validator, limits) = match built {
            Some(Ok(built)) => built?,
            Some(Err(stop)) => return Err(stop.words()),
            None => return Err("there is no thread to compile the schema"),
        };
        Ok(Self { validator, limits, bytes })
    }
}

/// The dialect of the root, named there as the validator knows it; `None` if it is not known.
fn declare(schema: &mut Value, default: Dialect) -> Option<Dialect> {
    let Some(declared) = schema.get_mut("$schema") else { return Some(default) };
    let dialect = Dialect::parse(declared.as_str()?)?;
    *declared = dialect.uri().into();
    Some(dialect)
}

type Built = Result<(jsonschema::Validator<Watched>, Limits), &'static str>;

fn build(schema: &Value, dialect: Dialect, documents: &Documents, measure: Measure, end: Instant) -> Built {
    let patterns = Patterns::new(&measure, !documents.is_empty(), end)?;
    let measure = Arc::new(Mutex::new(measure));
    let supplied = Supplied { documents: documents.clone(), measure: measure.clone() };
    let options = patterns.apply(jsonschema::options_for::<Watched>());
    let options = options.with_draft(draft(dialect)).with_retriever(supplied);
    let validator =
        options.build(schema).map_err(|_| "the validator does not take the schema, or a reference of it")?;
    let measure = measure.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((validator, Limits { in_turn: measure.in_turn(), text: patterns.text }))
}

/// The schema's patterns, compiled.
struct Patterns {
    cache: PatternCache,
    rich: bool,
    text: usize,
}

type Options = ValidationOptions<'static, Arc<dyn Retrieve>, Watched>;

impl Patterns {
    /// Documents may have any.
    fn new(measure: &Measure, documents: bool, end: Instant) -> Result<Self, &'static str> {
        let mut patterns = Self { cache: PatternCache::new(), rich: false, text: PLAIN.1 };
        if !patterns.take(measure, end)? {
            (patterns.rich, patterns.text) = (true, RICH.1);
            // What cannot be compiled may be data.
            patterns.take(measure, end)?;
        }
        patterns.rich |= documents;
        if measure.patterns.is_empty() && !measure.formats && !documents {
            patterns.text = usize::MAX;
        }
        Ok(patterns)
    }

    fn apply(&self, options: Options) -> Options {
        let options = options.with_pattern_cache(self.cache.clone());
        if self.rich {
            let engine = PatternOptions::fancy_regex().backtrack_limit(STEPS);
            return options.with_pattern_options(engine.size_limit(RICH.0).dfa_size_limit(RICH.0));
        }
        options.with_pattern_options(PatternOptions::regex().size_limit(PLAIN.0).dfa_size_limit(RICH.0))
    }

    /// Whether the engine can take them all; they are in the cache then.
    fn take(&self, measure: &Measure, end: Instant) -> Result<bool, &'static str> {
        let options =
            self.apply(jsonschema::options_for::<Watched>()).with_draft(Draft::Draft202012).offline();
        let mut all = true;
        for pattern in &measure.patterns {
            all &= options.build(&json!({ "pattern": pattern })).is_ok();
            if Instant::now() > end {
                return Err("the patterns of the schema take too long to compile");
            }
        }
        Ok(all)
    }
}

/// The operator's documents, which are all that a reference may lead to outside of the schema. Nothing is fetched.
struct Supplied {
    documents: Documents,
    measure: Arc<Mutex<Measure>>,
}

impl Retrieve for Supplied {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let uri = uri.as_str();
        let text = normal_uri(uri).and_then(|uri| self.documents.get(&uri)).ok_or("not supplied")?;
        let document = serde_json::from_slice(text)?;
        self.measure.lock().unwrap_or_else(PoisonError::into_inner).add_document(&document)?;
        Ok(document)
    }
}
