//! One cell set up: a server of its kind, the proxy before it, and its client.
//!
//! Owns what differs by the server's era and transport; the scenes hold its calls, streams and subscriptions. Does not own the
//! client.

use std::sync::Arc;

use crate::Pair;
use crate::support::{
    Calls, Era, Gets, LegacyServer, Listens, ModernServer, Net, Party, Proxy, Transport, Upstream, Value,
};

pub(crate) struct Stage {
    pub(crate) pair: Pair,
    pub(crate) net: Net,
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) up: Upstream,
    pub(crate) party: Party,
    pub(crate) calls: Calls,
    pub(crate) streams: Streams,
}

/// Where the server tells of changes.
pub(crate) enum Streams {
    Legacy(Gets),
    Modern(Listens),
}

impl Stage {
    pub(crate) async fn set(pair: Pair, shield: bool) -> Self {
        let (net, calls) = (Net::new(), Calls::new());
        let (up, streams) = server(pair, &net, &calls);
        let target = match pair.to {
            Transport::Http => "url = \"http://up.test/mcp\"".to_owned(),
            // Found out, and said.
            Transport::HttpSse if !shield => "url = \"http://up.test/sse\"".to_owned(),
            Transport::HttpSse => "url = \"http://up.test/sse\"\ntransport = \"sse\"".to_owned(),
            Transport::Stdio => "command = \"server\"".to_owned(),
        };
        let sse_path = match pair.from {
            Transport::HttpSse => "sse_path = \"/sse\"\n",
            Transport::Http | Transport::Stdio => "",
        };
        let toml = format!("[upstream.up]\n{target}\n{sse_path}session = {{ shield = {shield} }}\n");
        let proxy = Arc::new(Proxy::configured(&net, &toml).await);
        let party = Party::join(&proxy, pair.client, pair.from).await;
        if pair.client != Era::Modern {
            assert_eq!(party.initialized()["protocolVersion"], agreed(pair), "{pair:?}");
        }
        let streams_of_its_own = party.open_stream().await;
        assert_eq!(
            streams_of_its_own,
            pair.client != Era::Modern && pair.from == Transport::Http,
            "{pair:?}"
        );
        Self { pair, net, proxy, up, party, calls, streams }
    }

    /// For the words of a test that fails.
    pub(crate) fn context(&self) -> String {
        let pair = self.pair;
        format!("{:?} over {:?} to {:?} over {:?}", pair.client, pair.from, pair.server, pair.to)
    }

    /// Whether the server learns by a message that a request is given up, and not by the end of a stream.
    pub(crate) fn is_told_of_cancels(&self) -> bool {
        match (self.pair.server, self.pair.to) {
            (Era::Modern, Transport::Http) => false,
            (Era::Modern | Era::Legacy(_), _) => true,
        }
    }

    /// Tells of a change, named as in `Listens::tell`, once somebody can hear it.
    pub(crate) async fn tell(&self, change: &str) {
        match &self.streams {
            Streams::Legacy(gets) => {
                gets.wait(1).await;
                gets.tell(&match change {
                    "tools" | "prompts" | "resources" => {
                        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{change}/list_changed"}}"#)
                    }
                    uri => format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
                    ),
                });
            }
            Streams::Modern(listens) => {
                match change {
                    "tools" | "prompts" | "resources" => {
                        listens.of_flag(&format!("{change}ListChanged")).await;
                    }
                    uri => {
                        listens.of_uri(uri).await;
                    }
                }
                listens.tell(change);
            }
        }
    }
}

/// A server of this kind, under the name that the configuration gives it.
fn server(pair: Pair, net: &Net, calls: &Calls) -> (Upstream, Streams) {
    match pair.server {
        Era::Modern => {
            let listens = Listens::open();
            let server = listens.of(calls.of_modern(ModernServer::full()));
            let up = match (pair.to, pair.client) {
                (Transport::Stdio, Era::Legacy(_)) => server.start_bridged_program(net, "server"),
                (Transport::Stdio, Era::Modern) => server.start_program(net, "server"),
                (Transport::Http | Transport::HttpSse, Era::Legacy(_)) => server.start_bridged(net),
                (Transport::Http | Transport::HttpSse, Era::Modern) => server.start(net),
            };
            (up, Streams::Modern(listens))
        }
        Era::Legacy(version) => {
            let gets = Gets::open();
            // A server of a later revision agrees on the client's.
            let agreed = match pair.client {
                Era::Legacy(client) => version.min(client),
                Era::Modern => version,
            };
            let server = gets.of(calls.of(LegacyServer::telling().version(agreed)));
            let up = match pair.to {
                Transport::Http => server.start(net),
                Transport::Stdio => server.start_program(net, "server"),
                Transport::HttpSse => server.start_old_sse(net),
            };
            (up, Streams::Legacy(gets))
        }
    }
}

/// The version that client and server have in common; `null` where the client names none.
fn agreed(pair: Pair) -> Value {
    match (pair.client, pair.server) {
        (Era::Modern, _) => Value::Null,
        (Era::Legacy(client), Era::Modern) => client.into(),
        (Era::Legacy(client), Era::Legacy(server)) => server.min(client).into(),
    }
}
