//! A response that refuses: a status other than 2xx, with a bounded part of its body.
//!
//! Owns reading it, and what the caller is told where the status itself is the answer. Does not own what it means to a call.
//! Rules: A12; cases C31, C36.

use super::{Body, collect, content_type};
use crate::exchange::{Fault, FaultKind};
use crate::wire::headers::ContentType;
use crate::wire::json::Limits;
use crate::wire::jsonrpc::{self, Message, Reply as RpcReply, Response};
use crate::wire::sse;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};

/// As much of a refusal's body as is read: enough for any JSON-RPC error that says something.
const REFUSAL_BYTES: usize = 64 * 1024;

/// A response with a status other than 2xx.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Refusal {
    pub(in crate::upstream) status: StatusCode,
    pub(in crate::upstream) headers: HeaderMap,
    pub(in crate::upstream) body: Bytes,
    /// The body as a JSON-RPC answer, if it is one.
    pub(in crate::upstream) answer: Option<Response>,
}

impl Refusal {
    pub(in crate::upstream) async fn read(
        status: StatusCode,
        headers: HeaderMap,
        mut body: Body,
        limits: Limits,
    ) -> Self {
        // A body that is too long or breaks off is as good as none: status and headers say what there is to say.
        let body = collect(&mut body, REFUSAL_BYTES).await.unwrap_or_default();
        let text = match content_type(&headers) {
            Some(ContentType::EventStream) => {
                let mut decoder = sse::Decoder::new(REFUSAL_BYTES);
                decoder.feed(body.clone());
                decoder.next_event().and_then(Result::ok).map(|event| event.data).unwrap_or_default()
            }
            Some(ContentType::Json | ContentType::Other) | None => body.clone(),
        };
        let answer = match jsonrpc::parse(text, limits) {
            Ok(Message::Response(answer)) => Some(answer),
            Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => None,
        };
        Self { status, headers, body, answer }
    }

    /// The JSON-RPC error code of the body.
    pub(in crate::upstream) fn code(&self) -> Option<i64> {
        match &self.answer.as_ref()?.reply {
            RpcReply::Error(error) => Some(error.code),
            RpcReply::Result(_) => None,
        }
    }

    /// What the caller is told when the status itself is the answer.
    pub(in crate::upstream) fn fault(&self, asked: &str) -> Fault {
        let status = self.status.as_u16();
        let retry_after = self.headers.get(RETRY_AFTER).cloned();
        let kind = match status {
            401 | 403 => {
                let challenges = self.headers.get_all(WWW_AUTHENTICATE).iter().cloned().collect();
                FaultKind::Unauthorized { status, challenges }
            }
            429 => FaultKind::RateLimited,
            _ => FaultKind::BadGateway,
        };
        Fault::new(
            kind,
            format!("the upstream server answered {asked} with HTTP status {status}{}", self.detail()),
        )
        .with_retry_after(retry_after)
    }

    fn detail(&self) -> String {
        if let Some(RpcReply::Error(error)) = self.answer.as_ref().map(|answer| &answer.reply)
            && let Some(answer) = &self.answer
        {
            let message = error.brief(&answer.text);
            return format!(": {message} ({})", error.code);
        }
        let html =
            self.headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
        if html { " and an HTML page".to_owned() } else { String::new() }
    }
}
