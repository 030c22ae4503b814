//! What is known of endpoints' eras, for all upstreams of the process and, if wished, for the next process.
//!
//! Owns the map and its file. A verdict holds until it is contradicted; a legacy one is looked at again after a time. It
//! says nothing about what a server can do, so it may be shared between principals (architecture, "Principal").

use crate::wire::version::Era;
use dashmap::DashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// A verdict is not contradicted twice within this time (C39e).
const CALM: Duration = Duration::from_secs(1);

/// Bounded by the number of configured upstreams, since only their endpoints are filed.
#[derive(Debug, Default)]
pub struct Verdicts {
    known: DashMap<String, Verdict>,
    /// When an endpoint's verdict was contradicted last.
    contradicted: DashMap<String, Option<Instant>>,
    file: Option<PathBuf>,
    /// One writer at a time; holds nothing.
    writing: std::sync::Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
struct Verdict {
    era: Era,
    /// Seconds since the epoch at which it was found.
    found: u64,
    reviewed: Option<Instant>,
}

#[derive(Debug, thiserror::Error)]
#[error("era_cache_file: {}: {source}", path.display())]
pub struct VerdictsError {
    path: PathBuf,
    source: io::Error,
}

/// The file's form.
#[derive(Debug, Serialize, Deserialize)]
struct Filed {
    era: FiledEra,
    found: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FiledEra {
    Modern,
    Legacy,
}

impl Verdicts {
    /// Reads the file if there is one. A missing file is empty; one that cannot be read or understood is an error, so
    /// that a mistyped path does not destroy somebody's data.
    pub fn load(file: Option<&Path>) -> Result<Self, VerdictsError> {
        let verdicts = Self { file: file.map(Path::to_owned), ..Self::default() };
        let Some(path) = file else { return Ok(verdicts) };
        let fault = |source| VerdictsError { path: path.to_owned(), source };
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(verdicts),
            Err(error) => return Err(fault(error)),
        };
        if text.trim_ascii().is_empty() {
            return Ok(verdicts);
        }
        let filed: BTreeMap<String, Filed> =
            serde_json::from_slice(&text).map_err(|error| fault(io::Error::other(error)))?;
        for (endpoint, Filed { era, found }) in filed {
            let era = match era {
                FiledEra::Modern => Era::Modern,
                FiledEra::Legacy => Era::Legacy,
            };
            verdicts.known.insert(endpoint, Verdict { era, found, reviewed: None });
        }
        Ok(verdicts)
    }

    pub(super) fn get(&self, endpoint: &str) -> Option<Era> {
        Some(self.known.get(endpoint)?.era)
    }

    pub(super) fn set(&self, endpoint: &str, era: Era) {
        self.known.insert(endpoint.to_owned(), Verdict { era, found: now(), reviewed: None });
        self.save();
    }

    /// Forgets the verdict if it is `era` still; `false` if the same was done only just now. Where another caller has
    /// forgotten or replaced it meanwhile, this one should look again too.
    pub(super) fn contradict(&self, endpoint: &str, era: Era) -> bool {
        if self.known.get(endpoint).is_none_or(|verdict| verdict.era != era) {
            return true;
        }
        let now = Instant::now();
        let mut last = self.contradicted.entry(endpoint.to_owned()).or_default();
        if last.is_some_and(|last| now.duration_since(last) < CALM) {
            return false;
        }
        *last = Some(now);
        drop(last);
        self.known.remove_if(endpoint, |_, verdict| verdict.era == era);
        self.save();
        true
    }

    /// Whether the verdict is older than `ttl`; the first to ask in a `ttl` gets the work.
    pub(super) fn claim_review(&self, endpoint: &str, ttl: Duration) -> bool {
        let Some(mut verdict) = self.known.get_mut(endpoint) else { return false };
        let age = Duration::from_secs(now().saturating_sub(verdict.found));
        let due = match verdict.reviewed {
            None => age >= ttl,
            Some(last) => last.elapsed() >= ttl,
        };
        if due {
            verdict.reviewed = Some(Instant::now());
        }
        due
    }

    /// Writes the file beside the old one and puts it in its place. Verdicts are few and change seldom.
    fn save(&self) {
        let Some(path) = &self.file else { return };
        let filed: BTreeMap<String, Filed> = self
            .known
            .iter()
            .map(|entry| {
                let era = match entry.era {
                    Era::Modern => FiledEra::Modern,
                    Era::Legacy => FiledEra::Legacy,
                };
                (entry.key().clone(), Filed { era, found: entry.found })
            })
            .collect();
        let _one = self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let beside = path.with_extension("tmp");
        let written = serde_json::to_vec_pretty(&filed)
            .map_err(io::Error::other)
            .and_then(|text| std::fs::write(&beside, text))
            .and_then(|()| std::fs::rename(&beside, path));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "era_cache_file could not be written");
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_survive_in_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("eras.json");
        let verdicts = Verdicts::load(Some(&path)).unwrap();
        verdicts.set("http://a/mcp", Era::Legacy);
        verdicts.set("http://a/other", Era::Modern);
        let again = Verdicts::load(Some(&path)).unwrap();
        assert_eq!(again.get("http://a/mcp"), Some(Era::Legacy));
        assert_eq!(again.get("http://a/other"), Some(Era::Modern));
        assert_eq!(again.get("http://a"), None);
        std::fs::write(&path, "not ours").unwrap();
        assert!(Verdicts::load(Some(&path)).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn c39_contradictions_do_not_storm_and_reviews_are_claimed_once() {
        let verdicts = Verdicts::default();
        verdicts.set("e", Era::Modern);
        assert!(verdicts.contradict("e", Era::Modern));
        assert_eq!(verdicts.get("e"), None);
        verdicts.set("e", Era::Legacy);
        assert!(!verdicts.contradict("e", Era::Legacy), "too soon");
        assert_eq!(verdicts.get("e"), Some(Era::Legacy));
        assert!(verdicts.contradict("e", Era::Modern), "already replaced");
        tokio::time::advance(CALM).await;
        assert!(verdicts.contradict("e", Era::Legacy));
        verdicts.set("e", Era::Legacy);
        assert!(verdicts.claim_review("e", Duration::ZERO));
        assert!(!verdicts.claim_review("e", Duration::from_secs(60)));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(verdicts.claim_review("e", Duration::from_secs(60)));
    }
}
