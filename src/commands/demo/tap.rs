//! A relay in the middle of a wire that writes down what passes.
//!
//! Owns the copying, byte for byte, and the tape that both wires share, so that their pieces stand in one order. What
//! is about to be passed on is on the tape before the other end can see it. Does not own the cutting (`frames`).
//!
//! Tasks: one per tap and one per connection, for a process that ends with the demo; a connection's ends with either
//! side's.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::frames::{Frame, Reader, Way, What, Wire};

/// Everything that passed, in order.
#[derive(Debug, Default)]
pub(super) struct Tape {
    frames: Mutex<Vec<Frame>>,
    written: Notify,
}

impl Tape {
    /// Where the next piece will stand.
    pub(super) fn mark(&self) -> usize {
        self.frames().len()
    }

    pub(super) fn since(&self, mark: usize) -> Vec<Frame> {
        self.frames().get(mark..).unwrap_or_default().to_vec()
    }

    /// Waits until what stands behind `mark` is `enough`; the caller bounds the time.
    pub(super) async fn wait(&self, mark: usize, enough: impl Fn(&[Frame]) -> bool) {
        loop {
            // Armed before the look, so that nothing written in between is missed.
            let mut written = std::pin::pin!(self.written.notified());
            written.as_mut().enable();
            if enough(self.frames().get(mark..).unwrap_or_default()) {
                return;
            }
            written.await;
        }
    }

    fn write(&self, wire: Wire, way: Way, pieces: impl IntoIterator<Item = What>) {
        self.frames().extend(pieces.into_iter().map(|what| Frame { wire, way, what }));
        self.written.notify_waiters();
    }

    fn frames(&self) -> MutexGuard<'_, Vec<Frame>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket in front of something that may not have an address yet.
pub(super) struct Tap {
    listener: TcpListener,
    pub(super) address: SocketAddr,
}

impl Tap {
    pub(super) async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Passes every connection on to `target`.
    pub(super) fn start(self, target: SocketAddr, wire: Wire, tape: Arc<Tape>) {
        tokio::spawn(async move {
            while let Ok((near, _)) = self.listener.accept().await {
                let tape = Arc::clone(&tape);
                tokio::spawn(async move {
                    if let Ok(far) = TcpStream::connect(target).await {
                        relay(near, far, wire, &tape).await;
                    }
                });
            }
        });
    }
}

/// Ends when either side does; both sockets are closed then.
async fn relay(mut near: TcpStream, mut far: TcpStream, wire: Wire, tape: &Tape) {
    // Without this the relay itself would make the wire look slow.
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (mut near_read, mut near_write) = near.split();
    let (mut far_read, mut far_write) = far.split();
    let (mut requests, mut answers) = (Reader::new(), Reader::new());
    let (mut down, mut up) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let closed_by = loop {
        tokio::select! {
            biased;
            read = far_read.read(&mut up) => {
                let Some(bytes) = read.ok().filter(|size| *size > 0).map(|size| &up[..size]) else {
                    break Way::ToClient;
                };
                tape.write(wire, Way::ToClient, answers.feed(bytes));
                if near_write.write_all(bytes).await.is_err() {
                    break Way::ToServer;
                }
            }
            read = near_read.read(&mut down) => {
                let Some(bytes) = read.ok().filter(|size| *size > 0).map(|size| &down[..size]) else {
                    break Way::ToServer;
                };
                tape.write(wire, Way::ToServer, requests.feed(bytes));
                if far_write.write_all(bytes).await.is_err() {
                    break Way::ToClient;
                }
            }
        }
    };
    if answers.complete < requests.complete {
        tape.write(wire, closed_by, [What::Closed]);
    }
}
