//! Lists with a bad tool, and clients and servers of either era that are before one another.

use crate::support::{Answer, Ask, Era, LegacyServer, ModernServer, Net, Old, Proxy, Reply, Upstream, list};

pub(crate) const LEGACY: Era = Era::Legacy("2025-11-25");

/// Written so that whoever writes it anew shows.
pub(crate) const GOOD: &str = r#"{ "name":"good" , "inputSchema":{"type":"object","properties":{"a":{"default":1e400}}} ,"u":"\u00e9"}"#;
pub(crate) const OTHER: &str = r#"{"name":"other","inputSchema":{"type":"object"}}"#;
/// There is no such type.
pub(crate) const BAD: &str =
    r#"{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"text","title":"canary"}}}}"#;

pub(crate) const WARN: &str = "[upstream.up.schema]\npolicy = \"warn\"\n";

/// The members of a list's result in the server's era.
pub(crate) fn members(era: Era, tools: &[&str]) -> String {
    let tools = tools.join(",");
    match era {
        Era::Modern => {
            let info = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"8"}}"#;
            format!(
                r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{tools}],{info}}}"#
            )
        }
        Era::Legacy(_) => format!(r#"{{"tools":[{tools}]}}"#),
    }
}

pub(crate) fn message(era: Era, id: &str, tools: &[&str]) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, members(era, tools))
}

/// A client and a server of one era, and the proxy between them.
pub(crate) struct Like {
    pub(crate) proxy: Proxy,
    pub(crate) up: Upstream,
    old: Option<Old>,
}

impl Like {
    /// Before a server that answers this method so, with lines of configuration.
    pub(crate) async fn of<F>(
        era: Era,
        method: &str,
        toml: &str,
        answer: impl Fn(Reply) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let net = Net::new();
        let up = match era {
            Era::Modern => {
                ModernServer::new().on(method, move |_, reply| answer(reply)).start_unchecked(&net)
            }
            Era::Legacy(_) => LegacyServer::new().on(method, move |_, reply| answer(reply)).start(&net),
        };
        Self::before(era, &net, up, toml).await
    }

    pub(crate) async fn before(era: Era, net: &Net, up: Upstream, toml: &str) -> Self {
        let (front, lines) = toml.split_once("---").unwrap_or(("", toml));
        let url = "url = \"http://up.test/mcp\"";
        let proxy = Proxy::configured(net, &format!("{front}\n[upstream.up]\n{url}\n{lines}")).await;
        let old = match era {
            Era::Modern => None,
            Era::Legacy(version) => Some(Old::open(&proxy, version).await),
        };
        Self { proxy, up, old }
    }

    pub(crate) fn old(&self) -> &Old {
        self.old.as_ref().expect("a legacy client")
    }

    pub(crate) fn list(&self) -> Ask {
        match &self.old {
            Some(old) => old.ask("tools/list"),
            None => list("tools/list"),
        }
        .id("7")
    }

    pub(crate) fn call(&self, tool: &str) -> Ask {
        match &self.old {
            Some(old) => old.call(tool, "{}"),
            None => crate::support::call(tool, "{}"),
        }
        .id("7")
    }

    pub(crate) async fn open(&self, ask: &Ask) -> Answer {
        self.proxy.open(ask).await
    }

    /// Status, body, and whether it broke off.
    pub(crate) async fn bytes(&self, ask: &Ask) -> (u16, String, bool) {
        let mut answer = self.open(ask).await;
        let (bytes, broken) = answer.pieces().await;
        (answer.status, String::from_utf8(bytes).unwrap(), broken)
    }

    /// The body of an answer that is whole.
    pub(crate) async fn body(&self, ask: &Ask) -> String {
        let (status, body, broken) = self.bytes(ask).await;
        assert_eq!((status, broken), (200, false), "{body}");
        body
    }
}

/// Answers with an event stream in pieces of so many bytes.
pub(crate) async fn streamed(mut reply: Reply, stream: &str, size: usize) {
    reply.stream().await;
    for piece in stream.as_bytes().chunks(size) {
        reply.chunk(piece).await;
    }
    reply.end().await;
}
