//! The events of one stream, each bounded.
//!
//! Owns passing over an event that is larger than `message_bytes` in constant memory, of which no more is told than the id of the
//! answer in it. Does not own what an event means.

use super::super::body::Body;
use crate::wire::jsonrpc::{Id, LateId};
use crate::wire::sse::{Decoder, Event, Piece, SseError};
use bytes::Bytes;
use http_body_util::BodyExt;

/// The decoder is fed so much at a time, so that what it holds stays near the bound however much comes at once.
const FEED: usize = 64 * 1024;

/// What an event may hold besides its data: names of fields, its type, its id.
const BESIDE: usize = 64;

pub(super) struct Events {
    body: Body,
    decoder: Decoder,
    /// Has come and is not fed yet.
    waiting: Bytes,
    most: usize,
    /// Reads the event that is passed over.
    late: LateId,
}

pub(super) enum Next {
    Event(Event),
    TooLong(Option<Id>),
}

/// Why no more can be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("the event stream broke off")]
    Body,
    #[error("the event stream has a line without end")]
    Line,
}

impl Events {
    pub(super) fn new(body: Body, message_bytes: usize) -> Self {
        let decoder = Decoder::new(message_bytes.saturating_add(FEED + BESIDE));
        Self { body, decoder, waiting: Bytes::new(), most: message_bytes, late: LateId::default() }
    }

    /// The next event; `None` at the end. May be dropped half-way without a loss.
    pub(super) async fn next(&mut self) -> Result<Option<Next>, Broken> {
        loop {
            if self.decoder.is_in_pieces() {
                match self.decoder.next_piece() {
                    Some(Ok(Piece::Data(data))) => self.late.feed(&data),
                    Some(Ok(Piece::End { .. })) => {
                        return Ok(Some(Next::TooLong(std::mem::take(&mut self.late).found())));
                    }
                    Some(Err(SseError::TooLarge { .. })) => return Err(Broken::Line),
                    None if self.more().await? => {}
                    None => return Ok(None),
                }
                continue;
            }
            match self.decoder.next_event() {
                Some(Ok(event)) if event.data.len() > self.most => {
                    let mut late = LateId::default();
                    late.feed(&event.data);
                    return Ok(Some(Next::TooLong(late.found())));
                }
                Some(Ok(event)) => return Ok(Some(Next::Event(event))),
                Some(Err(SseError::TooLarge { .. })) => return Err(Broken::Line),
                None if self.decoder.held() > self.most.saturating_add(BESIDE) => self.decoder.in_pieces(),
                None if self.more().await? => {}
                None => return Ok(None),
            }
        }
    }

    /// Feeds what comes next; `false` at the end.
    async fn more(&mut self) -> Result<bool, Broken> {
        while self.waiting.is_empty() {
            let Some(frame) = self.body.frame().await else { return Ok(false) };
            if let Ok(data) = frame.map_err(|_| Broken::Body)?.into_data() {
                self.waiting = data;
            }
        }
        let piece = self.waiting.split_to(self.waiting.len().min(FEED));
        self.decoder.feed(piece);
        Ok(true)
    }
}
