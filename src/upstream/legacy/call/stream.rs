//! What comes for a call that is on its way, and what becomes of each message.
//!
//! Owns the one place where a call waits: for its stream, for what concerns it on other streams of the session, for the
//! quiet time after a question, for its client's return. Does not own questions (`rounds`), nor what the server's answer
//! becomes (`outcome`). Rules: A2.3-A2.5, B5; vectors D45, D97.

use super::super::super::reply::{Arrival, Messages, Refusal, Reply};
use super::super::super::send_fault;
use super::super::super::transport::SendError;
use super::super::at_work::Sent;
use super::super::attribution::{Beside, Seat};
use super::super::gate;
use super::super::turn::{Turn, Watch};
use super::super::wants::Aside;
use super::super::{Legacy, Session};
use super::Trouble;
use super::reopen::{self, Came, Resumption, Source};
use super::waits::{Away, Bringing, Due, Undelivered};
use crate::exchange::{Call, Event, Fault, Outcome};
use crate::telemetry::metrics::{Waiting, Way};
use crate::translate::listen::Notice;
use crate::translate::notify::{self, Kind};
use crate::translate::question::Question;
use crate::wire::jsonrpc::{Message, Notification, Reply as RpcReply, Response};
use crate::wire::payload::Payload;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Answers to a server's requests that may be on their way at once for one call; a server that asks faster waits.
const REPLIES: usize = 8;

/// The call while its answer is awaited.
pub(super) struct Stream<'a> {
    pub(super) legacy: &'a Arc<Legacy>,
    pub(super) session: Arc<Session>,
    pub(super) turn: &'a mut Turn,
    pub(super) watch: &'a Watch,
    pub(super) sent: &'a mut Sent,
    pub(super) number: u64,
    /// `None` for a call that wants no notifications.
    pub(super) aside: Option<Aside>,
    /// `None` for a call that is never asked anything, and once the server has answered it.
    pub(super) seat: Option<Seat<Question>>,
    /// Set while the client is away with questions.
    pub(super) away: Option<Away>,
    /// What the client has answered, and the server is to be given.
    pub(super) bringing: Option<Bringing>,
    /// When the client is to be asked what is open.
    pub(super) due: Option<Due>,
    /// Answers that did not reach the server.
    pub(super) undelivered: Option<Undelivered>,
    pub(super) replies: Arc<Semaphore>,
    /// Something has come for the call, so the server has begun to run it.
    pub(super) heard: bool,
    /// Until the first answer.
    pub(super) waiting: Option<Waiting>,
}

/// What is to be done about what came.
#[allow(clippy::large_enum_variant, reason = "lives for one match")]
enum Sorted {
    Finish(Finish),
    Message(Box<Message>),
    Nothing,
}

/// How the server's part ended.
#[allow(clippy::large_enum_variant, reason = "lives for one match")]
enum Finish {
    Response(Response),
    /// The result has begun to come.
    Flow(Messages),
    Refused(Box<Refusal>),
}

/// Why nothing is to be read.
enum Unopened {
    Refused(Box<Refusal>),
    Trouble(Trouble),
}

impl<'a> Stream<'a> {
    #[allow(clippy::too_many_arguments, reason = "one caller")]
    pub(super) fn new(
        legacy: &'a Arc<Legacy>,
        session: Arc<Session>,
        turn: &'a mut Turn,
        watch: &'a Watch,
        sent: &'a mut Sent,
        number: u64,
        aside: Option<Aside>,
        seat: Option<Seat<Question>>,
        waiting: Option<Waiting>,
    ) -> Self {
        Self {
            legacy,
            session,
            turn,
            watch,
            sent,
            number,
            aside,
            seat,
            away: None,
            bringing: None,
            due: None,
            undelivered: None,
            replies: Arc::new(Semaphore::new(REPLIES)),
            heard: false,
            waiting,
        }
    }

    /// Sends the call and reads to the answer. Where that comes while the client is away, it waits for the client as well.
    pub(super) async fn follow(&mut self, call: Arc<Call>, body: Payload) -> Result<Outcome, Trouble> {
        let mut resumption = Resumption::new(self.legacy);
        let mut finish = match self.source(call, body).await {
            Ok(source) => self.until_answer(source, &mut resumption).await,
            Err(Unopened::Refused(refusal)) => Ok(Finish::Refused(refusal)),
            Err(Unopened::Trouble(trouble)) => Err(trouble),
        };
        loop {
            match self.ended(finish).await? {
                Finish::Response(response) if self.is_required(&response) => {
                    return Box::pin(self.required(response)).await;
                }
                Finish::Response(response) => return self.outcome(&response),
                Finish::Flow(messages) => match Box::pin(self.flow(messages, &mut resumption)).await? {
                    None => return Ok(Outcome::Flowed),
                    Some(again) => finish = self.until_answer(again, &mut resumption).await,
                },
                Finish::Refused(mut refusal) => {
                    let required =
                        |answer: &mut Response| answer.answers(self.number) && self.is_required(answer);
                    return match refusal.answer.take_if(required) {
                        Some(response) => Box::pin(self.required(response)).await,
                        None => self.refused(*refusal),
                    };
                }
            }
        }
    }

    /// The server waits for no answer any more. Where the client is away, it is waited for.
    async fn ended(&mut self, finish: Result<Finish, Trouble>) -> Result<Finish, Trouble> {
        if let Err(Trouble::Left(_) | Trouble::Again | Trouble::Lost) = finish {
            return finish;
        }
        self.due = None;
        self.bringing = None;
        if let Ok(finish) = &finish {
            // A result that still comes is one that a server can be told to stop.
            if !matches!(finish, Finish::Flow(_)) {
                self.sent.number = None;
            }
            self.sent.asking.clear();
            self.seat.take().inspect(|seat| match finish {
                Finish::Response(_) | Finish::Flow(_) => seat.answered(),
                // Nothing is known of it from that.
                Finish::Refused(_) => seat.unsent(),
            });
        }
        // Nobody looks any more for what comes to it.
        self.seat = None;
        if !self.turn.is_here() {
            Box::pin(self.client_returns()).await?;
        }
        finish
    }

    /// Sends the call. Where nothing but its answer can come, that has begun.
    async fn source(&mut self, call: Arc<Call>, body: Payload) -> Result<Source, Unopened> {
        if !self.is_plain() {
            return Ok(Source::sent(self.legacy.clone(), self.session.clone(), call, body, self.number));
        }
        let reply = reopen::send(self.legacy, &self.session, call, body, self.number).await;
        self.replied(reply)
    }

    fn is_plain(&self) -> bool {
        let no_news = self.aside.is_none() && self.seat.is_none();
        no_news && self.away.is_none() && self.due.is_none() && self.undelivered.is_none()
    }

    /// The head of the answer has come, or never will.
    fn replied(&mut self, reply: Result<Reply, SendError>) -> Result<Source, Unopened> {
        match reply {
            Ok(Reply::Messages(mut messages)) => {
                self.let_pass(&mut messages);
                Ok(Source::Open(messages))
            }
            Ok(Reply::Refused(refusal)) => {
                self.waiting.take().into_iter().for_each(Waiting::answered);
                Err(Unopened::Refused(Box::new(refusal)))
            }
            Ok(Reply::Accepted) => {
                let text = "the upstream server accepted the request without answering it";
                Err(Unopened::Trouble(Fault::bad_gateway(text).into()))
            }
            Err(error) => {
                if error.did_not_run() {
                    self.sent.number = None;
                    self.seat.take().inspect(Seat::unsent);
                }
                Err(Unopened::Trouble(send_fault(&self.legacy.shared.settings.name, &error).into()))
            }
        }
    }

    async fn until_answer(
        &mut self,
        mut source: Source,
        resumption: &mut Resumption,
    ) -> Result<Finish, Trouble> {
        loop {
            let Some(came) = self.next(&mut source).await? else { continue };
            // Sorted apart, so that nothing large is kept over the wait that some of it takes.
            let message = match self.sort(came, &mut source, resumption)? {
                Sorted::Finish(finish) => return Ok(finish),
                Sorted::Message(message) => message,
                Sorted::Nothing => continue,
            };
            Box::pin(self.message(*message)).await?;
        }
    }

    /// Whether that is the end of it, and what is still to be done where it is not.
    fn sort(
        &mut self,
        came: Came,
        source: &mut Source,
        resumption: &mut Resumption,
    ) -> Result<Sorted, Trouble> {
        let broken = match came {
            Came::Arrival(Some(Arrival::Message(Message::Response(response)))) => {
                let ours = self.answers(&response)?;
                return Ok(if ours { Sorted::Finish(Finish::Response(response)) } else { Sorted::Nothing });
            }
            Came::Arrival(Some(Arrival::Message(message))) => {
                return Ok(Sorted::Message(Box::new(message)));
            }
            Came::Arrival(Some(Arrival::Flow)) => {
                let Source::Open(messages) = std::mem::replace(source, Source::Over) else {
                    return Err(no_answer().into());
                };
                return Ok(Sorted::Finish(Finish::Flow(messages)));
            }
            Came::Replied(reply) => {
                return match self.replied(reply) {
                    Ok(open) => {
                        *source = open;
                        Ok(Sorted::Nothing)
                    }
                    Err(Unopened::Refused(refusal)) => Ok(Sorted::Finish(Finish::Refused(refusal))),
                    Err(Unopened::Trouble(trouble)) => Err(trouble),
                };
            }
            Came::Reopened(messages) => {
                if let Some(mut messages) = messages? {
                    self.let_pass(&mut messages);
                    *source = Source::Open(messages);
                    self.heard = true;
                    self.legacy.shared.metrics.stream_resumed();
                    return Ok(Sorted::Nothing);
                }
                None
            }
            Came::Broken(broken) => Some(self.legacy.shared.broken(broken)),
            Came::Arrival(None) => None,
        };
        if let Source::Open(messages) = source {
            resumption.ended(messages, broken.as_ref());
        }
        // A server that waits for the client's answers may close its stream as often as it likes (D104).
        let polls = self.away.is_some();
        let again = self.again(resumption, polls);
        *source = again.ok_or_else(|| Trouble::Fault(broken.map_or_else(no_answer, Fault::from)))?;
        Ok(Sorted::Nothing)
    }

    /// The next thing from the call's own stream; `None` where something else has come and been dealt with.
    async fn next(&mut self, source: &mut Source) -> Result<Option<Came>, Trouble> {
        if self.is_plain() {
            return Ok(Some(source.next().await));
        }
        // Apart, since most calls have nothing else to wait for and are to take no room for it.
        Box::pin(self.next_of_all(source)).await
    }

    async fn next_of_all(&mut self, source: &mut Source) -> Result<Option<Came>, Trouble> {
        let overdue = self.due.as_ref().is_some_and(Due::is_overdue);
        tokio::select! {
            biased;
            () = std::future::ready(()), if overdue => self.ask(source).await?,
            back = Away::over(&mut self.away, &self.legacy.shared, Some(&self.session)) => {
                let retry = back?;
                Box::pin(self.take_up(retry, Some(source))).await?;
            }
            answers = Bringing::turn(&mut self.bringing) => self.bring(answers).await,
            fault = Undelivered::next(&mut self.undelivered) => return Err(fault.into()),
            notification = Aside::next(&mut self.aside) => self.tell(&notification).await,
            beside = beside(&mut self.seat) => match beside {
                Beside::Question(given) => {
                    self.heard = true;
                    Box::pin(self.question(given.take(), Way::Beside)).await?;
                }
                Beside::Withdrawn(id) => self.withdrawn(&id),
            },
            came = source.next() => return Ok(Some(came)),
            () = Due::over(&self.due) => self.ask(source).await?,
        }
        Ok(None)
    }

    /// Another stream in the place of the one that ended, if the server offers one.
    pub(super) fn again(&self, resumption: &mut Resumption, polls: bool) -> Option<Source> {
        resumption.again(polls, self.legacy, &self.session, &self.turn.call, self.number)
    }

    /// Whether it is the answer that is waited for.
    fn answers(&mut self, response: &Response) -> Result<bool, Trouble> {
        let first = !std::mem::replace(&mut self.heard, true);
        self.waiting.take().into_iter().for_each(Waiting::answered);
        // An error without an id on the stream of the one call is that call's: the server could not tell the id.
        let nameless = response.id.is_none() && matches!(response.reply, RpcReply::Error(_));
        if !response.answers(self.number) && !nameless {
            tracing::debug!("an answer to another request on the stream of a call is passed over");
            return Ok(false);
        }
        if first && gate::not_initialized(response) {
            return Err(Trouble::Lost);
        }
        Ok(true)
    }

    /// What comes before the answer.
    async fn message(&mut self, message: Message) -> Result<(), Trouble> {
        self.heard = true;
        self.waiting.take().into_iter().for_each(Waiting::answered);
        match message {
            Message::Response(_) => {}
            Message::Notification(notification) => match Kind::of(&notification.method) {
                // Never on a call's own stream (A2.5, D97).
                Kind::Changed => {
                    if let Some(notice) = Notice::of(notification) {
                        self.legacy.listeners.tell(self.turn.call.principal, notice);
                    }
                }
                Kind::LegacyOnly => self.server_tells(&notification),
                Kind::Progress | Kind::Log | Kind::Custom => self.tell(&notification).await,
            },
            Message::Request(asked) => Box::pin(self.asked(&asked)).await?,
        }
        Ok(())
    }

    /// Tells the client, if it is there and wants to see it.
    async fn tell(&mut self, notification: &Notification) {
        if !self.turn.is_here() {
            return;
        }
        if let Some(event) = self.event(notification) {
            self.turn.event(event).await;
        }
    }

    fn event(&mut self, notification: &Notification) -> Option<Event> {
        let Turn { wants, progress, .. } = &mut *self.turn;
        match Kind::of(&notification.method) {
            Kind::Progress => {
                let token = wants.token.as_ref()?;
                progress.to_modern(notification, self.number, token).map(Event::Progress)
            }
            Kind::Log => notify::log_to_modern(notification, wants.log).map(Event::Log),
            Kind::Custom => Some(Event::Custom(notify::custom_to_modern(notification))),
            Kind::Changed | Kind::LegacyOnly => {
                tracing::debug!(method = %notification.method, "not for the stream of a call");
                None
            }
        }
    }
}

/// What comes for the call beside its stream. Never where nothing can.
async fn beside(seat: &mut Option<Seat<Question>>) -> Beside<Question> {
    match seat {
        Some(seat) => seat.next().await,
        None => std::future::pending().await,
    }
}

pub(super) fn no_answer() -> Fault {
    Fault::bad_gateway("the upstream server ended its answer without the result")
}
