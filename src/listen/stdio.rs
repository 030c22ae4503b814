//! The pipes of a host that has launched this program: one message a line.
//!
//! Owns the framing of both directions. Lines are those of `wire::lines`, of which one without its end is none, and the id of one
//! that is longer than the bound counts if it is a request's. What goes out has no line end in it, whatever the server wrote, and
//! is flushed once nothing more is ready. Reading goes on while a line waits to be taken, as far as the bound allows, so that the
//! end of the input is noticed. Does not own what a line says, nor how the client is served.
//! Rules: A14.9; cases C53 (last sentence), C14; spec basic/transports/stdio.

use crate::wire::jsonrpc::LateId;
pub use crate::wire::lines::Line;
use crate::wire::lines::Lines;
use bytes::{Bytes, BytesMut};
use memchr::memchr2;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What is put together at once.
const CHUNK: usize = 64 * 1024;

/// Reads lines of `limit` bytes at most until the input ends or `gone` says that nobody wants them any more; then it is the
/// other way round, and `gone` hears of the end.
pub async fn read<T>(
    mut input: impl AsyncRead + Unpin,
    limit: usize,
    texts: mpsc::Sender<T>,
    make: impl Fn(Line) -> T,
    gone: &CancellationToken,
) {
    let _gone = gone.clone().drop_guard();
    let mut lines = Lines::new(limit, LateId::of_request);
    let reading = async {
        loop {
            let Some(line) = lines.next() else {
                match input.read_buf(lines.room()).await {
                    Ok(0) => return,
                    Ok(_) => continue,
                    Err(error) => return tracing::warn!(%error, "standard input cannot be read"),
                }
            };
            tokio::select! {
                biased;
                permit = texts.reserve() => match permit {
                    Ok(permit) => permit.send(make(line)),
                    Err(_) => return,
                },
                () = ahead(&mut input, &mut lines) => return,
            }
        }
    };
    tokio::select! {
        biased;
        () = gone.cancelled() => {}
        () = reading => {}
    }
}

/// Reads on until the input ends.
async fn ahead(input: &mut (impl AsyncRead + Unpin), lines: &mut Lines) {
    loop {
        if lines.is_full() {
            return std::future::pending().await;
        }
        match input.read_buf(lines.room()).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Writes each message as one line until there are no more, or the output is gone. `told` hears of each.
pub async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Bytes>,
    told: impl Fn(),
) -> io::Result<()> {
    let mut ready = BytesMut::new();
    while let Some(first) = messages.recv().await {
        let mut next = Some(first);
        while let Some(message) = next {
            told();
            put(&mut output, &mut ready, message).await?;
            next = messages.try_recv().ok();
        }
        output.write_all(&ready).await?;
        ready.clear();
        output.flush().await?;
    }
    output.shutdown().await
}

/// Small ones go out together; a large one is not copied.
async fn put(output: &mut (impl AsyncWrite + Unpin), ready: &mut BytesMut, message: Bytes) -> io::Result<()> {
    let clean = memchr2(b'\n', b'\r', &message).is_none();
    if ready.len() + message.len() > CHUNK {
        output.write_all(ready).await?;
        ready.clear();
    }
    if clean && message.len() > CHUNK {
        output.write_all(&message).await?;
    } else {
        let start = ready.len();
        ready.extend_from_slice(&message);
        if !clean {
            // In JSON a raw line end is white space.
            let raw = |byte: &&mut u8| matches!(**byte, b'\n' | b'\r');
            ready[start..].iter_mut().filter(raw).for_each(|byte| *byte = b' ');
        }
    }
    ready.extend_from_slice(b"\n");
    Ok(())
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
