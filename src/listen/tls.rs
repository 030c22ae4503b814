//! TLS towards clients: a certificate chain and its key, from two PEM files.
//!
//! Owns reading them and the server's settings (ALPN `h2` and `http/1.1`). Does not own renewal: a restart reads anew.

use std::path::PathBuf;
use std::sync::Arc;

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, ServerConfig, crypto::ring};

use crate::config::Tls;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("listen.tls.certificate: {}: {source}", path.display())]
    Certificate { path: PathBuf, source: pem::Error },
    #[error("listen.tls.certificate: {}: the file holds no certificate", path.display())]
    NoCertificate { path: PathBuf },
    #[error("listen.tls.key: {}: {source}", path.display())]
    Key { path: PathBuf, source: pem::Error },
    #[error("listen.tls: certificate and key cannot be used together: {0}")]
    Unusable(#[from] rustls::Error),
}

pub(super) fn acceptor(settings: &Tls) -> Result<TlsAcceptor, TlsError> {
    let path = settings.certificate.clone();
    let chain = CertificateDer::pem_file_iter(&path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|source| TlsError::Certificate { path: path.clone(), source })?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate { path });
    }
    let key = PrivateKeyDer::from_pem_file(&settings.key)
        .map_err(|source| TlsError::Key { path: settings.key.clone(), source })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
