//! The one reader of a process's standard output.
//!
//! Owns that it is always read: what comes is handed on at once to an inbox that does not wait. The task ends at the end of
//! the stream, or, if something else than the process holds it open, when it is told that it has been enough.

use crate::net::Reads;
use crate::shutdown::Dormant;
use crate::upstream::transport::pipe::Inbox;
use crate::wire::jsonrpc::LateId;
use crate::wire::lines::{Line, Lines};
use futures_util::FutureExt;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::task::{unconstrained, yield_now};
use tokio_util::sync::CancellationToken;

/// So many lines at once: then whoever waits for them has a turn, so that a burst is not too much for a reader who keeps up.
const BURST: usize = 16;

/// How often what is there already is read after it has been enough: more than a pipe holds, and yet an end.
const LAST_READS: usize = 64;

pub(super) async fn read(mut stdout: Reads, limit: usize, inbox: Arc<dyn Inbox>, enough: CancellationToken) {
    let mut enough = pin!(Dormant::new(enough.cancelled()));
    let mut lines = Lines::new(limit, LateId::found);
    loop {
        let read = tokio::select! {
            biased;
            () = &mut enough => break,
            read = stdout.read_buf(lines.room()) => read,
        };
        // An error is as much of an end as the end is.
        if !read.is_ok_and(|count| count > 0) {
            break;
        }
        give(&mut lines, &*inbox).await;
    }
    for _ in 0..LAST_READS {
        let read = unconstrained(stdout.read_buf(lines.room())).now_or_never();
        if !read.is_some_and(|read| read.is_ok_and(|count| count > 0)) {
            break;
        }
        give(&mut lines, &*inbox).await;
    }
    if let Some(line) = lines.last() {
        give_one(line, &*inbox);
    }
}

async fn give(lines: &mut Lines, inbox: &dyn Inbox) {
    let mut given = 0;
    while let Some(line) = lines.next() {
        give_one(line, inbox);
        given += 1;
        if given % BURST == 0 {
            yield_now().await;
        }
    }
}

fn give_one(line: Line, inbox: &dyn Inbox) {
    match line {
        Line::Text(text) => inbox.text(text),
        Line::TooLong(id) => inbox.too_long(id),
    }
}
