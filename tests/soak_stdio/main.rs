//! A soak of bounded length: hundreds of clients of both eras over HTTP in front of a server behind channels: a program whose
//! processes are killed, exit and cannot be started for a while, or one of the old HTTP+SSE whose streams break off. Clients
//! call, are asked, listen, cancel, and go away in the middle.
//!
//! Holds the proxy to invariants 1, 2, 3 and 5 for channels: every call has one end, under its own id and with its own content,
//! and runs once at most; there are never more processes or streams than may be; when everybody has gone nothing is left: no
//! channel, no session, every gauge is at zero and memory does not grow from round to round. Time is paused; the choices come
//! from a fixed seed. `server` is what the server says, `behind` what befalls it, `clients` what the clients do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../support/mod.rs"]
mod support;

mod behind;
mod clients;
mod server;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use behind::Behind;
use support::leftovers::{resident_kib, standing};
use support::{Choice, Era, Net, Proxy, pass};

const ROUNDS: u64 = 6;
/// Clients of a round, a third of them modern.
const CLIENTS: u64 = 80;
/// What the process may have grown by between the third round and the last, in KiB; one call in ten that is kept would not
/// show less.
const GROWTH: u64 = 8 * 1024;

/// What the server has seen and what the clients have got.
#[derive(Default)]
pub(crate) struct Ledger {
    /// How often each call of a round was begun, and with the answers of each of its own rounds.
    pub(crate) ran: Mutex<HashMap<String, usize>>,
    pub(crate) calls: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Given up by its client, in words or without.
    pub(crate) left: AtomicU64,
    pub(crate) questions: AtomicU64,
    pub(crate) changes: AtomicU64,
    pub(crate) turned_away: AtomicU64,
    /// What failed calls were told, and how often.
    pub(crate) told: Mutex<BTreeMap<String, usize>>,
}

impl Ledger {
    pub(crate) fn fails(&self, told: &str) {
        *self.told.lock().unwrap().entry(told.to_owned()).or_default() += 1;
    }

    pub(crate) fn one(&self, counter: fn(&Self) -> &AtomicU64) {
        counter(self).fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, counter: fn(&Self) -> &AtomicU64) -> u64 {
        counter(self).load(Ordering::Relaxed)
    }
}

/// What befalls the server while there are clients.
async fn trouble(net: Net, behind: Arc<Behind>, ledger: Arc<Ledger>, seed: u64) {
    let mut choice = Choice::of(seed);
    loop {
        choice.pause(1200).await;
        behind.strike(&net, &ledger, &mut choice).await;
    }
}

async fn soak(name: &str, ledger: Arc<Ledger>, behind: Behind) {
    let (net, behind) = (Net::new(), Arc::new(behind));
    behind.put(&net, &ledger);
    let proxy = Arc::new(Proxy::configured(&net, &behind.toml()).await);
    let (mut sizes, mut started) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        // The record of requests that the peer keeps is not the proxy's.
        behind.put(&net, &ledger);
        let troubles = tokio::spawn(trouble(net.clone(), behind.clone(), ledger.clone(), round + 3));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| clients::client(proxy.clone(), ledger.clone(), round * CLIENTS + n + 1))
            .map(tokio::spawn)
            .collect();
        for client in clients {
            client.await.expect("no client fails");
        }
        troubles.abort();
        behind.put(&net, &ledger);
        // Longer than `session.idle` and every timeout of a call: whatever is still there stays.
        pass(3_600_000).await;
        assert_eq!(behind.left(&net).await, [] as [String; 0], "round {round}: what nobody uses");
        assert_eq!(proxy.sessions(), 0, "round {round}");
        assert_eq!(standing(&proxy.metrics()), [] as [String; 0], "round {round}");
        started += behind.forget(&net);
        // A round's calls are let go, so that what is measured is the proxy's.
        let twice: Vec<_> = ledger.ran.lock().unwrap().drain().filter(|(_, times)| *times > 1).collect();
        assert!(twice.is_empty(), "round {round}: ran more than once: {twice:?}");
        sizes.push(resident_kib());
    }
    let (answered, failed, left) =
        (ledger.count(|it| &it.answered), ledger.count(|it| &it.failed), ledger.count(|it| &it.left));
    println!(
        "{name}: {answered} answered, {failed} failed, {left} left, {} questions, {} changes, {} turned away, \
         {started} channels; resident KiB {sizes:?}",
        ledger.count(|it| &it.questions),
        ledger.count(|it| &it.changes),
        ledger.count(|it| &it.turned_away),
    );
    for (told, times) in ledger.told.lock().unwrap().iter() {
        println!("{times:5} x {told}");
    }
    assert_eq!(answered + failed + left, ledger.count(|it| &it.calls), "every call has one end");
    assert!(answered > ledger.count(|it| &it.calls) / 2 && failed > 0 && left > 0);
    assert!(ledger.count(|it| &it.questions) > 100 && ledger.count(|it| &it.changes) > 50);
    let (early, late) = (sizes[2], sizes[ROUNDS as usize - 1]);
    assert!(late <= early + GROWTH, "resident KiB after each round: {sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn inv5_nothing_of_legacy_children_is_lost_doubled_or_left_over() {
    soak("legacy children", Arc::default(), Behind::processes(Era::Legacy("2025-11-25"))).await;
}

#[tokio::test(start_paused = true)]
async fn inv5_nothing_of_modern_children_is_lost_doubled_or_left_over() {
    soak("modern children", Arc::default(), Behind::processes(Era::Modern)).await;
}

#[tokio::test(start_paused = true)]
async fn inv5_nothing_of_event_streams_is_lost_doubled_or_left_over() {
    let ledger = Arc::default();
    let behind = Behind::event_streams(&ledger);
    soak("event streams", ledger, behind).await;
}
