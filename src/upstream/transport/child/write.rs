//! The one writer of a process's standard input.
//!
//! Owns how lines become system calls: short ones that wait side by side are written together, long ones are not copied.
//! Nothing but this task writes, so whoever hands a message over can go away at any time without leaving half of it.
//!
//! The task ends when the queue is closed and empty, or when the process does not take any more; it closes the stream then.

use super::queue::{Line, Queued};
use crate::net::Writes;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use tokio::io::AsyncWriteExt;

/// Lines that are written together at most.
const LINES: usize = 64;

/// Lines of so many bytes together are always copied: that costs less than to keep their parts apart.
const JOINED: usize = 16 * 1024;

/// Among longer ones, a part up to this length is copied beside the others.
const SHORT: usize = 4 * 1024;

/// `Ok` if the queue was closed and all in it has been written.
pub(super) async fn write(mut stdin: Writes, mut queued: Queued) -> io::Result<()> {
    let (mut lines, mut joined) = (Vec::new(), Vec::new());
    loop {
        queued.take(&mut lines, LINES).await;
        if lines.is_empty() {
            return Ok(());
        }
        if lines.iter().map(|line| line.text.len()).sum::<usize>() <= JOINED {
            joined.clear();
            for line in &lines {
                line.text.parts().iter().for_each(|part| joined.extend_from_slice(part));
                joined.push(b'\n');
            }
            stdin.write_all(&joined).await?;
        } else {
            stdin.write_all_buf(&mut Batch::of(&lines)).await?;
        }
        stdin.flush().await?;
        queued.written(&mut lines);
    }
}

/// Lines as they are written.
struct Batch(VecDeque<Bytes>);

impl Batch {
    fn of(lines: &[Line]) -> Self {
        let mut parts = VecDeque::new();
        let mut short = BytesMut::new();
        for line in lines {
            for part in line.text.parts() {
                if part.len() <= SHORT {
                    short.extend_from_slice(part);
                } else {
                    if !short.is_empty() {
                        parts.push_back(short.split().freeze());
                    }
                    parts.push_back(part.clone());
                }
            }
            short.extend_from_slice(b"\n");
        }
        parts.push_back(short.freeze());
        Self(parts)
    }
}

/// No part is empty.
impl Buf for Batch {
    fn remaining(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    fn chunk(&self) -> &[u8] {
        self.0.front().map_or(&[], |part| part)
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        into.iter_mut().zip(&self.0).map(|(slice, part)| *slice = IoSlice::new(part)).count()
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(part) = self.0.front_mut() {
            if count < part.len() {
                part.advance(count);
                return;
            }
            count -= part.len();
            self.0.pop_front();
        }
    }
}
