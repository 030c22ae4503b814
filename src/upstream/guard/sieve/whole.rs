//! A response in one JSON body.
//!
//! Owns holding it until it can be looked into, and letting one pass under watch that is too large for that. A body in one piece is
//! not copied. Rules: A12.21, A13.7; architecture section 5, invariants 1 and 5.

use super::Sieving;
use super::answer::Origin;
use super::body::Sifted;
use super::message::{Look, WITHHELD};
use super::watch::{Found, Watch};
use crate::exchange::Fault;
use crate::upstream::reply::UpstreamBody;
use crate::upstream::transport::Body;
use crate::wire::jsonrpc::{self, code};
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;

/// Reads the body, or begins to.
pub(super) async fn collect(
    sieving: Sieving,
    origin: impl FnOnce() -> Option<Box<Origin>>,
    mut body: Body,
) -> Result<UpstreamBody, Fault> {
    let mut held = Held::default();
    let (mut may, mut has_list) = (sieving.hold, false);
    while !body.is_end_stream() {
        let data = match body.frame().await {
            None => break,
            Some(Err(error)) => {
                return Ok(UpstreamBody::Sifted(Sifted::broken(held.join(), body, error, sieving)));
            }
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        held.push(data);
        if held.len() <= may {
            continue;
        }
        let mut watch = Watch::default();
        let looked = if has_list { Err(Found::Member) } else { watch.feed(held.bytes(), sieving.wanted()) };
        let watch = match looked {
            Ok(()) => sieving.watch().map(|_| Box::new(watch)),
            Err(Found::Member) if held.len() <= sieving.sieve.most() => {
                (has_list, may) = (true, sieving.sieve.most());
                continue;
            }
            Err(found) => {
                let broken = sieving.unjudged(found).err();
                if let Some(broken) = broken {
                    return Err(Fault::bad_gateway(broken.to_string()));
                }
                None
            }
        };
        return Ok(UpstreamBody::Sifted(Sifted::text(held.join(), body, watch, sieving)));
    }
    Ok(read(&sieving, origin, held.join()))
}

/// One that is there as a whole.
pub(super) fn read(
    sieving: &Sieving,
    origin: impl FnOnce() -> Option<Box<Origin>>,
    text: Bytes,
) -> UpstreamBody {
    if !sieving.looking.suspects(&text) {
        return UpstreamBody::Read(text);
    }
    let Look::Otherwise { text, answers } = sieving.text(&text) else { return UpstreamBody::Read(text) };
    if !answers.is_empty()
        && let Some(origin) = origin()
    {
        answers.into_iter().for_each(|answer| origin.answer(answer));
    }
    UpstreamBody::Read(text.map_or_else(|| withheld(sieving), |text| text.to_bytes()))
}

/// An error for each request that waits for an answer.
fn withheld(sieving: &Sieving) -> Bytes {
    let error = |id| jsonrpc::error(Some(id), code::INTERNAL_ERROR, WITHHELD, None);
    let mut errors: Vec<Bytes> = sieving.looking.asked.ids().map(error).collect();
    match errors.len() {
        0 | 1 => errors.pop().unwrap_or_default(),
        _ => [b"[", &errors.join(&b","[..])[..], b"]"].concat().into(),
    }
}

/// What has come. A single piece is not copied.
#[derive(Default)]
struct Held {
    first: Bytes,
    joined: BytesMut,
}

impl Held {
    fn push(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        let first = std::mem::take(&mut self.first);
        self.joined.extend_from_slice(&first);
        self.joined.extend_from_slice(&data);
    }

    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn bytes(&self) -> &[u8] {
        if self.joined.is_empty() { &self.first } else { &self.joined }
    }

    fn join(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}
