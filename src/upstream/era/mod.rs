//! Which era an upstream speaks.
//!
//! Owns the decision: configured, known from before (`verdicts`), or found out by one probe for all who wait (`probe`).
//! The client's own request is never the probe (C40), and legacy is believed only once `initialize` has succeeded.
//! Rules: A15.2-A15.6, B13; cases C34-C36, C39-C41; architecture section 4, "Era detection".

mod presumption;
mod probe;
mod verdicts;

pub use probe::Finding;
pub use verdicts::{Verdicts, VerdictsError};

use super::Shared;
use super::flight::Flights;
use super::legacy::Legacy;
use crate::config::EraSetting;
use crate::exchange::{Call, Fault, FaultKind, Principal};
use crate::telemetry::metrics::{LikePair, Verdict};
use crate::wire::version::Era;
use hyper::HeaderMap;
use presumption::Presumption;
pub use presumption::Serves;
use probe::Probed;
use std::sync::Arc;

/// Finds out and remembers the era of one upstream.
pub struct Detector {
    shared: Arc<Shared>,
    legacy: Arc<Legacy>,
    verdicts: Arc<Verdicts>,
    /// What the verdict is filed under (B13).
    endpoint: String,
    probes: Flights<(), Detection>,
    /// Probes for legacy clients, which need no session of the proxy's own.
    looks: Flights<(), Detection>,
    presumed: Arc<Presumption>,
}

/// At which side of a server a legacy client's request goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Legacy,
    Modern,
    /// The server is modern, and may be legacy too: the client's own `initialize` will tell.
    Try,
}

/// What a legacy client comes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comes {
    /// `askable`: it declares that it can be asked something.
    Initialize {
        askable: bool,
    },
    /// It names a session.
    InSession,
    Bare,
}

/// How one detection ended.
#[derive(Debug, Clone)]
struct Detection {
    /// Whose credential it ran under.
    principal: Principal,
    result: Result<Era, Fault>,
}

impl Detector {
    pub(super) fn new(shared: Arc<Shared>, legacy: Arc<Legacy>, verdicts: Arc<Verdicts>) -> Self {
        let endpoint = shared.transport.endpoint();
        let probes = Flights::new(shared.shutdown.clone());
        let looks = Flights::new(shared.shutdown.clone());
        Self { shared, legacy, verdicts, endpoint, probes, looks, presumed: Arc::default() }
    }

    /// The era in which the call goes on.
    pub async fn of(&self, call: &Call) -> Result<Era, Fault> {
        match self.shared.settings.era {
            EraSetting::Modern => return Ok(Era::Modern),
            EraSetting::Legacy => return Ok(Era::Legacy),
            EraSetting::Auto if self.shared.transport.is_legacy_only() => return Ok(Era::Legacy),
            EraSetting::Auto => {}
        }
        if let Some(era) = self.verdicts.get(&self.endpoint) {
            if era == Era::Legacy && self.verdicts.claim_review(&self.endpoint, self.shared.settings.era_ttl)
            {
                self.review(call);
            }
            return Ok(era);
        }
        // Boxed, as it is large and rare.
        Box::pin(shared_look(&self.probes, call.principal, || self.detect(call))).await
    }

    /// The side of the server at which the request of a legacy client goes on. Nothing is opened for it: a server that is
    /// not modern is sent what the client sent, and its own answer to `initialize` says what it is. One that is modern may
    /// serve legacy clients as well, which is the better pair; unless it does so without sessions and the client can be asked,
    /// since what such a client declares would be lost.
    pub async fn of_legacy_client(
        &self,
        principal: Principal,
        client: &HeaderMap,
        comes: Comes,
    ) -> Result<Side, Fault> {
        match self.shared.settings.era {
            EraSetting::Modern => return Ok(Side::Modern),
            EraSetting::Legacy => return Ok(Side::Legacy),
            EraSetting::Auto if self.shared.transport.is_legacy_only() => return Ok(Side::Legacy),
            EraSetting::Auto => {}
        }
        let era = match self.verdicts.get(&self.endpoint) {
            Some(era) => era,
            None if self.presumed.holds() => Era::Legacy,
            None => Box::pin(shared_look(&self.looks, principal, || self.look(principal, client))).await?,
        };
        Ok(match era {
            Era::Legacy => Side::Legacy,
            Era::Modern => match (self.presumed.serves(), comes) {
                (Serves::Sessions, _) => Side::Legacy,
                // A server without sessions cannot ask; and it has issued none, so it cannot say that one is lost.
                (Serves::Stateless, Comes::Initialize { askable: true } | Comes::InSession) => Side::Modern,
                (Serves::Stateless, Comes::Initialize { askable: false } | Comes::Bare) => Side::Legacy,
                (Serves::Nothing, Comes::Initialize { .. }) if self.presumed.claim_try() => Side::Try,
                (Serves::Nothing, _) => Side::Modern,
            },
        })
    }

    /// The try of a legacy client's `initialize` has shown nothing; the next one may show more.
    pub fn untried(&self) {
        self.presumed.untried();
    }

    /// What the try of a legacy client's `initialize` has shown.
    pub fn tried(&self, serves: Serves) {
        self.presumed.tried(serves);
        self.shared.metrics.like_pair(match serves {
            Serves::Sessions | Serves::Stateless => LikePair::LegacyToo,
            Serves::Nothing => LikePair::ModernOnly,
        });
        tracing::debug!(upstream = %self.shared.settings.name, ?serves, "a modern server was asked whether it serves legacy clients too");
    }

    /// A legacy client's request was refused as only a modern server refuses it: whether it is worth another look.
    pub fn doubted(&self) -> bool {
        let calm = self.presumed.doubt();
        match self.verdicts.get(&self.endpoint) {
            Some(Era::Legacy) => self.contradicted(Era::Legacy),
            Some(Era::Modern) => {
                self.presumed.tried(Serves::Nothing);
                true
            }
            None => calm && self.shared.settings.era == EraSetting::Auto,
        }
    }

    /// The server has said of itself that it is modern, in refusing a legacy client's request. Whether that is believed: not where
    /// another era is configured.
    pub fn is_modern(&self) -> bool {
        let auto = self.shared.settings.era == EraSetting::Auto;
        if auto {
            self.presumed.doubt();
            self.verdicts.set(&self.endpoint, Era::Modern);
            self.shared.metrics.detected(Verdict::Modern);
            tracing::info!(upstream = %self.shared.settings.name, "the upstream server says that it is modern");
        }
        auto
    }

    /// The upstream did not behave as `era`: the next call looks anew. Returns whether it will; not when the era is
    /// configured, nor more than once in a short time, so that replicas of two eras cause no storm (C39e).
    pub fn contradicted(&self, era: Era) -> bool {
        match self.shared.settings.era {
            EraSetting::Auto => {
                let forgotten = self.verdicts.contradict(&self.endpoint, era);
                if forgotten {
                    self.shared.metrics.contradicted();
                    tracing::info!(upstream = %self.shared.settings.name, was = era.name(), "the upstream server seems to have changed its era; probing again");
                }
                forgotten
            }
            EraSetting::Modern | EraSetting::Legacy => false,
        }
    }

    /// One look, for `mcp-janus probe`; its verdict holds for what follows.
    pub async fn examine(&self, call: &Call) -> (Finding, Result<Era, Fault>) {
        let (finding, result) = examine(&self.shared, &self.legacy, call).await;
        if let Ok(era) = &result {
            self.verdicts.set(&self.endpoint, *era);
        }
        (finding, result)
    }

    fn look(
        &self,
        principal: Principal,
        client: &HeaderMap,
    ) -> impl Future<Output = Detection> + Send + use<> {
        let (shared, verdicts, endpoint) =
            (self.shared.clone(), self.verdicts.clone(), self.endpoint.clone());
        let (presumed, headers) = (self.presumed.clone(), client.clone());
        async move {
            let Probed { finding, then } = probe::probe(&shared, &headers).await;
            let result = match then {
                probe::Then::Modern => {
                    verdicts.set(&endpoint, Era::Modern);
                    Ok(Era::Modern)
                }
                probe::Then::NoVerdict(fault) => Err(fault),
                // The credential was refused, which decides nothing: the client's own request gets the same answer.
                probe::Then::TryLegacy { otherwise: Some(_) } => {
                    shared.metrics.detected(Verdict::Undecided);
                    tracing::info!(upstream = %shared.settings.name, probe = %finding, "era not found out for a legacy client; its request is passed on");
                    return Detection { principal, result: Ok(Era::Legacy) };
                }
                probe::Then::TryLegacy { otherwise: None } => {
                    if verdicts.get(&endpoint) == Some(Era::Modern) {
                        verdicts.contradict(&endpoint, Era::Modern);
                    }
                    presumed.hold();
                    Ok(Era::Legacy)
                }
            };
            shared.metrics.detected(verdict(result.as_ref().ok()));
            match &result {
                Ok(era) => {
                    tracing::info!(upstream = %shared.settings.name, era = era.name(), probe = %finding, "era looked at for a legacy client");
                }
                Err(fault) => {
                    tracing::warn!(upstream = %shared.settings.name, %fault, probe = %finding, "era not detected");
                }
            }
            Detection { principal, result }
        }
    }

    fn detect(&self, call: &Call) -> impl Future<Output = Detection> + Send + use<> {
        let (shared, legacy) = (self.shared.clone(), self.legacy.clone());
        let (verdicts, endpoint, call) = (self.verdicts.clone(), self.endpoint.clone(), call.clone());
        async move {
            let (finding, result) = examine(&shared, &legacy, &call).await;
            shared.metrics.detected(verdict(result.as_ref().ok()));
            match &result {
                Ok(era) => {
                    tracing::info!(upstream = %shared.settings.name, era = era.name(), probe = %finding, "era detected");
                    verdicts.set(&endpoint, *era);
                }
                Err(fault) => {
                    tracing::warn!(upstream = %shared.settings.name, %fault, probe = %finding, "era not detected");
                }
            }
            Detection { principal: call.principal, result }
        }
    }

    /// Looks again in the background whether a legacy server has become a modern one (C39c).
    fn review(&self, call: &Call) {
        let (shared, verdicts, endpoint) =
            (self.shared.clone(), self.verdicts.clone(), self.endpoint.clone());
        let headers = call.headers.clone();
        // Owned by the tracker; ends with its one probe, which is bounded by `timeouts.probe`.
        drop(self.shared.shutdown.spawn_until_drain(async move {
            let probed = probe::probe(&shared, &headers).await;
            if let probe::Then::Modern = probed.then {
                shared.metrics.detected(Verdict::Modern);
                tracing::info!(upstream = %shared.settings.name, "the legacy upstream server now speaks the modern era");
                verdicts.set(&endpoint, Era::Modern);
            }
        }));
    }
}

/// The probe and, where it does not show a modern server, the opening of a session.
async fn examine(shared: &Shared, legacy: &Arc<Legacy>, call: &Call) -> (Finding, Result<Era, Fault>) {
    let Probed { finding, then } = probe::probe(shared, &call.headers).await;
    let result = match then {
        probe::Then::Modern => Ok(Era::Modern),
        probe::Then::NoVerdict(fault) => Err(fault),
        probe::Then::TryLegacy { otherwise } => match legacy.lease(call).await {
            // It was slow to start, and has answered since (C38); one that has initialized too is both.
            _ if probe::late(shared).is_some_and(|probed| probed.is_modern()) => Ok(Era::Modern),
            Ok(_) => Ok(Era::Legacy),
            // It was too slow for the probe, and says so now.
            Err(open) if open.offers_modern => Ok(Era::Modern),
            // Where the probe was refused for its credential, that refusal is the caller's answer (C34c).
            Err(open) => Err(otherwise.unwrap_or_else(|| compound(&finding, open.fault))),
        },
    };
    (finding, result)
}

fn verdict(era: Option<&Era>) -> Verdict {
    match era {
        Some(Era::Modern) => Verdict::Modern,
        Some(Era::Legacy) => Verdict::Legacy,
        None => Verdict::Undecided,
    }
}

/// One look for all who wait for it. A refused credential says nothing to the holder of another one. Whoever has waited
/// for others' twice looks alone, so that a crowd of bad ones cannot keep a good one waiting.
async fn shared_look<F>(
    looks: &Flights<(), Detection>,
    principal: Principal,
    look: impl Fn() -> F,
) -> Result<Era, Fault>
where
    F: Future<Output = Detection> + Send + 'static,
{
    for _ in 0..2 {
        let Some(detection) = looks.join((), &look).await else {
            return Err(Fault::new(FaultKind::Draining, "the proxy is shutting down"));
        };
        match detection.result {
            Ok(era) => return Ok(era),
            Err(fault) if detection.principal == principal => return Err(fault),
            Err(Fault { kind: FaultKind::Unauthorized { .. } | FaultKind::RateLimited, .. }) => {}
            // The words are another principal's (invariant 2).
            Err(fault) => {
                return Err(Fault::new(fault.kind, "the upstream server's era could not be found out"));
            }
        }
    }
    look().await.result
}

/// Both phases in one text, where both failed.
fn compound(finding: &Finding, mut fault: Fault) -> Fault {
    fault.text = format!("{} (before that, server/discover: {finding})", fault.text).into();
    fault
}
