//! Bodies of responses: the handler's, passed on as it is, or a short one of the listener's own.
//!
//! Owns the form of the listener's refusals: a JSON-RPC error, without `id` where no body was read (A12.11). Does not
//! own which refusal applies.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use pin_project_lite::pin_project;

use super::watch::InWork;

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

/// A refusal as a JSON-RPC error. `id` is the raw JSON of the request's id where one was read.
pub fn json_error(status: StatusCode, code: i64, message: &str, id: Option<&[u8]>) -> Response<Full<Bytes>> {
    json_error_bytes(status, code, message, id).map(Full::new)
}

pub(super) fn json_error_bytes(
    status: StatusCode,
    code: i64,
    message: &str,
    id: Option<&[u8]>,
) -> Response<Bytes> {
    let mut json = Vec::with_capacity(96 + message.len());
    json.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        json.extend_from_slice(br#""id":"#);
        json.extend_from_slice(id);
        json.push(b',');
    }
    json.extend_from_slice(br#""error":{"code":"#);
    json.extend_from_slice(code.to_string().as_bytes());
    json.extend_from_slice(br#","message":"#);
    json.extend_from_slice(serde_json::Value::from(message).to_string().as_bytes());
    json.extend_from_slice(b"}}");
    own(status, "application/json", Bytes::from(json))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_the_id_as_it_came_or_none() {
        let text = |id| {
            let response = json_error_bytes(StatusCode::FORBIDDEN, -32600, "a \"b\"", id);
            String::from_utf8(response.into_body().to_vec()).unwrap()
        };
        assert_eq!(text(None), r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"a \"b\""}}"#);
        assert_eq!(
            text(Some(b"1e0")),
            r#"{"jsonrpc":"2.0","id":1e0,"error":{"code":-32600,"message":"a \"b\""}}"#
        );
    }
}
