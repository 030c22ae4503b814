//! What a legacy client may send and a modern server has no method for.
//!
//! Owns the answers that are given here (`ping`, `logging/setLevel`, `resources/subscribe` and `unsubscribe`, methods that
//! are the other era's alone) and what becomes of each notification. Does not own how changes are listened to
//! (`upstream::modern::feed`). Rules: A1.2, A1.3, A1.8, A1.9, A1.11, A1.15, A2.1-A2.7, A2.11, B8; vectors D70, D89, D100,
//! D102.

use super::super::session::Use;
use super::Asked;
use crate::downstream::front::Inner;
use crate::exchange::Fault;
use crate::telemetry::metrics::Ended;
use crate::translate::declared::LogLevel;
use crate::translate::legacy_client::envelope;
use crate::translate::notify;
use crate::upstream::modern::feed::{Following, Lists, NotSubscribed};
use crate::wire::jsonrpc::{self, Id, Notification, Request, code, string};
use crate::wire::method::{LegacyOnly, Method};
use crate::wire::payload::Payload;
use std::pin::pin;
use std::sync::Arc;

/// What a request comes to.
pub(super) enum Local {
    Answer(Payload, Ended),
    Fault(Fault),
    /// It goes to the server.
    Call,
}

/// The answer to `ping`.
pub(super) fn pong(id: &Id) -> Payload {
    empty(id)
}

impl Inner {
    pub(super) async fn local(&self, asked: &Asked<'_>, session: &Use, request: &Request) -> Local {
        let id = &request.id;
        let method = Method::of(&request.method);
        let unknown = || refuse(id, code::METHOD_NOT_FOUND, "method not found");
        match method {
            Method::LegacyOnly(LegacyOnly::Ping) => Local::Answer(pong(id), Ended::Result),
            Method::LegacyOnly(LegacyOnly::SetLevel) => set_level(session, request),
            Method::LegacyOnly(LegacyOnly::Subscribe) => {
                match self.subscribe(asked, session, request).await {
                    Ok(local) => local,
                    Err(fault) => Local::Fault(fault),
                }
            }
            Method::LegacyOnly(LegacyOnly::Unsubscribe) => unsubscribe(session, request),
            // The other era's, or never a client's to send (A1.3, A1.9, A1.15).
            Method::LegacyOnly(LegacyOnly::Task | LegacyOnly::Initialize)
            | Method::Discover
            | Method::Listen
            | Method::Task
            | Method::ServerToClient => unknown(),
            // A notification's name is no request's.
            Method::Custom if notify::Kind::of(&request.method) != notify::Kind::Custom => unknown(),
            Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead
                if named(request, method).is_none() =>
            {
                let member = method.name_member().map_or("name", |member| member.as_str());
                refuse(id, code::INVALID_PARAMS, &format!("`params.{member}` must be a string"))
            }
            Method::ToolsCall
            | Method::PromptsGet
            | Method::ResourcesRead
            | Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::Complete
            | Method::Custom => Local::Call,
        }
    }

    async fn subscribe(&self, asked: &Asked<'_>, session: &Use, request: &Request) -> Result<Local, Fault> {
        let id = &request.id;
        if !session.offers.subscribe {
            return Ok(refuse(id, code::METHOD_NOT_FOUND, "the server has no subscriptions to resources"));
        }
        let Some(uri) = uri(request) else {
            return Ok(refuse(id, code::INVALID_PARAMS, "`params.uri` must be a string"));
        };
        let subscribed = pin!(async { Ok(self.subscribe_to(asked, session, &uri).await) });
        match self.in_time(asked.deadline, subscribed).await? {
            Ok(()) => Ok(Local::Answer(empty(id), Ended::Result)),
            Err(NotSubscribed::Refused) => {
                let text = "the server does not tell of changes of this resource";
                Ok(refuse(id, code::INVALID_PARAMS, text))
            }
            // To be told in band: neither gets better by trying again.
            Err(limited @ (NotSubscribed::TooMany | NotSubscribed::Full)) => {
                Ok(refuse(id, code::INVALID_PARAMS, &limited.to_string()))
            }
            Err(NotSubscribed::Fault(fault)) => Err(fault),
        }
    }

    async fn subscribe_to(&self, asked: &Asked<'_>, session: &Use, uri: &str) -> Result<(), NotSubscribed> {
        loop {
            let following = self.follow(asked, session);
            following.subscribe(uri, self.limits.subscriptions, asked.deadline).await?;
            // A newer credential may have come meanwhile, and what was not granted yet is not taken over.
            if !session.has_left(&following) {
                return Ok(());
            }
        }
    }

    /// Listens for the session, from the first time that something is to be heard.
    pub(super) fn follow(&self, asked: &Asked<'_>, session: &Use) -> Arc<Following> {
        let lists = lists(session);
        let following = session.following(|follower| {
            asked.upstream.modern.feed.join(asked.principal, asked.headers, lists, follower)
        });
        following.credential(asked.headers);
        following
    }

    /// A request has come: a session that is to be told of changes, and is not, as one that another process has begun, is from
    /// now on; and what stands still for want of a credential may go on.
    pub(super) fn attend(&self, asked: &Asked<'_>, session: &Use) {
        if session.lacks_its_part() && !lists(session).is_empty() {
            self.follow(asked, session);
        } else if session.is_followed_elsewhere(asked.principal) {
            self.follow_anew(asked, session);
        } else {
            session.credential(asked.headers);
        }
    }

    /// The same with another credential of its caller.
    pub(super) fn follow_anew(&self, asked: &Asked<'_>, session: &Use) {
        let lists = lists(session);
        let join =
            |follower| asked.upstream.modern.feed.join(asked.principal, asked.headers, lists, follower);
        session.follows_anew(asked.principal, join, &self.shutdown, asked.deadline);
    }

    /// A notification of the client.
    pub(super) async fn heard(
        &self,
        asked: &Asked<'_>,
        session: &Use,
        told: &Notification,
    ) -> Result<(), Fault> {
        match told.method.as_str() {
            "notifications/initialized" => {
                session.listens();
                self.attend(asked, session);
                Ok(())
            }
            "notifications/cancelled" => {
                let body = told.params.body();
                let id = body.and_then(|body| body.object.first(&told.text, "requestId"));
                if let Some(id) = id {
                    session.cancel(id.of(&told.text));
                }
                Ok(())
            }
            // Progress of an answer to the server's question, and roots: nobody is there to tell (A2.3, A2.7).
            "notifications/progress" | "notifications/roots/list_changed" | "notifications/tasks/status" => {
                Ok(())
            }
            _ => {
                let message = envelope::notification(told);
                let sent = pin!(asked.upstream.modern.tell(asked.headers, &told.method, message));
                self.in_time(asked.deadline, sent).await
            }
        }
    }
}

/// The lists of which the server tells changes.
fn lists(session: &Use) -> Lists {
    let offers = session.offers;
    Lists {
        tools: offers.tools_changed,
        prompts: offers.prompts_changed,
        resources: offers.resources_changed,
    }
}

fn set_level(session: &Use, request: &Request) -> Local {
    let id = &request.id;
    if !session.offers.logging {
        return refuse(id, code::METHOD_NOT_FOUND, "the server has no logging");
    }
    let level = request.params.body().and_then(|body| body.object.first(&request.text, "level"));
    match level.and_then(|span| LogLevel::parse(&string(&request.text, span)?)) {
        Some(level) => {
            session.set_level(level);
            Local::Answer(empty(id), Ended::Result)
        }
        None => refuse(id, code::INVALID_PARAMS, "`params.level` must be the name of a log level"),
    }
}

fn unsubscribe(session: &Use, request: &Request) -> Local {
    let id = &request.id;
    if !session.offers.subscribe {
        return refuse(id, code::METHOD_NOT_FOUND, "the server has no subscriptions to resources");
    }
    let Some(uri) = uri(request) else {
        return refuse(id, code::INVALID_PARAMS, "`params.uri` must be a string");
    };
    session.unsubscribe(&uri);
    Local::Answer(empty(id), Ended::Result)
}

fn uri(request: &Request) -> Option<String> {
    named(request, Method::ResourcesRead)
}

fn named(request: &Request, method: Method) -> Option<String> {
    let span = request.params.body()?.object.first(&request.text, method.name_member()?.as_str())?;
    string(&request.text, span).map(|name| name.into_owned())
}

fn empty(id: &Id) -> Payload {
    Payload::from(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}",
        String::from_utf8_lossy(id.raw())
    ))
}

fn refuse(id: &Id, code: i64, words: &str) -> Local {
    let ended = match code {
        code::METHOD_NOT_FOUND => Ended::MethodNotFound,
        _ => Ended::InvalidParams,
    };
    Local::Answer(Payload::from(jsonrpc::error(Some(id), code, words, None)), ended)
}
