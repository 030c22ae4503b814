//! One call of a legacy client at a modern server, through all its rounds to its one outcome.
//!
//! Owns the row of requests that a call becomes: the first, one more for each round of `input_required`, and one again
//! where the server proved that it did not run the last (-32020), or where asking twice does no harm (lists and reads whose
//! answer broke off, D104). `leg` sends one and reads what comes, `rounds` puts what the server asks to the client, `answer`
//! is what an answer means, `kept` are lists that need not be asked for again. A `tools/call` that may have run is never sent
//! again (B14). Does not own the client's session, nor how what is told reaches it: that goes through the exchange.
//! Rules: A1.5, A11, A12.20, B2.

mod answer;
mod kept;
mod leg;
mod rounds;

pub(super) use answer::names_ours;

use super::super::guard::{Denied, Scope};
use super::Modern;
use super::lookup::Mismatch;
use crate::exchange::{Call, Fault, FaultKind, Outcome, Replan, Sender};
use crate::translate::declared::{self, LogLevel};
use crate::translate::legacy_client::envelope::Round;
use crate::translate::legacy_client::initialize::Client;
use crate::translate::legacy_client::notify::Progress;
use crate::translate::legacy_client::result::tool_error;
use crate::translate::legacy_client::round::Asked;
use crate::translate::legacy_client::tools::Tool;
use crate::wire::jsonrpc::string;
use crate::wire::method::Method;
use bytes::Bytes;
use hyper::header::HeaderValue;
use kept::Keep;
use rounds::Rounds;
use std::sync::Arc;
use tokio::time::Instant;

/// The legacy client whose call it is, as its session has it.
#[derive(Debug, Clone)]
pub struct Caller {
    pub client: Client,
    /// What it has set by `logging/setLevel`.
    pub level: Option<LogLevel>,
    /// Whether a request to the client can go out on the answer to this one (B2.9).
    pub reachable: bool,
    /// Whether the answer is to be held until it is whole, as a part of an array is.
    pub whole: bool,
}

/// How one request of the row ended.
enum Leg {
    Outcome(Outcome),
    Asked(Asked),
}

/// Why one gave no answer.
enum Trouble {
    /// -32020: the headers do not fit the tool; nothing has run (A11.8).
    Mismatch(Outcome),
    /// -32022, and yet the version is one that the server names; nothing has run (A11.10).
    Version(Outcome),
    /// The server is perhaps of the other era, or of no version of ours; nothing has run.
    OtherEra(Outcome),
    /// The answer broke off; what was asked may have run.
    Broken(Fault),
    Fault(Fault),
}

pub(super) async fn run(modern: Arc<Modern>, call: Arc<Call>, caller: Caller, sender: Sender) {
    let outcome = {
        let mut course = Course::new(&modern, &call, &caller, &sender);
        tokio::select! {
            biased;
            // Letting go of the server's response is what cancels it there (A2.2).
            () = sender.cancelled() => return,
            outcome = course.run() => outcome,
        }
    };
    sender.finish(outcome);
}

/// A call under way.
struct Course<'a> {
    modern: &'a Arc<Modern>,
    call: &'a Arc<Call>,
    caller: &'a Caller,
    sender: &'a Sender,
    /// The client's progress token, as it wrote it; one for all rounds (A4.5).
    token: Option<Bytes>,
    progress: Progress,
    tool: Option<Arc<Tool>>,
    /// Of the client's last answer, if it has given one: that is what makes the next request (A13.10).
    credential: Option<Option<HeaderValue>>,
    /// Something has come for the request that is under way, so the server has begun to run it.
    heard: bool,
    /// What the answer is kept under.
    keep: Option<Keep>,
}

impl<'a> Course<'a> {
    fn new(modern: &'a Arc<Modern>, call: &'a Arc<Call>, caller: &'a Caller, sender: &'a Sender) -> Self {
        let token = declared::progress_token(&call.request).map(Bytes::copy_from_slice);
        Self {
            modern,
            call,
            caller,
            sender,
            token,
            progress: Progress::default(),
            tool: None,
            credential: None,
            heard: false,
            keep: None,
        }
    }

    async fn run(&mut self) -> Outcome {
        if let Some(outcome) = self.kept() {
            return outcome;
        }
        if let Some(name) = self.tool_name() {
            self.tool = self.modern.tool(self.call, &self.caller.client, &name).await;
            let scope = Scope::of(self.call.principal, None);
            match self.modern.shared.guard.admit(scope, &self.call.request) {
                Ok(()) => {}
                Err(Denied::Tool(words)) => {
                    return Outcome::Fault(Fault::new(FaultKind::InvalidParams, words));
                }
                Err(Denied::Value(words)) => {
                    return Outcome::Result(tool_error(self.call.id(), &words));
                }
            }
        }
        let mut round = Round::default();
        let mut rounds = Rounds::new(&self.modern.shared.settings);
        let (mut mended, mut renewed, mut again) = (false, false, false);
        loop {
            let sent = Instant::now();
            match self.leg(&round).await {
                Ok(Leg::Outcome(outcome)) => {
                    rounds.over(self).await;
                    return outcome;
                }
                Ok(Leg::Asked(asked)) => match rounds.next(self, asked).await {
                    Ok(next) => round = next,
                    Err(outcome) => return outcome,
                },
                Err(Trouble::Mismatch(_)) if !mended => {
                    mended = true;
                    if let Some(name) = self.tool_name() {
                        let tool = self.tool.take();
                        let mismatch = Mismatch { tool: tool.as_ref(), sent };
                        self.tool =
                            self.modern.tool_again(self.call, &self.caller.client, &name, mismatch).await;
                    }
                }
                Err(Trouble::Version(_)) if !renewed => renewed = true,
                Err(Trouble::Broken(fault)) if !again && self.may_be_asked_again() => {
                    again = true;
                    tracing::debug!(%fault, "the answer broke off; what only reads is asked for once more");
                    self.modern.shared.metrics.call_resent();
                }
                Err(Trouble::OtherEra(otherwise) | Trouble::Version(otherwise)) => {
                    return Outcome::Replan(Box::new(Replan { call: self.call.clone(), otherwise }));
                }
                Err(Trouble::Mismatch(outcome)) => return outcome,
                Err(Trouble::Broken(fault) | Trouble::Fault(fault)) => return Outcome::Fault(fault),
            }
        }
    }

    /// The tool that is called.
    fn tool_name(&self) -> Option<String> {
        if self.call.method != Method::ToolsCall {
            return None;
        }
        let request = &self.call.request;
        let name = request.params.body()?.object.first(&request.text, "name")?;
        string(&request.text, name).map(|name| name.into_owned())
    }

    /// Whether the request may run twice (architecture, "Retries"; A12.20).
    fn may_be_asked_again(&self) -> bool {
        match self.call.method {
            Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::ResourcesRead => true,
            Method::ToolsCall
            | Method::PromptsGet
            | Method::Complete
            | Method::Discover
            | Method::Listen
            | Method::Task
            | Method::LegacyOnly(_)
            | Method::ServerToClient
            | Method::Custom => false,
        }
    }
}
