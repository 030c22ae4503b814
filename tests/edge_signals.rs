//! The first SIGTERM or SIGINT drains, the second ends at once. A test binary of its own: signals reach the whole process.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::future::pending;
use std::process::Command;
use std::time::Duration;

use mcp_janus::shutdown::{Ending, Shutdown};

fn raise(signal: &str) {
    let me = std::process::id().to_string();
    assert!(Command::new("kill").args([signal, &me]).status().unwrap().success());
}

#[tokio::test]
async fn one_signal_drains_and_two_end() {
    let shutdown = Shutdown::new(Duration::from_secs(3600));
    shutdown.watch_signals().unwrap();
    drop(shutdown.spawn(pending::<()>()));
    raise("-TERM");
    shutdown.draining().await;
    assert!(shutdown.is_draining());
    raise("-INT");
    assert_eq!(shutdown.finished().await, Ending::CutShort);
    shutdown.ended().await;
}
