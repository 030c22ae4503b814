//! What is counted of legacy clients before a modern server: their sessions and streams, what they are asked, the changes
//! that they are told of, and what is remembered of the server for them.
//!
//! Owns these families and their handles. They are the upstream's (`upstream`) in all but the place where they are written
//! down, as are those of questions of a legacy server (`questions`). Does not own when any of it happens; the words are in
//! `labels`.

use super::families::Registrar;
use super::held::{Held, HeldBytes};
use super::labels::{
    CatalogFetch, ClientAnswer, ClientStream, LikePair, ListCache, NoticeKind, Noticed, QuestionKind,
    ReplayDropped, Resumption, SessionBegan, SessionEnd, TokenRefresh,
};
use super::upstream::{UpstreamMetrics, add};
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Result};

pub(super) struct Families {
    sessions: IntGaugeVec,
    began: IntCounterVec,
    ended: IntCounterVec,
    streams: IntGaugeVec,
    resumptions: IntCounterVec,
    replay_dropped: IntCounterVec,
    token_refreshes: IntCounterVec,
    asked: IntCounterVec,
    answers: IntCounterVec,
    rounds: IntCounterVec,
    retries: IntCounterVec,
    listens: IntGaugeVec,
    reconnects: IntCounterVec,
    notices: IntCounterVec,
    fetches: IntCounterVec,
    cache: IntCounterVec,
    cache_bytes: IntGaugeVec,
    like_pairs: IntCounterVec,
}

impl Families {
    pub(super) fn register(to: &mut Registrar<'_>) -> Result<Self> {
        const UP: &str = "upstream";
        Ok(Self {
            sessions: to.gauges(
                "mcp_janus_client_sessions",
                "Sessions of legacy clients before a modern server that this process knows.",
                &[UP],
            )?,
            began: to.counters(
                "mcp_janus_client_sessions_total",
                "Such sessions that came to be known: begun by initialize, or rebuilt from their id.",
                &[UP, "how"],
            )?,
            ended: to.counters(
                "mcp_janus_client_sessions_ended_total",
                "Such sessions that ended, by what ended them.",
                &[UP, "how"],
            )?,
            streams: to.gauges(
                "mcp_janus_client_streams",
                "Event streams of such sessions that a client reads: its own (GET), or of a call.",
                &[UP, "kind"],
            )?,
            resumptions: to.counters(
                "mcp_janus_resumed_streams_total",
                "Streams that legacy clients asked for again by Last-Event-ID, by what they got.",
                &[UP, "how"],
            )?,
            replay_dropped: to.counters(
                "mcp_janus_replay_dropped_total",
                "Messages that made room or were not kept while their client was away, by what they were.",
                &[UP, "what"],
            )?,
            token_refreshes: to.counters(
                "mcp_janus_token_refresh_total",
                "New tokens for a session of the same subject, by what the server made of them.",
                &[UP, "how"],
            )?,
            asked: to.counters(
                "mcp_janus_client_questions_total",
                "Questions of a modern server that were put to a legacy client.",
                &[UP, "kind"],
            )?,
            answers: to.counters(
                "mcp_janus_client_answers_total",
                "What became of these questions.",
                &[UP, "how"],
            )?,
            rounds: to.counters(
                "mcp_janus_input_rounds_total",
                "Answers input_required of a modern server that a legacy client was asked for.",
                &[UP],
            )?,
            retries: to.counters(
                "mcp_janus_input_retries_total",
                "Calls sent to a modern server again without answers, because it asked for nothing else.",
                &[UP],
            )?,
            listens: to.gauges(
                "mcp_janus_listens",
                "Subscriptions (subscriptions/listen) open at a modern server.",
                &[UP],
            )?,
            reconnects: to.counters(
                "mcp_janus_listen_reconnects_total",
                "Such subscriptions opened again after they had ended.",
                &[UP],
            )?,
            notices: to.counters(
                "mcp_janus_notices_total",
                "Changes at a modern server, for each session that was to hear of them.",
                &[UP, "kind", "how"],
            )?,
            fetches: to.counters(
                "mcp_janus_catalog_fetches_total",
                "Times the tools of a modern server were listed to learn how to call one.",
                &[UP, "why"],
            )?,
            cache: to.counters(
                "mcp_janus_list_cache_total",
                "Lists of a modern server: asked for with the cache on (hit, miss), stored, dropped before their time.",
                &[UP, "how"],
            )?,
            cache_bytes: to.gauges(
                "mcp_janus_list_cache_bytes",
                "Size of the lists that are kept.",
                &[UP],
            )?,
            like_pairs: to.counters(
                "mcp_janus_like_pair_total",
                "Looks at whether a modern server is a legacy one too, for legacy clients.",
                &[UP, "how"],
            )?,
        })
    }
}

/// The handles of one upstream.
pub(super) struct Bridge {
    sessions: IntGauge,
    began: Vec<IntCounter>,
    ended: Vec<IntCounter>,
    streams: Vec<IntGauge>,
    resumptions: Vec<IntCounter>,
    replay_dropped: Vec<IntCounter>,
    token_refreshes: Vec<IntCounter>,
    asked: Vec<IntCounter>,
    answers: Vec<IntCounter>,
    rounds: IntCounter,
    retries: IntCounter,
    listens: IntGauge,
    reconnects: IntCounter,
    /// By kind, then by what became of it.
    notices: Vec<IntCounter>,
    fetches: Vec<IntCounter>,
    cache: Vec<IntCounter>,
    cache_bytes: IntGauge,
    like_pairs: Vec<IntCounter>,
}

impl Bridge {
    pub(super) fn new(families: &Families, name: &str) -> Self {
        let each = |family: &IntCounterVec, words: &[&str]| {
            words.iter().map(|word| family.with_label_values(&[name, word])).collect::<Vec<_>>()
        };
        let became = |kind: &&'static str| {
            let kind = *kind;
            Noticed::WORDS.iter().map(move |how| families.notices.with_label_values(&[name, kind, how]))
        };
        let stream = |kind: &&str| families.streams.with_label_values(&[name, kind]);
        Self {
            sessions: families.sessions.with_label_values(&[name]),
            began: each(&families.began, SessionBegan::WORDS),
            ended: each(&families.ended, SessionEnd::WORDS),
            streams: ClientStream::WORDS.iter().map(stream).collect(),
            resumptions: each(&families.resumptions, Resumption::WORDS),
            replay_dropped: each(&families.replay_dropped, ReplayDropped::WORDS),
            token_refreshes: each(&families.token_refreshes, TokenRefresh::WORDS),
            asked: each(&families.asked, QuestionKind::WORDS),
            answers: each(&families.answers, ClientAnswer::WORDS),
            rounds: families.rounds.with_label_values(&[name]),
            retries: families.retries.with_label_values(&[name]),
            listens: families.listens.with_label_values(&[name]),
            reconnects: families.reconnects.with_label_values(&[name]),
            notices: NoticeKind::WORDS.iter().flat_map(became).collect(),
            fetches: each(&families.fetches, CatalogFetch::WORDS),
            cache: each(&families.cache, ListCache::WORDS),
            cache_bytes: families.cache_bytes.with_label_values(&[name]),
            like_pairs: each(&families.like_pairs, LikePair::WORDS),
        }
    }
}

impl UpstreamMetrics {
    /// A legacy client's session is known from now on, until the guard is dropped.
    pub fn client_session(&self, how: SessionBegan) -> Held {
        add(&self.bridge().began, how as usize);
        Held::new(&self.bridge().sessions)
    }

    /// Such a session is over.
    pub fn client_session_ended(&self, how: SessionEnd) {
        add(&self.bridge().ended, how as usize);
    }

    /// A stream of such a session is read by its client, until the guard is dropped.
    pub fn client_stream(&self, kind: ClientStream) -> Option<Held> {
        self.bridge().streams.get(kind as usize).map(Held::new)
    }

    /// A client has come with `Last-Event-ID`.
    pub fn client_resumed(&self, how: Resumption) {
        add(&self.bridge().resumptions, how as usize);
    }

    /// A message is not there any more for a client that may come back for it.
    pub fn replay_dropped(&self, what: ReplayDropped) {
        add(&self.bridge().replay_dropped, what as usize);
    }

    /// A session of the same subject was asked for with another token.
    pub fn token_refresh(&self, how: TokenRefresh) {
        add(&self.bridge().token_refreshes, how as usize);
    }

    /// A question of a modern server goes to its legacy client.
    pub fn client_question(&self, kind: QuestionKind) {
        add(&self.bridge().asked, kind as usize);
    }

    /// What became of such a question.
    pub fn client_answer(&self, how: ClientAnswer) {
        add(&self.bridge().answers, how as usize);
    }

    /// A modern server needs input of a legacy client, who is asked now.
    pub fn input_round(&self) {
        self.bridge().rounds.inc();
    }

    /// A call goes to a modern server again, with its state and no answers.
    pub fn input_retry(&self) {
        self.bridge().retries.inc();
    }

    /// A subscription is open at a modern server until the guard is dropped.
    pub fn listen(&self) -> Held {
        Held::new(&self.bridge().listens)
    }

    /// A subscription that had ended is open again.
    pub fn listen_reconnected(&self) {
        self.bridge().reconnects.inc();
    }

    /// A session hears of a change, or will.
    pub fn notice(&self, kind: NoticeKind, how: Noticed) {
        add(&self.bridge().notices, kind as usize * Noticed::WORDS.len() + how as usize);
    }

    /// The tools are listed because of a call.
    pub fn catalog_fetch(&self, why: CatalogFetch) {
        add(&self.bridge().fetches, why as usize);
    }

    pub fn list_cache(&self, how: ListCache) {
        add(&self.bridge().cache, how as usize);
    }

    /// A list of this size is kept until the guard is dropped.
    pub fn list_cached(&self, bytes: usize) -> HeldBytes {
        HeldBytes::new(&self.bridge().cache_bytes, bytes)
    }

    /// It was looked at whether a legacy client can be relayed to the server as it is.
    pub fn like_pair(&self, how: LikePair) {
        add(&self.bridge().like_pairs, how as usize);
    }
}

#[cfg(test)]
mod tests {
    use crate::telemetry::metrics::*;

    /// All series of the families of this module that are not 0, in order.
    fn listed(metrics: &Metrics) -> Vec<String> {
        let text = metrics.render().unwrap();
        let ours = |line: &&str| {
            let name = line.split('{').next().unwrap();
            FAMILIES.iter().any(|family| name.strip_prefix("mcp_janus_") == Some(family))
        };
        let short = |line: &str| line.replace("mcp_janus_", "").replace(r#",upstream="up""#, "");
        text.lines().filter(ours).filter(|line| !line.ends_with(" 0")).map(short).collect()
    }

    const FAMILIES: &[&str] = &[
        "catalog_fetches_total",
        "client_answers_total",
        "client_questions_total",
        "client_sessions",
        "client_sessions_ended_total",
        "client_sessions_total",
        "client_streams",
        "input_retries_total",
        "input_rounds_total",
        "like_pair_total",
        "list_cache_bytes",
        "list_cache_total",
        "listen_reconnects_total",
        "listens",
        "notices_total",
        "replay_dropped_total",
        "resumed_streams_total",
        "token_refresh_total",
    ];

    #[test]
    fn what_lasts_is_counted_while_it_is_held() {
        let metrics = Metrics::new().unwrap();
        let up = metrics.upstream("up");
        let sessions = [SessionBegan::Begun, SessionBegan::Rebuilt, SessionBegan::Begun]
            .map(|how| up.client_session(how));
        let streams = [ClientStream::Own, ClientStream::Call, ClientStream::Call];
        let streams = streams.map(|kind| up.client_stream(kind));
        let (listen, small, large) = (up.listen(), up.list_cached(10), up.list_cached(1000));
        let begun = [r#"client_sessions_total{how="begun"} 2"#, r#"client_sessions_total{how="rebuilt"} 1"#];
        let mut expected = vec![r#"client_sessions{upstream="up"} 3"#];
        expected.extend(begun);
        expected.push(r#"client_streams{kind="call"} 2"#);
        expected.push(r#"client_streams{kind="own"} 1"#);
        expected.push(r#"list_cache_bytes{upstream="up"} 1010"#);
        expected.push(r#"listens{upstream="up"} 1"#);
        assert_eq!(listed(&metrics), expected);
        drop(small);
        assert!(listed(&metrics).contains(&r#"list_cache_bytes{upstream="up"} 1000"#.to_owned()));
        drop((sessions, streams, listen, large));
        assert_eq!(listed(&metrics), begun);
    }

    #[test]
    fn every_word_has_a_series_of_its_own() {
        let metrics = Metrics::new().unwrap();
        let up = metrics.upstream("up");
        up.client_session_ended(SessionEnd::Delete);
        up.client_session_ended(SessionEnd::Evicted);
        up.client_resumed(Resumption::Replayed);
        up.client_resumed(Resumption::Unknown);
        up.replay_dropped(ReplayDropped::Answer);
        up.token_refresh(TokenRefresh::Unsure);
        up.client_question(QuestionKind::Sampling);
        up.client_answer(ClientAnswer::Unfit);
        up.client_answer(ClientAnswer::Cancelled);
        up.input_round();
        up.input_retry();
        up.listen_reconnected();
        up.notice(NoticeKind::Tools, Noticed::Synthesised);
        up.notice(NoticeKind::Updated, Noticed::Told);
        up.catalog_fetch(CatalogFetch::Mismatch);
        up.list_cache(ListCache::Hit);
        up.list_cache(ListCache::Dropped);
        up.like_pair(LikePair::ModernOnly);
        let expected = [
            r#"catalog_fetches_total{upstream="up",why="mismatch"} 1"#,
            r#"client_answers_total{how="cancelled"} 1"#,
            r#"client_answers_total{how="unfit"} 1"#,
            r#"client_questions_total{kind="sampling"} 1"#,
            r#"client_sessions_ended_total{how="delete"} 1"#,
            r#"client_sessions_ended_total{how="evicted"} 1"#,
            r#"input_retries_total{upstream="up"} 1"#,
            r#"input_rounds_total{upstream="up"} 1"#,
            r#"like_pair_total{how="modern-only"} 1"#,
            r#"list_cache_total{how="dropped"} 1"#,
            r#"list_cache_total{how="hit"} 1"#,
            r#"listen_reconnects_total{upstream="up"} 1"#,
            r#"notices_total{how="synthesised",kind="tools"} 1"#,
            r#"notices_total{how="told",kind="updated"} 1"#,
            r#"replay_dropped_total{upstream="up",what="answer"} 1"#,
            r#"resumed_streams_total{how="replayed"} 1"#,
            r#"resumed_streams_total{how="unknown"} 1"#,
            r#"token_refresh_total{how="unsure"} 1"#,
        ];
        assert_eq!(listed(&metrics), expected);
    }
}
