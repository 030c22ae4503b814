//! What the operator is told of findings: once per change, not per request.
//!
//! Owns what was last told of each tool, bounded by `limits.catalog_tools`, and the words of the log lines. Does not own the
//! findings' own words (`schema::finding`).

use crate::schema::tool::Judged;
use crate::schema::{Finding, Kind, Weight};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, PoisonError};

/// Lines for one list; the others are counted in one more.
const LINES: usize = 20;

/// See the module.
pub(super) struct Reports {
    told: Mutex<HashMap<u64, u64>>,
    hashes: RandomState,
    most: usize,
}

impl Reports {
    pub(super) fn new(most: usize) -> Self {
        Self { told: Mutex::default(), hashes: RandomState::new(), most }
    }

    /// Tells what is new of a list that was judged anew; gives the kind of each such finding to `count`.
    pub(super) fn list(&self, upstream: &str, tools: &[Judged], drops: bool, count: impl Fn(Kind)) {
        let mut lines = Lines { upstream, drops, left: LINES, more: 0 };
        // Tools without a name are told apart by their place.
        for (index, judged) in tools.iter().enumerate() {
            let key = match &judged.name {
                Some(name) => self.hashes.hash_one(name),
                None => self.hashes.hash_one(index),
            };
            if !self.is_news(key, &judged.findings) {
                continue;
            }
            for finding in &judged.findings {
                count(finding.kind);
                lines.one(finding);
            }
        }
        lines.end();
    }

    /// The same for a finding that is no part of a verdict.
    pub(super) fn one(&self, upstream: &str, finding: &Finding, drops: bool, count: impl Fn(Kind)) {
        let key = self.hashes.hash_one((&finding.tool, finding.kind));
        if self.is_news(key, std::slice::from_ref(finding)) {
            count(finding.kind);
            Lines { upstream, drops, left: 1, more: 0 }.one(finding);
        }
    }

    fn is_news(&self, key: u64, findings: &[Finding]) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if findings.is_empty() {
            told.remove(&key);
            return false;
        }
        let now = self.hashes.hash_one(findings);
        if told.get(&key) == Some(&now) {
            return false;
        }
        if told.len() >= self.most && !told.contains_key(&key) {
            // Whichever it is, at worst it is told once more.
            let one = told.keys().next().copied();
            one.and_then(|one| told.remove(&one));
        }
        told.insert(key, now);
        true
    }
}

struct Lines<'a> {
    upstream: &'a str,
    drops: bool,
    left: usize,
    more: usize,
}

impl Lines<'_> {
    fn one(&mut self, finding: &Finding) {
        if self.left == 0 {
            self.more += 1;
            return;
        }
        self.left -= 1;
        let (upstream, tool, kind) = (self.upstream, &*finding.tool, finding.kind);
        let (at, remedy) = (&*finding.at, kind.remedy());
        match kind.weight() {
            Weight::Bad if self.drops => {
                tracing::warn!(upstream, tool, at, kind = kind.label(), remedy, "tool left out: {finding}");
            }
            Weight::Bad => {
                tracing::warn!(
                    upstream,
                    tool,
                    at,
                    kind = kind.label(),
                    remedy,
                    "bad tool passed on: {finding}"
                );
            }
            Weight::Mended | Weight::Note => {
                tracing::info!(upstream, tool, at, kind = kind.label(), remedy, "odd tool: {finding}");
            }
        }
    }

    fn end(self) {
        if self.more > 0 {
            tracing::warn!(
                upstream = self.upstream,
                more = self.more,
                "more findings of the same list; `mcp-janus probe` lists all"
            );
        }
    }
}
