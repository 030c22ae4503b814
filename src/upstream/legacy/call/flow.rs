//! A large result of a call, passed on while it comes.
//!
//! Owns when it may (somebody waits for it, under whose id it goes), and that nothing of it has gone out as long as there
//! is a way back. Does not own its translation (`translate::flow`). Rules: D104; architecture section 4, "Raw JSON".

use super::super::super::guard::Scope;
use super::super::super::reply::Messages;
use super::Trouble;
use super::reopen::{Resumption, Source};
use super::stream::Stream;
use crate::exchange::Fault;
use crate::telemetry::metrics::Waiting;
use crate::translate::flow::Plan;
use crate::wire::method::Method;

impl Stream<'_> {
    /// Lets a large result of this call go on while it comes, under the id of the request that waits for it. If none does,
    /// the result waits at the server (invariant 5). Whether it goes on now.
    pub(super) fn let_pass(&self, messages: &mut Messages) -> bool {
        let shared = &self.legacy.shared;
        let limits = &shared.settings.limits;
        if !self.turn.is_here() {
            messages.wait(limits.flow_bytes);
            return false;
        }
        let info = self.session.initialized.server_info.clone();
        let id = self.turn.id().clone();
        let plan =
            Plan::new(self.turn.call.method, self.number, id, info, shared.limits, limits.message_bytes);
        let call = &self.turn.call;
        // What is checked has to be whole.
        let plan =
            plan.filter(|_| !shared.guard.checks_result(Scope::of(call.principal, None), &call.request));
        messages.pass_by(plan, limits.flow_bytes)
    }

    /// Hands the result on as it comes. Once a piece is out there is no way back: no resuming, no other answer. So the first
    /// one waits for another, or for the end. Where the stream is gone by then, as that of a result may be which has waited
    /// for the client, it is taken up again: `Some`.
    pub(super) async fn flow(
        &mut self,
        mut messages: Messages,
        resumption: &mut Resumption,
    ) -> Result<Option<Source>, Trouble> {
        self.waiting.take().into_iter().for_each(Waiting::answered);
        let shared = &self.legacy.shared;
        let mut first = None;
        let mut out = false;
        loop {
            match messages.piece().await.map_err(|broken| shared.broken(broken)) {
                Ok(Some(piece)) if !out && first.is_none() => first = Some(piece),
                Ok(Some(piece)) => {
                    out = true;
                    if let Some(first) = first.take() {
                        self.turn.piece(first).await;
                    }
                    self.turn.piece(piece).await;
                }
                Ok(None) => break,
                Err(broken) => {
                    resumption.ended_within(&messages, &broken);
                    let again = (!out).then(|| self.again(resumption, false)).flatten();
                    return again.map(Some).ok_or_else(|| Fault::from(broken).into());
                }
            }
        }
        if let Some(only) = first {
            self.turn.piece(only).await;
        }
        self.sent.number = None;
        shared.metrics.result_flowed();
        if self.turn.call.method == Method::ToolsCall && messages.says_error() {
            shared.metrics.tool_error();
        }
        Ok(None)
    }
}
