//! A program of both eras in the test's hands.
#![allow(unreachable_pub)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use crate::stage::Stage;
use crate::support::{Call, Calls, Gets, LegacyServer, Listens, ModernServer, Net, Reply, Seen, lines, net};

/// A program of both eras: what claims 2026-07-28 is answered as that has it, all else as 2025-11-25 has it.
pub struct Both {
    pub stage: Stage,
    /// What is answered only once it is let through, by method.
    held: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
}

impl Both {
    pub async fn new(settings: &str) -> Self {
        let (net, calls, listens, gets) = (Net::new(), Calls::new(), Listens::open(), Gets::open());
        let legacy = calls.of(gets.of(LegacyServer::telling()));
        let modern = calls.of_modern(listens.of(ModernServer::full()));
        let held = Arc::<Mutex<HashMap<String, Arc<Semaphore>>>>::default();
        let gates = held.clone();
        let handler = net::handler(move |seen: Arc<Seen>, reply: Reply| {
            let (legacy, modern) = (legacy.clone(), modern.clone());
            let gate = gates.lock().unwrap().get(&seen.brief()).cloned();
            async move {
                if let Some(gate) = gate {
                    gate.acquire().await.expect("an open gate").forget();
                }
                match seen.header("mcp-protocol-version") {
                    Some(_) => modern.answer(seen, reply).await,
                    None => legacy.answer(seen, reply).await,
                }
            }
        });
        let up = lines::start(&net, "server", net.serve("server", net::Receiver::Dual, handler));
        let stage = Stage { listens, ..Stage::before(net, up, calls, settings).await };
        Self { stage, held }
    }

    /// From now on this method is answered only as often as it is let through.
    pub fn hold(&self, method: &str) {
        self.held.lock().unwrap().insert(method.to_owned(), Arc::new(Semaphore::new(0)));
    }

    /// Lets one through.
    pub fn let_through(&self, method: &str) {
        self.held.lock().unwrap()[method].add_permits(1);
    }

    /// From now on this method is answered at once.
    pub fn release(&self, method: &str) {
        if let Some(gate) = self.held.lock().unwrap().remove(method) {
            gate.add_permits(1_000);
        }
    }

    /// Ends a call in the words of the era that it came in.
    pub fn finish(call: &Call, text: &str) {
        if call.seen.header("mcp-protocol-version").is_some() {
            call.completes(text)
        } else {
            call.finish(text)
        }
    }
}
