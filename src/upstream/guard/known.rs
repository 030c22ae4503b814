//! What is known of a server's tools, for the calls that follow a list.
//!
//! Owns the lists that each scope has seen last, by page, and finding a tool in them. Bounded by `limits.catalogs` scopes, by a
//! number of pages each, and by bytes in all; what was used longest ago makes room. A tool that is not known here may be called:
//! its client has it from elsewhere.

use super::verdicts::Judgement;
use super::{Page, Scope};
use crate::schema::tool::Judged;
use crate::schema::{Dialect, Finding};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pages of one list that are remembered.
const PAGES: usize = 256;

/// Findings that are in no verdict.
const NOTES: usize = 256;

/// See the module.
pub(super) struct Known {
    state: Mutex<State>,
    scopes: usize,
    bytes: usize,
}

#[derive(Default)]
struct State {
    all: HashMap<Scope, Lists>,
    bytes: usize,
    clock: u64,
}

#[derive(Default)]
struct Lists {
    /// The one that was seen last stands last.
    pages: Vec<Arc<Judgement>>,
    /// What was found of them that is in no verdict.
    notes: Vec<Finding>,
    bytes: usize,
    used: u64,
}

/// What came of a list that passed.
pub(super) struct Learned {
    /// It is not the one that passed before.
    pub(super) news: bool,
    /// Something had to make room.
    pub(super) full: bool,
}

/// One tool of a list.
pub(super) struct Fact {
    pub(super) judgement: Arc<Judgement>,
    index: usize,
}

impl Fact {
    pub(super) fn judged(&self) -> Option<&Judged> {
        self.judgement.verdict.tools.get(self.index)
    }

    /// Its `inputSchema`, and the dialect that it is read in as far as that is known.
    pub(super) fn input(&self) -> Option<(Bytes, Option<Dialect>)> {
        let judged = self.judged()?;
        Some((self.judgement.text.slice(judged.input?.range()), judged.dialects[0]))
    }

    /// The same of its `outputSchema`.
    pub(super) fn output(&self) -> Option<(Bytes, Option<Dialect>)> {
        let judged = self.judged()?;
        let text = self.judgement.text.slice(judged.output?.range());
        (text != b"null"[..]).then_some((text, judged.dialects[1]))
    }
}

impl Known {
    pub(super) fn new(scopes: usize, bytes: usize) -> Self {
        Self { state: Mutex::default(), scopes, bytes }
    }

    /// Takes in a list, or a page of one.
    pub(super) fn learn(&self, scope: Scope, judgement: &Arc<Judgement>, page: Page) -> Learned {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.clock += 1;
        let lists = state.all.entry(scope).or_default();
        lists.used = state.clock;
        let last = lists.pages.last().is_some_and(|last| Arc::ptr_eq(last, judgement));
        if last && (page == Page::Part || lists.pages.len() == 1) {
            return Learned { news: false, full: false };
        }
        let before = lists.bytes;
        match page {
            Page::Whole => {
                lists.pages.clear();
                lists.notes.clear();
            }
            Page::Part => lists.pages.retain(|page| !Arc::ptr_eq(page, judgement)),
        }
        lists.pages.push(judgement.clone());
        let mut full = false;
        let bytes = |lists: &Lists| lists.pages.iter().map(|page| page.bytes).sum();
        lists.bytes = bytes(lists);
        while lists.pages.len() > PAGES || lists.bytes > self.bytes && lists.pages.len() > 1 {
            lists.pages.remove(0);
            lists.bytes = bytes(lists);
            full = true;
        }
        state.bytes = state.bytes - before + lists.bytes;
        while state.all.len() > 1 && (state.bytes > self.bytes || state.all.len() > self.scopes) {
            let oldest = state.all.iter().min_by_key(|(_, lists)| lists.used).map(|(scope, _)| *scope);
            let Some(gone) = oldest.and_then(|oldest| state.all.remove(&oldest)) else { break };
            state.bytes -= gone.bytes;
            full = true;
        }
        Learned { news: true, full }
    }

    /// Something that was found where a list was written anew.
    pub(super) fn note(&self, scope: Scope, findings: &[Finding]) {
        let mut state = self.lock();
        let Some(lists) = state.all.get_mut(&scope) else { return };
        for finding in findings {
            if lists.notes.len() < NOTES && !lists.notes.contains(finding) {
                lists.notes.push(finding.clone());
            }
        }
    }

    /// The tool as the list has it that was seen last.
    pub(super) fn find(&self, scope: Scope, name: &str) -> Option<Fact> {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.clock += 1;
        let lists = state.all.get_mut(&scope)?;
        lists.used = state.clock;
        lists.pages.iter().rev().find_map(|page| {
            let index = *page.by_name.get(name)?;
            Some(Fact { judgement: page.clone(), index })
        })
    }

    /// How many tools there are on the lists.
    pub(super) fn tools(&self, scope: Scope) -> usize {
        let state = self.lock();
        let pages = state.all.get(&scope).map_or(&[][..], |lists| &lists.pages);
        pages.iter().map(|page| page.verdict.tools.len()).sum()
    }

    /// What was found, in the order of the lists.
    pub(super) fn findings(&self, scope: Scope) -> Vec<Finding> {
        let state = self.lock();
        let Some(lists) = state.all.get(&scope) else { return Vec::new() };
        let tools = lists.pages.iter().flat_map(|page| &page.verdict.tools);
        tools.flat_map(|judged| &judged.findings).chain(&lists.notes).cloned().collect()
    }

    /// Held for a look or an entry.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Principal;
    use crate::schema::Speaker;
    use crate::schema::list::Verdict;
    use crate::schema::tool::Shape;
    use crate::telemetry::metrics::Metrics;
    use crate::wire::json::Span;

    fn list(names: &[&str], bytes: usize) -> Arc<Judgement> {
        let tool = |name: &&str| Judged {
            name: Some((*name).into()),
            shape: Shape::Sound,
            findings: Vec::new(),
            undeclared: [None; 2],
            dialects: [None; 2],
            headers_invalid: false,
            span: Span::default(),
            input: None,
            output: None,
        };
        let verdict = Verdict { tools: names.iter().map(tool).collect() };
        let metrics = Metrics::new().unwrap().upstream("up");
        Arc::new(Judgement::new(Speaker::Modern, &vec![b' '; bytes], verdict, &metrics))
    }

    fn scope(name: u8) -> Scope {
        Scope { principal: Principal::Credential([name; 32]), session: None }
    }

    #[test]
    fn pages_add_up_and_a_whole_list_takes_their_place() {
        let known = Known::new(10, 1 << 20);
        let (one, other) = (list(&["a", "b"], 10), list(&["c"], 10));
        known.learn(scope(1), &one, Page::Part);
        known.learn(scope(1), &other, Page::Part);
        let has = |name| known.find(scope(1), name).is_some();
        assert_eq!((has("a"), has("c"), has("d")), (true, true, false));
        assert!(known.find(scope(2), "a").is_none(), "invariant 2");
        known.learn(scope(1), &other, Page::Whole);
        assert_eq!((has("a"), has("c")), (false, true));
    }

    #[test]
    fn all_of_it_is_bounded() {
        let known = Known::new(2, 5000);
        let kept = |n: u8| known.find(scope(n), "a").is_some();
        for n in 1..=3 {
            known.learn(scope(n), &list(&["a"], 100), Page::Whole);
        }
        assert_eq!((kept(1), kept(2), kept(3)), (false, true, true), "limits.catalogs");
        assert!(known.learn(scope(3), &list(&["a"], 4500), Page::Whole).full);
        assert_eq!((kept(2), kept(3)), (false, true), "bytes");
        for n in 0..10 {
            known.learn(scope(3), &list(&["b"], 1000 + n), Page::Part);
        }
        assert!(!kept(3), "pages of one list");
    }
}
