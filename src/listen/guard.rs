//! Which `Host` and `Origin` a request may carry: the protection of a local server against web pages.
//!
//! Owns A12.11 and the client half of case C61. Does not own CORS answers or authorisation.
//!
//! A page on any site can make its visitor's browser send requests to 127.0.0.1, and with a DNS name that it points there
//! (rebinding) even read the answers. `Origin` gives the first away, `Host` the second. Hence, on a loopback bind only
//! loopback names and configured ones pass as `Host`, and an `Origin` must be of this machine or configured. Elsewhere
//! the host names are unknown until configured, and no origin passes unless configured. A request without `Origin` does
//! not come from a page.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderValue, Request, header};

use crate::config::Listen;

/// The rules of one listening socket.
#[derive(Debug, Clone)]
pub struct Guard {
    loopback: bool,
    hosts: Vec<Authority<String>>,
    origins: Vec<String>,
    any_origin: bool,
    /// No setting names further hosts or origins.
    fixed: bool,
}

/// What is wrong with a request's provenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    #[error("this Host is not served here; `listen.allowed_hosts` names further ones")]
    Host,
    #[error("requests from this Origin are refused; `listen.allowed_origins` names further ones")]
    Origin,
    #[error("this Host is not served here: only localhost and loopback addresses are")]
    HostHere,
    #[error("requests from this Origin are refused here")]
    OriginHere,
}

impl Foreign {
    /// For metrics.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Foreign::Host | Foreign::HostHere => "host",
            Foreign::Origin | Foreign::OriginHere => "origin",
        }
    }
}

impl Foreign {
    /// What the request says of itself there, for the log.
    pub(super) fn named<B>(self, request: &Request<B>) -> String {
        const SHOWN: usize = 128;
        let name = match self {
            Foreign::Host | Foreign::HostHere => header::HOST,
            Foreign::Origin | Foreign::OriginHere => header::ORIGIN,
        };
        let values =
            request.headers().get_all(&name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let target = request.uri().authority().filter(|_| name == header::HOST);
        let all: Vec<_> = values.chain(target.map(|authority| authority.as_str().into())).collect();
        all.join(", ").chars().take(SHOWN).collect()
    }
}

/// A host and, if there is one, a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority<S> {
    host: S,
    port: Option<u16>,
}

impl Guard {
    /// `bound` is the address that the socket really has.
    pub fn new(settings: &Listen, bound: SocketAddr) -> Self {
        Self {
            loopback: bound.ip().to_canonical().is_loopback(),
            hosts: settings
                .allowed_hosts
                .iter()
                .filter_map(|host| Authority::parse(host))
                .map(|Authority { host, port }| Authority { host: host.to_ascii_lowercase(), port })
                .collect(),
            origins: settings.allowed_origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
            any_origin: settings.allowed_origins.iter().any(|origin| origin == "*"),
            fixed: false,
        }
    }

    /// As it is, whatever the settings of the clients' listener are.
    pub fn fixed(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// Judges `Origin`, for every method.
    pub fn check_origin<B>(&self, request: &Request<B>) -> Result<(), Foreign> {
        let mut origins = request.headers().get_all(header::ORIGIN).iter();
        if self.any_origin || origins.all(|origin| self.origin_passes(origin)) {
            Ok(())
        } else {
            Err(if self.fixed { Foreign::OriginHere } else { Foreign::Origin })
        }
    }

    /// Judges `Host`, and the authority of the request target, which is where HTTP/2 puts it.
    pub fn check_host<B>(&self, request: &Request<B>) -> Result<(), Foreign> {
        if !self.loopback && self.hosts.is_empty() {
            return Ok(());
        }
        let target = request.uri().authority().map(|authority| authority.as_str());
        let headers = request.headers().get_all(header::HOST);
        let mut hosts = headers.iter().map(|host| host.to_str().unwrap_or_default()).chain(target).peekable();
        let named = hosts.peek().is_some();
        if named && hosts.all(|host| self.host_passes(host)) {
            Ok(())
        } else {
            Err(if self.fixed { Foreign::HostHere } else { Foreign::Host })
        }
    }

    /// Whether the socket is reachable from this machine only.
    pub fn is_loopback(&self) -> bool {
        self.loopback
    }

    fn origin_passes(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let Some((scheme, rest)) = origin.split_once("://") else { return false };
        let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        self.loopback
            && web
            && Authority::parse(rest).is_some_and(|authority| is_this_machine(authority.host))
    }

    fn host_passes(&self, host: &str) -> bool {
        let Some(Authority { host, port }) = Authority::parse(host) else { return false };
        (self.loopback && is_this_machine(host))
            || self.hosts.iter().any(|allowed| {
                allowed.host.eq_ignore_ascii_case(host) && (allowed.port.is_none() || allowed.port == port)
            })
    }
}

impl<'a> Authority<&'a str> {
    /// `host`, `host:port`, `[v6]`, `[v6]:port`, with one trailing dot of a name dropped. A bare IPv6 address, as a
    /// configuration may write it, is taken as one. Nothing that could be read in two ways is.
    fn parse(text: &'a str) -> Option<Self> {
        if text.bytes().filter(|byte| *byte == b':').count() > 1 && text.parse::<Ipv6Addr>().is_ok() {
            return Some(Self { host: text, port: None });
        }
        let (host, rest) = match text.strip_prefix('[') {
            Some(inner) => inner.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match rest.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            None if rest.is_empty() => None,
            Some(_) | None => return None,
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        (!host.is_empty() && host.bytes().all(plain)).then_some(Self { host, port })
    }
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
