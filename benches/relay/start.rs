//! How long it takes from the start of a stdio server to its first answer, by itself and behind the proxy.
//!
//! Owns this bar. The clock runs from the start of the process that is started, which behind the proxy is the proxy, until the
//! answer to the first request is in: `initialize` of a legacy client, a call of a modern one.

use super::child;
use super::http1::Conn;
use super::process::{BINARY, free_address};
use super::report::median;
use super::work::{Era, NO_CAPABILITIES, Template, WORKS, initialize};
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 21;
/// What the proxy may add.
const BAR: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Stdio,
    Serve,
}

pub async fn run() -> io::Result<()> {
    println!("\nfrom the start to the first answer, {ROUNDS} times each");
    println!("  {:<34} {:>9} {:>9}", "", "p50 ms", "adds ms");
    for server in [Era::Legacy, Era::Modern] {
        let other = if server == Era::Legacy { Era::Modern } else { Era::Legacy };
        let ways = [
            (Way::Direct, server),
            (Way::Stdio, server),
            (Way::Stdio, other),
            (Way::Serve, server),
            (Way::Serve, other),
        ];
        let mut times = [const { Vec::new() }; 5];
        for _ in 0..ROUNDS {
            for ((way, client), times) in ways.into_iter().zip(&mut times) {
                times.push(once(way, client, server).await?.as_secs_f64() * 1e3);
            }
        }
        let [direct, ..] = times.clone().map(median);
        for ((way, client), times) in ways.into_iter().zip(times) {
            told(way, client, server, median(times), direct);
        }
    }
    Ok(())
}

fn told(way: Way, client: Era, server: Era, took: f64, direct: f64) {
    let (client, server) = (child::word(client), child::word(server));
    let name = match way {
        Way::Direct => format!("{server} server by itself"),
        Way::Stdio => format!("stdio -- {server}, {client} host"),
        Way::Serve => format!("serve -- {server}, {client} client"),
    };
    print!("  {name:<34} {took:>9.1}");
    if way != Way::Direct {
        let (adds, bar) = (took - direct, BAR.as_secs_f64() * 1e3);
        print!(" {adds:>9.1} {} {bar:.0}", if adds <= bar { "<=" } else { "!! >" });
    }
    println!();
}

async fn once(way: Way, client: Era, server: Era) -> io::Result<Duration> {
    let first = match client {
        Era::Legacy => initialize(NO_CAPABILITIES),
        Era::Modern => WORKS[0].call(Era::Modern, NO_CAPABILITIES, None, None),
    };
    let this = std::env::current_exe()?;
    let mut command = match way {
        Way::Direct => Command::new(&this),
        Way::Stdio | Way::Serve => Command::new(BINARY),
    };
    let address = free_address()?;
    match way {
        Way::Direct => &mut command,
        Way::Stdio => command.args(["stdio", "--log-level", "warn", "--"]).arg(this),
        Way::Serve => {
            let address = address.to_string();
            command.args(["serve", "--log-level", "warn", "--listen", &address, "--"]).arg(this)
        }
    };
    command.args(["role-child", child::word(server)]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let began = Instant::now();
    let mut started = Started(command.spawn()?);
    let answer = match way {
        Way::Direct | Way::Stdio => over_pipes(&mut started.0, &first)?,
        Way::Serve => over_http(address, &first, began).await?,
    };
    let took = began.elapsed();
    if answer.contains("\"result\"") { Ok(took) } else { Err(io::Error::other(answer)) }
}

fn over_pipes(process: &mut Child, first: &Template) -> io::Result<String> {
    let (Some(input), Some(output)) = (&mut process.stdin, &mut process.stdout) else {
        return Err(io::Error::other("no pipes"));
    };
    input.write_all(first.body())?;
    input.write_all(b"\n")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    Ok(line)
}

async fn over_http(address: SocketAddr, first: &Template, began: Instant) -> io::Result<String> {
    let mut conn = loop {
        match Conn::connect(address, 64 * 1024).await {
            Ok(conn) => break conn,
            Err(error) if began.elapsed() > PATIENCE => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    conn.write(&first.bytes).await?;
    let head = conn.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut body = Vec::new();
    conn.body(&head, |piece| body.extend_from_slice(piece)).await?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// A process that is ended in good order, so that what it has started ends too.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // A server ends with its input; `serve` has to be asked.
        let _ = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}
