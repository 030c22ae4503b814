//! What stands behind the proxy in a soak: a program's processes, or a server's event streams.
//!
//! Owns what befalls them, how many there may be, and what is left of them. Does not own what the server says (`server`).

use std::io;
use std::sync::{Arc, Mutex};

use crate::support::{Choice, Era, Net, OldSseServer};
use crate::{Ledger, server};

/// Processes or event streams at once.
const MOST: usize = 40;

/// What no server should say: each is passed over, or answered with an error, and touches no call.
const NASTY: [&str; 19] = [
    "half a line that no",
    "",
    "null",
    "42",
    "[1,2]",
    "[]",
    "{}",
    "\u{1b}[31mred\u{1b}[0m",
    r#"{"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#,
    r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"what"}}"#,
    r#"{"jsonrpc":"2.0","id":987654321,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":"nobody's","error":{"code":1,"message":"m"}}"#,
    r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":987654321,"progress":1}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":987654321}}"#,
    r#"[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}},{"x":1}]"#,
    r#"{"level":"info","msg":"starting"}"#,
];

/// What a modern server has no business to say besides: requests of its own, and what says nobody's name.
const MODERN_NASTY: [&str; 6] = [
    r#"{"jsonrpc":"2.0","id":"r-1","method":"acme/unknown","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":"r-2","method":"roots/list"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
];

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
            "[upstream.up]\n{target}\nsse_path = \"/sse\"\nlimits = {{ max_processes = {MOST} }}\n\
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
                    7 => self.nasty().for_each(|text| one.say(text)),
                    2 => one.write("event: other\ndata: {}\n\n: a comment\n\n"),
                    3 => self.put(net, ledger),
                    4 => open.iter().for_each(|one| one.break_off()),
                    _ => one.break_off(),
                }
            }
        }
    }

    fn nasty(&self) -> impl Iterator<Item = &'static str> {
        let modern = matches!(self, Self::Processes(Era::Modern));
        NASTY.into_iter().chain(MODERN_NASTY.into_iter().filter(move |_| modern))
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
            2 => one.write(b"\xff\xfe\x00 no UTF-8\n"),
            7 => self.nasty().for_each(|text| one.say(text)),
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
