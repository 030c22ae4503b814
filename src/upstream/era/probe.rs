//! The one question that tells the eras apart, and the table of its answers.
//!
//! Owns sending `server/discover` and judging what comes back. Never sends anything else and keeps nothing.
//! Rules: A15.2-A15.4, A15.6; cases C34-C36, C41; vectors D32, D105.

use super::super::Shared;
use super::super::reply::{Messages, Refusal, Reply};
use super::super::transport::SendError;
use crate::exchange::{Fault, FaultKind};
use crate::translate::discover;
use crate::wire::jsonrpc::{Message, Reply as RpcReply, Response, code};
use crate::wire::version::{LegacyRevision, MODERN};
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use std::fmt;
use tokio::time::timeout;

/// What the probe found, in words for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A discover result with our revision.
    Discovered,
    /// -32022, -32020 or -32021 as only a modern server sends them.
    ModernError(i64),
    /// A discover result, or -32022, that names other versions only.
    OtherVersions(Vec<String>),
    /// A JSON-RPC error that says nothing of eras; over pipes without a status.
    Error {
        status: Option<u16>,
        code: i64,
    },
    /// A status without a JSON-RPC error.
    Status(u16),
    /// 2xx with something that is no discover result; over pipes without a status.
    Junk {
        status: Option<u16>,
    },
    NoAnswer(String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Discovered => write!(f, "a discover result that offers {MODERN}"),
            Finding::ModernError(code) => write!(f, "the modern error {code}"),
            Finding::OtherVersions(versions) => write!(f, "only the versions {}", versions.join(", ")),
            Finding::Error { status: Some(status), code } => {
                write!(f, "HTTP status {status} with the error {code}")
            }
            Finding::Error { status: None, code } => write!(f, "the error {code}"),
            Finding::Status(status) => write!(f, "HTTP status {status}"),
            Finding::Junk { status: Some(status) } => {
                write!(f, "HTTP status {status} with something that is no discover result")
            }
            Finding::Junk { status: None } => f.write_str("something that is no discover result"),
            Finding::NoAnswer(why) => f.write_str(why),
        }
    }
}

/// What follows from the finding.
#[derive(Debug)]
pub(super) enum Then {
    Modern,
    /// Legacy if `initialize` succeeds; `otherwise` is the caller's answer if it does not.
    TryLegacy {
        otherwise: Option<Fault>,
    },
    /// Nothing is learnt and nothing kept.
    NoVerdict(Fault),
}

#[derive(Debug)]
pub(super) struct Probed {
    pub(super) finding: Finding,
    pub(super) then: Then,
}

impl Probed {
    pub(super) fn is_modern(&self) -> bool {
        matches!(self.then, Then::Modern)
    }
}

const PROBE: u64 = 0;

pub(super) async fn probe(shared: &Shared, client: &HeaderMap) -> Probed {
    let limit = shared.settings.timeouts.probe;
    let asked = async {
        let head = shared.heads.probe(client);
        let has_credential = head.headers.contains_key(AUTHORIZATION);
        let sent = shared.transport.send_within(limit, head, discover::discover_request(PROBE)).await;
        let response = match sent {
            Ok(response) => response,
            // Over pipes silence and the end are what a legacy server says to a request that it does not know (A15.1).
            Err(
                error @ (SendError::Timeout { .. }
                | SendError::Ended { .. }
                | SendError::NoMessage
                | SendError::TooLarge),
            ) if shared.transport.is_process() => {
                return legacy(Finding::NoAnswer(error.to_string()));
            }
            Err(error) => {
                let fault = super::super::send_fault(&shared.settings.name, &error);
                return no_verdict(Finding::NoAnswer(error.to_string()), fault);
            }
        };
        let status = response.status().as_u16();
        match Reply::read(response, shared.settings.limits.message_bytes, shared.limits).await {
            Reply::Accepted => legacy(Finding::Junk { status: told(shared, status) }),
            Reply::Messages(messages) => match answer(messages).await {
                Some(answer) => judge(shared, status, &answer),
                None => legacy(Finding::Junk { status: told(shared, status) }),
            },
            Reply::Refused(refusal) => refused(shared, &refusal, has_credential),
        }
    };
    timeout(limit, asked).await.unwrap_or_else(|_| {
        let text = format!("the upstream server did not answer server/discover within {limit:?}");
        if shared.transport.is_process() {
            return legacy(Finding::NoAnswer(text));
        }
        no_verdict(Finding::NoAnswer(text.clone()), Fault::new(FaultKind::Timeout, text))
    })
}

/// What the answer to a probe says that came too late for it, if one has come.
pub(super) fn late(shared: &Shared) -> Option<Probed> {
    shared.transport.late_answer().map(|answer| judge(shared, 200, &answer))
}

/// The first answer; whatever breaks it off is junk to the judge.
async fn answer(mut messages: Messages) -> Option<Response> {
    loop {
        match messages.next().await.ok()?? {
            Message::Response(response) => return Some(response),
            Message::Request(_) | Message::Notification(_) => {}
        }
    }
}

fn judge(shared: &Shared, status: u16, answer: &Response) -> Probed {
    match &answer.reply {
        RpcReply::Result(body) => match discover::offers_modern(answer, body) {
            Some(true) => Probed { finding: Finding::Discovered, then: Then::Modern },
            Some(false) => {
                let versions = discover::listed_versions(answer, body).unwrap_or_default();
                legacy(Finding::OtherVersions(versions))
            }
            None => legacy(Finding::Junk { status: told(shared, status) }),
        },
        RpcReply::Error(error) => match error.code {
            code::UNSUPPORTED_PROTOCOL_VERSION => {
                match discover::supported_versions(&answer.text, error.data, shared.limits) {
                    None => legacy(Finding::Error { status: told(shared, status), code: error.code }),
                    Some(versions) if versions.iter().any(|version| version == MODERN) => {
                        Probed { finding: Finding::ModernError(error.code), then: Then::Modern }
                    }
                    Some(versions)
                        if versions.iter().any(|version| LegacyRevision::parse(version).is_some()) =>
                    {
                        legacy(Finding::OtherVersions(versions))
                    }
                    Some(versions) => {
                        let finding = Finding::OtherVersions(versions);
                        let text =
                            format!("no protocol version in common with the upstream server: {finding}");
                        no_verdict(finding, Fault::bad_gateway(text))
                    }
                }
            }
            // Only a modern server has these; that it sends them means that our request is at fault (A15.3).
            code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY if status == 400 => {
                tracing::warn!(upstream = %shared.settings.name, code = error.code, "the upstream server is modern but refuses the probe");
                Probed { finding: Finding::ModernError(error.code), then: Then::Modern }
            }
            code => legacy(Finding::Error { status: told(shared, status), code }),
        },
    }
}

fn refused(shared: &Shared, refusal: &Refusal, has_credential: bool) -> Probed {
    let status = refusal.status.as_u16();
    let finding = match refusal.code() {
        Some(code) => Finding::Error { status: told(shared, status), code },
        None => Finding::Status(status),
    };
    match status {
        401 | 403 if has_credential => {
            // Some servers guard only what they do not know; the credential may do for `initialize` (C34c).
            Probed { finding, then: Then::TryLegacy { otherwise: Some(refusal.fault("server/discover")) } }
        }
        // A redirect that is not followed never gets here. 421: the wrong host, which says nothing of eras (C61).
        401 | 403 | 407 | 421 | 429 | 500.. => no_verdict(finding, refusal.fault("server/discover")),
        _ => match &refusal.answer {
            Some(answer) => judge(shared, status, answer),
            None => legacy(finding),
        },
    }
}

/// The status, where there is one but in the answers that are made of a program's.
fn told(shared: &Shared, status: u16) -> Option<u16> {
    (!shared.transport.is_process()).then_some(status)
}

fn legacy(finding: Finding) -> Probed {
    Probed { finding, then: Then::TryLegacy { otherwise: None } }
}

fn no_verdict(finding: Finding, fault: Fault) -> Probed {
    Probed { finding, then: Then::NoVerdict(fault) }
}
