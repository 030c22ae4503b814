//! Verdicts, kept by the bytes of the list that they are about.
//!
//! Owns finding one again: by a hash of a few places of the text, and then by all of its bytes, so that no server can make a list
//! pass for another; and the bound of it all, beyond which the one that was used longest ago makes room. Verdicts hold nothing of
//! whom the list was for, so they are shared.

use crate::schema::Speaker;
use crate::schema::list::Verdict;
use crate::schema::tool::Judged;
use crate::telemetry::metrics::{HeldBytes, UpstreamMetrics};
use bytes::Bytes;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// A list and what was found of it. Spans of the verdict count from the text's first byte.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) speaker: Speaker,
    /// The array, a text of its own.
    pub(super) text: Bytes,
    pub(super) verdict: Arc<Verdict>,
    /// Where in the verdict a tool stands; of several with one name the first good one.
    pub(super) by_name: HashMap<Box<str>, usize>,
    /// What keeping it takes, roughly.
    pub(super) bytes: usize,
    _counted: HeldBytes,
}

/// See the module.
pub(super) struct Verdicts {
    state: Mutex<State>,
    hashes: RandomState,
    /// Bytes, of lists and of what is kept of them.
    most: usize,
}

#[derive(Default)]
struct State {
    all: HashMap<u64, Kept>,
    bytes: usize,
    clock: u64,
}

struct Kept {
    judgement: Arc<Judgement>,
    used: u64,
}

impl Judgement {
    pub(super) fn new(speaker: Speaker, text: &[u8], verdict: Verdict, metrics: &UpstreamMetrics) -> Self {
        let mut by_name = HashMap::with_capacity(verdict.tools.len());
        for (index, judged) in verdict.tools.iter().enumerate() {
            if let Some(name) = &judged.name {
                let place = by_name.entry(name.clone()).or_insert(index);
                // A bad one costs a good one of its name nothing.
                if verdict.tools.get(*place).is_some_and(Judged::is_bad) && !judged.is_bad() {
                    *place = index;
                }
            }
        }
        let findings = verdict.tools.iter().flat_map(|judged| &judged.findings);
        let words: usize =
            findings.map(|finding| finding.tool.len() + finding.at.len() + finding.detail.len() + 64).sum();
        let bytes = text.len() + words + verdict.tools.len() * 256;
        let _counted = metrics.schema_cached(bytes);
        let (text, verdict) = (Bytes::copy_from_slice(text), Arc::new(verdict));
        Self { speaker, text, verdict, by_name, bytes, _counted }
    }
}

impl Verdicts {
    pub(super) fn new(most: usize) -> Self {
        Self { state: Mutex::default(), hashes: RandomState::new(), most }
    }

    pub(super) fn find(&self, speaker: Speaker, text: &[u8]) -> Option<Arc<Judgement>> {
        let key = self.key(speaker, text);
        let found = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.clock += 1;
            let clock = state.clock;
            let kept = state.all.get_mut(&key)?;
            kept.used = clock;
            kept.judgement.clone()
        };
        (found.speaker == speaker && found.text == text).then_some(found)
    }

    pub(super) fn keep(&self, judgement: &Arc<Judgement>) {
        let bytes = judgement.bytes;
        if bytes > self.most {
            return;
        }
        let key = self.key(judgement.speaker, &judgement.text);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let kept = Kept { judgement: judgement.clone(), used: state.clock };
        state.bytes += bytes;
        if let Some(before) = state.all.insert(key, kept) {
            state.bytes -= before.judgement.bytes;
        }
        while state.bytes > self.most {
            let Some(oldest) = state.all.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| *key) else {
                break;
            };
            if let Some(gone) = state.all.remove(&oldest) {
                state.bytes -= gone.judgement.bytes;
            }
        }
    }

    /// Of a list's length and of some of its bytes, evenly spread: two lists of one key are told apart by their bytes.
    fn key(&self, speaker: Speaker, text: &[u8]) -> u64 {
        const PLACES: usize = 16;
        const AT_EACH: usize = 32;
        let mut hasher = self.hashes.build_hasher();
        (speaker, text.len()).hash(&mut hasher);
        let step = (text.len() / PLACES).max(1);
        for place in text.chunks(step) {
            hasher.write(&place[..place.len().min(AT_EACH)]);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Metrics;

    fn judgement(text: &[u8]) -> Arc<Judgement> {
        let metrics = Metrics::new().unwrap().upstream("up");
        Arc::new(Judgement::new(Speaker::Modern, text, Verdict::default(), &metrics))
    }

    #[test]
    fn a_list_is_known_by_all_of_its_bytes_and_its_speaker() {
        let verdicts = Verdicts::new(1 << 20);
        // They differ where no sample is taken.
        let (mut one, mut other) = (vec![b' '; 10_000], vec![b' '; 10_000]);
        (one[40], other[40]) = (b'1', b'2');
        let kept = judgement(&one);
        verdicts.keep(&kept);
        assert!(verdicts.find(Speaker::Modern, &one).is_some_and(|found| Arc::ptr_eq(&found, &kept)));
        assert!(verdicts.find(Speaker::Modern, &other).is_none());
        assert!(verdicts.find(Speaker::Legacy(None), &one).is_none());
        verdicts.keep(&judgement(&other));
        assert!(verdicts.find(Speaker::Modern, &other).is_some());
    }

    #[test]
    fn the_oldest_makes_room() {
        let verdicts = Verdicts::new(3000);
        let lists: Vec<Vec<u8>> = (0..4).map(|n| vec![b'0' + n; 1000]).collect();
        for list in &lists[..3] {
            verdicts.keep(&judgement(list));
        }
        assert!(verdicts.find(Speaker::Modern, &lists[0]).is_some());
        verdicts.keep(&judgement(&lists[3]));
        let known = lists.iter().map(|list| verdicts.find(Speaker::Modern, list).is_some());
        assert_eq!(known.collect::<Vec<_>>(), [true, false, true, true]);
        verdicts.keep(&judgement(&[b'x'; 4000]));
        assert!(verdicts.find(Speaker::Modern, &[b'x'; 4000]).is_none(), "larger than all that may be kept");
    }
}
