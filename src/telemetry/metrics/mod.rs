//! Metrics: what is counted, under which names, and as the text that Prometheus reads.
//!
//! Owns the registry of one process, the handles by which the other modules count (`front`, `upstream`, `channel`,
//! `questions`, `bridge`, `schema`, `request`), and the rendering. Counting is an atomic addition through a handle that was
//! found before; nothing on the way of a request takes a lock or looks a label up. Labels are words of the program and names from the settings (`labels`), never a
//! client's. Does not own the listener that serves the text (`listen::admin`). A leaf: knows settings, `wire`
//! and the kinds of findings of `schema` only.

mod bridge;
mod channel;
mod families;
mod front;
mod held;
mod labels;
mod questions;
mod request;
mod schema;
mod upstream;

pub use channel::RunningProcess;
pub use front::FrontMetrics;
pub use held::{Connection, Held, HeldBytes, OpenStream, ReadySession};
pub use labels::{
    CallValue, CatalogFetch, ClientAnswer, ClientStream, Delivered, Ended, Exited, LikePair, Limit,
    ListCache, ListVerdict, NotAsked, NoticeKind, Noticed, Opened, ParkEnd, QuestionKind, ReplayDropped,
    Resumption, SessionBegan, SessionEnd, StateRefused, StreamKind, TokenRefresh, UpstreamLimit, ValueCheck,
    Verdict, Way, What,
};
pub use request::{Meter, Tally, Waiting};
pub use upstream::UpstreamMetrics;

use families::Families;
use prometheus::{Registry, TextEncoder};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The media type of [`Metrics::render`].
pub const TEXT_FORMAT: &str = prometheus::TEXT_FORMAT;

/// The names or labels of two metrics contradict each other.
#[derive(Debug, thiserror::Error)]
#[error("metrics: {0}")]
pub struct MetricsError(#[from] prometheus::Error);

type Dropped = Box<dyn Fn() -> u64 + Send + Sync>;

/// The metrics of one process.
pub struct Metrics {
    registry: Registry,
    families: Arc<Families>,
    front: Arc<FrontMetrics>,
    log: Mutex<Option<Dropped>>,
}

impl Metrics {
    pub fn new() -> Result<Self, MetricsError> {
        let registry = Registry::new();
        let families = Arc::new(Families::register(&registry)?);
        families.build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        families.started.set(i64::try_from(now).unwrap_or(i64::MAX));
        let front = Arc::new(FrontMetrics::new(families.clone()));
        Ok(Self { registry, families, front, log: Mutex::new(None) })
    }

    /// What is counted of clients as a whole.
    pub fn front(&self) -> &Arc<FrontMetrics> {
        &self.front
    }

    /// What is counted of the upstream with this name, which is one of the settings.
    pub fn upstream(&self, name: &str) -> Arc<UpstreamMetrics> {
        Arc::new(UpstreamMetrics::new(self.families.clone(), self.front.clone(), name))
    }

    /// Where the number of log lines dropped so far comes from.
    pub fn watch_log(&self, dropped: impl Fn() -> u64 + Send + Sync + 'static) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(dropped));
    }

    /// The names of all families, those included of which nothing has happened yet.
    pub fn names(&self) -> &[&'static str] {
        &self.families.names
    }

    /// The text that Prometheus reads.
    pub fn render(&self) -> Result<String, MetricsError> {
        // Held over the addition, so that of two readers at once one adds.
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dropped) = &*log {
            let counter = &self.families.log_lines_dropped;
            counter.inc_by(dropped().saturating_sub(counter.get()));
        }
        drop(log);
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn dropped_log_lines_are_those_of_the_log() {
        let metrics = Metrics::new().unwrap();
        let shows = |count: u64| {
            let line = format!("mcp_janus_log_lines_dropped_total {count}");
            assert!(metrics.render().unwrap().lines().any(|found| found == line), "{line}");
        };
        shows(0);
        let dropped = Arc::new(AtomicU64::new(3));
        let source = dropped.clone();
        metrics.watch_log(move || source.load(Ordering::Relaxed));
        shows(3);
        shows(3);
        dropped.store(5, Ordering::Relaxed);
        shows(5);
    }
}
