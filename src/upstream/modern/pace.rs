//! When a call that its server does not finish goes on, and with what.
//!
//! Owns, for the rounds of one call in their order: which questions the client is asked, how long a retry that brings nothing
//! new waits, when it is enough, and which pages the user is through with. A page that the user has agreed to open is not shown
//! again, since `accept` is consent and not the end of the visit: the server is told the same again, ever more slowly. Pure: no
//! clock, nothing is sent from here. Rules: B2.4, B4.3, B4.4; vectors D86, D90.

use crate::translate::legacy_client::round::{Asked, Entry};
use bytes::Bytes;
use std::time::Duration;

/// Pauses grow no longer than this.
const MOST: Duration = Duration::from_secs(10);

/// The rounds of one call.
#[derive(Debug)]
pub(super) struct Pace {
    /// Rounds with questions that are left.
    rounds: usize,
    /// Retries without an answer of the client that are left.
    polls: usize,
    first: Duration,
    /// The pause that is due next.
    pause: Duration,
    pages: Vec<Page>,
}

/// A page that the user has agreed to open.
#[derive(Debug)]
struct Page {
    url: String,
    /// The client knows it by this.
    elicitation_id: String,
    /// A later round did not ask for it any more.
    completed: bool,
}

/// What a round calls for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// These entries go to the client; the retry follows its answers at once.
    Ask(Vec<usize>),
    /// There is nothing to ask: the retry comes after this time.
    Wait(Duration),
    /// The client has been asked often enough.
    TooManyRounds,
    /// The call has been sent without answers often enough.
    TooManyPolls,
}

impl Pace {
    /// `rounds` bounds those with questions, `polls` the retries without; `pace` is the first pause.
    pub(super) fn new(rounds: usize, polls: usize, pace: Duration) -> Self {
        Self { rounds, polls, first: pace, pause: pace, pages: Vec::new() }
    }

    pub(super) fn next(&mut self, asked: &Asked) -> Step {
        let open = |(at, entry): (usize, &Entry)| (!self.is_open(entry)).then_some(at);
        let which: Vec<usize> = asked.entries.iter().enumerate().filter_map(open).collect();
        let (left, enough) = match which.is_empty() {
            true => (&mut self.polls, Step::TooManyPolls),
            false => (&mut self.rounds, Step::TooManyRounds),
        };
        let Some(fewer) = left.checked_sub(1) else { return enough };
        *left = fewer;
        if which.is_empty() {
            return Step::Wait(self.wait(!asked.entries.is_empty()));
        }
        // What the client says may be what the server has waited for.
        self.pause = self.first;
        Step::Ask(which)
    }

    /// The user has agreed to open the page, which the client knows by `elicitation_id`.
    pub(super) fn accepted(&mut self, url: &str, elicitation_id: &str) {
        let (url, elicitation_id) = (url.to_owned(), elicitation_id.to_owned());
        self.pages.push(Page { url, elicitation_id, completed: false });
    }

    /// Keys and answers for the pages of this round that the user has agreed to open before.
    pub(super) fn answered_urls(&self, asked: &Asked) -> Vec<(Bytes, Bytes)> {
        let accept = || Bytes::from_static(br#"{"action":"accept"}"#);
        let again = asked.entries.iter().filter(|entry| self.is_open(entry));
        again.map(|entry| (entry.key().clone(), accept())).collect()
    }

    /// The ids of the pages that the server asks for no longer, each once; `None`: the call is over.
    pub(super) fn completed(&mut self, asked: Option<&Asked>) -> Vec<String> {
        let entries = asked.map_or([].as_slice(), |asked| &asked.entries);
        let wanted = |page: &Page| entries.iter().any(|entry| entry.url() == Some(&page.url));
        let over = self.pages.iter_mut().filter(|page| !page.completed && !wanted(page));
        over.map(|page| {
            page.completed = true;
            page.elicitation_id.clone()
        })
        .collect()
    }

    /// Whether the entry is a page that the user has agreed to open.
    fn is_open(&self, entry: &Entry) -> bool {
        entry.url().is_some_and(|url| self.pages.iter().any(|page| page.url == url))
    }

    /// Someone who visits a page takes a while.
    fn wait(&mut self, visit: bool) -> Duration {
        let least = if visit { self.first * 2 } else { self.first };
        let pause = self.pause.max(least).min(MOST);
        self.pause = (pause * 2).min(MOST);
        pause
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::translate::legacy_client::round;
    use crate::wire::json::Limits;
    use crate::wire::jsonrpc::{self, Message, Reply};

    const LIMITS: Limits = Limits { nesting: 16, members: 16 };
    const ROOTS: &str = r#""r":{"method":"roots/list"}"#;
    const PACE: Duration = Duration::from_secs(1);

    fn asked(entries: &str) -> Asked {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"inputRequests":{{{entries}}},"requestState":"s"}}}}"#
        );
        let Message::Response(response) = jsonrpc::parse(Bytes::from(text), LIMITS).unwrap() else {
            panic!()
        };
        let Reply::Result(body) = &response.reply else { panic!() };
        round::read(&response, body, 16, LIMITS).unwrap()
    }

    fn page(key: &str, url: &str) -> String {
        format!(
            r#""{key}":{{"method":"elicitation/create","params":{{"mode":"url","message":"m","url":"{url}"}}}}"#
        )
    }

    fn wait(milliseconds: u64) -> Step {
        Step::Wait(Duration::from_millis(milliseconds))
    }

    /// D86, B2.4.
    #[test]
    fn d86_a_state_alone_is_retried_ever_more_slowly_and_not_for_ever() {
        let mut pace = Pace::new(1, 6, PACE);
        let state = asked("");
        for seconds in [1, 2, 4, 8, 10, 10] {
            assert_eq!(pace.next(&state), wait(seconds * 1000));
        }
        assert_eq!(pace.next(&state), Step::TooManyPolls);
        // The bounds are two.
        assert_eq!(pace.next(&asked(ROOTS)), Step::Ask(vec![0]));
        assert_eq!(Pace::new(1, 0, PACE).next(&state), Step::TooManyPolls);
    }

    /// B2.4: an answer is news to the server, so that the pauses begin anew, but their count does not.
    #[test]
    fn b2_4_rounds_with_questions_are_counted_apart() {
        let mut pace = Pace::new(2, 3, PACE);
        let (state, roots) = (asked(""), asked(ROOTS));
        assert_eq!(pace.next(&state), wait(1000));
        assert_eq!(pace.next(&state), wait(2000));
        assert_eq!(pace.next(&roots), Step::Ask(vec![0]));
        assert_eq!(pace.next(&state), wait(1000));
        assert_eq!(pace.next(&roots), Step::Ask(vec![0]));
        assert_eq!(pace.next(&roots), Step::TooManyRounds);
        assert_eq!(pace.next(&state), Step::TooManyPolls);
    }

    /// B4.3.
    #[test]
    fn b4_3_a_page_is_shown_once_and_waited_for() {
        let mut pace = Pace::new(8, 64, PACE);
        let both = asked(&format!("{},{ROOTS}", page("a", "https://s/a")));
        assert_eq!(pace.next(&both), Step::Ask(vec![0, 1]));
        assert!(pace.answered_urls(&both).is_empty());
        pace.accepted("https://s/a", "e1");
        // Its key may change from round to round.
        let again = asked(&page("b", "https:\\/\\/s/a"));
        for seconds in [2, 4, 8, 10] {
            assert_eq!(pace.next(&again), wait(seconds * 1000));
            assert_eq!(pace.answered_urls(&again), [("\"b\"".into(), r#"{"action":"accept"}"#.into())]);
        }
        // Beside it, what is new is asked.
        let more = asked(&format!("{},{},{ROOTS}", page("c", "https://s/a"), page("d", "https://s/d")));
        assert_eq!(pace.next(&more), Step::Ask(vec![1, 2]));
        assert_eq!(pace.answered_urls(&more).len(), 1);
        assert_eq!(pace.next(&again), wait(2000));
    }

    /// B4.3: a page that the user declined may be asked for again.
    #[test]
    fn b4_3_consent_alone_is_remembered() {
        let mut pace = Pace::new(2, 64, PACE);
        let once = asked(&page("a", "https://s/a"));
        assert_eq!(pace.next(&once), Step::Ask(vec![0]));
        assert_eq!(pace.next(&once), Step::Ask(vec![0]));
        assert_eq!(pace.next(&once), Step::TooManyRounds);
    }

    #[test]
    fn b4_3_a_long_pace_stays_within_the_bound() {
        let mut pace = Pace::new(2, 64, MOST);
        pace.accepted("https://s/a", "e1");
        let page = asked(&page("a", "https://s/a"));
        assert_eq!([pace.next(&page), pace.next(&page)], [Step::Wait(MOST), Step::Wait(MOST)]);
        let mut short = Pace::new(2, 64, Duration::from_millis(1));
        assert_eq!([short.next(&asked("")), short.next(&asked(""))], [wait(1), wait(2)]);
    }

    /// B4.4.
    #[test]
    fn b4_4_a_page_is_completed_once_it_is_not_asked_for() {
        let mut pace = Pace::new(8, 64, PACE);
        let (a, b) = (page("a", "https://s/a"), page("b", "https://s/b"));
        let both = asked(&format!("{a},{b}"));
        pace.accepted("https://s/a", "e1");
        pace.accepted("https://s/b", "e2");
        assert!(pace.completed(Some(&both)).is_empty());
        assert_eq!(pace.completed(Some(&asked(&b))), ["e1"]);
        assert!(pace.completed(Some(&asked(&b))).is_empty());
        assert_eq!(pace.completed(None), ["e2"]);
        assert!(pace.completed(None).is_empty());
        // It has been shown all the same.
        assert_eq!(pace.next(&both), wait(2000));
    }
}
