//! A server that refuses a call until its user has visited a page (-32042 of 2025-11-25).
//!
//! Owns putting the pages to the client as questions and, when all were accepted, having the call sent again under a new
//! number: the server has ended the first one without running it, so this is the retry that its revision speaks of. Before
//! that it waits some time for the server to tell that the user is done there, which a server need not do.
//! Rules: A11.7, B4.1; vectors D27-D30.

use super::Trouble;
use super::stream::Stream;
use super::waits::Away;
use crate::exchange::{Fault, FaultKind, Outcome};
use crate::telemetry::metrics::{NotAsked, Way};
use crate::translate::question::{Need, url_required};
use crate::translate::result;
use crate::wire::jsonrpc::{Reply as RpcReply, Response, code};
use crate::wire::method::Method;
use tokio::time::{Instant, timeout};

impl Stream<'_> {
    /// Whether the server refuses the call until pages have been visited (A11.7).
    pub(super) fn is_required(&self, response: &Response) -> bool {
        let RpcReply::Error(error) = &response.reply else { return false };
        error.code == code::URL_ELICITATION_REQUIRED && self.turn.call.method.can_ask()
    }

    /// Puts the pages to the client. Ends with `Again` once all were accepted.
    pub(super) async fn required(&mut self, response: Response) -> Result<Outcome, Trouble> {
        let shared = self.legacy.shared.clone();
        let Some(pages) = url_required(&response, shared.limits) else {
            // Nothing in it can be shown to anyone.
            return Ok(self.spell(&response));
        };
        // It may be large, and a client may be away for long.
        drop(response);
        if !self.session.capabilities().allows(Need::Url, self.session.initialized.revision) {
            return Err(self.missing(Need::Url).into());
        }
        let ids: Vec<_> = pages.iter().map(|page| page.elicitation_id.clone()).collect();
        for page in pages {
            let question = page.question();
            let bytes = question.bytes() + page.elicitation_id.len();
            if let Some((limit, setting)) = self.sent.asking.reached(bytes, &shared.settings.limits) {
                shared.metrics.limit(limit);
                self.not_asked(NotAsked::Full, setting);
                self.sent.asking.clear();
                let text = format!(
                    "the server requires more pages to be visited than one call may ask for ({setting})"
                );
                return Err(Fault::new(FaultKind::Unanswered, text).into());
            }
            self.sent.asking.add(question, Some(page.elicitation_id), Way::Call);
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
                Outcome::Result(result::tool_error(self.turn.id(), text, Some(info)))
            }
            _ => Outcome::Fault(Fault::new(FaultKind::Unanswered, text)),
        }
    }
}
