//! The body of a response of an upstream server, whichever way it came.
//!
//! Owns nothing but the choice: a body of HTTP as it arrives, or one that a channel (`channel`) puts together of the
//! messages that belong to one request.

use super::channel::ChannelBody;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll};

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub enum Body {
    Http(Incoming),
    Channel(ChannelBody),
}

impl From<Bytes> for Body {
    /// One that was read already.
    fn from(whole: Bytes) -> Self {
        Body::Channel(ChannelBody::whole(whole))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Body::Http(body) => {
                Pin::new(body).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(BoxError::from)))
            }
            Body::Channel(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Http(body) => body.is_end_stream(),
            Body::Channel(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Http(body) => body.size_hint(),
            Body::Channel(body) => body.size_hint(),
        }
    }
}
