//! Names on the network and in HTTP: endpoint paths, host names, origins, header names and values.
//!
//! Owns the grammar of each, in the form that the rest of the program compares with. Does not own the checks of
//! requests against them.

use std::net::{IpAddr, Ipv6Addr};

use hyper::header::HeaderName;
use toml::Value;
use url::{Host, Url};

use super::error::ConfigError;
use super::values::text;

/// Paths that the proxy answers itself.
const OWN_PATHS: &[&str] = &["/healthz", "/readyz"];

/// Headers that belong to one hop, to the protocol, or to the HTTP codec: never set or passed on by a setting.
const RESERVED_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "last-event-id",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The path that clients use, without a trailing slash.
pub(super) fn endpoint_path(path: &str, value: &Value) -> Result<String, ConfigError> {
    const ACCEPTED: &str = "a path such as \"/mcp\": begins with `/`; its segments hold letters, digits, `-`, `.`, \
                            `_`, `~` and are neither `.` nor `..`; not \"/healthz\" or \"/readyz\"";
    let given = text(path, value, ACCEPTED)?;
    let trimmed = given.strip_suffix('/').unwrap_or(given);
    // `/` alone serves the root.
    let is_root = given == "/";
    let is_path = trimmed.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_segment));
    if !(is_root || is_path) || OWN_PATHS.contains(&trimmed) {
        return Err(ConfigError::value(path, value, ACCEPTED));
    }
    Ok(if is_root { given.to_owned() } else { trimmed.to_owned() })
}

/// An `http` or `https` URL that can be the one address of an upstream.
pub(super) fn endpoint_url(path: &str, value: &Value) -> Result<Url, ConfigError> {
    const ACCEPTED: &str =
        "an http:// or https:// URL without user, password and fragment, or \"builtin:demo\"";
    let given = text(path, value, ACCEPTED)?;
    // The parser drops some blanks in silence; whoever wrote one should know.
    let clean = !given.contains(|c: char| c.is_whitespace() || c.is_control());
    let has_scheme = ["http://", "https://"]
        .iter()
        .any(|scheme| given.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    Url::parse(given)
        .ok()
        .filter(|url| {
            clean
                && has_scheme
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
                && url.port() != Some(0)
        })
        .ok_or_else(|| ConfigError::value(path, value, ACCEPTED))
}

/// `localhost`, `*.localhost` and the loopback addresses.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        None => false,
    }
}

/// A name for `allowed_hosts`, in lower case.
pub(super) fn host(path: &str, value: &Value) -> Result<String, ConfigError> {
    const ACCEPTED: &str = "a host name or address, with a port or without, such as \"mcp.example.com\", \
                            \"10.0.0.7:8808\" or \"[::1]:8808\"";
    let given = text(path, value, ACCEPTED)?.to_ascii_lowercase();
    let (name, port) = match given.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address.parse::<Ipv6Addr>().is_ok(), port),
        None => {
            let (name, port) = given.split_at(given.find(':').unwrap_or(given.len()));
            (is_host_name(name), port)
        }
    };
    let port_fits = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    if name && port_fits { Ok(given) } else { Err(ConfigError::value(path, value, ACCEPTED)) }
}

/// A value for `allowed_origins` as browsers write it: lower case, no default port, no slash at the end.
pub(super) fn origin(path: &str, value: &Value) -> Result<String, ConfigError> {
    const ACCEPTED: &str =
        "scheme://host or scheme://host:port, such as \"https://app.example.com\", or \"*\" for any";
    let given = text(path, value, ACCEPTED)?;
    if given == "*" {
        return Ok(given.to_owned());
    }
    let refuse = || ConfigError::value(path, value, ACCEPTED);
    let (_, authority) = given.split_once("://").ok_or_else(refuse)?;
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let plain = !authority.is_empty()
        && !authority.contains(|c: char| c.is_whitespace() || c.is_control() || "/?#@*\\".contains(c));
    let url = Url::parse(given).ok().filter(|_| plain).ok_or_else(refuse)?;
    let origin = url.origin();
    // Schemes of extensions and embedded views have no origin in the sense of the URL standard.
    Ok(if origin.is_tuple() {
        origin.ascii_serialization()
    } else {
        given.strip_suffix('/').unwrap_or(given).to_ascii_lowercase()
    })
}

/// A header name in lower case that a setting may set or pass on.
pub(super) fn free_header_name(path: &str, value: &Value, name: &str) -> Result<String, ConfigError> {
    const ACCEPTED: &str = "a header name other than `host`, `accept`, `content-*`, `last-event-id`, `mcp-*` and the \
                            hop-by-hop ones; for `authorization` there is the setting `authorization`";
    header_name(name)
        .filter(|name| {
            !RESERVED_HEADERS.contains(&name.as_str()) && !name.starts_with("mcp-") && name != "authorization"
        })
        .ok_or_else(|| ConfigError::value(path, value, ACCEPTED))
}

/// Any valid header name, in lower case.
pub(super) fn header_name(name: &str) -> Option<String> {
    HeaderName::from_bytes(name.as_bytes()).ok().map(|name| name.as_str().to_owned())
}

/// What may stand in a header line: visible ASCII, blanks only inside, not empty.
pub(super) fn is_header_value(text: &str) -> bool {
    let visible = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ' || b == b'\t');
    !text.is_empty() && text.trim() == text && visible
}

fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && segment != "."
        && segment != ".."
        && segment.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b))
}

fn is_host_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['.', '-'])
        && !name.contains("..")
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port != 0)
}
