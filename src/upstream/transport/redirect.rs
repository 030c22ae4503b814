//! Which redirects are followed: only those that mean "the same request, elsewhere on the same origin".
//!
//! Owns the reading of status and `Location`. Does not own the sending. Architecture, invariant 4 (no redirect takes the
//! proxy off the configured upstream); A13.10 (`Authorization` stays with its origin).

use http::{HeaderMap, StatusCode, Uri, header};
use url::Url;

use super::error::RedirectRefusal;
use crate::net::Origin;

/// Where a redirect leads.
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) uri: Uri,
}

/// `None` if the response is not a redirect of the request.
pub(super) fn target(
    status: StatusCode,
    headers: &HeaderMap,
    from: &Url,
    origin: &Origin,
) -> Option<Result<Target, RedirectRefusal>> {
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
    from: &Url,
    origin: &Origin,
) -> Result<Target, RedirectRefusal> {
    let unusable = || RedirectRefusal::NoLocation { status: status.as_u16() };
    let mut locations = headers.get_all(header::LOCATION).iter();
    let location = locations.next().and_then(|value| value.to_str().ok()).ok_or_else(unusable)?;
    if locations.next().is_some() {
        return Err(unusable());
    }
    let mut url = from.join(location).map_err(|_| unusable())?;
    let same_origin = Origin::try_from(&url).is_ok_and(|target| target == *origin);
    // Credentials in a Location would be the server's, not the client's.
    if !same_origin || !url.username().is_empty() || url.password().is_some() {
        let (location, origin) = (location.to_owned(), origin.to_string());
        return Err(RedirectRefusal::CrossOrigin { location, origin });
    }
    url.set_fragment(None);
    let uri = url.as_str().parse().map_err(|_| unusable())?;
    Ok(Target { url, uri })
}
