//! A message on its way out: a few pieces of bytes that are sent one after another.
//!
//! Owns the pieces and their sum, and hands them to HTTP as frames with an exact length, so that a spliced message
//! is never put together in memory. Does not know what the bytes mean.

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use smallvec::SmallVec;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Pieces of one message, in order; none is empty.
#[derive(Debug, Clone, Default)]
pub struct Payload {
    parts: SmallVec<[Bytes; 8]>,
    next: usize,
    len: usize,
}

impl Payload {
    pub fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.len += part.len();
            self.parts.push(part);
        }
    }

    /// Bytes not yet sent.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces not yet sent.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts[self.next..]
    }

    /// All pieces in one; copies unless there is just one.
    pub fn to_bytes(&self) -> Bytes {
        match self.parts() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => {
                let mut out = BytesMut::with_capacity(self.len);
                many.iter().for_each(|part| out.extend_from_slice(part));
                out.freeze()
            }
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        let mut payload = Self::default();
        payload.push(bytes);
        payload
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self::from(Bytes::from(text))
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.next;
        let Some(part) = self.parts.get_mut(next).map(std::mem::take) else {
            return Poll::Ready(None);
        };
        self.next += 1;
        self.len -= part.len();
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.next == self.parts.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len as u64)
    }
}
