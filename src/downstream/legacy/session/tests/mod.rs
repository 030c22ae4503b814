//! What the tests of sessions share: a table, its clients and what they read.
#![allow(clippy::unwrap_used)]

mod bodies;
mod bounds;
mod notices;
mod random;
mod streams;
mod subjects;
mod table;

use super::*;
use crate::config::{SessionKey, Target, Upstream};
use crate::telemetry::metrics::Metrics;
use crate::translate::legacy_client::initialize::Can;
use crate::wire::payload::Payload;
use crate::wire::version::LegacyRevision;
use hyper::header::AUTHORIZATION;
use std::future::poll_fn;
use std::task::Poll;

/// What was told so lately is told again to whoever comes without a word.
pub(super) const AGAIN: Duration = Duration::from_secs(15);

/// A table and what must outlive it.
pub(super) struct Stage {
    pub(super) sessions: Arc<Sessions>,
    pub(super) metrics: Metrics,
    pub(super) shutdown: Shutdown,
}

pub(super) fn settings() -> Upstream {
    let mut settings = Upstream::for_target(Target::Demo);
    settings.session.idle = Duration::from_secs(600);
    settings
}

pub(super) fn stage_with(settings: &Upstream, front: &config::Limits) -> Stage {
    let (metrics, shutdown) = (Metrics::new().unwrap(), Shutdown::new(Duration::from_secs(1)));
    let sessions = Sessions::new(settings, front, AGAIN, &shutdown, metrics.upstream("up")).unwrap();
    Stage { sessions, metrics, shutdown }
}

pub(super) fn stage(change: impl FnOnce(&mut Upstream)) -> Stage {
    let mut settings = settings();
    change(&mut settings);
    stage_with(&settings, &config::Limits::default())
}

pub(super) fn keyed(settings: &mut Upstream) {
    settings.session.key = Some(SessionKey::new([7; 32]));
}

pub(super) fn client(revision: LegacyRevision) -> Client {
    let capabilities = Bytes::from_static(br#"{"elicitation":{"form":{}},"roots":{}}"#);
    let info = Bytes::from_static(br#"{"name":"c","version":"1"}"#);
    Client { revision, info, can: Can::of(&capabilities), capabilities }
}

pub(super) fn headers(authorization: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.extend(authorization.map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap())));
    headers
}

pub(super) fn principal(headers: &HeaderMap) -> Principal {
    Principal::of(headers.get(AUTHORIZATION))
}

impl Stage {
    pub(super) fn begin(&self, authorization: Option<&str>) -> (Use, HeaderValue) {
        self.begin_as(LegacyRevision::LATEST, authorization)
    }

    pub(super) fn begin_as(
        &self,
        revision: LegacyRevision,
        authorization: Option<&str>,
    ) -> (Use, HeaderValue) {
        let headers = headers(authorization);
        self.sessions.begin(client(revision), Offers::default(), principal(&headers), &headers).unwrap()
    }

    pub(super) fn find(&self, name: &HeaderValue, authorization: Option<&str>) -> Found {
        let (opened, headers) = (self.sessions.open(name), headers(authorization));
        let find = |opened| self.sessions.find(&opened, principal(&headers), &headers);
        opened.map_or(Found::Unknown, find)
    }

    pub(super) fn finds(&self, name: &HeaderValue, authorization: Option<&str>) -> bool {
        matches!(self.find(name, authorization), Found::Session(_))
    }

    /// The series of a family that are not 0.
    pub(super) fn counted(&self, family: &str) -> Vec<String> {
        let text = self.metrics.render().unwrap();
        let ours = text.lines().filter(|line| line.starts_with(&format!("mcp_janus_{family}{{")));
        ours.filter(|line| !line.ends_with(" 0"))
            .map(|line| line.replace(r#",upstream="up""#, "").replace(r#"upstream="up","#, ""))
            .map(|line| line.replace(r#"upstream="up""#, "").replace("mcp_janus_", ""))
            .collect()
    }
}

pub(super) fn message(text: &str) -> Payload {
    Payload::from(text.to_owned())
}

/// What is there to read right now; `!` marks a break and `.` the end.
pub(super) async fn read(reader: &mut Reader) -> String {
    let mut out = String::new();
    poll_fn(|cx| {
        loop {
            match reader.poll_next(cx) {
                Poll::Ready(Next::Bytes { bytes, last }) => {
                    out.push_str(std::str::from_utf8(&bytes).unwrap());
                    if last {
                        out.push('.');
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(Next::End) => {
                    out.push('.');
                    return Poll::Ready(());
                }
                Poll::Ready(Next::Broken) => {
                    out.push('!');
                    return Poll::Ready(());
                }
                Poll::Pending => return Poll::Ready(()),
            }
        }
    })
    .await;
    out
}

/// The data of the events in a text, `-` for those without, and its mark.
pub(super) fn data(text: &str) -> Vec<String> {
    let mut all: Vec<String> = text
        .split("\n\n")
        .filter_map(|event| {
            let data = event.lines().find_map(|line| line.strip_prefix("data:"))?.trim();
            Some(if data.is_empty() { "-".to_owned() } else { data.to_owned() })
        })
        .collect();
    all.extend(text.chars().last().filter(|mark| ['.', '!'].contains(mark)).map(String::from));
    all
}

/// The ids of the events in a text.
pub(super) fn ids(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
}
