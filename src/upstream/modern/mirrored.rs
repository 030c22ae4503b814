//! A modern client's request that has come on a channel, on its way to a server over HTTP: the headers that repeat parts of it
//! are the proxy's to make.
//!
//! A client of Streamable HTTP sends them itself, and they are left alone. One on a channel has no headers to send, and the
//! server wants them all the same. `Mcp-Method` and `Mcp-Name` are there by now; owns refusing what they cannot hold, adding
//! `Mcp-Param-*` to a call, the one further try with a list read anew where the server does not agree (-32020: nothing has run),
//! and learning from the lists that pass by, so that a call seldom has to wait for one. Does not own what is known of tools
//! (`catalog`), nor how it is looked up (`lookup`).
//! Rules: A5.10, A11.8, A13.2, A13.3; vectors D77, D78; case C67; spec basic/transports/streamable-http, "Custom Headers from
//! Tool Parameters".

use super::super::guard::{Denied, Page, Scope};
use super::super::reply::{UpstreamBody, collect, content_type};
use super::lookup::Mismatch;
use super::{Modern, Trouble};
use crate::exchange::{Binding, Call, Fault, FaultKind};
use crate::translate::legacy_client::initialize::Client;
use crate::translate::legacy_client::{mirror, tools};
use crate::translate::result::tool_error;
use crate::wire::headers::{ContentType, JSON};
use crate::wire::jsonrpc::{self, Message, Reply, code, string};
use crate::wire::method::Method;
use crate::wire::version::{Era, LegacyRevision};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::sync::Arc;
use tokio::time::Instant;

/// As of a legacy client's call: servers take headers of so many bytes in all.
const MOST_HEADER: usize = 8 * 1024;

impl Modern {
    /// Whether what HTTP wants said in headers of this request is the proxy's to say.
    pub fn says_headers_of(&self, call: &Call) -> bool {
        match call.binding {
            Binding::Http => false,
            Binding::Channel => !self.shared.transport.is_channel(),
        }
    }

    /// As [`send`](Self::send), for such a request.
    pub(super) async fn send_of_channel(
        self: &Arc<Self>,
        call: &Call,
    ) -> Result<Response<UpstreamBody>, Trouble> {
        if HeaderValue::from_str(&call.request.method).is_err() {
            let text = "the method's name holds characters that no header can carry";
            return Err(Trouble::Fault(Fault::new(FaultKind::InvalidParams, text)));
        }
        bounded(call.headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-")))?;
        match call.method {
            Method::ToolsCall => self.send_tool(call).await,
            Method::ToolsList => {
                let response = self.post_call(call, Vec::new()).await?;
                self.learn(call, response).await
            }
            Method::Discover
            | Method::PromptsList
            | Method::PromptsGet
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::ResourcesRead
            | Method::Complete
            | Method::Listen
            | Method::LegacyOnly(_)
            | Method::Task
            | Method::ServerToClient
            | Method::Custom => self.post_call(call, Vec::new()).await,
        }
    }

    async fn send_tool(self: &Arc<Self>, call: &Call) -> Result<Response<UpstreamBody>, Trouble> {
        let request = &call.request;
        let name = request.params.body().and_then(|body| body.object.first(&request.text, "name"));
        let Some(name) = name.and_then(|span| string(&request.text, span)) else {
            return self.post_call(call, Vec::new()).await;
        };
        let client = Client::of_modern(request, self.shared.limits);
        let mut tool = self.tool(call, &client, &name).await;
        match self.shared.guard.admit(Scope::of(call.principal, None), request) {
            Ok(()) => {}
            Err(Denied::Tool(words)) => {
                return Err(Trouble::Fault(Fault::new(FaultKind::InvalidParams, words)));
            }
            Err(Denied::Value(words)) => {
                let message = tool_error(call.id(), &words, None).to_bytes();
                let mut response = Response::new(UpstreamBody::Read(message));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
                return Ok(response);
            }
        }
        let mut mended = false;
        loop {
            let params = match &tool {
                Some(tool) => mirror::headers(&tool.mirrors, request, self.shared.limits),
                None => Vec::new(),
            };
            bounded(params.iter().map(|(name, value)| (name, value)))?;
            let sent = Instant::now();
            let response = self.post_call(call, params).await?;
            if !self.disagrees(&response) {
                return Ok(response);
            }
            if std::mem::replace(&mut mended, true) {
                // The headers are the proxy's own, so the client cannot do better.
                let text = "the upstream server does not agree with the headers that repeat the request";
                return Err(Trouble::Fault(Fault::bad_gateway(text)));
            }
            let before = tool.take();
            let mismatch = Mismatch { tool: before.as_ref(), sent };
            tool = self.tool_again(call, &client, &name, mismatch).await;
        }
    }

    async fn post_call(
        &self,
        call: &Call,
        params: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Response<UpstreamBody>, Trouble> {
        let waiting = call.meter.sent(Era::Modern);
        self.post(&call.headers, params, call.request.text.clone(), Some((call.id(), waiting))).await
    }

    /// Whether the server refused the request for its headers.
    fn disagrees(&self, response: &Response<UpstreamBody>) -> bool {
        if response.status() != StatusCode::BAD_REQUEST {
            return false;
        }
        let UpstreamBody::Read(text) = response.body() else { return false };
        match jsonrpc::parse(text.clone(), self.shared.limits) {
            Ok(Message::Response(answer)) => {
                matches!(&answer.reply, Reply::Error(error) if error.code == code::HEADER_MISMATCH)
            }
            Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => false,
        }
    }

    /// Takes in a list that passes by in one body.
    async fn learn(
        &self,
        call: &Call,
        response: Response<UpstreamBody>,
    ) -> Result<Response<UpstreamBody>, Trouble> {
        let whole =
            response.status().is_success() && content_type(response.headers()) == Some(ContentType::Json);
        let (head, body) = response.into_parts();
        let text = match body {
            UpstreamBody::Streaming(mut body) if whole => {
                let limit = self.shared.settings.limits.message_bytes;
                let read = collect(&mut body, limit).await;
                read.map_err(|broken| Trouble::Fault(self.shared.broken(broken).into()))?
            }
            body => return Ok(Response::from_parts(head, body)),
        };
        self.learn_of(call, &text);
        Ok(Response::from_parts(head, UpstreamBody::Read(text)))
    }

    fn learn_of(&self, call: &Call, text: &Bytes) {
        let limits = self.shared.limits_of(call.method);
        let Ok(Message::Response(answer)) = jsonrpc::parse(text.clone(), limits) else { return };
        let Reply::Result(body) = &answer.reply else { return };
        let page = Page::of(&call.request, text, &body.object);
        let sift = self.sift(call.principal, page, text, &body.object);
        if let Ok(listed) = tools::list(&answer, body, call.id(), LegacyRevision::LATEST, &sift) {
            self.catalog.learn(call.principal, listed.tools);
        }
    }
}

/// Whether the headers are such as servers take.
fn bounded<'a>(mut headers: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>) -> Result<(), Trouble> {
    if headers.all(|(_, value)| value.len() <= MOST_HEADER) {
        return Ok(());
    }
    let text = format!(
        "what a header has to repeat of the request is longer than a header may be ({MOST_HEADER} bytes)"
    );
    Err(Trouble::Fault(Fault::new(FaultKind::InvalidParams, text)))
}
