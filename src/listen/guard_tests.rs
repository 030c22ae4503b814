//! Case C61, client half, as a table over [`Guard`].

use http::{Method, Request};

use super::guard::{Foreign, Guard};
use crate::config::Listen;

fn guard(bound: &str, hosts: &[&str], origins: &[&str]) -> Guard {
    let bound = bound.parse().unwrap();
    let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
    let settings =
        Listen { address: bound, tls: None, allowed_hosts: owned(hosts), allowed_origins: owned(origins) };
    Guard::new(&settings, bound)
}

fn verdict(guard: &Guard, headers: &[(&str, &str)]) -> Result<(), Foreign> {
    let mut request = Request::builder().method(Method::POST).uri("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(()).unwrap();
    guard.check_origin(&request).and_then(|()| guard.check_host(&request))
}

#[test]
fn c61_hosts_on_a_loopback_bind() {
    let guard = guard("127.0.0.1:8808", &["janus.test", "Other.test:1234", "fd00::1"], &[]);
    for host in [
        "localhost",
        "LocalHost:1",
        "localhost.",
        "localhost.:8808",
        "127.0.0.1",
        "127.9.8.7:80",
        "[::1]",
        "[::1]:8808",
        "janus.test",
        "JANUS.test:99",
        "janus.test.",
        "other.test:1234",
        "[fd00::1]:1",
    ] {
        assert_eq!(verdict(&guard, &[("host", host)]), Ok(()), "{host}");
    }
    for host in [
        "",
        "evil.example",
        "evil.example:8808",
        "localhost.evil.example",
        "localhost..",
        "localhost:x",
        "localhost:99999",
        "localhost:1:2",
        "a@localhost",
        "localhost/",
        "127.0.0.1.evil.example",
        "128.0.0.1",
        "0.0.0.0",
        "2130706433",
        "[::2]",
        "[::1",
        "::1:80",
        "[localhost]x",
        "other.test",
        "other.test:1",
    ] {
        assert_eq!(verdict(&guard, &[("host", host)]), Err(Foreign::Host), "{host}");
    }
    assert_eq!(verdict(&guard, &[]), Err(Foreign::Host), "absent");
    assert_eq!(verdict(&guard, &[("host", "localhost"), ("host", "evil.example")]), Err(Foreign::Host));
}

#[test]
fn c61_the_authority_of_the_target_counts_too() {
    let guard = guard("[::1]:8808", &[], &[]);
    let request = |uri: &str| Request::get(uri).body(()).unwrap();
    assert_eq!(guard.check_host(&request("http://localhost:8808/mcp")), Ok(()));
    assert_eq!(guard.check_host(&request("http://evil.example/mcp")), Err(Foreign::Host));
    let split = Request::get("http://evil.example/").header("host", "localhost").body(()).unwrap();
    assert_eq!(guard.check_host(&split), Err(Foreign::Host));
}

#[test]
fn c61_hosts_elsewhere_are_checked_once_configured() {
    assert_eq!(verdict(&guard("0.0.0.0:80", &[], &[]), &[("host", "any.example")]), Ok(()));
    let strict = guard("0.0.0.0:80", &["mcp.example"], &[]);
    assert_eq!(verdict(&strict, &[("host", "mcp.example:80")]), Ok(()));
    assert_eq!(verdict(&strict, &[("host", "localhost")]), Err(Foreign::Host));
}

#[test]
fn c61_origins_on_a_loopback_bind() {
    let guard = guard("[::ffff:127.0.0.1]:8808", &[], &["https://app.example", "null2"]);
    let judged = |origin| verdict(&guard, &[("host", "localhost"), ("origin", origin)]);
    for origin in [
        "http://localhost:3000",
        "http://localhost",
        "https://LOCALHOST:1",
        "http://127.0.0.1:5173",
        "http://[::1]:3000",
        "https://app.example",
        "HTTPS://APP.example",
    ] {
        assert_eq!(judged(origin), Ok(()), "{origin}");
    }
    for origin in [
        "",
        "null",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://evil.example#localhost",
        "http://localhost@evil.example",
        "file://localhost",
        "chrome-extension://localhost",
        "localhost",
        "https://app.example:8443",
        "http://app.example",
        "https://app.example.evil.example",
    ] {
        assert_eq!(judged(origin), Err(Foreign::Origin), "{origin}");
    }
    let two = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "https://evil.example")];
    assert_eq!(verdict(&guard, &two), Err(Foreign::Origin));
}

#[test]
fn c61_origins_elsewhere_come_from_the_settings_alone() {
    let closed = guard("0.0.0.0:80", &[], &["https://app.example"]);
    assert_eq!(verdict(&closed, &[]), Ok(()));
    assert_eq!(verdict(&closed, &[("origin", "https://app.example")]), Ok(()));
    assert_eq!(verdict(&closed, &[("origin", "http://localhost")]), Err(Foreign::Origin));
    let open = guard("0.0.0.0:80", &[], &["*"]);
    assert_eq!(verdict(&open, &[("origin", "https://evil.example")]), Ok(()));
    assert_eq!(verdict(&open, &[("origin", "null")]), Ok(()));
}
