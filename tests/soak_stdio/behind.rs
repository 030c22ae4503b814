//! What stands behind the proxy in a soak: a program's processes, or a server's event streams.
//!
//! Owns what befalls them, how many there may be, and what is left of them. Does not own what the server says (`server`).

use std::io;
use std::sync::{Arc, Mutex};

use crate::support::{Choice, Era, Net, OldSseServer};
use crate::{Ledger, server};

/// Processes or event streams at once.
const MOST: usize = 40;

pub(crate) enum Behind {
    Processes(Era),
    /// Of HTTP+SSE; the server of now, and streams of those before it.
    EventStreams(Mutex<OldSseServer>, Mutex<usize>),
}

impl Behind {
    pub(crate) fn processes(era: Era) -> Self {
        Self::Processes(era)
    }

    pub(crate) fn event_streams(ledger: &Arc<Ledger>) -> Self {
        Self::EventStreams(Mutex::new(OldSseServer::new(&server::legacy(ledger))), Mutex::default())
    }

    /// From now on this is what is started or reached; what is there already goes on, or not.
    pub(crate) fn put(&self, net: &Net, ledger: &Arc<Ledger>) {
        match self {
            Self::Processes(Era::Legacy(version)) => {
                server::legacy(ledger).version(version).start_program(net, "server");
            }
            Self::Processes(Era::Modern) => {
                server::modern(ledger).start_program(net, "server");
            }
            Self::EventStreams(now, before) => {
                let mut now = now.lock().unwrap();
                *before.lock().unwrap() += now.streams().len();
                now.streams().iter().for_each(|stream| stream.break_off());
                *now = OldSseServer::new(&server::legacy(ledger));
                now.start(net);
            }
        }
    }

    pub(crate) fn toml(&self) -> String {
        let target = match self {
            Self::Processes(_) => "command = \"server\"".to_owned(),
            Self::EventStreams(..) => {
                format!("url = \"{}\"\ntransport = \"sse\"", crate::support::old_sse_server::URL)
            }
        };
        let max = match self {
            Self::Processes(_) => String::new(),
            Self::EventStreams(..) => format!(", max = {MOST}"),
        };
        format!(
            "[upstream.up]\n{target}\nlimits = {{ max_processes = {MOST} }}\n\
             timeouts = {{ request = \"30s\", answer = \"20s\" }}\nsession = {{ idle = \"2m\"{max} }}\n"
        )
    }

    /// One thing that befalls it.
    pub(crate) async fn strike(&self, net: &Net, ledger: &Arc<Ledger>, choice: &mut Choice) {
        match self {
            Self::Processes(_) => self.strike_processes(net, ledger, choice).await,
            Self::EventStreams(now, _) => {
                let open: Vec<_> = {
                    let now = now.lock().unwrap();
                    now.streams().into_iter().filter(|stream| stream.is_open()).collect()
                };
                assert!(open.len() <= MOST, "{} event streams", open.len());
                if open.is_empty() {
                    return;
                }
                let one = &open[choice.below(open.len() as u64) as usize];
                match choice.below(8) {
                    0 => one.end(),
                    1 => one.write("data: half an event that no"),
                    2 => one.write("event: other\ndata: {}\n\n: a comment\n\n"),
                    3 => self.put(net, ledger),
                    4 => open.iter().for_each(|one| one.break_off()),
                    _ => one.break_off(),
                }
            }
        }
    }

    async fn strike_processes(&self, net: &Net, ledger: &Arc<Ledger>, choice: &mut Choice) {
        let alive = net.programs().alive();
        assert!(alive.len() <= MOST, "{} processes", alive.len());
        if alive.is_empty() {
            return;
        }
        let one = &alive[choice.below(alive.len() as u64) as usize];
        match choice.below(8) {
            0 => one.exit(0),
            1 => one.exit(1),
            2 => one.say("half a line that no"),
            3 => one.complain(b"something on standard error\n"),
            4 => {
                net.programs().fail("server", io::ErrorKind::NotFound);
                choice.pause(400).await;
                self.put(net, ledger);
            }
            5 => alive.iter().for_each(|one| one.dies()),
            _ => one.dies(),
        }
    }

    /// What is still there, in words.
    pub(crate) async fn left(&self, net: &Net) -> Vec<String> {
        match self {
            Self::Processes(_) => {
                let alive: Vec<_> = net.programs().alive();
                if alive.is_empty() {
                    net.programs().over().await;
                }
                alive.iter().map(|one| format!("process {}: {:?}", one.n, one.briefs())).collect()
            }
            Self::EventStreams(now, _) => {
                let streams = now.lock().unwrap().streams();
                streams.iter().filter(|stream| stream.is_open()).map(|stream| stream.sid.clone()).collect()
            }
        }
    }

    /// How many there were since the last time, of which the record goes.
    pub(crate) fn forget(&self, net: &Net) -> usize {
        match self {
            Self::Processes(_) => {
                let all = net.programs().all().len();
                net.programs().forget_ended();
                all
            }
            Self::EventStreams(now, before) => {
                let now = now.lock().unwrap().streams().len();
                std::mem::take(&mut *before.lock().unwrap()) + now
            }
        }
    }
}
