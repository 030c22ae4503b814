//! Looking into what passes between peers of one era, which nothing else reads.
//!
//! Owns, for one upstream, what of a response is held to be judged and for how long, and that every list of tools and every form
//! in it is, whatever was asked and however it comes: in one body, in events of any stream, in arrays. Messages that hold nothing of
//! that are told by a quick look and pass as the bytes they are. Also owns the admission of a legacy client's calls in its own
//! session. Does not own judging (`schema`), what is known of tools (`known`), nor where the body goes.
//!
//! The parts: `asked` is what the request wanted, `message` looks into one text, `recent` knows unchanged lists again, `whole` reads
//! a JSON body, `body` is the response body of all else meanwhile, `watch` looks for lists in what is too large to be held, `answer`
//! tells a server that its question does not go on.
//! Rules: A5.3, A5.10, A12.21, A14.1; cases C62, C65; architecture section 4, "Schema guard".

mod answer;
mod asked;
mod body;
mod message;
mod recent;
mod watch;
mod whole;

pub use asked::Asked;
pub use body::Sifted;

use super::{Denied, Guard, Scope};
use crate::config::Validation;
use crate::exchange::{Call, Fault, FaultKind};
use crate::schema::Speaker;
use crate::upstream::legacy::{Carries, Legacy, Passage};
use crate::upstream::reply::{UpstreamBody, content_type};
use crate::upstream::{Room, Shared};
use crate::wire::headers::{ContentType, JSON, MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
use crate::wire::json::UNBOUNDED;
use crate::wire::jsonrpc::{self, Id, Message, Request, code};
use crate::wire::method::Method;
use crate::wire::version::LegacyRevision;
use answer::Answers;
use asked::What;
use body::{Source, Unjudged};
use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response};
use message::{Look, Looking, instead, items};
use recent::Recent;
use std::sync::Arc;
use watch::{Found, Wanted, Watch};

/// One upstream's sieve.
pub struct Sieve {
    shared: Arc<Shared>,
    recent: Recent,
    /// Bytes of a message that are held in any case.
    hold: usize,
    answers: Answers,
}

/// What becomes of a legacy client's request.
pub enum Admitted {
    Goes(Asked),
    /// In the place of the server's.
    Answered(Response<UpstreamBody>),
}

impl Sieve {
    pub(in crate::upstream) fn new(shared: Arc<Shared>, legacy: Arc<Legacy>, room: Room) -> Arc<Self> {
        let recent = Recent::new(shared.settings.schema.cache_bytes);
        let answers = Answers::new(shared.clone(), legacy);
        Arc::new(Self { shared, recent, hold: room.bytes, answers })
    }

    /// A modern server's response to a modern client's call.
    pub async fn modern(
        self: &Arc<Self>,
        call: &Call,
        response: Response<UpstreamBody>,
    ) -> Result<Response<UpstreamBody>, Fault> {
        let scope = Scope::of(call.principal, None);
        let mut asked = Asked::default();
        asked.add(call.id(), self.what(scope, &call.request));
        self.sift(Speaker::Modern, scope, asked, None, response).await
    }

    /// Whether a legacy client's request may go to its legacy server. An array goes as a whole or not at all.
    pub fn admit(&self, passage: &Passage) -> Result<Admitted, Fault> {
        let scope = scope(passage);
        let mut asked = Asked::default();
        match (&passage.carries, &passage.request) {
            (Carries::Request(id), Some(request)) => match self.admit_one(scope, request) {
                Ok(()) => asked.add(id, self.what(scope, request)),
                Err(Denied::Tool(words)) => return Err(Fault::new(FaultKind::InvalidParams, words)),
                Err(denied @ Denied::Value(_)) => {
                    let text = instead(speaker(&passage.headers), id, denied, None).to_bytes();
                    return Ok(Admitted::Answered(answered(text)));
                }
            },
            (Carries::Initialize(id) | Carries::Request(id), _) => asked.add(id, What::Other),
            (Carries::Batch(ids), _) => {
                let text = passage.body.to_bytes();
                for item in items(&text).unwrap_or_default() {
                    let message = jsonrpc::parse(text.slice(item.range()), UNBOUNDED);
                    let Ok(Message::Request(request)) = message else { continue };
                    if let Err(denied) = self.admit_one(scope, &request) {
                        let text = all_refused(ids, &request.id, denied.words());
                        return Ok(Admitted::Answered(answered(text)));
                    }
                    asked.add(&request.id, self.what(scope, &request));
                }
            }
            (Carries::Unanswered | Carries::Stream | Carries::End, _) => {}
        }
        Ok(Admitted::Goes(asked))
    }

    fn admit_one(&self, scope: Scope, request: &Request) -> Result<(), Denied> {
        match Method::of(&request.method) {
            Method::ToolsCall => self.guard().admit(scope, request),
            _ => Ok(()),
        }
    }

    fn what(&self, scope: Scope, request: &Request) -> What {
        What::of(request, || self.guard().checks_result(scope, request))
    }

    /// A legacy server's response to a legacy client's request.
    pub async fn legacy(
        self: &Arc<Self>,
        passage: &Passage,
        asked: Asked,
        response: Response<UpstreamBody>,
    ) -> Result<Response<UpstreamBody>, Fault> {
        self.sift(speaker(&passage.headers), scope(passage), asked, Some(passage), response).await
    }

    async fn sift(
        self: &Arc<Self>,
        speaker: Speaker,
        scope: Scope,
        asked: Asked,
        passage: Option<&Passage>,
        response: Response<UpstreamBody>,
    ) -> Result<Response<UpstreamBody>, Fault> {
        let kind = content_type(response.headers());
        let readable = matches!(kind, Some(ContentType::Json | ContentType::EventStream));
        if readable && is_encoded(response.headers()) && self.guard().leaves_out() {
            let text = "the upstream server's answer has a Content-Encoding, which it was not asked for";
            return Err(Fault::bad_gateway(text));
        }
        let results = asked.checks();
        let enforced = results && self.shared.settings.schema.results == Validation::Enforce;
        let sieving = Sieving {
            // What is asked for is held as a whole.
            hold: if asked.wants_list() || enforced { self.hold.max(self.most()) } else { self.hold },
            looking: Looking { speaker, scope, asked, results },
            sieve: self.clone(),
        };
        let (head, body) = response.into_parts();
        let origin = || passage.map(|passage| Box::new(self.answers.to(passage)));
        let body = match body {
            UpstreamBody::Read(text) => whole::read(&sieving, origin, text),
            UpstreamBody::Held(held) => {
                UpstreamBody::Sifted(Sifted::events(Source::Held(held), sieving, origin()))
            }
            UpstreamBody::Streaming(body) if kind == Some(ContentType::EventStream) => {
                UpstreamBody::Sifted(Sifted::events(Source::Server(body), sieving, origin()))
            }
            UpstreamBody::Streaming(body) if kind == Some(ContentType::Json) => {
                whole::collect(sieving, origin, body).await?
            }
            body @ (UpstreamBody::Streaming(_) | UpstreamBody::Sifted(_)) => body,
        };
        Ok(Response::from_parts(head, body))
    }

    fn guard(&self) -> &Guard {
        &self.shared.guard
    }

    /// Bytes of a message that has a list.
    fn most(&self) -> usize {
        self.shared.settings.limits.message_bytes
    }
}

/// What looks into one response.
struct Sieving {
    sieve: Arc<Sieve>,
    looking: Looking,
    /// Bytes of a message that are held before it is known what it is.
    hold: usize,
}

impl Sieving {
    /// Looks into a text that is suspected.
    fn text(&self, text: &Bytes) -> Look {
        self.looking.text(self.sieve.guard(), &self.sieve.recent, text)
    }

    /// What is looked for in a message too large to be held; a result that would only be warned of passes unchecked.
    fn wanted(&self) -> Wanted {
        let enforced = self.sieve.shared.settings.schema.results == Validation::Enforce;
        Wanted { structured: self.looking.results && enforced }
    }

    /// For a message that passes although it may hold something that is to be judged; `None` where it would pass with that.
    fn watch(&self) -> Option<Watch> {
        (self.sieve.guard().leaves_out() || self.wanted().structured).then(Watch::default)
    }

    /// Something is in a message that cannot be held, or the message is none: whether it passes all the same.
    fn unjudged(&self, found: Found) -> Result<(), Unjudged> {
        let upstream = &*self.sieve.shared.settings.name;
        let breaks = self.watch().is_some();
        match found {
            Found::NoJson => {
                tracing::debug!(upstream, breaks, "a large message of the upstream server is no JSON");
            }
            Found::Member => {
                tracing::warn!(
                    upstream,
                    breaks,
                    "a message with tools, a form or a result that is to be judged is too large to be held; limits.event_bytes or the upstream's limits.message_bytes bound it"
                );
            }
        }
        if !breaks {
            return Ok(());
        }
        Err(match found {
            Found::NoJson => Unjudged::NoJson,
            Found::Member => {
                self.sieve.shared.metrics.schema_too_large();
                Unjudged::TooLarge
            }
        })
    }
}

fn answered(text: Bytes) -> Response<UpstreamBody> {
    let mut response = Response::new(UpstreamBody::Read(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// The answers to an array in which the request `id` is refused.
fn all_refused(ids: &[Id], id: &Id, words: &str) -> Bytes {
    let beside = format!("not sent, as another request of the array is refused: {words}");
    let error = |one: &Id| {
        let words = if one == id { words } else { &beside };
        jsonrpc::error(Some(one), code::INVALID_PARAMS, words, None)
    };
    let errors: Vec<Bytes> = ids.iter().map(error).collect();
    [b"[", &errors.join(&b","[..])[..], b"]"].concat().into()
}

fn scope(passage: &Passage) -> Scope {
    Scope::of(passage.principal, passage.headers.get(MCP_SESSION_ID))
}

/// The server speaks the revision that its client names in the session.
fn speaker(headers: &HeaderMap) -> Speaker {
    let named = headers.get(MCP_PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
    Speaker::Legacy(named.and_then(LegacyRevision::parse))
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}
