//! A place that requests of an upstream may be sent to: a URL on its one origin.
//!
//! Owns the check, so that whoever holds a [`Place`] cannot leave the configured upstream by it, wherever its text came from:
//! a redirect, an `endpoint` event, a setting. Architecture, invariant 4.

use crate::net::Origin;
use http::Uri;
use http::uri::InvalidUri;
use url::Url;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    url: Url,
    uri: Uri,
}

/// Why a text leads to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// It is no URL.
    Unusable,
    /// On another origin, or with credentials of its own, which would be its writer's and not the client's.
    Elsewhere,
}

impl Place {
    /// The endpoint of the upstream itself, which is what the origin comes from.
    pub(super) fn home(mut url: Url) -> Result<Self, InvalidUri> {
        url.set_fragment(None);
        let uri = url.as_str().parse()?;
        Ok(Self { url, uri })
    }

    /// Where `reference`, read at `from`, leads to.
    pub(super) fn resolve(reference: &str, from: &Url, origin: &Origin) -> Result<Self, NoPlace> {
        Self::on(from.join(reference).map_err(|_| NoPlace::Unusable)?, origin)
    }

    pub(super) fn on(url: Url, origin: &Origin) -> Result<Self, NoPlace> {
        let same_origin = Origin::try_from(&url).is_ok_and(|target| target == *origin);
        if !same_origin || !url.username().is_empty() || url.password().is_some() {
            return Err(NoPlace::Elsewhere);
        }
        Self::home(url).map_err(|_| NoPlace::Unusable)
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }
}
