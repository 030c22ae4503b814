//! Where messages to a server of HTTP+SSE go.
//!
//! Owns reading what an `endpoint` event says, by the rules of URLs and against the URL that the stream was got from, and the
//! setting `sse_endpoint`, for servers behind a prefix that they do not know of. What is on another origin is refused, whoever
//! says it (invariant 4, C42).

use super::super::error::NoEndpoint;
use super::super::http::HttpTransport;
use super::super::place::{NoPlace, Place};

/// `sse_endpoint`: the place in the stead of what the event says. The event's query is kept, since the session is in it.
pub(super) struct Override(Place);

impl Override {
    /// The reason, if it cannot be one.
    pub(super) fn read(text: &str, http: &HttpTransport) -> Result<Self, String> {
        http.place(text, http.home()).map(Self).map_err(|none| match none {
            NoPlace::Unusable => "`sse_endpoint` is neither a path nor a URL".to_owned(),
            NoPlace::Elsewhere => {
                format!("`sse_endpoint` must be a path, or a URL without credentials on {}", http.origin())
            }
        })
    }
}

/// What an event says that came on the stream from `from`.
pub(super) fn resolve(
    told: &str,
    from: &Place,
    http: &HttpTransport,
    instead: Option<&Override>,
) -> Result<Place, NoEndpoint> {
    let elsewhere = || NoEndpoint::CrossOrigin { endpoint: brief(told), origin: http.origin().to_string() };
    let unusable = || NoEndpoint::Unusable { endpoint: brief(told) };
    let Some(Override(instead)) = instead else {
        return http.place(told, from).map_err(|none| match none {
            NoPlace::Unusable => unusable(),
            NoPlace::Elsewhere => elsewhere(),
        });
    };
    // Of a URL that is not ours to follow, no more than this is looked at.
    let told = from.url().join(told).map_err(|_| unusable())?;
    let mut url = instead.url().clone();
    match (url.query(), told.query()) {
        (Some(ours), Some(theirs)) => {
            let both = format!("{ours}&{theirs}");
            url.set_query(Some(&both));
        }
        (None, Some(theirs)) => url.set_query(Some(theirs)),
        (Some(_) | None, None) => {}
    }
    Place::on(url, http.origin()).map_err(|_| unusable())
}

/// For texts: its beginning, on one line, without the session that may be in its query.
fn brief(told: &str) -> String {
    let path = told.split(['?', '#']).next().unwrap_or_default();
    path.chars().take(200).map(|char| if char.is_control() { ' ' } else { char }).collect()
}
