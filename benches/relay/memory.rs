//! What the proxy holds in memory: idle, for each session at a legacy server, for each open subscription, for each session of a
//! legacy client before a modern server and each open stream of one, and while a large result passes.
//!
//! Owns these bars, which are in bytes. Memory is what the process has resident; a difference over thousands of the same
//! thing is divided by their number.

use super::http1::Conn;
use super::load::{Client, Target};
use super::process::Process;
use super::work::{CAPABILITIES, Era, FIRST_ID, LARGE, NO_CAPABILITIES, PAUSED, WORKS};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many sessions and streams are opened.
const MANY: usize = 5000;
/// Opened first, so that what is there once only is not counted.
const FEW: usize = 100;
const IDLE_BAR: u64 = 12 * 1024 * 1024;
const SESSION_BAR: u64 = 8 * 1024;
const STREAM_BAR: u64 = 24 * 1024;
/// Descriptors beyond one for each connection.
const SPARE: usize = 200;

pub async fn run(folder: &Path) -> io::Result<()> {
    let server = Process::role("role-upstream", None)?;
    println!("\nmemory");
    modern_clients(&server, folder).await?;
    legacy_clients(&server, folder).await
}

/// The proxy before the server of this era, with room for everything that is opened.
fn proxy(server: &Process, folder: &Path, era: Era) -> io::Result<Process> {
    let config = folder.join("janus.toml");
    let url = format!("http://{}{}", server.address, era.path());
    let text = format!(
        "listen.address = \"${{LISTEN}}\"
limits.connections = 20000\nlimits.requests = 20000\nlimits.streams = 20000
[upstream.default]\nurl = \"{url}\"\nsession.max = 20000\nsession.idle = \"1h\"\n"
    );
    std::fs::write(&config, text)?;
    Process::proxy("warn", &["--config".as_ref(), config.as_os_str()])
}

fn target(proxy: &Process, era: Era, capabilities: &'static str) -> Target {
    Target { address: proxy.address, path: "/mcp", era, capabilities }
}

async fn modern_clients(server: &Process, folder: &Path) -> io::Result<()> {
    let proxy_before = || proxy(server, folder, Era::Legacy);
    let proxy = proxy_before()?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    told("idle process", proxy.resident(), IDLE_BAR);
    let mut client = Client::new(&target(&proxy, Era::Modern, NO_CAPABILITIES), 16 * 1024).await?;
    sessions(&mut client, 0..FEW).await?;
    let before = proxy.resident();
    sessions(&mut client, FEW..FEW + MANY).await?;
    told("session at a legacy server", each(before, proxy.resident(), MANY), SESSION_BAR);
    drop((client, proxy));

    let proxy = proxy_before()?;
    let target = target(&proxy, Era::Modern, NO_CAPABILITIES);
    let mut open = streams(&target, FEW).await?;
    let (before, many) = (proxy.resident(), many_connections());
    open.extend(streams(&target, many).await?);
    told("open subscription", each(before, proxy.resident(), many), STREAM_BAR);
    Ok(())
}

/// All of them are one caller: callers of their own would each have a subscription at the server besides.
async fn legacy_clients(server: &Process, folder: &Path) -> io::Result<()> {
    for (what, capabilities) in
        [("session of a legacy client", NO_CAPABILITIES), ("the same, can be asked", CAPABILITIES)]
    {
        let proxy = proxy(server, folder, Era::Modern)?;
        let target = target(&proxy, Era::Legacy, capabilities);
        let mut conn = match Client::new(&target, 16 * 1024).await {
            Ok(client) => client.into_conn(),
            Err(error) => {
                println!("  {what:<28} left out: {error}");
                return Ok(());
            }
        };
        conn = called(conn, &target, FEW).await?;
        let before = proxy.resident();
        drop(called(conn, &target, MANY).await?);
        told(what, each(before, proxy.resident(), MANY), SESSION_BAR);
    }
    let proxy = proxy(server, folder, Era::Modern)?;
    let target = target(&proxy, Era::Legacy, CAPABILITIES);
    let mut open = streams(&target, FEW).await?;
    let (before, many) = (proxy.resident(), many_connections());
    open.extend(streams(&target, many).await?);
    told("its stream (GET)", each(before, proxy.resident(), many), STREAM_BAR);
    Ok(())
}

/// So many sessions with one call each, over one connection.
async fn called(mut conn: Conn, target: &Target, count: usize) -> io::Result<Conn> {
    let mut seen = Vec::new();
    for _ in 0..count {
        let mut client = Client::over(conn, target).await?;
        let mut template = client.template(&WORKS[0], None);
        client.call(&mut template, FIRST_ID, &mut seen).await?;
        conn = client.into_conn();
    }
    Ok(conn)
}

fn many_connections() -> usize {
    let many = MANY.min(descriptors().saturating_sub(SPARE));
    if many < MANY {
        println!("  only {many} streams, for want of file descriptors (ulimit -n)");
    }
    many
}

fn each(before: u64, after: u64, count: usize) -> u64 {
    after.saturating_sub(before) / count.max(1) as u64
}

fn told(what: &str, bytes: u64, bar: u64) {
    let verdict = if bytes <= bar { "<=" } else { "!! >" };
    println!("  {what:<28} {:>8.1} KiB {verdict} {} KiB", bytes as f64 / 1024.0, bar / 1024);
}

/// One call each under credentials of their own.
async fn sessions(client: &mut Client, range: std::ops::Range<usize>) -> io::Result<()> {
    let mut seen = Vec::new();
    for number in range {
        let credential = format!("Bearer 0123456789abcdef0123456789abcdef-{number:06}");
        let mut template = client.template(&WORKS[0], Some(&credential));
        client.call(&mut template, FIRST_ID, &mut seen).await?;
    }
    Ok(())
}

/// An HTTP/1 connection carries one stream, so each has its own.
async fn streams(target: &Target, count: usize) -> io::Result<Vec<Client>> {
    let mut open = Vec::with_capacity(count);
    for _ in 0..count.div_ceil(50) {
        let mut batch = tokio::task::JoinSet::new();
        for _ in 0..50.min(count - open.len()) {
            let target = target.clone();
            batch.spawn(async move {
                let mut client = Client::new(&target, 4096).await?;
                match target.era {
                    Era::Modern => client.listen().await?,
                    Era::Legacy => client.get().await?,
                }
                Ok::<_, io::Error>(client)
            });
        }
        for client in batch.join_all().await {
            open.push(client?);
        }
    }
    Ok(open)
}

/// The soft limit of open files, which the processes started from here have too.
fn descriptors() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(1024)
}

/// Large results: how much is held of one that passes, and whether its beginning goes out before its end is in.
pub async fn large() -> io::Result<()> {
    let server = Process::role("role-upstream", None)?;
    let url = |era: Era| format!("http://{}{}", server.address, era.path());
    println!("\n{} with a pause of {} ms before its end", LARGE.title, PAUSED.pause.as_millis());
    println!(
        "  {:<23} {:>14} {:>14} {:>16} {:>16}",
        "", "first byte ms", "last byte ms", "1 adds MiB", "4 add MiB"
    );
    let bare = Process::role("role-bare", Some(&url(Era::Modern)))?;
    pass("bare relay", bare, Era::Modern).await?;
    for (name, client, server) in [
        ("janus modern>legacy", Era::Modern, Era::Legacy),
        ("janus modern>modern", Era::Modern, Era::Modern),
        ("janus legacy>legacy", Era::Legacy, Era::Legacy),
        ("janus legacy>modern", Era::Legacy, Era::Modern),
    ] {
        let proxy = Process::proxy("warn", &["--upstream", &url(server)])?;
        pass(name, proxy, client).await?;
    }
    Ok(())
}

async fn pass(name: &str, process: Process, era: Era) -> io::Result<()> {
    let target = Target { address: process.address, path: "/mcp", era, capabilities: NO_CAPABILITIES };
    let mut client = match Client::new(&target, 64 * 1024).await {
        Ok(client) => client,
        Err(error) => {
            println!("  {name:<23} left out: {error}");
            return Ok(());
        }
    };
    let mut seen = Vec::new();
    // What a first call needs is there from here on.
    let mut small = client.template(&WORKS[0], None);
    client.call(&mut small, FIRST_ID, &mut seen).await?;
    let before = process.resident();
    process.reset_peak();
    let mut template = client.template(&PAUSED, None);
    let began = Instant::now();
    let (length, first) = client.call(&mut template, FIRST_ID, &mut seen).await?;
    let last = began.elapsed();
    if length < PAUSED.result {
        return Err(io::Error::other(format!("{name}: {length} bytes came")));
    }
    let one = process.peak().saturating_sub(before);
    process.reset_peak();
    let mut together = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let target = target.clone();
        together.spawn(async move {
            let mut client = Client::new(&target, 64 * 1024).await?;
            let mut template = client.template(&PAUSED, None);
            client.call(&mut template, FIRST_ID, &mut Vec::new()).await
        });
    }
    for done in together.join_all().await {
        done?;
    }
    let four = process.peak().saturating_sub(before);
    let mib = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
    println!(
        "  {name:<23} {:>14.1} {:>14.1} {:>16.1} {:>16.1}",
        first.duration_since(began).as_secs_f64() * 1e3,
        last.as_secs_f64() * 1e3,
        mib(one),
        mib(four),
    );
    Ok(())
}
