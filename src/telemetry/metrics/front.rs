//! What is counted of clients as a whole, before any upstream is known.

use super::channel::Stdio;
use super::families::Families;
use super::held::Connection;
use super::labels::Limit;
use prometheus::IntCounter;
use std::sync::Arc;

/// The handles of the client side.
pub struct FrontMetrics {
    families: Arc<Families>,
    limits: Vec<IntCounter>,
    stdio: Stdio,
}

impl FrontMetrics {
    pub(super) fn new(families: Arc<Families>) -> Self {
        let limits = Limit::WORDS.iter().map(|word| families.limit_hits.with_label_values(&[word])).collect();
        let stdio = Stdio::new(&families.channel);
        Self { families, limits, stdio }
    }

    pub(super) fn stdio(&self) -> &Stdio {
        &self.stdio
    }

    /// A client's connection has been accepted.
    pub fn connection(&self) -> Connection {
        let families = &self.families;
        Connection::new(
            &families.client_connections,
            &families.client_accepted,
            &families.client_received,
            &families.client_sent,
        )
    }

    /// A request was refused before an endpoint was found for it.
    pub fn refused(&self, reason: &'static str) {
        self.families.refusals.with_label_values(&["", reason]).inc();
    }

    pub fn limit(&self, limit: Limit) {
        if let Some(hits) = self.limits.get(limit as usize) {
            hits.inc();
        }
    }
}
