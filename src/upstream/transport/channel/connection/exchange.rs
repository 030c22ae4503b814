//! A request in a channel, up to the head of the response that it would have over HTTP.
//!
//! Owns what comes of what is there first: a whole answer, an event stream, or that there is none. Does not own whose a message
//! is (`inbox`). Rules: A12.5-A12.10, B11; cases C16, C56.

use super::super::super::body::Body;
use super::super::super::error::SendError;
use super::super::super::pipe::Trouble;
use super::super::Kind;
use super::super::stream::{ChannelBody, Head, Lost, Standing, Step};
use super::Connection;
use crate::wire::headers::{EVENT_STREAM, JSON};
use crate::wire::jsonrpc::code;
use crate::wire::payload::Payload;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use std::sync::Arc;
use tokio::time::timeout;

/// What became of a request.
pub(in super::super) struct Answered {
    pub(in super::super) response: Response<Body>,
    /// The answer is an error.
    pub(in super::super) error: bool,
}

/// Why there is no answer.
pub(in super::super) enum NoAnswer {
    /// The channel was over before the request was in it.
    Over,
    /// Another request of the same id waits (C20).
    Duplicate,
    Send(SendError),
    Refused(Box<Response<Body>>),
}

impl From<Trouble> for NoAnswer {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Send(error) => NoAnswer::Send(error),
            Trouble::Refused(response) => NoAnswer::Refused(response),
        }
    }
}

impl Connection {
    /// Hands a request over and waits for what comes first.
    pub(super) async fn exchange(
        self: &Arc<Self>,
        mut head: Head,
        line: Payload,
        headers: &HeaderMap,
        what: What,
    ) -> Result<Answered, NoAnswer> {
        let first = match self.setting.kind {
            Kind::Process => {
                self.say(line, headers).await?;
                head.sent();
                self.first(&mut head, what).await
            }
            Kind::EventStream => self.beside(&mut head, line, headers, what).await?,
        };
        let Some(first) = first else {
            let response = event_stream(ChannelBody::events(None, head));
            return Ok(Answered { response, error: false });
        };
        match first {
            Step::Message(text) => match head.whole() {
                Some(Standing { error }) => {
                    let mut response = Response::new(Body::Channel(ChannelBody::whole(text)));
                    *response.status_mut() = error.map_or(StatusCode::OK, |code| status(code, what));
                    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
                    Ok(Answered { response, error: error.is_some() })
                }
                None => {
                    let response = event_stream(ChannelBody::events(Some(text), head));
                    Ok(Answered { response, error: false })
                }
            },
            // It was cancelled in words.
            Step::Done => {
                let mut response = accepted();
                response.extensions_mut().insert(Unanswered);
                Ok(Answered { response, error: false })
            }
            Step::Lost(_, lost) => Err(NoAnswer::Send(match lost {
                Lost::Ended(what) => SendError::Ended { what },
                Lost::TooLarge => SendError::TooLarge,
                Lost::NoMessage | Lost::TooSlow => SendError::NoMessage,
            })),
        }
    }

    /// What comes first. A call that is silent has the head of an event stream in time, so that it can be kept alive (C16): that is
    /// `None`.
    async fn first(&self, head: &mut Head, what: What) -> Option<Step> {
        match what {
            What::Initialize | What::Probe => Some(head.next().await),
            What::Modern | What::Legacy => timeout(self.setting.room.hold, head.next()).await.ok(),
        }
    }

    /// Where a message goes by a request of its own, what comes of it may be there first.
    async fn beside(
        self: &Arc<Self>,
        head: &mut Head,
        line: Payload,
        headers: &HeaderMap,
        what: What,
    ) -> Result<Option<Step>, NoAnswer> {
        // As far as anybody can tell: a server may answer a POST only when the call is over.
        head.sent();
        let (connection, headers) = (self.clone(), headers.clone());
        let mut said = Box::pin(async move { connection.say(line, &headers).await });
        let step = tokio::select! {
            biased;
            step = head.next() => step,
            said = &mut said => {
                said?;
                return Ok(self.first(head, what).await);
            }
        };
        match &step {
            // The server may have refused the message and with it the session, which says that the message did not run.
            Step::Lost(..) => said.await?,
            Step::Message(_) if head.whole().is_some() => {}
            // Owned by nobody: it ends with the response to the message, or with the channel.
            Step::Message(_) | Step::Done => drop(tokio::spawn(said)),
        }
        Ok(Some(step))
    }
}

/// What a request is, for what its error would be over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Probe,
    Modern,
    Initialize,
    Legacy,
}

/// What an error is over HTTP: a modern server's (A12.5-A12.10), and one to `initialize`, which tells that it is one. In a
/// session the code may be anything of the server's own.
fn status(error: i64, what: What) -> StatusCode {
    match error {
        _ if what == What::Legacy => StatusCode::OK,
        code::UNSUPPORTED_PROTOCOL_VERSION | code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY => {
            StatusCode::BAD_REQUEST
        }
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// Marks the response to a request that its own client has cancelled: there is no answer, and that is right.
#[derive(Debug, Clone, Copy)]
pub struct Unanswered;

pub(in super::super) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::Channel(ChannelBody::empty()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(super) fn event_stream(body: ChannelBody) -> Response<Body> {
    let mut response = Response::new(Body::Channel(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    response
}
