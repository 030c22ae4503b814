//! `subscriptions/listen` as the proxy itself sends it, for legacy clients, who have nothing like it.
//!
//! Owns what is asked for and how it is written, and which subscriptions an update may belong to. Who asks, and when, is
//! `upstream::modern::feed`'s business; what comes back is read in `notify`.
//! Rules: A1.8, A1.9, A4.2-A4.4, B9.4, B9.7; spec 2026-07-28 basic/patterns/subscriptions.

use super::super::discover::OWN_INFO;
use crate::wire::json::quote_into;
use crate::wire::meta;
use crate::wire::payload::Payload;
use crate::wire::version::MODERN;
use std::fmt::Write;
use std::sync::Arc;

pub use super::super::listen::is_within;

pub const METHOD: &str = "subscriptions/listen";

/// Kinds of lists whose changes can be told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lists {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
}

impl Lists {
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// What is in both.
    pub fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools && other.tools,
            prompts: self.prompts && other.prompts,
            resources: self.resources && other.resources,
        }
    }

    /// What is not in `other`.
    pub fn without(self, other: Self) -> Self {
        Self {
            tools: self.tools && !other.tools,
            prompts: self.prompts && !other.prompts,
            resources: self.resources && !other.resources,
        }
    }
}

/// The request. Its client is the proxy: it is sent for all clients of one principal, and asks nobody anything.
pub fn request(number: u64, lists: Lists, uris: &[Arc<str>]) -> Payload {
    let mut out = String::with_capacity(320 + uris.iter().map(|uri| uri.len() + 3).sum::<usize>());
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        r#"{{"jsonrpc":"2.0","id":{number},"method":"{METHOD}","params":{{"_meta":{{"{}":"{MODERN}","{}":{OWN_INFO},"{}":{{}}}},"notifications":{{"#,
        meta::PROTOCOL_VERSION,
        meta::CLIENT_INFO,
        meta::CLIENT_CAPABILITIES,
    );
    let flags = [
        (lists.tools, "\"toolsListChanged\":true"),
        (lists.prompts, "\"promptsListChanged\":true"),
        (lists.resources, "\"resourcesListChanged\":true"),
    ];
    let mut separator = "";
    for (_, flag) in flags.into_iter().filter(|(wanted, _)| *wanted) {
        out.push_str(separator);
        out.push_str(flag);
        separator = ",";
    }
    if !uris.is_empty() {
        out.push_str(separator);
        out.push_str("\"resourceSubscriptions\":");
        separator = "[";
        for uri in uris {
            out.push_str(separator);
            quote_into(&mut out, uri);
            separator = ",";
        }
        out.push(']');
    }
    out.push_str("}}}");
    Payload::from(out)
}

/// Every URI whose subscription covers an update of this one: those for which [`is_within`] holds.
pub fn covering(uri: &str) -> impl Iterator<Item = &str> {
    // Each prefix that ends with a slash, or before one.
    let ends = (0..uri.len()).filter(|at| {
        let at_slash = uri.as_bytes().get(*at) == Some(&b'/');
        at_slash || at.checked_sub(1).is_some_and(|before| uri.as_bytes().get(before) == Some(&b'/'))
    });
    std::iter::once(uri).chain(ends.filter_map(|end| uri.get(..end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::Limits;
    use crate::wire::jsonrpc::{self, Message};

    fn text(lists: Lists, uris: &[&str]) -> String {
        let uris: Vec<Arc<str>> = uris.iter().map(|uri| Arc::from(*uri)).collect();
        String::from_utf8(request(7, lists, &uris).to_bytes().to_vec()).unwrap()
    }

    /// A1.9, A4.2-A4.4; example of the specification's page on subscriptions.
    #[test]
    fn the_request_asks_for_what_is_wanted_and_nothing_else() {
        let lists = Lists { tools: true, prompts: false, resources: true };
        let asked = text(lists, &["file:///a", "x:\"\\"]);
        let wanted = r#""notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///a","x:\"\\"]}}}"#;
        assert!(asked.ends_with(wanted), "{asked}");
        let uris = text(Lists::default(), &["u"]);
        assert!(uris.ends_with(r#""notifications":{"resourceSubscriptions":["u"]}}}"#), "{uris}");
        let limits = Limits { nesting: 16, members: 64 };
        let Ok(Message::Request(read)) = jsonrpc::parse(asked.into(), limits) else { panic!("a request") };
        assert_eq!(read.method, METHOD);
        let meta = read.params.meta().unwrap();
        let member = |name| meta.first(&read.text, name).unwrap().of(&read.text);
        assert_eq!(member("io.modelcontextprotocol/protocolVersion"), b"\"2026-07-28\"");
        assert_eq!(member("io.modelcontextprotocol/clientCapabilities"), b"{}");
        assert!(member("io.modelcontextprotocol/clientInfo").starts_with(b"{\"name\":\"mcp-janus\""));
    }

    /// B9.4, D98: both ways to say it agree.
    #[test]
    fn what_covers_an_update_is_what_it_is_within() {
        let all =
            ["file:///d", "file:///d/", "file:///d/a", "file:///d/a/", "file:///dx", "file://", "file:///"];
        for uri in ["file:///d/a", "file:///d", "file:///d/", "file:///dx/a//b", "x", "/", "é/ü"] {
            let covering: Vec<_> = covering(uri).collect();
            for subscribed in all {
                assert_eq!(covering.contains(&subscribed), is_within(uri, subscribed), "{uri} {subscribed}");
            }
            assert!(covering.iter().all(|subscribed| is_within(uri, subscribed)), "{uri} {covering:?}");
            let once: std::collections::HashSet<_> = covering.iter().collect();
            assert_eq!(once.len(), covering.len(), "{uri} {covering:?}");
        }
    }
}
