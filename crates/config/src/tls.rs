//! A certificate and its key: read from their files and compared.
//!
//! `check` reports faults before a node starts; a node that reads them again uses the same words. It opens no connection.

use std::path::Path;

use rustls::Error;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::{TlsFiles, closed};

/// A key that is larger is another file by mistake.
const LARGEST: u64 = 1024 * 1024;

/// Reads both files.
///
/// # Errors
/// What is wrong, with the file and what to do about it.
pub(super) fn read(files: &TlsFiles) -> Result<CertifiedKey, String> {
    let (cert, key) = (files.cert.display(), files.key.display());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&bytes(&files.cert)?)
        .collect::<Result<_, _>>()
        .map_err(|error| {
            format!("{cert} is not PEM: {error}; write the certificate and its chain into it")
        })?;
    if chain.is_empty() {
        return Err(format!(
            "{cert} holds no certificate: it must begin with -----BEGIN CERTIFICATE-----"
        ));
    }
    let private = closed::read(&files.key, LARGEST, "name the file that holds the key alone");
    let private = private.map_err(|why| format!("key: {why}"))?;
    let private = PrivateKeyDer::from_pem_slice(&private).map_err(|error| {
        format!("{key} holds no private key ({error}): it must be PEM, without a password")
    })?;
    CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|error| match error {
        Error::InconsistentKeys(_) => format!(
            "the private key {key} does not belong to the certificate {cert}: give the two files that were made together"
        ),
        error => format!("{cert} and {key} cannot be used: {error}; issue them again, with an RSA, ECDSA or Ed25519 key"),
    })
}

fn bytes(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| {
        format!(
            "cert {} cannot be read: {error}; correct the path or the permissions",
            file.display()
        )
    })
}

impl TlsFiles {
    /// The certificate with its key, ready to serve.
    ///
    /// # Errors
    /// What is wrong, with the file and what to do about it.
    pub fn pair(&self) -> Result<CertifiedKey, String> {
        read(self)
    }
}
