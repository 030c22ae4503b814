//! The TLS settings of one upstream.
//!
//! Owns which authorities are trusted (the system's, and the CA files of the upstream) and what ALPN offers. Does not
//! own when TLS is spoken. Nothing is read from disk for an `http` upstream.

use std::path::Path;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::error::TransportBuildError;
use crate::config::Upstream;
use crate::net::{Origin, Scheme};

/// The connector and the name to verify, for an `https` origin.
pub(super) fn connector(
    upstream: &Upstream,
    origin: &Origin,
) -> Result<Option<(TlsConnector, ServerName<'static>)>, TransportBuildError> {
    match origin.scheme {
        Scheme::Http => return Ok(None),
        Scheme::Https => {}
    }
    let name = server_name(origin).map_err(|reason| TransportBuildError::Url {
        upstream: upstream.name.clone(),
        url: origin.to_string(),
        reason,
    })?;
    let failed = |source| TransportBuildError::Tls { upstream: upstream.name.clone(), source };
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(roots(upstream)?)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Some((TlsConnector::from(Arc::new(config)), name)))
}

fn server_name(origin: &Origin) -> Result<ServerName<'static>, String> {
    match &origin.host {
        url::Host::Domain(name) => {
            ServerName::try_from(name.clone()).map_err(|_| format!("`{name}` cannot stand in a certificate"))
        }
        url::Host::Ipv4(address) => Ok(ServerName::from(std::net::IpAddr::from(*address))),
        url::Host::Ipv6(address) => Ok(ServerName::from(std::net::IpAddr::from(*address))),
    }
}

fn roots(upstream: &Upstream) -> Result<RootCertStore, TransportBuildError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(%error, "some certificate authorities of the system cannot be read");
    }
    let (_, unusable) = roots.add_parsable_certificates(system.certs);
    if unusable > 0 {
        tracing::debug!(unusable, "certificate authorities of the system that are no X.509 roots");
    }
    for path in &upstream.ca_files {
        add_ca_file(&mut roots, path).map_err(|reason| TransportBuildError::CaFile {
            upstream: upstream.name.clone(),
            path: path.clone(),
            reason,
        })?;
    }
    if roots.is_empty() {
        return Err(TransportBuildError::NoRoots { upstream: upstream.name.clone() });
    }
    Ok(roots)
}

fn add_ca_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let before = roots.len();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.len() == before { Err("the file holds no certificate".to_owned()) } else { Ok(()) }
}
