//! Peers for the tests of the proxy as a whole: a raw client, raw servers, and the checks that run on every exchange.
//!
//! Owns everything that stands on either side of the proxy in a test. Nothing here uses the proxy's wire code or an
//! HTTP library: a fault that both sides shared would cancel out. Does not own any expectation of a single test.
#![allow(dead_code, unused_imports, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

pub mod ask;
pub mod calls;
pub mod choice;
pub mod client;
pub mod ear;
pub mod gets;
pub mod held;
pub mod http1;
pub mod leftovers;
pub mod legacy;
pub mod lines;
pub mod listener;
pub mod listens;
pub mod log;
pub mod modern;
pub mod net;
pub mod old;
pub mod old_sse_client;
pub mod old_sse_server;
pub mod party;
pub mod process;
pub mod proxy;
pub mod questions;
pub mod reply;
pub mod rounds;
pub mod rpc;
pub mod shape;
pub mod shape_answers;
pub mod shape_down;
pub mod shape_down_asks;
pub mod shape_envelope;
pub mod shape_input;
pub mod shape_legacy;
pub mod shape_listen;
pub mod shape_requests;
pub mod sse;
pub mod stdio_host;
pub mod stdio_server;
pub mod stream;
pub mod user;

pub use ask::{Ask, CAPS, INFO, VERSION, call, get_prompt, list, read};
pub use calls::{Call, Calls};
pub use choice::Choice;
pub use client::{Answer, Done};
pub use ear::{Ear, Said};
pub use gets::{Begin, Get, Gets};
pub use legacy::LegacyServer;
pub use listener::{End, Listener, listen};
pub use listens::{Listen, Listens, Take};
pub use modern::ModernServer;
pub use net::{Net, Seen, Upstream};
pub use old::Old;
pub use old_sse_client::OldSse;
pub use old_sse_server::{EventStream, OldSseServer};
pub use party::{Era, Party, Transport};
pub use process::{Child, Running};
pub use proxy::Proxy;
pub use reply::Reply;
pub use rounds::Round;
pub use serde_json::{Value, json};
pub use stdio_host::Host;
pub use stdio_server::Programs;
pub use stream::Stream;
pub use user::User;

/// How long, on the paused clock, a test waits for anything before it calls it lost.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3600);

/// Awaits `what`, or fails the test when it never comes; the clock is paused, so this costs no time.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: nothing came within {PATIENCE:?}"),
    }
}

/// Lets a span of paused time pass, with everything that falls due in it.
pub async fn pass(millis: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
}
