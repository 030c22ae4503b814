//! The processes of the benchmark: starting them, what they use, and ending them.
//!
//! Owns reading `/proc`, so this works on Linux alone. Each process is started here and killed when it is dropped.

use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ticks of the times in `/proc/PID/stat`: 100 a second on every Linux.
const TICK: Duration = Duration::from_millis(10);
const START: Duration = Duration::from_secs(10);

/// The proxy as it is built for the benchmark.
pub const BINARY: &str = env!("CARGO_BIN_EXE_mcp-janus");

pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

impl Process {
    /// This program again, in another role; it prints the port that it listens on.
    pub fn role(role: &str, argument: Option<&str>) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg(role).args(argument).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let port = line.trim().parse().map_err(|_| io::Error::other(format!("{role} does not start")))?;
        Ok(Self { child, address: (Ipv4Addr::LOCALHOST, port).into() })
    }

    /// The proxy; `arguments` follow `serve --listen ADDRESS`.
    pub fn proxy<S: AsRef<std::ffi::OsStr>>(log: &str, arguments: &[S]) -> io::Result<Self> {
        Self::proxy_of(Path::new(BINARY), log, arguments)
    }

    /// The proxy of another build.
    pub fn proxy_of<S: AsRef<std::ffi::OsStr>>(
        binary: &Path,
        log: &str,
        arguments: &[S],
    ) -> io::Result<Self> {
        let address = free_address()?;
        let mut command = Command::new(binary);
        command.args(["serve", "--log-level", log]);
        // A file names its own address.
        if !arguments.iter().any(|argument| argument.as_ref() == "--config") {
            command.arg("--listen").arg(address.to_string());
        }
        command.args(arguments);
        command.env("LISTEN", address.to_string()).stdin(Stdio::null());
        if log == "info" {
            command.stderr(Stdio::null());
        }
        Self { child: command.spawn()?, address }.ready()
    }

    /// nginx as a relay, its files in `folder`; `None` where it is not installed.
    pub fn nginx(folder: &Path, upstream: SocketAddr, path: &str) -> io::Result<Option<Self>> {
        let found = ["nginx", "/usr/sbin/nginx"].into_iter().find(|name| {
            Command::new(name).arg("-v").stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        });
        let Some(program) = found else { return Ok(None) };
        let address = free_address()?;
        let folder = folder.display();
        let config = format!(
            "worker_processes auto; daemon off; pid {folder}/pid; error_log stderr error;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_max_body_size 32m; keepalive_requests 1000000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream server {{ server {upstream}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen {address};
    location / {{ proxy_pass http://server{path}; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}
  }}
}}
"
        );
        let file = format!("{folder}/nginx.conf");
        std::fs::write(&file, config)?;
        let mut command = Command::new(program);
        command.args(["-c", &file, "-p"]).arg(folder.to_string()).stdin(Stdio::null());
        Self { child: command.spawn()?, address }.ready().map(Some)
    }

    fn ready(mut self) -> io::Result<Self> {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("a process ended at its start: {status}")));
            }
            if start.elapsed() > START {
                return Err(io::Error::other("a process does not listen"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(self)
    }

    /// User and system time so far, of children too (nginx has a process for each core), but not of the servers that the proxy
    /// starts: those are another thread's.
    pub fn cpu(&self) -> Duration {
        self.pids().into_iter().filter_map(cpu).sum()
    }

    /// Memory in use now, in bytes.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most that was in use since [`Process::reset_peak`].
    pub fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    pub fn reset_peak(&self) {
        for pid in self.pids() {
            // Without it the peak is that of the whole run, which is no less true.
            let _ = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
        }
    }

    fn memory(&self, field: &str) -> u64 {
        let of = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        self.pids().into_iter().filter_map(of).sum::<u64>() * 1024
    }

    fn pids(&self) -> Vec<u32> {
        let pid = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        std::iter::once(pid).chain(children.split_whitespace().filter_map(|pid| pid.parse().ok())).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // nginx's master ends its workers on SIGTERM; the others need no farewell.
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().is_ok_and(|status| status.success());
        let start = Instant::now();
        while asked && start.elapsed() < Duration::from_secs(5) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cpu(pid: u32) -> Option<Duration> {
    let mut stat = String::new();
    std::fs::File::open(format!("/proc/{pid}/stat")).ok()?.read_to_string(&mut stat).ok()?;
    // After the name, which may hold spaces: state is field 3, utime 14, stime 15.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: u32 = fields.next()?.parse::<u32>().ok()? + fields.next()?.parse::<u32>().ok()?;
    Some(TICK * ticks)
}

/// An address on loopback that nobody had a moment ago.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
