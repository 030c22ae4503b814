//! A proxy before one legacy server whose GET streams are in the test's hands, and the messages that such a server sends.
#![allow(unreachable_pub)]

use crate::support::{Gets, LegacyServer, Listener, Net, Proxy, Upstream, listen, pass};

pub const A: &str = "file:///a";
pub const TOOLS: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
pub const PROMPTS: &str = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
pub const RESOURCES: &str = r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#;
/// A filter for the tools and one resource.
pub const SOME: &str = r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}"#;
pub const TOOLS_ONLY: &str = r#"{"toolsListChanged":true}"#;

pub fn updated(uri: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#)
}

pub fn uris(uris: &[&str]) -> String {
    let quoted: Vec<_> = uris.iter().map(|uri| format!("\"{uri}\"")).collect();
    format!(r#"{{"resourceSubscriptions":[{}]}}"#, quoted.join(","))
}

pub struct Stage {
    pub proxy: Proxy,
    pub up: Upstream,
    pub gets: Gets,
    pub server: LegacyServer,
}

impl Stage {
    pub async fn new() -> Self {
        Self::of(LegacyServer::telling(), Gets::open()).await
    }

    pub async fn of(server: LegacyServer, gets: Gets) -> Self {
        Self::with(server, gets, "").await
    }

    /// With more lines for the upstream's section of the configuration.
    pub async fn with(server: LegacyServer, gets: Gets, lines: &str) -> Self {
        Self::configured(server, gets, "", lines).await
    }

    /// With lines before the upstream's section, too.
    pub async fn configured(server: LegacyServer, gets: Gets, front: &str, lines: &str) -> Self {
        let net = Net::new();
        let server = gets.of(server);
        let up = server.start(&net);
        let toml = format!("{front}\n[upstream.up]\nurl = \"http://up.test/mcp\"\n{lines}");
        Self { proxy: Proxy::configured(&net, &toml).await, up, gets, server }
    }

    /// A subscription that has been acknowledged.
    pub async fn listens(&self, id: &str, notifications: &str) -> Listener {
        let listener = Listener::open(&self.proxy, &listen(id, notifications)).await;
        listener.wait(1).await;
        listener
    }

    /// The URIs of all requests of this method, in order.
    pub fn asked(&self, method: &str) -> Vec<String> {
        let uri = |seen: std::sync::Arc<crate::support::Seen>| {
            seen.json()["params"]["uri"].as_str().map(str::to_owned)
        };
        self.up.posts(method).into_iter().filter_map(uri).collect()
    }

    /// Nobody listens any more: the stream is closed, and nothing follows the session.
    pub async fn nothing_is_left(&self) {
        pass(1000).await;
        assert_eq!(self.proxy.feeds(), 0, "nothing follows a session");
        assert_eq!(self.gets.now(), 0, "no stream is open");
        let gets = self.gets.all().len();
        pass(120_000).await;
        assert_eq!(self.gets.all().len(), gets, "no stream is asked for");
    }
}
