//! How a connection to an SQL server is protected: by TLS with a certificate that is checked, unless the server is this machine.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use soloist_store::{Result, StoreError};

/// The authorities to trust, as `?sslmode=` and `?sslrootcert=` say; `None`: no TLS. `near`: the server is this machine.
///
/// # Errors
/// [`StoreError::Unsupported`]: a mode that proves nothing, or a file that cannot be read.
pub(crate) fn roots(
    mode: Option<&str>,
    root: Option<&str>,
    near: bool,
) -> Result<Option<Vec<CertificateDer<'static>>>> {
    match mode {
        Some("disable") => return Ok(None),
        None if near && root.is_none() => return Ok(None),
        None | Some("verify-full") => {}
        Some(_) => {
            return Err(refused(
                "sslmode must be verify-full (the default, except on this machine) or disable: with prefer, allow, require or verify-ca somebody on the way could be the server; name your own certificate authority with sslrootcert=FILE",
            ));
        }
    }
    let found = match root {
        Some(path) => CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
            .map_err(|error| refused(&format!("sslrootcert {path} cannot be read: {error}")))?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    // Among those of a machine there may be some that no server could use.
    let usable = |one: &CertificateDer<'static>| RootCertStore::empty().add(one.clone()).is_ok();
    Ok(Some(found.into_iter().filter(usable).collect()))
}

/// What broke a connection. If it was a certificate, with what to do about it.
pub(crate) fn with_remedy(why: String) -> String {
    if !why.contains("certificate") {
        return why;
    }
    why + "; name the file of the authority that signed it with ?sslrootcert=FILE in the store URL, and the host as the certificate does"
}

fn refused(why: &str) -> StoreError {
    StoreError::Unsupported(why.to_owned())
}
