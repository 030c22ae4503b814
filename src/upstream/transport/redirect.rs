//! Which redirects are followed: only those that mean "the same request, elsewhere on the same origin".
//!
//! Owns the reading of status and `Location`. Does not own the sending. Architecture, invariant 4 (no redirect takes the
//! proxy off the configured upstream); A13.10 (`Authorization` stays with its origin).

use http::{HeaderMap, StatusCode, header};

use super::error::RedirectRefusal;
use super::place::{NoPlace, Place};
use crate::net::Origin;

/// Where a redirect leads. `None` if the response is not a redirect of the request.
pub(super) fn target(
    status: StatusCode,
    headers: &HeaderMap,
    from: &Place,
    origin: &Origin,
) -> Option<Result<Place, RedirectRefusal>> {
    match status {
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => Some(resolve(status, headers, from, origin)),
        StatusCode::SEE_OTHER => {
            let location = headers.get(header::LOCATION).map(|value| value.as_bytes()).unwrap_or_default();
            let location = String::from_utf8_lossy(location).into_owned();
            Some(Err(RedirectRefusal::SeeOther { location }))
        }
        _ => None,
    }
}

fn resolve(
    status: StatusCode,
    headers: &HeaderMap,
    from: &Place,
    origin: &Origin,
) -> Result<Place, RedirectRefusal> {
    let unusable = || RedirectRefusal::NoLocation { status: status.as_u16() };
    let mut locations = headers.get_all(header::LOCATION).iter();
    let location = locations.next().and_then(|value| value.to_str().ok()).ok_or_else(unusable)?;
    if locations.next().is_some() {
        return Err(unusable());
    }
    Place::resolve(location, from.url(), origin).map_err(|none| match none {
        NoPlace::Unusable => unusable(),
        NoPlace::Elsewhere => {
            RedirectRefusal::CrossOrigin { location: location.to_owned(), origin: origin.to_string() }
        }
    })
}
