//! What no schema may ever lead to: a server on a real socket, a host of the test's network, and a file.
//!
//! Owns their addresses and the proof that nobody came. Every name that the program looks up and every connection that it makes
//! goes through the network of the test, which keeps a record; a library that went around it would knock at the socket.

use std::fs::{File, FileTimes};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::time::{Duration, SystemTime};

use tempfile::NamedTempFile;

use crate::support::Net;

/// What a validator would accept as a schema.
const SCHEMA: &[u8] = b"{\"type\":\"string\"}";

pub(crate) struct Canary {
    socket: TcpListener,
    file: NamedTempFile,
}

impl Canary {
    pub(crate) fn new() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
        socket.set_nonblocking(true).expect("a socket that does not wait");
        let mut file = NamedTempFile::new().expect("a temporary file");
        file.write_all(SCHEMA).expect("a writable file");
        never_read(file.as_file());
        Self { socket, file }
    }

    /// `127.0.0.1` and a port at which somebody listens.
    pub(crate) fn authority(&self) -> String {
        self.socket.local_addr().expect("an address").to_string()
    }

    /// A schema there.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/x.json", self.authority())
    }

    pub(crate) fn file_url(&self) -> String {
        format!("file://{}", self.file.path().display())
    }

    /// Nobody came, and nothing but the server was dialled.
    #[track_caller]
    pub(crate) fn is_untouched(&self, net: &Net) {
        let foreign: Vec<_> = net.dialled().into_iter().filter(|name| name != "up.test:80").collect();
        assert_eq!(foreign, [] as [String; 0], "C62: nothing but the configured server is dialled");
        match self.socket.accept() {
            Ok((_, from)) => panic!("C62: the canary was called by {from}"),
            Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock, "{e}"),
        }
        if times_are_kept() {
            assert!(!was_read(self.file.as_file()), "C62: the canary file was read");
        }
    }
}

/// A file system keeps, or updates at the first read after a write, the time of the last read.
fn never_read(file: &File) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_times(FileTimes::new().set_accessed(long_ago)).expect("a time");
}

fn was_read(file: &File) -> bool {
    let at = file.metadata().and_then(|about| about.accessed()).expect("a time");
    at > SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_001)
}

/// Whether a read shows on this file system at all.
fn times_are_kept() -> bool {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(SCHEMA).expect("a writable file");
    never_read(file.as_file());
    let mut again = File::open(file.path()).expect("a readable file");
    let _ = again.read(&mut [0; 4]);
    was_read(file.as_file())
}

#[test]
fn the_canary_sees_who_comes() {
    let canary = Canary::new();
    canary.is_untouched(&Net::new());
    let _guest = std::net::TcpStream::connect(canary.authority()).expect("a connection");
    assert!(std::panic::catch_unwind(|| canary.is_untouched(&Net::new())).is_err());
    if times_are_kept() {
        let mut file = File::open(canary.file.path()).expect("a readable file");
        let _ = file.read(&mut [0; 4]);
        assert!(was_read(canary.file.as_file()));
    }
}
