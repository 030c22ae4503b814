//! The words that may stand in labels: closed sets, so that no client can make series.
//!
//! Owns the enums and their words; each word is an index too, which is how a series is found without a look-up. Does not
//! own which family has which label (`families`).

use crate::wire::method::{LegacyOnly, Method};
use crate::wire::version::Era;

/// An enum of words, each with its place among them.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            pub(in crate::telemetry::metrics) const WORDS: &'static [&'static str] = &[$($word,)+];

            pub fn label(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

mod bridge;
mod schema;

pub use bridge::*;
pub use schema::*;

words! {
    /// How a request to an endpoint ended.
    Ended {
        /// The server's result, as the client is to see it.
        Result => "result",
        /// The server asks the client something; the call goes on with the answer.
        InputRequired => "input-required",
        /// The server's own error.
        Error => "error",
        /// The server's own -32601.
        Unimplemented => "unimplemented",
        /// A server's response was passed on as it is, with a status of success.
        Relayed => "relayed",
        /// As `Relayed`, with another status.
        RelayedError => "relayed-error",
        /// An answer whose beginning had gone to the client has no end: the server broke off, or its time was over.
        BrokenOff => "broken-off",
        /// A notification or an answer was taken (202).
        Accepted => "accepted",
        /// The client went away before there was an outcome, or before the end of a response that was passed on.
        Cancelled => "cancelled",
        /// The connection of a legacy client went away; its call goes on, and its stream can be taken up again.
        Left => "left",
        /// Not taken: see the refusals.
        Refused => "refused",
        InvalidParams => "invalid-params",
        MethodNotFound => "method-not-found",
        MissingCapability => "missing-capability",
        Unauthorized => "unauthorized",
        RateLimited => "rate-limited",
        BadGateway => "bad-gateway",
        Timeout => "timeout",
        Busy => "busy",
        Draining => "draining",
        Unanswered => "unanswered",
        Internal => "internal",
    }
}

words! {
    /// Streams that stay open for a while.
    StreamKind {
        /// The answer to a request of a client, as an event stream.
        Answer => "answer",
        /// `subscriptions/listen`.
        Listen => "listen",
        /// The stream that a legacy client opens by GET.
        ClientGet => "client-get",
        /// The stream that the proxy opens by GET at a legacy server.
        UpstreamGet => "upstream-get",
    }
}

words! {
    /// How a look at a server's era ended.
    Verdict {
        Modern => "modern",
        Legacy => "legacy",
        /// Nothing was found out.
        Undecided => "none",
    }
}

words! {
    /// How an `initialize` ended.
    Opened {
        Ready => "ok",
        /// The server itself said no.
        Refused => "refused",
        Failed => "failed",
    }
}

words! {
    /// What became of one HTTP request to a server.
    Delivered {
        Success => "2xx",
        Redirected => "3xx",
        ClientError => "4xx",
        ServerError => "5xx",
        Connect => "connect",
        Tls => "tls",
        Unsent => "unsent",
        Broken => "broken",
        Timeout => "timeout",
        Redirect => "redirect",
        /// Nobody waited for it any more.
        GivenUp => "given-up",
    }
}

words! {
    /// A bound of the front, by its setting.
    Limit {
        Connections => "limits.connections",
        Requests => "limits.requests",
        Streams => "limits.streams",
        Subscriptions => "limits.subscriptions",
        BodyBytes => "limits.body_bytes",
        HeaderBytes => "limits.header_bytes",
        Nesting => "limits.nesting",
        Members => "limits.members",
        /// A server was slowed down because its client has not taken the events so far.
        Events => "limits.events",
        EventBytes => "limits.event_bytes",
        Parked => "limits.parked",
        ParkedPerPrincipal => "limits.parked_per_principal",
        Header => "timeouts.header",
        Body => "timeouts.body",
        Handshake => "timeouts.handshake",
    }
}

words! {
    /// A bound of one upstream, by its setting.
    UpstreamLimit {
        Sessions => "session.max",
        /// Events that were kept for a client without a connection made room for newer ones.
        Replay => "session.replay",
        MessageBytes => "limits.message_bytes",
        Processes => "limits.max_processes",
        /// Notifications of a server behind one channel that are left out for a reader who does not keep up.
        Events => "limits.events",
        /// `limits.nesting` or `limits.members`, by a message of the server.
        Json => "json",
        Redirects => "limits.redirects",
        Resumptions => "limits.resumptions",
        Rounds => "limits.rounds",
        /// Questions of one call, or held ones of one session.
        Questions => "limits.questions",
        QuestionBytes => "limits.question_bytes",
        WaitingCalls => "limits.waiting_calls",
        Polls => "limits.polls",
        CacheBytes => "limits.cache_bytes",
        CatalogTools => "limits.catalog_tools",
        Catalogs => "limits.catalogs",
    }
}

words! {
    /// How a child process ended.
    Exited {
        /// Within its time after its standard input was closed or it was asked by a signal.
        Asked => "asked",
        ByItself => "by_itself",
        /// It did not end when it was asked.
        Killed => "killed",
    }
}

words! {
    /// What a server asks for.
    QuestionKind {
        /// A form.
        Elicitation => "elicitation",
        /// A page to visit, also one that is named by -32042.
        Url => "url",
        Sampling => "sampling",
        Roots => "roots",
    }
}

words! {
    /// Where a question came.
    Way {
        /// On the stream of the call that it belongs to, or as its answer.
        Call => "call",
        /// Anywhere else, so that its call had to be found.
        Beside => "beside",
    }
}

words! {
    /// Why a server's request did not reach a client.
    NotAsked {
        /// The client does not declare the capability.
        Undeclared => "undeclared",
        /// A method that no client is asked, or a call whose method cannot carry a question.
        Method => "method",
        /// It could belong to several calls, and still could after `timeouts.attribute`.
        Ambiguous => "ambiguous",
        /// No call was there that it could belong to.
        NoCall => "no-call",
        /// `limits.rounds`
        Rounds => "rounds",
        /// A limit on questions or on calls that wait for answers.
        Full => "full",
        /// It is not what the server's revision says.
        Malformed => "malformed",
        /// `interactive = false`
        Off => "off",
    }
}

words! {
    /// How a call ended whose question nobody answered.
    ParkEnd {
        /// `timeouts.answer`
        Expired => "expired",
        /// The process ended.
        Drained => "drained",
    }
}

words! {
    /// Why an answer was not taken.
    StateRefused {
        /// Not issued by this process, or altered.
        Unreadable => "unreadable",
        /// Issued to somebody else.
        Principal => "principal",
        /// Issued for another method or other arguments.
        Request => "request",
        Expired => "expired",
        /// The call is no longer there.
        Unknown => "unknown",
        /// Answered before, and the outcome is not kept any more.
        Used => "used",
        /// `inputResponses` does not fit what was asked.
        Answers => "answers",
    }
}

/// What a request is, as far as that could be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Method(Method),
    Notification,
    /// A client's answer to a question of its server.
    Response,
    /// A legacy client's array of messages.
    Batch,
    /// A legacy client opens its stream.
    Get,
    /// A legacy client ends its session.
    Delete,
    /// Refused before that.
    Unknown,
}

impl What {
    pub(super) const COUNT: usize = 24;

    pub fn label(self) -> &'static str {
        match self {
            What::Method(method) => method.label(),
            What::Notification => "notification",
            What::Response => "response",
            What::Batch => "batch",
            What::Get => "get",
            What::Delete => "delete",
            What::Unknown => "none",
        }
    }

    /// Whether it is answered by something that goes on until somebody ends it, which no latency tells of.
    pub(super) fn is_open_ended(self) -> bool {
        matches!(self, What::Method(Method::Listen) | What::Get)
    }

    pub(super) fn index(self) -> usize {
        match self {
            What::Method(method) => index_of(method),
            What::Notification => 18,
            What::Response => 19,
            What::Get => 20,
            What::Delete => 21,
            What::Unknown => 22,
            What::Batch => 23,
        }
    }
}

/// Equal labels have equal places.
fn index_of(method: Method) -> usize {
    match method {
        Method::Discover => 0,
        Method::ToolsList => 1,
        Method::ToolsCall => 2,
        Method::PromptsList => 3,
        Method::PromptsGet => 4,
        Method::ResourcesList => 5,
        Method::ResourcesTemplatesList => 6,
        Method::ResourcesRead => 7,
        Method::Complete => 8,
        Method::Listen => 9,
        Method::LegacyOnly(LegacyOnly::Initialize) => 10,
        Method::LegacyOnly(LegacyOnly::Ping) => 11,
        Method::LegacyOnly(LegacyOnly::SetLevel) => 12,
        Method::LegacyOnly(LegacyOnly::Subscribe) => 13,
        Method::LegacyOnly(LegacyOnly::Unsubscribe) => 14,
        Method::LegacyOnly(LegacyOnly::Task) | Method::Task => 15,
        Method::ServerToClient => 16,
        Method::Custom => 17,
    }
}

/// One side of a cell: an era, or that it is not known.
pub(super) const SIDES: usize = 3;

pub(super) fn side(era: Option<Era>) -> usize {
    match era {
        None => 0,
        Some(Era::Modern) => 1,
        Some(Era::Legacy) => 2,
    }
}

pub(super) fn side_label(era: Option<Era>) -> &'static str {
    era.map_or("none", Era::name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn equal_labels_and_only_they_share_a_place() {
        let methods = [
            "server/discover",
            "tools/list",
            "tools/call",
            "prompts/list",
            "prompts/get",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "completion/complete",
            "subscriptions/listen",
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
            "tasks/list",
            "tasks/get",
            "roots/list",
            "of/no/registry",
        ];
        let mut all: Vec<What> = methods.into_iter().map(|name| What::Method(Method::of(name))).collect();
        all.extend([What::Notification, What::Response, What::Batch, What::Get, What::Delete, What::Unknown]);
        let mut places = BTreeMap::new();
        for what in all {
            let before = places.insert(what.index(), what.label());
            assert!(before.is_none_or(|label| label == what.label()), "{what:?}");
        }
        assert_eq!(places.keys().copied().collect::<Vec<_>>(), (0..What::COUNT).collect::<Vec<_>>());
        let mut labels: Vec<_> = places.into_values().collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), What::COUNT);
    }
}
