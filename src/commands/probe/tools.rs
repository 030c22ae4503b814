//! The tools of a server as a modern client sees them, and what the schema guard finds in them.
//!
//! Owns listing all pages, within bounds. What a finding is, is the guard's business.

use super::client::Client;
use crate::exchange::Principal;
use crate::schema::Finding;
use crate::upstream::guard::{Guard, Scope};
use crate::wire::json::{items, once};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// Pages of one list, and how often the time for one answer they may take together.
const PAGES: usize = 256;
const WAITS: u32 = 12;

/// See the module.
#[derive(Default)]
pub(super) struct Tools {
    /// Those that the server lists.
    pub(super) listed: usize,
    /// Those of them that a client does not get to see.
    pub(super) left_out: usize,
    pub(super) findings: Vec<Finding>,
    /// Why there may be more.
    pub(super) error: Option<String>,
}

/// Lists the tools; `wait` is how long one answer may take.
pub(super) async fn list(client: &mut Client, guard: &Guard, wait: Duration) -> Tools {
    let (seen, ended) = pages(client, wait).await;
    let scope = Scope::of(Principal::Anonymous, None);
    let listed = guard.tools(scope).max(seen);
    Tools { listed, left_out: listed - seen, findings: guard.findings(scope), error: ended.err() }
}

/// How many tools there are on all pages, and whether these are all.
async fn pages(client: &mut Client, wait: Duration) -> (usize, Result<(), String>) {
    let end = Instant::now() + wait * WAITS;
    let mut cursor: Option<Bytes> = None;
    let mut seen = 0;
    for _ in 0..PAGES {
        let members = cursor.as_ref().map(|cursor| format!("\"cursor\":{}", String::from_utf8_lossy(cursor)));
        let wait = wait.min(end.saturating_duration_since(Instant::now()));
        let answer = match client.ask("tools/list", &members.unwrap_or_default(), wait).await {
            Ok(answer) => answer,
            Err(error) => return (seen, Err(error)),
        };
        let (text, result) = (&answer.text, &answer.body.object);
        let Some(tools) = once(result, text, "tools") else {
            return (seen, Err("the answer to tools/list has no tools".to_owned()));
        };
        seen += items(text, tools).len();
        let next = result.first(text, "nextCursor").map(|span| text.slice(span.range()));
        match next.filter(|next| next != "null") {
            None => return (seen, Ok(())),
            Some(next) if cursor.as_ref() == Some(&next) => {
                return (seen, Err("tools/list names the same next page again".to_owned()));
            }
            next => cursor = next,
        }
    }
    (seen, Err(format!("tools/list has more than {PAGES} pages")))
}
