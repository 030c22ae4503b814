//! What is allowed, but should be known: settings that work and may surprise.
//!
//! Owns the list of such combinations. Never refuses anything.

use std::ffi::OsStr;
use std::fmt;

use super::error::REDACTED;
use super::secrets::PREFIX;
use super::substitute::{Env, below};
use super::{
    Authorization, Config, EraSetting, HttpTransport, Session, SessionScope, Target, Upstream, net, target,
};
use crate::wire::version::LegacyRevision;

/// A remark on the setting at `path`.
#[derive(Debug)]
pub(super) struct Warning {
    pub(super) path: String,
    pub(super) text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.text)
    }
}

/// `env` is the environment of this process.
pub(super) fn of(config: &Config, env: Env<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |path: String, text: String| warnings.push(Warning { path, text });
    let listen = &config.listen;
    let address = listen.address;
    let exposed = !address.ip().to_canonical().is_loopback();
    if exposed && listen.tls.is_none() {
        let text =
            format!("{address} lets other machines connect, and without TLS credentials travel in clear");
        warn("listen.address".into(), text);
    }
    if exposed && listen.allowed_hosts.is_empty() {
        let text = "empty, so the Host header is not checked on an address that is not loopback";
        warn("listen.allowed_hosts".into(), text.into());
    }
    if listen.allowed_origins.iter().any(|origin| origin == "*") {
        let text = "\"*\" lets any web page call through its visitor's browser";
        warn("listen.allowed_origins".into(), text.into());
    }
    if let Some(admin) = &config.admin
        && !admin.address.ip().to_canonical().is_loopback()
    {
        let text = format!("{} lets other machines read the metrics", admin.address);
        warn("admin.address".into(), text);
    }
    if let Some(admin) = &config.admin
        && admin.address.port() == address.port()
        && address.port() != 0
        && (admin.address.ip() == address.ip()
            || address.ip().is_unspecified()
            || admin.address.ip().is_unspecified())
    {
        warn(
            "admin.address".into(),
            format!("the same port as listen.address, {address}: only one can have it"),
        );
    }
    if config.limits.parked_per_principal > config.limits.parked {
        let text = "more than limits.parked, so no caller comes that far";
        warn("limits.parked_per_principal".into(), text.into());
    }
    for upstream in &config.upstreams {
        of_upstream(upstream, exposed, &mut warn);
        if let Target::Command(command) = &upstream.target
            && let Some(why) = target::unrunnable(command, env("PATH").as_deref())
        {
            warn(format!("upstream.{}.command", upstream.name), why);
        }
        of_secrets(upstream, &mut warn);
    }
    warnings
}

fn of_upstream(upstream: &Upstream, exposed: bool, warn: &mut impl FnMut(String, String)) {
    let at = |setting: &str| format!("upstream.{}.{setting}", upstream.name);
    if let Target::Http(url) = &upstream.target {
        if url.scheme() == "http" && !net::is_loopback(url) {
            let host = url.host_str().unwrap_or_default();
            let text =
                format!("plain http to {host}, not this machine: requests and credentials travel in clear");
            warn(at("url"), text);
        }
        if url.scheme() == "http" && !upstream.ca_files.is_empty() {
            warn(at("ca_files"), "no effect, as the url is plain http".into());
        }
    }
    if upstream.transport == HttpTransport::StreamableHttp && upstream.sse_endpoint.is_some() {
        warn(at("sse_endpoint"), "no effect with transport = \"streamable-http\"".into());
    }
    if upstream.sse_path.is_some() && upstream.era == EraSetting::Modern && !upstream.legacy_clients {
        warn(at("sse_path"), "no effect with legacy_clients = false, as its clients are all legacy".into());
    }
    if matches!(upstream.target, Target::Command(_)) && upstream.session.scope == SessionScope::Request {
        warn(at("session.scope"), "\"request\" starts a process for every call".into());
    }
    if exposed && matches!(upstream.authorization, Authorization::Fixed(_)) {
        let text = "whoever can connect to the proxy acts with this fixed credential";
        warn(at("authorization"), text.into());
    }
    if upstream.session.scope == SessionScope::Request && upstream.session.affinity.is_some() {
        warn(at("session.affinity"), "no effect with session.scope = \"request\"".into());
    }
    if upstream.session.scope == SessionScope::Request && upstream.session.max_per_key > 1 {
        warn(at("session.max_per_key"), "no effect with session.scope = \"request\"".into());
    }
    if upstream.session.max_per_key > upstream.session.max {
        warn(at("session.max_per_key"), "more than session.max, so there are never as many".into());
    }
    if upstream.session.shield && upstream.era == EraSetting::Modern {
        warn(at("session.shield"), "no effect with era = \"modern\"".into());
    }
    if upstream.era == EraSetting::Legacy {
        for (set, setting) in
            [(upstream.session.key.is_some(), "session.key"), (upstream.cache_lists, "cache_lists")]
        {
            if set {
                warn(at(setting), "no effect with era = \"legacy\"".into());
            }
        }
    } else if upstream.session.key.is_some() && !upstream.legacy_clients {
        warn(at("session.key"), "no effect with legacy_clients = false".into());
    }
    if upstream.session.key.is_none() && upstream.session.max_age != Session::default().max_age {
        warn(at("session.max_age"), "no effect without session.key".into());
    }
    if upstream.convert_content.iter().any(|revision| *revision > LegacyRevision::V2025_03_26) {
        let text = "no effect for 2025-06-18 and 2025-11-25, which have all kinds of content";
        warn(at("convert_content"), text.into());
    }
    if upstream.timeouts.reconnect > upstream.timeouts.reconnect_max {
        warn(at("timeouts.reconnect_max"), "less than timeouts.reconnect, which then counts for both".into());
    }
    if upstream.limits.flow_bytes > upstream.limits.message_bytes {
        let text = "more than limits.message_bytes, so no result goes on before it is whole";
        warn(at("limits.flow_bytes"), text.into());
    }
}

/// What looks like a secret's place and not like the secret.
fn of_secrets(upstream: &Upstream, warn: &mut impl FnMut(String, String)) {
    let at = |setting: &str| format!("upstream.{}.{setting}", upstream.name);
    let mut left_out = |path: String, value: &OsStr| {
        if value == REDACTED {
            warn(path, format!("\"{REDACTED}\" is what `check` prints in the place of a secret"));
        }
    };
    for (name, value) in &upstream.headers {
        left_out(below(&at("headers"), name), value.expose().as_ref());
    }
    if let Authorization::Fixed(value) = &upstream.authorization {
        left_out(at("authorization.value"), value.expose().as_ref());
    }
    let Target::Command(command) = &upstream.target else { return };
    for (index, value) in command.args.iter().enumerate() {
        left_out(format!("{}[{index}]", at("args")), value);
    }
    for (name, value) in &command.env {
        left_out(below(&at("env"), name), value.expose().as_ref());
    }
    for (name, value) in &command.env {
        if value.expose().starts_with(PREFIX) {
            let text = "begins with `file:`, and goes to the program as it is; what reads a file is a table with the one member `file`";
            warn(below(&at("env"), name), text.to_owned());
        }
    }
}
