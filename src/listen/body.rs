//! Bodies of responses: the handler's, passed on as it is, or a short one of the listener's own.
//!
//! Owns the form of the listener's refusals: a JSON-RPC error, without `id` where no body was read (A12.11). Does not
//! own which refusal applies.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::watch::InWork;
use crate::wire::{headers, jsonrpc};

pin_project! {
    /// A response body that keeps its connection counted as busy until it was sent or dropped.
    pub struct EdgeBody<B> {
        #[pin]
        source: Source<B>,
        work: Option<InWork>,
    }
}

pin_project! {
    #[project = SourceProj]
    enum Source<B> {
        Handler { #[pin] body: B },
        Own { bytes: Option<Bytes> },
    }
}

impl<B> EdgeBody<B> {
    pub(super) fn handler(body: B, work: InWork) -> Self {
        Self { source: Source::Handler { body }, work: Some(work) }
    }

    pub(super) fn own(bytes: Bytes, work: InWork) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        Self { source: Source::Own { bytes }, work: Some(work) }
    }
}

impl<B: Body<Data = Bytes>> Body for EdgeBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let frame = match this.source.project() {
            SourceProj::Handler { body } => ready!(body.poll_frame(cx)),
            SourceProj::Own { bytes } => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
        };
        if frame.is_none() {
            *this.work = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Handler { body } => body.is_end_stream(),
            Source::Own { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Handler { body } => body.size_hint(),
            Source::Own { bytes } => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}

/// A refusal as a JSON-RPC error. No body was read, so no id is known.
pub(super) fn refusal(status: StatusCode, code: i64, message: &str) -> Response<Bytes> {
    own(status, headers::JSON, jsonrpc::error(None, code, message, None))
}

/// A response of the listener's own; never to be stored.
pub(super) fn own(status: StatusCode, content_type: &'static str, bytes: Bytes) -> Response<Bytes> {
    let mut response = Response::new(bytes);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
