//! The body of a response while it is looked into.
//!
//! Owns passing it on, byte for byte where nothing in it is changed: events of a stream one after the other, each held until it is
//! whole, and what is too large to be held in constant memory, under watch. What breaks it off is said in the log and counted.
//! Rules: A13.5, A13.7; cases C11, C13; architecture section 5, invariants 4 and 5.

use super::Sieving;
use super::answer::Origin;
use super::message::Look;
use super::watch::{Found, Watch};
use crate::upstream::legacy::Held;
use crate::upstream::transport::{Body, BoxError};
use crate::wire::sse::blocks::{self, Blocks};
use crate::wire::sse::{Decoder, Piece};
use bytes::{Bytes, BytesMut};
use http_body::Frame;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// See the module.
pub struct Sifted {
    source: Source,
    form: Form,
    ready: VecDeque<Bytes>,
    /// What the server is answered to questions that do not go on.
    answers: VecDeque<Bytes>,
    /// Whose session it is in.
    origin: Option<Box<Origin>>,
    sieving: Sieving,
    over: bool,
    /// How it ends, after what is ready.
    broken: Option<BoxError>,
}

/// What is looked into.
pub(super) enum Source {
    Server(Body),
    Held(Held),
}

enum Form {
    Events(Box<Events>),
    /// One text, too large to be held; `None` where nothing is looked for any more.
    Text(Option<Box<Watch>>),
}

/// A stream under way.
#[derive(Default)]
struct Events {
    blocks: Blocks,
    /// Of the event that is not whole yet.
    held: BytesMut,
    /// That event has a list, and may be held further.
    has_list: bool,
    /// It passes.
    passing: Option<Passing>,
}

/// An event that is too large to be held; `None` where nothing is looked for any more.
struct Passing(Option<(Decoder, Watch)>);

/// Why a body is broken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unjudged {
    #[error("the upstream server's message is too large for its tools, its form or its result to be judged")]
    TooLarge,
    #[error("the upstream server's message is too large to be held, and is no JSON")]
    NoJson,
}

impl Sifted {
    pub(super) fn events(source: Source, sieving: Sieving, origin: Option<Box<Origin>>) -> Box<Self> {
        Self::new(source, Form::Events(Box::default()), sieving, origin)
    }

    /// One text, of which `begun` has come and is no more looked at than by the watch.
    pub(super) fn text(begun: Bytes, body: Body, watch: Option<Box<Watch>>, sieving: Sieving) -> Box<Self> {
        let mut sifted = Self::new(Source::Server(body), Form::Text(watch), sieving, None);
        sifted.ready.extend(Some(begun).filter(|begun| !begun.is_empty()));
        sifted
    }

    /// One of which no more comes than this.
    pub(super) fn broken(begun: Bytes, body: Body, error: BoxError, sieving: Sieving) -> Box<Self> {
        let mut sifted = Self::text(begun, body, None, sieving);
        (sifted.over, sifted.broken) = (true, Some(error));
        sifted
    }

    fn new(source: Source, form: Form, sieving: Sieving, origin: Option<Box<Origin>>) -> Box<Self> {
        Box::new(Self {
            source,
            form,
            ready: VecDeque::new(),
            answers: VecDeque::new(),
            origin,
            sieving,
            over: false,
            broken: None,
        })
    }

    /// Whether it is put together of whole messages, as a channel gives them.
    pub(in crate::upstream) fn is_of_channel(&self) -> bool {
        matches!(self.source, Source::Server(Body::Channel(_)))
    }

    /// Whether it outlives the server's.
    pub(in crate::upstream) fn is_held(&self) -> bool {
        matches!(self.source, Source::Held(_))
    }

    fn take(&mut self, data: Bytes) -> Result<(), Unjudged> {
        match &mut self.form {
            Form::Text(watch) => {
                let looked = watch.as_mut().map_or(Ok(()), |watch| watch.feed(&data, self.sieving.wanted()));
                if let Err(found) = looked {
                    self.sieving.unjudged(found)?;
                }
                self.ready.push_back(data);
                Ok(())
            }
            Form::Events(events) => {
                let mut out = Out { ready: &mut self.ready, answers: &mut self.answers };
                events.take(&self.sieving, data, &mut out)
            }
        }
    }

    /// The source has ended. An event without its blank line is none, but some readers take it for one.
    fn end(&mut self) {
        self.over = true;
        let Form::Events(events) = &mut self.form else { return };
        let held = events.held.split().freeze();
        if !held.is_empty() && matches!(look(&self.sieving, &held), Look::AsItIs) {
            self.ready.push_back(held);
        }
    }

    /// Answers what waits for an answer; pending where too many are on their way.
    fn poll_answers(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(origin) = &mut self.origin else {
            self.answers.clear();
            return Poll::Ready(());
        };
        while let Some(text) = self.answers.front() {
            ready!(origin.poll_answer(text, cx));
            self.answers.pop_front();
        }
        Poll::Ready(())
    }
}

/// Where what comes of events goes.
struct Out<'a> {
    ready: &'a mut VecDeque<Bytes>,
    answers: &'a mut VecDeque<Bytes>,
}

impl Events {
    fn take(&mut self, sieving: &Sieving, data: Bytes, out: &mut Out<'_>) -> Result<(), Unjudged> {
        let mut rest = data;
        if !self.held.is_empty() || self.passing.is_some() {
            match self.blocks.next_end(&rest) {
                Some(end) => {
                    self.last(sieving, rest.split_to(end), out)?;
                }
                None => return self.more(sieving, rest, out),
            }
        }
        let (mut ends, mut last) = (smallvec::SmallVec::<[usize; 8]>::new(), 0);
        while let Some(end) = self.blocks.next_end(&rest[last..]) {
            last += end;
            ends.push(last);
        }
        let whole = rest.split_to(last);
        if !whole.is_empty() && !sieving.looking.suspects(&whole) {
            out.ready.push_back(whole);
        } else {
            let mut from = 0;
            for end in ends {
                block(sieving, whole.slice(from..end), out);
                from = end;
            }
        }
        if rest.is_empty() { Ok(()) } else { self.more(sieving, rest, out) }
    }

    /// More of an event that is not whole yet.
    fn more(&mut self, sieving: &Sieving, data: Bytes, out: &mut Out<'_>) -> Result<(), Unjudged> {
        if let Some(passing) = &mut self.passing {
            passing.look(sieving, data.clone()).or_else(|found| sieving.unjudged(found))?;
            out.ready.push_back(data);
            return Ok(());
        }
        self.held.extend_from_slice(&data);
        let most = sieving.sieve.most();
        if self.held.len() <= if self.has_list { most } else { sieving.hold } {
            return Ok(());
        }
        let held = self.held.split().freeze();
        let mut decoder = Decoder::new(most);
        decoder.in_pieces();
        let mut passing = Passing(Some((decoder, Watch::default())));
        // It may begin with the LF of a CR that ended the event before, which would be taken for a blank line.
        let begun = usize::from(held.first() == Some(&b'\n'));
        let looked = match self.has_list {
            true => Err(Found::Member),
            false => passing.look(sieving, held.slice(begun..)),
        };
        match looked {
            Ok(()) => passing.0 = passing.0.filter(|_| sieving.watch().is_some()),
            Err(Found::Member) if held.len() <= most => {
                self.has_list = true;
                self.held = BytesMut::from(held);
                return Ok(());
            }
            Err(found) => {
                sieving.unjudged(found)?;
                passing.0 = None;
            }
        }
        self.passing = Some(passing);
        out.ready.push_back(held);
        Ok(())
    }

    /// The end of an event that has begun before.
    fn last(&mut self, sieving: &Sieving, data: Bytes, out: &mut Out<'_>) -> Result<(), Unjudged> {
        self.more(sieving, data, out)?;
        self.has_list = false;
        if self.passing.take().is_none() {
            let whole = self.held.split().freeze();
            if !whole.is_empty() {
                block(sieving, whole, out);
            }
        }
        Ok(())
    }
}

/// One whole event.
fn block(sieving: &Sieving, block: Bytes, out: &mut Out<'_>) {
    match look(sieving, &block) {
        Look::AsItIs => out.ready.push_back(block),
        Look::Otherwise { text, answers } => {
            let written = match text {
                Some(text) => blocks::with_data(&block, text.parts()),
                None => blocks::without_data(&block),
            };
            out.ready.extend(Some(written).filter(|written| !written.is_empty()));
            out.answers.extend(answers);
        }
    }
}

fn look(sieving: &Sieving, block: &Bytes) -> Look {
    if !sieving.looking.suspects(block) {
        return Look::AsItIs;
    }
    blocks::data(block).map_or(Look::AsItIs, |data| sieving.text(&data))
}

impl Passing {
    fn look(&mut self, sieving: &Sieving, data: Bytes) -> Result<(), Found> {
        let Some((decoder, watch)) = &mut self.0 else { return Ok(()) };
        decoder.feed(data);
        while let Some(piece) = decoder.next_piece() {
            match piece.map_err(|_| Found::Member)? {
                Piece::Data(data) => watch.feed(&data, sieving.wanted())?,
                Piece::End { .. } => {}
            }
        }
        Ok(())
    }
}

impl http_body::Body for Source {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Source::Server(body) => Pin::new(body).poll_frame(cx),
            Source::Held(held) => {
                Pin::new(held).poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(BoxError::from)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Source::Server(body) => body.is_end_stream(),
            Source::Held(_) => false,
        }
    }
}

impl http_body::Body for Sifted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            if let Some(data) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            ready!(this.poll_answers(cx));
            if this.over {
                return Poll::Ready(this.broken.take().map(Err));
            }
            match ready!(Pin::new(&mut this.source).poll_frame(cx)) {
                None => this.end(),
                Some(Err(error)) => {
                    this.end();
                    this.broken = Some(error);
                }
                // Trailers end at the proxy.
                Some(Ok(frame)) => {
                    let taken = frame.into_data().map_or(Ok(()), |data| this.take(data));
                    if let Err(unjudged) = taken {
                        (this.over, this.broken) = (true, Some(unjudged.into()));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let nothing = self.ready.is_empty() && self.answers.is_empty() && self.broken.is_none();
        let held = match &self.form {
            Form::Events(events) => !events.held.is_empty(),
            Form::Text(_) => false,
        };
        nothing && (self.over || !held && self.source.is_end_stream())
    }
}
