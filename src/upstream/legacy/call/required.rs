//! A server that refuses a call until its user has visited a page (-32042 of 2025-11-25).
//!
//! Owns putting the pages to the client as questions and, when all were accepted, having the call sent again under a new
//! number: the server has ended the first one without running it, so this is the retry that its revision speaks of. Before
//! that it waits some time for the server to tell that the user is done there, which a server need not do.
//! Rules: A11.7, B4.1; vectors D27-D30.

use super::Trouble;
use super::rounds::counted;
use super::stream::Stream;
use super::waits::Away;
use crate::exchange::{Fault, FaultKind, Outcome};
use crate::telemetry::metrics::{NotAsked, UpstreamLimit, Way};
use crate::translate::question::{Need, url_required};
use crate::translate::result;
use crate::wire::jsonrpc::{Response, RpcError};
use crate::wire::method::Method;
use tokio::time::{Instant, timeout};

impl Stream<'_> {
    /// Ends with `Again` once all pages were accepted.
    pub(super) async fn required(
        &mut self,
        response: &Response,
        error: &RpcError,
    ) -> Result<Outcome, Trouble> {
        let shared = self.legacy.shared.clone();
        let Some(pages) = url_required(response, error, shared.limits) else {
            // Nothing in it can be shown to anyone.
            return Ok(self.spell(response));
        };
        if !self.session.capabilities().allows(Need::Url, self.session.initialized.revision) {
            return Err(self.missing(Need::Url).into());
        }
        let limits = &shared.settings.limits;
        let bytes: usize = pages.iter().map(|page| page.entry.len()).sum();
        if pages.len() > limits.questions || bytes > limits.question_bytes {
            shared.metrics.limit(UpstreamLimit::Questions);
            self.not_asked(NotAsked::Full, "upstream.*.limits.questions, upstream.*.limits.question_bytes");
            return Ok(self.spell(response));
        }
        let ids: Vec<_> = pages.iter().map(|page| page.elicitation_id.clone()).collect();
        for page in pages {
            let question = page.question();
            shared.metrics.question(counted(question.kind), Way::Call);
            self.sent.asking.add(question, Some(page.elicitation_id));
        }
        while !self.sent.asking.is_empty() {
            self.park().await?;
            let retry = Away::over(&mut self.away, &shared, None).await?;
            let accepted: Vec<_> =
                retry.answers.iter().map(|(key, answer)| (key.clone(), answer.accepted)).collect();
            self.take_up(retry, None).await?;
            for (key, accepted) in accepted {
                if self.sent.asking.answered(&key).is_some() && accepted != Some(true) {
                    return Ok(self.declined());
                }
            }
        }
        // Consent is not completion: sent again at once, most calls would only be refused again (B4.2).
        // The call itself needs time as well.
        let left = self.turn.call.deadline.saturating_duration_since(Instant::now());
        let wait = shared.settings.timeouts.url.min(left / 2);
        let _ = timeout(wait, self.session.completed(&ids)).await;
        Err(Trouble::Again)
    }

    /// The user does not want to go there, and without it the server does not run the call.
    fn declined(&mut self) -> Outcome {
        self.sent.asking.clear();
        let text = "the server requires a page to be visited first, and the user declined";
        match self.turn.call.method {
            Method::ToolsCall => {
                let info = &self.session.initialized.server_info;
                self.legacy.shared.metrics.tool_error();
                Outcome::Result(result::tool_error(self.turn.id(), text, info))
            }
            _ => Outcome::Fault(Fault::new(FaultKind::Unanswered, text)),
        }
    }
}
