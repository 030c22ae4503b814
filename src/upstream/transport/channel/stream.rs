//! The body of a response that a channel gives: one whole message, or an event stream of messages as they come.

use crate::upstream::transport::BoxError;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

pub struct ChannelBody {
    whole: Option<Bytes>,
}

impl ChannelBody {
    pub(super) fn whole(text: Bytes) -> Self {
        Self { whole: Some(text).filter(|text| !text.is_empty()) }
    }
}

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.whole.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.whole.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.whole.as_ref().map_or(0, Bytes::len) as u64)
    }
}
