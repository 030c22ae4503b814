//! Whose token a credential is, as far as the token itself says so.
//!
//! Owns reading `iss`, `sub`, the client and the audience out of a bearer token that is a JWT. Nothing is verified here: the
//! proxy has no keys and trusts no signature, algorithm or claim. Two credentials of one subject are no more than two that
//! may be one caller's, which the upstream has to vouch for (`upstream::modern::vouch`). Rule: invariant 2.

use crate::wire::json::{Cursor, Kind, Limits, Object};
use crate::wire::jsonrpc::string;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};

/// Of a token's claims.
const LIMITS: Limits = Limits { nesting: 16, members: 256 };

/// The hash of a caller's name.
pub(super) type Subject = [u8; 32];

/// The subject of a request's credential; `None` where it does not name one.
pub(super) fn of(headers: &HeaderMap) -> Option<Subject> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let claims = claims(value)?;
    let object = read(&claims)?;
    let mut hash = Sha256::new();
    for (name, required) in [("iss", true), ("sub", true), ("client_id", false), ("azp", false)] {
        let value = object.get(&claims, name).ok()?;
        match value {
            Some(span) => part(&mut hash, string(&claims, span).filter(|text| !text.is_empty())?.as_bytes()),
            None if required => return None,
            None => hash.update([0]),
        }
    }
    audience(&mut hash, &claims, &object)?;
    Some(hash.finalize().into())
}

fn read(claims: &[u8]) -> Option<Object> {
    let mut cursor = Cursor::new(claims, LIMITS).ok()?;
    let object = cursor.object(|cursor, _| cursor.skip()).ok()?;
    cursor.end().ok()?;
    Some(object)
}

/// One audience or several, as the issuer wrote them.
fn audience(hash: &mut Sha256, claims: &[u8], object: &Object) -> Option<()> {
    match object.get(claims, "aud").ok()? {
        Some(span) if matches!(Kind::of(span.of(claims))?, Kind::String | Kind::Array) => {
            part(hash, span.of(claims));
        }
        Some(_) => return None,
        None => hash.update([0]),
    }
    Some(())
}

/// With its length, so that no two rows of parts look alike.
fn part(hash: &mut Sha256, bytes: &[u8]) {
    hash.update([1]);
    hash.update((bytes.len() as u64).to_be_bytes());
    hash.update(bytes);
}

/// The second of a token's three parts.
fn claims(value: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let mut parts = scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().split('.'))?;
    let (_, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || signature.is_empty() {
        return None;
    }
    URL_SAFE_NO_PAD.decode(claims).ok()
}
