//! The body of an outgoing HTTP message as a short list of byte slices that are written without being joined.
//!
//! Owns the list, its total length and how hyper reads it. Does not own what the bytes say: splicing belongs to the
//! JSON scanner, which hands over slices of the original body with the replaced spans between them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use memchr::memchr2;
use smallvec::SmallVec;

/// Parts of one body, in order. A clone shares the bytes.
#[derive(Debug, Clone, Default)]
pub struct Payload {
    /// No part is empty; those before `next` were given out and are empty again.
    parts: SmallVec<[Bytes; 2]>,
    next: usize,
    /// Bytes not yet given out.
    len: usize,
}

impl Payload {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a part; an empty one is left out.
    pub fn push(&mut self, part: impl Into<Bytes>) {
        let part = part.into();
        if !part.is_empty() {
            self.len += part.len();
            self.parts.push(part);
        }
    }

    /// Bytes still to be sent.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parts still to be sent.
    pub fn parts(&self) -> &[Bytes] {
        self.parts.get(self.next..).unwrap_or_default()
    }

    /// A JSON text without line ends: in JSON they stand between tokens alone, where a space means the same.
    pub fn one_line(self) -> Self {
        let broken = |part: &Bytes| memchr2(b'\r', b'\n', part).is_some();
        if !self.parts().iter().any(broken) {
            return self;
        }
        let space = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        let mended =
            |part: &Bytes| if broken(part) { part.iter().map(space).collect() } else { part.clone() };
        self.parts().iter().map(mended).collect()
    }

    /// The whole body in one piece; copies only when there is more than one part.
    pub fn to_bytes(&self) -> Bytes {
        match self.parts() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => {
                let mut joined = BytesMut::with_capacity(self.len);
                many.iter().for_each(|part| joined.extend_from_slice(part));
                joined.freeze()
            }
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        let mut payload = Self::new();
        payload.push(bytes);
        payload
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Payload {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl<B: Into<Bytes>> FromIterator<B> for Payload {
    fn from_iter<I: IntoIterator<Item = B>>(parts: I) -> Self {
        let mut payload = Self::new();
        parts.into_iter().for_each(|part| payload.push(part));
        payload
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    /// Never pending: the connection that writes this body relies on it (see `upstream::transport::link`).
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let Some(part) = this.parts.get_mut(this.next) else { return Poll::Ready(None) };
        let part = std::mem::take(part);
        this.next += 1;
        this.len -= part.len();
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.len == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn parts_come_out_in_order_and_uncopied() {
        let whole = Bytes::from_static(b"hello, world");
        let mut payload = Payload::from(whole.slice(..5));
        payload.push(Bytes::new());
        payload.push(whole.slice(5..));
        assert_eq!((payload.len(), payload.parts().len()), (12, 2));
        assert_eq!(payload.to_bytes(), whole);
        let mut seen = Vec::new();
        while let Some(Ok(frame)) = payload.frame().await {
            seen.push(frame.into_data().unwrap_or_default());
        }
        assert_eq!(seen[0].as_ptr(), whole.as_ptr());
        assert_eq!(seen[1].as_ptr(), whole[5..].as_ptr());
        assert!(payload.is_empty() && payload.is_end_stream() && payload.parts().is_empty());
    }

    #[test]
    fn nothing_is_the_end_of_the_stream() {
        let payload = Payload::from(Bytes::new());
        assert!(payload.is_end_stream());
        assert_eq!(payload.size_hint().exact(), Some(0));
        assert_eq!(["a", "", "bc"].into_iter().collect::<Payload>().to_bytes(), "abc");
    }

    #[test]
    fn one_line_is_the_same_text_with_spaces() {
        let given = "{\r\n \"id\":\r1, \"method\": \"a\\nb\", \"e\": \"\u{2028}\"\n}\n";
        let lined = Payload::from(given.to_owned()).one_line();
        assert_eq!(lined.to_bytes(), given.replace(['\r', '\n'], " "));
        // Only the part that holds one is copied.
        let clean = Bytes::from_static(b"{\"a\":");
        let parts = [clean.clone(), Bytes::from_static(b"1\n"), Bytes::from_static(b"}")];
        let lined = parts.into_iter().collect::<Payload>().one_line();
        assert_eq!(lined.parts()[0].as_ptr(), clean.as_ptr());
        assert_eq!((lined.len(), lined.to_bytes()), (8, Bytes::from_static(b"{\"a\":1 }")));
        assert!(Payload::default().one_line().is_empty());
    }
}
