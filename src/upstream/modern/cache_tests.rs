//! What is kept, for whom, and until when.

use super::*;
use crate::telemetry::metrics::Metrics;
use tokio::time::advance;

const ALICE: Principal = Principal::Credential([1; 32]);
const BOB: Principal = Principal::Credential([2; 32]);
const FIRST_PAGE: [u8; 32] = [0; 32];
const TOOLS: Method = Method::ToolsList;
const SECOND: Duration = Duration::from_secs(1);

const PRINCIPALS: usize = 16;

struct Kept {
    cache: Cache,
    metrics: Metrics,
}

impl Kept {
    fn new(most: usize) -> Self {
        let metrics = Metrics::new().unwrap();
        Self { cache: Cache::new(most, PRINCIPALS, metrics.upstream("u")), metrics }
    }

    /// What is given; a miss is answered by the server with `text`.
    fn ask(
        &self,
        whose: Principal,
        method: Method,
        params: [u8; 32],
        text: &'static str,
        ttl: Duration,
        shared: bool,
    ) -> String {
        match self.cache.get(whose, method, &params) {
            Ok(text) => String::from_utf8(text.to_vec()).unwrap(),
            Err(asked) => {
                self.cache.put(
                    whose,
                    method,
                    params,
                    asked,
                    &Bytes::from_static(text.as_bytes()),
                    ttl,
                    shared,
                );
                text.to_owned()
            }
        }
    }

    fn tools(&self, whose: Principal, text: &'static str, shared: bool) -> String {
        self.ask(whose, TOOLS, FIRST_PAGE, text, 600 * SECOND, shared)
    }

    fn has(&self, whose: Principal, method: Method, params: [u8; 32]) -> bool {
        self.cache.get(whose, method, &params).is_ok()
    }

    fn counted(&self, how: &str) -> String {
        let line = format!("mcp_janus_list_cache_total{{how=\"{how}\",upstream=\"u\"}} ");
        let text = self.metrics.render().unwrap();
        text.lines().find_map(|seen| seen.strip_prefix(&line)).unwrap_or("0").to_owned()
    }

    fn bytes(&self) -> String {
        let text = self.metrics.render().unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix("mcp_janus_list_cache_bytes{upstream=\"u\"} "))
            .unwrap()
            .to_owned()
    }

    fn is_consistent(&self) {
        let state = self.cache.lock();
        assert_eq!(state.entries.len(), state.order.len());
        let bytes: usize = state.entries.values().map(|entry| entry.text.len() + ENTRY).sum();
        assert_eq!(bytes, state.bytes);
        assert!(state.bytes <= self.cache.most);
        let parts: usize = state.parts.values().map(HashSet::len).sum();
        assert_eq!(parts, state.entries.len());
        assert!(state.parts.values().all(|keys| !keys.is_empty()));
        assert!(state.order.iter().all(|(place, key)| state.entries[key].place == *place));
    }
}

/// C60, A4.11, B7.6: private is for one.
#[tokio::test(start_paused = true)]
async fn what_is_private_stays_with_its_principal() {
    let kept = Kept::new(1 << 20);
    assert_eq!(kept.tools(ALICE, "admin", false), "admin");
    assert_eq!(kept.tools(BOB, "plain", false), "plain");
    for _ in 0..3 {
        assert_eq!(kept.tools(ALICE, "never asked", false), "admin");
        assert_eq!(kept.tools(BOB, "never asked", false), "plain");
        assert_eq!(kept.tools(Principal::Anonymous, "none", false), "none");
    }
    assert_eq!((kept.counted("hit").as_str(), kept.counted("stored").as_str()), ("8", "3"));
    assert_eq!(kept.bytes(), "14");
}

/// C60: a request with a credential that the server does not take reaches the server, whatever is public.
#[tokio::test(start_paused = true)]
async fn what_is_public_is_for_those_whom_the_server_lets_in() {
    let kept = Kept::new(1 << 20);
    kept.tools(ALICE, "all", true);
    assert!(!kept.has(BOB, TOOLS, FIRST_PAGE), "nothing is known of him");
    assert!(!kept.has(Principal::Anonymous, TOOLS, FIRST_PAGE));
    kept.cache.admit(BOB);
    assert!(kept.has(BOB, TOOLS, FIRST_PAGE));
    kept.cache.refuse(BOB);
    assert!(!kept.has(BOB, TOOLS, FIRST_PAGE));
    assert!(kept.has(ALICE, TOOLS, FIRST_PAGE), "hers is as it was");
    // A credential may expire at any time: the server is asked now and then.
    advance(ADMITTED).await;
    assert!(!kept.has(ALICE, TOOLS, FIRST_PAGE));
    kept.cache.admit(ALICE);
    assert!(kept.has(ALICE, TOOLS, FIRST_PAGE));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_later_was_kept_for_nobody() {
    let kept = Kept::new(1 << 20);
    kept.tools(ALICE, "mine", false);
    kept.cache.refuse(ALICE);
    kept.cache.admit(ALICE);
    assert!(!kept.has(ALICE, TOOLS, FIRST_PAGE));
    kept.is_consistent();
    assert_eq!(kept.bytes(), "0");
}

/// Spec server/utilities/caching, Freshness Calculation: fresh while now < received + ttl.
#[tokio::test(start_paused = true)]
async fn an_answer_holds_for_its_time() {
    let kept = Kept::new(1 << 20);
    let ask = |text, ttl| kept.ask(ALICE, TOOLS, FIRST_PAGE, text, ttl, false);
    ask("first", 10 * SECOND);
    advance(10 * SECOND - Duration::from_millis(1)).await;
    assert_eq!(ask("second", SECOND), "first");
    advance(Duration::from_millis(1)).await;
    assert_eq!(ask("second", Duration::ZERO), "second");
    assert_eq!(ask("third", SECOND), "third", "no time at all");
    kept.is_consistent();
}

/// Spec, Cache Key: method and params both.
#[tokio::test(start_paused = true)]
async fn pages_and_lists_are_kept_apart() {
    let kept = Kept::new(1 << 20);
    for method in [TOOLS, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList] {
        assert!(keeps(method));
        for page in [0, 1] {
            assert!(!kept.has(ALICE, method, [page; 32]), "{method:?} {page}");
            kept.ask(ALICE, method, [page; 32], "x", SECOND, page == 1);
        }
    }
    for method in [Method::ResourcesRead, Method::ToolsCall, Method::Discover, Method::Custom] {
        assert!(!keeps(method));
        kept.ask(ALICE, method, FIRST_PAGE, "x", SECOND, true);
        assert!(!kept.has(ALICE, method, FIRST_PAGE), "{method:?}");
    }
    kept.is_consistent();
}

/// B9.5, B7.6; spec, Interaction with Notifications.
#[tokio::test(start_paused = true)]
async fn a_change_ends_what_it_concerns_and_nothing_else() {
    let kept = Kept::new(1 << 20);
    let all = [TOOLS, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList];
    let fill = || {
        for (method, whose) in all.iter().flat_map(|method| [(*method, ALICE), (*method, BOB)]) {
            kept.ask(whose, method, FIRST_PAGE, "own", 50 * SECOND, false);
            kept.ask(whose, method, [1; 32], "for all", 50 * SECOND, true);
        }
    };
    for (change, concerned) in [
        (Change::Tools, &all[..1]),
        (Change::Prompts, &all[1..2]),
        (Change::Resources, &all[2..]),
        (Change::Updated("file:///a".into()), &[]),
    ] {
        fill();
        kept.cache.changed(ALICE, &change);
        for method in all {
            let gone = concerned.contains(&method);
            assert_eq!(kept.has(ALICE, method, FIRST_PAGE), !gone, "{change:?} {method:?}");
            assert!(kept.has(BOB, method, FIRST_PAGE), "{change:?} {method:?}");
            assert_eq!(kept.has(BOB, method, [1; 32]), !gone, "{change:?} {method:?}");
        }
        kept.is_consistent();
    }
}

/// An answer that was written before the change and comes after it is not kept.
#[tokio::test(start_paused = true)]
async fn what_was_on_its_way_when_something_changed_is_stale() {
    let kept = Kept::new(1 << 20);
    let asked = |method| kept.cache.get(ALICE, method, &FIRST_PAGE).unwrap_err();
    let (tools, prompts) = (asked(TOOLS), asked(Method::PromptsList));
    kept.cache.changed(ALICE, &Change::Tools);
    for (method, asked) in [(TOOLS, tools), (Method::PromptsList, prompts)] {
        kept.cache.put(ALICE, method, FIRST_PAGE, asked, &Bytes::from_static(b"old"), SECOND, false);
    }
    assert!(!kept.has(ALICE, TOOLS, FIRST_PAGE));
    assert!(kept.has(ALICE, Method::PromptsList, FIRST_PAGE));
    kept.tools(ALICE, "new", false);
    assert!(kept.has(ALICE, TOOLS, FIRST_PAGE));
}

/// A4.12: what a server says last of one answer holds, not both.
#[tokio::test(start_paused = true)]
async fn a_server_that_changes_its_mind_is_believed() {
    let kept = Kept::new(1 << 20);
    let (one, other) = (kept.cache.get(ALICE, TOOLS, &FIRST_PAGE), kept.cache.get(BOB, TOOLS, &FIRST_PAGE));
    let put = |whose, asked: Result<Bytes, Asked>, text, shared| {
        let text = Bytes::from_static(text);
        kept.cache.put(whose, TOOLS, FIRST_PAGE, asked.unwrap_err(), &text, SECOND, shared);
    };
    put(ALICE, one, b"for all", true);
    put(BOB, other, b"for bob", false);
    assert!(!kept.has(ALICE, TOOLS, FIRST_PAGE));
    assert_eq!(kept.tools(BOB, "", false), "for bob");
    kept.is_consistent();
}

/// Invariant 5.
#[tokio::test(start_paused = true)]
async fn what_was_not_asked_for_longest_makes_room() {
    let most = 5 * (100 + ENTRY);
    let kept = Kept::new(most);
    let text: &'static str = "x".repeat(100).leak();
    let ask = |page: u8| kept.ask(ALICE, TOOLS, [page; 32], text, 50 * SECOND, false);
    (0..5).for_each(|page| drop(ask(page)));
    assert!(kept.has(ALICE, TOOLS, [0; 32]));
    ask(5);
    let left: Vec<_> = (0..6).filter(|page| kept.has(ALICE, TOOLS, [*page; 32])).collect();
    assert_eq!(left, [0, 2, 3, 4, 5]);
    kept.is_consistent();
    assert_eq!((kept.counted("dropped").as_str(), kept.bytes().as_str()), ("1", "500"));
    // Nothing takes more than a quarter.
    let large: &'static str = "x".repeat(most / 4).leak();
    kept.ask(ALICE, TOOLS, [9; 32], large, 50 * SECOND, false);
    assert!(!kept.has(ALICE, TOOLS, [9; 32]));
    kept.is_consistent();
    for n in 0..2 * PRINCIPALS as u64 {
        let mut whose = [0; 32];
        whose[..8].copy_from_slice(&n.to_be_bytes());
        kept.cache.admit(Principal::Credential(whose));
    }
    assert_eq!(kept.cache.lock().admitted.len(), PRINCIPALS);
}
