//! Events of a session's streams as they are written.
//!
//! Owns their ids, which are unique among all streams of the process and tell a client's own stream from its calls; the event
//! that tells a client where it stands; and the word in the place of an answer that is not kept. Rule: A13.5.

use crate::wire::jsonrpc::{self, Id, code};
use crate::wire::sse;
use bytes::{Bytes, BytesMut};

/// How long a client is asked to wait before it comes back to a stream that ended, in milliseconds.
const RETRY: &str = "1000";

/// A result that nobody can be given any more.
const GONE: &str = "the result of this request is lost: it is larger than what is kept for a client whose connection broke \
                    (upstream.*.session.replay_bytes), or broke off on its way; the call may have run";

/// Whose stream it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The session's own, which its client opens by GET.
    Own,
    /// Of one POST.
    Call,
}

/// The id of event `n` of stream `number`.
pub(super) fn id(kind: Kind, number: u64, n: u64) -> String {
    let letter = match kind {
        Kind::Own => 's',
        Kind::Call => 'c',
    };
    format!("{letter}{number:x}-{n}")
}

/// What [`id`] wrote.
pub(super) fn read_id(id: &[u8]) -> Option<(Kind, u64, u64)> {
    let (kind, rest) = match std::str::from_utf8(id).ok()?.split_at_checked(1)? {
        ("s", rest) => (Kind::Own, rest),
        ("c", rest) => (Kind::Call, rest),
        _ => return None,
    };
    let (number, n) = rest.split_once('-')?;
    Some((kind, u64::from_str_radix(number, 16).ok()?, n.parse().ok()?))
}

/// What stands before an event's data.
pub(super) fn head(kind: Kind, number: u64, n: u64) -> Bytes {
    Bytes::from(format!("id: {}\n", id(kind, number, n)))
}

/// A whole event.
pub(super) fn of(kind: Kind, number: u64, n: u64, parts: &[Bytes]) -> Bytes {
    let head = head(kind, number, n);
    let size = head.len() + parts.iter().map(Bytes::len).sum::<usize>() + 8;
    let mut out = BytesMut::with_capacity(size);
    out.extend_from_slice(&head);
    sse::encode_data(&mut out, parts);
    out.freeze()
}

/// An event without data, for a client that has had none: where it stands, and how long to wait before it comes back.
pub(super) fn priming(kind: Kind, number: u64, n: u64) -> Bytes {
    Bytes::from(format!("id: {}\nretry: {RETRY}\ndata: \n\n", id(kind, number, n)))
}

/// In the place of an answer that is not kept.
pub(super) fn gone(kind: Kind, number: u64, n: u64, id: &Id) -> Bytes {
    of(kind, number, n, &[jsonrpc::error(Some(id), code::INTERNAL_ERROR, GONE, None)])
}
